//! Events as a host reads them: cheaply, to know whose they are, and as types where they are ours.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::incoming::{Name, text};
use super::send::Steer;
use super::words::ProviderName;
use crate::provider::{InputAsk, PermissionAsk};

/// A line of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The request that it belongs to.
    pub id: Option<Cow<'a, str>>,
    /// What it is: a word of the contract, or of an agent.
    pub kind: Cow<'a, str>,
    /// The whole line.
    pub raw: &'a str,
}

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is no JSON object.
    #[error("not a JSON object: {0}")]
    NotAnObject(String),
    /// Nobody says what it is.
    #[error("an event without a `type`")]
    NoType,
    /// It is one of ours, but not as it should be.
    #[error("a malformed `{kind}` event: {why}")]
    Malformed {
        /// What it says it is.
        kind: String,
        /// What is wrong.
        why: String,
    },
}

/// An event of the contract. What an agent says is [`Said::Passed`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the contract says what the members of each event are")]
pub enum Said {
    Ready { version: u64 },
    End { is_error: bool, message: Option<String> },
    Aborted { reason: String },
    Error { message: String, code: Option<String>, internal: bool, will_retry: bool },
    Heartbeat,
    PermissionRequest(PermissionAsk),
    PermissionCancelled { permission_id: String },
    PermissionModeChanged { permission_mode: String },
    UserInputRequest(InputAsk),
    UserInputCancelled { user_input_id: String },
    UserPrompt(Steer),
    PlanCaptured { tool_use_id: String, plan: Option<String> },
    ContextUsageUpdated { session_id: String, meta: Option<String> },
    CodexGoalUpdated { session_id: String, goal: Option<String> },
    ContextReset { session_id: String, resume: String, reason: String },
    Steered { session_id: String, accepted: bool, reason: Option<String> },
    Stopped { session_id: String },
    Pong,
    TitleGenerated { title: String, branch_name: Option<String> },
    ModelsListed { provider: String, models: Vec<Value> },
    SlashCommandsListed { commands: Vec<Value> },
    ContextUsageResult { meta: String },
    HostRequest { callback_id: String, method: String, params: Value },
    Passed,
}

impl<'a> Event<'a> {
    /// Reads a line as far as it must be to know whose it is.
    pub fn read(line: &'a str) -> Result<Self, EventError> {
        let mut json = serde_json::Deserializer::from_str(line);
        let read = json.deserialize_map(Head).and_then(|head| json.end().map(|()| head));
        let (id, kind) = read.map_err(|error| EventError::NotAnObject(error.to_string()))?;
        let kind = kind.and_then(text).ok_or(EventError::NoType)?;
        Ok(Self { id: id.and_then(text), kind, raw: line })
    }

    /// Whether it is the last one of a `sendMessage`.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(&*self.kind, "end" | "aborted" | "error")
    }

    /// The event as a type.
    pub fn said(&self) -> Result<Said, EventError> {
        Ok(match &*self.kind {
            "ready" => Said::Ready { version: self.member::<Ready>()?.version },
            "end" => self.member::<End>()?.into(),
            "aborted" => Said::Aborted { reason: self.member::<Aborted>()?.reason },
            "error" => self.member::<Failed>()?.into(),
            "heartbeat" => Said::Heartbeat,
            "permissionRequest" => self.member::<Permission>()?.into(),
            "permissionCancelled" => {
                Said::PermissionCancelled { permission_id: self.member::<PermissionId>()?.permission_id }
            }
            "permissionModeChanged" => {
                Said::PermissionModeChanged { permission_mode: self.member::<Mode>()?.permission_mode }
            }
            "userInputRequest" => self.member::<Input>()?.into(),
            "userInputCancelled" => {
                Said::UserInputCancelled { user_input_id: self.member::<InputId>()?.user_input_id }
            }
            "user_prompt" => self.member::<Prompt>()?.into(),
            "planCaptured" => self.member::<Plan>()?.into(),
            "contextUsageUpdated" => self.member::<Usage>()?.into(),
            "codexGoalUpdated" => self.member::<Goal>()?.into(),
            "contextReset" => self.member::<Reset>()?.into(),
            "steered" => self.member::<Steered>()?.into(),
            "stopped" => Said::Stopped { session_id: self.member::<Stopped>()?.session_id },
            "pong" => Said::Pong,
            "titleGenerated" => self.member::<Title>()?.into(),
            "modelsListed" => self.member::<Models>()?.into(),
            "slashCommandsListed" => {
                Said::SlashCommandsListed { commands: self.member::<Commands>()?.commands }
            }
            "contextUsageResult" => Said::ContextUsageResult { meta: self.member::<Meta>()?.meta },
            "hostRequest" => self.member::<HostRequest>()?.into(),
            _ => Said::Passed,
        })
    }

    /// The provider's name of the session, where an event says one that can be resumed: Claude's only from `system`/`init`,
    /// because what is said before it may name a session that nobody can go on with.
    #[must_use]
    pub fn resume_id(&self, provider: &ProviderName) -> Option<String> {
        #[derive(Deserialize)]
        struct Names {
            session_id: Option<String>,
            subtype: Option<String>,
        }
        let told = match provider {
            ProviderName::Claude | ProviderName::Scripted => self.kind == "system",
            ProviderName::Codex => true,
            ProviderName::Cursor | ProviderName::Acp(_) => self.kind.ends_with("/agent_init"),
        };
        if !told || memchr::memmem::find(self.raw.as_bytes(), b"session_id").is_none() {
            return None;
        }
        let names: Names = serde_json::from_str(self.raw).ok()?;
        let claude = matches!(provider, ProviderName::Claude | ProviderName::Scripted);
        if claude && names.subtype.as_deref() != Some("init") {
            return None;
        }
        names.session_id.filter(|id| !id.is_empty())
    }

    fn member<T: DeserializeOwned>(&self) -> Result<T, EventError> {
        let malformed = |error: serde_json::Error| EventError::Malformed {
            kind: self.kind.to_string(),
            why: error.to_string(),
        };
        serde_json::from_str(self.raw).map_err(malformed)
    }
}

struct Head;

impl<'de> Visitor<'de> for Head {
    type Value = (Option<&'de RawValue>, Option<&'de RawValue>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut id, mut kind) = (None, None);
        while let Some(name) = map.next_key::<Name<'de>>()? {
            match &*name.0 {
                "id" => id = Some(map.next_value()?),
                "type" => kind = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok((id, kind))
    }
}

/// Structs of the members of an event, and the event that they become.
macro_rules! members {
    ($($name:ident { $($member:ident: $kind:ty),* $(,)? } $(=> $self:ident $said:expr)?;)*) => {$(
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct $name {
            $(#[serde(default)] $member: $kind,)*
        }
        $(impl From<$name> for Said {
            fn from($self: $name) -> Self {
                $said
            }
        })?
    )*};
}

members! {
    Ready { version: u64 };
    Aborted { reason: String };
    PermissionId { permission_id: String };
    Mode { permission_mode: String };
    InputId { user_input_id: String };
    Stopped { session_id: String };
    Commands { commands: Vec<Value> };
    Meta { meta: String };
    End { is_error: bool, message: Option<String> } => it
        Said::End { is_error: it.is_error, message: it.message };
    Failed { message: String, code: Option<String>, internal: bool, will_retry: bool } => it
        Said::Error { message: it.message, code: it.code, internal: it.internal, will_retry: it.will_retry };
    Plan { tool_use_id: String, plan: Option<String> } => it
        Said::PlanCaptured { tool_use_id: it.tool_use_id, plan: it.plan };
    Usage { session_id: String, meta: Option<String> } => it
        Said::ContextUsageUpdated { session_id: it.session_id, meta: it.meta };
    Goal { session_id: String, goal: Option<String> } => it
        Said::CodexGoalUpdated { session_id: it.session_id, goal: it.goal };
    Reset { session_id: String, resume: String, reason: String } => it
        Said::ContextReset { session_id: it.session_id, resume: it.resume, reason: it.reason };
    Steered { session_id: String, accepted: bool, reason: Option<String> } => it
        Said::Steered { session_id: it.session_id, accepted: it.accepted, reason: it.reason };
    Title { title: String, branch_name: Option<String> } => it
        Said::TitleGenerated { title: it.title, branch_name: it.branch_name };
    Models { provider: String, models: Vec<Value> } => it
        Said::ModelsListed { provider: it.provider, models: it.models };
    HostRequest { callback_id: String, method: String, params: Value } => it
        Said::HostRequest { callback_id: it.callback_id, method: it.method, params: it.params };
    Prompt { text: String, files: Vec<String>, images: Vec<String> } => it
        Said::UserPrompt(Steer { prompt: it.text, files: it.files, images: it.images });
    Input { user_input_id: String, source: String, message: String, payload: Value } => it
        Said::UserInputRequest(InputAsk {
            id: it.user_input_id,
            source: it.source,
            message: it.message,
            payload: it.payload,
        });
    Permission {
        permission_id: String,
        call_id: Option<String>,
        tool_name: String,
        tool_input: Map<String, Value>,
        title: Option<String>,
        description: Option<String>,
        suggestions: Vec<Value>,
        required: Option<bool>,
    } => it
        Said::PermissionRequest(PermissionAsk {
            id: it.permission_id,
            call_id: it.call_id,
            tool_name: it.tool_name,
            tool_input: it.tool_input,
            title: it.title,
            description: it.description,
            suggestions: it.suggestions,
            required: it.required.unwrap_or(true),
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_belongs_to_the_last_id_that_it_has() {
        let event =
            Event::read(r#"{"id":"theirs","type":"assistant","message":{"id":"m"},"id":"r1"}"#).unwrap();
        assert_eq!((event.id.as_deref(), &*event.kind), (Some("r1"), "assistant"));
        assert_eq!(event.said(), Ok(Said::Passed));
        assert_eq!(Event::read(r#"{"id":"r1"}"#), Err(EventError::NoType));
        assert!(matches!(Event::read("[1]"), Err(EventError::NotAnObject(_))));
    }

    #[test]
    fn events_of_the_contract_are_types() {
        let said = |line: &str| Event::read(line).unwrap().said();
        assert_eq!(said(r#"{"type":"ready","version":1}"#), Ok(Said::Ready { version: 1 }));
        assert_eq!(said(r#"{"id":"a","type":"end"}"#), Ok(Said::End { is_error: false, message: None }));
        assert_eq!(
            said(r#"{"id":"a","type":"planCaptured","toolUseId":"t","plan":null}"#),
            Ok(Said::PlanCaptured { tool_use_id: "t".into(), plan: None })
        );
        assert!(matches!(
            said(r#"{"id":"a","type":"stopped","sessionId":7}"#),
            Err(EventError::Malformed { .. })
        ));
    }

    #[test]
    fn a_session_of_claude_can_be_resumed_from_its_init_on() {
        let id = |line: &str, provider| Event::read(line).unwrap().resume_id(&provider);
        let hook = r#"{"type":"system","subtype":"hook_started","session_id":"early","id":"a"}"#;
        let init = r#"{"type":"system","subtype":"init","session_id":"s","id":"a"}"#;
        assert_eq!(id(hook, ProviderName::Claude), None);
        assert_eq!(id(init, ProviderName::Claude).as_deref(), Some("s"));
        assert_eq!(id(hook, ProviderName::Codex).as_deref(), Some("early"));
        let cursor = r#"{"type":"cursor/agent_init","session_id":"c","id":"a"}"#;
        assert_eq!(id(cursor, ProviderName::Cursor).as_deref(), Some("c"));
    }
}
