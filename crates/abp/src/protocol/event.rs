//! What a child reports while it works.
//!
//! Reading is the hot path of the whole dialect: one walk over the text that notes where each member is, then only those
//! that the type has are decoded, borrowed from the line. Nothing is allocated unless a string has escapes.

use std::borrow::Cow;

use super::ask::owned;
use super::code::ErrorCode;
use super::fields::{EnvelopeError, Place};
use super::json::{Cursor, JsonError, Kind, Piece};
use super::raw::Raw;
use super::time::Timestamp;
use super::usage::UsageReport;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentEvent<'a> {
    /// When, by the child's clock.
    pub ts: Timestamp,
    /// What.
    pub kind: EventKind<'a>,
    /// More, for those who know it: an object. `raw_message` in it is the vendor's own message.
    pub ext: Option<Raw<'a>>,
    /// The event's own text, if it was read and not made here.
    pub raw: Option<Cow<'a, str>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind<'a> {
    /// The run has begun.
    RunStarted {
        /// In words.
        message: Cow<'a, str>,
    },
    /// The run is done.
    RunCompleted {
        /// In words.
        message: Cow<'a, str>,
    },
    /// A part of what the assistant says.
    AssistantDelta {
        /// The part.
        text: Cow<'a, str>,
    },
    /// What the assistant says.
    AssistantMessage {
        /// All of it.
        text: Cow<'a, str>,
    },
    /// A tool is called.
    ToolCall {
        /// Which one.
        tool_name: Cow<'a, str>,
        /// Which call.
        tool_use_id: Option<Cow<'a, str>>,
        /// Within which other call.
        parent_tool_use_id: Option<Cow<'a, str>>,
        /// What it is given.
        input: Raw<'a>,
    },
    /// A tool has answered.
    ToolResult {
        /// Which one.
        tool_name: Cow<'a, str>,
        /// Which call.
        tool_use_id: Option<Cow<'a, str>>,
        /// What it answered.
        output: Raw<'a>,
        /// Whether that is an error.
        is_error: bool,
    },
    /// A file was changed.
    FileChanged {
        /// Relative to the root of the workspace.
        path: Cow<'a, str>,
        /// How, in words.
        summary: Cow<'a, str>,
    },
    /// A command was executed.
    CommandExecuted {
        /// Which one.
        command: Cow<'a, str>,
        /// How it ended.
        exit_code: Option<i32>,
        /// The beginning of what it said.
        output_preview: Option<Cow<'a, str>>,
    },
    /// Something that somebody should know.
    Warning {
        /// In words.
        message: Cow<'a, str>,
    },
    /// Something went wrong; the run may go on.
    Error {
        /// In words.
        message: Cow<'a, str>,
        /// What sort of error.
        error_code: Option<ErrorCode>,
    },
    /// What was used (an extension).
    Usage(UsageReport),
    /// A type that we do not know.
    Other {
        /// Its name.
        kind: Cow<'a, str>,
        /// The whole event, `ts` and `type` included.
        members: Raw<'a>,
    },
}

impl<'a> AgentEvent<'a> {
    /// One that happens now.
    #[must_use]
    pub fn now(kind: EventKind<'a>) -> Self {
        Self { ts: Timestamp::now(), kind, ext: None, raw: None }
    }

    /// Reads one event.
    ///
    /// # Errors
    /// When it is not JSON, or a member is missing or not what it must be.
    pub fn read(text: &'a str) -> Result<Self, EnvelopeError> {
        let mut cursor = Cursor::new(text);
        if cursor.peek()? != b'{' {
            return Err(Place::ROOT.wrong(&Piece::read(text)?, "an object"));
        }
        let mut slots = Slots::empty();
        slots.fill(&mut cursor)?;
        cursor.end()?;
        slots.event(&Place::ROOT)
    }

    /// The member `raw_message` of `ext`: the vendor's own message, byte for byte.
    #[must_use]
    pub fn raw_message(&self) -> Option<Raw<'_>> {
        let ext = self.ext.as_ref()?;
        if memchr::memmem::find(ext.as_str().as_bytes(), b"raw_message").is_none()
            && memchr::memchr(b'\\', ext.as_str().as_bytes()).is_none()
        {
            return None;
        }
        let mut found = None;
        super::fields::each_member(&Piece::read(ext.as_str()).ok()?, |key, value| {
            if key == "raw_message" {
                found = Some(Raw::of_piece(&value));
            }
            Ok(())
        })
        .ok()?;
        found
    }

    /// What `ext.usage` reports, whatever the event is.
    #[must_use]
    pub fn ext_usage(&self) -> Option<UsageReport> {
        let ext = self.ext.as_ref()?;
        memchr::memmem::find(ext.as_str().as_bytes(), b"usage")?;
        UsageReport::inside(&Piece::read(ext.as_str()).ok()?)
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> AgentEvent<'static> {
        AgentEvent {
            ts: self.ts,
            kind: self.kind.into_owned(),
            ext: self.ext.map(Raw::into_owned),
            raw: self.raw.map(owned),
        }
    }
}

impl EventKind<'_> {
    /// The `type` of the event.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::RunCompleted { .. } => "run_completed",
            Self::AssistantDelta { .. } => "assistant_delta",
            Self::AssistantMessage { .. } => "assistant_message",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::FileChanged { .. } => "file_changed",
            Self::CommandExecuted { .. } => "command_executed",
            Self::Warning { .. } => "warning",
            Self::Error { .. } => "error",
            Self::Usage(_) => "usage",
            Self::Other { kind, .. } => kind,
        }
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> EventKind<'static> {
        match self {
            Self::RunStarted { message } => EventKind::RunStarted { message: owned(message) },
            Self::RunCompleted { message } => EventKind::RunCompleted { message: owned(message) },
            Self::AssistantDelta { text } => EventKind::AssistantDelta { text: owned(text) },
            Self::AssistantMessage { text } => EventKind::AssistantMessage { text: owned(text) },
            Self::ToolCall { tool_name, tool_use_id, parent_tool_use_id, input } => EventKind::ToolCall {
                tool_name: owned(tool_name),
                tool_use_id: tool_use_id.map(owned),
                parent_tool_use_id: parent_tool_use_id.map(owned),
                input: input.into_owned(),
            },
            Self::ToolResult { tool_name, tool_use_id, output, is_error } => EventKind::ToolResult {
                tool_name: owned(tool_name),
                tool_use_id: tool_use_id.map(owned),
                output: output.into_owned(),
                is_error,
            },
            Self::FileChanged { path, summary } => {
                EventKind::FileChanged { path: owned(path), summary: owned(summary) }
            }
            Self::CommandExecuted { command, exit_code, output_preview } => EventKind::CommandExecuted {
                command: owned(command),
                exit_code,
                output_preview: output_preview.map(owned),
            },
            Self::Warning { message } => EventKind::Warning { message: owned(message) },
            Self::Error { message, error_code } => EventKind::Error { message: owned(message), error_code },
            Self::Usage(report) => EventKind::Usage(report),
            Self::Other { kind, members } => {
                EventKind::Other { kind: owned(kind), members: members.into_owned() }
            }
        }
    }
}

/// The members that any type has, by their places in [`Slots`].
mod slot {
    pub(super) const TS: usize = 0;
    pub(super) const TYPE: usize = 1;
    pub(super) const EXT: usize = 2;
    pub(super) const TEXT: usize = 3;
    pub(super) const MESSAGE: usize = 4;
    pub(super) const TOOL_NAME: usize = 5;
    pub(super) const TOOL_USE_ID: usize = 6;
    pub(super) const PARENT_TOOL_USE_ID: usize = 7;
    pub(super) const INPUT: usize = 8;
    pub(super) const OUTPUT: usize = 9;
    pub(super) const IS_ERROR: usize = 10;
    pub(super) const PATH: usize = 11;
    pub(super) const SUMMARY: usize = 12;
    pub(super) const COMMAND: usize = 13;
    pub(super) const EXIT_CODE: usize = 14;
    pub(super) const OUTPUT_PREVIEW: usize = 15;
    pub(super) const ERROR_CODE: usize = 16;
    pub(super) const COUNT: usize = 17;

    /// For sentences.
    pub(super) const NAMES: [&str; COUNT] = [
        "ts",
        "type",
        "ext",
        "text",
        "message",
        "tool_name",
        "tool_use_id",
        "parent_tool_use_id",
        "input",
        "output",
        "is_error",
        "path",
        "summary",
        "command",
        "exit_code",
        "output_preview",
        "error_code",
    ];

    /// Where a member belongs. Spelled out, because this is asked for every member of every event.
    pub(super) fn of(key: &str) -> Option<usize> {
        Some(match key.as_bytes() {
            b"ts" => TS,
            b"type" => TYPE,
            b"ext" => EXT,
            b"text" => TEXT,
            b"message" => MESSAGE,
            b"tool_name" => TOOL_NAME,
            b"tool_use_id" => TOOL_USE_ID,
            b"parent_tool_use_id" => PARENT_TOOL_USE_ID,
            b"input" => INPUT,
            b"output" => OUTPUT,
            b"is_error" => IS_ERROR,
            b"path" => PATH,
            b"summary" => SUMMARY,
            b"command" => COMMAND,
            b"exit_code" => EXIT_CODE,
            b"output_preview" => OUTPUT_PREVIEW,
            b"error_code" => ERROR_CODE,
            _ => return None,
        })
    }
}

/// Where the members of an event are in the text. Which of them count is known when the type is, and that may come last.
pub(super) struct Slots<'a> {
    raw: &'a str,
    pieces: [Piece<'a>; slot::COUNT],
}

impl<'a> Slots<'a> {
    pub(super) const fn empty() -> Self {
        Self { raw: "", pieces: [Piece::ABSENT; slot::COUNT] }
    }

    /// Notes the members of the object that begins at the cursor, and goes past it. What was noted before is forgotten.
    pub(super) fn fill(&mut self, cursor: &mut Cursor<'a>) -> Result<(), JsonError> {
        if !self.raw.is_empty() {
            *self = Self::empty();
        }
        let start = cursor.at();
        cursor.enter(b'{')?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let value = cursor.value()?;
            if let Some(at) = slot::of(&key) {
                self.pieces[at] = value;
            }
        }
        self.raw = cursor.since(start);
        Ok(())
    }

    /// The event that they are.
    pub(super) fn event(&self, place: &Place<'_>) -> Result<AgentEvent<'a>, EnvelopeError> {
        let kind = self.pieces[slot::TYPE];
        let kind = kind.string().ok_or_else(|| place.member("type").wrong(&kind, "a string"))?;
        let ts = self.pieces[slot::TS];
        let time = ts.string().and_then(|text| Timestamp::parse(&text).ok());
        let expected = "a time with an offset, such as \"2026-01-31T12:00:00Z\"";
        let time = time.ok_or_else(|| place.member("ts").wrong(&ts, expected))?;
        let ext = self.pieces[slot::EXT];
        let ext = match ext.kind {
            Kind::Absent | Kind::Null => None,
            Kind::Object => Some(Raw::of_piece(&ext)),
            _ => return Err(place.member("ext").wrong(&ext, "an object")),
        };
        Ok(AgentEvent { ts: time, kind: self.kind(kind, place)?, ext, raw: Some(Cow::Borrowed(self.raw)) })
    }

    fn kind(&self, kind: Cow<'a, str>, place: &Place<'_>) -> Result<EventKind<'a>, EnvelopeError> {
        let place = if kind.len() <= 32 { place.member(&kind) } else { *place };
        let text = |at: usize| {
            let piece = &self.pieces[at];
            piece.string().ok_or_else(|| place.member(slot::NAMES[at]).wrong(piece, "a string"))
        };
        let optional = |at: usize| if self.pieces[at].is_none() { Ok(None) } else { text(at).map(Some) };
        let any = |at: usize| match &self.pieces[at] {
            Piece { kind: Kind::Absent, .. } => Err(place.member(slot::NAMES[at]).missing()),
            piece => Ok(Raw::of_piece(piece)),
        };
        Ok(match &*kind {
            "assistant_delta" => EventKind::AssistantDelta { text: text(slot::TEXT)? },
            "assistant_message" => EventKind::AssistantMessage { text: text(slot::TEXT)? },
            "run_started" => EventKind::RunStarted { message: text(slot::MESSAGE)? },
            "run_completed" => EventKind::RunCompleted { message: text(slot::MESSAGE)? },
            "warning" => EventKind::Warning { message: text(slot::MESSAGE)? },
            "error" => EventKind::Error {
                message: text(slot::MESSAGE)?,
                error_code: optional(slot::ERROR_CODE)?.map(|code| ErrorCode::from(&*code)),
            },
            "tool_call" => EventKind::ToolCall {
                tool_name: text(slot::TOOL_NAME)?,
                tool_use_id: optional(slot::TOOL_USE_ID)?,
                parent_tool_use_id: optional(slot::PARENT_TOOL_USE_ID)?,
                input: any(slot::INPUT)?,
            },
            "tool_result" => EventKind::ToolResult {
                tool_name: text(slot::TOOL_NAME)?,
                tool_use_id: optional(slot::TOOL_USE_ID)?,
                output: any(slot::OUTPUT)?,
                is_error: {
                    let piece = self.pieces[slot::IS_ERROR];
                    piece.boolean().ok_or_else(|| place.member("is_error").wrong(&piece, "true or false"))?
                },
            },
            "file_changed" => {
                EventKind::FileChanged { path: text(slot::PATH)?, summary: text(slot::SUMMARY)? }
            }
            "command_executed" => {
                let code = self.pieces[slot::EXIT_CODE];
                let exit_code = if code.is_none() {
                    None
                } else {
                    let place = place.member("exit_code");
                    Some(code.integer().ok_or_else(|| place.wrong(&code, "a whole number of 32 bits"))?)
                };
                EventKind::CommandExecuted {
                    command: text(slot::COMMAND)?,
                    exit_code,
                    output_preview: optional(slot::OUTPUT_PREVIEW)?,
                }
            }
            "usage" => EventKind::Usage(UsageReport::of_event(self.raw)),
            _ => {
                let members = Raw::checked(self.raw);
                return Ok(EventKind::Other { kind, members });
            }
        })
    }
}
