//! What the tests of agents over ACP need: the fake agent, or a real one, with a folder to work in.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_helmor::protocol::{PermissionMode, ProviderName, SendMessage, Steer};
use outrigger_helmor::provider::acp::{Acp, Config, Flavour};
use outrigger_helmor::provider::process::Programs;
use outrigger_helmor::provider::{AgentSession, Desk, Failure, Outcome, Provider, Steering, Turn};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::claude_kit::{Notes, processes};

/// The fake agent, as a command.
pub(crate) fn fake(folder: &Path, args: &[&str]) -> Vec<String> {
    let program = format!("{}/../../fakes/acp.py", env!("CARGO_MANIFEST_DIR"));
    let sessions = folder.join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let words = ["python3", &program, "--sessions", sessions.to_str().unwrap()];
    words.into_iter().chain(args.iter().copied()).map(ToOwned::to_owned).collect()
}

/// An agent with a folder to work in.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) acp: Acp,
}

impl World {
    /// The fake agent, started with these arguments.
    pub(crate) fn new(args: &[&str]) -> Self {
        Self::with(|folder| Flavour::Named { name: "fake".to_owned(), command: fake(folder, args) })
    }

    pub(crate) fn with(flavour: impl FnOnce(&Path) -> Flavour) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        let config = Config { flavour: flavour(folder.path()) };
        Self { acp: Acp::new(config, Programs::default()), folder }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The programs that run in this world.
    pub(crate) fn programs(&self) -> Vec<u32> {
        processes(self.folder.path().join("sessions").to_str().unwrap())
    }

    pub(crate) fn session(&self) -> Talk {
        Talk { session: self.acp.session("s1"), work: self.work() }
    }
}

/// A session, and how turns of it are begun.
pub(crate) struct Talk {
    pub(crate) session: Arc<dyn AgentSession>,
    work: PathBuf,
}

impl Talk {
    pub(crate) fn of(session: Arc<dyn AgentSession>, work: PathBuf) -> Self {
        Self { session, work }
    }

    /// What a host sends for this prompt.
    pub(crate) fn send(&self, prompt: &str) -> SendMessage {
        SendMessage {
            session_id: "s1".to_owned(),
            prompt: prompt.to_owned(),
            provider: ProviderName::Acp("fake".to_owned()),
            model: None,
            cwd: Some(self.work.clone()),
            resume: None,
            permission_mode: None,
            effort: None,
            fast_mode: false,
            ask_every_tool: false,
            thinking_display: None,
            claude_environment: Vec::new(),
            agent_proxy: None,
            additional_directories: Vec::new(),
            source_repo: None,
            images: Vec::new(),
        }
    }

    /// The same, in this mode.
    pub(crate) fn send_in(&self, mode: PermissionMode, prompt: &str) -> SendMessage {
        SendMessage { permission_mode: Some(mode), ..self.send(prompt) }
    }

    pub(crate) fn begin(&self, send: SendMessage) -> Running {
        let desk = Arc::new(Notes::default());
        let stop = CancellationToken::new();
        let (steer, steering) = mpsc::channel(4);
        let turn = Turn { send, desk: Arc::clone(&desk) as Arc<dyn Desk>, stop: stop.clone(), steering };
        let outcome = tokio::spawn(Arc::clone(&self.session).turn(turn));
        Running { desk, stop, steer, outcome }
    }

    /// A turn from beginning to end.
    pub(crate) async fn turn(&self, send: SendMessage) -> (Outcome, Vec<Value>) {
        let running = self.begin(send);
        let outcome = running.outcome.await.unwrap();
        (outcome, running.desk.all())
    }

    /// The same for a prompt that may do everything, and that goes well.
    pub(crate) async fn says(&self, prompt: &str) -> Vec<Value> {
        let (outcome, events) = self.turn(self.send(prompt)).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?} {events:#?}");
        events
    }

    /// What the agent says about itself.
    pub(crate) async fn state(&self) -> Value {
        last_said(&self.says("{{state}}").await)
    }
}

/// A turn that runs.
pub(crate) struct Running {
    pub(crate) desk: Arc<Notes>,
    pub(crate) stop: CancellationToken,
    steer: mpsc::Sender<Steering>,
    pub(crate) outcome: JoinHandle<Outcome>,
}

impl Running {
    /// Stops it, and says how it ended.
    pub(crate) async fn stopped(self) -> Outcome {
        self.stop.cancel();
        self.outcome.await.unwrap()
    }

    /// Says something meanwhile. Dropped without an answer is `None`.
    pub(crate) async fn steer(&self, prompt: &str) -> Option<Result<(), String>> {
        let (taken, answer) = oneshot::channel();
        let steer = Steer { prompt: prompt.to_owned(), files: Vec::new(), images: Vec::new() };
        self.steer.send(Steering { steer, taken }).await.ok()?;
        answer.await.ok()
    }
}

/// Everything that was said, in one text.
pub(crate) fn said(events: &[Value]) -> String {
    let words =
        events.iter().filter(|event| event["type"].as_str().is_some_and(|kind| kind.ends_with("/assistant")));
    words.filter_map(|event| event["message"]["content"][0]["text"].as_str()).collect()
}

/// The last thing that was said, which is JSON.
pub(crate) fn last_said(events: &[Value]) -> Value {
    let last =
        events.iter().rfind(|event| event["type"].as_str().is_some_and(|kind| kind.ends_with("/assistant")));
    let text = last
        .and_then(|event| event["message"]["content"][0]["text"].as_str())
        .expect("something that was said");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The events of a type.
pub(crate) fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Why a turn failed.
pub(crate) fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("it did not fail: {other:?}"),
    }
}

/// Cursor's agent is the fake one in a shell script, because its arguments are ours.
pub(crate) fn cursor(folder: &Path, args: &[&str]) -> Flavour {
    let program = folder.join("cursor-agent");
    let command: Vec<String> = fake(folder, args).iter().map(|word| format!("'{word}'")).collect();
    std::fs::write(&program, format!("#!/bin/sh\n[ \"$1\" = acp ] && exec {}\n", command.join(" "))).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    Flavour::Cursor { program: Some(program), api_key: Some("first".to_owned()) }
}
