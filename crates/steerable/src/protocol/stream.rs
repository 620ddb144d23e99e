//! The params of `agent.chat.stream`.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Fields, ParamError};
use super::message::read_messages;
use super::tool::read_tools;
use super::turn::TurnParams;
use crate::chat::{Message, Secret, ToolSpec};

/// The words that name a provider, with their synonyms.
pub const PROVIDER_WORDS: [&str; 15] = [
    "openai",
    "openai_compat",
    "openai-compatible",
    "ollama",
    "openai-responses",
    "openai_responses",
    "responses",
    "xai",
    "anthropic",
    "claude",
    "google",
    "gemini",
    "google-genai",
    "google_genai",
    "scripted",
];

/// The longest `streamId` a host may choose, in bytes. It is in every notification.
pub const MAX_STREAM_ID: usize = 256;

/// What a host asks for when it opens a stream.
#[derive(Clone, Debug)]
pub struct StreamParams {
    /// Trimmed and in lower case; one of [`PROVIDER_WORDS`].
    pub provider: String,
    /// The model.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Where the provider is, if not where it usually is. The file of a scripted one.
    pub base_url: Option<String>,
    /// The key. An empty one is none.
    pub api_key: Option<Secret>,
    /// How freely it speaks.
    pub temperature: Option<f64>,
    /// How much it may say.
    pub max_tokens: Option<u64>,
    /// How hard it thinks, in the provider's word.
    pub reasoning_effort: Option<String>,
    /// The tools that the host names.
    pub tools: Vec<ToolSpec>,
    /// Merged into the body of the request last.
    pub provider_options: Option<Map<String, Value>>,
    /// The host's own id of the stream.
    pub stream_id: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Option<Duration>,
    /// How long nothing may come.
    pub idle_timeout: Option<Duration>,
    /// How long it may take in all.
    pub total_timeout: Option<Duration>,
    /// How often it is tried.
    pub retry_max_attempts: Option<u32>,
    /// Whether marks for prompt caching are sent; `true` unless the host says no.
    pub cache_control: bool,
    /// An agent's turn instead of one call of the model.
    pub turn: Option<Box<TurnParams>>,
}

/// What a stream is whose params do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// One call of the model.
    Plain,
    /// An agent's turn, because the environment says so.
    Turn,
}

impl StreamParams {
    /// Reads params, in the order in which hosts expect complaints: provider, model, messages, then the rest.
    ///
    /// # Errors
    /// The first member that does not fit.
    pub fn read(params: Option<&RawValue>, unsaid: Unsaid) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        let provider = read_provider(&fields)?;
        let model = fields.required_text("model")?;
        let messages = read_messages(&fields.list("messages")?.unwrap_or_default())?;
        let retry_max_attempts = fields.count("retryMaxAttempts", 1)?;
        let turn = match fields.flag("useCoreLoop")? {
            Some(true) => true,
            Some(false) => false,
            None => unsaid == Unsaid::Turn,
        };
        Ok(Self {
            provider,
            model,
            messages,
            base_url: fields.text_any(["baseUrl", "base_url"])?.filter(|url| !url.is_empty()),
            api_key: fields.text_any(["apiKey", "api_key"])?.filter(|key| !key.is_empty()).map(Secret::new),
            temperature: fields.number("temperature")?,
            max_tokens: fields.count("maxTokens", 1)?,
            reasoning_effort: fields.text("reasoningEffort")?,
            tools: read_tools(&fields)?,
            provider_options: fields.object("providerOptions")?,
            stream_id: read_stream_id(&fields)?,
            connect_timeout: fields.millis("connectTimeoutMs")?,
            idle_timeout: fields.millis("idleTimeoutMs")?,
            total_timeout: fields.millis("totalTimeoutMs")?,
            retry_max_attempts: retry_max_attempts
                .map(|attempts| u32::try_from(attempts).unwrap_or(u32::MAX)),
            cache_control: fields.flag("cacheControl")?.unwrap_or(true),
            turn: if turn { Some(Box::new(TurnParams::read(&fields)?)) } else { None },
        })
    }
}

fn read_provider(fields: &Fields<'_>) -> Result<String, ParamError> {
    let word = fields.required_text("provider")?.trim().to_lowercase();
    if PROVIDER_WORDS.contains(&word.as_str()) {
        return Ok(word);
    }
    let shown: String = word.chars().take(60).collect();
    Err(fields.wrong("provider", format!("one of {}; '{shown}' is none", PROVIDER_WORDS.join(", "))))
}

fn read_stream_id(fields: &Fields<'_>) -> Result<Option<String>, ParamError> {
    let id = fields.text("streamId")?.filter(|id| !id.is_empty());
    match id {
        Some(id) if id.len() > MAX_STREAM_ID => {
            Err(fields.wrong("streamId", format!("a string of at most {MAX_STREAM_ID} bytes")))
        }
        id => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<StreamParams, String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        StreamParams::read(Some(&raw), Unsaid::Plain).map_err(|error| error.to_string())
    }

    fn complaint(json: &str) -> String {
        match read(json) {
            Ok(params) => panic!("{params:?}"),
            Err(complaint) => complaint,
        }
    }

    #[test]
    fn complaints_come_in_the_order_that_hosts_expect() {
        assert_eq!(complaint("[]"), "params must be an object");
        assert_eq!(complaint("{}"), "provider must be a non-empty string");
        assert!(complaint(r#"{"provider":"abacus","messages":1}"#).ends_with("'abacus' is none"));
        assert_eq!(complaint(r#"{"provider":" OpenAI ","messages":1}"#), "model must be a non-empty string");
        assert_eq!(
            complaint(r#"{"provider":"openai","model":"m","messages":1,"tools":1}"#),
            "messages must be an array"
        );
        assert_eq!(
            complaint(r#"{"provider":"openai","model":"m","temperature":"hot"}"#),
            "temperature must be a number"
        );
        assert_eq!(
            complaint(r#"{"provider":"openai","model":"m","tools":[1]}"#),
            "tools[0] must be an object"
        );
        assert_eq!(
            complaint(r#"{"provider":"openai","model":"m","maxTokens":0}"#),
            "maxTokens must be a whole number of at least 1"
        );
    }

    #[test]
    fn both_spellings_are_read_and_the_key_is_never_shown() {
        let params =
            read(r#"{"provider":"claude","model":"m","base_url":"http://x","api_key":"sk-1"}"#).unwrap();
        assert_eq!(params.base_url.as_deref(), Some("http://x"));
        assert_eq!(params.api_key.as_ref().map(Secret::reveal), Some("sk-1"));
        assert!(!format!("{params:?}").contains("sk-1"));
        assert!(params.messages.is_empty() && params.turn.is_none() && params.cache_control);
    }

    #[test]
    fn a_stream_id_has_at_most_256_bytes() {
        let with = |id: &str| read(&format!(r#"{{"provider":"openai","model":"m","streamId":"{id}"}}"#));
        assert!(with(&"x".repeat(256)).is_ok());
        assert_eq!(with(&"x".repeat(257)).unwrap_err(), "streamId must be a string of at most 256 bytes");
    }

    #[test]
    fn a_turn_is_asked_for_or_said_by_the_environment() {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        let is_turn =
            |json: &str, unsaid| StreamParams::read(Some(&raw(json)), unsaid).unwrap().turn.is_some();
        assert!(is_turn(r#"{"provider":"openai","model":"m","useCoreLoop":true}"#, Unsaid::Plain));
        assert!(is_turn(r#"{"provider":"openai","model":"m"}"#, Unsaid::Turn));
        assert!(!is_turn(r#"{"provider":"openai","model":"m","useCoreLoop":false}"#, Unsaid::Turn));
    }
}
