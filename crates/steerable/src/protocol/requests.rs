//! The params of all methods but `agent.chat.stream`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Fields, ParamError};
use super::turn::SteerMode;

/// The longest steering message, in characters.
pub const MAX_STEER: usize = 32_000;

/// `agent.session.create`.
#[derive(Clone, Debug)]
pub struct SessionCreate {
    /// The host's id of the conversation.
    pub chat_id: String,
    /// The session's id, if the host chooses it.
    pub session_id: Option<String>,
    /// Whose it is.
    pub user_id: String,
    /// The stage it is in.
    pub current_stage: String,
    /// What it is for.
    pub scenario: String,
    /// What the stage keeps: an object, as it was written.
    pub stage_data: Option<Box<RawValue>>,
    /// The project it belongs to.
    pub project_id: Option<String>,
}

impl SessionCreate {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let or = |name, default: &str| {
            let text: Option<String> = fields.text(name)?.filter(|text: &String| !text.is_empty());
            Ok(text.unwrap_or_else(|| default.to_owned()))
        };
        Ok(Self {
            chat_id: fields.required_text("chatId")?,
            session_id: fields.text("sessionId")?.filter(|id| !id.is_empty()),
            user_id: or("userId", "local")?,
            current_stage: or("currentStage", "plan")?,
            scenario: or("scenario", "agent-entry")?,
            stage_data: match fields.raw("stageData") {
                Some(raw) if !raw.get().starts_with('{') => {
                    return Err(fields.wrong("stageData", "an object"));
                }
                raw => raw.map(ToOwned::to_owned),
            },
            project_id: fields.text("projectId")?,
        })
    }
}

/// `agent.session.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionList {
    /// Only this user's.
    pub user_id: Option<String>,
    /// Only those of this conversation.
    pub chat_id: Option<String>,
    /// Only active ones.
    pub active_only: bool,
    /// At most so many.
    pub limit: Option<u64>,
}

impl SessionList {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of_optional(params)?;
        Ok(Self {
            user_id: fields.text("userId")?,
            chat_id: fields.text("chatId")?,
            active_only: fields.flag("activeOnly")?.unwrap_or(false),
            limit: fields.count("limit", 0)?,
        })
    }
}

/// `agent.session.resume`: the session's id.
///
/// # Errors
/// When there is none.
pub fn read_session_id(params: Option<&RawValue>) -> Result<String, ParamError> {
    Fields::of(params)?.required_text("sessionId")
}

/// `agent.session.messages`: the record's id, or the session's, which is the same.
///
/// # Errors
/// When there is none.
pub fn read_record_id(params: Option<&RawValue>) -> Result<String, ParamError> {
    record_id(&Fields::of(params)?)
}

fn record_id(fields: &Fields<'_>) -> Result<String, ParamError> {
    match fields.raw_any(["recordId", "sessionId"]) {
        Some((name, _)) => fields.required_text(name),
        None => fields.required_text("recordId"),
    }
}

/// `agent.session.fork`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFork {
    /// What is copied.
    pub record_id: String,
    /// Up to where.
    pub until: ForkUntil,
    /// The copy's id, if the host chooses it.
    pub new_record_id: Option<String>,
    /// What the copy is called.
    pub label: Option<String>,
}

/// Up to where a transcript is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkUntil {
    /// To its end.
    End,
    /// Up to this message and with it.
    Seq(u64),
    /// Up to the last message of the user, without it.
    BeforeLastUser,
    /// Up to the user's message of this number, counted from 0, without it.
    BeforeUserIndex(u64),
}

impl SessionFork {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let record_id = record_id(&fields)?;
        let seq = fields.count("untilSeq", 0)?;
        let last = fields.flag("beforeLastUser")?.unwrap_or(false);
        let index = fields.count("beforeUserIndex", 0)?;
        let until = match (seq, last, index) {
            (None, false, None) => ForkUntil::End,
            (Some(seq), false, None) => ForkUntil::Seq(seq),
            (None, true, None) => ForkUntil::BeforeLastUser,
            (None, false, Some(index)) => ForkUntil::BeforeUserIndex(index),
            _ => {
                return Err(
                    fields.wrong("untilSeq", "alone: beforeLastUser and beforeUserIndex say the same")
                );
            }
        };
        let new_record_id = fields.text("newRecordId")?.filter(|id| !id.is_empty());
        Ok(Self { record_id, until, new_record_id, label: fields.text("label")? })
    }
}

/// `tool.invoke`.
#[derive(Clone, Debug)]
pub struct ToolInvoke {
    /// Which tool.
    pub name: String,
    /// Its arguments, always an object.
    pub arguments: Box<RawValue>,
    /// The host's id of the call.
    pub id: Option<String>,
    /// Whether a person agreed.
    pub consent_granted: bool,
    /// What the host wants the tool to know.
    pub context: Map<String, Value>,
}

impl ToolInvoke {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let name = fields.required_text("name")?;
        let must = || fields.wrong("arguments", "an object");
        let arguments = match fields.raw("arguments") {
            None => RawValue::from_string("{}".to_owned()).map_err(|_| must())?,
            Some(raw) if raw.get().starts_with('{') => raw.to_owned(),
            Some(_) => return Err(must()),
        };
        Ok(Self {
            name,
            arguments,
            id: fields.text("id")?.filter(|id| !id.is_empty()),
            consent_granted: fields.flag("consentGranted")?.unwrap_or(false),
            context: fields.object("context")?.unwrap_or_default(),
        })
    }
}

/// `trace.fetch`: which trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceFetch {
    /// By its own id.
    Trace(String),
    /// By its stream's.
    Stream(String),
}

impl TraceFetch {
    /// Reads params.
    ///
    /// # Errors
    /// When there is no id.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        match fields.raw("traceId").is_none() && fields.raw("streamId").is_some() {
            true => fields.required_text("streamId").map(Self::Stream),
            false => fields.required_text("traceId").map(Self::Trace),
        }
    }
}

/// `trace.export`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceExport {
    /// Which trace.
    pub trace_id: String,
    /// Where to.
    pub endpoint: String,
    /// How much of it.
    pub privacy: Privacy,
    /// What the exported service is called.
    pub service_name: String,
    /// Sent with the request and not kept.
    pub headers: Vec<(String, String)>,
}

/// How much of a trace leaves the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// Texts and arguments too.
    Full,
    /// Names, times and numbers.
    Metadata,
}

impl Privacy {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Metadata => "metadata",
        }
    }
}

impl TraceExport {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let words = [("full", Privacy::Full), ("metadata", Privacy::Metadata)];
        let header = |(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            _ => Err(fields.wrong("headers", "an object of strings")),
        };
        Ok(Self {
            trace_id: fields.required_text("traceId")?,
            endpoint: fields.required_text("endpoint")?,
            privacy: fields.word("privacyMode", &words)?.unwrap_or(Privacy::Metadata),
            service_name: fields.text("serviceName")?.unwrap_or_else(|| "steerable-sidecar".to_owned()),
            headers: fields
                .object("headers")?
                .unwrap_or_default()
                .into_iter()
                .map(header)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// `agent.chat.cancel` and `agent.chat.compact`: the stream's id.
///
/// # Errors
/// When there is none.
pub fn read_stream_id(params: Option<&RawValue>) -> Result<String, ParamError> {
    Fields::of(params)?.required_text("streamId")
}

/// `agent.chat.steer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// Which stream.
    pub stream_id: String,
    /// What the person says.
    pub content: String,
    /// When it takes effect, if it says.
    pub mode: Option<SteerMode>,
}

impl Steer {
    /// Reads params.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let stream_id = fields.required_text("streamId")?;
        let content = fields.required_text("content")?;
        if content.chars().count() > MAX_STEER {
            return Err(fields.wrong("content", format!("a string of at most {MAX_STEER} characters")));
        }
        Ok(Self { stream_id, content, mode: fields.word("mode", &SteerMode::WORDS)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_session_has_the_originals_defaults() {
        let session = SessionCreate::read(Some(&raw(r#"{"chatId":"c","userId":""}"#))).unwrap();
        assert_eq!(
            (&*session.user_id, &*session.current_stage, &*session.scenario),
            ("local", "plan", "agent-entry")
        );
        let missing = SessionCreate::read(Some(&raw("{}"))).unwrap_err();
        assert_eq!(missing.to_string(), "chatId must be a non-empty string");
        let wrong = SessionCreate::read(Some(&raw(r#"{"chatId":"c","stageData":[]}"#))).unwrap_err();
        assert_eq!(wrong.to_string(), "stageData must be an object");
    }

    #[test]
    fn a_steering_message_has_at_most_32000_characters() {
        let steer = |length: usize| {
            let content = "ü".repeat(length);
            Steer::read(Some(&raw(&format!(r#"{{"streamId":"s","content":"{content}"}}"#))))
        };
        assert!(steer(32_000).is_ok());
        assert_eq!(
            steer(32_001).unwrap_err().to_string(),
            "content must be a string of at most 32000 characters"
        );
    }

    #[test]
    fn a_fork_ends_in_one_place() {
        let until = |json: &str| SessionFork::read(Some(&raw(json))).map(|fork| fork.until);
        assert_eq!(until(r#"{"recordId":"r"}"#), Ok(ForkUntil::End));
        assert_eq!(until(r#"{"sessionId":"r","untilSeq":3}"#), Ok(ForkUntil::Seq(3)));
        assert_eq!(until(r#"{"recordId":"r","beforeLastUser":true}"#), Ok(ForkUntil::BeforeLastUser));
        assert_eq!(until(r#"{"recordId":"r","beforeUserIndex":0}"#), Ok(ForkUntil::BeforeUserIndex(0)));
        assert!(until(r#"{"recordId":"r","untilSeq":1,"beforeUserIndex":0}"#).is_err());
        assert!(until("{}").is_err());
    }

    #[test]
    fn a_trace_is_named_by_itself_or_by_its_stream() {
        let fetch = |json: &str| TraceFetch::read(Some(&raw(json)));
        assert_eq!(fetch(r#"{"traceId":"t"}"#), Ok(TraceFetch::Trace("t".into())));
        assert_eq!(fetch(r#"{"streamId":"s"}"#), Ok(TraceFetch::Stream("s".into())));
        assert_eq!(fetch("{}").unwrap_err().to_string(), "traceId must be a non-empty string");
    }
}
