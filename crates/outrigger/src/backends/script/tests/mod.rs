//! Scripts as runs, over the real store and the real engine, whose children are threads of the test.

mod calls;
mod decisions;
mod ends;
mod killed;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, EventKind};
use outrigger_abp::receipt::{Folder, SpoolLimit, verify};
use outrigger_mustard::host::store::Dialect;
use outrigger_mustard::host::{BoxFuture, HostKey, Link, Plain, Process, Source, SpawnError};
use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::sidecar::{Budgets, Surroundings, System, serve};
use outrigger_policy::PolicyProfile;
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Scripts;
use crate::backends::tools::{ApprovalRule, Repeat, Tools};
use crate::engine::sqlite::Sqlite;
use crate::engine::{Engine, Seq};
use crate::runs::dispatch::Lane;
use crate::runs::entry::Entry;
use crate::runs::{
    Actor, Answer, Choice, DefaultAnswer, Line, NewRun, Receipts, RunId, RunRules, RunState, Runs,
    RunsOptions,
};

/// Children that are threads of this process and speak through a socket.
#[derive(Debug)]
struct Threads;

impl Source for Threads {
    fn dialect(&self) -> Dialect {
        Dialect::Extended
    }

    fn spawn(&self) -> BoxFuture<'_, Result<Link, SpawnError>> {
        Box::pin(async {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
            ours.set_nonblocking(true).expect("a socket");
            let (output, input) = tokio::net::UnixStream::from_std(ours).expect("a socket").into_split();
            std::thread::spawn(move || {
                let from = theirs.try_clone().expect("a socket");
                let around = Surroundings { landlock: "none".into(), seccomp: "none".into() };
                // It ends when nobody speaks to it any more, be it in the middle of a sentence.
                let _ = serve(from, theirs, Framing::Binary, System::new(), Budgets::USUAL, around);
            });
            Ok(Link { input: Box::pin(input), output: Box::pin(output), process: Process::Elsewhere })
        })
    }
}

/// What the tools of a test were called with.
type Calls = Arc<Mutex<Vec<String>>>;

/// A folder, and what happens in it.
struct Bench {
    folder: TempDir,
    calls: Calls,
    house: PolicyProfile,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, calls: Calls::default(), house: PolicyProfile::unrestricted() }
    }

    /// `safe` and `risky` note that they were called and shout back; `stuck` never answers.
    fn tools(&self) -> Tools {
        let settings =
            Settings { launcher: Launcher::current_exe(), starting_at_once: std::num::NonZeroUsize::MIN };
        let tools = Tools::new(Vec::new(), &Supervisor::new(settings)).unwrap();
        let shout = |calls: &Calls| {
            let calls = Arc::clone(calls);
            Box::new(move |args: Vec<Plain>| {
                let word = match args.first() {
                    Some(Plain::String(text)) => text.clone(),
                    other => format!("{other:?}"),
                };
                calls.lock().unwrap().push(word.clone());
                let answer: crate::engine::BoxFuture<'static, _> =
                    Box::pin(async move { Ok(Plain::String(word.to_uppercase())) });
                answer
            })
        };
        tools
            .with("safe", ApprovalRule::Never, Repeat::Safe, shout(&self.calls))
            .with("risky", ApprovalRule::Never, Repeat::Ask, shout(&self.calls))
            .with("guarded", ApprovalRule::Always, Repeat::Ask, shout(&self.calls))
            .with("stuck", ApprovalRule::Never, Repeat::Ask, Box::new(|_| Box::pin(std::future::pending())))
    }

    fn store(&self) -> Sqlite {
        Sqlite::open(&self.folder.path().join("runs.sqlite")).unwrap()
    }

    fn receipts(&self) -> Arc<Folder> {
        Arc::new(Folder::open(self.folder.path().join("receipts"), SpoolLimit::USUAL).unwrap())
    }

    /// A daemon over this store.
    fn daemon(&self, engine: Arc<dyn Engine>) -> Runs {
        let key = HostKey::from_bytes([7; HostKey::BYTES]);
        let host = super::host::with(Arc::new(Threads), key).unwrap();
        let scripts = Scripts::new(host, self.tools()).under(&self.house).unwrap();
        let runs = Runs::open(RunsOptions {
            engine,
            default_backend: super::NAME.to_owned(),
            lanes: vec![Lane::new(Arc::new(scripts), 8)],
            receipts: Receipts { folder: self.receipts(), sign: None },
            rules: RunRules {
                queued: 100,
                retries: 0,
                approve_within: None,
                approve_default: DefaultAnswer::Deny,
                keep_for: Duration::from_secs(3600),
                keep_at_most: 100,
            },
            tools: Vec::new(),
            left: Box::new(|_| None),
            complaints: Box::new(|_| {}),
        });
        runs.work();
        runs
    }

    fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn me() -> Actor {
    Actor::new("test")
}

fn script(source: &str, members: Value) -> NewRun {
    let mut request = json!({
        "script": source,
        "tools": {
            "safe": {"tool": "safe"},
            "risky": {"tool": "risky"},
            "stuck": {"tool": "stuck"},
            "checked": {"approved": "risky"},
            "guarded": {"tool": "guarded"},
            "ask": "person",
            "fixed": {"value": {"n": 5}},
            "print": {"tool": "print"},
        },
    });
    request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    NewRun::from_value(request).unwrap()
}

/// Waits until a run is as it should be.
async fn until(runs: &Runs, run: &RunId, mut is: impl FnMut(&RunState) -> bool) -> RunState {
    let mut follower = runs.follow(run, Seq(0)).await.unwrap();
    loop {
        let state = runs.show(run).await.unwrap();
        if is(&state) {
            return state;
        }
        let more = tokio::time::timeout(Duration::from_secs(60), follower.next()).await;
        if more.unwrap_or_else(|_| panic!("nothing more happens: {state:?}")).unwrap().is_none() {
            let state = runs.show(run).await.unwrap();
            assert!(is(&state), "it is over, and not as it should be: {state:?}");
            return state;
        }
    }
}

async fn over(runs: &Runs, run: &RunId) -> RunState {
    until(runs, run, |state| state.phase.is_over()).await
}

/// Waits until somebody is asked, and answers.
async fn answer(runs: &Runs, run: &RunId, answer: Answer) -> RunState {
    let state = until(runs, run, |state| state.open_approvals().next().is_some()).await;
    let id = state.open_approvals().next().unwrap().id.clone();
    runs.answer(run, &id, answer, me()).await.unwrap()
}

fn plainly(choice: Choice) -> Answer {
    Answer::plain(choice)
}

fn value(value: Value) -> Answer {
    Answer { value: Some(value), ..Answer::plain(Choice::Answer) }
}

async fn lines(runs: &Runs, run: &RunId) -> Vec<Line> {
    let page = runs.events(run, Seq(0), 2000).await.unwrap();
    page.iter().map(|one| Line::read(&one.record).unwrap()).collect()
}

/// The events of a run in few words: `call c1 safe ["x"]`, `result c1 "X"`, `error c1 Denied`, `says hello`.
async fn events(runs: &Runs, run: &RunId) -> Vec<String> {
    let mut words = Vec::new();
    for line in lines(runs, run).await {
        let Entry::Event(told) = line.entry else { continue };
        let event = AgentEvent::read(told.event.get()).unwrap();
        words.push(match &event.kind {
            EventKind::ToolCall { tool_name, tool_use_id, input, .. } => {
                format!("call {} {tool_name} {}", tool_use_id.as_deref().unwrap(), input.as_str())
            }
            EventKind::ToolResult { tool_use_id, output, is_error: false, .. } => {
                format!("result {} {}", tool_use_id.as_deref().unwrap(), output.as_str())
            }
            EventKind::ToolResult { tool_use_id, output, is_error: true, .. } => {
                let name = output.to_value()["name"].as_str().unwrap().to_owned();
                format!("error {} {name}", tool_use_id.as_deref().unwrap())
            }
            EventKind::AssistantMessage { text } => format!("says {text}"),
            EventKind::RunStarted { .. } => "started".to_owned(),
            EventKind::RunCompleted { .. } => "completed".to_owned(),
            EventKind::Error { .. } => "failed".to_owned(),
            EventKind::Warning { .. } => "again".to_owned(),
            other => panic!("unexpected: {other:?}"),
        });
    }
    words
}

/// The receipt of a run is there, holds, and has all its events.
async fn assert_receipt(bench: &Bench, runs: &Runs, state: &RunState) {
    let receipt = state.receipt.as_ref().expect("a receipt");
    let check = verify(&Path::join(bench.receipts().path(), &receipt.file)).unwrap();
    assert!(check.is_valid(), "{check:?}");
    assert_eq!(check.events, state.attempt_events);
    assert_eq!(events(runs, &state.id).await.len() as u64, check.events);
    let head = check.receipt.unwrap();
    assert_eq!(head.meta.run_id.as_str(), state.id.as_str());
    assert_eq!(head.outrigger().unwrap()["ending"].as_str(), state.ending.as_deref());
}
