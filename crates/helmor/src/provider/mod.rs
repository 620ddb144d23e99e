//! The drivers of the real programs, behind one trait. A driver speaks a program's protocol; it never writes to the host
//! itself and never decides how a request ends: it tells its [`Desk`], and returns.

pub mod acp;
pub mod claude;
pub mod codex;
pub mod locate;
pub mod process;
pub mod prompt;
pub mod scripted;

mod desk;
mod slot;

pub use desk::{Answer, Asked, Desk, InputAction, InputAsk, PermissionAsk, Verdict};

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::protocol::{ContextQuery, PermissionMode, SendMessage, SlashQuery, Steer, TitleRequest};

/// One kind of agent.
pub trait Provider: Send + Sync {
    /// A session of the host, which keeps what is warm between turns. Cheap: no program is started yet.
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession>;

    /// What can be chosen. `api_key` is for this question only.
    fn models<'a>(&'a self, api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>>;

    /// What a prompt may begin with.
    fn slash_commands<'a>(
        &'a self,
        query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>>;

    /// The answer of a model to a prompt, without tools and without a trace. For titles.
    fn one_shot<'a>(&'a self, request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>>;

    /// A changed setting of the whole sidecar. Not a wait: it counts from the next start of a program.
    fn configure(&self, change: &Change);
}

/// One session of the host with one provider. The sidecar calls [`turn`](Self::turn) for one turn at a time; everything else
/// may be called at any moment.
pub trait AgentSession: Send + Sync {
    /// Runs a turn until it is over, and leaves what is worth keeping warm. When [`Turn::stop`] is cancelled the host has been
    /// told already: the driver interrupts its program by protocol, then by signals, sees that nothing of the turn is left
    /// running, and returns [`Outcome::Aborted`], all within [`STOPS_WITHIN`].
    fn turn(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, Outcome>;

    /// How full the window is, by a program that runs already or by one that is started for it. The text is JSON.
    fn context_usage<'a>(&'a self, query: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>>;

    /// A changed setting of this session, also in the middle of a turn.
    fn reconfigure<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<(), Failure>>;

    /// `mutateCodexGoal`, for the one provider that has goals.
    fn mutate_goal<'a>(&'a self, change: GoalChange) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = change;
        Box::pin(async { Ok(()) })
    }

    /// When the session was last of use, if it keeps a program warm. The sidecar closes the idlest beyond its limit.
    fn warm_since(&self) -> Option<tokio::time::Instant>;

    /// Ends what is warm. The next turn starts anew, and goes on where this one was if the program can.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How long a driver has to interrupt and clean up after a stop.
pub const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// A turn, and everything a driver needs to run it.
pub struct Turn {
    /// What the host asked for. Defaults of the sidecar have been filled in.
    pub send: SendMessage,
    /// Where everything is told to.
    pub desk: Arc<dyn Desk>,
    /// The host wants it to stop, or is gone.
    pub stop: CancellationToken,
    /// What the host says while it runs. Closed when the sidecar wants no more.
    pub steering: mpsc::Receiver<Steering>,
}

/// Something that the host says during a turn.
pub struct Steering {
    /// What.
    pub steer: Steer,
    /// Whether it was taken. A driver that takes it calls [`Desk::steered`] before whatever its program says in reaction, then
    /// answers `Ok`. Dropped without an answer means that the turn was over.
    pub taken: oneshot::Sender<Result<(), String>>,
}

/// How a turn ended. The sidecar makes the terminal event of it.
#[derive(Debug)]
pub enum Outcome {
    /// As it should.
    Ended,
    /// The provider says that it went wrong, after it had said something of its own: `end` with `isError`.
    EndedBadly {
        /// What it says.
        message: String,
    },
    /// It did not work.
    Failed(Failure),
    /// It was stopped.
    Aborted,
}

/// Why something did not work, for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// A stable word for programs.
    pub code: FailureCode,
    /// A sentence, with what the program said last and what can be done.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// What sort of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The program is not installed.
    NotInstalled,
    /// It could not be started, or ended when it should not have.
    AgentExited,
    /// It does not speak as it should.
    AgentProtocol,
    /// It was silent for too long.
    Timeout,
    /// Nobody is logged in, or the key is wrong (HTTP 401, 403).
    Auth,
    /// Too many requests (HTTP 429).
    RateLimit,
    /// The model's server is overloaded (HTTP 529) or failed (5xx).
    Server,
    /// The request was wrong.
    InvalidRequest,
    /// This provider cannot do it.
    Unsupported,
    /// The provider says so, and no other word fits.
    Provider,
}

impl FailureCode {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotInstalled => "not_installed",
            Self::AgentExited => "agent_exited",
            Self::AgentProtocol => "agent_protocol",
            Self::Timeout => "timeout",
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Server => "server",
            Self::InvalidRequest => "invalid_request",
            Self::Unsupported => "unsupported",
            Self::Provider => "provider",
        }
    }
}

/// `updateConfig`: a member that is `None` stays as it is; `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The model of turns that do not name one; in a session also that of the running turn, where the program can.
    pub model: Option<Option<String>>,
    /// Likewise for what the agent may do unasked.
    pub permission_mode: Option<Option<PermissionMode>>,
    /// The key for Cursor.
    pub cursor_api_key: Option<Option<String>>,
}

/// What to do with the goal of a Codex session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalChange {
    /// It rests.
    Pause,
    /// It is gone.
    Clear,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its name.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// What goes into `sendMessage.model`.
    pub cli_model: String,
    /// How hard it can think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort_levels: Option<Vec<String>>,
    /// Whether it can be fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_fast_mode: Option<bool>,
    /// What else Cursor lets one choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor_parameters: Option<Value>,
}

/// Something that a prompt may begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    /// For people.
    pub description: String,
    /// What comes after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// `builtin` or `skill`.
    pub source: &'static str,
}
