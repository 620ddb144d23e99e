//! Looks on while an agent works, and tells the run's log: its events byte for byte, its questions, what is odd about it.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_abp::conduct::Audience;
use outrigger_abp::govern::approvals::input_hash;
use outrigger_abp::govern::{self, Answered, ApprovalRequest, Ledger};
use outrigger_abp::host::Warning;
use outrigger_abp::protocol::{
    self, AgentEvent, Ask, AskDecision, ErrorCode, EventKind, Hello, Raw, Timestamp,
};
use outrigger_abp::workspace::Prepared;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::job::Window;
use super::memory::{Memory, Recalled};
use crate::runs::backend::{NewApproval, NotHeard};
use crate::runs::state::Moment;
use crate::runs::{Answer, Approval, Choice, Teller};

/// What is called a question.
pub(super) const QUESTION: &str = "question";

/// What the key of a question begins with; those of approvals are the ledger's own and have no such letter.
pub(super) const ASKED: &str = "q/";

/// The longest sentence of a question that is shown as its reason.
const MAX_REASON: usize = 1024;

/// What the attendant must know.
#[derive(Debug)]
pub(super) enum News {
    /// The child is there and can be spoken to.
    Ready,
    /// Somebody was asked; whether that was written down comes through the channel.
    Asked { key: String, written: oneshot::Receiver<Approval> },
    /// A question has its answer already.
    Answer(Box<protocol::Answer>),
}

/// What was seen of an attempt, for its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) tool_calls: u64,
    pub(super) model_calls: u64,
    /// The last error that the child told of.
    pub(super) error: Option<(String, Option<ErrorCode>)>,
    /// What the agent calls the conversation.
    pub(super) session: Option<String>,
}

/// Tells the log of a run what its child does.
pub(super) struct Onlooker {
    teller: Teller,
    news: mpsc::Sender<News>,
    /// Rung when the log cannot be written any more.
    deaf: Arc<Notify>,
    heard: Heard,
    ledger: PathBuf,
    memory: Memory,
    window: Window,
    seen: Seen,
}

/// Whether the log still takes what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Yes,
    No,
}

impl Onlooker {
    pub(super) fn new(
        teller: Teller,
        news: mpsc::Sender<News>,
        deaf: Arc<Notify>,
        ledger: PathBuf,
        memory: Memory,
        window: Window,
    ) -> Self {
        Self { teller, news, deaf, heard: Heard::Yes, ledger, memory, window, seen: Seen::default() }
    }

    pub(super) fn seen(self) -> Seen {
        self.seen
    }

    fn tell(&mut self, tell: impl FnOnce(&Teller) -> Result<(), NotHeard>) {
        if self.heard == Heard::Yes && tell(&self.teller).is_err() {
            self.heard = Heard::No;
            self.deaf.notify_one();
        }
    }

    fn note(&mut self, text: String) {
        self.tell(|teller| teller.note_blocking(text));
    }

    /// Puts something to a person. Says whether anybody will hear of it.
    fn put(&mut self, new: NewApproval) -> bool {
        let key = new.key.clone();
        match self.teller.ask_blocking(new) {
            Ok(written) => self.news.try_send(News::Asked { key, written }).is_ok(),
            Err(NotHeard) => {
                self.heard = Heard::No;
                self.deaf.notify_one();
                false
            }
        }
    }

    fn deadline(&self) -> Option<Moment> {
        self.window.within.map(|within| Moment::now().after(within))
    }

    /// Says to the control plane what somebody said before, or that nobody can be asked.
    fn settle(&mut self, request: &ApprovalRequest, answered: Answered) {
        if let Err(error) = write(&self.ledger, &answered) {
            self.note(format!("the answer to {} was not taken: {error}", request.tool_name));
        }
    }
}

impl Audience for Onlooker {
    fn prepared(&mut self, workspace: &Prepared) {
        let left_out = workspace.left_out();
        if let Some(first) = left_out.first() {
            let more = match left_out.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            self.note(format!("not in the copy: {} ({}){more}", first.path, first.why.as_text()));
        }
    }

    fn hello(&mut self, hello: &Hello, pid: Option<u32>) {
        // The channel has room: nothing was said before.
        let _ = self.news.try_send(News::Ready);
        self.note(greeting(hello, pid));
    }

    fn event(&mut self, _number: u64, event: &AgentEvent<'_>, _line: &str) {
        match &event.kind {
            EventKind::ToolCall { .. } => self.seen.tool_calls += 1,
            EventKind::Usage(_) => self.seen.model_calls += 1,
            EventKind::Error { message, error_code } => {
                self.seen.error = Some((message.clone().into_owned(), error_code.clone()));
            }
            EventKind::RunStarted { .. } => {
                let session = event.ext.as_ref().map(|ext| ext.to_value()["agent_session"].clone());
                if let Some(Value::String(session)) = session {
                    self.seen.session = Some(session);
                }
            }
            EventKind::RunCompleted { .. }
            | EventKind::AssistantDelta { .. }
            | EventKind::AssistantMessage { .. }
            | EventKind::ToolResult { .. }
            | EventKind::FileChanged { .. }
            | EventKind::CommandExecuted { .. }
            | EventKind::Warning { .. }
            | EventKind::Other { .. } => {}
        }
        let text = own_text(event);
        self.tell(|teller| teller.raw_event_blocking(text));
    }

    fn approval(&mut self, request: &ApprovalRequest) {
        if let Some(recalled) = self.memory.recall(&request.tool_name, &request.input_sha256) {
            self.note(used_again(&request.tool_name, &recalled));
            let Recalled { answer, by, .. } = recalled;
            return self.settle(request, answered(&request.id, &answer, &by.0));
        }
        if !self.put(approval(request, self.deadline(), self.window)) {
            let nobody =
                Answer { reason: Some("nobody can be asked".to_owned()), ..Answer::plain(Choice::Deny) };
            self.settle(request, answered(&request.id, &nobody, "daemon"));
        }
    }

    fn question(&mut self, ask: &Ask<'_>) -> bool {
        let new = question(ask, self.deadline());
        if let Some(recalled) = self.memory.recall(QUESTION, &new.input_sha256) {
            self.note(used_again("the question", &recalled));
            let reply = reply(&ask.ref_id, &ask.id, &recalled.answer, &recalled.by.0);
            return self.news.try_send(News::Answer(Box::new(reply))).is_ok();
        }
        self.put(new)
    }

    fn warning(&mut self, warning: &Warning) {
        self.note(warning.to_string());
    }

    fn remark(&mut self, text: &str) {
        self.note(text.to_owned());
    }
}

/// Who took the order.
fn greeting(hello: &Hello, pid: Option<u32>) -> String {
    let backend = &hello.backend;
    let version = backend.backend_version.as_deref().or(backend.adapter_version.as_deref());
    let version = version.map(|version| format!(" {version}")).unwrap_or_default();
    let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    format!("{}{version} has the order ({}{pid})", backend.id, hello.contract_version.as_str())
}

/// An event as the child wrote it.
pub(super) fn own_text(event: &AgentEvent<'_>) -> String {
    match &event.raw {
        Some(text) => text.clone().into_owned(),
        None => {
            let mut text = Vec::new();
            event.write(&mut text);
            String::from_utf8(text).unwrap_or_default()
        }
    }
}

fn used_again(what: &str, recalled: &Recalled) -> String {
    let Recalled { id, answer, by } = recalled;
    format!("{what}: {} by {} to an earlier attempt ({}) holds", answer.choice.word(), by.0, id.0)
}

/// A call that needs a person.
pub(super) fn approval(request: &ApprovalRequest, deadline: Option<Moment>, window: Window) -> NewApproval {
    NewApproval {
        key: request.id.as_str().to_owned(),
        tool: request.tool_name.clone(),
        input: request.input.clone(),
        input_sha256: request.input_sha256,
        reason: request.reason.clone(),
        choices: vec![Choice::Approve, Choice::ApproveAlways, Choice::Deny],
        deadline,
        default: window.default,
    }
}

/// A question of the agent; its form is the input. Nobody can answer in a person's place, so the default is a no.
pub(super) fn question(ask: &Ask<'_>, deadline: Option<Moment>) -> NewApproval {
    let input = ask.input.as_ref().map_or("null", Raw::as_str).to_owned();
    let form: Value = serde_json::from_str(&input).unwrap_or_default();
    let sentence = form["message"].as_str().filter(|text| !text.is_empty());
    let reason = sentence.unwrap_or("the agent asks something that only a person can say");
    NewApproval {
        key: format!("{ASKED}{}", ask.id),
        tool: QUESTION.to_owned(),
        input_sha256: input_hash(&input),
        input,
        reason: reason[..reason.floor_char_boundary(MAX_REASON)].to_owned(),
        choices: vec![Choice::Answer, Choice::Deny],
        deadline,
        default: crate::runs::DefaultAnswer::Deny,
    }
}

/// What somebody said to a call, as the ledger has it.
pub(super) fn answered(id: &govern::ApprovalId, answer: &Answer, by: &str) -> Answered {
    let choice = match answer.choice {
        Choice::Approve => govern::Choice::Allow,
        Choice::ApproveAlways => govern::Choice::AllowAlways,
        // The other two are not offered for a call that the child itself makes.
        Choice::Deny | Choice::Edit | Choice::Answer => govern::Choice::Deny,
    };
    Answered {
        id: id.clone(),
        choice,
        by: by.to_owned(),
        at: Timestamp::now(),
        reason: answer.reason.clone(),
    }
}

/// What somebody said to a question, as the child gets it.
pub(super) fn reply(run: &str, id: &str, answer: &Answer, by: &str) -> protocol::Answer {
    let content = match answer.choice {
        Choice::Answer => answer.value.as_ref().and_then(|value| Raw::of(value).ok()),
        Choice::Approve | Choice::ApproveAlways | Choice::Edit | Choice::Deny => None,
    };
    let (decision, said) = match content {
        Some(_) => (AskDecision::Allow, format!("answered by {by}")),
        None => (AskDecision::Deny, format!("not answered, says {by}")),
    };
    let reason = answer.reason.clone().unwrap_or(said);
    protocol::Answer { ref_id: run.to_owned(), id: id.to_owned(), decision, reason, content }
}

/// Writes an answer where the control plane finds it.
pub(super) fn write(ledger: &std::path::Path, answered: &Answered) -> Result<(), String> {
    let mut ledger = Ledger::open_existing(ledger).map_err(|error| error.to_string())?;
    ledger.answer(answered).map_err(|error| error.to_string())
}
