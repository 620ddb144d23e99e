//! Resume: which snapshot, by what right, and what a policy refuses, in the order in which it is asked.

use serde_json::{Value, json};

use super::kit::{LONG, Said, Talk, auth, both, both_cut, number, policy};
use outrigger_mustard::protocol::ids::SnapshotId;

const ASK: &str = "ask(1) + ask(2)";

fn raw(policy: Value, payload: Value) -> Value {
    json!({"method": "resume", "policy": policy, "payload": payload})
}

/// Both calls answered by cached ids.
#[track_caller]
fn finish(talk: &mut Talk, first: &Said) -> Value {
    let second = talk.resume(first, number(10.0));
    assert_eq!(second.call(), ("ask", &json!([{"Number": {"Finite": 2.0}}])));
    talk.resume(&second, number(5.0)).value().clone()
}

#[test]
fn a_suspended_step_names_capability_arguments_snapshot_and_policy_and_carries_the_bytes() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        assert_eq!(step.call(), ("ask", &json!([{"Number": {"Finite": 1.0}}])));
        assert_eq!(step.id("snapshot_id"), SnapshotId::of(&step.blob).to_string());
        assert_eq!(step.id("policy_id").len(), 64);
        let next = talk.resume(&step, number(10.0));
        assert_eq!(next.id("policy_id"), step.id("policy_id"), "a resumed step names its policy as well");
        assert_eq!(next.id("snapshot_id"), SnapshotId::of(&next.blob).to_string());
    });
}

#[test]
fn a_run_is_resumed_with_a_value_an_error_or_a_cancellation() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        assert_eq!(finish(talk, &step), json!({"Number": {"Finite": 15.0}}));
        let step = talk.run("try { ask() } catch (e) { `${e instanceof Error} ${e.name} ${e.message} ${e.code} ${e.details.a} ${Object.keys(e)}` }", &["ask"]);
        let error = json!({"name": "HttpError", "message": "gone", "code": "E410", "details": {"Object": {"a": {"Bool": true}}}});
        let said = talk.resume(&step, json!({"type": "error", "error": error}));
        assert_eq!(
            said.value(),
            &json!({"String": "true HttpError gone E410 true name,message,code,details"})
        );
        let step = talk.run("try { ask() } catch { 'caught' } finally { ask() }", &["ask"]);
        assert!(
            talk.resume(&step, json!({"type": "cancelled"}))
                .error()
                .starts_with("Limit: execution cancelled")
        );
    });
}

#[test]
fn an_error_nobody_catches_says_its_name_message_code_and_details() {
    both(|talk| {
        let step = talk.run("ask()", &["ask"]);
        let error = json!({"name": "HttpError", "message": "gone", "code": "E410", "details": {"String": "for good"}});
        let said = talk.resume(&step, json!({"type": "error", "error": error}));
        let first = said.error().lines().next().unwrap();
        assert!(first.starts_with("Runtime: HttpError: gone [code=E410] [details=for good]"), "{first}");
        let step = talk.run("try { ask() } catch (e) { `${e.code}${'details' in e}` }", &["ask"]);
        let error = json!({"name": "E", "message": "m", "code": null, "details": null});
        assert_eq!(
            talk.resume(&step, json!({"type": "error", "error": error})).value(),
            &json!({"String": "undefinedfalse"})
        );
    });
}

#[test]
fn snapshot_and_policy_each_come_by_id_or_in_full() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        let (id, policy_id) = (step.id("snapshot_id"), step.id("policy_id"));
        let by_id = json!({"policy_id": policy_id, "auth": auth(&id, b"key")});
        let in_full = json!({"policy": policy(&id, &["ask"])});
        for right in [by_id, in_full] {
            for (name, blob) in [(Some(&id), &b""[..]), (None, &step.blob), (Some(&id), &step.blob)] {
                let mut request = right.clone();
                request["method"] = json!("resume");
                request["snapshot_id"] = json!(name);
                request["payload"] = number(10.0);
                let next = talk.say(request, blob);
                assert_eq!(next.call().0, "ask");
            }
        }
    });
}

#[test]
fn a_snapshot_goes_on_in_another_process_and_ends_the_same() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        let mut other = talk.with_another();
        let next = other.say(raw(policy(&step.id("snapshot_id"), &["ask"]), number(10.0)), &step.blob);
        assert_eq!(next, talk.resume(&step, number(10.0)).renumbered(1), "the same answer, byte for byte");
        assert_eq!(other.resume(&next, number(5.0)).value(), &json!({"Number": {"Finite": 15.0}}));
        other.check_cuts();
    });
}

#[test]
fn a_snapshot_can_be_resumed_again_and_runs_the_same_way() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        let first = talk.resume(&step, number(10.0));
        for _ in 0..2 {
            let again = talk.resume(&step, number(10.0));
            assert_eq!((again.id("snapshot_id"), &again.blob), (first.id("snapshot_id"), &first.blob));
        }
        assert!(talk.resume(&step, json!({"type": "cancelled"})).error().starts_with("Limit: "));
        assert_eq!(finish(talk, &step), json!({"Number": {"Finite": 15.0}}), "even after a cancellation");
    });
}

#[test]
fn what_is_missing_is_said_in_order() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        let id = step.id("snapshot_id");
        let payload = json!({"type": "cancelled"});
        let resume = |extra: Value| {
            let mut request = json!({"method": "resume", "payload": payload});
            request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            request
        };
        let none = "0".repeat(64);
        for (extra, blob, words) in [
            (json!({}), &b""[..], "resume requires snapshot bytes or snapshot_id".to_owned()),
            (
                json!({"snapshot_id": none}),
                b"",
                format!(
                    "unknown snapshot_id `{none}`: it was never here or was evicted; send the snapshot bytes"
                ),
            ),
            (json!({"snapshot_id": "x"}), b"", "unknown snapshot_id `x`".to_owned()),
            (json!({"snapshot_id": none}), &step.blob, "snapshot_id did not match snapshot bytes".to_owned()),
            (json!({"snapshot_id": id}), b"", "resume requires policy or policy_id".to_owned()),
            (
                json!({"snapshot_id": id, "policy_id": none}),
                b"",
                format!(
                    "unknown policy_id `{none}`: it was never here or was evicted; send the policy in full"
                ),
            ),
            (
                json!({"snapshot_id": id, "policy_id": step.id("policy_id")}),
                b"",
                "resume with policy_id requires auth metadata".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {}}),
                b"",
                "raw snapshot restore requires explicit limits".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {"limits": null}}),
                b"",
                "raw snapshot restore requires explicit limits".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {"limits": {}}, "policy_id": none}),
                b"",
                "policy_id did not match policy".to_owned(),
            ),
            (
                json!({"policy": {"limits": {}}}),
                &step.blob,
                "raw snapshot restore requires snapshot_id".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {"limits": {}}}),
                b"",
                "raw snapshot restore requires snapshot_key_base64".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {"limits": {}, "snapshot_key_base64": ""}}),
                b"",
                "raw snapshot restore requires snapshot_token".to_owned(),
            ),
            (
                json!({"snapshot_id": id, "policy": {"limits": {}, "snapshot_key_base64": "", "snapshot_token": ""}}),
                b"",
                "raw snapshot restore requires snapshot_key_digest".to_owned(),
            ),
        ] {
            let said = talk.say(resume(extra.clone()), blob);
            assert!(said.error().starts_with(&words), "{extra}: {} should be {words}", said.error());
        }
        finish(talk, &step);
    });
}

/// Whatever is wrong with key, digest, token or id, the snapshot is not resumed, on no path.
#[test]
fn only_the_right_key_digest_and_token_for_this_very_snapshot_resume_it() {
    both(|talk| {
        let step = talk.run(ASK, &["ask"]);
        let other = talk.resume(&step, number(10.0));
        let (id, other_id) = (step.id("snapshot_id"), other.id("snapshot_id"));
        let tampered = "raw snapshot restore rejected a tampered or unauthenticated snapshot";
        let mismatched = "raw snapshot restore rejected a mismatched snapshot key digest";
        let with = |member: &str, value: Value| {
            let mut auth = auth(&id, b"key");
            auth[member] = value;
            auth
        };
        let good = auth(&id, b"key");
        let token = good["snapshot_token"].as_str().unwrap();
        let mut swapped = auth(&id, b"another");
        swapped["snapshot_token"] = good["snapshot_token"].clone();
        for (auth, words) in [
            (auth(&other_id, b"key"), tampered),
            (with("snapshot_token", json!(token.to_uppercase())), tampered),
            (with("snapshot_token", json!(&token[1..])), tampered),
            (with("snapshot_token", json!("")), tampered),
            (with("snapshot_key_base64", json!("b3RoZXI=")), mismatched),
            (with("snapshot_key_digest", json!("0".repeat(64))), mismatched),
            (
                with(
                    "snapshot_key_digest",
                    json!(good["snapshot_key_digest"].as_str().unwrap().to_uppercase()),
                ),
                mismatched,
            ),
            (with("snapshot_key_base64", json!("not base64!")), "snapshot_key_base64 is not base64"),
            (swapped, tampered),
        ] {
            let cached = json!({"method": "resume", "snapshot_id": id, "policy_id": step.id("policy_id"), "auth": auth, "payload": number(1.0)});
            let said = talk.say(cached, b"");
            assert!(said.error().starts_with(words), "{auth}: {}", said.error());
            let mut full = policy(&id, &["ask"]);
            full.as_object_mut().unwrap().extend(auth.as_object().unwrap().clone());
            let said = talk.say(raw(full, number(1.0)), &step.blob);
            assert!(said.error().starts_with(words), "{auth}: {}", said.error());
        }
        let mut inner = policy(&id, &["ask"]);
        inner["snapshot_id"] = json!(other_id);
        assert_eq!(talk.say(raw(inner, number(1.0)), &step.blob).error(), tampered);
        let mut flipped = step.blob.clone();
        flipped[40] ^= 1;
        assert_eq!(talk.say(raw(policy(&id, &["ask"]), number(1.0)), &flipped).error(), tampered);
        finish(talk, &step);
    });
}

#[test]
fn the_empty_key_is_a_key() {
    both(|talk| {
        let step = talk.run("ask()", &["ask"]);
        let mut request = talk.cached(&step, number(3.0));
        request["auth"] = auth(&step.id("snapshot_id"), b"");
        assert_eq!(talk.say(request, b"").value(), &json!({"Number": {"Finite": 3.0}}));
    });
}

#[test]
fn a_policy_that_lacks_a_capability_the_snapshot_holds_resumes_nothing() {
    both_cut(LONG, |talk| {
        // Held in a closure, in an array, as a bound function, in a queue: everywhere.
        for source in [
            "const f = fetch_data; const g = () => f(1); ask(); g()",
            "const a = [{ deep: [fetch_data] }]; fetch_data = null; ask(); a[0].deep[0](1)",
            "const b = fetch_data.bind(null, 1); fetch_data = null; ask(); b()",
            "const m = new Map([[fetch_data, 1]]); fetch_data = null; ask(); [...m.keys()][0](1)",
        ] {
            let step = talk.run(source, &["ask", "fetch_data"]);
            let id = step.id("snapshot_id");
            let rejected = "Serialization: snapshot policy rejected unauthorized capability `fetch_data`";
            let full = raw(policy(&id, &["ask"]), number(1.0));
            let mut cached = full.clone();
            cached["snapshot_id"] = json!(id);
            assert_eq!(talk.say(full.clone(), &step.blob).error(), rejected, "{source}");
            assert_eq!(talk.say(cached, b"").error(), rejected, "{source}");
            let mut other = talk.with_another();
            assert_eq!(other.say(full, &step.blob).error(), rejected, "{source}");
            other.check_cuts();
            let more = raw(policy(&id, &["more", "fetch_data", "ask"]), number(1.0));
            assert_eq!(talk.say(more, &step.blob).call().0, "fetch_data", "more names are fine");
        }
        let step = talk.run("ask(); typeof later", &["ask"]);
        let request = raw(policy(&step.id("snapshot_id"), &["ask", "later"]), number(1.0));
        assert_eq!(
            talk.say(request, &step.blob).value(),
            &json!({"String": "undefined"}),
            "and are not installed"
        );
    });
}

#[test]
fn the_limits_of_the_policy_replace_those_the_run_began_with() {
    both_cut(LONG, |talk| {
        let source = "const big = 'x'.repeat(50000) + 'y'; const f = n => n ? f(n - 1) : ask(); f(10); let t = 0; for (let i = 0; i < 5000; i++) t += i; t + big.length";
        let step = talk.run(source, &["ask"]);
        let id = step.id("snapshot_id");
        for (limits, words) in [
            (json!({"call_depth_limit": 5}), "Limit: call depth limit exceeded"),
            (
                json!({"heap_limit_bytes": 20_000}),
                "Serialization: snapshot validation failed: heap usage exceeds configured heap limit",
            ),
            (json!({"instruction_budget": 1}), "Limit: instruction budget exhausted"),
            (json!({"instruction_budget": 3000}), "Limit: instruction budget exhausted"),
        ] {
            for blob in [&b""[..], &step.blob] {
                let mut policy = policy(&id, &["ask"]);
                policy["limits"] = limits.clone();
                let mut request = raw(policy, number(1.0));
                request["snapshot_id"] = json!(id);
                let said = talk.say(request, blob);
                assert!(said.error().starts_with(words), "{limits}: {}", said.error());
            }
        }
        let fan = "const f = async () => { await Promise.all([ask(1), ask(2), ask(3)]); }; f()";
        let step = talk.run(fan, &["ask"]);
        let mut policy = policy(&step.id("snapshot_id"), &["ask"]);
        policy["limits"] = json!({"max_outstanding_host_calls": 2});
        let said = talk.say(raw(policy, number(1.0)), &step.blob);
        assert_eq!(said.error(), "Limit: outstanding host-call limit exhausted");
    });
}

#[test]
fn bytes_that_are_no_snapshot_are_refused_after_they_were_authenticated() {
    both(|talk| {
        let program = talk.compile("1").blob;
        let step = talk.run("ask()", &["ask"]);
        let mut cut = step.blob.clone();
        cut.truncate(cut.len() - 1);
        let mut version = step.blob.clone();
        version[8] ^= 0xff;
        let mut engine = step.blob.clone();
        engine[10] ^= 0xff;
        let long = [&step.blob[..], b"x"].concat();
        for (bytes, words) in [
            (&b"nonsense"[..], "Serialization: these bytes are not a serialized snapshot"),
            (&program, "Serialization: these bytes are not a serialized snapshot"),
            (&cut, "Serialization: serialized snapshot is damaged"),
            (&long, "Serialization: serialized snapshot is damaged"),
            (&version, "Serialization: serialized snapshot version mismatch: expected "),
            (&engine, "Serialization: serialized snapshot was written by another engine"),
        ] {
            let id = SnapshotId::of(bytes).to_string();
            let said = talk.say(raw(policy(&id, &["ask"]), number(1.0)), bytes);
            assert!(said.error().starts_with(words), "{}", said.error());
        }
    });
}

#[test]
fn snapshots_and_policies_that_do_not_fit_are_evicted_and_sending_them_works() {
    both(|talk| {
        let one = talk.run("ask('one')", &["ask"]);
        // Room for one of each, with what keeping it takes; two take twice as much.
        talk.budgets.policies = 1;
        talk.budgets.snapshot_bytes = one.blob.len() + 1000;
        let two = talk.run("ask('two')", &["ask", "more"]);
        let said = talk.resume(&one, number(1.0));
        assert!(said.error().starts_with(&format!("unknown snapshot_id `{}`", one.id("snapshot_id"))));
        let mut request = talk.cached(&one, number(1.0));
        let said = talk.say(request.clone(), &one.blob);
        assert!(said.error().starts_with(&format!("unknown policy_id `{}`", one.id("policy_id"))));
        request = raw(policy(&one.id("snapshot_id"), &["ask"]), number(1.0));
        talk.say(request, &one.blob).value();
        let mut request = raw(policy(&two.id("snapshot_id"), &["ask", "more"]), number(2.0));
        request["snapshot_id"] = json!(two.id("snapshot_id"));
        talk.say(request, b"").value();
    });
}

#[test]
fn a_machine_that_had_to_make_room_is_restored_and_nobody_can_tell() {
    both(|talk| {
        let mut ends = Vec::new();
        for machines in [64, 1, 0] {
            let mut talk = talk.with_another();
            talk.budgets.machines = machines;
            let one = talk.run(ASK, &["ask"]);
            let two = talk.run("ask(1) * ask(2)", &["ask"]);
            ends.push((finish(&mut talk, &one), finish(&mut talk, &two), talk.hear().0));
            talk.check_cuts();
        }
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]));
    });
}
