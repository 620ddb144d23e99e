//! The children that are ready to run, as real processes under our control plane.

use std::process::ExitCode;

use libtest_mimic::Trial;
use outrigger_abp::host::{BackendSpec, RunControl, Sidecar, Terms, Wish};
use outrigger_abp::protocol::{AgentEvent, EventKind, Offer, Outcome, RunId, WorkOrder};
use outrigger_abp::sidecar::{mock, process};
use outrigger_supervise::sandbox::{Level, Limits, Request};
use serde_json::json;

use crate::host_kit::{Mark, quick, run_id, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("the_example_of_the_documentation_is_a_sidecar", the_example),
        trial("the_mock_plays_its_script_run_after_run", the_mock_plays_its_script_run_after_run),
        trial("the_mock_without_a_script_says_the_task_back", the_mock_without_a_script),
        trial("the_mock_hangs_until_it_is_cancelled_and_ends_partial", the_mock_hangs),
        trial("the_mock_exits_in_the_middle_of_a_run_with_its_code", the_mock_exits),
        trial("a_program_speaks_deltas_in_the_workspace_with_the_variables_of_the_order", a_program_speaks),
        trial("a_program_that_fails_makes_the_run_fail_with_its_exit_code", a_program_that_fails),
        trial("a_program_that_ignores_sigterm_is_gone_after_a_cancel", a_stubborn_program),
        trial("a_program_that_is_not_there_is_a_fatal", a_program_that_is_not_there),
    ]
}

#[path = "../../examples/abp-echo.rs"]
mod echo;

/// The test binary as one of the children: `echo`, `mock SCRIPT`, `process ARGS…`.
pub(crate) fn child(args: &[String]) -> ExitCode {
    match args {
        [kind] if kind == "echo" => echo::main(),
        [kind] if kind == "mock" => mock::serve_script(mock::Script::usual()),
        [kind, script] if kind == "mock" => mock::serve_script(mock::Script::read(script).expect("a script")),
        [kind, program, args @ ..] if kind == "process" => process::serve_command(process::Command {
            program: program.into(),
            args: args.to_vec(),
            task: process::Task::OnStdin,
            stderr: process::Stderr::Warnings,
        }),
        _ => ExitCode::FAILURE,
    }
}

pub(crate) fn spec(args: &[&str]) -> BackendSpec {
    let exe = std::env::current_exe().expect("own path");
    BackendSpec::new("child", exe, "/", Request::new(Level::Basic, Limits::as_the_host()))
        .args(["__sidecar"])
        .args(args.iter().copied())
        .set_env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

fn order(task: &str, root: &std::path::Path) -> WorkOrder {
    let text = json!({"task":task,"workspace":{"root":root},"config":{"env":{"COLOUR":"blue"}}}).to_string();
    WorkOrder::read(&text).expect("a work order")
}

/// Everything that is said, as one line each.
#[derive(Default)]
struct Said {
    lines: Vec<String>,
    cancel_on: Option<&'static str>,
}

impl outrigger_abp::host::Watcher for Said {
    fn event(&mut self, event: &AgentEvent<'_>, _: &str) -> Wish {
        let line = match &event.kind {
            EventKind::AssistantDelta { text } => format!("delta {text}"),
            EventKind::AssistantMessage { text } => format!("message {text}"),
            EventKind::RunStarted { .. } => "started".to_owned(),
            EventKind::Warning { message } => format!("warning {message}"),
            EventKind::Error { message, .. } => format!("error {message}"),
            EventKind::CommandExecuted { exit_code, output_preview, .. } => {
                format!("exit {exit_code:?} {}", output_preview.as_deref().unwrap_or_default())
            }
            EventKind::FileChanged { path, .. } => format!("changed {path}"),
            other => other.name().to_owned(),
        };
        let wish = match self.cancel_on {
            Some(word) if line.contains(word) => Wish::Cancel { why: "enough".to_owned() },
            Some(_) | None => Wish::GoOn,
        };
        self.lines.push(line);
        wish
    }
}

async fn the_example() {
    let (said, ended, _) = played(&["echo"], "hello  there", None).await;
    assert_eq!(said, ["started", "delta hello ", "delta there ", "message hello there", "run_completed"]);
    assert_eq!(ended.receipt.unwrap().usage.output_tokens, Some(2));
}

async fn the_mock_plays_its_script_run_after_run() {
    let root = tempfile::tempdir().unwrap();
    let script = json!({"steps":[
        {"do":"started","message":"go"},
        {"do":"delta","text":"x","times":3},
        {"do":"event","event":{"type":"weather","sky":"grey"}},
        {"do":"tool","tool_name":"Read","input":{"path":"a"},"output":"text"},
        {"do":"write_file","path":"sub/made.txt","content":"for {task}"},
        {"do":"usage","input_tokens":5},
        {"do":"final","outcome":"partial"}]});
    let terms = Terms { offer: Some(Offer { version: 1, features: Vec::new() }), ..quick() };
    let mut sidecar =
        Sidecar::start(&supervisor(), &spec(&["mock", &script.to_string()]), &terms).await.unwrap();
    for task in ["one", "two"] {
        let mut said = Said::default();
        let ended = sidecar.run(&run_id(), &order(task, root.path()), &mut said, RunControl::none()).await;
        assert!(ended.how.failure().is_none(), "{ended:?}");
        let expected = [
            "started",
            "delta x",
            "delta x",
            "delta x",
            "weather",
            "tool_call",
            "tool_result",
            "changed sub/made.txt",
        ];
        assert_eq!(said.lines, expected);
        let receipt = ended.receipt.unwrap();
        assert_eq!((receipt.outcome, receipt.usage.input_tokens), (Some(Outcome::Partial), Some(5)));
        assert_eq!(std::fs::read_to_string(root.path().join("sub/made.txt")).unwrap(), format!("for {task}"));
    }
    sidecar.stop(terms.ladder).await;
}

async fn the_mock_without_a_script() {
    let (said, ended, _) = played(&["mock"], "hello", None).await;
    assert_eq!(said, ["started", "delta mock: ", "delta hello", "message mock: hello"]);
    assert_eq!(ended.receipt.unwrap().outcome, Some(Outcome::Complete));
}

async fn the_mock_hangs() {
    let script = r#"{"steps":[{"do":"message","text":"wait"},{"do":"wait","ms":600000}]}"#;
    let (_, ended, _) = played(&["mock", script], "x", Some("wait")).await;
    assert_eq!(ended.how.failure().unwrap().code(), "cancelled", "{ended:?}");
    assert_eq!(ended.receipt.unwrap().outcome, Some(Outcome::Partial));
}

async fn the_mock_exits() {
    let (_, ended, _) = played(&["mock", r#"{"steps":[{"do":"exit","code":42}]}"#], "x", None).await;
    let told = ended.how.failure().unwrap().to_string();
    assert!(told.contains("42"), "{told}");
}

async fn a_program_speaks() {
    let script = r#"pwd; echo "$COLOUR $1"; cat; echo careful >&2"#;
    let (said, ended, root) =
        played(&["process", "/bin/sh", "-c", script, "sh", "<{task}>"], "the task", None).await;
    let root = root.path().canonicalize().unwrap();
    let deltas: Vec<&String> = said.iter().filter(|line| line.starts_with("delta")).collect();
    assert_eq!(
        deltas,
        [&format!("delta {}\n", root.display()), "delta blue <the task>\n", "delta the task\n"]
    );
    assert!(said.contains(&"warning careful".to_owned()), "{said:?}");
    assert!(said.last().unwrap().starts_with("exit Some(0) /"), "{said:?}");
    assert_eq!(ended.receipt.unwrap().outcome, Some(Outcome::Complete));
}

async fn a_program_that_fails() {
    let mute = "error `/bin/sh` ended with exit code 3 and said nothing on standard error";
    let (said, ended, _) = played(&["process", "/bin/sh", "-c", "exit 3"], "x", None).await;
    assert_eq!(said, ["started", "exit Some(3) ", mute]);
    assert_eq!(ended.receipt.unwrap().outcome, Some(Outcome::Failed));
    let (said, _, _) =
        played(&["process", "/bin/sh", "-c", "echo no luck >&2; echo >&2; kill -9 $$"], "x", None).await;
    assert_eq!(said.last().unwrap(), "error `/bin/sh` ended with signal 9 (SIGKILL): no luck");
}

async fn a_stubborn_program() {
    let script =
        "trap '' TERM; (trap '' TERM; while :; do sleep 1000; done) & echo up; while :; do sleep 1000; done";
    let mark = Mark::new();
    let terms = Terms { cancel_grace: std::time::Duration::from_secs(20), ..quick() };
    let spec = mark.on(spec(&["process", "/bin/sh", "-c", script]));
    let mut sidecar = Sidecar::start(&supervisor(), &spec, &terms).await.unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut said = Said { cancel_on: Some("up"), ..Said::default() };
    let ended = sidecar.run(&run_id(), &order("x", root.path()), &mut said, RunControl::none()).await;
    assert_eq!(ended.receipt.unwrap().outcome, Some(Outcome::Partial));
    assert_eq!(said.lines.last().unwrap(), "exit None up\n");
    sidecar.stop(terms.ladder).await;
    assert_eq!(mark.count(), 0);
}

async fn a_program_that_is_not_there() {
    let (_, ended, _) = played(&["process", "/nowhere/at/all"], "x", None).await;
    let failure = ended.how.failure().unwrap();
    assert!(failure.to_string().contains("/nowhere/at/all"), "{failure}");
}

/// One run of one child: what was said, how it ended, where it was.
async fn played(
    args: &[&str],
    task: &str,
    cancel_on: Option<&'static str>,
) -> (Vec<String>, outrigger_abp::host::Ended, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let terms = Terms { cancel_grace: std::time::Duration::from_secs(20), ..quick() };
    let mut sidecar = Sidecar::start(&supervisor(), &spec(args), &terms).await.unwrap();
    let mut said = Said { cancel_on, ..Said::default() };
    let id: RunId = run_id();
    let ended = sidecar.run(&id, &order(task, root.path()), &mut said, RunControl::none()).await;
    sidecar.stop(terms.ladder).await;
    (said.lines, ended, root)
}
