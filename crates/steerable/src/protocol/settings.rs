//! What `config.get` shows and `config.set` changes.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::PROTOCOL_VERSION;
use super::fields::{Fields, ParamError};

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What happens.
    Info,
    /// What somebody should look at.
    Warning,
    /// What failed.
    Error,
}

impl LogLevel {
    /// All levels by their words.
    pub const WORDS: [(&str, Self); 4] =
        [("DEBUG", Self::Debug), ("INFO", Self::Info), ("WARNING", Self::Warning), ("ERROR", Self::Error)];

    /// The word on the wire, on the command line and in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }

    /// The level of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, level)| *level)
    }
}

/// What a host can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How much is logged.
    pub log_level: LogLevel,
    /// How long a shutdown waits for what is under way.
    pub grace_period: Duration,
    /// How long a provider has to connect and begin to answer.
    pub connect_timeout: Duration,
    /// How long a provider may be silent.
    pub idle_timeout: Duration,
    /// How long a call of a model may take.
    pub total_timeout: Duration,
    /// How long a call of a tool may take.
    pub tool_timeout: Duration,
    /// How often a call of a model is tried.
    pub retry_max_attempts: u32,
    /// How many calls `tool.invoke` may make while the process lives, those of scripts included; 0 is any number.
    pub max_tool_calls: u64,
}

/// The longest times that can be set.
const DAY: f64 = 86_400.0;

/// The most attempts that can be set.
const MOST_ATTEMPTS: u64 = 20;

impl Settings {
    /// What holds until somebody sets something.
    pub const STANDARD: Self = Self {
        log_level: LogLevel::Info,
        grace_period: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(30),
        idle_timeout: Duration::from_secs(300),
        total_timeout: Duration::from_secs(1800),
        tool_timeout: Duration::from_secs(300),
        retry_max_attempts: 3,
        max_tool_calls: 0,
    };

    /// What `config.set` makes of these. All members are judged before any counts.
    ///
    /// # Errors
    /// The first member that is unknown, read-only or wrong.
    pub fn changed_by(self, params: Option<&RawValue>) -> Result<Self, ParamError> {
        let fields = Fields::of(params)?;
        for name in fields.names() {
            match name {
                "logLevel"
                | "gracePeriodSeconds"
                | "connectTimeoutSeconds"
                | "idleTimeoutSeconds"
                | "totalTimeoutSeconds"
                | "toolTimeoutMs"
                | "retryMaxAttempts"
                | "maxToolCalls" => {
                    if fields.raw(name).is_none() {
                        return Err(fields.wrong(name, "something other than null"));
                    }
                }
                "version" | "protocolVersion" => {
                    return Err(fields.wrong(name, "left alone: it cannot be set"));
                }
                _ => {
                    let shown: String = name.chars().take(60).collect();
                    return Err(ParamError::new(shown, "a setting; there is none of this name"));
                }
            }
        }
        let level = fields.word("logLevel", &LogLevel::WORDS)?;
        let attempts = fields.count("retryMaxAttempts", 1)?;
        if attempts.is_some_and(|attempts| attempts > MOST_ATTEMPTS) {
            return Err(fields.wrong("retryMaxAttempts", format!("at most {MOST_ATTEMPTS}")));
        }
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
        let tool_timeout = fields.millis("toolTimeoutMs")?;
        Ok(Self {
            log_level: level.unwrap_or(self.log_level),
            grace_period: seconds(&fields, "gracePeriodSeconds", 0.0)?.unwrap_or(self.grace_period),
            connect_timeout: seconds(&fields, "connectTimeoutSeconds", 0.001)?
                .unwrap_or(self.connect_timeout),
            idle_timeout: seconds(&fields, "idleTimeoutSeconds", 0.001)?.unwrap_or(self.idle_timeout),
            total_timeout: seconds(&fields, "totalTimeoutSeconds", 0.001)?.unwrap_or(self.total_timeout),
            tool_timeout: tool_timeout.unwrap_or(self.tool_timeout),
            retry_max_attempts: attempts.unwrap_or(self.retry_max_attempts),
            max_tool_calls: fields.count("maxToolCalls", 0)?.unwrap_or(self.max_tool_calls),
        })
    }

    /// The eight members, as they are kept and shown.
    #[must_use]
    pub fn to_map(self) -> Map<String, Value> {
        let members = json!({
            "logLevel": self.log_level.word(),
            "gracePeriodSeconds": self.grace_period.as_secs_f64(),
            "connectTimeoutSeconds": self.connect_timeout.as_secs_f64(),
            "idleTimeoutSeconds": self.idle_timeout.as_secs_f64(),
            "totalTimeoutSeconds": self.total_timeout.as_secs_f64(),
            "toolTimeoutMs": u64::try_from(self.tool_timeout.as_millis()).unwrap_or(u64::MAX),
            "retryMaxAttempts": self.retry_max_attempts,
            "maxToolCalls": self.max_tool_calls,
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The answer to `config.get`.
    #[must_use]
    pub fn shown(self, version: &str) -> Value {
        let mut members = self.to_map();
        members.insert("version".into(), version.into());
        members.insert("protocolVersion".into(), PROTOCOL_VERSION.into());
        Value::Object(members)
    }
}

fn seconds(fields: &Fields<'_>, name: &str, least: f64) -> Result<Option<Duration>, ParamError> {
    let must = || fields.wrong(name, format!("a number of seconds from {least} to {DAY}"));
    let number = fields.number(name).map_err(|_| must())?;
    match number {
        None => Ok(None),
        Some(number) if (least..=DAY).contains(&number) => Ok(Some(Duration::from_secs_f64(number))),
        Some(_) => Err(must()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(json: &str) -> Result<Settings, String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        Settings::STANDARD.changed_by(Some(&raw)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_is_judged_before_any_is_set() {
        let set_all =
            set(r#"{"logLevel":"DEBUG","gracePeriodSeconds":0,"retryMaxAttempts":1,"toolTimeoutMs":5}"#)
                .unwrap();
        assert_eq!(set_all.log_level, LogLevel::Debug);
        assert_eq!(set_all.grace_period, Duration::ZERO);
        assert_eq!((set_all.retry_max_attempts, set_all.tool_timeout), (1, Duration::from_millis(5)));
        let cases = [
            (r#"{"logLevel":"LOUD"}"#, r#"logLevel must be "DEBUG" or "INFO" or "WARNING" or "ERROR""#),
            (
                r#"{"gracePeriodSeconds":-1}"#,
                "gracePeriodSeconds must be a number of seconds from 0 to 86400",
            ),
            (
                r#"{"gracePeriodSeconds":"5"}"#,
                "gracePeriodSeconds must be a number of seconds from 0 to 86400",
            ),
            (r#"{"version":"2"}"#, "version must be left alone: it cannot be set"),
            (r#"{"volume":11}"#, "volume must be a setting; there is none of this name"),
            (r#"{"idleTimeoutSeconds":null}"#, "idleTimeoutSeconds must be something other than null"),
            (r#"{"retryMaxAttempts":21}"#, "retryMaxAttempts must be at most 20"),
            ("[]", "params must be an object"),
        ];
        for (json, message) in cases {
            assert_eq!(set(json).unwrap_err(), message, "{json}");
        }
    }

    #[test]
    fn what_is_kept_can_be_set_again() {
        let kept = serde_json::to_string(&Settings::STANDARD.to_map()).unwrap();
        assert_eq!(set(&kept).unwrap(), Settings::STANDARD);
    }
}
