//! What a stream says on its way, read with nothing lost and nothing taken for granted.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;

use super::members::{Text, empty_object, keep, members, place, read_usage, take};
use crate::chat::Usage;

/// One piece of a stream. Sidecars put one thing into it or several.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Text of the answer.
    pub delta: Option<String>,
    /// Text of the model's thinking.
    pub reasoning_delta: Option<String>,
    /// A call that the model makes.
    pub tool_call: Option<ToolCallChunk>,
    /// What came of a call, in an agent's turn.
    pub tool_result: Option<ToolResultChunk>,
    /// Something worth knowing about the turn.
    pub notice: Option<Notice>,
    /// What the call cost.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the provider's word.
    pub finish_reason: Option<String>,
    /// Members that this host does not know, and known ones that are not what they should be, as they came.
    pub other: Vec<(String, Box<RawValue>)>,
}

/// A call that the model makes.
#[derive(Clone, Debug)]
pub struct ToolCallChunk {
    /// The call's id.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Box<RawValue>,
    /// What the model wrote, where that is no JSON object.
    pub arguments_text: Option<String>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultChunk {
    /// The call's id.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Whether it did what it was asked for.
    pub success: bool,
    /// How long it took.
    pub duration: Option<Duration>,
    /// What went wrong.
    pub error: Option<String>,
    /// The beginning of what it found or made.
    pub preview: Option<String>,
}

/// Something worth knowing about a turn.
#[derive(Clone, Debug)]
pub struct Notice {
    /// `round_end`, `steer`, `retry`, …
    pub kind: String,
    /// All of it, as it came.
    pub raw: Box<RawValue>,
}

impl Chunk {
    /// Whether nothing is in it. The original sends such chunks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { delta, reasoning_delta, tool_call, tool_result, notice, usage, finish_reason, other } =
            self;
        delta.as_deref().is_none_or(str::is_empty)
            && reasoning_delta.as_deref().is_none_or(str::is_empty)
            && (tool_call.is_none() && tool_result.is_none() && notice.is_none())
            && (usage.is_none() && finish_reason.is_none() && other.is_empty())
    }

    /// Reads the params of `stream.chunk`: which stream, and what it says. `None` without a stream.
    pub(super) fn read(params: &RawValue) -> Option<(Cow<'_, str>, Self)> {
        let mut stream = None;
        let mut chunk = Self::default();
        for (name, raw) in members(params)? {
            let known = match &*name {
                "streamId" => take(&mut stream, raw),
                "delta" => take(&mut chunk.delta, raw),
                "reasoningDelta" => take(&mut chunk.reasoning_delta, raw),
                "finishReason" => take(&mut chunk.finish_reason, raw),
                "toolCall" => place(&mut chunk.tool_call, ToolCallChunk::read(raw)),
                "toolResult" => place(&mut chunk.tool_result, ToolResultChunk::read(raw)),
                "notice" => place(&mut chunk.notice, Notice::read(raw)),
                "usage" => place(&mut chunk.usage, read_usage(raw)),
                _ => false,
            };
            keep(&mut chunk.other, known, name, raw);
        }
        stream.map(|Text(stream)| (stream, chunk))
    }
}

impl ToolCallChunk {
    fn read(raw: &RawValue) -> Option<Self> {
        let (mut id, mut name, mut arguments, mut arguments_text) = (None, None, None, None);
        for (member, raw) in members(raw)? {
            match &*member {
                "id" => take(&mut id, raw),
                "name" => take(&mut name, raw),
                "argumentsText" => take(&mut arguments_text, raw),
                "arguments" => place(&mut arguments, Some(raw.to_owned())),
                _ => false,
            };
        }
        let arguments = arguments.unwrap_or_else(empty_object);
        Some(Self { id: id.unwrap_or_default(), name: name?, arguments, arguments_text })
    }
}

impl ToolResultChunk {
    fn read(raw: &RawValue) -> Option<Self> {
        let (mut id, mut name, mut success, mut millis, mut error, mut preview) =
            (None, None, None, None::<f64>, None, None);
        for (member, raw) in members(raw)? {
            match &*member {
                "id" => take(&mut id, raw),
                "name" => take(&mut name, raw),
                "success" => take(&mut success, raw),
                "durationMs" => take(&mut millis, raw),
                "error" => take(&mut error, raw),
                "resultPreview" => take(&mut preview, raw),
                _ => false,
            };
        }
        let duration = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        Some(Self { id, name, success: success?, duration, error, preview })
    }
}

impl Notice {
    fn read(raw: &RawValue) -> Option<Self> {
        let mut kind = None;
        for (member, raw) in members(raw)? {
            if member == "kind" {
                take(&mut kind, raw);
            }
        }
        Some(Self { kind: kind?, raw: raw.to_owned() })
    }

    /// A member of it.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&RawValue> {
        let found = members(&self.raw)?.into_iter().rfind(|(known, _)| known == name);
        found.map(|(_, raw)| raw)
    }
}
