//! What a sidecar asks of its host: to run a tool, to approve a call, to ask the person. The host's side is a trait.

use outrigger_wire::rpc::ErrorObject;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::chat::{BoxFuture, ToolResult};
use crate::protocol::{self, Kind};

/// Answers a sidecar. Everything is asked side by side; a future is dropped when the sidecar is gone.
///
/// The sidecar waits for the answer, not the host: an answer may take as long as a person takes.
pub trait Reverse: Send + Sync + 'static {
    /// A tool of the host is called.
    fn invoke(&self, call: ToolInvocation) -> BoxFuture<'_, ToolAnswer>;

    /// May this call be made?
    fn approve(&self, ask: ApprovalRequest) -> BoxFuture<'_, Decision>;

    /// Questions for the person. `Err` is a sentence that the model is told instead.
    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, String>>;

    /// A notification that belongs to no stream: `lifecycle.ready`, `lifecycle.shutdown`, and whatever a newer sidecar says.
    /// Called in the task that reads; it must not block.
    fn notified(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }
}

/// A host without tools and without a person: calls are unknown, approvals denied, questions not answered.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Reverse for Nobody {
    fn invoke(&self, call: ToolInvocation) -> BoxFuture<'_, ToolAnswer> {
        Box::pin(async move { ToolAnswer::Result(ToolResult::unknown(&call.name)) })
    }

    fn approve(&self, _: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async { Decision::new(Verdict::DenyOnce).because("nobody is here to approve it") })
    }

    fn ask(&self, _: Questions) -> BoxFuture<'_, Result<Answers, String>> {
        Box::pin(async { Err("nobody is here to answer".to_owned()) })
    }
}

/// A call of a host's tool.
#[derive(Clone, Debug, Deserialize)]
pub struct ToolInvocation {
    /// The call's id.
    #[serde(default, deserialize_with = "or_default")]
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "or_default")]
    pub arguments: Map<String, Value>,
    /// What the host gave along with the turn.
    #[serde(default, deserialize_with = "or_default")]
    pub context: Map<String, Value>,
}

/// What came of a call of a host's tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolAnswer {
    /// A result, with everything that belongs to it.
    Result(ToolResult),
    /// Any value, which is a success.
    Value(Value),
}

/// May this call be made?
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// Which tool.
    pub tool_name: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "or_default")]
    pub arguments: Map<String, Value>,
    /// `read`, `safe_write`, `destructive` or `other`.
    #[serde(default, deserialize_with = "or_default")]
    pub mode: String,
    /// What sort of thing it touches.
    #[serde(default)]
    pub category: Option<String>,
    /// In which round of the turn.
    #[serde(default)]
    pub round: Option<u64>,
    /// In which chat.
    #[serde(default)]
    pub chat_id: Option<String>,
    /// Why it is asked.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The answer to an [`ApprovalRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Yes or no, and for how long.
    pub verdict: Verdict,
    /// Why, for the model.
    pub reason: Option<String>,
    /// What is to be done instead of what was asked for.
    pub amended_arguments: Option<Map<String, Value>>,
}

/// Yes or no, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, this one.
    AllowOnce,
    /// Yes, and the like of it in this session.
    AllowForSession,
    /// Yes, and the like of it from now on.
    AllowAlways,
    /// No.
    DenyOnce,
    /// No, nor the like of it in this session.
    DenyForSession,
    /// No, nor the like of it from now on.
    DenyAlways,
    /// No, and the turn is over.
    Abort,
}

impl Verdict {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowForSession => "allow_for_session",
            Self::AllowAlways => "allow_always",
            Self::DenyOnce => "deny_once",
            Self::DenyForSession => "deny_for_session",
            Self::DenyAlways => "deny_always",
            Self::Abort => "abort",
        }
    }
}

impl Decision {
    /// A verdict and nothing else.
    #[must_use]
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, reason: None, amended_arguments: None }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    fn to_json(&self) -> Value {
        let Self { verdict, reason, amended_arguments } = self;
        let mut json = json!({ "kind": verdict.word() });
        if let Some(reason) = reason {
            json["reason"] = reason.as_str().into();
        }
        if let Some(arguments) = amended_arguments {
            json["amendment"] = json!({ "arguments": arguments });
        }
        json
    }
}

/// Questions for the person.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Questions {
    /// What goes before them.
    #[serde(default)]
    pub intro: Option<String>,
    /// The questions.
    pub questions: Vec<Question>,
    /// In which chat.
    #[serde(default)]
    pub chat_id: Option<String>,
}

/// One question.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    /// What the answer is filed under.
    pub id: String,
    /// The question.
    pub question: String,
    /// What may be answered; anything, if there are none.
    #[serde(default, deserialize_with = "or_default")]
    pub options: Vec<Value>,
}

/// What the person answered, by the ids of the questions.
pub type Answers = Map<String, Value>;

/// Asks the host, and gives its answer as it goes over the wire.
pub(super) async fn answer(
    host: &dyn Reverse,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, ErrorObject> {
    let answer = match method {
        "tool.invoke" => match host.invoke(read(params)?).await {
            ToolAnswer::Result(result) => protocol::result_value(&result),
            ToolAnswer::Value(value) => value,
        },
        "approval.request" => host.approve(read(params)?).await.to_json(),
        "ask_user.request" => match host.ask(read(params)?).await {
            Ok(answers) => json!({ "answers": answers }),
            Err(why) => return Err(Kind::Cancelled.error(why)),
        },
        _ => {
            let error = Kind::MethodNotFound.error(format!("unknown method '{method}'"));
            return Err(protocol::with_data(error, &json!({ "method": method })));
        }
    };
    serde_json::value::to_raw_value(&answer).map_err(|error| Kind::Internal.error(error.to_string()))
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("null", RawValue::get);
    serde_json::from_str(text).map_err(|error| Kind::InvalidParams.error(error.to_string()))
}

/// What is `null` is as good as not there.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
