//! The conformance report: our own children keep every rule, and each rule finds the child that breaks it.

use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::check::{self, Limits, Report, Status};
use outrigger_abp::host::BackendSpec;

use crate::host_kit::{order, shell, supervisor, trial};
use crate::sidecar_children::spec;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("our_own_mock_keeps_every_rule", our_own_mock_keeps_every_rule),
        trial("the_kits_examples_for_node_and_python_keep_every_rule", the_kits_examples),
        trial(
            "the_node_example_of_the_original_document_is_found_to_send_an_empty_receipt",
            the_original_example,
        ),
        trial("a_child_that_cannot_be_started_or_says_no_hello_fails_the_first_check", no_hello),
        trial("each_broken_rule_is_found_with_its_evidence", broken_rules),
        trial("a_child_that_does_not_survive_is_found_out", not_surviving),
        trial("the_report_is_json_for_programs", json_report),
    ]
}

/// Children of tests answer at once, so little patience is enough; only what is broken waits for it.
fn limits() -> Limits {
    let millis = Duration::from_millis;
    Limits {
        hello: Duration::from_secs(20),
        run: Duration::from_secs(20),
        pong: Duration::from_secs(20),
        cancel: Duration::from_secs(20),
        exit: Duration::from_secs(20),
        quiet: millis(200),
    }
}

async fn checked(spec: &BackendSpec, limits: &Limits) -> Report {
    check::run(&supervisor(), spec, &order("say hello"), limits).await
}

/// Checks that did not pass, as `name status`.
fn blemishes(report: &Report) -> Vec<String> {
    let open = report.checks.iter().filter(|check| check.status != Status::Pass);
    open.map(|check| format!("{} {}", check.name, check.status)).collect()
}

async fn our_own_mock_keeps_every_rule() {
    for child in ["mock", "echo"] {
        let report = checked(&spec(&[child]), &limits()).await;
        assert_eq!(report.checks.len(), 25);
        assert!(report.is_conformant(), "{report:#?}");
        assert_eq!(report.count(Status::Warn), 0, "{report:#?}");
    }
    let slow =
        r#"{"steps":[{"do":"message","text":"a"},{"do":"wait","ms":300},{"do":"message","text":"b"}]}"#;
    let report = checked(&spec(&["mock", slow]), &limits()).await;
    assert_eq!(blemishes(&report), Vec::<String>::new(), "{report:#?}");
}

async fn the_kits_examples() {
    let sdk = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
    for (program, example) in
        [("node", "node/examples/abp-echo.mjs"), ("python3", "python/examples/abp_echo.py")]
    {
        let mut spec = shell("");
        spec.program = program.into();
        spec.args = vec![sdk.join(example).into()];
        let report = checked(&spec, &limits()).await;
        assert!(report.is_conformant(), "{report:#?}");
        assert_eq!(report.count(Status::Warn), 0, "{report:#?}");
    }
}

async fn the_original_example() {
    const NODE: &str = r"
const readline = require('readline');
const hello = { t: 'hello', contract_version: 'abp/v0.1', backend: { id: 'my-node-sidecar' }, capabilities: { streaming: 'native' } };
process.stdout.write(JSON.stringify(hello) + '\n');
(async () => {
  const rl = readline.createInterface({ input: process.stdin });
  for await (const line of rl) {
    const msg = JSON.parse(line);
    if (msg.t === 'run') {
      const event = { ts: new Date().toISOString(), type: 'assistant_message', text: 'Done' };
      process.stdout.write(JSON.stringify({ t: 'event', ref_id: msg.id, event }) + '\n');
      process.stdout.write(JSON.stringify({ t: 'final', ref_id: msg.id, receipt: {} }) + '\n');
      break;
    }
  }
})();";
    let mut spec = shell("");
    spec.program = "node".into();
    spec.args = vec!["-e".into(), NODE.into()];
    let limits = Limits { pong: Duration::from_millis(300), run: Duration::from_secs(3), ..limits() };
    let report = checked(&spec, &limits).await;
    for (name, status) in [
        ("hello_first", Status::Pass),
        ("hello_version", Status::Pass),
        ("ref_id", Status::Pass),
        ("one_end", Status::Pass),
        ("closed_input", Status::Pass),
        ("unknown_message", Status::Pass),
        ("unknown_members", Status::Pass),
        ("ping_idle", Status::Warn),
        // It stays, because its input is still open, and takes no other run.
        ("second_run", Status::Warn),
        ("receipt_form", Status::Fail),
        ("bad_json", Status::Fail),
    ] {
        let check = report.check(name).unwrap();
        assert_eq!(check.status, status, "{check:?}");
    }
}

async fn no_hello() {
    for (script, detail) in [
        ("exit 3", "it exited with code 3 before hello"),
        ("say 'Welcome!'; park", "JSON"),
        ("say '{\"t\":\"pong\",\"seq\":1}'; park", "the first line is `pong`"),
        ("park", "nothing within 300ms"),
    ] {
        let limits = Limits { hello: Duration::from_millis(300), ..limits() };
        let limits = if script == "park" { limits } else { self::limits() };
        let report = checked(&shell(script), &limits).await;
        let check = report.check("hello_first").unwrap();
        assert_eq!(check.status, Status::Fail);
        assert!(check.detail.contains(detail), "{check:?}");
        assert_eq!(report.count(Status::Skipped), 5, "{report:#?}");
    }
    let mut spec = shell("");
    spec.program = "/nowhere/at/all".into();
    let report = checked(&spec, &limits()).await;
    assert!(report.check("hello_first").unwrap().detail.contains("cannot be started"), "{report:#?}");
}

async fn broken_rules() {
    let ending = "final; cat >/dev/null";
    let table = [
        (format!("hello; run; say 'debug: on'; {ending}"), "stdout_only_json", Status::Fail),
        (format!("hello; run; say '{{\"t\":\"dance\"}}'; {ending}"), "messages_known", Status::Fail),
        (
            format!("hello; run; say '{{\"t\":\"event\",\"ref_id\":\"x\",\"event\":{{}}}}'; {ending}"),
            "messages_well_formed",
            Status::Fail,
        ),
        (format!("hello; run; real=$id; id=other; event x; id=$real; {ending}"), "ref_id", Status::Fail),
        (
            format!(
                "hello; run; event x; say '{{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{{\"ts\":\"2025-01-01T00:00:00Z\",\"type\":\"warning\",\"message\":\"x\"}}}}'; {ending}"
            ),
            "event_time",
            Status::Warn,
        ),
        (
            format!(
                "hello; run; say '{{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{{\"ts\":\"2025-01-01T00:00:00Z\",\"type\":\"thought\"}}}}'; {ending}"
            ),
            "event_types",
            Status::Warn,
        ),
        (format!("hello; run; final; {ending}"), "one_end", Status::Fail),
        (format!("hello; run; final; event late; {ending}"), "one_end", Status::Fail),
        ("hello; run; exit 7".to_owned(), "one_end", Status::Fail),
        (format!("hello; run; {ending}"), "receipt_form", Status::Fail),
        (format!("hello; run; {ending}; exit 9"), "exit_code", Status::Fail),
        (
            format!(
                "say '{{\"t\":\"hello\",\"contract_version\":\"banana\",\"backend\":{{\"id\":\"\"}},\"capabilities\":{{\"warp\":\"native\"}},\"mode\":\"fast\"}}'; run; {ending}"
            ),
            "hello_version",
            Status::Fail,
        ),
    ];
    let mut trying = tokio::task::JoinSet::new();
    for (script, name, status) in table {
        // The first line that a child hears is a ping; when it is a run it is one of the conversations without.
        let run = "IFS= read -r line; case $line in *ping*) run;; *) id=${line#*\\\"id\\\":\\\"}; id=${id%%\\\"*};; esac;";
        let script = script.replace("run;", run);
        let quick = Limits {
            pong: Duration::from_millis(300),
            cancel: Duration::from_millis(300),
            run: Duration::from_secs(3),
            ..limits()
        };
        trying.spawn(async move {
            let report = checked(&shell(&script), &quick).await;
            let check = report.check(name).unwrap_or_else(|| panic!("{name}: {report:#?}"));
            assert_eq!(check.status, status, "{script}\n{check:?}");
        });
    }
    while let Some(tried) = trying.join_next().await {
        tried.unwrap();
    }
}

async fn not_surviving() {
    // Every line that is not a run, and the end of the input, is the end of this one.
    let script = r#"hello; IFS= read -r line; case $line in *'"t":"run"'*) id=${line#*\"id\":\"}; id=${id%%\"*};; *) exit 5;; esac; IFS= read -r more || exit 6; final"#;
    let quick = Limits { pong: Duration::from_millis(300), run: Duration::from_secs(2), ..limits() };
    let report = checked(&shell(script), &quick).await;
    for name in ["ping_idle", "closed_input", "bad_json", "unknown_message"] {
        let check = report.check(name).unwrap();
        assert_eq!(check.status, Status::Fail, "{check:?}");
    }
    assert_eq!(report.check("closed_input").unwrap().detail, "it exited with code 6 without final or fatal");
}

async fn json_report() {
    let report = checked(&shell("say 'Welcome!'; park"), &limits()).await;
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["checks"][0]["name"], "hello_first");
    assert_eq!(json["checks"][0]["status"], "fail");
    assert_eq!(json["checks"][0]["evidence"], "Welcome!");
}
