//! The rules for sidecars, tried on ours, on one that keeps them all, on one for each way to break them, and on one that does as
//! the original did.

use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::check::{self, Limits, Report, Status, Turns};
use outrigger_helmor::host::BridgeSpec;
use outrigger_helmor::protocol::ProviderName;

use crate::host_kit::{fake, millis, own_child, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("our_own_sidecar_passes_every_rule", own),
        trial("a_sidecar_that_keeps_the_rules_passes_all_of_them", keeps),
        trial("a_sidecar_like_the_original_passes_with_warnings", original),
        trial("a_sidecar_without_turns_is_not_judged_by_them", no_turns),
        trial("a_report_is_an_object_with_evidence_and_advice", json_report),
    ];
    trials.extend(BREAKS.iter().map(|(quirk, broken)| {
        let name = format!("a_sidecar_that_{}_is_found_out", quirk.replace(['-', ':'], "_"));
        trial(&name, || breaks(quirk, broken))
    }));
    trials
}

/// What each quirk breaks, and nothing else.
const BREAKS: &[(&str, &[&str])] = &[
    ("not-ready-first", &["ready_first"]),
    ("prints", &["stdout_frames"]),
    ("dies-of-garbage", &["not_json", "invalid_request", "deep_nesting", "flood", "eof_in_a_line"]),
    ("no-id-in-complaints", &["envelope_id"]),
    ("silent-about-methods", &["unknown_method", "error_codes"]),
    ("silent-about-waiters", &["error_codes", "permission_to_nobody", "input_to_nobody"]),
    ("two-ends", &["turn", "stop"]),
    ("never-busy", &["busy"]),
    ("silent:updateConfig", &["update_config"]),
    ("silent:steerSession", &["steer_unknown"]),
    ("no-pong", &["shutdown", "shutdown_ends_streams"]),
    ("leaves-with-1", &["shutdown", "shutdown_ends_streams"]),
    ("stays", &["eof", "eof_in_a_turn", "eof_in_a_line"]),
    ("ignores-term", &["sigterm"]),
];

fn limits() -> Limits {
    Limits {
        ready: Duration::from_secs(20),
        answer: Duration::from_secs(10),
        stream: Duration::from_secs(10),
        heartbeat: Some(Duration::from_secs(10)),
        exit: Duration::from_secs(10),
        quiet: millis(50),
        garbage: 10_000,
        turns: None,
    }
}

async fn run(spec: &BridgeSpec, limits: &Limits) -> Report {
    check::run(&supervisor(), spec, limits).await
}

/// The names of the checks that ended so.
fn names(report: &Report, statuses: &[Status]) -> Vec<&'static str> {
    let found = report.checks.iter().filter(|check| statuses.contains(&check.status));
    found.map(|check| check.name).collect()
}

/// What there is to say about the checks that did not pass.
fn odd(report: &Report) -> String {
    let odd = report.checks.iter().filter(|check| check.status != Status::Pass);
    odd.map(|check| format!("{check:?}\n")).collect()
}

async fn own() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    let text = r#"{"turns":[{"when":"check-short","steps":[{"say":"hello"}]},
        {"when":"check-long","steps":[{"say":"hello"},{"hang":true}]}]}"#;
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let spec = own_child("__sidecar").args(["--script", script, "--heartbeat", "50", "--log-level", "error"]);
    let report = run(&spec, &limits()).await;
    assert_eq!(report.count(Status::Pass), report.checks.len(), "{}", odd(&report));
}

async fn keeps() {
    let report = run(&fake(&["beat=50"]), &limits()).await;
    assert_eq!(report.count(Status::Pass), report.checks.len(), "{}", odd(&report));
}

async fn breaks(quirk: &str, broken: &[&str]) {
    // What does not come is waited for, so these are short; what must come has a machine's worth of time elsewhere.
    let limits = Limits { answer: millis(2000), exit: millis(2000), garbage: 1000, ..limits() };
    let report = run(&fake(&["beat=50", quirk]), &limits).await;
    let found = names(&report, &[Status::Fail, Status::Warn]);
    assert_eq!(found, broken, "{}", odd(&report));
}

async fn original() {
    let turns = Turns {
        provider: ProviderName::Claude,
        short: "check-short".to_owned(),
        long: Some("check-long".to_owned()),
    };
    let limits = Limits { exit: millis(2000), answer: millis(2000), turns: Some(turns), ..limits() };
    let report = run(&fake(&["beat=50", "original"]), &limits).await;
    assert!(report.is_conformant(), "{}", odd(&report));
    let known = [
        "envelope_id",
        "error_codes",
        "permission_to_nobody",
        "busy",
        "id_in_flight",
        "shutdown_ends_streams",
        "eof_in_a_turn",
    ];
    assert_eq!(names(&report, &[Status::Warn]), known, "{}", odd(&report));
}

async fn no_turns() {
    let limits = Limits { answer: millis(2000), garbage: 100, ..limits() };
    let report = run(&fake(&["original"]), &limits).await;
    assert!(report.is_conformant(), "{}", odd(&report));
    let skipped = names(&report, &[Status::Skipped]);
    let of_turns = ["turn", "heartbeat", "stop", "stop_order", "busy", "id_in_flight"];
    assert_eq!(skipped[..of_turns.len()], of_turns);
    assert!(report.check("turn").unwrap().detail.contains("unknown provider: scripted"));
}

async fn json_report() {
    let limits = Limits { ready: millis(300), ..limits() };
    let report = run(&fake(&["never-ready"]), &limits).await;
    assert!(!report.is_conformant());
    assert_eq!(names(&report, &[Status::Fail]), ["starts"]);
    assert_eq!(report.count(Status::Skipped), report.checks.len() - 1, "nothing else was seen");
    let json = report.to_json();
    assert_eq!(json["conformant"], false);
    assert_eq!(json["counts"]["fail"], 1);
    assert!(json["checks"][0]["mend"].as_str().unwrap().contains("look at its log"));
}
