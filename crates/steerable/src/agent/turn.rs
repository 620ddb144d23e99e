//! What a turn is given, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::consent::Consents;
use super::port::HostPort;
use crate::chat::{BoxFuture, Message, ToolSpec, Usage};
use crate::model::{Client, Failure, Request, Sink, Summary};
use crate::store::{RecordId, Store, Tracer};
use crate::tools::{Grants, Toolbox};

/// One turn of an agent: from what the person says to the model's last word.
#[derive(Debug)]
pub struct Turn {
    /// How the model is called in every round. Its `messages` and `tools` are not looked at: they come from here.
    pub request: Request,
    /// The transcript that the turn is written to.
    pub record: RecordId,
    /// Whether the model sees what the transcript has already.
    pub history: History,
    /// What is new; may be empty if the history can go on by itself.
    pub messages: Vec<Message>,
    /// Goes first in every call, and is not written to the transcript.
    pub system_prompt: Option<String>,
    /// The tools that the host brought; one that has the name of an own tool is that own tool, unless
    /// [`Routing::HostOnly`].
    pub host_tools: Vec<ToolSpec>,
    /// Who makes the calls.
    pub routing: Routing,
    /// What a call that needs consent meets.
    pub approval: Approval,
    /// Whether the model has the tool `ask_user`.
    pub questions: Questions,
    /// The host's chat, for what is asked of it.
    pub chat_id: Option<String>,
    /// What the host gets back with every call that it makes.
    pub tool_context: Map<String, Value>,
    /// What the turn has only so much of.
    pub budgets: Budgets,
    /// How long a tool may take.
    pub tool_timeout: Duration,
    /// After how long the host is told that it takes long.
    pub soft_timeout: Option<Duration>,
    /// Beyond how many tokens, by estimate, the transcript is compacted.
    pub max_context_tokens: Option<u64>,
    /// What steering does that does not say it.
    pub steer_mode: SteerMode,
    /// Which texts the host hears.
    pub content: ContentMode,
}

/// Whether the model sees what the transcript has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The model sees only what is new.
    Ignore,
    /// The model sees what is there, then what is new.
    Resume,
}

/// Who makes the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Own tools here, those that only the host has there.
    OwnFirst,
    /// Every call goes to the host, and the model sees only the host's tools.
    HostOnly,
}

/// What a call that needs consent meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A refusal.
    Nobody,
    /// Consent, as far as the grants go.
    Auto,
    /// A question to the host.
    Host {
        /// How long an answer is waited for.
        patience: Duration,
    },
}

/// Whether the model has the tool `ask_user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    /// It has.
    Allowed,
    /// It has not.
    Refused,
}

/// What a turn has only so much of. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Calls of the model.
    pub rounds: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Calls of tools, those that scripts make included.
    pub tool_calls: u64,
    /// Failed calls that are put up with; one more ends the turn.
    pub tool_errors: Option<u64>,
}

impl Budgets {
    /// What the contract says when the host says nothing.
    pub const STANDARD: Self = Self { rounds: None, tokens: None, tool_calls: 10_000, tool_errors: None };
}

/// When what a person says meanwhile takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerMode {
    /// When the model has spoken and its calls are answered.
    Boundary,
    /// At once: what runs is stopped.
    Interrupt,
}

/// Which texts the host hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentMode {
    /// All.
    All,
    /// Only the last round's.
    Final,
}

/// What reaches a turn from outside while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steer {
    /// The person says something.
    Say {
        /// What.
        content: String,
        /// When it takes effect; `None` is the turn's own mode.
        mode: Option<SteerMode>,
    },
    /// The transcript is to be compacted at the next boundary.
    Compact,
}

/// What a turn works with. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Where transcripts are.
    pub store: Store,
    /// The trace of this turn; the turn finishes it.
    pub tracer: Tracer,
    /// The tools that the model may see, those of MCP servers included.
    pub toolbox: Arc<Toolbox>,
    /// The host.
    pub host: Arc<dyn HostPort>,
    /// What the tools may reach in this turn.
    pub grants: Arc<Grants>,
    /// What was decided before; lives as long as the sidecar.
    pub consents: Consents,
}

/// A model that can be called. There is one real one; tests have others.
pub trait Model: Send + Sync {
    /// Calls it; see [`Client::stream`].
    fn stream<'a>(
        &'a self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Summary, Failure>>;
}

impl Model for Client {
    fn stream<'a>(
        &'a self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Summary, Failure>> {
        Box::pin(Client::stream(self, request, sink))
    }
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How.
    pub status: Status,
    /// A stable word for why, where the status does not say it all.
    pub reason: Option<String>,
    /// All tokens of the turn that providers have counted, those of compaction included.
    pub usage: Usage,
    /// The structured answer.
    pub output: Option<Value>,
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub enum Status {
    /// The model had its last word.
    Completed,
    /// A budget did not cover the next step.
    BudgetExhausted,
    /// Somebody stopped it.
    Cancelled,
    /// Something went wrong.
    Failed(Failure),
}
