//! A server on a free port of loopback, and a client that knows no more of HTTP than the tests do.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_abp::protocol::{AgentEvent, EventKind};
use outrigger_abp::receipt::{Folder, SpoolLimit};
use outrigger_policy::Digest;
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::daemon::{App, Entrance, Extensions};
use crate::engine::sqlite::Sqlite;
use crate::engine::{BoxFuture, Engine, Seq};
use crate::http::{ServerLimits, listen, serve};
use crate::runs::backend::{Again, NewApproval};
use crate::runs::dispatch::Lane;
use crate::runs::{
    Attempt, Backend, BackendView, Choice, Concluded, Control, DefaultAnswer, Ended, NewRun, Phase, Receipts,
    RequestError, RunId, RunRules, RunState, Runs, RunsOptions,
};

/// What every test has patience for.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that is up.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    pub(super) app: Arc<App>,
    leave: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// Limits that no test reaches unless it means to.
pub(super) fn roomy() -> ServerLimits {
    ServerLimits { per_second: 100_000, burst: 100_000, ..ServerLimits::USUAL }
}

impl Site {
    pub(super) async fn start(limits: ServerLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runs = open(folder.path());
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
        let app = Arc::new(App {
            runs,
            supervisor: Supervisor::new(settings),
            extensions: Extensions::Off { hint: "set [extensions] home".to_owned() },
            entrance: Entrance::new("secret".to_owned()),
            since: Instant::now(),
            store_bytes: Box::new(|| 4096),
            address,
            hosts: vec!["box.example".to_owned()],
        });
        let (leave, leaving) = oneshot::channel();
        let shutdown = async move {
            let _ = leaving.await;
        };
        let serving = tokio::spawn(serve(listener, Arc::clone(&app), limits, shutdown));
        Self { address, app, leave: Some(leave), serving, _folder: folder }
    }

    /// Asks with the token, and reads the whole answer.
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    /// Sends JSON with the token.
    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string()).await
    }

    pub(super) async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut all = vec!["Authorization: Bearer secret"];
        if !body.is_empty() {
            all.push("Content-Type: application/json");
        }
        all.extend(headers);
        self.bare(method, path, &all, body).await
    }

    /// Asks with these headers and no others but `Host`.
    pub(super) async fn bare(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("Host: {}", self.address);
        let mut all = vec![host.as_str(), "Connection: close"];
        all.extend(headers);
        let text = request(method, path, &all, body);
        self.raw(text.as_bytes()).await
    }

    /// Sends bytes, and reads until the server closes.
    pub(super) async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        // A server that has heard enough closes while we write.
        let _ = stream.write_all(bytes).await;
        rest(stream).await
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Opens an event stream.
    pub(super) async fn stream(&self, path: &str, headers: &[&str]) -> Events {
        let host = format!("Host: {}", self.address);
        let mut all = vec![host.as_str(), "Authorization: Bearer secret", "Accept: text/event-stream"];
        all.extend(headers);
        let mut stream = self.connect().await;
        stream.write_all(request("GET", path, &all, "").as_bytes()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut status = String::new();
        within(stream.read_line(&mut status)).await.unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(within(stream.read_line(&mut line)).await.unwrap() > 0, "the head broke off: {status}");
        }
        Events { stream, status: status[9..12].parse().unwrap(), bytes: Vec::new() }
    }

    /// Begins a run of the fake backend and waits until it is as it should be.
    pub(super) async fn run(&self, task: &str, phase: &str) -> String {
        let begun = self.post("/v1/runs", serde_json::json!({ "task": task })).await;
        assert_eq!(begun.status, 201, "{}", begun.text());
        let id = begun.json()["id"].as_str().unwrap().to_owned();
        self.until(&id, phase).await;
        id
    }

    /// Waits for a phase.
    pub(super) async fn until(&self, id: &str, phase: &str) {
        self.when(id, |state| state.phase.word() == phase).await;
    }

    /// Waits until a run is as it should be, by reading its log as it grows.
    pub(super) async fn when(&self, id: &str, is: impl Fn(&RunState) -> bool) {
        let id = RunId::parse(id).unwrap();
        let mut follower = self.app.runs.follow(&id, Seq(0)).await.unwrap();
        loop {
            let state = self.app.runs.show(&id).await.unwrap();
            if is(&state) {
                return;
            }
            assert!(!state.phase.is_over(), "it is over, and never was as it should be: {state:?}");
            within(follower.next()).await.unwrap();
        }
    }

    /// Asks again and again until a series of the metrics has a value.
    pub(super) async fn metric(&self, series: &str, value: &str) {
        let line = format!("{series} {value}");
        let seen = async { while !self.get("/metrics").await.text().lines().any(|found| found == line) {} };
        assert!(tokio::time::timeout(PATIENCE, seen).await.is_ok(), "never saw `{line}`");
    }

    /// Tells the server to leave.
    pub(super) fn leave(&mut self) {
        let _ = self.leave.take().expect("it was not told before").send(());
    }

    /// Waits until it has left.
    pub(super) async fn left(self) {
        within(self.serving).await.unwrap();
    }
}

/// A request as text.
pub(super) fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let length = format!("Content-Length: {}", body.len());
    let mut lines = vec![format!("{method} {path} HTTP/1.1")];
    lines.extend(headers.iter().map(|header| (*header).to_owned()));
    if !body.is_empty() {
        lines.push(length);
    }
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}

/// Everything that still comes.
pub(super) async fn rest(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // Some answers end with a reset, because we sent more than was read.
    let _ = within(stream.read_to_end(&mut bytes)).await;
    Answer::read(&bytes)
}

/// Waits, but not for ever.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(&bytes[end..]) } else { bytes[end..].to_vec() };
        Self { status, head, body }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.head, self.text()))
    }

    /// The status and the code of an error.
    pub(super) fn problem(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size =
            std::str::from_utf8(&bytes[..at]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && at + 2 + size <= bytes.len()) else { break };
        body.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[(at + 4 + size).min(bytes.len())..];
    }
    body
}

/// An event stream that is read as it comes.
pub(super) struct Events {
    pub(super) stream: BufReader<TcpStream>,
    pub(super) status: u16,
    bytes: Vec<u8>,
}

/// One event: its number, its kind, its data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Option<u64>,
    pub(super) kind: String,
    pub(super) data: String,
}

impl Events {
    /// The next event; none at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
                let block = String::from_utf8(block).unwrap();
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let Some(data) = field("data:") else { continue };
                let id = field("id:").map(|id| id.parse().unwrap());
                return Some(Event { id, kind: field("event:").unwrap().to_owned(), data: data.to_owned() });
            }
            let mut size = String::new();
            if within(self.stream.read_line(&mut size)).await.unwrap_or(0) == 0 {
                return None;
            }
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            within(self.stream.read_exact(&mut chunk)).await.unwrap();
            if size == 0 {
                return None;
            }
            self.bytes.extend_from_slice(&chunk[..size]);
        }
    }

    /// Everything until the end.
    pub(super) async fn all(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

fn open(folder: &std::path::Path) -> Runs {
    let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(&folder.join("runs.sqlite")).unwrap());
    let runs = Runs::open(RunsOptions {
        engine,
        lanes: vec![Lane::new(Arc::new(Obedient), 16)],
        default_backend: "obedient".to_owned(),
        receipts: Receipts {
            folder: Arc::new(Folder::open(folder.join("receipts"), SpoolLimit::USUAL).unwrap()),
            sign: None,
        },
        rules: RunRules {
            queued: 1000,
            retries: 0,
            approve_within: None,
            approve_default: DefaultAnswer::Deny,
            keep_for: Duration::from_secs(3600),
            keep_at_most: 1000,
        },
        tools: vec![("clock".to_owned(), "what time it is".to_owned())],
        left: Box::new(|_| None),
        complaints: Box::new(|_| {}),
    });
    runs.work();
    runs
}

/// Does what its task says: `say N`, `flood N`, `ask N`, `linger`, and nothing else.
struct Obedient;

impl Backend for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn resumes(&self) -> bool {
        false
    }

    fn check(&self, new: &NewRun) -> Result<(), RequestError> {
        match new.script {
            Some(_) => Err(RequestError::at("script", "this backend takes tasks")),
            None => Ok(()),
        }
    }

    fn look(&self) -> BoxFuture<'_, BackendView> {
        panic!("whoever looks at me breaks")
    }

    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
        Box::pin(obey(attempt))
    }
}

async fn obey(mut attempt: Attempt) -> Concluded {
    let task = attempt.order.request.task.clone().unwrap_or_default();
    let (word, count) = task.split_once(' ').unwrap_or((&task, "1"));
    let count: usize = count.parse().unwrap();
    let text = if word == "flood" { "x".repeat(64 << 10) } else { "hello".to_owned() };
    match word {
        "say" | "flood" => {
            for _ in 0..count {
                let event = AgentEvent::now(EventKind::AssistantMessage { text: text.as_str().into() });
                attempt.teller.event(&event).await.unwrap();
            }
        }
        "ask" => {
            for i in 0..count {
                attempt.teller.ask(question(i)).await.unwrap();
            }
            let mut answered = 0;
            while answered < count {
                match attempt.control.recv().await {
                    Some(Control::Answered(_)) => answered += 1,
                    Some(Control::Cancel { why }) => return cancelled(why),
                    Some(_) => {}
                    None => return Concluded::Drained,
                }
            }
        }
        "linger" => loop {
            match attempt.control.recv().await {
                Some(Control::Cancel { why }) => return cancelled(why),
                Some(Control::Drain) | None => return Concluded::Drained,
                Some(_) => {}
            }
        },
        other => panic!("nobody told me how to {other}"),
    }
    let ended = Ended::failed("final", "", Again::Nobody);
    Concluded::Ended(Box::new(Ended { phase: Phase::Completed, error: None, ..ended }))
}

fn cancelled(why: String) -> Concluded {
    let ended = Ended::failed("cancelled", why, Again::Nobody);
    Concluded::Ended(Box::new(Ended { phase: Phase::Cancelled, ..ended }))
}

fn question(number: usize) -> NewApproval {
    let input = format!("[{number},\"{}\"]", "long ".repeat(1000));
    NewApproval {
        key: format!("k{number}"),
        tool: "refund".to_owned(),
        input_sha256: Digest::of(input.as_bytes()),
        input,
        reason: "the policy wants a person".to_owned(),
        choices: vec![Choice::Approve, Choice::Answer, Choice::Deny],
        deadline: None,
        default: DefaultAnswer::Deny,
    }
}
