//! What a request may look like: versions, unknown members, and mistakes that a session survives.

use serde_json::{Value, json};

use super::kit::{Cuts, Talk, both};
use outrigger_mustard::protocol::feature::Framing;

#[test]
fn another_version_is_refused_by_name_and_the_session_goes_on() {
    both(|talk| {
        for (version, shown) in [
            (json!(1), "1"),
            (json!(3), "3"),
            (json!(null), "null"),
            (json!("2"), "\"2\""),
            (json!(2.5), "2.5"),
            (json!([2]), "[2]"),
        ] {
            let said =
                talk.say(json!({"protocol_version": version, "method": "compile", "source": "1"}), b"");
            let expected = format!("unsupported sidecar protocol version {shown}; expected 2");
            assert_eq!(said.error(), expected);
        }
        talk.compile("1");
    });
}

#[test]
fn a_request_without_a_version_is_refused_explicitly() {
    both(|talk| {
        talk.put_text(r#"{"id":3,"method":"compile","source":"1"}"#);
        let (all, end) = talk.hear();
        assert_eq!(end, Ok(()));
        assert_eq!(all[0].error(), "unsupported sidecar protocol version (none); expected 2");
        assert_eq!(all[0].header["id"], 3);
        talk.compile("1");
    });
}

#[test]
fn a_newer_version_is_refused_even_if_its_method_is_not_known() {
    both(|talk| {
        let said = talk.say(json!({"protocol_version": 3, "method": "teleport"}), b"");
        assert_eq!(said.error(), "unsupported sidecar protocol version 3; expected 2");
    });
}

#[test]
fn a_response_has_version_id_ok_and_result_or_error_and_never_null() {
    both(|talk| {
        let good = talk.compile("1");
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&good.header), ["id", "ok", "protocol_version", "result"]);
        assert_eq!(keys(good.result()), ["kind", "program_id"]);
        let bad = talk.say(json!({"method": "compile", "source": "1 +"}), b"");
        assert_eq!(keys(&bad.header), ["error", "id", "ok", "protocol_version"]);
        assert_eq!(bad.header["protocol_version"], 2);
        let done = talk.run("1", &[]);
        assert_eq!(keys(done.result()), ["kind", "step"]);
        let waiting = talk.run("ask()", &["ask"]);
        assert_eq!(keys(waiting.result()), ["kind", "policy_id", "snapshot_id", "step"]);
        assert_eq!(keys(&waiting.result()["step"]), ["args", "capability", "type"]);
    });
}

#[test]
fn unknown_members_are_ignored_everywhere() {
    both(|talk| {
        let program = talk.compile("ask(x)").id("program_id");
        let said = talk.say(
            json!({
                "method": "start", "program_id": program, "extra": {"a": [1]},
                "options": {"inputs": {"x": "Null"}, "capabilities": ["ask"], "limits": {"extra": "y"}, "extra": 1},
            }),
            b"",
        );
        let mut request = talk.cached(&said, json!({"type": "cancelled", "value": 5, "extra": []}));
        request["auth"]["extra"] = json!(1);
        assert!(talk.say(request, b"").error().starts_with("Limit: execution cancelled"));
    });
}

#[test]
fn members_of_extensions_are_ignored_until_a_hello_names_them() {
    both(|talk| {
        let request = json!({"method": "compile", "source": "return 1", "lenient_return": true});
        assert!(talk.say(request, b"").error().starts_with("Parse: "));
        let program = talk.compile("Math.random() + Date.now()").id("program_id");
        let options = json!({"seed": "no number", "now_ms": "none"});
        let request =
            json!({"method": "start", "program_id": program, "options": options, "deadline_ms": "soon"});
        talk.say(request, b"").value();
        let failed = talk.say(json!({"method": "compile", "source": "1 +"}), b"");
        assert!(failed.header.get("error_detail").is_none());
    });
}

/// A request whose JSON and id are sound is answered, whatever else is wrong with it.
#[test]
fn a_mistake_in_a_member_is_named_and_the_session_goes_on() {
    both(|talk| {
        let start = |options: Value| json!({"method": "start", "options": options});
        let resume = |payload: Value| json!({"method": "resume", "payload": payload});
        for (request, named) in [
            (json!({"method": "compile"}), "`source` is missing"),
            (json!({"method": "compile", "source": null}), "`source` must be a string, not null"),
            (json!({"method": "compile", "source": ["1"]}), "`source` must be a string, not an array"),
            (json!({"method": "start"}), "`options` is missing"),
            (start(json!(null)), "`options` must be an object, not null"),
            (start(json!({"inputs": null})), "`inputs` must be an object, not null"),
            (start(json!({"inputs": {"x": 1}})), "`inputs.x`: a structured value must be"),
            (start(json!({"inputs": {"x": {"Bool": 1}}})), "`inputs.x`: `Bool` must hold true or false"),
            (
                start(json!({"capabilities": null})),
                "`options.capabilities` must be an array of strings, not null",
            ),
            (start(json!({"capabilities": [1]})), "`options.capabilities` must be a string, not a number"),
            (start(json!({"limits": null})), "`limits` must be an object, not null"),
            (
                start(json!({"limits": {"heap_limit_bytes": -1}})),
                "`limits.heap_limit_bytes` must be a whole number",
            ),
            (
                start(json!({"limits": {"call_depth_limit": 1.5}})),
                "`limits.call_depth_limit` must be a whole number",
            ),
            (
                start(json!({"limits": {"call_depth_limit": "1"}})),
                "`limits.call_depth_limit` must be a whole number",
            ),
            (
                json!({"method": "start", "options": {}, "profile": null}),
                "`profile` must be true or false, not null",
            ),
            (
                json!({"method": "start", "options": {}, "program_id": 1}),
                "`program_id` must be a string, not a number",
            ),
            (json!({"method": "resume"}), "`payload` is missing"),
            (resume(json!({})), "`payload.type` is missing"),
            (resume(json!({"type": "maybe"})), "unknown `payload.type` `maybe`"),
            (resume(json!({"type": "answers", "answers": []})), "unknown `payload.type` `answers`"),
            (resume(json!({"type": "value"})), "`payload.value` is missing"),
            (resume(json!({"type": "value", "value": null})), "`payload.value`: a structured value must be"),
            (resume(json!({"type": "error"})), "`payload.error` is missing"),
            (resume(json!({"type": "error", "error": {"name": "E"}})), "`error.message` is missing"),
            (
                resume(json!({"type": "error", "error": {"name": "E", "message": "m", "code": 1}})),
                "`error.code` must be a string, not a number",
            ),
            (
                json!({"method": "resume", "payload": {"type": "cancelled"}, "auth": {"snapshot_token": ""}}),
                "`auth.snapshot_key_base64` is missing",
            ),
            (
                json!({"method": "resume", "payload": {"type": "cancelled"}, "policy": []}),
                "`policy` must be an object",
            ),
        ] {
            let said = talk.say(request, b"");
            let error = said.error();
            assert!(
                error.starts_with("invalid request: ") && error.contains(named),
                "{error} should name {named}"
            );
        }
        talk.compile("1");
    });
}

#[test]
fn base64_that_is_none_is_named_and_the_session_goes_on() {
    let mut talk = Talk::new(Framing::Lines, Cuts::InTwo);
    let said = talk.say(json!({"method": "start", "options": {}, "program_base64": "!"}), b"");
    assert!(said.error().starts_with("invalid request: `program_base64` is not base64"));
    let request = json!({"method": "resume", "payload": {"type": "cancelled"}, "snapshot_base64": "AAA"});
    assert!(talk.say(request, b"").error().starts_with("invalid request: `snapshot_base64` is not base64"));
    talk.check_cuts();
}
