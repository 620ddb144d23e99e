//! A conversation with one child, as raw as the rules need it: bytes in, frames out, its log, and how it ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Session, Supervisor};
use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::spec::{Rules, Spec, Spoken, Tee};
use outrigger_supervise::state::{Heartbeat, Ladder, Restart};
use outrigger_wire::conformance::{Trouble, shown};
use outrigger_wire::line::{Item, LineReader, dialect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::suite::Limits;
use crate::host::SidecarSpec;

/// How many frames that nobody asked for may wait; a child that says more is told off by the rule that is tried.
const MOST_FRAMES: usize = 100_000;

/// How much of its log is kept.
const MOST_LOG: usize = 1 << 20;

/// One child, spoken to line by line. Dropping it kills it with everything it started.
pub(super) struct Conversation {
    child: Child,
    _session: Session,
    input: Option<pipe::Sender>,
    output: LineReader<Output>,
    log: mpsc::Receiver<Spoken>,
    logged: Vec<u8>,
    limits: Limits,
    next_id: u64,
    /// Frames that came while something else was waited for.
    waiting: VecDeque<Value>,
    /// The first line on standard output that is no frame.
    pub(super) noise: Option<String>,
}

/// What came next.
pub(super) enum Next {
    Frame(Value),
    Closed,
    Nothing,
}

impl Conversation {
    /// Starts the child with these further arguments, or says why that failed.
    pub(super) async fn start(
        supervisor: &Supervisor,
        spec: &SidecarSpec,
        args: &[&str],
        limits: Limits,
    ) -> Result<Self, String> {
        let rules = Rules {
            ready: Ready::OnSpawn,
            heartbeat: Heartbeat::None,
            restart: Restart::Never,
            logs: spec.logs.clone(),
        };
        let all = spec.args.iter().cloned().chain(args.iter().map(OsString::from));
        let mut supervised =
            Spec::new(&*spec.name, spec.program.clone(), spec.cwd.clone(), spec.sandbox.clone(), rules)
                .args(all)
                .spoken_to();
        supervised.program.environment = spec.environment.clone();
        // The model server of the checks is on this machine, whatever proxies there are.
        for name in ["NO_PROXY", "no_proxy"] {
            supervised = supervised.set_env(name, "127.0.0.1");
        }
        let (copy, log) = mpsc::channel(64);
        supervised.tee = Some(Tee::new(copy));
        let child = supervisor.start(supervised).map_err(|error| error.to_string())?;
        let Some(mut session) = child.next_session().await else {
            let report = child.last_report();
            return Err(report.map_or_else(|| "it did not start".to_owned(), |report| report.to_string()));
        };
        let (Some(input), Some(output)) = (session.stdin.take(), session.stdout.take()) else {
            return Err("it was started without pipes".to_owned());
        };
        Ok(Self {
            child,
            _session: session,
            input: Some(input),
            output: LineReader::new(output, dialect::STEERABLE),
            log,
            logged: Vec::new(),
            limits,
            next_id: 0,
            waiting: VecDeque::new(),
            noise: None,
        })
    }

    /// Says bytes and a newline. A child that does not listen any more shows in what it says next.
    pub(super) async fn say(&mut self, line: impl AsRef<[u8]>) {
        if let Some(input) = &mut self.input {
            let mut bytes = line.as_ref().to_vec();
            bytes.push(b'\n');
            let _ = timeout(self.limits.answer, input.write_all(&bytes)).await;
        }
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Calls a method and waits for the whole answer, whatever it is.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        let id = self.send(method, &params).await;
        self.answer(&id, self.limits.answer).await
    }

    /// Calls a method, and gives the id of the call.
    pub(super) async fn send(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.say(json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}).to_string()).await;
        id
    }

    /// Says a line and waits for the answer to this id; the line is the evidence if there is none.
    pub(super) async fn exchange(&mut self, line: impl AsRef<[u8]>, id: Value) -> Result<Value, Trouble> {
        self.say(&line).await;
        let answered = self.answer(&id, self.limits.answer).await;
        answered.map_err(|trouble| match trouble {
            Trouble::Broken { detail, evidence: None } => {
                Trouble::Broken { detail, evidence: Some(shown(&String::from_utf8_lossy(line.as_ref()))) }
            }
            other => other,
        })
    }

    /// Waits for the answer to a call. An id that is left out is as good as `null`; other rules look at that.
    pub(super) async fn answer(&mut self, id: &Value, within: Duration) -> Result<Value, Trouble> {
        let is_it =
            |frame: &Value| frame.get("method").is_none() && frame.get("id").unwrap_or(&Value::Null) == id;
        self.until(&format!("an answer with the id {}", shown(&id.to_string())), within, is_it).await
    }

    /// Waits for a notification about a stream.
    pub(super) async fn of_stream(&mut self, stream: &str, within: Duration) -> Result<Value, Trouble> {
        let is_it = |frame: &Value| frame["params"]["streamId"] == *stream && frame.get("id").is_none();
        self.until("a notification of the stream", within, is_it).await
    }

    /// The first frame that is it; others wait.
    pub(super) async fn until(
        &mut self,
        what: &str,
        within: Duration,
        is_it: impl Fn(&Value) -> bool,
    ) -> Result<Value, Trouble> {
        if let Some(at) = self.waiting.iter().position(&is_it) {
            return Ok(self.waiting.remove(at).unwrap_or_default());
        }
        let deadline = Instant::now() + within;
        loop {
            match self.read(deadline).await {
                Next::Frame(frame) if is_it(&frame) => return Ok(frame),
                Next::Frame(frame) if self.waiting.len() < MOST_FRAMES => self.waiting.push_back(frame),
                Next::Frame(_) => {
                    return Err(Trouble::broken(format!("{MOST_FRAMES} other frames, and not {what}")));
                }
                Next::Nothing => {
                    return Err(Trouble::broken(format!("{what} did not come within {within:?}")));
                }
                Next::Closed => return Err(self.gone(what).await),
            }
        }
    }

    /// The next frame, in the order in which they came.
    pub(super) async fn next(&mut self, within: Duration) -> Next {
        match self.waiting.pop_front() {
            Some(frame) => Next::Frame(frame),
            None => self.read(Instant::now() + within).await,
        }
    }

    /// Everything that it still says.
    pub(super) async fn rest(&mut self, within: Duration) -> Vec<Value> {
        let deadline = Instant::now() + within;
        let mut frames: Vec<Value> = self.waiting.drain(..).collect();
        while let Next::Frame(frame) = self.read(deadline).await {
            if frames.len() < MOST_FRAMES {
                frames.push(frame);
            }
        }
        frames
    }

    /// Whether it still answers.
    pub(super) async fn is_alive(&mut self) -> Result<(), Trouble> {
        let answer = self.ask("system.ping", Value::Null).await?;
        match answer.get("result") {
            Some(_) => Ok(()),
            None => Err(Trouble::shown("it does not answer a ping afterwards", &answer)),
        }
    }

    /// Whether it has ended, or its output has.
    pub(super) fn is_over(&self) -> bool {
        self.child.status().ended.is_some()
    }

    /// What its log has so far, once a line of it is the one, or when the time is over.
    pub(super) async fn log_until(
        &mut self,
        within: Duration,
        is_it: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let deadline = Instant::now() + within;
        loop {
            let text = String::from_utf8_lossy(&self.logged).into_owned();
            if let Some(line) = text.lines().find(|line| is_it(line)) {
                return Some(line.to_owned());
            }
            let Ok(Some(Spoken { bytes, .. })) = timeout_at(deadline, self.log.recv()).await else {
                return None;
            };
            self.keep_log(&bytes);
        }
    }

    /// How it ended, if it does in time.
    pub(super) async fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        let ended = self.child.wait();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                outcome = &mut ended => return outcome.report.and_then(|report| report.status),
                // Its log must not keep it from leaving.
                Some(_) = self.log.recv() => {}
                () = tokio::time::sleep_until(deadline) => return None,
            }
        }
    }

    /// SIGTERM, and how it ended.
    pub(super) async fn terminate(&self, within: Duration) -> Option<ExitStatus> {
        let outcome = self.child.stop(Ladder { ask: Duration::ZERO, term: within }).await;
        outcome.report.and_then(|report| report.status)
    }

    async fn gone(&mut self, what: &str) -> Trouble {
        let exit = self.exit(self.limits.exit).await;
        Trouble::broken(format!("it {} instead of {what}", left(exit)))
    }

    async fn read(&mut self, deadline: Instant) -> Next {
        loop {
            let item = tokio::select! {
                biased;
                item = self.output.next() => item,
                Some(Spoken { bytes, .. }) = self.log.recv() => {
                    if self.logged.len() < MOST_LOG {
                        self.logged.extend_from_slice(&bytes);
                    }
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => return Next::Nothing,
            };
            let problem = match item {
                Ok(Some(Item::Line(line))) => {
                    let text = line.text_lossy();
                    match serde_json::from_str(&text) {
                        Ok(frame) if is_frame(&frame) => return Next::Frame(frame),
                        Ok(_) | Err(_) => shown(&text),
                    }
                }
                Ok(Some(Item::TooLong(_))) => "a line of more than 16 MiB".to_owned(),
                Ok(Some(Item::Defective(_))) => "a line that is not UTF-8".to_owned(),
                Ok(None) | Err(_) => return Next::Closed,
            };
            self.noise.get_or_insert(problem);
        }
    }

    fn keep_log(&mut self, bytes: &[u8]) {
        if self.logged.len() < MOST_LOG {
            self.logged.extend_from_slice(bytes);
        }
    }
}

/// A message of JSON-RPC 2.0, or a batch of answers.
fn is_frame(frame: &Value) -> bool {
    match frame {
        Value::Array(answers) => {
            !answers.is_empty() && answers.iter().all(|answer| answer.is_object() && is_frame(answer))
        }
        frame => frame["jsonrpc"] == "2.0",
    }
}

pub(super) fn left(status: Option<ExitStatus>) -> String {
    match status {
        Some(ExitStatus::Code(code)) => format!("exited with code {code}"),
        Some(ExitStatus::Signal(signal)) => format!("was ended by signal {signal}"),
        Some(ExitStatus::Unknown) => "ended nobody knows how".to_owned(),
        None => "closed its output and stayed".to_owned(),
    }
}
