//! The sidecar as a real process, spoken to in bytes, so that nothing between it and the test is forgiving.
#![expect(
    clippy::disallowed_methods,
    reason = "the bytes on the pipes are what is tested, so nobody may be in between"
)]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_steerable::protocol::LogLevel;
use outrigger_steerable::sidecar::{Marker, Options, serve};
use outrigger_steerable::tools::Commands;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};

/// Far longer than anything here takes; only a test that fails ever waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// This binary as a sidecar: the flags that tests need.
pub(crate) fn child(args: &[String]) -> ExitCode {
    let mut options = Options::new("9.8.7");
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().expect("a value").clone();
        match flag.as_str() {
            "--quiet-ready" => options.marker = Marker::Omit,
            "--log-level" => options.log_level = LogLevel::from_word(&value()),
            "--storage-path" => options.storage_path = Some(value().into()),
            "--read-root" => options.grants.read_roots.get_or_insert_default().push(value().into()),
            "--write-root" => options.grants.write_roots.get_or_insert_default().push(value().into()),
            "--commands" => options.grants.commands = Commands::from_word(&value()),
            "--tools" => options.tool_names = Some(value().split(',').map(str::to_owned).collect()),
            other => panic!("no such flag: {other}"),
        }
    }
    serve(options)
}

/// A sidecar and both ends of its pipes.
pub(crate) struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: Arc<Mutex<String>>,
    error_reader: Option<JoinHandle<()>>,
    /// Notifications and requests that came while something else was waited for.
    pub(crate) heard: VecDeque<Value>,
    next_id: u64,
    _watchdog: Sender<()>,
}

impl Raw {
    /// A sidecar whose `lifecycle.ready` was read.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut raw = Self::spawn(args, &[]);
        let ready = raw.hear();
        assert_eq!(ready["method"], "lifecycle.ready");
        raw
    }

    /// As [`Raw::start`], but a read gives what one write of the sidecar wrote, however late it comes.
    pub(crate) fn start_in_packets(args: &[&str]) -> Self {
        let mut raw = Self::spawn_with(args, &[], PipeFlags::CLOEXEC | PipeFlags::DIRECT);
        let ready = raw.hear();
        assert_eq!(ready["method"], "lifecycle.ready");
        raw
    }

    /// A sidecar that has said nothing yet.
    pub(crate) fn spawn(args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::spawn_with(args, env, PipeFlags::CLOEXEC)
    }

    fn spawn_with(args: &[&str], env: &[(&str, &str)], pipe: PipeFlags) -> Self {
        let (output, stdout) = pipe_with(pipe).expect("a pipe");
        let mut child = Command::new(std::env::current_exe().expect("own path"))
            .arg("__sidecar")
            .args(args)
            .env_remove("STEERABLE_SIDECAR_CORELOOP")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child");
        let errors = Arc::new(Mutex::new(String::new()));
        let error_reader = collect(child.stderr.take().expect("piped"), Arc::clone(&errors));
        let (watchdog, alive) = channel();
        watch(child.id(), alive);
        Self {
            input: child.stdin.take(),
            output: BufReader::with_capacity(1 << 16, output.into()),
            child,
            errors,
            error_reader: Some(error_reader),
            heard: VecDeque::new(),
            next_id: 1,
            _watchdog: watchdog,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("open").write_all(bytes).expect("a child that reads");
    }

    /// Writes a line.
    pub(crate) fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&json!(id))
    }

    /// The same, for a request that must succeed.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method} failed: {answer}")).clone()
    }

    /// The same, for one that must fail: code, kind, message.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> (i64, String, String) {
        let answer = self.call(method, params);
        let error = &answer["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (error["code"].as_i64().expect("a code"), text("kind"), text("message"))
    }

    /// The next line as it was written, without its newline; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).expect("text");
        (length > 0).then(|| line.strip_suffix('\n').expect("a whole line").to_owned())
    }

    /// What one read of the pipe gives.
    pub(crate) fn read_once(&mut self) -> String {
        assert!(self.output.buffer().is_empty(), "something was read before");
        let read = String::from_utf8(self.output.fill_buf().expect("a pipe").to_vec()).expect("text");
        self.output.consume(read.len());
        read
    }

    /// The writing end, for a thread of its own.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("open")
    }

    pub(crate) fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// The next message.
    pub(crate) fn hear(&mut self) -> Value {
        let line = self.line().unwrap_or_else(|| panic!("the sidecar ended; it said: {}", self.errors()));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Waits for an answer; what comes before it is kept in `heard`.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.hear();
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    /// The next notification of a method, also one that came before.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(at).expect("it is there")["params"].clone();
        }
        loop {
            let message = self.hear();
            if message["method"] == method {
                return message["params"].clone();
            }
            self.heard.push_back(message);
        }
    }

    /// Opens a stream and reads it to its terminal: the chunks, and the terminal with its method.
    pub(crate) fn stream(&mut self, params: Value) -> (Vec<Value>, Value) {
        let id = self.result("agent.chat.stream", params)["streamId"].as_str().expect("a name").to_owned();
        self.rest(&id)
    }

    /// Reads a stream to its terminal.
    pub(crate) fn rest(&mut self, stream_id: &str) -> (Vec<Value>, Value) {
        let mut chunks = Vec::new();
        let mut waiting = std::mem::take(&mut self.heard);
        loop {
            let message = waiting.pop_front().unwrap_or_else(|| self.hear());
            if message["params"]["streamId"] != stream_id {
                self.heard.push_back(message);
                continue;
            }
            match message["method"].as_str() {
                Some("stream.chunk") => chunks.push(message["params"].clone()),
                Some("stream.done" | "stream.error") => {
                    self.heard.extend(waiting);
                    return (chunks, message);
                }
                other => panic!("{other:?}: {message}"),
            }
        }
    }

    /// Closes the sidecar's standard input.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Everything that is still said, and the exit status.
    pub(crate) fn end(mut self) -> Ended {
        let mut lines: Vec<Value> = self.heard.drain(..).collect();
        while let Some(line) = self.line() {
            lines.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
        }
        let status = self.child.wait().expect("a status");
        if let Some(reader) = self.error_reader.take() {
            reader.join().expect("a reader");
        }
        let errors = self.errors();
        Ended { lines, status, errors }
    }

    /// Ends it by `system.shutdown`.
    pub(crate) fn shut_down(mut self) -> Ended {
        self.ask("system.shutdown", json!({}));
        self.end()
    }

    /// Closes our end of its standard output, and gives the rest to wait for.
    pub(crate) fn stop_listening(self) -> (Child, Option<ChildStdin>) {
        (self.child, self.input)
    }

    /// Leaves its standard output open and unread, and gives the rest to wait for.
    pub(crate) fn stop_reading(self) -> (Child, Option<ChildStdin>) {
        // Nobody closes it before the test process ends.
        std::mem::forget(self.output);
        (self.child, self.input)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, signal).expect("a process");
    }

    /// What it wrote to standard error so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().expect("no panic").clone()
    }

    /// Waits until standard error has this text.
    pub(crate) fn wait_for_error(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.errors().contains(text) {
            assert!(Instant::now() < until, "standard error never said {text}: {}", self.errors());
            std::thread::yield_now();
        }
    }

    /// Waits until the pipe that we do not read from is full.
    pub(crate) fn wait_until_full(&self) {
        let until = Instant::now() + PATIENCE;
        // Less than a line's length short of what a pipe holds on Linux.
        while rustix::io::ioctl_fionread(self.output.get_ref()).expect("a pipe") < 60_000 {
            assert!(Instant::now() < until, "the pipe never filled");
            std::thread::yield_now();
        }
    }

    /// How long it has computed, in the kernel's ticks.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("a process");
        let after_name = stat.rsplit_once(") ").expect("a name").1;
        let fields: Vec<&str> = after_name.split(' ').collect();
        fields[11].parse::<u64>().expect("user time") + fields[12].parse::<u64>().expect("system time")
    }

    /// How much memory it has, in KiB.
    pub(crate) fn rss(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
    }
}

/// How a sidecar ended.
pub(crate) struct Ended {
    pub(crate) lines: Vec<Value>,
    pub(crate) status: ExitStatus,
    pub(crate) errors: String,
}

impl Ended {
    /// It ended with this code, and said this last.
    pub(crate) fn assert(&self, code: i32, reason: &str) {
        assert_eq!(self.status.code(), Some(code), "{}", self.errors);
        let last = self.lines.last().expect("a last line");
        let expected =
            json!({"jsonrpc": "2.0", "method": "lifecycle.shutdown", "params": {"reason": reason}});
        assert_eq!(*last, expected, "{:?}", self.lines);
    }
}

/// A script for the scripted provider, in a folder of its own.
pub(crate) fn script(lines: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a file");
    (folder, path)
}

/// Params of a stream that plays a script.
pub(crate) fn scripted(path: &Path) -> Value {
    json!({"provider": "scripted", "model": "m", "baseUrl": path, "messages": [{"role": "user", "content": "hi"}]})
}

/// The same with more members.
pub(crate) fn with(mut params: Value, more: Value) -> Value {
    let more = more.as_object().expect("members").clone();
    params.as_object_mut().expect("members").extend(more);
    params
}

fn collect(mut stream: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(got @ 1..) = stream.read(&mut chunk) {
            into.lock().expect("no panic").push_str(&String::from_utf8_lossy(&chunk[..got]));
        }
    })
}

/// Kills a child that a failing test would wait for for ever.
fn watch(pid: u32, alive: Receiver<()>) {
    std::thread::spawn(move || {
        if let Err(RecvTimeoutError::Timeout) = alive.recv_timeout(PATIENCE)
            && let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed())
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
}
