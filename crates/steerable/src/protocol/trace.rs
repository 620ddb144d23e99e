//! The record of one run as hosts see it: a trace, the spans that took time in it, the events that did not.

use std::fmt;

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::session::Timestamp;

/// One run, in summary. Its schema is `HarnessTrace.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// `trace_` and 32 hex digits.
    pub trace_id: String,
    /// Whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The chat it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The message it was attached to. We never set it; others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_message_id: Option<String>,
    /// How it ended, or that it has not.
    pub status: TraceStatus,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Whether it failed, or anything in it did.
    pub had_error: bool,
    /// Why it failed; at most 2,048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// How many events it has.
    pub event_count: u64,
    /// How many spans it has.
    pub span_count: u64,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The model that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// When it began, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Something that takes time. Its schema is `TraceSpan.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// `span_` and a number, unique in its trace.
    pub span_id: String,
    /// Its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The span it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// `llm.request`, `tool.NAME` and the like.
    pub name: String,
    /// What sort of work it is.
    #[serde(default = "SpanKind::usual")]
    pub kind: SpanKind,
    /// When it began, in milliseconds since 1970.
    pub start_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<u64>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How it ended, or that it has not.
    pub status: SpanStatus,
    /// What there is to know about it, without secrets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attrs: Map<String, Value>,
}

/// Something that happened at a moment. Its schema is `TraceEvent.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEvent {
    /// A key of the storage. We never set it; others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its trace.
    pub trace_id: String,
    /// What sort of thing it is.
    pub kind: EventKind,
    /// What happened.
    pub name: String,
    /// Its place among the events of its trace.
    pub sequence: u64,
    /// When, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// How long it took, if it took time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Whether it is a good thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<EventStatus>,
    /// What there is to know about it, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
    /// When it was stored. We never set it; others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// A set of words, of which other programs may use more than we know.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$says:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$says])* $variant,)*
            /// A word that is not ours.
            Other(String),
        }

        impl $name {
            /// The word on the wire.
            #[must_use]
            pub fn word(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }

            /// What a word means.
            #[must_use]
            pub fn from_word(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|word| Self::from_word(&word))
            }
        }
    };
}

words! {
    /// How a run ended.
    TraceStatus {
        /// It has not.
        Running = "running",
        /// It did what it was asked for.
        Completed = "completed",
        /// It failed.
        Error = "error",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// A budget stopped it.
        BudgetExhausted = "budget_exhausted",
    }
}

words! {
    /// What sort of work a span is.
    SpanKind {
        /// A model's.
        Llm = "llm",
        /// A tool's.
        Tool = "tool",
        /// Waiting for a decision.
        Policy = "policy",
        /// Something about budgets.
        Budget = "budget",
        /// Waiting to try again.
        Retry = "retry",
        /// The end of a run.
        Completion = "completion",
        /// Reaching somebody.
        Transport = "transport",
        /// Keeping something.
        Storage = "storage",
        /// Anything else, the run as a whole included.
        Custom = "custom",
    }
}

impl SpanKind {
    fn usual() -> Self {
        Self::Custom
    }
}

words! {
    /// How a span ended.
    SpanStatus {
        /// Well.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It took too long.
        Timeout = "timeout",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// It has not.
        Running = "running",
    }
}

words! {
    /// What sort of thing happened.
    EventKind {
        /// Something began or ended.
        Lifecycle = "lifecycle",
        /// A decision.
        Policy = "policy",
        /// A budget was judged.
        Budget = "budget",
        /// Something is tried again.
        Retry = "retry",
        /// A tool is called.
        ToolCall = "tool_call",
        /// A tool answered.
        ToolResult = "tool_result",
        /// A model is called.
        LlmRequest = "llm_request",
        /// A model answered.
        LlmResponse = "llm_response",
        /// The run has its answer.
        Completion = "completion",
        /// A failure.
        Error = "error",
        /// A remark.
        Log = "log",
        /// Anything else.
        Custom = "custom",
    }
}

words! {
    /// Whether what happened is a good thing.
    EventStatus {
        /// It is.
        Ok = "ok",
        /// Somebody should look.
        Warning = "warning",
        /// It is a failure.
        Error = "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_another_program_is_read_with_the_words_it_has() {
        let text = r#"{"traceId":"tr_1","kind":"stage_start","name":"x","sequence":0,"timestampMs":1,"status":"executing","payload":null,"more":1}"#;
        let event: TraceEvent = serde_json::from_str(text).unwrap();
        assert_eq!(event.kind, EventKind::Other("stage_start".to_owned()));
        assert_eq!(event.status, Some(EventStatus::Other("executing".to_owned())));
        assert_eq!(event.payload, None);
        let text = r#"{"spanId":"step_3","name":"x","startMs":5,"status":"ok","endMs":null}"#;
        let span: Span = serde_json::from_str(text).unwrap();
        assert_eq!((span.kind, span.end_ms, span.attrs.len()), (SpanKind::Custom, None, 0));
    }
}
