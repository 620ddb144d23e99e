//! What a `hello` switches on: batches, release, inspect, deadlines, the world, details of errors, returns, larger frames.

use std::time::Duration;

use serde_json::{Value, json};

use super::kit::{LONG, SLOW, Said, Talk, auth, both, both_cut, number, policy};

#[track_caller]
fn hello(talk: &mut Talk, features: &[&str]) -> Said {
    let said = talk.say(json!({"method": "hello", "features": features}), b"");
    assert_eq!(said.result()["enabled"], json!(features));
    said
}

const FAN: &str = "const f = async () => { const [a, b, c] = await Promise.all([ask('a'), ask('b'), ask('c')]); return `${a}${b}${c}`; }; f()";

fn answers(of: &[(u64, f64)]) -> Value {
    let each = |(id, n): &(u64, f64)| json!({"call_id": id, "payload": number(*n)});
    json!({"type": "answers", "answers": of.iter().map(each).collect::<Vec<_>>()})
}

fn call_ids(said: &Said) -> Vec<u64> {
    let calls = said.result()["step"]["calls"].as_array().expect("calls are listed");
    calls.iter().map(|call| call["call_id"].as_u64().unwrap()).collect()
}

#[test]
fn hello_says_what_there_is_and_switches_on_what_it_knows() {
    both(|talk| {
        let said = talk.say(json!({"method": "hello"}), b"");
        let hello = said.result();
        assert_eq!(hello["kind"], "hello");
        assert_eq!(hello["name"], "outrigger-mustard");
        assert_eq!(hello["protocol_versions"], json!([2]));
        assert_eq!(
            hello["features"],
            json!(["batch", "release", "inspect", "deadline", "world", "error_detail", "return"])
        );
        assert_eq!(hello["enabled"], json!([]));
        assert_eq!(hello["engine"].as_str().unwrap().len(), 16);
        assert_eq!(hello["limits"]["max_frame_bytes"], 1_048_576);
        assert_eq!(hello["sandbox"], json!({"landlock": "none", "seccomp": "none"}));
        let said = talk.say(json!({"method": "hello", "features": ["return", "telepathy", "batch"]}), b"");
        assert_eq!(said.result()["enabled"], json!(["batch", "return"]));
        assert_eq!(
            talk.say(json!({"method": "hello"}), b"").result()["enabled"],
            json!([]),
            "a later one replaces an earlier"
        );
    });
}

#[test]
fn a_batch_lists_every_outstanding_call_and_takes_answers_in_any_order() {
    both(|talk| {
        hello(talk, &["batch"]);
        let step = talk.run(FAN, &["ask"]);
        assert_eq!(call_ids(&step), [1, 2, 3]);
        assert_eq!(step.call(), ("ask", &json!([{"String": "a"}])));
        assert_eq!(
            step.result()["step"]["calls"][1],
            json!({"call_id": 2, "capability": "ask", "args": [{"String": "b"}]})
        );
        let rest = talk.resume(&step, answers(&[(3, 3.0), (1, 1.0)]));
        assert_eq!(call_ids(&rest), [2], "what was not answered is listed again");
        assert_eq!(talk.resume(&rest, answers(&[(2, 2.0)])).value(), &json!({"String": "123"}));
        let done = talk.resume(&step, answers(&[(2, 2.0), (3, 3.0), (1, 1.0)]));
        assert_eq!(done.value(), &json!({"String": "123"}));
    });
}

#[test]
fn a_plain_answer_in_a_batch_is_for_the_first_call() {
    both(|talk| {
        hello(talk, &["batch"]);
        let step = talk.run(FAN, &["ask"]);
        let rest = talk.resume(&step, number(1.0));
        assert_eq!(call_ids(&rest), [2, 3]);
        assert_eq!(talk.resume(&rest, answers(&[(3, 3.0), (2, 2.0)])).value(), &json!({"String": "123"}));
    });
}

#[test]
fn a_wrong_call_id_is_an_error_and_nothing_happens() {
    both(|talk| {
        hello(talk, &["batch"]);
        let step = talk.run(FAN, &["ask"]);
        for (wrong, words) in [
            (answers(&[(1, 1.0), (4, 4.0)]), "call 4 is not outstanding"),
            (answers(&[(0, 1.0)]), "call 0 is not outstanding"),
            (answers(&[(2, 1.0), (2, 1.0)]), "call 2 is answered twice"),
        ] {
            assert_eq!(talk.resume(&step, wrong).error(), words);
        }
        let none = talk.resume(&step, json!({"type": "answers", "answers": []}));
        assert!(none.error().contains("at least one answer"));
        let done = talk.resume(&step, answers(&[(1, 1.0), (2, 2.0), (3, 3.0)]));
        assert_eq!(done.value(), &json!({"String": "123"}));
    });
}

#[test]
fn answers_may_throw_and_call_ids_go_on_in_another_process() {
    both(|talk| {
        hello(talk, &["batch"]);
        let source = "const f = async () => { const r = await Promise.allSettled([ask('a'), ask('b')]); return r.map(x => x.reason?.message ?? x.value).join() + await ask('c'); }; f()";
        let step = talk.run(source, &["ask"]);
        let error = json!({"type": "error", "error": {"name": "E", "message": "no"}});
        let payload = json!({"type": "answers", "answers": [{"call_id": 2, "payload": error}, {"call_id": 1, "payload": number(1.0)}]});
        let mut other = talk.with_another();
        hello(&mut other, &["batch"]);
        let request = json!({"method": "resume", "policy": policy(&step.id("snapshot_id"), &["ask"]), "payload": payload});
        let next = other.say(request, &step.blob);
        assert_eq!(call_ids(&next), [3]);
        assert_eq!(other.resume(&next, answers(&[(3, 3.0)])).value(), &json!({"String": "1,no3"}));
        other.check_cuts();
    });
}

#[test]
fn release_drops_what_is_kept_and_says_how_much_there_was() {
    both(|talk| {
        hello(talk, &["release"]);
        let program = talk.compile("ask()").id("program_id");
        let step = talk.say(
            json!({"method": "start", "program_id": program, "options": {"capabilities": ["ask"]}}),
            b"",
        );
        let ids = json!({"method": "release", "programs": [program, "nonsense"], "snapshots": [step.id("snapshot_id")], "policies": [step.id("policy_id")]});
        assert_eq!(
            talk.say(ids.clone(), b"").result(),
            &json!({"kind": "released", "programs": 1, "snapshots": 1, "policies": 1})
        );
        assert_eq!(
            talk.say(ids, b"").result(),
            &json!({"kind": "released", "programs": 0, "snapshots": 0, "policies": 0})
        );
        assert!(talk.resume(&step, number(1.0)).error().starts_with("unknown snapshot_id"));
        assert!(
            talk.say(json!({"method": "start", "program_id": program, "options": {}}), b"")
                .error()
                .starts_with("unknown program_id")
        );
        let nothing = talk.say(json!({"method": "release"}), b"");
        assert_eq!(nothing.result()["programs"], 0);
    });
}

#[test]
fn inspect_says_what_a_snapshot_waits_for_and_uses_nothing_up() {
    both(|talk| {
        hello(talk, &["inspect"]);
        let source = "function buy(n) {\n  return ask('price', n);\n}\nbuy(3) + buy(4)";
        let step = talk.run(source, &["ask", "spare"]);
        let id = step.id("snapshot_id");
        let by_id = json!({"method": "inspect", "snapshot_id": id, "policy_id": step.id("policy_id"), "auth": auth(&id, b"key")});
        let in_full = json!({"method": "inspect", "policy": policy(&id, &["ask", "spare"])});
        for (request, blob) in [(&by_id, &b""[..]), (&in_full, &step.blob)] {
            let said = talk.say(request.clone(), blob);
            let seen = said.result();
            assert_eq!((&seen["kind"], &seen["snapshot_id"]), (&json!("inspection"), &json!(id)));
            assert_eq!(seen["bytes"], json!(step.blob.len()));
            assert_eq!(
                seen["calls"],
                json!([{"call_id": 1, "capability": "ask", "args": [{"String": "price"}, {"Number": {"Finite": 3.0}}]}])
            );
            assert_eq!(seen["capabilities"], json!(["ask", "spare"]));
            assert_eq!(
                seen["frames"],
                json!([{"function": "buy", "line": 2, "column": 10}, {"function": "<script>", "line": 4, "column": 1}])
            );
            for count in ["instructions_used", "heap_bytes", "heap_records"] {
                assert!(seen[count].as_u64().is_some(), "{count} in {seen}");
            }
        }
        let mut less = in_full;
        less["policy"]["capabilities"] = json!(["ask"]);
        let rejected = "Serialization: snapshot policy rejected unauthorized capability `spare`";
        assert_eq!(talk.say(less, &step.blob).error(), rejected);
        let mut forged = by_id;
        forged["auth"]["snapshot_token"] = json!("0".repeat(64));
        assert!(talk.say(forged, b"").error().contains("tampered or unauthenticated snapshot"));
        assert_eq!(talk.resume(&step, number(1.0)).call().0, "ask");
    });
}

#[test]
fn a_step_that_runs_past_its_deadline_ends_and_can_be_tried_again_from_its_snapshot() {
    both_cut(SLOW, |talk| {
        // Two milliseconds pass at every look at the clock.
        talk.tick = Duration::from_millis(2);
        hello(talk, &["deadline"]);
        let limits = json!({"instruction_budget": 100_000_000});
        let program = talk.compile("ask(); for (let i = 0; i < n; i++) {} 'done'").id("program_id");
        let options = json!({"capabilities": ["ask"], "limits": limits, "inputs": {"n": {"Number": {"Finite": 3_000_000}}}});
        let step = talk.say(
            json!({"method": "start", "program_id": program, "options": options, "deadline_ms": 5}),
            b"",
        );
        for (ms, words) in [(1, Err("Limit: deadline of 1 ms exceeded")), (60_000, Ok("done"))] {
            let mut request = talk.cached(&step, number(1.0));
            request["deadline_ms"] = json!(ms);
            let said = talk.say(request, b"");
            match words {
                Ok(text) => assert_eq!(said.value(), &json!({"String": text})),
                Err(words) => assert!(said.error().starts_with(words), "{}", said.error()),
            }
        }
        let zero = json!({"method": "start", "program_id": program, "options": {}, "deadline_ms": 0});
        assert!(talk.say(zero, b"").error().contains("`deadline_ms` must be more than 0"));
    });
}

#[test]
fn a_world_that_is_given_is_the_world_that_is_seen() {
    both(|talk| {
        hello(talk, &["world"]);
        let program = talk
            .compile("const a = [Math.random(), Date.now()]; ask(); a.push(Date.now(), Math.random()); a")
            .id("program_id");
        let start = |seed: u64| json!({"method": "start", "program_id": program, "options": {"capabilities": ["ask"], "seed": seed, "now_ms": 1234.5}});
        let mut run = |seed: u64| {
            let step = talk.say(start(seed), b"");
            let mut request = talk.cached(&step, number(0.0));
            request["now_ms"] = json!(9999);
            talk.say(request, b"").value()["Array"].clone()
        };
        let (one, again, other) = (run(u64::MAX), run(u64::MAX), run(1));
        assert_eq!(one, again);
        assert_ne!(one[0], other[0]);
        assert_ne!(one[3], other[3], "the state of randomness is part of the snapshot");
        assert_eq!(
            (&one[1], &one[2]),
            (&json!({"Number": {"Finite": 1234.0}}), &json!({"Number": {"Finite": 9999.0}}))
        );
    });
}

#[test]
fn error_details_are_for_programs() {
    both_cut(LONG, |talk| {
        hello(talk, &["error_detail"]);
        let detail = |said: Said| {
            said.error();
            said.header["error_detail"].clone()
        };
        let parse = detail(talk.say(json!({"method": "compile", "source": "let a = 1;\nlet ü = ;"}), b""));
        assert_eq!((&parse["kind"], &parse["code"]), (&json!("Parse"), &json!("parse")));
        assert_eq!(
            (&parse["line"], &parse["column"], &parse["source_line"]),
            (&json!(2), &json!(9), &json!("let ü = ;"))
        );
        let grow = "const a = []; while (1) a.push('x'.repeat(1000) + a.length)";
        let full = detail(talk.start(grow, json!({"limits": {"heap_limit_bytes": 50_000}})));
        assert_eq!((&full["kind"], &full["code"]), (&json!("Limit"), &json!("limit_heap")));
        let thrown = detail(talk.run("function f() {\n  throw new RangeError('far');\n}\nf()", &[]));
        assert_eq!(
            (&thrown["kind"], &thrown["code"], &thrown["name"], &thrown["message"]),
            (&json!("Runtime"), &json!("runtime"), &json!("RangeError"), &json!("RangeError: far"))
        );
        assert_eq!(
            (&thrown["line"], &thrown["source_line"]),
            (&json!(2), &json!("  throw new RangeError('far');"))
        );
        assert_eq!(thrown["frames"][0]["function"], "f");
        assert_eq!(thrown["frames"][1]["function"], "<script>");
        let step = talk.run("ask()", &["ask"]);
        let error = json!({"name": "E", "message": "m", "code": "C", "details": {"String": "d"}});
        let host = detail(talk.resume(&step, json!({"type": "error", "error": error})));
        assert_eq!(
            (&host["name"], &host["error_code"], &host["details"]),
            (&json!("E"), &json!("C"), &json!({"String": "d"}))
        );
        for (request, code) in [
            (json!({"method": "start", "options": {}}), "missing"),
            (json!({"method": "start"}), "shape"),
            (json!({"protocol_version": 9, "method": "start"}), "version"),
            (json!({"method": "start", "program_id": "x", "options": {}}), "unknown_program"),
            (
                json!({"method": "resume", "snapshot_id": "x", "payload": {"type": "cancelled"}}),
                "unknown_snapshot",
            ),
        ] {
            let seen = detail(talk.say(request, b""));
            assert_eq!((&seen["kind"], &seen["code"]), (&json!("Protocol"), &json!(code)));
        }
        let cancelled = detail(talk.resume(&step, json!({"type": "cancelled"})));
        assert_eq!((&cancelled["kind"], &cancelled["code"]), (&json!("Limit"), &json!("cancelled")));
        for (source, code) in [
            ("while (1);", "limit_instructions"),
            ("const f = () => f(); f()", "limit_call_depth"),
            ("new Promise(() => {})", "stuck"),
            ("10n", "boundary"),
        ] {
            let seen = detail(talk.run(source, &[]));
            assert_eq!(seen["code"], json!(code), "{source}: {seen}");
        }
    });
}

#[test]
fn details_of_an_error_are_data_if_they_are_plain_and_text_if_not() {
    both(|talk| {
        hello(talk, &["error_detail"]);
        let data = json!({"Object": {"by": {"Number": {"Finite": 3.0}}, "list": {"Array": ["Null"]}}});
        let step = talk.run("ask()", &["ask"]);
        let error = json!({"name": "E", "message": "m", "details": data});
        let said = talk.resume(&step, json!({"type": "error", "error": error}));
        assert_eq!(said.header["error_detail"]["details"], data);
        let first = said.error().lines().next().unwrap();
        assert!(first.starts_with("Runtime: E: m [details=[object Object]]"), "version 2 says: {first}");
        let said = talk.run("const e = new Error('own'); e.details = [1, () => 2]; throw e", &[]);
        let details = &said.header["error_detail"]["details"];
        assert!(details["String"].is_string(), "a function cannot cross: {details}");
        let said = talk.run("throw new Error('none')", &[]);
        assert!(said.header["error_detail"].get("details").is_none());
    });
}

#[test]
fn an_object_that_is_thrown_is_shown_in_the_detail_and_not_in_the_sentence() {
    both_cut(LONG, |talk| {
        hello(talk, &["error_detail"]);
        let mut thrown = |source: &str| {
            let said = talk.run(source, &[]);
            let first = said.error().lines().next().unwrap().to_owned();
            (first, said.header["error_detail"]["message"].as_str().unwrap().to_owned())
        };
        let (first, message) = thrown("throw { a: 1, 'b c': [true, 'x\\n', null, undefined] }");
        assert!(first.starts_with("Runtime: Uncaught [object Object]"), "{first}");
        assert_eq!(message, r#"Uncaught {"a":1,"b c":[true,"x\n",null,undefined]}"#);
        let (_, message) =
            thrown("throw Array.from({ length: 1000 }, (_, i) => ({ i, text: 'ü'.repeat(500) }))");
        assert!(message.len() < 1000 && message.ends_with(",…]"), "{message}");
        let (first, message) = thrown("throw { f() {} }");
        assert!(first.starts_with(&format!("Runtime: {message}")), "{first} and {message}");
        assert_eq!(thrown("throw 5").1, "Uncaught 5");
    });
}

#[test]
fn a_lenient_return_ends_the_script_with_that_value() {
    both(|talk| {
        hello(talk, &["return"]);
        let source = "if (1) { return ask(1); } 2";
        let strict = talk.say(json!({"method": "compile", "source": source}), b"");
        assert!(strict.error().starts_with("Parse: "));
        let lenient = json!({"method": "compile", "source": source, "lenient_return": true});
        let program = talk.say(lenient, b"").id("program_id");
        let step = talk.say(
            json!({"method": "start", "program_id": program, "options": {"capabilities": ["ask"]}}),
            b"",
        );
        assert_eq!(talk.resume(&step, number(3.0)).value(), &json!({"Number": {"Finite": 3.0}}));
        let strict = talk.say(json!({"method": "compile", "source": source}), b"");
        assert!(strict.error().starts_with("Parse: "), "the same text by other rules is another program");
    });
}

#[test]
fn a_host_may_ask_for_larger_frames_up_to_a_ceiling() {
    both_cut(SLOW, |talk| {
        let padded = |bytes: usize| json!({"method": "compile", "source": "1", "padding": " ".repeat(bytes)});
        let said = talk.say(json!({"method": "hello", "max_frame_bytes": 2_000_000}), b"");
        assert_eq!(said.result()["limits"]["max_frame_bytes"], 2_000_000);
        talk.say(padded(1_900_000), b"").id("program_id");
        let said = talk.say(json!({"method": "hello", "max_frame_bytes": u64::MAX}), b"");
        let limits = &said.result()["limits"];
        assert_eq!(limits["max_frame_bytes"], limits["max_frame_bytes_ceiling"]);
        talk.say(json!({"method": "hello"}), b"");
        talk.put(&padded(1_900_000), b"");
        assert!(talk.hear().1.unwrap_err().contains("exceeds maximum size of 1048576 bytes"));
    });
}
