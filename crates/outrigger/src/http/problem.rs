//! What went wrong, as a status and as JSON: `{"error":{"code":…,"message":…,"field":…,"hint":…}}`.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::runs::{RequestError, RunsError};

/// An answer that says what went wrong.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    /// For programs; it stays what it is.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
    /// What of the request is meant.
    pub(super) field: Option<String>,
    /// What to do about it.
    pub(super) hint: Option<String>,
    /// What else there is to say, by name; rarely anything, so it takes little room.
    details: Option<Box<Map<String, Value>>>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            field: None,
            hint: None,
            details: None,
            retry_after: None,
        }
    }

    /// The request cannot be understood.
    pub(super) fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// The request is understood, and something in it is not right.
    pub(super) fn unfit(field: &str, message: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_request", message);
        if field.is_empty() { problem } else { problem.at(field) }
    }

    /// Something is wrong on our side.
    pub(super) fn own(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(super) fn busy(code: &'static str, message: impl Into<String>, after: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).again_after(after)
    }

    pub(super) fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn again_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// As it is sent.
    pub(super) fn to_json(&self) -> Value {
        let mut error = self.details.as_deref().cloned().unwrap_or_default();
        error.insert("code".to_owned(), self.code.into());
        error.insert("message".to_owned(), self.message.clone().into());
        for (name, text) in [("field", &self.field), ("hint", &self.hint)] {
            if let Some(text) = text {
                error.insert(name.to_owned(), text.clone().into());
            }
        }
        json!({ "error": error })
    }

    /// What goes beside the body, be it JSON or a page.
    pub(super) fn mark(&self, response: &mut Response) {
        *response.status_mut() = self.status;
        if let Some(after) = self.retry_after {
            // Whole seconds, and never "at once".
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"outrigger\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.to_json().to_string().into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.mark(&mut response);
        response
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let RequestError { field, message } = error;
        Self::unfit(&field, message)
    }
}

impl From<RunsError> for Problem {
    fn from(error: RunsError) -> Self {
        let message = error.to_string();
        match error {
            RunsError::NoSuchRun(_) => Self::not_found("no_such_run", message),
            RunsError::NoSuchApproval { .. } => Self::not_found("no_such_approval", message),
            RunsError::Answered { approval } => {
                let given = serde_json::to_value(&approval.given).unwrap_or_default();
                Self::conflict("answered_already", message)
                    .with("approval", approval.id.0.clone())
                    .with("given", given)
            }
            RunsError::Refused(_) => Self::conflict("refused", message),
            RunsError::Phase { phase, .. } => {
                Self::conflict("wrong_phase", message).with("phase", phase.word())
            }
            RunsError::Request(error) => error.into(),
            RunsError::Full { .. } => Self::busy("queue_full", message, Duration::from_secs(5)),
            RunsError::Draining => Self::busy("draining", message, Duration::from_secs(5)),
            RunsError::Unreadable { .. } | RunsError::Engine(_) => Self::own(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Phase;

    #[test]
    fn every_failure_of_a_run_has_its_status_and_its_code() {
        let check = |error: RunsError, status: u16, code: &str| {
            let problem = Problem::from(error);
            assert_eq!((problem.status.as_u16(), problem.code), (status, code));
        };
        check(RunsError::NoSuchRun("x".into()), 404, "no_such_run");
        check(RunsError::Refused("no".into()), 409, "refused");
        check(RunsError::Phase { phase: Phase::Completed, what: "it is over".into() }, 409, "wrong_phase");
        check(RunsError::Request(RequestError::at("retries", "too many")), 422, "bad_request");
        check(RunsError::Full { queued: 10, limit: 10 }, 503, "queue_full");
        check(RunsError::Draining, 503, "draining");
        check(RunsError::Engine(crate::engine::EngineError::Closed), 500, "internal");
    }

    #[test]
    fn a_problem_says_which_field_and_what_to_do_and_when_to_come_back() {
        let problem = Problem::busy("full", "full", Duration::from_millis(1200)).at("x").hint("wait");
        let expected = json!({"error": {"code": "full", "message": "full", "field": "x", "hint": "wait"}});
        assert_eq!(problem.to_json(), expected);
        let response = problem.into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn who_comes_at_the_wrong_moment_is_never_told_to_come_back_at_once() {
        let response = Problem::busy("full", "full", Duration::ZERO).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
