//! What goes wrong in a turn: a retry that is only told, or the failure that ends it.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::provider::{Failure, FailureCode};

/// The same notice is not told twice within this time.
const AGAIN: Duration = Duration::from_secs(1);

/// `error`, as the server tells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told {
    /// What.
    pub(super) error: Value,
    /// Whether the server goes on by itself.
    #[serde(default)]
    pub(super) will_retry: bool,
}

/// The notices of retries that were told, so that a storm of them is one.
#[derive(Debug, Default)]
pub(super) struct Notices {
    last: Option<(String, Instant)>,
}

impl Notices {
    /// The members of the notice, unless it was told just now.
    pub(super) fn notice(&mut self, error: &Value) -> Option<[(&'static str, Value); 5]> {
        let message = message_of(error);
        let now = Instant::now();
        if self.last.as_ref().is_some_and(|(last, at)| *last == message && now - *at < AGAIN) {
            return None;
        }
        let (attempt, max) = attempts(error["message"].as_str().unwrap_or_default());
        let notice = [
            ("subtype", json!("codex_reconnecting")),
            ("attempt", json!(attempt)),
            ("max_retries", json!(max)),
            ("retry_delay_ms", json!(0)),
            ("error", json!(message)),
        ];
        self.last = Some((message, now));
        Some(notice)
    }
}

/// The numbers of `Reconnecting... 2/5`.
fn attempts(message: &str) -> (u64, u64) {
    let numbers = message.rsplit(' ').find_map(|word| {
        let (attempt, max) = word.split_once('/')?;
        Some((attempt.parse().ok()?, max.parse().ok()?))
    });
    numbers.unwrap_or((1, 1))
}

/// The failure that an error is.
pub(super) fn failure(error: &Value) -> Failure {
    let code = code(&error["codexErrorInfo"], &message_of(error));
    let mut message = message_of(error);
    if code == FailureCode::Auth {
        message.push_str("\nTo log in: codex login");
    }
    Failure::new(code, message)
}

/// What it says, with its details. Some servers' errors are JSON: then it is the sentence inside.
fn message_of(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("Codex failed and did not say why");
    let inner = serde_json::from_str::<Value>(message).ok();
    let message = inner.as_ref().and_then(|inner| inner["error"]["message"].as_str()).unwrap_or(message);
    match error["additionalDetails"].as_str() {
        Some(details) if !details.is_empty() && details != message => format!("{message}: {details}"),
        Some(_) | None => message.to_owned(),
    }
}

/// Its word, from the kind the server gives it or the HTTP status inside.
fn code(info: &Value, message: &str) -> FailureCode {
    let (word, inside) = match info {
        Value::String(word) => (word.as_str(), &Value::Null),
        Value::Object(object) => match object.iter().next() {
            Some((word, inside)) => (word.as_str(), inside),
            None => ("", &Value::Null),
        },
        _ => ("", &Value::Null),
    };
    if let Some(status) = inside["httpStatusCode"].as_u64() {
        return of_status(status);
    }
    match word {
        "unauthorized" => FailureCode::Auth,
        "usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded" => FailureCode::RateLimit,
        "serverOverloaded" | "internalServerError" | "flexUnavailable" | "policyCapacityUnavailable" => {
            FailureCode::Server
        }
        "contextWindowExceeded" | "badRequest" | "modelNotFound" | "cyberPolicy" => {
            FailureCode::InvalidRequest
        }
        "httpConnectionFailed" | "responseStreamConnectionFailed" | "responseStreamDisconnected" => {
            FailureCode::Server
        }
        // Older servers, and errors without a kind, say it only in words.
        _ => match status_in(message) {
            Some(status) => of_status(status),
            None if message.starts_with("stream disconnected") => FailureCode::Server,
            None => FailureCode::Provider,
        },
    }
}

fn of_status(status: u64) -> FailureCode {
    match status {
        401 | 403 => FailureCode::Auth,
        429 => FailureCode::RateLimit,
        400..=499 => FailureCode::InvalidRequest,
        500..=599 => FailureCode::Server,
        _ => FailureCode::Provider,
    }
}

/// The number of `unexpected status 401 Unauthorized` and `last status: 429 Too Many Requests`.
fn status_in(message: &str) -> Option<u64> {
    let after = message.split("status").nth(1)?.trim_start_matches([':', ' ']);
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: Value) -> (FailureCode, String) {
        let failure = failure(&error);
        (failure.code, failure.message)
    }

    #[test]
    fn the_http_status_inside_decides_the_word() {
        let of = |status: u64| {
            let info = json!({ "httpConnectionFailed": { "httpStatusCode": status } });
            failed(json!({ "message": "no", "codexErrorInfo": info })).0
        };
        assert_eq!(of(401), FailureCode::Auth);
        assert_eq!(of(403), FailureCode::Auth);
        assert_eq!(of(404), FailureCode::InvalidRequest);
        assert_eq!(of(429), FailureCode::RateLimit);
        assert_eq!(of(500), FailureCode::Server);
        assert_eq!(of(529), FailureCode::Server);
    }

    #[test]
    fn a_kind_without_a_status_has_a_word_too() {
        let of = |info: Value| failed(json!({ "message": "no", "codexErrorInfo": info })).0;
        assert_eq!(of(json!("unauthorized")), FailureCode::Auth);
        assert_eq!(of(json!("usageLimitExceeded")), FailureCode::RateLimit);
        assert_eq!(of(json!("internalServerError")), FailureCode::Server);
        assert_eq!(of(json!("contextWindowExceeded")), FailureCode::InvalidRequest);
        assert_eq!(
            of(json!({ "responseStreamDisconnected": { "httpStatusCode": null } })),
            FailureCode::Server
        );
        assert_eq!(of(json!("a word of tomorrow")), FailureCode::Provider);
        assert_eq!(of(json!({})), FailureCode::Provider);
        assert_eq!(of(json!(7)), FailureCode::Provider);
    }

    #[test]
    fn an_error_that_only_has_words_is_read() {
        let of = |message: &str| failed(json!({ "message": message, "codexErrorInfo": "other" })).0;
        assert_eq!(of("unexpected status 401 Unauthorized: no"), FailureCode::Auth);
        assert_eq!(of("exceeded retry limit, last status: 429 Too Many Requests"), FailureCode::RateLimit);
        assert_eq!(of("stream disconnected before completion: x"), FailureCode::Server);
        assert_eq!(of("the status is unknown"), FailureCode::Provider);
    }

    #[test]
    fn a_person_reads_the_sentence_inside_and_what_to_do() {
        let wrapped =
            json!({ "message": r#"{"error":{"message":"the model is tired"}}"#, "codexErrorInfo": "other" });
        assert_eq!(failed(wrapped).1, "the model is tired");
        let detailed = json!({ "message": "no", "additionalDetails": "because" });
        assert_eq!(failed(detailed).1, "no: because");
        let auth = json!({ "message": "no", "codexErrorInfo": "unauthorized" });
        assert_eq!(failed(auth).1, "no\nTo log in: codex login");
        assert_eq!(failed(Value::Null).1, "Codex failed and did not say why");
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_retry_is_told_once_a_second() {
        let mut notices = Notices::default();
        let error = json!({ "message": "Reconnecting... 2/5", "additionalDetails": "cut" });
        let notice = notices.notice(&error).unwrap();
        assert_eq!(notice[1..3], [("attempt", json!(2)), ("max_retries", json!(5))]);
        assert_eq!(notice[4], ("error", json!("Reconnecting... 2/5: cut")));
        assert!(notices.notice(&error).is_none());
        assert!(notices.notice(&json!({ "message": "Reconnecting... 3/5" })).is_some());
        tokio::time::advance(AGAIN).await;
        assert!(notices.notice(&json!({ "message": "Reconnecting... 3/5" })).is_some());
    }
}
