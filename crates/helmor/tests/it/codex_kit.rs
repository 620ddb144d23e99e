//! What the tests of the Codex driver share: the real program with a folder of its own, and a desk that writes everything down.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_helmor::BoxFuture;
use outrigger_helmor::protocol::{PermissionMode, ProviderName, SendMessage, Steer};
use outrigger_helmor::provider::codex::{Codex, Config};
use outrigger_helmor::provider::process::Programs;
use outrigger_helmor::provider::{
    AgentSession, Answer, Asked, Desk, InputAsk, Outcome, PermissionAsk, Provider, Steering, Turn, Verdict,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::real::{self, Model};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test that waits.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), test).await.expect("it takes too long")
    })
}

/// A Codex with a home of its own.
pub(crate) struct Bench {
    pub(crate) codex: Codex,
    pub(crate) folder: TempDir,
    _model: Option<Model>,
}

impl Bench {
    /// The real one with a model server; `None` where it is not installed.
    pub(crate) fn real() -> Option<Self> {
        Self::real_with("")
    }

    /// The same with more in its configuration.
    pub(crate) fn real_with(config: &str) -> Option<Self> {
        let program = real::codex()?;
        let model = Model::start("responses");
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let port = model.port;
        let config = format!(
            "model_provider = \"fake\"\nmodel = \"gpt-5.5\"\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"http://127.0.0.1:{port}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 1\nstream_max_retries = 1\n{config}"
        );
        std::fs::write(home.join("config.toml"), config).unwrap();
        // The environment of a test is that of all tests, so a script sets what belongs to this one.
        let (home, program) = (home.display(), program.display());
        let script = format!(
            "#!/bin/sh\nexport CODEX_HOME='{home}' HOME='{home}' FAKE_KEY=key\nexec '{program}' \"$@\"\n"
        );
        Some(Self::with_program(folder, &script, Some(model)))
    }

    /// One that is a script of the test's own.
    pub(crate) fn scripted(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self::with_program(folder, script, None)
    }

    fn with_program(folder: TempDir, script: &str, model: Option<Model>) -> Self {
        let program = folder.path().join("codex");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let codex = Codex::new(Config { program: Some(program) }, Programs::default());
        Self { codex, folder, _model: model }
    }

    /// The folder that turns work in.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A turn that allows everything.
    pub(crate) fn send(&self, prompt: &str) -> SendMessage {
        SendMessage {
            session_id: "S".to_owned(),
            prompt: prompt.to_owned(),
            provider: ProviderName::Codex,
            model: None,
            cwd: Some(self.work()),
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

    /// A turn that asks.
    pub(crate) fn asking(&self, prompt: &str) -> SendMessage {
        SendMessage { permission_mode: Some(PermissionMode::AcceptEdits), ..self.send(prompt) }
    }

    /// A session.
    pub(crate) fn session(&self) -> Arc<dyn AgentSession> {
        self.codex.session("S")
    }

    /// The processes that were started for this test, by their environment or their command line.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let folder = self.folder.path().to_str().unwrap();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let read = |file: &str| {
                let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let line = read("cmdline");
            if !line.is_empty() && (line.contains(folder) || read("environ").contains(folder)) {
                found.push((pid, line));
            }
        }
        found
    }

    /// The server of the only session.
    pub(crate) fn server(&self) -> u32 {
        let all = self.processes();
        let servers: Vec<u32> =
            all.iter().filter(|(_, line)| line.contains(" app-server ")).map(|(pid, _)| *pid).collect();
        let [server] = servers.as_slice() else { panic!("not one server: {all:?}") };
        *server
    }
}

/// A turn that runs.
pub(crate) struct Running {
    pub(crate) desk: Arc<Recorder>,
    pub(crate) stop: CancellationToken,
    steering: mpsc::Sender<Steering>,
    task: JoinHandle<Outcome>,
}

/// Begins a turn.
pub(crate) fn begin(session: &Arc<dyn AgentSession>, send: SendMessage) -> Running {
    let desk = Recorder::default();
    desk.give_room();
    begin_at(session, send, desk)
}

/// Begins a turn for a host that does not read until it is told to.
pub(crate) fn begin_slow(session: &Arc<dyn AgentSession>, send: SendMessage) -> Running {
    begin_at(session, send, Recorder::default())
}

fn begin_at(session: &Arc<dyn AgentSession>, send: SendMessage, desk: Recorder) -> Running {
    let desk = Arc::new(desk);
    let stop = CancellationToken::new();
    let (steering, steered) = mpsc::channel(4);
    let turn = Turn { send, desk: desk.clone(), stop: stop.clone(), steering: steered };
    Running { desk, stop, steering, task: tokio::spawn(Arc::clone(session).turn(turn)) }
}

/// Runs a turn to its end.
pub(crate) async fn turn(session: &Arc<dyn AgentSession>, send: SendMessage) -> (Outcome, Vec<Value>) {
    begin(session, send).over().await
}

impl Running {
    /// Waits for an event.
    pub(crate) async fn seen(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut count = self.desk.count.subscribe();
        let found = async {
            loop {
                count.borrow_and_update();
                let found = self.desk.events.lock().unwrap().iter().find(|event| wanted(event)).cloned();
                if let Some(found) = found {
                    return found;
                }
                count.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(found) => found,
            Err(_) => panic!("it never came; there was: {:?}", kinds(&self.desk.events())),
        }
    }

    /// Waits for an event of this type.
    pub(crate) async fn seen_kind(&self, kind: &str) -> Value {
        self.seen(|event| event["type"] == kind).await
    }

    /// Waits until an item of this sort has begun.
    pub(crate) async fn item(&self, kind: &str) -> Value {
        self.seen(|event| event["type"] == "item/started" && event["item"]["type"] == kind).await
    }

    /// Says something meanwhile.
    pub(crate) async fn steer(&self, prompt: &str, images: &[String]) -> Option<Result<(), String>> {
        let steer = Steer { prompt: prompt.to_owned(), files: Vec::new(), images: images.to_vec() };
        let (taken, answer) = oneshot::channel();
        self.steering.send(Steering { steer, taken }).await.ok()?;
        answer.await.ok()
    }

    /// Waits for its end; with everything that was told.
    pub(crate) async fn over(self) -> (Outcome, Vec<Value>) {
        match tokio::time::timeout(PATIENCE, self.task).await {
            Ok(outcome) => (outcome.unwrap(), self.desk.events()),
            Err(_) => panic!("it does not end; there was: {:?}", kinds(&self.desk.events())),
        }
    }
}

/// What was told, as the host would see it.
#[derive(Default)]
pub(crate) struct Recorder {
    events: Arc<Mutex<Vec<Value>>>,
    verdicts: Mutex<HashMap<String, oneshot::Sender<Verdict>>>,
    answers: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    count: Arc<watch::Sender<usize>>,
    room: watch::Sender<Room>,
}

/// Whether the host reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    #[default]
    None,
    Wanted,
    Given,
}

impl Recorder {
    /// Everything so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    /// Waits until the driver waits for the host.
    pub(crate) async fn room_is_wanted(&self) {
        self.room.subscribe().wait_for(|room| *room == Room::Wanted).await.unwrap();
    }

    /// The host reads everything from now on.
    pub(crate) fn give_room(&self) {
        self.room.send_replace(Room::Given);
    }

    /// Answers a question about a tool.
    pub(crate) fn verdict(&self, event: &Value, verdict: Verdict) {
        let waiting = self.verdicts.lock().unwrap().remove(event["permissionId"].as_str().unwrap()).unwrap();
        waiting.send(verdict).unwrap();
    }

    /// Answers a question to the user.
    pub(crate) fn answer(&self, event: &Value, answer: Answer) {
        let waiting = self.answers.lock().unwrap().remove(event["userInputId"].as_str().unwrap()).unwrap();
        waiting.send(answer).unwrap();
    }

    fn write(&self, event: Value) {
        write(&self.events, &self.count, event);
    }
}

fn write(events: &Mutex<Vec<Value>>, count: &watch::Sender<usize>, event: Value) {
    events.lock().unwrap().push(event);
    count.send_modify(|count| *count += 1);
}

impl Desk for Recorder {
    fn pass(&self, object: &str) {
        self.write(serde_json::from_str(object).unwrap());
    }

    fn tell(&self, kind: &str, members: &[(&str, Value)]) {
        let mut event = json!({ "type": kind });
        for (name, value) in members {
            event[*name] = value.clone();
        }
        self.write(event);
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.room.send_if_modified(|room| {
                let first = *room == Room::None;
                if first {
                    *room = Room::Wanted;
                }
                first
            });
            self.room.subscribe().wait_for(|room| *room == Room::Given).await.unwrap();
        })
    }

    fn ask_permission(&self, ask: PermissionAsk) -> Asked<Verdict> {
        let (sender, receiver) = oneshot::channel();
        self.verdicts.lock().unwrap().insert(ask.id.clone(), sender);
        self.write(json!({
            "type": "permissionRequest", "permissionId": ask.id, "toolName": ask.tool_name, "toolInput": ask.tool_input,
            "title": ask.title, "description": ask.description, "suggestions": ask.suggestions,
        }));
        let (events, count) = (Arc::clone(&self.events), Arc::clone(&self.count));
        let id = ask.id;
        Asked::new(receiver, move || {
            write(&events, &count, json!({ "type": "permissionCancelled", "permissionId": id }));
        })
    }

    fn ask_input(&self, ask: InputAsk) -> Asked<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.answers.lock().unwrap().insert(ask.id.clone(), sender);
        self.write(json!({
            "type": "userInputRequest", "userInputId": ask.id, "source": ask.source, "message": ask.message,
            "payload": ask.payload,
        }));
        let (events, count) = (Arc::clone(&self.events), Arc::clone(&self.count));
        let id = ask.id;
        Asked::new(receiver, move || {
            write(&events, &count, json!({ "type": "userInputCancelled", "userInputId": id }));
        })
    }

    fn steered(&self, steer: &Steer) {
        self.write(
            json!({ "type": "user_prompt", "text": steer.prompt, "steer": true, "images": steer.images }),
        );
    }

    fn context_lost(&self, resume: &str, reason: &str) {
        self.write(json!({ "type": "contextReset", "resume": resume, "reason": reason }));
    }

    fn host_call<'a>(&'a self, _method: &'a str, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Err("nobody answers".to_owned()) })
    }

    fn log(&self, message: &str) {
        self.write(json!({ "type": "log", "message": message }));
    }
}

/// The last answer of the model.
pub(crate) fn answer_of(events: &[Value]) -> &str {
    let is_answer =
        |event: &&Value| event["type"] == "item/completed" && event["item"]["type"] == "agentMessage";
    events
        .iter()
        .rev()
        .find(is_answer)
        .map(|event| event["item"]["text"].as_str().unwrap())
        .unwrap_or_default()
}

/// The types of what was told, each run of the same once.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}
