//! The open questions of a turn: each waits for its answer by itself, and is withdrawn when nobody needs it any more.

use std::sync::Arc;

use outrigger_wire::rpc::Id;
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, JoinSet};

use super::ask::Approval;
use super::form::{self, Question, Reading};
use super::server::Server;
use super::terms::Leave;
use crate::provider::{Answer, Desk, InputAction, Verdict};

/// How many items are remembered whose changes a question may be about.
const CHANGES: usize = 32;

/// The open questions.
pub(super) struct Questions {
    server: Arc<Server>,
    desk: Arc<dyn Desk>,
    waiting: JoinSet<()>,
    open: Vec<(Id, AbortHandle)>,
    changes: Vec<(String, Box<RawValue>)>,
}

impl Questions {
    /// None yet.
    pub(super) fn new(server: Arc<Server>, desk: Arc<dyn Desk>) -> Self {
        Self { server, desk, waiting: JoinSet::new(), open: Vec::new(), changes: Vec::new() }
    }

    /// Asks the host what the server asks, or answers in its place. A question of no known sort is refused, because a server
    /// that waits for ever is worse than one that is told no.
    pub(super) async fn ask(&mut self, leave: Leave, id: Id, method: &str, params: &RawValue) {
        let uuid = super::uuid();
        if leave == Leave::Everything && form::is_tool_approval(method, params) {
            return self.server.link.answer(&id, form::tool_approved()).await;
        }
        let changes = |item: &str| self.changes.iter().find(|(id, _)| id == item).map(|(_, raw)| &**raw);
        if let Some(approval) = Approval::read(method, params, format!("codex-{uuid}"), changes) {
            if leave == Leave::Everything {
                let once = Verdict::Allow { updated: Vec::new() };
                return self.server.link.answer(&id, approval.answer(&once)).await;
            }
            return self.wait_for_verdict(id, approval);
        }
        match Question::read(method, params, &uuid) {
            Reading::Ask(question) => self.wait_for_answer(id, question),
            Reading::Known(answer) => self.server.link.answer(&id, answer).await,
            Reading::None => {
                self.desk.log(&format!("Codex asked `{method}`, which is not known here"));
                self.server.link.refuse(&id, &format!("this client does not know `{method}`")).await;
            }
        }
    }

    fn wait_for_verdict(&mut self, id: Id, approval: Approval) {
        let mut asked = self.desk.ask_permission(approval.ask.clone());
        let (server, answered) = (Arc::clone(&self.server), id.clone());
        let task = self.waiting.spawn(async move {
            let verdict = asked.answer().await.unwrap_or(Verdict::Deny { message: None });
            server.link.answer(&answered, approval.answer(&verdict)).await;
        });
        self.open.push((id, task));
    }

    fn wait_for_answer(&mut self, id: Id, question: Question) {
        let mut asked = self.desk.ask_input(question.ask.clone());
        let (server, answered) = (Arc::clone(&self.server), id.clone());
        let task = self.waiting.spawn(async move {
            let nothing = Answer { action: InputAction::Cancel, content: None, meta: None };
            let answer = asked.answer().await.unwrap_or(nothing);
            server.link.answer(&answered, question.answer(answer)).await;
        });
        self.open.push((id, task));
    }

    /// Remembers what an item changes, because the question about it does not say.
    pub(super) fn remember(&mut self, item: String, changes: &RawValue) {
        if self.changes.len() == CHANGES {
            self.changes.remove(0);
        }
        self.changes.push((item, changes.to_owned()));
    }

    /// One has been answered; `None` if none is open.
    pub(super) async fn answered(&mut self) -> Option<()> {
        let _ = self.waiting.join_next().await?;
        self.open.retain(|(_, task)| !task.is_finished());
        Some(())
    }

    /// The server has no use for the answer any more.
    pub(super) fn resolved(&mut self, id: &RawValue) {
        for (open, task) in &self.open {
            if open.as_json() == id.get() {
                task.abort();
            }
        }
    }

    /// Withdraws them all.
    pub(super) async fn withdraw(&mut self) {
        self.open.clear();
        self.waiting.shutdown().await;
    }
}
