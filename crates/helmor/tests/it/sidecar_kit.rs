//! A host for the tests of the sidecar: writes lines, reads lines, and says what it missed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;

use outrigger_helmor::provider::claude::SystemPrompt;
use outrigger_helmor::sidecar::{self, ApiErrors, Exit, LogLevel, Options, Providers, Settings, Signal};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::sidecar_puppet::{Seen, puppets};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sidecar on a thread of this process, and the host of it.
pub(crate) struct Host {
    pub(crate) output: BufReader<UnixStream>,
    pub(crate) input: UnixStream,
    kill: Option<oneshot::Sender<Signal>>,
    sidecar: Option<JoinHandle<Result<Exit, String>>>,
    pub(crate) seen: Seen,
}

/// Options of a sidecar of puppets that says nothing on standard error.
pub(crate) fn options(seen: &Seen) -> Options {
    let mut options = Options::new("test", puppets(seen));
    options.log_level = Some(LogLevel::Error);
    options
}

impl Host {
    /// Puppets as providers, and ready.
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let seen = Seen::default();
        let mut options = options(&seen);
        change(&mut options);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (kill, killed) = oneshot::channel();
        let sidecar = std::thread::spawn(move || {
            let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio.block_on(async move {
                theirs.set_nonblocking(true).unwrap();
                let (input, output) = tokio::net::UnixStream::from_std(theirs).unwrap().into_split();
                let killed = async {
                    match killed.await {
                        Ok(signal) => signal,
                        Err(_) => std::future::pending().await,
                    }
                };
                sidecar::converse(input, output, options, killed).await
            })
        });
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let output = BufReader::new(ours.try_clone().unwrap());
        let mut host = Self { output, input: ours, kill: Some(kill), sidecar: Some(sidecar), seen };
        assert_eq!(host.next(), json!({ "type": "ready", "version": 1 }));
        host
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn request(&mut self, id: &str, method: &str, params: Value) {
        self.write(&json!({ "id": id, "method": method, "params": params }).to_string());
    }

    /// A turn of a session of Claude's.
    pub(crate) fn send(&mut self, id: &str, session: &str, prompt: &str) {
        self.request(
            id,
            "sendMessage",
            json!({ "sessionId": session, "prompt": prompt, "provider": "claude" }),
        );
    }

    pub(crate) fn stop(&mut self, id: &str, session: &str) {
        self.request(id, "stopSession", json!({ "sessionId": session, "provider": "claude" }));
    }

    /// The next line; panics when none comes.
    pub(crate) fn next(&mut self) -> Value {
        self.try_next().expect("the sidecar said no more")
    }

    /// The next line, or `None` at the end.
    pub(crate) fn try_next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line in time");
        (!line.is_empty())
            .then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// Reads until an event of that id and type, and returns all that came.
    pub(crate) fn until(&mut self, id: &str, kind: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let event = self.next();
            let found = event["id"] == id && event["type"] == kind;
            seen.push(event);
            if found {
                return seen;
            }
        }
    }

    /// The end of input. Returns how it ended, and what was said until then.
    pub(crate) fn finish(mut self) -> (Exit, Vec<Value>) {
        self.input.shutdown(Shutdown::Write).unwrap();
        let rest = std::iter::from_fn(|| self.try_next()).collect();
        (self.join(), rest)
    }

    pub(crate) fn kill(&mut self, signal: Signal) {
        self.kill.take().unwrap().send(signal).unwrap();
    }

    pub(crate) fn join(&mut self) -> Exit {
        self.sidecar.take().unwrap().join().unwrap().unwrap()
    }
}

/// Which events came, without the rest.
pub(crate) fn kinds(events: &[Value]) -> Vec<(&str, &str)> {
    events
        .iter()
        .map(|event| (event["id"].as_str().unwrap_or("-"), event["type"].as_str().unwrap_or("-")))
        .collect()
}

/// Every stream of these ids has exactly one terminal event, and it is the last of its id.
pub(crate) fn assert_one_end(events: &[Value]) -> HashMap<String, String> {
    let mut ends = HashMap::new();
    for event in events {
        let Some(id) = event["id"].as_str() else { continue };
        assert!(!ends.contains_key(id), "{event} after the end of {id}");
        let kind = event["type"].as_str().unwrap();
        if matches!(
            kind,
            "end" | "aborted" | "error" | "stopped" | "steered" | "pong" | "modelsListed" | "titleGenerated"
        ) {
            ends.insert(id.to_owned(), kind.to_owned());
        }
    }
    ends
}

/// `__sidecar ARGS…`: this binary as the sidecar itself, with the flags of the real one, and `--puppets`.
pub(crate) fn child(words: &[String]) -> ExitCode {
    let mut settings = Settings::unsaid();
    let mut options = Options::new("test", Providers::real(Settings::unsaid()));
    let mut with_puppets = false;
    let mut words = words.iter();
    while let Some(flag) = words.next() {
        if flag == "--puppets" {
            with_puppets = true;
            continue;
        }
        let value = words.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--claude" => settings.claude = Some(value.into()),
            "--codex" => settings.codex = Some(value.into()),
            "--cursor" => settings.cursor = Some(value.into()),
            "--script" => settings.script = Some(value.into()),
            "--acp" => {
                let (name, command) = value.split_once('=').unwrap();
                let command = command.split_whitespace().map(str::to_owned).collect();
                settings.acp.push((name.to_owned(), command));
            }
            "--claude-system-prompt" => {
                settings.claude_system_prompt = match value.as_str() {
                    "own" => SystemPrompt::Own,
                    "empty" => SystemPrompt::Empty,
                    other => panic!("{other} is neither own nor empty"),
                };
            }
            "--heartbeat" => options.heartbeat = Duration::from_millis(value.parse().unwrap()),
            "--api-errors" => {
                options.api_errors = if value == "end" { ApiErrors::End } else { ApiErrors::Error };
            }
            "--record" => options.record = Some(value.into()),
            "--replay" => options.replay = Some(value.into()),
            "--log-level" => options.log_level = Some(LogLevel::from_word(value)),
            "--log-dir" => options.log_dir = Some(value.into()),
            other => panic!("an unknown flag: {other}"),
        }
    }
    options.providers = if with_puppets { puppets(&Seen::default()) } else { Providers::real(settings) };
    sidecar::serve(options)
}
