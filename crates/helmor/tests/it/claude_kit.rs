//! What the tests of Claude Code need: the real program with a home of its own and a model on loopback, and a desk that
//! remembers everything it is told.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use outrigger_helmor::BoxFuture;
use outrigger_helmor::protocol::{PermissionMode, ProviderName, SendMessage, Steer};
use outrigger_helmor::provider::claude::{Claude, Config, SystemPrompt};
use outrigger_helmor::provider::process::Programs;
use outrigger_helmor::provider::{
    AgentSession, Answer, Asked, Desk, InputAction, InputAsk, Outcome, PermissionAsk, Provider, Steering,
    Turn, Verdict,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::real::{self, Model};

/// Nothing in these tests takes that long, unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test in a runtime of its own.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("a test that ends") });
}

/// The model that all tests talk to. It ends when this process does.
pub(crate) fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::start("anthropic"))
}

/// The answer of the model's server to a GET.
pub(crate) fn ask_model(path: &str) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(model().port).unwrap())).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: model\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// What the model was asked that has `mark` in it.
pub(crate) fn asked(mark: &str) -> Vec<Value> {
    let requests = ask_model("/requests");
    let has = |request: &&Value| request["newest"].as_str().is_some_and(|newest| newest.contains(mark));
    requests.as_array().unwrap().iter().filter(has).cloned().collect()
}

/// Claude Code with a home, a folder to work in, and a model.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) claude: Claude,
}

impl World {
    /// The real program; `None` where it is not installed. `more` are lines of shell before it starts.
    pub(crate) fn real(more: &str) -> Option<Self> {
        let claude = real::claude()?;
        let port = model().port;
        let script = format!(
            "export ANTHROPIC_BASE_URL=http://127.0.0.1:{port} ANTHROPIC_API_KEY=key IS_SANDBOX=1\n\
             export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1\n\
             export DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=0\n{more}\nexec {} \"$@\"",
            claude.display()
        );
        Some(Self::with(&script))
    }

    /// A program that is this shell script. It finds its home in `$HOME`.
    pub(crate) fn with(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir_all(home.join("tmp")).unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        let program = folder.path().join("claude");
        let here = home.display();
        let head = format!("#!/bin/sh\nexport HOME={here} CLAUDE_CONFIG_DIR={here} TMPDIR={here}/tmp\n");
        std::fs::write(&program, head + script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = Config { program: Some(program), system_prompt: SystemPrompt::Own };
        Self { folder, claude: Claude::new(config, Programs::default()) }
    }

    /// The same, where this tells the model what it is.
    pub(crate) fn telling(self, system_prompt: SystemPrompt) -> Self {
        let config = Config { program: Some(self.folder.path().join("claude")), system_prompt };
        Self { claude: Claude::new(config, Programs::default()), ..self }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn session(&self) -> Talk {
        Talk { session: self.claude.session("s1"), work: self.work() }
    }
}

/// A session, and how turns of it are begun.
pub(crate) struct Talk {
    pub(crate) session: Arc<dyn AgentSession>,
    work: PathBuf,
}

impl Talk {
    /// What a host sends for this prompt.
    pub(crate) fn send(&self, prompt: &str) -> SendMessage {
        SendMessage {
            session_id: "s1".to_owned(),
            prompt: prompt.to_owned(),
            provider: ProviderName::Claude,
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

    /// A turn from beginning to end, of which nobody asks anything.
    pub(crate) async fn turn(&self, send: SendMessage) -> (Outcome, Vec<Value>) {
        let running = self.begin(send);
        let outcome = running.outcome.await.unwrap();
        (outcome, running.desk.all())
    }

    /// The same for a prompt that may do everything.
    pub(crate) async fn says(&self, prompt: &str) -> (Outcome, Vec<Value>) {
        self.turn(self.send(prompt)).await
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
    pub(crate) async fn end(self) -> Outcome {
        self.outcome.await.unwrap()
    }

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

/// A desk that remembers everything it is told, as events in the order in which they came.
#[derive(Default)]
pub(crate) struct Notes {
    events: Arc<Mutex<Vec<Value>>>,
    bell: Arc<Notify>,
    permissions: Mutex<HashMap<String, oneshot::Sender<Verdict>>>,
    inputs: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
}

impl Notes {
    pub(crate) fn all(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    /// The first event that is so, waited for.
    pub(crate) async fn first(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let rung = self.bell.notified();
                tokio::pin!(rung);
                rung.as_mut().enable();
                if let Some(found) = self.events.lock().unwrap().iter().find(|event| is(event)) {
                    return found.clone();
                }
                rung.await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(20), wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what} did not come; what came: {:#?}", kinds(&self.all())),
        }
    }

    /// The first event of this type.
    pub(crate) async fn of(&self, kind: &str) -> Value {
        self.first(kind, |event| event["type"] == kind).await
    }

    /// Waits until the model has begun to say something.
    pub(crate) async fn talks(&self) {
        self.first("a delta", |event| event["event"]["type"] == "content_block_delta").await;
    }

    pub(crate) fn decide(&self, id: &Value, verdict: Verdict) {
        let waiting = self.permissions.lock().unwrap().remove(id.as_str().unwrap());
        let _ = waiting.expect("somebody who waits").send(verdict);
    }

    pub(crate) fn allow(&self, id: &Value) {
        self.decide(id, Verdict::Allow { updated: Vec::new() });
    }

    pub(crate) fn answer(&self, id: &Value, action: InputAction, content: &Value) {
        let waiting = self.inputs.lock().unwrap().remove(id.as_str().unwrap());
        let answer = Answer { action, content: content.as_object().cloned(), meta: None };
        let _ = waiting.expect("somebody who waits").send(answer);
    }

    fn note(&self, event: Value) {
        self.events.lock().unwrap().push(event);
        self.bell.notify_waiters();
    }

    fn withdrawal(&self, kind: &'static str, id: String) -> impl FnOnce() + Send + 'static {
        let (events, bell) = (Arc::clone(&self.events), Arc::clone(&self.bell));
        move || {
            events.lock().unwrap().push(json!({"type": kind, "withdrawn": id}));
            bell.notify_waiters();
        }
    }
}

impl Desk for Notes {
    fn pass(&self, object: &str) {
        self.note(serde_json::from_str(object).expect("an object"));
    }

    fn tell(&self, kind: &str, members: &[(&str, Value)]) {
        let mut event = json!({"type": kind});
        for (name, value) in members {
            event[*name] = value.clone();
        }
        self.note(event);
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn ask_permission(&self, ask: PermissionAsk) -> Asked<Verdict> {
        let (sender, answer) = oneshot::channel();
        self.permissions.lock().unwrap().insert(ask.id.clone(), sender);
        let withdraw = self.withdrawal("permissionCancelled", ask.id.clone());
        self.note(json!({"type": "permissionRequest", "permissionId": ask.id, "toolName": ask.tool_name,
                         "toolInput": ask.tool_input, "suggestions": ask.suggestions, "required": ask.required}));
        Asked::new(answer, withdraw)
    }

    fn ask_input(&self, ask: InputAsk) -> Asked<Answer> {
        let (sender, answer) = oneshot::channel();
        self.inputs.lock().unwrap().insert(ask.id.clone(), sender);
        let withdraw = self.withdrawal("userInputCancelled", ask.id.clone());
        self.note(json!({"type": "userInputRequest", "userInputId": ask.id, "source": ask.source,
                         "message": ask.message, "payload": ask.payload}));
        Asked::new(answer, withdraw)
    }

    fn steered(&self, steer: &Steer) {
        self.note(json!({"type": "user_prompt", "text": steer.prompt}));
    }

    fn context_lost(&self, resume: &str, reason: &str) {
        self.note(json!({"type": "contextReset", "resume": resume, "reason": reason}));
    }

    fn host_call<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Err("nobody is there".to_owned()) })
    }

    fn log(&self, message: &str) {
        self.note(json!({"type": "log", "message": message}));
    }
}

/// The types of events, with the subtypes of those that have one.
pub(crate) fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |event: &Value| match event["subtype"].as_str() {
        Some(subtype) => format!("{}/{subtype}", event["type"].as_str().unwrap_or("?")),
        None => event["type"].as_str().unwrap_or("?").to_owned(),
    };
    events.iter().map(kind).collect()
}

/// The texts that models and the program said in whole messages.
pub(crate) fn texts(events: &[Value]) -> Vec<String> {
    let assistant = events.iter().filter(|event| event["type"] == "assistant");
    let blocks =
        assistant.flat_map(|event| event["message"]["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
}

/// Claude Code's name of the session.
pub(crate) fn session_id(events: &[Value]) -> String {
    let init = events.iter().find(|event| event["subtype"] == "init").expect("an introduction");
    init["session_id"].as_str().unwrap().to_owned()
}

/// The processes that have `mark` in their command line.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let entries = std::fs::read_dir("/proc").unwrap().flatten().filter_map(pid);
    entries.filter(|pid| is_of(*pid, mark)).collect()
}

fn is_of(pid: u32, mark: &str) -> bool {
    let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    memchr::memmem::find(&line, mark.as_bytes()).is_some()
}

/// The processes of Claude Code itself that work in this world.
pub(crate) fn programs(world: &World) -> Vec<u32> {
    let here = world.work();
    let works_here = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == here)
            && is_of(*pid, "stream-json")
    };
    processes("--input-format").into_iter().filter(works_here).collect()
}

/// Waits until something outside this process is so, of which nobody tells us.
pub(crate) async fn until(is: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(std::time::Instant::now() < end, "it never came about");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
