//! Something that did not work, as a page that says what and what to do.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::html;

use super::form::FormError;
use super::layout::{Here, Live, Shell, empty, page};
use super::parts::Icon;
use crate::runs::RunsError;
use crate::runs::id::NotARunId;
use crate::runs::request::RequestError;

/// Why there is no page, or why a form did nothing.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what}"))
    }

    /// A field of a form is not what it should be.
    pub(super) fn field(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }
}

impl From<RunsError> for Problem {
    fn from(error: RunsError) -> Self {
        let status = match &error {
            RunsError::NoSuchRun(_) | RunsError::NoSuchApproval { .. } => StatusCode::NOT_FOUND,
            RunsError::Answered { .. } | RunsError::Phase { .. } => StatusCode::CONFLICT,
            RunsError::Refused(_) | RunsError::Request(_) => StatusCode::UNPROCESSABLE_ENTITY,
            RunsError::Full { .. } | RunsError::Draining => StatusCode::SERVICE_UNAVAILABLE,
            RunsError::Unreadable { .. } | RunsError::Engine(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<NotARunId> for Problem {
    fn from(error: NotARunId) -> Self {
        Self::new(StatusCode::NOT_FOUND, error.to_string())
    }
}

impl From<FormError> for Problem {
    fn from(error: FormError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let place = if error.field.is_empty() { String::new() } else { format!("{}: ", error.field) };
        Self::field(format!("{place}{}", error.message))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = match self.status {
            StatusCode::NOT_FOUND => "There is no such thing",
            StatusCode::CONFLICT => "Somebody was faster",
            StatusCode::UNPROCESSABLE_ENTITY => "That does not go",
            StatusCode::SERVICE_UNAVAILABLE => "Not now",
            _ => "That did not work",
        };
        let shell = Shell { title, here: Here::Help, waiting: 0, live: Live::Still };
        let body = page(
            &shell,
            empty(
                Icon::Alert,
                title,
                html! {
                    // The script shows this in place of the page.
                    p data-problem { (self.message) }
                    p { a.button href="/" { "All runs" } }
                },
            ),
        );
        (self.status, Html(body.into_string())).into_response()
    }
}
