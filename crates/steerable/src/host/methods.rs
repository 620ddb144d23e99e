//! The methods of the dialect, each with its params and its answer as types.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::raw;
use super::error::CallError;
use super::sidecar::{Sidecar, read};
use super::stream::StreamId;
use crate::chat::ToolResult;
use crate::protocol::{self, Health, Session, Span, Trace, TraceEvent};

impl Sidecar {
    /// `system.ping`: how it is.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer; so for all methods here.
    pub async fn ping(&self) -> Result<Health, CallError> {
        let answer = self.call("system.ping", None, self.terms().call_within).await?;
        read("system.ping", &answer)
    }

    /// `agent.session.create`.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn create_session(&self, session: &NewSession) -> Result<Session, CallError> {
        self.ask("agent.session.create", session).await
    }

    /// `agent.session.resume`: a pure read.
    ///
    /// # Errors
    /// See [`Sidecar::ping`]; a session that is not there has the code -32004.
    pub async fn resume_session(&self, session_id: &str) -> Result<Session, CallError> {
        self.ask("agent.session.resume", &json!({ "sessionId": session_id })).await
    }

    /// `agent.session.list`: the last updated first.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn sessions(&self, which: &SessionFilter) -> Result<Vec<Session>, CallError> {
        self.ask("agent.session.list", which).await
    }

    /// `agent.session.messages`: a transcript.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn messages(&self, record_id: &str) -> Result<Transcript, CallError> {
        self.ask("agent.session.messages", &json!({ "recordId": record_id })).await
    }

    /// `agent.session.fork`: a copy of a transcript, or of the beginning of one.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn fork(&self, fork: &Fork) -> Result<Forked, CallError> {
        let mut params = json!({ "recordId": fork.record_id });
        match fork.until {
            Until::End => {}
            Until::Seq(seq) => params["untilSeq"] = seq.into(),
            Until::BeforeLastUser => params["beforeLastUser"] = true.into(),
            Until::BeforeUser(index) => params["beforeUserIndex"] = index.into(),
        }
        if let Some(id) = &fork.new_record_id {
            params["newRecordId"] = id.as_str().into();
        }
        if let Some(label) = &fork.label {
            params["label"] = label.as_str().into();
        }
        self.ask("agent.session.fork", &params).await
    }

    /// `tool.list`: the sidecar's own tools.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn tools(&self) -> Result<Vec<Tool>, CallError> {
        let described: Vec<Descriptor> = self.ask("tool.list", &json!({})).await?;
        Ok(described.into_iter().map(|Descriptor { function }| function).collect())
    }

    /// `tool.invoke`: calls one of the sidecar's own tools. Its failures are results, not errors.
    ///
    /// # Errors
    /// See [`Sidecar::ping`]; a call that is not allowed has the kind `policy_denied`.
    pub async fn invoke_tool(&self, call: &Invocation) -> Result<ToolResult, CallError> {
        let params = raw(call);
        let answer = self.call("tool.invoke", Some(&params), self.terms().call_within).await?;
        Ok(protocol::read_result(&answer))
    }

    /// `trace.fetch`: what was written down of a run.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn trace(&self, of: &TraceOf) -> Result<TraceRecord, CallError> {
        let params = match of {
            TraceOf::Trace(id) => json!({ "traceId": id }),
            TraceOf::Stream(id) => json!({ "streamId": id.as_str() }),
        };
        self.ask("trace.fetch", &params).await
    }

    /// `trace.export`: sends a trace to an OpenTelemetry collector.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn export_trace(&self, export: &Export) -> Result<Exported, CallError> {
        self.ask("trace.export", export).await
    }

    /// `config.get`.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn config(&self) -> Result<Map<String, Value>, CallError> {
        self.ask("config.get", &json!({})).await
    }

    /// `config.set`: all of these, or none.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn set_config(&self, settings: &Map<String, Value>) -> Result<(), CallError> {
        self.ask::<Option<Value>>("config.set", settings).await.map(drop)
    }

    /// `agent.chat.steer`: tells a running turn something.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn steer(&self, stream: &StreamId, content: &str, mode: SteerBy) -> Result<Steered, CallError> {
        const METHOD: &str = "agent.chat.steer";
        let mut params = json!({ "streamId": stream.as_str(), "content": content });
        match mode {
            SteerBy::AsTheTurnSays => {}
            SteerBy::Boundary => params["mode"] = "boundary".into(),
            SteerBy::Interrupt => params["mode"] = "interrupt".into(),
        }
        let answer = self.call(METHOD, Some(&raw(&params)), self.terms().control_within).await?;
        let accepted: Accepted = read(METHOD, &answer)?;
        Ok(accepted.into())
    }

    /// `agent.chat.compact`: has the transcript of a running turn compacted at the next boundary.
    ///
    /// # Errors
    /// See [`Sidecar::ping`].
    pub async fn compact(&self, stream: &StreamId) -> Result<Steered, CallError> {
        const METHOD: &str = "agent.chat.compact";
        let params = raw(&json!({ "streamId": stream.as_str() }));
        let answer = self.call(METHOD, Some(&params), self.terms().control_within).await?;
        let accepted: Accepted = read(METHOD, &answer)?;
        Ok(accepted.into())
    }
}

/// A session to be made. What is `None` is the sidecar's choice.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The chat it belongs to.
    pub chat_id: String,
    /// What it is resumed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Where its state machine is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<String>,
    /// Which state machine it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// What is kept with the stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_data: Option<Box<RawValue>>,
    /// The project it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}

impl NewSession {
    /// A session of a chat; everything else is the sidecar's choice.
    pub fn of_chat(chat_id: impl Into<String>) -> Self {
        Self {
            chat_id: chat_id.into(),
            session_id: None,
            user_id: None,
            current_stage: None,
            scenario: None,
            stage_data: None,
            project_id: None,
        }
    }
}

/// Which sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFilter {
    /// Only this user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Only those of this chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Only active ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_only: Option<bool>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A transcript.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    /// Whose.
    pub record_id: String,
    /// Its messages, each with a `seq`, as they came.
    pub messages: Vec<Map<String, Value>>,
}

/// A copy to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Of this transcript.
    pub record_id: String,
    /// Up to here.
    pub until: Until,
    /// What the copy's id is to be.
    pub new_record_id: Option<String>,
    /// What the copy is called.
    pub label: Option<String>,
}

/// How much of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All of it.
    End,
    /// Up to this message, which is included.
    Seq(u64),
    /// What was before the last thing that the user said.
    BeforeLastUser,
    /// What was before the thing of this number that the user said.
    BeforeUser(u64),
}

/// A copy of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// Its id.
    pub record_id: String,
    /// What it is a copy of.
    #[serde(default)]
    pub source_record_id: Option<String>,
    /// Up to where.
    #[serde(default)]
    pub source_until_seq: Option<u64>,
    /// What it is called.
    #[serde(default)]
    pub label: Option<String>,
    /// How many messages were copied.
    #[serde(default)]
    pub seed_messages: Option<u64>,
}

#[derive(Deserialize)]
struct Descriptor {
    function: Tool,
}

/// A tool of the sidecar.
#[derive(Clone, Debug, Deserialize)]
pub struct Tool {
    /// What it is called by.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub parameters: Option<Box<RawValue>>,
}

/// A call of one of the sidecar's tools.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// Which tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The call's id, if the host chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether somebody consented to it.
    #[serde(rename = "consentGranted")]
    pub consent: Consent,
    /// What the tool is to know besides.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
}

/// Whether somebody consented to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes.
    Granted,
    /// Nobody was asked.
    None,
}

impl Serialize for Consent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Self::Granted)
    }
}

/// What a trace is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceOf {
    /// Its own id.
    Trace(String),
    /// The stream it is of.
    Stream(StreamId),
}

/// What was written down of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TraceRecord {
    /// The run in summary.
    pub trace: Trace,
    /// What took time, in the order in which it began.
    #[serde(default)]
    pub spans: Vec<Span>,
    /// What happened, in order.
    #[serde(default)]
    pub events: Vec<TraceEvent>,
}

/// Where a trace is sent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// Which trace.
    pub trace_id: String,
    /// The address of the collector.
    pub endpoint: String,
    /// `full`, or `metadata` without what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy_mode: Option<String>,
    /// What the service calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Headers of the request.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
}

/// What came of an export.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The HTTP status of the collector.
    pub status: u16,
    /// Which trace.
    pub trace_id: String,
    /// How much of it was sent.
    pub privacy_mode: String,
}

/// When a turn hears what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerBy {
    /// As its `steerMode` says.
    AsTheTurnSays,
    /// When the round is over.
    Boundary,
    /// Now; running tools are cancelled.
    Interrupt,
}

/// Whether a turn hears what it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It will.
    Accepted,
    /// It will not, and why: `stream_not_active`.
    Refused(String),
}

#[derive(Deserialize)]
struct Accepted {
    ok: bool,
    #[serde(default)]
    reason: Option<String>,
}

impl From<Accepted> for Steered {
    fn from(Accepted { ok, reason }: Accepted) -> Self {
        match ok {
            true => Self::Accepted,
            false => Self::Refused(reason.unwrap_or_default()),
        }
    }
}
