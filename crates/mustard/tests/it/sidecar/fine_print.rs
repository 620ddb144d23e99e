//! The fine print: rules that are easily forgotten, each of which some host relies on.

use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::sidecar::Budgets;
use serde_json::{Value, json};

use super::kit::{Cuts, LONG, SLOW, Talk, answers, auth, both, both_cut, frame, number, policy, responses};

fn finite(n: f64) -> Value {
    json!({"Number": {"Finite": n}})
}

#[test]
fn a_small_conversation_has_these_bytes() {
    let mut talk = Talk::new(Framing::Lines, Cuts::InTwo);
    talk.put_text(r#"{"protocol_version":2,"id":1,"method":"compile","source":"1 +"}"#);
    let program = talk.compile("ask(1)");
    let id = program.id("program_id");
    let start = format!(
        r#"{{"protocol_version":2,"id":7,"method":"start","program_id":"{id}","options":{{"capabilities":["ask"]}}}}"#
    );
    talk.put_text(&start);
    let step = talk.hear().0.pop().unwrap();
    let (snapshot, policy) = (step.id("snapshot_id"), step.id("policy_id"));
    talk.resume(&step, number(2.0));
    let (lines, end) = talk.hear_cut();
    assert_eq!(end, Ok(()));
    let lines = String::from_utf8(lines).unwrap();
    let coded =
        |name: &str| lines.split(&format!("\"{name}\":\"")).nth(1).unwrap().split('"').next().unwrap();
    let (program_base64, snapshot_base64) = (coded("program_base64"), coded("snapshot_base64"));
    let lines: Vec<&str> = lines.lines().collect();
    assert!(
        lines[0].starts_with(r#"{"protocol_version":2,"id":1,"ok":false,"error":"Parse: "#),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1..],
        [
            format!(
                r#"{{"protocol_version":2,"id":1,"ok":true,"result":{{"kind":"program","program_id":"{id}","program_base64":"{program_base64}"}}}}"#
            ),
            format!(
                r#"{{"protocol_version":2,"id":7,"ok":true,"result":{{"kind":"step","step":{{"type":"suspended","capability":"ask","args":[{{"Number":{{"Finite":1.0}}}}],"snapshot_base64":"{snapshot_base64}"}},"snapshot_id":"{snapshot}","policy_id":"{policy}"}}}}"#
            ),
            r#"{"protocol_version":2,"id":2,"ok":true,"result":{"kind":"step","step":{"type":"completed","value":{"Number":{"Finite":2.0}}}}}"#.to_owned(),
        ]
    );
    // The same in frames: the header is the line without base64, the bytes follow it.
    let mut talk = Talk::new(Framing::Binary, Cuts::InTwo);
    talk.put_text(&start);
    talk.sent
        .splice(.., frame(br#"{"protocol_version":2,"id":1,"method":"compile","source":"ask(1)"}"#, b""));
    talk.put_text(&start);
    let bare = |line: &str, name: &str, value: &str| line.replace(&format!(r#","{name}":"{value}""#), "");
    let expected = [
        frame(bare(lines[1], "program_base64", program_base64).as_bytes(), &program.blob),
        frame(bare(lines[2], "snapshot_base64", snapshot_base64).as_bytes(), &step.blob),
    ];
    assert_eq!(talk.hear_cut(), (expected.concat(), Ok(())));
}

#[test]
fn header_and_blob_of_a_mebibyte_together_are_read_and_one_byte_more_is_not() {
    let header = br#"{"protocol_version":2,"id":1,"method":"start","options":{}}"#;
    for (blob, answered) in [(1_048_576 - header.len(), 1), (1_048_577 - header.len(), 0)] {
        let bytes = frame(header, &vec![7; blob]);
        let (output, end) = SLOW.check(&bytes, |pieces| answers(pieces, Framing::Binary, Budgets::USUAL));
        let said = responses(&output, Framing::Binary);
        assert_eq!((said.len(), end.is_ok()), (answered, answered == 1));
        if let [said] = &said[..] {
            assert!(said.error().starts_with("Serialization: "), "{}", said.error());
        }
    }
}

#[test]
fn members_may_come_in_any_order() {
    both(|talk| {
        talk.put_text(r#"{"source":"40 + 2","method":"compile","id":1,"protocol_version":2}"#);
        let program = talk.hear().0[0].id("program_id");
        talk.put_text(&format!(
            r#"{{"profile":false,"options":{{"limits":{{}},"inputs":{{}}}},"program_id":"{program}","method":"start","id":2,"protocol_version":2}}"#
        ));
        let (all, end) = talk.hear();
        assert_eq!((all[1].value(), end), (&finite(42.0), Ok(())));
    });
}

#[test]
fn a_member_that_is_known_and_comes_twice_ends_the_session_wherever_it_is() {
    for bad in [
        r#"{"protocol_version":2,"protocol_version":2,"id":1,"method":"compile","source":""}"#,
        r#"{"protocol_version":2,"id":1,"method":"start","options":{},"options":{}}"#,
        r#"{"protocol_version":2,"id":1,"method":"start","options":{"capabilities":[],"capabilities":[]}}"#,
        r#"{"protocol_version":2,"id":1,"method":"start","options":{"limits":{"call_depth_limit":1,"call_depth_limit":1}}}"#,
        r#"{"protocol_version":2,"id":1,"method":"resume","payload":{"type":"cancelled","type":"cancelled"}}"#,
        r#"{"protocol_version":2,"id":1,"method":"resume","payload":{"type":"cancelled"},"policy":{"limits":{},"limits":{}}}"#,
    ] {
        both(|talk| {
            talk.put_text(bad);
            let (all, end) = talk.hear();
            assert!(all.is_empty(), "{bad}");
            assert!(end.unwrap_err().contains("invalid request header"), "{bad}");
        });
    }
}

#[test]
fn a_capability_may_be_granted_twice_and_need_not_be_a_name() {
    both(|talk| {
        let step = talk.run("globalThis['tools.search']('x')", &["tools.search", "tools.search"]);
        assert_eq!(step.call(), ("tools.search", &json!([{"String": "x"}])));
        assert_eq!(talk.resume(&step, number(1.0)).value(), &finite(1.0));
    });
}

#[test]
fn equal_terms_have_one_policy_id_and_others_have_another() {
    both(|talk| {
        let mut id = |options: Value| talk.start("a()", options).id("policy_id");
        let usual = id(json!({"capabilities": ["a", "b"]}));
        assert_eq!(usual, id(json!({"capabilities": ["a", "b"], "limits": {"call_depth_limit": null}})));
        for other in [
            json!({"capabilities": ["b", "a"]}),
            json!({"capabilities": ["a", "b", "b"]}),
            json!({"capabilities": ["a", "b"], "limits": {"call_depth_limit": 256}}),
        ] {
            assert_ne!(usual, id(other));
        }
    });
}

#[test]
fn beside_a_policy_in_full_no_auth_is_looked_at_and_beside_a_cached_id_no_inner_one() {
    both(|talk| {
        let step = talk.run("ask() + 1", &["ask"]);
        let id = step.id("snapshot_id");
        let nonsense = json!({"snapshot_key_base64": "!", "snapshot_key_digest": "", "snapshot_token": "x"});
        let mut full = policy(&id, &["ask"]);
        full["extra"] = json!({"ignored": [null]});
        let raw = json!({"method": "resume", "policy": full, "auth": nonsense, "payload": number(1.0)});
        assert_eq!(talk.say(raw, &step.blob).value(), &finite(2.0));
        full["snapshot_id"] = json!("another");
        let cached = json!({"method": "resume", "snapshot_id": id, "policy": full, "payload": number(2.0)});
        assert_eq!(talk.say(cached, b"").value(), &finite(3.0));
    });
}

/// The key is wrong, the content is nonsense, a capability is missing, a limit is exceeded and the answer names no call:
/// with each mistake that is mended the next is said.
#[test]
fn of_many_mistakes_in_a_resume_the_first_in_order_is_said() {
    both_cut(LONG, |talk| {
        talk.say(json!({"method": "hello", "features": ["batch"]}), b"");
        let step = talk.run("const f = spare; ask(); f()", &["ask", "spare"]);
        let id = step.id("snapshot_id");
        let answer = json!({"type": "answers", "answers": [{"call_id": 9, "payload": number(1.0)}]});
        let mut request = json!({"method": "resume", "snapshot_id": "0".repeat(64), "payload": answer});
        let mut expect = |request: &Value, words: &str| {
            for blob in [&step.blob[..], b""] {
                if blob.is_empty() && words.contains("match snapshot bytes") {
                    continue;
                }
                let said = talk.say(request.clone(), blob);
                assert!(said.error().starts_with(words), "{} should be {words}", said.error());
            }
        };
        expect(&request, "snapshot_id did not match snapshot bytes");
        request["snapshot_id"] = json!(id);
        expect(&request, "resume requires policy or policy_id");
        request["policy"] = policy(&id, &["ask"]);
        request["policy"]["snapshot_token"] = json!("");
        request["policy"]["limits"] = json!(null);
        expect(&request, "raw snapshot restore requires explicit limits");
        request["policy"]["limits"] = json!({"call_depth_limit": 0, "instruction_budget": 1});
        expect(&request, "raw snapshot restore rejected a tampered or unauthenticated snapshot");
        request["policy"]["snapshot_token"] = auth(&id, b"key")["snapshot_token"].clone();
        expect(&request, "Serialization: snapshot policy rejected unauthorized capability `spare`");
        request["policy"]["capabilities"] = json!(["ask", "spare"]);
        expect(&request, "Limit: call depth limit exceeded");
        request["policy"]["limits"] = json!({"instruction_budget": 1});
        expect(&request, "Limit: instruction budget exhausted");
        request["policy"]["limits"] = json!({});
        expect(&request, "call 9 is not outstanding");
        request["payload"] = number(1.0);
        assert_eq!(talk.say(request, b"").call().0, "spare");
    });
}

#[test]
fn details_that_are_null_are_absent_and_those_that_are_the_guests_null_are_there() {
    both(|talk| {
        let step = talk.run("try { ask() } catch (e) { `${'details' in e} ${e.details}` }", &["ask"]);
        let error = |details: Value| json!({"type": "error", "error": {"name": "E", "message": "m", "details": details}});
        for (details, seen) in [(json!(null), "false undefined"), (json!("Null"), "true null")] {
            assert_eq!(talk.resume(&step, error(details)).value(), &json!({"String": seen}));
        }
    });
}

#[test]
fn a_resume_is_measured_if_the_host_asks() {
    both(|talk| {
        let step = talk.run("ask()", &["ask"]);
        let mut request = talk.cached(&step, number(1.0));
        request["profile"] = json!(true);
        let said = talk.say(request, b"");
        assert!(said.header["profile"]["execution_ns"].is_u64(), "{}", said.header);
    });
}

#[test]
fn a_console_in_async_code_answers_a_promise_of_nothing() {
    both(|talk| {
        let step = talk
            .run("(async () => `${typeof console.log(1).then} ${await console.log(2)}`)()", &["console.log"]);
        let step = talk.resume(&step, number(5.0));
        assert_eq!(step.call(), ("console.log", &json!([finite(2.0)])));
        assert_eq!(talk.resume(&step, number(5.0)).value(), &json!({"String": "function undefined"}));
    });
}

#[test]
fn members_of_arrays_that_are_no_elements_stay_behind() {
    both(|talk| {
        let said = talk.run("const a = [1]; a.extra = 2; a", &[]);
        assert_eq!(said.value(), &json!({"Array": [finite(1.0)]}));
    });
}

#[test]
fn what_comes_in_has_to_fit_into_the_heap() {
    both_cut(SLOW, |talk| {
        let options = |n: usize| json!({"inputs": {"x": {"String": "x".repeat(n)}}, "limits": {"heap_limit_bytes": 300_000}, "capabilities": ["ask"]});
        assert_eq!(talk.start("x.length", options(1000)).value(), &finite(1000.0));
        assert!(talk.start("x.length", options(400_000)).error().starts_with("Limit: heap limit exceeded"));
        let step = talk.start("ask()", options(10));
        let answer = json!({"type": "value", "value": {"String": "x".repeat(400_000)}});
        assert!(talk.resume(&step, answer).error().starts_with("Limit: heap limit exceeded"));
    });
}

#[test]
fn limits_that_hold_nothing_fail_at_the_start() {
    both(|talk| {
        for (limits, words) in [
            (json!({"instruction_budget": 0}), "Limit: instruction budget exhausted"),
            (json!({"heap_limit_bytes": 10}), "Limit: heap limit exceeded"),
            (json!({"allocation_budget": 1}), "Limit: allocation budget exhausted"),
            (json!({"call_depth_limit": 0}), "Limit: call depth limit exceeded"),
        ] {
            let said = talk.start("1", json!({"limits": limits}));
            assert!(said.error().starts_with(words), "{limits}: {}", said.error());
        }
    });
}

#[test]
fn a_script_is_the_first_frame_and_as_many_as_the_limit_may_be_there() {
    both(|talk| {
        let source = "const f = n => n > 1 ? f(n - 1) + 1 : 1; f(n)";
        let mut run = |n: f64| {
            let options = json!({"inputs": {"n": finite(n)}, "limits": {"call_depth_limit": 10}});
            talk.start(source, options)
        };
        assert_eq!(run(9.0).value(), &finite(9.0));
        assert!(run(10.0).error().starts_with("Limit: call depth limit exceeded"));
    });
}

#[test]
fn a_rejection_names_the_async_functions_it_went_through() {
    both(|talk| {
        let source = "async function inner() { await 0; throw new Error('no'); }\nasync function outer() { await inner(); }\nouter()";
        let said = talk.run(source, &[]);
        let lines: Vec<&str> = said.error().lines().collect();
        assert!(lines[0].starts_with("Runtime: Error: no ["), "{lines:?}");
        assert!(lines[1].starts_with("  at inner ["), "{lines:?}");
    });
}

#[test]
fn a_syntax_error_has_no_bytes_and_what_is_refused_has_them() {
    both(|talk| {
        let compile = |source: &str| json!({"method": "compile", "source": source});
        assert!(!talk.say(compile("let x = ;"), b"").error().contains('['));
        let refused = talk.say(compile("1; import('x')"), b"");
        assert_eq!(refused.error(), "Validation: dynamic import() is not supported [3..9]");
    });
}

#[test]
fn work_that_nobody_waits_for_ends_with_the_script() {
    both(|talk| {
        let said = talk.run("(async () => { await new Promise(() => {}); })(); 1", &[]);
        assert_eq!(said.value(), &finite(1.0));
    });
}
