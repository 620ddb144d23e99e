//! A mustard sidecar: one JSON line asks, one answers.

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

/// The longest answer: a snapshot in base64, and a value.
const MAX_ANSWER: u64 = 64 << 20;

/// The longest request that we ask the sidecar to take.
const MAX_REQUEST: u64 = 16 << 20;

/// How long a sidecar may take to introduce itself.
const HELLO: Duration = Duration::from_secs(20);

/// How long we wait to hear why a sidecar ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What we want beyond version 2, and cannot do without.
const FEATURES: [&str; 3] = ["batch", "deadline", "return"];

/// A running sidecar that has introduced itself.
pub(super) struct Process {
    child: Child,
    stdin: pipe::Sender,
    stdout: BufReader<outrigger_supervise::driver::Output>,
    next_id: u64,
    key: [u8; 32],
}

impl Process {
    pub(super) async fn start(supervisor: &Supervisor, command: &[OsString]) -> Result<Self, String> {
        let Some((program, args)) = command.split_first() else {
            return Err("there is no program that runs scripts".to_owned());
        };
        let rules = Rules {
            ready: Ready::OnSpawn,
            heartbeat: Heartbeat::None,
            restart: Restart::Never,
            logs: Logs { tail_lines: 20, tail_bytes: 16 << 10, max_line_bytes: 4096, file: None },
        };
        let sandbox = Request::new(Level::Auto, Limits::as_the_host());
        let spec = Spec::new("mustard", program, "/", sandbox, rules).args(args).spoken_to();
        let child = supervisor.start(spec).map_err(|error| error.to_string())?;
        let Some(mut session) = child.next_session().await else {
            let report = child.wait().await.report;
            let why = report.map_or_else(|| "it was stopped".to_owned(), |report| report.to_string());
            return Err(format!("the program that runs scripts could not be started: {why}"));
        };
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err("the program that runs scripts has no pipes".to_owned());
        };
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| format!("no randomness: {error}"))?;
        let mut process = Self { child, stdin, stdout: BufReader::new(stdout), next_id: 0, key };
        match tokio::time::timeout(HELLO, process.hello()).await {
            Ok(Ok(())) => Ok(process),
            Ok(Err(problem)) => Err(process.last_words(&problem).await),
            Err(_) => Err(process.last_words("it did not introduce itself in time").await),
        }
    }

    async fn hello(&mut self) -> Result<(), String> {
        let members = json!({"features": FEATURES, "max_frame_bytes": MAX_REQUEST});
        let answer = self.ask("hello", members).await?.map_err(|refusal| refusal.message)?;
        let enabled = answer.get("enabled").and_then(Value::as_array).cloned().unwrap_or_default();
        match FEATURES.iter().find(|feature| !enabled.contains(&Value::from(**feature))) {
            None => Ok(()),
            Some(missing) => Err(format!("it lacks the feature `{missing}`")),
        }
    }

    /// Whether it still runs. One that ends a moment later is noticed by the next request.
    pub(super) fn is_alive(&self) -> bool {
        self.child.status().ended.is_none()
    }

    /// Asks, and waits for the answer: what the sidecar found, or the sentence with which it refused. An error means that
    /// the conversation is over.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        members: Value,
    ) -> Result<Result<Value, Refusal>, String> {
        self.next_id += 1;
        let mut request = Map::new();
        request.insert("protocol_version".into(), 2.into());
        request.insert("id".into(), self.next_id.into());
        request.insert("method".into(), method.into());
        if let Value::Object(members) = members {
            request.extend(members);
        }
        let mut line = Value::Object(request).to_string();
        if line.len() as u64 > MAX_REQUEST {
            return Ok(Err(Refusal {
                message: format!("more than {MAX_REQUEST} bytes cannot be sent to a script"),
            }));
        }
        line.push('\n');
        self.stdin
            .write_all(line.as_bytes())
            .await
            .map_err(|error| format!("it does not listen: {error}"))?;
        let answer = self.read().await?;
        let mut answer = match serde_json::from_slice::<Value>(&answer) {
            Ok(Value::Object(answer)) => answer,
            Ok(_) => return Err("its answer is no object".to_owned()),
            // The line was whole, so the next answer can still be told apart.
            Err(error) => {
                return Ok(Err(Refusal { message: format!("the script's value cannot be read: {error}") }));
            }
        };
        if answer.get("id").and_then(Value::as_u64) != Some(self.next_id) {
            return Err("it answered something else".to_owned());
        }
        if answer.get("ok") == Some(&Value::Bool(true)) {
            return Ok(Ok(answer.remove("result").unwrap_or(Value::Null)));
        }
        let message = match answer.remove("error") {
            Some(Value::String(message)) => message,
            Some(other) => other.to_string(),
            None => "it failed and did not say why".to_owned(),
        };
        Ok(Err(Refusal { message }))
    }

    async fn read(&mut self) -> Result<Vec<u8>, String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stdout).take(MAX_ANSWER);
        limited.read_until(b'\n', &mut line).await.map_err(|error| format!("it cannot be heard: {error}"))?;
        match line.pop() {
            Some(b'\n') => Ok(line),
            Some(_) if line.len() as u64 + 1 == MAX_ANSWER => {
                Err(format!("it answered with more than {MAX_ANSWER} bytes"))
            }
            Some(_) | None => Err("it ended".to_owned()),
        }
    }

    /// What vouches for a snapshot of this process: only we have the key, so only what it gave us is resumed.
    pub(super) fn vouch(&self, snapshot_id: &str) -> Value {
        // HMAC pads a short key with zeros to its block of 64 bytes; doing so here leaves nothing that could fail.
        let mut block = [0; 64];
        block[..self.key.len()].copy_from_slice(&self.key);
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
        mac.update(snapshot_id.as_bytes());
        json!({
            "snapshot_key_base64": STANDARD.encode(self.key),
            "snapshot_key_digest": hex(&Sha256::digest(self.key)),
            "snapshot_token": hex(&mac.finalize().into_bytes()),
        })
    }

    /// A problem, with how the process ended and what it said, if it ended.
    pub(super) async fn last_words(&self, problem: &str) -> String {
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        match ended.ok().and_then(|outcome| outcome.report) {
            Some(report) => format!("the program that runs scripts failed: {problem}\n{report}"),
            None => format!("the program that runs scripts failed: {problem}"),
        }
    }
}

/// The sentence with which a sidecar refused something, or a script failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
