//! The errors of the dialect: each has a number, and a word that hosts branch on.

use outrigger_wire::rpc::{Code, ErrorObject, code};
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::ParamError;

/// The longest message of an error, in characters.
pub const MAX_MESSAGE: usize = 1024;

/// What sort of failure an error is: the stable word in its member `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The line is not JSON.
    Parse,
    /// It is no request, or what it names is not there.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// The params do not fit.
    InvalidParams,
    /// A defect of the runtime, or its storage failed.
    Internal,
    /// A budget is used up.
    BudgetExhausted,
    /// Consent or a grant is missing.
    PolicyDenied,
    /// A tool could not be dispatched.
    ToolFailed,
    /// The runtime is shutting down, or a server behind it went away.
    TransportClosed,
    /// It took too long.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
}

impl Kind {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::InvalidRequest => "invalid_request",
            Self::MethodNotFound => "method_not_found",
            Self::InvalidParams => "invalid_params",
            Self::Internal => "internal",
            Self::BudgetExhausted => "budget_exhausted",
            Self::PolicyDenied => "policy_denied",
            Self::ToolFailed => "tool_failed",
            Self::TransportClosed => "transport_closed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The number that usually goes with it.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Parse => code::PARSE_ERROR,
            Self::InvalidRequest => code::INVALID_REQUEST,
            Self::MethodNotFound => code::METHOD_NOT_FOUND,
            Self::InvalidParams => code::INVALID_PARAMS,
            Self::Internal | Self::Timeout | Self::Cancelled => code::INTERNAL_ERROR,
            Self::BudgetExhausted => code::steerable::BUDGET_EXHAUSTED,
            Self::PolicyDenied => code::steerable::POLICY_DENIED,
            Self::ToolFailed => code::steerable::TOOL_FAILED,
            Self::TransportClosed => code::steerable::TRANSPORT_CLOSED,
        }
    }

    /// An error of this kind.
    pub fn error(self, message: impl AsRef<str>) -> ErrorObject {
        self.error_with_code(self.code(), message)
    }

    /// An error of this kind with another number than the usual one.
    pub fn error_with_code(self, code: Code, message: impl AsRef<str>) -> ErrorObject {
        ErrorObject::new(code, cut(message.as_ref())).with_member("kind", word(self))
    }
}

/// A session, a trace or a record that is not there.
pub fn not_found(message: impl AsRef<str>) -> ErrorObject {
    Kind::InvalidRequest.error_with_code(code::steerable::NOT_FOUND, message)
}

/// The storage failed.
pub fn storage_failed(message: impl AsRef<str>) -> ErrorObject {
    Kind::Internal.error_with_code(code::steerable::NOT_FOUND, message)
}

/// An error with details for programs.
#[must_use]
pub fn with_data(error: ErrorObject, data: &Value) -> ErrorObject {
    match serde_json::value::to_raw_value(data) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}

impl From<ParamError> for ErrorObject {
    fn from(error: ParamError) -> Self {
        Kind::InvalidParams.error(error.to_string())
    }
}

fn word(kind: Kind) -> Box<RawValue> {
    // A word of letters in quotes is JSON.
    RawValue::from_string(format!("\"{}\"", kind.word())).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// At most as many characters as an error may have.
fn cut(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        None => message.to_owned(),
        Some(_) => message.chars().take(MAX_MESSAGE - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_at_most_1024_characters() {
        let whole = Kind::Internal.error("ü".repeat(1024));
        assert_eq!(whole.message.chars().count(), 1024);
        assert!(!whole.message.ends_with('…'));
        let cut = Kind::Internal.error("ü".repeat(1025));
        assert_eq!(cut.message.chars().count(), 1024);
        assert!(cut.message.ends_with('…'));
    }

    #[test]
    fn every_kind_has_its_number() {
        let table = [
            (Kind::Parse, -32700, "parse"),
            (Kind::InvalidRequest, -32600, "invalid_request"),
            (Kind::MethodNotFound, -32601, "method_not_found"),
            (Kind::InvalidParams, -32602, "invalid_params"),
            (Kind::Internal, -32603, "internal"),
            (Kind::BudgetExhausted, -32001, "budget_exhausted"),
            (Kind::PolicyDenied, -32002, "policy_denied"),
            (Kind::ToolFailed, -32003, "tool_failed"),
            (Kind::TransportClosed, -32005, "transport_closed"),
        ];
        for (kind, number, word) in table {
            let error = kind.error("x");
            assert_eq!(
                (error.code, error.member("kind").unwrap().get()),
                (Code(number), &*format!("\"{word}\""))
            );
        }
        assert_eq!(storage_failed("x").code, Code(-32004));
    }

    #[test]
    fn what_is_not_there_has_its_own_number() {
        let error = not_found("session not found: x");
        assert_eq!(error.code, Code(-32004));
        assert_eq!(error.member("kind").unwrap().get(), "\"invalid_request\"");
    }
}
