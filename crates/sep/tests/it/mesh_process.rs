//! A node of a mesh in a process of its own: this binary again. It ends when its standard input does.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sep::mesh::{
    Address, Ear, Embedded, EmbeddedOptions, MeshError, MeshEvent, Messaging as _, Outgoing, Refused,
};

/// Says that this process is a node, and which: the role, the node, its lease in milliseconds, the database.
const ROLE: &str = "OUTRIGGER_TEST_MESH_NODE";

/// Longer than any test should take; whoever waits this long has found a bug.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Plays a node, if this process is one.
pub(crate) fn intercept() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let [role, node, lease, path] = role.splitn(4, '|').collect::<Vec<_>>().try_into().unwrap();
    let node = open(Path::new(path), node, Duration::from_millis(lease.parse().unwrap()));
    match role {
        "receive" => receive(&node),
        "echo" => echo(&node),
        "send" => send(&node),
        other => panic!("no role `{other}`"),
    }
    Some(ExitCode::SUCCESS)
}

/// Opens a node, waiting for one that was just killed to be really gone.
pub(crate) fn open(path: &Path, node: &str, lease: Duration) -> Embedded {
    let mut options = EmbeddedOptions::named(node);
    options.lease = lease;
    Embedded::open(path, options).unwrap()
}

/// Says what it receives, a line each.
fn receive(node: &Embedded) {
    say("up");
    node.listen(Arc::new(Told(|event: &MeshEvent| {
        if let MeshEvent::Received(message) = event {
            say(&message.content);
        }
    })));
    until_end_of_input();
}

/// Answers what it receives.
fn echo(node: &Embedded) {
    let (ear, heard) = listen(node);
    say("up");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(event) = heard.recv() {
                if let MeshEvent::Received(message) = event {
                    post(node, message.source, &format!("re: {}", message.content)).unwrap();
                }
            }
        });
        until_end_of_input();
        // The ear is what keeps the answers coming.
        node.listen(Arc::new(Told(|_: &MeshEvent| {})));
        drop(ear);
    });
}

/// Sends numbers to the address in its input for ever, and says each that was taken.
fn send(node: &Embedded) {
    say("up");
    let mut first = String::new();
    std::io::stdin().lock().read_line(&mut first).unwrap();
    let (to, from) = first.trim().split_once(' ').unwrap();
    let to = Address::parse(to).unwrap();
    for number in from.parse::<u64>().unwrap().. {
        // A receiver that does not keep up is waited for.
        while let Err(error) = post(node, to, &number.to_string()) {
            assert_eq!(error, MeshError::Refused(Refused::QueueFull));
        }
        say(&number.to_string());
    }
}

/// Sends a message and waits until it is taken.
pub(crate) fn post(node: &Embedded, to: Address, content: &str) -> Result<(), MeshError> {
    let message =
        Outgoing { destination: to, content: content.to_owned(), title: None, method: None, reply_to: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(node.send(message)).map(|_| ())
}

/// Everything that happens at a node.
pub(crate) fn listen(node: &Embedded) -> (Arc<dyn Ear>, Receiver<MeshEvent>) {
    let (sender, heard): (SyncSender<MeshEvent>, _) = sync_channel(1_000_000);
    let sender = Mutex::new(sender);
    let ear: Arc<dyn Ear> = Arc::new(Told(move |event: &MeshEvent| {
        // A test that has seen enough does not listen any more.
        let _ = sender.lock().unwrap().try_send(event.clone());
    }));
    node.listen(Arc::clone(&ear));
    (ear, heard)
}

pub(crate) struct Told<F>(pub(crate) F);

impl<F: Fn(&MeshEvent) + Send + Sync + 'static> Ear for Told<F> {
    fn hear(&self, event: &MeshEvent) {
        self.0(event);
    }
}

fn say(line: &str) {
    // One write: a process that is killed has said a line or has not.
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    let _ = std::io::stdout().lock().flush();
}

fn until_end_of_input() {
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
}

/// A node in a process of its own. Dropping it kills it.
pub(crate) struct Node {
    pub(crate) process: Child,
    pub(crate) input: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
}

impl Node {
    /// Starts one, and waits until it is up.
    #[expect(clippy::disallowed_methods, reason = "the test plays the operator who starts another program")]
    pub(crate) fn start(role: &str, node: &str, lease: Duration, path: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .env(ROLE, format!("{role}|{node}|{}|{}", lease.as_millis(), path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut node = Self { input: process.stdin.take(), process, lines };
        assert_eq!(node.line().as_deref(), Some("up"));
        node
    }

    /// The next whole line that it says; `None` when it says nothing any more.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// Kills it without warning, and returns what it had still said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Lets it end by itself.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
