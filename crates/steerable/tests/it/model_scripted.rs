//! The scripted provider: a file in the place of a model.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::chat::{Message, Role};
use outrigger_steerable::model::{FailureKind, Provider, Request};

use crate::model_kit::{QUICK, call, heard};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_script_says_everything_that_a_model_can_say,
        a_scripted_error_is_retried_until_it_goes_away,
        a_scripted_error_that_cannot_go_away_is_the_failure,
        a_script_that_sleeps_longer_than_the_patience_times_out,
        a_script_sleeps_as_long_as_it_says,
        a_script_that_is_wrong_is_refused,
    ]
}

fn request(folder: &tempfile::TempDir, script: &str) -> Request {
    let path = folder.path().join("script.jsonl");
    std::fs::write(&path, script).unwrap();
    let mut request = Request::new(Provider::Scripted, "any", [Message::text(Role::User, "hi")]);
    request.base_url = Some(path.to_str().unwrap().to_owned());
    request.patience = QUICK;
    request
}

fn a_script_says_everything_that_a_model_can_say() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"{"chunks":[{"reasoningDelta":"hm"},{"delta":"a"},{"delta":"b","finishReason":"tool_calls"},{"toolCall":{"id":"c1","name":"f","arguments":{"z":1.0,"a":2}}},{"toolCall":{"id":"c1","name":"g","argumentsText":"{oops"}},{"usage":{"promptTokens":3,"completionTokens":4,"cachedPromptTokens":2}}]}"#;
    let expected = [
        "thinks hm",
        "says a",
        "says b",
        r#"calls c1 f {"z":1.0,"a":2}"#,
        "calls c1 g unread {oops",
        "ends tool_calls",
        "used 3+4=7 cached 2",
    ];
    assert_eq!(heard(&request(&folder, script)), expected);
}

fn a_scripted_error_is_retried_until_it_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let script = "{\"error\":{\"kind\":\"rate_limit\",\"retryAfterMs\":1},\"times\":2}\n{\"chunks\":[{\"delta\":\"at last\"}]}";
    assert_eq!(
        heard(&request(&folder, script)),
        ["retries 1 rate_limit", "retries 2 rate_limit", "says at last"]
    );
}

fn a_scripted_error_that_cannot_go_away_is_the_failure() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"{"error":{"kind":"auth","message":"no such key","status":401}}"#;
    let (lines, outcome) = call(&request(&folder, script));
    assert_eq!(lines, [""; 0]);
    let failure = outcome.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Auth, Some(401)));
    assert_eq!(failure.message, "scripted: no such key");
}

fn a_script_that_sleeps_longer_than_the_patience_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&folder, r#"{"chunks":[{"delta":"a"},{"sleepMs":3600000},{"delta":"b"}]}"#);
    request.patience.idle = Duration::from_millis(20);
    let (lines, outcome) = call(&request);
    assert_eq!(lines, ["says a"]);
    assert_eq!(outcome.unwrap_err().kind, FailureKind::Timeout);
}

fn a_script_sleeps_as_long_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let script = r#"{"delayMs":30,"chunks":[{"delta":"a"},{"sleepMs":30},{"delta":"b"}]}"#;
    assert_eq!(heard(&request(&folder, script)), ["says a", "says b"]);
    assert!(begun.elapsed() >= Duration::from_millis(60));
}

fn a_script_that_is_wrong_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let failure = call(&request(&folder, "{\"chunks\":[]}\n{\"chunk\":[]}")).1.unwrap_err();
    assert_eq!(failure.kind, FailureKind::InvalidRequest);
    assert_eq!(failure.message, "scripted: line 2 of the script: it must have either `chunks` or `error`");
}
