//! What the agent asks of the person: approvals and questions, handed to whoever holds the terminal or the run.

use outrigger_steerable::chat::{BoxFuture, ToolResult};
use outrigger_steerable::host::{
    Answers, ApprovalRequest, Decision, Questions, Reverse, ToolAnswer, ToolInvocation, Verdict,
};
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait; an agent asks few at a time.
const WAITING: usize = 16;

/// One question, and where its answer goes. An answer that nobody gives is a no.
#[derive(Debug)]
pub(crate) enum Asked {
    Approval { request: ApprovalRequest, answer: oneshot::Sender<Decision> },
    Questions { questions: Questions, answer: oneshot::Sender<Result<Answers, String>> },
}

/// Passes questions on.
pub(crate) struct Asker {
    questions: mpsc::Sender<Asked>,
}

impl Asker {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (questions, asked) = mpsc::channel(WAITING);
        (Self { questions }, asked)
    }
}

impl Reverse for Asker {
    fn invoke(&self, call: ToolInvocation) -> BoxFuture<'_, ToolAnswer> {
        Box::pin(async move { ToolAnswer::Result(ToolResult::unknown(&call.name)) })
    }

    fn approve(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // Nobody is left to ask when either fails.
            let _ = self.questions.send(Asked::Approval { request, answer }).await;
            answered
                .await
                .unwrap_or_else(|_| Decision::new(Verdict::DenyOnce).because("nobody is here to approve it"))
        })
    }

    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, String>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _ = self.questions.send(Asked::Questions { questions, answer }).await;
            answered.await.unwrap_or_else(|_| Err("nobody is here to answer".to_owned()))
        })
    }
}
