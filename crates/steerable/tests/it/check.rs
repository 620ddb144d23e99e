//! The conformance report: a sidecar that keeps the contract passes, and each rule finds the sidecar that breaks it.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::check::{self, Limits, Report, Status};
use outrigger_steerable::host::SidecarSpec;

use crate::host_fake::log;
use crate::host_kit::{fake, millis, own_child, supervisor, trial};
use crate::sidecar_kit;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_sidecar_that_keeps_the_contract_passes_every_rule", keeps_all),
        trial("our_own_sidecar_keeps_every_rule", our_own),
        trial("each_broken_rule_is_found_and_no_other", broken_rules),
        trial("rules_about_waiting_are_found_too", slow_rules),
        trial("a_sidecar_that_does_not_start_fails_the_first_rule_and_skips_the_others", does_not_start),
        trial("the_report_is_json_for_programs", json_report),
    ]
}

/// Our own sidecar with the flags that the rules need; others end it, as they end the program.
pub(crate) fn child(args: &[String]) -> ExitCode {
    match args.iter().find(|arg| *arg != "--quiet-ready") {
        None => sidecar_kit::child(args),
        Some(flag) => {
            log(format_args!("unknown flag {flag}"));
            ExitCode::from(2)
        }
    }
}

/// How many rules there are.
const RULES: usize = 42;

/// Children of tests answer at once, so much patience costs nothing; only what is broken waits for it.
fn limits() -> Limits {
    let secs = Duration::from_secs;
    Limits { ready: secs(20), answer: secs(20), stream: secs(20), exit: secs(20), quiet: millis(50) }
}

/// For children that break a rule by saying nothing.
fn short() -> Limits {
    let patience = Duration::from_secs(3);
    Limits { answer: patience, stream: patience, exit: patience, ..limits() }
}

async fn checked(spec: &SidecarSpec, limits: Limits) -> Report {
    check::run(&supervisor(), spec, &limits).await
}

/// Rules that are not kept, as `name status`.
fn blemishes(report: &Report) -> Vec<String> {
    let open = report.checks.iter().filter(|check| check.status != Status::Pass);
    open.map(|check| format!("{} {}", check.name, check.status)).collect()
}

/// What is wrong, for whoever reads a failure of these tests.
fn troubles(report: &Report) -> String {
    let open = report.checks.iter().filter(|check| check.status != Status::Pass);
    open.map(|check| format!("\n{}: {} {:?}", check.name, check.detail, check.evidence)).collect()
}

async fn keeps_all() {
    let report = checked(&fake(&[]), limits()).await;
    assert_eq!(blemishes(&report), Vec::<String>::new(), "{}", troubles(&report));
    assert_eq!(report.checks.len(), RULES);
    let mut names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES, "every rule has its own name");
}

async fn our_own() {
    let report = checked(&own_child("__checked_sidecar"), limits()).await;
    assert_eq!(blemishes(&report), Vec::<String>::new(), "{}", troubles(&report));
    assert_eq!(report.checks.len(), RULES);
}

/// What each quirk of the fake sidecar must be found to break.
async fn broken_rules() {
    find(
        &[
            ("no-marker", &["ready_marker fail"]),
            ("bad-marker", &["ready_marker fail"]),
            ("no-ready", &["ready_first fail", "quiet_ready warn"]),
            ("banner", &["ready_first fail", "stdout_frames fail"]),
            ("thin-health", &["ready_marker fail", "ping_health fail"]),
            ("version-9", &["ping_health fail"]),
            ("null-dropping", &["explicit_null warn"]),
            ("any-version", &["jsonrpc_member fail"]),
            ("no-method-data", &["unknown_method fail"]),
            ("no-kinds", &["error_kinds fail"]),
            ("serves-notifications", &["notification fail"]),
            ("dies-of-bytes", &["invalid_utf8 fail"]),
            ("dies-of-depth", &["deep_nesting fail"]),
            ("dies-of-long-lines", &["long_line fail"]),
            ("list-oldest-first", &["session_list fail"]),
            ("flat-tools", &["tool_list fail"]),
            ("unknown-tool-is-error", &["tool_invoke fail"]),
            ("any-config", &["config_checked warn"]),
            ("careless-params", &["params_checked fail"]),
            ("careless-streams", &["stream_params fail"]),
            ("garbles", &["stream_text fail"]),
            ("eager", &["stream_text fail"]),
            ("fragments", &["stream_tool_calls fail"]),
            ("no-usage", &["stream_usage warn"]),
            ("failures-are-done", &["stream_error fail", "stream_error_kind skipped"]),
            ("odd-failures", &["stream_error_kind warn"]),
            ("shares-streams", &["stream_id_taken warn"]),
            ("no-drain", &["shutdown_drains fail"]),
            ("eof-1", &["eof fail"]),
            ("eof-silent", &["eof fail"]),
            ("any-flag", &["bad_flag warn"]),
            ("exits-1", &["shutdown_drains fail", "shutdown_now fail", "eof fail", "sigterm fail"]),
            ("no-farewell", &["shutdown_drains fail", "shutdown_now fail", "eof fail", "sigterm fail"]),
        ],
        limits(),
    )
    .await;
}

/// The same for quirks that only show when nothing comes.
async fn slow_rules() {
    let two_ends = [
        "stream_text fail",
        "stream_usage warn",
        "stream_tool_calls fail",
        "stream_error fail",
        "stream_error_kind warn",
        "stream_interleaves fail",
    ];
    find(
        &[
            // A line that must be answered and is not also shows where kinds and nulls are looked at.
            ("ignores-bad-json", &["explicit_null warn", "parse_error fail", "error_kinds fail"]),
            ("ignores-strange", &["invalid_request fail", "error_kinds fail"]),
            ("no-batches", &["batch fail"]),
            ("ignores-cancel", &["stream_cancel fail"]),
            ("ignores-term", &["sigterm fail"]),
            ("ignores-shutdown", &["shutdown_drains fail"]),
            ("two-ends", &two_ends),
        ],
        short(),
    )
    .await;
}

async fn find(table: &[(&'static str, &[&'static str])], limits: Limits) {
    let mut trying = tokio::task::JoinSet::new();
    for (quirk, expected) in table {
        let (quirk, expected) = (*quirk, expected.to_vec());
        trying.spawn(async move {
            let report = checked(&fake(&[quirk]), limits).await;
            if quirk == "ids-as-text" {
                // Not one answer can be matched to its call, so nothing can be seen.
                assert_eq!(
                    report.check("starts").map(|check| check.status),
                    Some(Status::Fail),
                    "{report:#?}"
                );
                return;
            }
            assert_eq!(blemishes(&report), expected, "{quirk}: {report:#?}");
            for check in
                report.checks.iter().filter(|check| matches!(check.status, Status::Fail | Status::Warn))
            {
                assert!(!check.detail.is_empty() && check.mend.is_some(), "{check:?}");
            }
        });
        // Few at a time: each is a dozen processes.
        if trying.len() >= 4 {
            trying.join_next().await.expect("one of them").expect("as expected");
        }
    }
    while let Some(tried) = trying.join_next().await {
        tried.expect("as expected");
    }
}

async fn does_not_start() {
    let mut nowhere = fake(&[]);
    nowhere.program = "/nowhere/at/all".into();
    let soon = Limits { ready: millis(300), ..limits() };
    for (spec, limits, detail) in [
        (nowhere, limits(), "cannot be started"),
        (fake(&["dies-before-ready"]), limits(), "it exited with code 3 before it answered a ping"),
        (fake(&["never-ready"]), soon, "nothing was on its standard output within 300ms"),
        // Not one answer can be matched to its call, so nothing else can be seen.
        (fake(&["ids-as-text"]), soon, "within 300ms"),
    ] {
        let report = checked(&spec, limits).await;
        let first = &report.checks[0];
        assert_eq!((first.name, first.status), ("starts", Status::Fail));
        assert!(first.detail.contains(detail), "{first:?}");
        assert_eq!((report.count(Status::Skipped), report.checks.len()), (RULES - 1, RULES), "{report:#?}");
    }
}

async fn json_report() {
    let json = checked(&fake(&["no-method-data"]), limits()).await.to_json();
    assert_eq!((&json["conformant"], &json["counts"]["fail"]), (&false.into(), &1.into()));
    let failed = json["checks"].as_array().expect("checks").iter().find(|check| check["status"] == "fail");
    let failed = failed.expect("a failure");
    assert_eq!(failed["name"], "unknown_method");
    assert!(failed["evidence"].as_str().expect("evidence").contains("check.no_such_method"));
    assert!(failed["mend"].as_str().expect("advice").contains("-32601"));
}
