//! Receipts: the hash of the original, the record of a run, the chain, the signature, and everything that breaks them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::conduct;
use outrigger_abp::protocol::{
    AgentEvent, BackendIdentity, ContractVersion, EventKind, Manifest, Mode, Negotiation, OrderId, Outcome,
    Raw, ReceivedReceipt, RunId, Timestamp, Usage, WorkOrder,
};
use outrigger_abp::receipt::{
    Break, Check, Closing, DiffLimit, Ending, Folder, HashState, RecordError, Recorder, Sealed,
    SignatureState, SigningKey, SpoolLimit, diff, verify, verify_chain,
};
use serde_json::{Value, json};

pub(super) fn trials() -> Vec<Trial> {
    trials![
        the_hashes_of_the_original_are_reproduced_in_any_spelling,
        a_changed_receipt_is_found_out,
        a_receipt_without_a_hash_says_so,
        problems_of_a_receipt_have_a_path,
        a_run_is_recorded_and_its_receipt_verifies,
        the_vendors_message_is_in_the_file_byte_for_byte,
        a_child_that_lies_is_contradicted,
        a_true_trace_of_the_child_is_believed_and_a_false_one_is_not,
        what_the_child_counted_stays_beside_what_the_host_adds,
        receipts_of_a_folder_are_a_chain,
        a_removed_or_bent_receipt_breaks_the_chain,
        many_at_once_do_not_fork_the_chain,
        a_signature_is_checked_and_a_foreign_one_refused,
        the_record_of_a_killed_host_is_sealed_later,
        a_host_that_is_killed_after_it_has_sealed_leaves_no_second_receipt,
        a_record_that_is_in_use_is_left_alone,
        a_run_is_recorded_once,
        a_run_may_be_so_long_and_not_longer,
        two_receipts_are_compared_by_what_they_mean,
    ]
}

const TEN_TO_THE_SIX: &str = "2026-01-01T00:00:01Z";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn folder(at: &tempfile::TempDir) -> Folder {
    Folder::open(at.path().join("receipts"), SpoolLimit::USUAL).unwrap()
}

fn event(text: &str) -> AgentEvent<'_> {
    AgentEvent::read(text).unwrap()
}

fn delta(text: &str) -> AgentEvent<'static> {
    let ts = Timestamp::parse(TEN_TO_THE_SIX).unwrap();
    AgentEvent { ts, kind: EventKind::AssistantDelta { text: text.to_owned().into() }, ext: None, raw: None }
}

fn closing(order: &WorkOrder) -> Closing<'_> {
    Closing {
        order,
        backend: BackendIdentity::named("b"),
        contract_version: ContractVersion::ours(),
        capabilities: Manifest::default(),
        mode: Mode::Mapped,
        started_at: Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
        duration: Duration::from_millis(1500),
        ending: Ending::Final,
        error: None,
        outcome: None,
        received: None,
        usage: Usage::default(),
        artifacts: Vec::new(),
        git_diff: None,
        git_status: None,
        negotiation: Negotiation::default(),
        account: Raw::new(r#"{"enforcement":{"tools":"none"}}"#).unwrap(),
        sign: None,
    }
}

fn order() -> WorkOrder {
    WorkOrder::new(OrderId::new("AAAAAAAA-2222-3333-4444-555555555555"), "t")
}

/// A receipt with one event.
fn sealed(folder: &Folder, run: &str) -> Sealed {
    let mut recorder = Recorder::begin(folder, &RunId::new(run)).unwrap();
    recorder.event(&delta(run)).unwrap();
    recorder.seal(&closing(&order())).unwrap()
}

fn checked(path: &Path) -> Check {
    verify(path).unwrap()
}

fn valid(path: &Path) -> Check {
    let check = checked(path);
    assert!(check.is_valid(), "{check:?}");
    check
}

fn the_hashes_of_the_original_are_reproduced_in_any_spelling() {
    for name in ["receipt-mock.json", "receipt-python.json", "receipt-norm.json"] {
        let path = fixture(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let check = valid(&path);
        assert_eq!(
            check.hash,
            HashState::Ok { sha256: value["receipt_sha256"].as_str().unwrap().parse().unwrap() }
        );
        assert_eq!(check.events, value["trace"].as_array().unwrap().len() as u64);
        // Compact, keys sorted, with members that nobody knows.
        let mut other = value.clone();
        other["stream_equivalent"] = json!(true);
        other["meta"]["mood"] = json!("good");
        other["meta"]["run_id"] = value["meta"]["run_id"].as_str().unwrap().to_uppercase().into();
        other.as_object_mut().unwrap().remove("mode");
        let temporary = tempfile::tempdir().unwrap();
        let copy = temporary.path().join("copy.json");
        std::fs::write(&copy, other.to_string()).unwrap();
        assert_eq!(valid(&copy).hash, check.hash);
    }
}

fn a_changed_receipt_is_found_out() {
    let text = std::fs::read_to_string(fixture("receipt-norm.json")).unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("r.json");
    for (from, to) in [
        ("\"partial\"", "\"complete\""),
        ("\"m\"", "\"n\""),
        ("\"duration_ms\": 3", "\"duration_ms\": 4"),
        ("1.1", "1.10000001"),
        ("\"x\": 2", "\"x\": 2.0"),
        (".123400Z", ".123401Z"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let check = checked(&path);
        assert!(matches!(check.hash, HashState::Mismatch { .. }) && !check.is_valid(), "{from}: {check:?}");
    }
    std::fs::write(&path, text.replacen("1.1", "1.10", 1)).unwrap();
    valid(&path);
}

fn a_receipt_without_a_hash_says_so() {
    let text = std::fs::read_to_string(fixture("receipt-mock.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let hash = value["receipt_sha256"].as_str().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("r.json");
    std::fs::write(&path, text.replace(&format!("\"{hash}\""), "null")).unwrap();
    let check = checked(&path);
    assert_eq!(check.hash, HashState::Missing { computed: hash.parse().unwrap() });
    assert!(!check.is_valid());
}

fn problems_of_a_receipt_have_a_path() {
    let mut value: Value =
        serde_json::from_str(&std::fs::read_to_string(fixture("receipt-norm.json")).unwrap()).unwrap();
    value["meta"].as_object_mut().unwrap().remove("finished_at");
    value["trace"][1]["ts"] = json!(5);
    value["trace"][2].as_object_mut().unwrap().remove("command");
    value["usage"]["input_tokens"] = json!("many");
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("r.json");
    std::fs::write(&path, value.to_string()).unwrap();
    let check = checked(&path);
    let paths: Vec<&str> = check.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        ["usage.input_tokens", "meta.finished_at", "trace[1].ts", "trace[2].command_executed.command"]
    );
    assert_eq!(check.hash, HashState::Unknown);
    for (text, why) in
        [("", "does not begin"), ("[]", "does not begin"), ("{\"meta\":{}", "a comma or the end")]
    {
        std::fs::write(&path, text).unwrap();
        let error = verify(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

fn a_run_is_recorded_and_its_receipt_verifies() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let run = RunId::random().unwrap();
    let mut recorder = Recorder::begin(&folder, &run).unwrap();
    for number in 0..5000 {
        recorder.event(&delta(&format!("line {number}\n\"quoted\""))).unwrap();
    }
    recorder.event(&event(r#"{"type":"plan","ts":"2026-01-01T00:00:00.10Z","b":1,"a":1e3}"#)).unwrap();
    assert_eq!(recorder.events(), 5001);
    let order = order();
    let mut closing = closing(&order);
    closing.error = Some("it \"stopped\"".into());
    closing.ending = Ending::Exited;
    closing.outcome = Some(Outcome::Failed);
    let sealed = recorder.seal(&closing).unwrap();
    assert_eq!((sealed.previous, sealed.events, sealed.path.clone()), (None, 5001, folder.receipt(&run)));
    let check = valid(&sealed.path);
    assert_eq!(check.hash, HashState::Ok { sha256: sealed.sha256 });
    assert_eq!((check.events, check.receipt), (5001, Some(sealed.receipt)));

    let text = std::fs::read_to_string(&sealed.path).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.contains("\"assistant_delta\"")).count(),
        5000,
        "one event a line"
    );
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["trace"][4999]["text"], "line 4999\n\"quoted\"");
    assert_eq!(value["meta"]["finished_at"], "2026-01-01T00:00:01.500Z");
    assert_eq!(value["meta"]["work_order_id"], "aaaaaaaa-2222-3333-4444-555555555555");
    let note = &value["usage_raw"]["outrigger"];
    assert_eq!(
        (&note["ending"], &note["error"], &note["events"]),
        (&json!("exited"), &json!("it \"stopped\""), &json!(5001))
    );
    assert_eq!(note["enforcement"], json!({"tools": "none"}));
    assert_eq!(
        value["usage_raw"]["negotiation_result"],
        json!({"native": [], "emulated": [], "missing": []})
    );
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "the receipt, the head and the lock: {left:?}");
}

fn the_vendors_message_is_in_the_file_byte_for_byte() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let mut recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    let raw = r#"{"z": 1e3,  "a":"\u00e9\/", "z":-0}"#;
    let text = format!(
        r#"{{"ts":"2026-01-01T00:00:00Z","type":"assistant_delta","text":"x","ext":{{"raw_message":{raw},"b":1,"a":2}}}}"#
    );
    recorder.event(&delta("before")).unwrap();
    recorder.event(&event(&text)).unwrap();
    recorder.event(&delta("mentions \"raw_message\": in words")).unwrap();
    let sealed = recorder.seal(&closing(&order())).unwrap();
    valid(&sealed.path);
    let file = std::fs::read_to_string(&sealed.path).unwrap();
    assert!(file.contains(&format!("\"raw_message\":{raw}")), "{file}");
    // Who knows nothing of bytes and reads values gets the same hash.
    let value: Value = serde_json::from_str(&file).unwrap();
    std::fs::write(temporary.path().join("values.json"), value.to_string()).unwrap();
    assert_eq!(valid(&temporary.path().join("values.json")).hash, HashState::Ok { sha256: sealed.sha256 });
}

fn a_child_that_lies_is_contradicted() {
    let temporary = tempfile::tempdir().unwrap();
    let received = ReceivedReceipt::read(
        r#"{"meta":{"run_id":"forged","work_order_id":"aaaaaaaa222233334444555555555555","contract_version":"abp/v0.2","started_at":"2026-01-01T00:00:04.9Z","finished_at":"2031-01-01T00:00:00Z","duration_ms":900000},
            "backend":{"id":"somebody"},"capabilities":{"audio":"native"},"mode":"passthrough","outcome":"partial","usage_raw":{"outrigger":{"forged":true},"own":1},"artifacts":[{"kind":"k"}]}"#,
    )
    .unwrap();
    let folder = folder(&temporary);
    let order = order();
    let mut closing = closing(&order);
    closing.received = Some(&received);
    let sealed = Recorder::begin(&folder, &RunId::new("r")).unwrap().seal(&closing).unwrap();
    let what: Vec<&str> = sealed.claims.iter().map(|claim| claim.what.as_str()).collect();
    assert_eq!(
        what,
        ["run_id", "contract_version", "backend", "capabilities", "finished_at", "duration_ms", "receipt"]
    );
    assert_eq!(
        (sealed.claims[0].claimed.as_deref(), sealed.claims[0].observed.as_str()),
        (Some("forged"), "r")
    );
    assert_eq!(sealed.receipt.meta.run_id, RunId::new("r"));
    assert_eq!(sealed.receipt.backend, BackendIdentity::named("b"));
    assert_eq!((&sealed.receipt.outcome, &sealed.receipt.mode), (&Outcome::Partial, &Mode::Passthrough));
    let value = valid(&sealed.path).receipt.unwrap().usage_raw.to_value();
    assert_eq!(value["own"], 1);
    assert_eq!(value["outrigger"].get("forged"), None, "nobody writes in our name");
    assert_eq!(
        value["outrigger"]["claims"][0],
        json!({"what": "run_id", "claimed": "forged", "observed": "r"})
    );
}

fn a_true_trace_of_the_child_is_believed_and_a_false_one_is_not() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let told = |run: &str, trace: &str| {
        let text = format!(
            r#"{{"meta":{{"run_id":"{run}","work_order_id":"aaaaaaaa222233334444555555555555","contract_version":"abp/v0.1","started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z"}},"backend":{{"id":"b"}},"outcome":"complete","trace":{trace}}}"#
        );
        let received = ReceivedReceipt::read(&text).unwrap();
        let mut recorder = Recorder::begin(&folder, &RunId::new(run)).unwrap();
        recorder.event(&delta("one")).unwrap();
        recorder.event(&delta("two")).unwrap();
        let order = order();
        let mut closing = closing(&order);
        closing.received = Some(&received);
        let sealed = recorder.seal(&closing).unwrap();
        valid(&sealed.path);
        assert_eq!(sealed.events, 2);
        sealed
            .claims
            .into_iter()
            .map(|claim| (claim.what, claim.claimed.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let one = r#"{"text":"one","type":"assistant_delta","ts":"2026-01-01T01:00:01.000+01:00"}"#;
    let two = r#"{"ts":"2026-01-01T00:00:01Z","type":"assistant_delta","text":"t\u0077o","ext":null}"#;
    assert_eq!(told("a", &format!("[{one}, {two}]")), []);
    assert_eq!(told("b", "[]"), []);
    assert_eq!(told("c", &format!("[{one}]")), [("trace".to_owned(), "1 events".to_owned())]);
    let swapped = told("d", &format!("[{two},{one}]"));
    assert_eq!((swapped.len(), swapped[0].0.as_str(), swapped[0].1.len()), (1, "trace", 64));
    assert_eq!(told("e", "[5,6]"), [("trace".to_owned(), "not events".to_owned())]);
}

fn what_the_child_counted_stays_beside_what_the_host_adds() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let order = order();
    for (run, usage_raw, expected) in [
        ("a", r#"{"z": 1.50,"a":2}"#, json!({"z": 1.5, "a": 2})),
        ("b", "[1]", json!({"original": [1]})),
        ("c", "null", json!({})),
    ] {
        let text =
            format!(r#"{{"usage_raw":{usage_raw},"usage":{{"input_tokens":7}},"outcome":"complete"}}"#);
        let received = ReceivedReceipt::read(&text).unwrap();
        let mut closing = closing(&order);
        closing.received = Some(&received);
        closing.usage = Usage { input_tokens: Some(5), output_tokens: Some(6), ..Usage::default() };
        let sealed = Recorder::begin(&folder, &RunId::new(run)).unwrap().seal(&closing).unwrap();
        let usage = valid(&sealed.path).receipt.unwrap().usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(6)));
        let mut value = sealed.receipt.usage_raw.to_value();
        let members = value.as_object_mut().unwrap();
        assert!(members.remove("outrigger").is_some() && members.remove("negotiation_result").is_some());
        assert_eq!(value, expected);
    }
}

fn receipts_of_a_folder_are_a_chain() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    assert_eq!(folder.newest().unwrap(), None);
    let first = sealed(&folder, "a");
    let second = sealed(&folder, "b");
    let third = sealed(&folder, "c");
    assert_eq!(
        (first.previous, second.previous, third.previous),
        (None, Some(first.sha256), Some(second.sha256))
    );
    assert_eq!(valid(&third.path).previous, Some(second.sha256));
    assert_eq!(folder.newest().unwrap(), Some(third.sha256));
    let chain = verify_chain(&folder).unwrap();
    assert_eq!((chain.links, chain.is_whole()), (3, true));
}

fn a_removed_or_bent_receipt_breaks_the_chain() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let receipts: Vec<Sealed> = ["a", "b", "c"].iter().map(|run| sealed(&folder, run)).collect();
    let kept = std::fs::read(&receipts[1].path).unwrap();
    std::fs::remove_file(&receipts[1].path).unwrap();
    let chain = verify_chain(&folder).unwrap();
    assert_eq!(chain.links, 1);
    assert_eq!(
        chain.breaks,
        [
            Break::Missing { sha256: receipts[1].sha256, named_by: Some(receipts[2].path.clone()) },
            Break::Loose { path: receipts[0].path.clone() },
        ]
    );
    let bent = String::from_utf8(kept.clone()).unwrap().replace("\"complete\"", "\"failed\"");
    std::fs::write(&receipts[1].path, bent).unwrap();
    let chain = verify_chain(&folder).unwrap();
    assert!(
        matches!(&chain.breaks[0], Break::Invalid { path, .. } if *path == receipts[1].path),
        "{chain:?}"
    );
    std::fs::write(&receipts[1].path, kept).unwrap();
    assert!(verify_chain(&folder).unwrap().is_whole());
}

fn many_at_once_do_not_fork_the_chain() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for number in 0..5 {
                    sealed(folder, &format!("run-{writer}-{number}"));
                }
            });
        }
    });
    let chain = verify_chain(&folder).unwrap();
    assert_eq!((chain.links, chain.breaks), (20, Vec::new()));
}

fn a_signature_is_checked_and_a_foreign_one_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let key = SigningKey::create(&temporary.path().join("key")).unwrap();
    let order = order();
    let signed = |run: &str| {
        let closing = Closing { sign: Some(&key), ..closing(&order) };
        Recorder::begin(&folder, &RunId::new(run)).unwrap().seal(&closing).unwrap()
    };
    let (one, two) = (signed("a"), signed("b"));
    assert_eq!(valid(&one.path).signature, SignatureState::Valid { public_key: key.public_key() });
    let read = |path: &Path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    let mut swapped = read(&one.path);
    swapped["signature"] = read(&two.path)["signature"].clone();
    let path = temporary.path().join("swapped.json");
    std::fs::write(&path, swapped.to_string()).unwrap();
    let check = checked(&path);
    assert!(matches!(check.hash, HashState::Ok { .. }), "the signature is beside the hash");
    assert!(matches!(check.signature, SignatureState::Invalid { .. }) && !check.is_valid());
    swapped["signature"] = json!("trust me");
    std::fs::write(&path, swapped.to_string()).unwrap();
    assert!(matches!(checked(&path).signature, SignatureState::Invalid { .. }));
}

fn the_record_of_a_killed_host_is_sealed_later() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let mut recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    recorder.event(&delta("one")).unwrap();
    recorder.event(&delta("two")).unwrap();
    recorder.flush().unwrap();
    recorder.event(&delta("never written")).unwrap();
    // Whoever is killed flushes nothing; and the last line may be cut anywhere.
    drop(recorder);
    let part = folder.left_over().unwrap();
    assert_eq!(part.len(), 1);
    let mut text = std::fs::read(&part[0]).unwrap();
    text.extend_from_slice(br#"{"text":"cut","ts":"2026-01-01T0"#);
    std::fs::write(&part[0], text).unwrap();
    let recorder = Recorder::recover(&folder, &part[0]).unwrap();
    assert_eq!((recorder.events(), recorder.run().as_str()), (2, "r"));
    let order = order();
    let mut closing = closing(&order);
    closing.ending = Ending::Exited;
    let sealed = recorder.seal(&closing).unwrap();
    assert_eq!(valid(&sealed.path).events, 2);
    assert!(folder.left_over().unwrap().is_empty());
    std::fs::write(&part[0], "not ours\n").unwrap();
    assert!(matches!(Recorder::recover(&folder, &part[0]), Err(RecordError::NotASpool { .. })));
}

fn a_host_that_is_killed_after_it_has_sealed_leaves_no_second_receipt() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let mut recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    recorder.event(&delta("one")).unwrap();
    recorder.flush().unwrap();
    let part = folder.beside(&RunId::new("r"), "trace.part");
    let spooled = std::fs::read(&part).unwrap();
    let order = order();
    let sealed = recorder.seal(&closing(&order)).unwrap();
    // As if the spool had not been cleared away.
    std::fs::write(&part, spooled).unwrap();
    assert!(conduct::recover(&folder, None).unwrap().is_empty());
    assert!(!part.exists());
    assert!(verify_chain(&folder).unwrap().is_whole());
    assert_eq!(folder.newest().unwrap(), Some(sealed.sha256));
}

fn a_record_that_is_in_use_is_left_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    assert!(folder.left_over().unwrap().is_empty());
    let part = folder.beside(&RunId::new("r"), "trace.part");
    assert!(matches!(Recorder::recover(&folder, &part), Err(RecordError::InUse { .. })));
    recorder.discard().unwrap();
    assert!(!part.exists());
}

fn a_run_is_recorded_once() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder(&temporary);
    let recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    assert!(matches!(Recorder::begin(&folder, &RunId::new("r")), Err(RecordError::Exists { .. })));
    recorder.seal(&closing(&order())).unwrap();
    assert!(matches!(Recorder::begin(&folder, &RunId::new("r")), Err(RecordError::Exists { .. })));
}

fn a_run_may_be_so_long_and_not_longer() {
    let temporary = tempfile::tempdir().unwrap();
    let line = r#"{"text":"x","ts":"2026-01-01T00:00:01Z","type":"assistant_delta"}"#.len() as u64 + 1;
    let begun = Folder::open(temporary.path().join("a"), SpoolLimit::USUAL).unwrap();
    drop(Recorder::begin(&begun, &RunId::new("r")).unwrap());
    let head = std::fs::metadata(begun.beside(&RunId::new("r"), "trace.part")).unwrap().len();
    // The head of the spool names a moment whose digits vary; so there is room for all of them and not for a line more.
    let limit = head + 3 * line + 10;
    let folder = Folder::open(temporary.path().join("b"), SpoolLimit(limit)).unwrap();
    let mut recorder = Recorder::begin(&folder, &RunId::new("r")).unwrap();
    for _ in 0..3 {
        recorder.event(&delta("x")).unwrap();
    }
    let error = recorder.event(&delta("x")).unwrap_err();
    assert_eq!(error.to_string(), format!("the events of this run take more than {limit} bytes"));
    // What fits is still a receipt.
    assert_eq!(valid(&recorder.seal(&closing(&order())).unwrap().path).events, 3);
}

fn two_receipts_are_compared_by_what_they_mean() {
    let temporary = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture("receipt-norm.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let (one, two) = (temporary.path().join("1.json"), temporary.path().join("2.json"));
    std::fs::write(&one, &text).unwrap();
    std::fs::write(&two, value.to_string()).unwrap();
    assert!(diff(&one, &two, DiffLimit(10)).unwrap().is_empty());
    let mut other = value;
    other["usage"]["input_tokens"] = json!(5);
    other["outcome"] = json!("complete");
    other["trace"][1]["message"] = json!("other");
    other["trace"].as_array_mut().unwrap().push(json!({"type": "plan", "ts": "2026-01-01T00:00:00Z"}));
    std::fs::write(&two, other.to_string()).unwrap();
    let found = diff(&one, &two, DiffLimit(1)).unwrap();
    assert_eq!(
        (found.events, found.different_events, found.trace.len(), found.members.len()),
        ([3, 4], 2, 1, 1)
    );
    let found = diff(&one, &two, DiffLimit(10)).unwrap();
    let paths: Vec<&str> =
        found.members.iter().chain(&found.trace).map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["outcome", "usage.input_tokens", "trace[1]", "trace[3]"]);
    assert_eq!(found.trace[1].first, None);
}
