//! Governing across processes: a ledger that two of them write, and a box that holds what the policy says.

use std::io::Write;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::govern::account::Worth;
use outrigger_abp::govern::boxing::{self, Extras};
use outrigger_abp::govern::{
    AnswerError, Answered, ApprovalId, Approver, Boxed, Choice, Governor, Ledger, Limits, Moment, OnDenied,
    Rules, Verdict,
};
use outrigger_abp::host::{RunControl, Sidecar};
use outrigger_abp::protocol::{
    AgentEvent, Ask, AskAction, AskDecision, EventKind, PolicyProfile, RunId, Timestamp, WorkOrder,
};
use outrigger_supervise::sandbox::Limits as BoxLimits;

use crate::host_kit::{Notes, command, order, quick, run_id, shell, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("another_process_answers_a_request_and_the_run_notices", another_process),
        trial("of_eight_processes_that_answer_at_once_one_is_heard_and_named_to_the_others", eight_processes),
        trial("a_request_of_a_run_that_was_killed_is_still_there_to_be_seen", killed_run),
        trial("a_child_in_the_box_of_its_policy_cannot_do_what_is_denied", boxed),
    ]
}

/// Another process: answers a request in a ledger, or raises one and waits to be killed.
pub(crate) fn process(args: &[String]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["answer", path, id, choice, by] => {
            let choice = if choice == "allow" { Choice::Allow } else { Choice::Deny };
            let at = Timestamp::now();
            let (id, by) = (ApprovalId::new(id), by.to_owned());
            let mut ledger = Ledger::open_existing(Path::new(path)).expect("a ledger");
            match ledger.answer(&Answered { id, choice, by, at, reason: None }) {
                Ok(()) => ExitCode::SUCCESS,
                Err(AnswerError::Already(first)) => {
                    say(&first.by);
                    ExitCode::from(3)
                }
                Err(error) => panic!("{error}"),
            }
        }
        ["raise", path, root] => {
            let mut governor = governor(Path::new(path), Path::new(root));
            let verdict = governor.ask(&at(0), &question("a1", "t1"));
            assert!(matches!(verdict, Verdict::Raise(_)));
            say("raised");
            loop {
                std::thread::park();
            }
        }
        _ => panic!("{words:?}"),
    }
}

fn say(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).expect("somebody who reads");
}

fn at(millis: u64) -> Moment {
    let since_start = Duration::from_millis(millis);
    Moment { since_start, at: Timestamp::from_unix_millis(1_790_000_000_000).after(since_start) }
}

/// A run in which `Bash` needs approval within an hour, by a child that asks.
fn governor(ledger: &Path, root: &Path) -> Governor {
    let mut order: WorkOrder = order("task");
    order.policy.require_approval_for.push("Bash".to_owned());
    let rules = Rules {
        run_id: RunId::new("1435d8a3-b669-4b75-82d5-df8e55e2c877"),
        subject: "agent".to_owned(),
        asks: vec![AskAction::Tool],
        limits: Limits::none(),
        on_denied: OnDenied::End,
        approver: Approver::Person { within: Duration::from_secs(3600), default: Choice::Deny },
    };
    Governor::new(&order, root, rules, Some(Ledger::open(ledger).expect("a ledger"))).expect("a governor")
}

fn question(id: &'static str, tool_use_id: &'static str) -> Ask<'static> {
    Ask {
        ref_id: "1435d8a3-b669-4b75-82d5-df8e55e2c877".into(),
        id: id.into(),
        action: AskAction::Tool,
        tool_name: Some("Bash".into()),
        input: None,
        path: None,
        host: None,
        tool_use_id: Some(tool_use_id.into()),
        needs: None,
    }
}

fn answering(ledger: &Path, id: &ApprovalId, choice: &str, by: &str) -> std::process::Command {
    let mut command = command(&std::env::current_exe().expect("own path"));
    command.args(["__govern", "answer"]).arg(ledger).args([id.as_str(), choice, by]);
    command
}

fn raised(verdict: Verdict) -> ApprovalId {
    match verdict {
        Verdict::Raise(request) => request.id,
        other => panic!("nobody was asked: {other:?}"),
    }
}

async fn another_process() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("approvals.jsonl");
    let mut governor = governor(&ledger, folder.path());
    for (ask, choice, decision) in [("a1", "allow", AskDecision::Allow), ("a2", "deny", AskDecision::Deny)] {
        let id = raised(governor.ask(&at(0), &question(ask, ask)));
        assert_eq!(governor.tick(&at(1000)), Verdict::Go, "nobody has answered yet");
        assert!(answering(&ledger, &id, choice, "bob").status().unwrap().success());
        match governor.tick(&at(2000)) {
            Verdict::Answer(answer) => {
                assert_eq!((answer.id.as_str(), answer.decision), (ask, decision));
                assert!(answer.reason.contains("by bob"), "{}", answer.reason);
            }
            other => panic!("the answer was not noticed: {other:?}"),
        }
        let late = answering(&ledger, &id, "allow", "eve").output().unwrap();
        assert_eq!((late.status.code(), late.stdout.as_slice()), (Some(3), b"bob\n".as_slice()));
    }
    let approvals = governor.account(None).approvals;
    assert_eq!(approvals.iter().map(|one| one.by.as_str()).collect::<Vec<_>>(), ["bob", "bob"]);
}

async fn eight_processes() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("approvals.jsonl");
    let mut governor = governor(&ledger, folder.path());
    let id = raised(governor.ask(&at(0), &question("a1", "t1")));
    let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    let start = |by: &String| answering(&ledger, &id, "allow", by).stdout(Stdio::piped()).spawn().unwrap();
    let processes: Vec<_> = names.iter().map(start).collect();
    let ends: Vec<_> = processes.into_iter().map(|process| process.wait_with_output().unwrap()).collect();
    let heard: Vec<&String> =
        names.iter().zip(&ends).filter(|(_, end)| end.status.success()).map(|it| it.0).collect();
    assert_eq!(heard.len(), 1);
    for refused in ends.iter().filter(|end| !end.status.success()) {
        assert_eq!(String::from_utf8_lossy(&refused.stdout), format!("{}\n", heard[0]));
    }
    assert!(matches!(governor.tick(&at(1000)), Verdict::Answer(_)));
    assert_eq!(&governor.account(None).approvals[0].by, heard[0]);
}

async fn killed_run() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("approvals.jsonl");
    let mut run = command(&std::env::current_exe().expect("own path"));
    run.args(["__govern", "raise"]).arg(&ledger).arg(folder.path()).stdout(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut said = String::new();
    let mut stdout = std::io::BufReader::new(run.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut said).unwrap();
    assert_eq!(said, "raised\n");
    run.kill().unwrap();
    run.wait().unwrap();

    let seen = Ledger::open_existing(&ledger).unwrap();
    let open: Vec<_> = seen.open_requests().map(|request| request.tool_name.as_str()).collect();
    assert_eq!(open, ["Bash"]);
    // Whoever takes the run up again numbers on.
    let next = raised(governor(&ledger, folder.path()).ask(&at(0), &question("a1", "t2")));
    assert_eq!(next.as_str(), "1435d8a3-2");
}

/// What a child in the box of `profile` can do in its root and beside it.
async fn attempts(profile: &PolicyProfile) -> (Vec<String>, Worth, Worth) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("inside"), "i").unwrap();
    std::fs::write(folder.path().join("beside"), "b").unwrap();
    let extras = Extras { read: Vec::new(), write: Vec::new(), limits: BoxLimits::as_the_host() };
    let plan = boxing::plan(profile, &root, &extras);
    let mut backend = shell(
        "hello; run
         try() { if sh -c \"$2\" 2>/dev/null >/dev/null </dev/null; then event \"$1\"; fi; }
         try read 'cat $ROOT/inside'
         try write 'echo x > $ROOT/new'
         try beside 'cat $ROOT/../beside'
         try beside-write 'echo x > $ROOT/../beside'
         try beside-link 'ln -s $ROOT/../beside $ROOT/link && cat $ROOT/link'
         final",
    );
    backend.sandbox = plan.request.clone();
    let backend = backend.set_env("ROOT", &root);
    let mut sidecar = Sidecar::start(&supervisor(), &backend, &quick()).await.expect("a child");
    let enforced = sidecar.enforced().cloned().expect("a report of the box");
    let mut notes = Notes::default();
    let mut order = order("task");
    order.policy = profile.clone();
    sidecar.run(&run_id(), &order, &mut notes, RunControl::none()).await;
    let rules = Rules {
        run_id: run_id(),
        subject: "agent".to_owned(),
        asks: Vec::new(),
        limits: Limits::none(),
        on_denied: OnDenied::End,
        approver: Approver::Nobody,
    };
    let governor = Governor::new(&order, &root, rules, None).unwrap();
    let account = governor.account(Some(Boxed { plan: &plan, enforced: &enforced }));
    (notes.heard, account.enforcement.files, account.enforcement.network)
}

async fn boxed() {
    let free = PolicyProfile::unrestricted();
    let lists = |entry: &str| vec![entry.to_owned()];
    let table: [(PolicyProfile, &[&str], Worth, Worth); 4] = [
        (free.clone(), &["read", "write"], Worth::Enforced, Worth::None),
        (PolicyProfile { deny_write: lists("**"), ..free.clone() }, &["read"], Worth::Enforced, Worth::None),
        (
            PolicyProfile { deny_write: lists("**"), deny_read: lists("**"), ..free.clone() },
            &[],
            Worth::Enforced,
            Worth::None,
        ),
        (
            PolicyProfile { deny_read: lists("**/.env"), deny_network: lists("*"), ..free },
            &["read", "write"],
            Worth::Observed,
            Worth::Enforced,
        ),
    ];
    for (profile, can, files, network) in table {
        let (done, files_worth, network_worth) = attempts(&profile).await;
        assert_eq!(done, can, "{profile:?}");
        assert_eq!((files_worth, network_worth), (files, network), "{profile:?}");
    }
    // The same attempt, told to a governor instead of a box.
    let folder = tempfile::tempdir().unwrap();
    let mut governor = governor(&folder.path().join("approvals.jsonl"), folder.path());
    let read = AgentEvent::now(EventKind::FileChanged { path: "../beside".into(), summary: "".into() });
    assert!(matches!(governor.event(&at(0), &read), Verdict::End(_)));
}
