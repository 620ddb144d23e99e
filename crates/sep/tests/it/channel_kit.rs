//! What the tests of the channel need: places for sockets, processes that attach, and a book of those who were refused.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sep::host::channel::{
    Attached, Expected, Refusal, Rendezvous, RunDirs, Transport, Why, Witness,
};
use outrigger_sep::protocol::Limits;
use outrigger_supervise::tree::Pid;
use outrigger_wire::peer::{Answer, BoxFuture, Call, Handler, Note};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Directories for the sockets of one test.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(root.path().join("run")).expect("it is empty");
        Self { root }
    }

    pub(crate) fn dirs(&self) -> RunDirs {
        RunDirs {
            runtime: Some(self.root.path().join("run")),
            state: self.root.path().join("state"),
            temporary: self.root.path().join("tmp"),
        }
    }

    pub(crate) fn open(&self, transport: Transport) -> Rendezvous {
        Rendezvous::open(transport, &self.dirs()).expect("a meeting place")
    }

    pub(crate) fn socket(&self, rendezvous: &Rendezvous) -> PathBuf {
        let path = PathBuf::from(rendezvous.endpoint().strip_prefix("unix:").expect("a path"));
        assert!(path.starts_with(self.root.path().join("run")));
        path
    }

    pub(crate) fn is_empty(&self) -> bool {
        fs::read_dir(self.root.path().join("run")).is_ok_and(|mut entries| entries.next().is_none())
    }
}

/// A process that is to attach.
pub(crate) struct Guest {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Guest {
    pub(crate) fn spawn(rendezvous: &mut Rendezvous, steps: &[&str]) -> Self {
        let mut child = start(steps, rendezvous.child_end());
        let stdin = child.stdin.as_mut().expect("it is a pipe");
        stdin.write_all(rendezvous.bootstrap().as_bytes()).expect("it reads");
        let stdout = child.stdout.take().expect("it is a pipe");
        let (tell, lines) = mpsc::channel(16);
        std::thread::spawn(move || {
            use std::io::BufRead;
            let lines = std::io::BufReader::new(stdout).lines();
            lines.map_while(Result::ok).try_for_each(|line| tell.blocking_send(line)).ok();
        });
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::new(self.child.id())
    }

    pub(crate) fn expected(&self) -> Expected {
        Expected { pid: self.pid(), ..own() }
    }

    pub(crate) async fn said_text(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.recv()).await.expect("it says something in time");
        line.expect("it says something before it ends")
    }

    pub(crate) async fn said(&mut self) -> Value {
        serde_json::from_str(&self.said_text().await).expect("it is JSON")
    }

    /// Breaks the lifeline and waits for the end.
    pub(crate) fn end(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A test that fails leaves no process behind; one that ended is not killed twice.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts this binary as a child. Where it needs descriptor 3, a shell moves it there from its standard error, which is the
/// only way for a test to place a descriptor.
#[expect(clippy::disallowed_methods, reason = "a test starts its own children")]
fn start(steps: &[&str], end: Option<OwnedFd>) -> Child {
    let program = std::env::current_exe().expect("this binary");
    let mut command = match &end {
        None => std::process::Command::new(program),
        Some(_) => {
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", "exec \"$0\" \"$@\" 3>&2 2>/dev/null"]).arg(program);
            shell
        }
    };
    command.arg("__channel").args(steps).stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(end) = end {
        command.stderr(Stdio::from(end));
    }
    command.spawn().expect("a child")
}

/// Writes down who was refused.
pub(crate) struct Book {
    refusals: Mutex<Vec<Why>>,
    tell: mpsc::Sender<Refusal>,
}

/// A book and a way to wait for its next line.
pub(crate) struct Reader {
    book: Arc<Book>,
    lines: mpsc::Receiver<Refusal>,
}

impl Book {
    pub(crate) fn open() -> Reader {
        let (tell, lines) = mpsc::channel(64);
        Reader { book: Arc::new(Self { refusals: Mutex::new(Vec::new()), tell }), lines }
    }
}

impl Reader {
    pub(crate) fn witness(&self) -> Arc<dyn Witness> {
        Arc::clone(&self.book) as Arc<dyn Witness>
    }

    pub(crate) async fn next(&mut self) -> Refusal {
        let next = timeout(PATIENCE, self.lines.recv()).await.expect("somebody is refused in time");
        next.expect("the book is open")
    }

    pub(crate) fn reasons(&self) -> Vec<Why> {
        self.book.refusals.lock().expect("no panic").clone()
    }
}

impl Witness for Book {
    fn refused(&self, refusal: Refusal) {
        self.refusals.lock().expect("no panic").push(refusal.why);
        self.tell.try_send(refusal).expect("there is room for a test's worth");
    }
}

/// Answers everything.
pub(crate) struct Oracle;

impl Handler for Oracle {
    fn request(&self, _: Call) -> Answer {
        Answer::Now(Ok(serde_json::value::to_raw_value("answered").expect("a text is JSON")))
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

pub(crate) async fn attach(rendezvous: Rendezvous, expected: Expected, witness: &Reader) -> Attached {
    let attached = timeout(PATIENCE, rendezvous.attach(expected, witness.witness())).await;
    attached.expect("it attaches in time").expect("it attaches")
}

pub(crate) fn own() -> Expected {
    Expected { pid: Pid::new(std::process::id()), uid: rustix::process::geteuid().as_raw() }
}

pub(crate) fn bootstrap(rendezvous: &Rendezvous) -> Value {
    let line = rendezvous.bootstrap();
    assert_eq!(line.as_bytes().last(), Some(&b'\n'));
    serde_json::from_slice(line.as_bytes()).expect("it is JSON")
}

pub(crate) async fn connect(path: &Path) -> UnixStream {
    loop {
        match UnixStream::connect(path).await {
            // Four connections may wait to be accepted; who does not want to wait for that has to come again.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => tokio::task::yield_now().await,
            connected => return connected.expect("it listens"),
        }
    }
}

pub(crate) async fn say(stream: &mut UnixStream, line: &Value) {
    stream.write_all(format!("{line}\n").as_bytes()).await.expect("it is connected");
}

/// Everything that comes until the other side hangs up.
pub(crate) async fn rest(stream: &mut UnixStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut all = String::new();
    let reading = async { while reader.read_line(&mut all).await.is_ok_and(|read| read > 0) {} };
    timeout(PATIENCE, reading).await.expect("it hangs up in time");
    all
}

pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

pub(crate) const LIMITS: Limits = Limits {
    max_frame_bytes: 4096,
    requests_per_second: 1000,
    concurrent_requests: 8,
    event_queue: 64,
    event_queue_bytes: 256 * 1024,
    event_window: 4,
    startup: Duration::from_secs(15),
    memory_bytes: 1 << 28,
    panels: 4,
    actions_per_panel: 8,
    toasts_per_minute: 5,
    toast_burst: 2,
    sends_per_minute: 0,
    send_burst: 0,
    log_files: 2,
    log_file_bytes: 1 << 18,
    crash_threshold: 3,
    request_timeout: Duration::from_secs(10),
    send_timeout: Duration::from_secs(15),
    event_ack: Duration::from_secs(10),
};
