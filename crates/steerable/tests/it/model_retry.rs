//! When a call is made again, and when it is not.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::model::{Failure, FailureKind};
use serde_json::json;

use crate::model::key;
use crate::model_kit::{call, heard, hi};
use crate::server::{Answer, Server};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_provider_that_is_busy_twice_is_asked_three_times,
        a_provider_that_keeps_failing_is_asked_three_times_and_its_words_are_shown,
        a_key_that_is_refused_is_not_tried_again,
        a_conversation_that_is_too_long_is_said_to_be_so,
        a_provider_that_wants_a_long_wait_is_not_waited_for,
        a_provider_that_wants_a_short_wait_gets_it,
        a_wait_that_would_outlast_the_call_is_not_begun,
        a_provider_that_sends_no_headers_times_out_and_is_asked_again,
        an_address_where_nobody_listens_is_a_failure_of_transport,
        an_address_that_is_none_is_refused_at_once,
        a_redirect_is_not_followed,
        a_key_that_the_provider_echoes_is_not_shown,
        of_a_huge_error_body_only_the_beginning_is_read,
    ]
}

fn a_provider_that_is_busy_twice_is_asked_three_times() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "status,code=429,retry_after=0,fail=2"));
    let expected = [
        "retries 1 rate_limit",
        "retries 2 rate_limit",
        "says Hello ",
        "says world",
        "ends stop",
        "used 11+2=13 cached 3",
    ];
    assert_eq!(lines, expected);
    assert_eq!(outcome.unwrap().attempts, 3);
}

fn a_provider_that_keeps_failing_is_asked_three_times_and_its_words_are_shown() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "status,code=503"));
    assert_eq!(lines, ["retries 1 server", "retries 2 server"]);
    let body = r#"{"error":{"code":"fake_code","message":"fake failure","type":"fake"}}"#;
    let expected = Failure {
        kind: FailureKind::Server,
        message: format!("openai: HTTP 503 (server): {body}"),
        status: Some(503),
        retry_after: None,
    };
    assert_eq!(outcome.unwrap_err(), expected);
    assert_eq!(server.requests().len(), 3);
}

fn a_key_that_is_refused_is_not_tried_again() {
    let server = Server::scenarios();
    for (code, kind) in
        [(401, FailureKind::Auth), (403, FailureKind::Auth), (404, FailureKind::InvalidRequest)]
    {
        let failure = call(&hi(&server.base_url(), &format!("status,code={code}"))).1.unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(code)));
    }
    assert_eq!(server.requests().len(), 3);
}

fn a_conversation_that_is_too_long_is_said_to_be_so() {
    let server = Server::scenarios();
    for code in [400, 413] {
        let failure = call(&hi(&server.base_url(), &format!("overflow,code={code}"))).1.unwrap_err();
        assert_eq!(failure.kind, FailureKind::ContextOverflow);
    }
    assert_eq!(server.requests().len(), 2);
}

fn a_provider_that_wants_a_long_wait_is_not_waited_for() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "status,code=429,retry_after=181"));
    assert_eq!(lines, [""; 0]);
    let failure = outcome.unwrap_err();
    assert_eq!((failure.kind, failure.retry_after), (FailureKind::RateLimit, Some(Duration::from_secs(181))));
    assert_eq!(server.requests().len(), 1);
}

fn a_provider_that_wants_a_short_wait_gets_it() {
    let server = Server::scenarios();
    let begun = Instant::now();
    heard(&hi(&server.base_url(), "status,code=429,retry_after=0.3,fail=1"));
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

fn a_wait_that_would_outlast_the_call_is_not_begun() {
    let server = Server::scenarios();
    let mut request = hi(&server.base_url(), "status,code=429,retry_after=100");
    request.patience.total = Duration::from_secs(60);
    let (lines, outcome) = call(&request);
    assert_eq!(lines, [""; 0]);
    assert_eq!(outcome.unwrap_err().kind, FailureKind::RateLimit);
}

fn a_provider_that_sends_no_headers_times_out_and_is_asked_again() {
    let server = Server::scenarios();
    let mut request = hi(&server.base_url(), "nohdr");
    request.patience.connect = Duration::from_millis(50);
    let (lines, outcome) = call(&request);
    assert_eq!(lines, ["retries 1 timeout", "retries 2 timeout"]);
    assert_eq!(outcome.unwrap_err().message, "openai: no answer within 50ms");
    assert!(server.sees_hangups(3));
}

fn an_address_where_nobody_listens_is_a_failure_of_transport() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (lines, outcome) = call(&hi(&format!("http://user:password@{address}/v1"), "x"));
    assert_eq!(lines, ["retries 1 transport", "retries 2 transport"]);
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transport);
    assert!(failure.message.contains("refused"), "{failure}");
    assert!(!failure.message.contains("password"), "{failure}");
}

fn an_address_that_is_none_is_refused_at_once() {
    let (lines, outcome) = call(&hi("ftp://127.0.0.1", "x"));
    assert_eq!(lines, [""; 0]);
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::InvalidRequest);
    assert_eq!(failure.message, "openai: `ftp` is neither http nor https");
}

fn a_redirect_is_not_followed() {
    let server = Server::start(|_| Answer::json(307, &json!({})).with_header("location", "/elsewhere"));
    let failure = call(&hi(&server.base_url(), "x")).1.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::InvalidRequest, Some(307)));
    assert_eq!(server.requests().len(), 1);
}

fn a_key_that_the_provider_echoes_is_not_shown() {
    let server = Server::start(|got| {
        let echoed = got.header("authorization").unwrap_or("nothing").to_owned();
        match got.json()["model"].as_str() {
            Some("status") => Answer::json(401, &json!({"error": {"message": echoed}})),
            Some("event") => Answer::events(format!("data: {}\n\n", json!({"error": {"message": echoed}}))),
            _ => Answer::events(format!("data: broken {echoed}\n\n")),
        }
    });
    for model in ["status", "event", "line"] {
        let mut request = hi(&server.base_url(), model);
        request.api_key = Some(key());
        request.patience.attempts = 1;
        let failure = call(&request).1.unwrap_err();
        assert!(failure.message.contains("Bearer ***"), "{failure}");
        assert!(!failure.message.contains(key().reveal()), "{failure}");
    }
}

fn of_a_huge_error_body_only_the_beginning_is_read() {
    let server = Server::start(|_| Answer::json(400, &json!("é".repeat(4 << 20))));
    let failure = call(&hi(&server.base_url(), "x")).1.unwrap_err();
    let expected = format!("openai: HTTP 400 (invalid_request): \"{}", "é".repeat(299));
    assert_eq!(failure.message, expected);
}
