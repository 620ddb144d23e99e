//! A host written by hand, as small as it can be: a real process, a real channel, and lines that the test writes and reads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_sep::extension::Link;
use serde_json::{Value, json};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const TOKEN: &str = "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f";

/// How the channel is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Unix,
    Fd,
    Tcp,
}

/// A process that is an extension, and its channel.
pub(crate) struct Guest {
    child: Child,
    /// The lifeline.
    stdin: Option<ChildStdin>,
    pen: Link,
    lines: Receiver<Value>,
    next: u64,
    /// Where its socket is.
    _folder: tempfile::TempDir,
}

impl Guest {
    /// Starts this binary as the extension that the arguments name, and waits for its first line.
    pub(crate) fn start(way: Way, args: &[&str]) -> (Self, Value) {
        Self::start_at_home(way, args, None)
    }

    /// As [`Guest::start`], in a home of its own.
    pub(crate) fn start_at_home(way: Way, args: &[&str], home: Option<&Path>) -> (Self, Value) {
        let command = |program: &str| {
            let mut command = command(program);
            if let Some(home) = home {
                command.env("HOME", home);
            }
            command
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let program = std::env::current_exe().expect("this binary");
        let program = program.to_str().expect("a path in UTF-8");
        let (child, link) = match way {
            Way::Unix => {
                let listener = UnixListener::bind(&path).expect("a socket");
                let child = bootstrapped(command(program).args(args), &format!("unix:{}", path.display()));
                (child, Link::Unix(in_time(move || listener.accept().expect("a connection").0)))
            }
            Way::Tcp => {
                let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
                let address = listener.local_addr().expect("an address");
                let child = bootstrapped(command(program).args(args), &format!("tcp:{address}"));
                (child, Link::Tcp(in_time(move || listener.accept().expect("a connection").0)))
            }
            Way::Fd => {
                let (ours, theirs) = UnixStream::pair().expect("a pair");
                // A shell puts its standard output where the contract wants the socket, and then is the extension.
                let mut shell = command("/bin/sh");
                shell.args(["-c", "exec 3<&1 1>&2; exec \"$@\"", "sh", program]).args(args);
                shell.stdout(Stdio::from(OwnedFd::from(theirs)));
                (bootstrapped(&mut shell, "fd:3"), Link::Unix(ours))
            }
        };
        let mut guest = Self::new(child, link, folder);
        let first = guest.hear();
        (guest, first)
    }

    fn new(mut child: Child, link: Link, folder: tempfile::TempDir) -> Self {
        let pen = link.try_clone().expect("a descriptor");
        let (found, lines) = sync_channel(64);
        thread::spawn(move || {
            for line in BufReader::new(link).lines() {
                let Ok(line) = line else { break };
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if found.send(line).is_err() {
                    break;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, pen, lines, next: 0, _folder: folder }
    }

    /// Starts it, takes its attach and says hello at the version of the offer; what it answered is returned.
    pub(crate) fn ready(way: Way, args: &[&str], offer: &[&str]) -> (Self, Value) {
        let (mut guest, attach) = Self::start(way, args);
        assert_eq!(attach["method"], "host.attach");
        assert_eq!(attach["params"]["token"], TOKEN);
        guest.say(&json!({"jsonrpc": "2.0", "id": attach["id"], "result": {"session": "s"}}));
        let id = guest.ask("sep.initialize", &hello(offer, "by hand"));
        let answer = guest.answer(id);
        (guest, answer)
    }

    /// Writes a line.
    pub(crate) fn say(&mut self, line: &Value) {
        self.pen.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    /// The next line.
    pub(crate) fn hear(&mut self) -> Value {
        self.hear_within(PATIENCE).expect("the extension says something")
    }

    /// The next line, if it comes in time and the channel is open.
    pub(crate) fn hear_within(&mut self, time: Duration) -> Result<Value, RecvTimeoutError> {
        self.lines.recv_timeout(time)
    }

    /// Makes a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The answer to a request; what the extension asks for meanwhile is answered with nothing in particular.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.hear();
            if line.get("method").is_none() && line["id"] == id {
                return line;
            }
            self.oblige(&line);
        }
    }

    /// The next call of this method; others before it are answered with nothing in particular.
    pub(crate) fn called(&mut self, method: &str) -> Value {
        loop {
            let line = self.hear();
            if line["method"] == method {
                return line;
            }
            self.oblige(&line);
        }
    }

    /// Answers a call with this result.
    pub(crate) fn grant(&mut self, call: &Value, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": call["id"], "result": result}));
    }

    fn oblige(&mut self, line: &Value) {
        if line.get("id").is_none() {
            return;
        }
        let result = match line["method"].as_str() {
            Some("host.messages.list") => json!({"messages": [], "nextCursor": null}),
            Some("host.contacts.list") => json!({"contacts": [], "nextCursor": null}),
            Some("host.ui.register_tool_panel") => json!({"panelKey": "x/stats"}),
            Some("host.notifications.toast") => json!({"shown": true}),
            Some(_) => json!({}),
            None => return,
        };
        let answer = json!({"jsonrpc": "2.0", "id": line["id"], "result": result});
        // One that leaves does not wait for what it asked for.
        let _ = self.pen.write_all(format!("{answer}\n").as_bytes());
    }

    /// Cuts the lifeline.
    pub(crate) fn vanish(&mut self) {
        self.stdin = None;
    }

    /// Closes the channel.
    pub(crate) fn hang_up(&mut self) {
        let _ = self.pen.close();
    }

    /// Waits for the end of the process, which must come within so much time.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            assert!(Instant::now() < until, "the process is still there after {within:?}");
            // The standard library has no waiting with a limit.
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .expect("it lives");
    }

    /// Whether the process is there.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }

    /// Everything on standard error, after the end.
    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).expect("UTF-8");
        }
        text
    }

    /// So many lines of standard output, as JSON; others may still have it open.
    pub(crate) fn lines_of_stdout(&mut self, count: usize) -> Vec<Value> {
        let stdout = self.child.stdout.take().expect("a pipe");
        let parse =
            |line: std::io::Result<String>| serde_json::from_str(&line.expect("UTF-8")).expect("JSON");
        BufReader::new(stdout).lines().take(count).map(parse).collect()
    }

    /// Everything on standard output, after the end, as JSON lines.
    pub(crate) fn stdout(&mut self) -> Vec<Value> {
        self.lines_of_stdout(usize::MAX)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.pen.close();
    }
}

/// What a host says first.
pub(crate) fn hello(offer: &[&str], name: &str) -> Value {
    json!({
        "protocolVersion": offer[0], "supportedVersions": offer,
        "host": {"name": name, "version": "0"},
        "extension": {"id": "org.example.guest", "version": "1.0.0", "dataDir": ""},
        "session": "s", "launchReason": "first", "trustLevel": "first_party",
        "permissions": ["contacts.read", "events.subscribe", "messages.read", "messages.send",
            "notifications.create", "tools.register"],
        "events": {"subscribed": ["message.received"], "denied": [], "ignored": []},
        "limits": {"maxFrameBytes": 65536, "maxRequestsPerSecond": 100, "maxConcurrentRequests": 8,
            "eventQueue": 64, "eventWindow": 4, "maxPanels": 4, "toastsPerMinute": 5},
        "platform": {"profile": "desktop", "state": "foreground"}, "nowMs": 0,
    })
}

#[expect(clippy::disallowed_methods, reason = "a host by hand starts its process by hand")]
pub(crate) fn command(program: &str) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.env_clear().env("SEP_HOST", "1").env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn bootstrapped(command: &mut std::process::Command, endpoint: &str) -> Child {
    let mut child = command.spawn().expect("a process");
    let line = json!({"sep": 1, "endpoint": endpoint, "token": TOKEN, "session": "s"});
    let stdin = child.stdin.as_mut().expect("a pipe");
    stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    child
}

/// What `wait` comes to, if it comes in time.
fn in_time<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, come) = sync_channel(1);
    thread::spawn(move || done.send(wait()));
    come.recv_timeout(PATIENCE).expect("the extension connects")
}
