//! What a driver can tell and ask during a turn. The sidecar implements it for a stream; a test can too.

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::BoxFuture;
use crate::protocol::Steer;

/// The desk of one stream. After the stream's terminal event everything told is dropped, and every question has been
/// withdrawn. Telling never waits; [`room`](Self::room) does.
pub trait Desk: Send + Sync {
    /// Passes on an object of the provider as it is: its text, one JSON object. The id of the request is appended to it.
    fn pass(&self, object: &str);

    /// An event of ours: `type` and the members in this order; the id goes in front.
    fn tell(&self, kind: &str, members: &[(&str, Value)]);

    /// Waits until the host has read enough. To be awaited after each batch of lines from the program, so that a slow host
    /// slows the program down and nothing grows.
    fn room(&self) -> BoxFuture<'_, ()>;

    /// Asks the host whether a tool may be used: `permissionRequest`. Dropping the [`Asked`] withdraws the question:
    /// `permissionCancelled`.
    fn ask_permission(&self, ask: PermissionAsk) -> Asked<Verdict>;

    /// Asks the user: `userInputRequest`. Dropping the [`Asked`] withdraws the question: `userInputCancelled`.
    fn ask_input(&self, ask: InputAsk) -> Asked<Answer>;

    /// A steer is taken: `user_prompt`, on the stream.
    fn steered(&self, steer: &Steer);

    /// The context that the host wanted to go on with is lost: `contextReset`.
    fn context_lost(&self, resume: &str, reason: &str);

    /// Asks the host something of its own: `hostRequest`, at most 60 s.
    fn host_call<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, String>>;

    /// For the log.
    fn log(&self, message: &str);
}

/// A question whether a tool may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionAsk {
    /// Its name, unlike that of every other open question.
    pub id: String,
    /// What the agent itself calls this use of the tool, as it does elsewhere.
    pub call_id: Option<String>,
    /// The tool.
    pub tool_name: String,
    /// What it is given.
    pub tool_input: Map<String, Value>,
    /// For people.
    pub title: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// What the host can pass back to allow more than this once.
    pub suggestions: Vec<Value>,
    /// Whether the agent itself wants to be allowed. Otherwise only the host wanted to be asked.
    pub required: bool,
}

/// What the host says to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may.
    Allow {
        /// What is allowed beyond this once, from the suggestions or the host's own. Empty: nothing.
        updated: Vec<Value>,
    },
    /// It may not.
    Deny {
        /// Why, if the host says.
        message: Option<String>,
    },
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct InputAsk {
    /// Its name, unlike that of every other open question.
    pub id: String,
    /// Who asks.
    pub source: String,
    /// What for.
    pub message: String,
    /// `{kind: "ask-user-question" | "form" | "url", …}`.
    pub payload: Value,
}

/// What the user says to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Whether there is an answer.
    pub action: InputAction,
    /// The answer.
    pub content: Option<Map<String, Value>>,
    /// What belongs to it.
    pub meta: Option<Map<String, Value>>,
}

/// Whether there is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputAction {
    /// Yes.
    Submit,
    /// The user does not want to.
    Decline,
    /// The user wants all of this to end.
    Cancel,
}

/// A question that waits for its answer. Dropping it withdraws it.
pub struct Asked<T> {
    answer: oneshot::Receiver<T>,
    withdraw: Option<Box<dyn FnOnce() + Send>>,
}

impl<T> Asked<T> {
    /// A question whose answer comes from `answer`, and which is withdrawn by `withdraw`.
    pub fn new(answer: oneshot::Receiver<T>, withdraw: impl FnOnce() + Send + 'static) -> Self {
        Self { answer, withdraw: Some(Box::new(withdraw)) }
    }

    /// The answer; `None` when the stream is over and nobody will answer any more. May be awaited again after being
    /// interrupted.
    pub async fn answer(&mut self) -> Option<T> {
        let answer = (&mut self.answer).await.ok();
        self.withdraw = None;
        answer
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        if let Some(withdraw) = self.withdraw.take() {
            withdraw();
        }
    }
}
