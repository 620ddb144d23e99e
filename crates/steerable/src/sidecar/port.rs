//! What a turn asks its host, as requests of ours: `tool.invoke`, `approval.request`, `ask_user.request`.

use outrigger_wire::peer::{CallError, Deadline, Peer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::agent::{ApprovalAsk, Decision, HostGone, HostPort, Verdict};
use crate::chat::{BoxFuture, ToolCall, ToolResult};
use crate::protocol::read_result;

/// The host of a stream. Dropping a question's future gives it up.
pub(super) struct Port {
    peer: Peer,
    chat_id: Option<String>,
}

impl Port {
    pub(super) fn new(peer: Peer, chat_id: Option<String>) -> Self {
        Self { peer, chat_id }
    }

    async fn call(
        &self,
        method: &str,
        params: &Value,
        deadline: Deadline,
    ) -> Result<Box<RawValue>, CallError> {
        // A value of ours has only text keys, so that it can always be written.
        let params = to_raw_value(params).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.peer.call(method, Some(&params), deadline).await
    }
}

impl HostPort for Port {
    fn invoke<'a>(
        &'a self,
        call: &'a ToolCall,
        context: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, HostGone>> {
        Box::pin(async move {
            let mut told = context.clone();
            if let Some(chat_id) = &self.chat_id {
                told.entry("chatId").or_insert_with(|| chat_id.as_str().into());
            }
            let arguments: Value = serde_json::from_str(call.arguments.get()).unwrap_or_else(|_| json!({}));
            let params = json!({"id": call.id, "name": call.name, "arguments": arguments, "context": told});
            // How long a tool may take is for the turn to say.
            match self.call("tool.invoke", &params, Deadline::Never).await {
                Ok(answer) => Ok(read_result(&answer)),
                Err(CallError::Remote { error, .. }) => Ok(ToolResult::failure(error.message)),
                Err(other) => Err(HostGone { reason: other.to_string() }),
            }
        })
    }

    fn approve<'a>(&'a self, ask: &'a ApprovalAsk<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let arguments: Value = serde_json::from_str(ask.call.arguments.get()).unwrap_or(Value::Null);
            let mut params = json!({
                "toolName": ask.call.name,
                "arguments": arguments,
                "mode": ask.mode.word(),
                "category": ask.category,
                "round": ask.round,
                "reason": ask.reason,
            });
            if let Some(chat_id) = ask.chat_id {
                params["chatId"] = chat_id.into();
            }
            match self.call("approval.request", &params, Deadline::After(ask.patience)).await {
                Ok(answer) => decision(&answer),
                Err(CallError::Deadline { .. }) => Decision::plain(Verdict::TimedOut),
                Err(other) => {
                    let reason = Some(other.to_string());
                    Decision { reason, ..Decision::plain(Verdict::DenyOnce) }
                }
            }
        })
    }

    fn ask<'a>(&'a self, questions: &'a Value) -> BoxFuture<'a, Result<Value, HostGone>> {
        Box::pin(async move {
            let mut params = questions.clone();
            if let (Value::Object(members), Some(chat_id)) = (&mut params, &self.chat_id) {
                members.entry("chatId").or_insert_with(|| chat_id.as_str().into());
            }
            let gone = |error: CallError| HostGone { reason: error.to_string() };
            let answer = self.call("ask_user.request", &params, Deadline::Never).await.map_err(gone)?;
            Ok(serde_json::from_str(answer.get()).unwrap_or(Value::Null))
        })
    }
}

/// What a host decided. Anything that is no decision is a refusal.
fn decision(answer: &RawValue) -> Decision {
    let answer: Value = serde_json::from_str(answer.get()).unwrap_or(Value::Null);
    let word = answer.get("kind").and_then(Value::as_str).unwrap_or_default();
    let verdict = match Verdict::from_word(word) {
        // That nobody answered is not for the host to say.
        Some(Verdict::TimedOut) | None => Verdict::DenyOnce,
        Some(verdict) => verdict,
    };
    let amended = answer.get("amendment").and_then(|amendment| amendment.get("arguments"));
    Decision {
        verdict,
        reason: answer.get("reason").and_then(Value::as_str).map(str::to_owned),
        amended: amended.filter(|arguments| arguments.is_object()).and_then(|value| to_raw_value(value).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(json: &str) -> (Verdict, Option<String>, Option<String>) {
        let decision = decision(&RawValue::from_string(json.to_owned()).unwrap());
        (decision.verdict, decision.reason, decision.amended.map(|raw| raw.get().to_owned()))
    }

    #[test]
    fn anything_that_is_no_decision_is_a_refusal() {
        for answer in ["null", "true", "{}", r#"{"kind":"sure"}"#, r#"{"kind":"timed_out"}"#] {
            assert_eq!(decided(answer), (Verdict::DenyOnce, None, None), "{answer}");
        }
        assert_eq!(
            decided(r#"{"kind":"allow_once","reason":"ok","amendment":{"arguments":{"a":1}}}"#),
            (Verdict::AllowOnce, Some("ok".into()), Some(r#"{"a":1}"#.into()))
        );
        assert_eq!(decided(r#"{"kind":"abort","amendment":{"arguments":1}}"#), (Verdict::Abort, None, None));
    }
}
