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
        let slots = Slots::read(&mut cursor)?;
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
const NAMES: [&str; 17] = [
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

/// Where the members of an event are in the text. Which of them count is known when the type is, and that may come last.
pub(super) struct Slots<'a> {
    raw: &'a str,
    pieces: [Piece<'a>; NAMES.len()],
}

impl<'a> Slots<'a> {
    /// Notes the members of the object that begins at the cursor, and goes past it.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, JsonError> {
        let mut pieces = [Piece::ABSENT; NAMES.len()];
        let start = cursor.at();
        cursor.enter(b'{')?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let value = cursor.value()?;
            if let Some(at) = NAMES.iter().position(|name| *name == key) {
                pieces[at] = value;
            }
        }
        Ok(Self { raw: cursor.since(start), pieces })
    }

    fn piece(&self, name: &str) -> Piece<'a> {
        NAMES.iter().position(|known| *known == name).map_or(Piece::ABSENT, |at| self.pieces[at])
    }

    /// The event that they are.
    pub(super) fn event(&self, place: &Place<'_>) -> Result<AgentEvent<'a>, EnvelopeError> {
        let kind = self.piece("type");
        let kind = kind.string().ok_or_else(|| place.member("type").wrong(&kind, "a string"))?;
        let ts = self.piece("ts");
        let time = ts.string().and_then(|text| Timestamp::parse(&text).ok());
        let expected = "a time with an offset, such as \"2026-01-31T12:00:00Z\"";
        let time = time.ok_or_else(|| place.member("ts").wrong(&ts, expected))?;
        let ext = self.piece("ext");
        let ext = match ext.kind {
            Kind::Absent | Kind::Null => None,
            Kind::Object => Some(Raw::of_piece(&ext)),
            _ => return Err(place.member("ext").wrong(&ext, "an object")),
        };
        Ok(AgentEvent { ts: time, kind: self.kind(kind, place)?, ext, raw: Some(Cow::Borrowed(self.raw)) })
    }

    fn kind(&self, kind: Cow<'a, str>, place: &Place<'_>) -> Result<EventKind<'a>, EnvelopeError> {
        let place = if kind.len() <= 32 { place.member(&kind) } else { *place };
        let text = |name: &str| {
            let piece = self.piece(name);
            piece.string().ok_or_else(|| place.member(name).wrong(&piece, "a string"))
        };
        let optional = |name: &str| if self.piece(name).is_none() { Ok(None) } else { text(name).map(Some) };
        let any = |name: &str| match self.piece(name) {
            Piece { kind: Kind::Absent, .. } => Err(place.member(name).missing()),
            piece => Ok(Raw::of_piece(&piece)),
        };
        Ok(match &*kind {
            "assistant_delta" => EventKind::AssistantDelta { text: text("text")? },
            "assistant_message" => EventKind::AssistantMessage { text: text("text")? },
            "run_started" => EventKind::RunStarted { message: text("message")? },
            "run_completed" => EventKind::RunCompleted { message: text("message")? },
            "warning" => EventKind::Warning { message: text("message")? },
            "error" => EventKind::Error {
                message: text("message")?,
                error_code: optional("error_code")?.map(|code| ErrorCode::from(&*code)),
            },
            "tool_call" => EventKind::ToolCall {
                tool_name: text("tool_name")?,
                tool_use_id: optional("tool_use_id")?,
                parent_tool_use_id: optional("parent_tool_use_id")?,
                input: any("input")?,
            },
            "tool_result" => EventKind::ToolResult {
                tool_name: text("tool_name")?,
                tool_use_id: optional("tool_use_id")?,
                output: any("output")?,
                is_error: {
                    let piece = self.piece("is_error");
                    piece.boolean().ok_or_else(|| place.member("is_error").wrong(&piece, "true or false"))?
                },
            },
            "file_changed" => EventKind::FileChanged { path: text("path")?, summary: text("summary")? },
            "command_executed" => {
                let code = self.piece("exit_code");
                let exit_code = if code.is_none() {
                    None
                } else {
                    let place = place.member("exit_code");
                    Some(code.integer().ok_or_else(|| place.wrong(&code, "a whole number of 32 bits"))?)
                };
                EventKind::CommandExecuted {
                    command: text("command")?,
                    exit_code,
                    output_preview: optional("output_preview")?,
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
