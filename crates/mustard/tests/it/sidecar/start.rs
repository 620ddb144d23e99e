//! Compile and start: programs by id and by bytes, inputs, capabilities, limits.

use serde_json::json;

use super::kit::{SLOW, both, both_cut};
use outrigger_mustard::protocol::ids::ProgramId;

#[test]
fn compile_answers_an_id_and_the_bytes_that_it_is_the_digest_of() {
    both(|talk| {
        let said = talk.compile("const value = 1; value;");
        assert_eq!(said.result()["kind"], "program");
        assert_eq!(said.id("program_id"), ProgramId::of(&said.blob).to_string());
        let again = talk.compile("const value = 1; value;");
        assert_eq!(again.blob, said.blob);
    });
}

#[test]
fn a_program_is_started_by_its_id_by_its_bytes_or_by_both() {
    both(|talk| {
        let said = talk.compile("40 + 2");
        let (id, bytes) = (said.id("program_id"), said.blob);
        let done = json!({"Number": {"Finite": 42.0}});
        let start = |id: Option<&str>| json!({"method": "start", "program_id": id, "options": {}});
        assert_eq!(talk.say(start(Some(&id)), b"").value(), &done);
        assert_eq!(talk.say(start(None), &bytes).value(), &done);
        assert_eq!(talk.say(start(Some(&id)), &bytes).value(), &done);
    });
}

#[test]
fn bytes_from_another_session_seed_the_cache() {
    both(|talk| {
        let mut other = talk.with_another();
        let said = other.compile("40 + 2");
        let id = said.id("program_id");
        let start = |id: Option<&str>| json!({"method": "start", "program_id": id, "options": {}});
        let unknown = talk.say(start(Some(&id)), b"");
        assert!(unknown.error().starts_with(&format!("unknown program_id `{id}`")));
        talk.say(start(None), &said.blob).value();
        talk.say(start(Some(&id)), b"").value();
    });
}

#[test]
fn bytes_and_an_id_that_do_not_belong_together_are_refused_whether_the_id_is_known_or_not() {
    both(|talk| {
        let (one, two) = (talk.compile("1"), talk.compile("2"));
        let mismatch = "program_id did not match program bytes";
        let start = |id: &str| json!({"method": "start", "program_id": id, "options": {}});
        assert_eq!(talk.say(start(&one.id("program_id")), &two.blob).error(), mismatch);
        assert_eq!(talk.say(start(&one.id("program_id").to_uppercase()), &one.blob).error(), mismatch);
        assert_eq!(talk.say(start("nonsense"), &two.blob).error(), mismatch);
        let neither = talk.say(json!({"method": "start", "options": {}}), b"");
        assert_eq!(neither.error(), "start requires program bytes or program_id");
    });
}

#[test]
fn bytes_that_are_no_program_are_refused_again_and_again() {
    both(|talk| {
        let mut bytes = talk.compile("1").blob;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        for _ in 0..2 {
            let said = talk.say(json!({"method": "start", "options": {}}), &bytes);
            assert_eq!(
                said.error(),
                "Serialization: serialized program is damaged: the checksum does not match"
            );
        }
        let said = talk.say(json!({"method": "start", "options": {}}), b"nonsense");
        assert!(said.error().starts_with("Serialization: "));
    });
}

#[test]
fn inputs_are_globals_and_shadow_capabilities_which_shadow_built_ins() {
    both(|talk| {
        let options = json!({
            "inputs": {"user": {"Object": {"name": {"String": "Ada"}}}, "both": {"Bool": true}, "a b": "Null"},
            "capabilities": ["both", "Map", "tools.search"],
        });
        let source = "user.name + typeof both + typeof Map.prototype + globalThis['a b'] + typeof globalThis['tools.search']";
        let said = talk.start(source, options);
        assert_eq!(said.value(), &json!({"String": "Adabooleanundefinednullfunction"}));
    });
}

#[test]
fn what_is_not_granted_does_not_exist() {
    both(|talk| {
        let said = talk.run("typeof fetch_data + typeof console + typeof console.log", &["other"]);
        assert_eq!(said.value(), &json!({"String": "undefinedobjectundefined"}));
    });
}

#[test]
fn limits_that_are_absent_or_null_are_the_defaults() {
    both(|talk| {
        let limits = json!({"instruction_budget": null, "heap_limit_bytes": 8_388_608});
        talk.start("1", json!({"limits": limits})).value();
    });
}

#[test]
fn every_limit_ends_a_run_with_its_own_words_and_no_guest_can_catch_it() {
    both_cut(SLOW, |talk| {
        let guarded = |body: &str| format!("try {{ {body} }} catch {{ 'caught' }} finally {{ while (1); }}");
        let loops = "while (true) {}";
        let deep = "const f = n => f(n + 1) + 1; f(0)";
        let grow = "const a = []; while (true) a.push('x'.repeat(1000) + a.length)";
        let many = "const a = []; while (true) a.push({})";
        let fan = "const f = async () => { const all = []; for (let i = 0; i < 10; i++) all.push(ask(i)); await Promise.all(all); }; f();";
        for (source, limits, words) in [
            (loops, json!({"instruction_budget": 1000}), "Limit: instruction budget exhausted"),
            (loops, json!({}), "Limit: instruction budget exhausted"),
            (deep, json!({"call_depth_limit": 20}), "Limit: call depth limit exceeded"),
            (grow, json!({"heap_limit_bytes": 100_000}), "Limit: heap limit exceeded"),
            (many, json!({"allocation_budget": 1000}), "Limit: allocation budget exhausted"),
            (fan, json!({"max_outstanding_host_calls": 9}), "Limit: outstanding host-call limit exhausted"),
            ("1", json!({"call_depth_limit": 0}), "Limit: call depth limit exceeded"),
        ] {
            for source in [source.to_owned(), guarded(source)] {
                let said = talk.start(&source, json!({"limits": limits, "capabilities": ["ask"]}));
                assert!(said.error().starts_with(words), "{source} with {limits}: {}", said.error());
            }
        }
        let options = json!({"limits": {"max_outstanding_host_calls": 10}, "capabilities": ["ask"]});
        talk.start(fan, options).call();
    });
}

#[test]
fn the_instruction_budget_is_for_the_whole_run_and_not_for_each_step() {
    both(|talk| {
        let source = "for (let i = 0; i < 1000; i++) { ask(i); for (let j = 0; j < 100; j++) {} }";
        let mut said =
            talk.start(source, json!({"limits": {"instruction_budget": 2000}, "capabilities": ["ask"]}));
        for _ in 0..100 {
            if said.header["ok"] == json!(false) {
                break;
            }
            said = talk.resume(&said, json!({"type": "value", "value": "Null"}));
        }
        assert!(said.error().starts_with("Limit: instruction budget exhausted"));
    });
}

#[test]
fn a_run_is_measured_if_the_host_asks() {
    both(|talk| {
        let program = talk.compile("1").id("program_id");
        let start = |profile: bool| json!({"method": "start", "program_id": program, "options": {}, "profile": profile});
        let said = talk.say(start(true), b"");
        let profile = said.header["profile"].as_object().unwrap();
        assert!(
            profile["execution_ns"].is_u64() && profile["response_prepare_ns"].is_u64() && profile.len() == 2
        );
        assert!(talk.say(start(false), b"").header.get("profile").is_none());
        let failed = talk.start("throw 1", json!({}));
        assert!(failed.header.get("profile").is_none());
    });
}

#[test]
fn programs_that_do_not_fit_are_evicted_and_their_bytes_bring_them_back() {
    both_cut(SLOW, |talk| {
        // Room for one program of a hundred kilobytes and what is made of it, not for two.
        talk.budgets.program_bytes = 300_000;
        let padding = " ".repeat(100_000);
        let first = talk.compile(&format!("1;{padding}"));
        let second = talk.compile(&format!("2;{padding}"));
        let start = |id: &str| json!({"method": "start", "program_id": id, "options": {}});
        talk.say(start(&second.id("program_id")), b"").value();
        let said = talk.say(start(&first.id("program_id")), b"");
        let expected = format!(
            "unknown program_id `{}`: it was never here or was evicted; send the program bytes",
            first.id("program_id")
        );
        assert_eq!(said.error(), expected);
        talk.say(start(&first.id("program_id")), &first.blob).value();
    });
}
