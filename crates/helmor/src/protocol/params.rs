//! The rules for parameters: what is required, what counts as absent, and what an array of strings is.

use std::path::PathBuf;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::incoming::{Name, text};
use super::send::AgentProxy;
use super::words::ProviderName;

/// Why parameters are refused. The message is what the host is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// A member is not what it must be.
    #[error("params.{name} must be {what}")]
    Wrong {
        /// Which one.
        name: String,
        /// What it must be.
        what: &'static str,
    },
    /// Nobody is called that.
    #[error("unknown provider: {0}")]
    UnknownProvider(String),
    /// Two members that we know are nested too deep, or are otherwise no values.
    #[error("params.{name} cannot be read: {why}")]
    Unreadable {
        /// Which one.
        name: &'static str,
        /// Why.
        why: String,
    },
}

/// Every member that some method knows. Others are ignored, so that what is kept of a request is bounded.
const KNOWN: &[&str] = &[
    "action",
    "additionalDirectories",
    "agentProxy",
    "apiKey",
    "askEveryTool",
    "behavior",
    "branchRenamePrompt",
    "claudeEnvironment",
    "claudeModel",
    "claudeThinkingDisplay",
    "content",
    "cursorApiKey",
    "cwd",
    "effortLevel",
    "fastMode",
    "files",
    "generateBranch",
    "images",
    "message",
    "meta",
    "model",
    "permissionId",
    "permissionMode",
    "prompt",
    "provider",
    "providerSessionId",
    "resume",
    "sessionId",
    "sourceRepoPath",
    "updatedPermissions",
    "userInputId",
    "userMessage",
];

/// The parameters of a request: the members that some method knows, as text.
pub(super) struct Params<'a> {
    members: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Params<'a> {
    pub(super) fn of(raw: &'a RawValue) -> Self {
        // It was read as an object already.
        let members = serde_json::Deserializer::from_str(raw.get()).deserialize_map(Known);
        Self { members: members.unwrap_or_default() }
    }

    /// A member that is there and not null.
    fn some(&self, name: &str) -> Option<&'a RawValue> {
        self.member(name).filter(|raw| raw.get() != "null")
    }

    /// A member that is there, null or not.
    pub(super) fn member(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().rev().find(|(known, _)| *known == name).map(|(_, raw)| *raw)
    }

    pub(super) fn string(&self, name: &str) -> Result<String, ParamError> {
        self.optional_text(name).ok_or_else(|| wrong(name, "a string"))
    }

    /// A string that is not empty: what is optional and empty says nothing.
    pub(super) fn optional(&self, name: &str) -> Option<String> {
        self.optional_text(name).filter(|text| !text.is_empty())
    }

    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.optional(name).map(PathBuf::from)
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        match self.member(name)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub(super) fn provider(&self) -> Result<ProviderName, ParamError> {
        let word = self.string("provider")?;
        ProviderName::from_word(&word).ok_or(ParamError::UnknownProvider(word))
    }

    pub(super) fn optional_provider(&self) -> Result<Option<ProviderName>, ParamError> {
        if self.optional("provider").is_some() { self.provider().map(Some) } else { Ok(None) }
    }

    /// An array of strings: trimmed, without empty ones.
    pub(super) fn strings(&self, name: &str) -> Result<Vec<String>, ParamError> {
        let Some(raw) = self.some(name) else { return Ok(Vec::new()) };
        let read: Option<Vec<String>> = serde_json::from_str(raw.get()).ok();
        let read = read.ok_or_else(|| wrong(name, "an array of strings"))?;
        let trimmed = read.iter().map(|text| text.trim().to_owned());
        Ok(trimmed.filter(|text| !text.is_empty()).collect())
    }

    pub(super) fn paths(&self, name: &str) -> Result<Vec<PathBuf>, ParamError> {
        Ok(self.strings(name)?.into_iter().map(PathBuf::from).collect())
    }

    /// The strings of an array, whatever else is in it, or instead of it.
    pub(super) fn lenient(&self, name: &str) -> Vec<String> {
        let read: Option<Vec<&RawValue>> =
            self.some(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        read.unwrap_or_default().into_iter().filter_map(|raw| text(raw).map(String::from)).collect()
    }

    /// An object; what is none counts as absent.
    pub(super) fn object(&self, name: &'static str) -> Result<Option<Map<String, Value>>, ParamError> {
        match self.some(name).filter(|raw| raw.get().starts_with('{')) {
            Some(raw) => serde_json::from_str(raw.get()).map(Some).map_err(unreadable(name)),
            None => Ok(None),
        }
    }

    /// An array of anything.
    pub(super) fn array(&self, name: &'static str) -> Result<Vec<Value>, ParamError> {
        match self.some(name) {
            Some(raw) if raw.get().starts_with('[') => {
                serde_json::from_str(raw.get()).map_err(unreadable(name))
            }
            Some(_) => Err(wrong(name, "an array")),
            None => Ok(Vec::new()),
        }
    }

    /// Variables for a program: every value is a string, and every name can be one.
    pub(super) fn environment(&self, name: &'static str) -> Result<Vec<(String, String)>, ParamError> {
        let Some(raw) = self.some(name) else { return Ok(Vec::new()) };
        if !raw.get().starts_with('{') {
            return Err(wrong(name, "an object of strings"));
        }
        let read: Map<String, Value> = serde_json::from_str(raw.get()).map_err(unreadable(name))?;
        let variable = |(key, value): (String, Value)| match value {
            Value::String(text) if is_name(&key) && !text.contains('\0') => Ok((key, text)),
            Value::String(_) => Err(wrong(&format!("{name}.{key}"), "a variable that a program can have")),
            _ => Err(wrong(&format!("{name}.{key}"), "a string")),
        };
        read.into_iter().map(variable).collect()
    }

    pub(super) fn proxy(&self) -> Result<Option<AgentProxy>, ParamError> {
        let Some(raw) = self.some("agentProxy") else { return Ok(None) };
        let modes = || wrong("agentProxy", r#"{"mode":"system"} or {"mode":"custom","customUrl":string}"#);
        let read: Value = serde_json::from_str(raw.get()).map_err(unreadable("agentProxy"))?;
        match (read["mode"].as_str(), read["customUrl"].as_str()) {
            (Some("system"), _) => Ok(Some(AgentProxy::System)),
            (Some("custom"), Some(url)) => Ok(Some(AgentProxy::Custom(url.to_owned()))),
            _ => Err(modes()),
        }
    }

    fn optional_text(&self, name: &str) -> Option<String> {
        self.member(name).and_then(text).map(String::from)
    }
}

pub(super) fn wrong(name: &str, what: &'static str) -> ParamError {
    ParamError::Wrong { name: name.to_owned(), what }
}

fn unreadable(name: &'static str) -> impl Fn(serde_json::Error) -> ParamError {
    move |error| ParamError::Unreadable { name, why: error.to_string() }
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && !key.contains(['=', '\0'])
}

struct Known;

impl<'de> Visitor<'de> for Known {
    type Value = Vec<(&'static str, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Self::Value = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let Some(known) = KNOWN.iter().find(|known| **known == name.0) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw = map.next_value()?;
            match found.iter_mut().find(|(there, _)| there == known) {
                Some(place) => place.1 = raw,
                None => found.push((known, raw)),
            }
        }
        Ok(found)
    }
}
