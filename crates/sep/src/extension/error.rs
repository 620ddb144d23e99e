//! Why a call to the host has no result.

use std::time::Duration;

use outrigger_wire::rpc::{Code, ErrorObject, code};
use serde_json::Value;

/// Why a call to the host has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostError {
    /// The host answered with an error.
    #[error("`{method}` failed: {message} ({slug}, code {code})")]
    Refused {
        /// What was called.
        method: String,
        /// The stable number.
        code: Code,
        /// The stable word; empty if the host gave none.
        slug: String,
        /// A sentence for people. Not stable.
        message: String,
        /// Details.
        data: Value,
    },
    /// No answer came in time. What was asked for may still happen.
    #[error("`{method}` was not answered within {after:?}")]
    NoAnswer {
        /// What was called.
        method: String,
        /// How long was waited.
        after: Duration,
    },
    /// The request of the host that this call was made for is over: given up by the host, or answered.
    #[error("`{method}` was given up, because the request that it was made for is over")]
    Cancelled {
        /// What was called.
        method: String,
    },
    /// The channel is closed.
    #[error("`{method}` cannot be answered: {why}")]
    Ended {
        /// What was called.
        method: String,
        /// Why it is closed.
        why: String,
    },
    /// The request is longer than the host accepts. It was not sent.
    #[error("`{method}` has {length} bytes, the host takes {limit}")]
    TooLong {
        /// What was called.
        method: String,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The answer is not what was agreed on, or the params cannot be written.
    #[error("`{method}` cannot be understood: {why}")]
    Unreadable {
        /// What was called.
        method: String,
        /// What is wrong.
        why: String,
    },
}

impl HostError {
    pub(super) fn from_host(method: &str, error: &ErrorObject) -> Self {
        let data: Value =
            error.data.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null);
        Self::Refused {
            method: method.to_owned(),
            code: error.code,
            slug: data["sep"].as_str().unwrap_or_default().to_owned(),
            message: error.message.clone(),
            data,
        }
    }

    /// The stable number, if the host answered.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The stable word, if the host answered.
    #[must_use]
    pub fn slug(&self) -> Option<&str> {
        match self {
            Self::Refused { slug, .. } => Some(slug),
            _ => None,
        }
    }

    /// The details, if the host answered.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        match self {
            Self::Refused { data, .. } => Some(data),
            _ => None,
        }
    }

    /// How long to wait before the same call can succeed, if the host said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.data()?["retryAfterMs"].as_u64().map(Duration::from_millis)
    }

    /// Whether the same call can succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        let row = |wanted: Code| code::sep::TABLE.iter().find(|row| row.code == wanted);
        self.code().and_then(row).is_some_and(|row| row.retry == code::Retry::Later)
    }

    /// Whether the host does not know the method in this session: the version is too old, or there is none.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        self.code() == Some(code::METHOD_NOT_FOUND)
    }

    /// Whether a permission is missing.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.code() == Some(code::sep::PERMISSION_DENIED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: Code, data: &str) -> HostError {
        let data = serde_json::value::RawValue::from_string(data.into()).expect("JSON");
        HostError::from_host("host.x", &ErrorObject::new(code, "no").with_data(data))
    }

    #[test]
    fn an_error_of_the_host_says_when_to_come_back() {
        let error =
            refused(code::sep::RATE_LIMITED, r#"{"sep":"rate_limited","retryAfterMs":40,"limit":20}"#);
        assert_eq!(error.retry_after(), Some(Duration::from_millis(40)));
        assert!(error.is_temporary() && !error.is_denied());
        assert_eq!(error.slug(), Some("rate_limited"));
        assert_eq!(error.to_string(), "`host.x` failed: no (rate_limited, code -32020)");
    }

    #[test]
    fn an_error_without_details_is_an_error_all_the_same() {
        let error = refused(Code(-32010), "[]");
        assert_eq!((error.retry_after(), error.slug()), (None, Some("")));
        assert!(error.is_denied() && !error.is_temporary());
    }
}
