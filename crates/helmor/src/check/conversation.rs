//! A conversation with one child, as raw as the rules need it: bytes in, events out, and how it ended.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Session, Supervisor};
use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::state::Ladder;
use outrigger_wire::conformance::{Trouble, shown};
use outrigger_wire::line::{Item, LineReader, dialect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout};

use super::suite::Limits;
use crate::host::BridgeSpec;
use crate::protocol::request_line;

/// How many events that nobody asked for may wait; a child that says more is told off by the rule that is tried.
const MOST_EVENTS: usize = 100_000;

/// One child, spoken to line by line. Dropping it kills it with everything it started.
pub(super) struct Conversation {
    child: Child,
    _session: Session,
    input: Option<pipe::Sender>,
    output: LineReader<Output>,
    limits: Limits,
    next_id: u64,
    /// Events that came while something else was waited for.
    waiting: VecDeque<Value>,
    /// The first line on standard output that is no event.
    pub(super) noise: Option<String>,
}

/// What came next.
pub(super) enum Next {
    Event(Value),
    Closed,
    Nothing,
}

impl Conversation {
    /// Starts the child, or says why that failed.
    pub(super) async fn start(
        supervisor: &Supervisor,
        spec: &BridgeSpec,
        limits: Limits,
    ) -> Result<Self, String> {
        let child = supervisor.start(spec.child(Ready::OnSpawn)).map_err(|error| error.to_string())?;
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
            output: LineReader::new(output, dialect::HELMOR),
            limits,
            next_id: 0,
            waiting: VecDeque::new(),
            noise: None,
        })
    }

    /// Says bytes and a newline. A child that does not listen any more shows in what it says next.
    ///
    /// What it says meanwhile is read, so that a child that answers while it is told does not wait for us.
    pub(super) async fn say(&mut self, line: impl AsRef<[u8]>) {
        let Some(mut input) = self.input.take() else { return };
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        let deadline = Instant::now() + self.limits.answer;
        {
            let writing = input.write_all(&bytes);
            tokio::pin!(writing);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut writing => break,
                    next = self.read(deadline) => match next {
                        Next::Event(event) if self.waiting.len() < MOST_EVENTS => self.waiting.push_back(event),
                        Next::Event(_) => {}
                        Next::Closed | Next::Nothing => break,
                    },
                }
            }
        }
        self.input = Some(input);
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Asks and waits for the first event on that id, whatever it is.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        let id = self.send(method, &params).await;
        self.event_of(&id, self.limits.answer).await
    }

    /// Asks, and gives the id.
    pub(super) async fn send(&mut self, method: &str, params: &Value) -> String {
        self.next_id += 1;
        let id = format!("check-{}", self.next_id);
        self.say(request_line(&id, method, params)).await;
        id
    }

    /// Says a line and waits for an `error`, with this id or without any; the line is the evidence if there is none.
    pub(super) async fn complaint(&mut self, line: impl AsRef<[u8]>, id: &str) -> Result<Value, Trouble> {
        self.say(&line).await;
        let is_it = |event: &Value| event["type"] == "error" && (event["id"].is_null() || event["id"] == id);
        let came = self.until("an `error`", self.limits.answer, is_it).await;
        came.map_err(|trouble| match trouble {
            Trouble::Broken { detail, evidence: None } => {
                Trouble::Broken { detail, evidence: Some(shown(&String::from_utf8_lossy(line.as_ref()))) }
            }
            other => other,
        })
    }

    /// Waits for the next event of a request. Heartbeats before it are passed over.
    pub(super) async fn event_of(&mut self, id: &str, within: Duration) -> Result<Value, Trouble> {
        let (deadline, mut rest) = (Instant::now() + within, within);
        loop {
            let is_it = |event: &Value| event["id"] == *id;
            let event = self.until("an event with the id of the request", rest, is_it).await?;
            if event["type"] != "heartbeat" {
                return Ok(event);
            }
            rest = deadline.saturating_duration_since(Instant::now());
        }
    }

    /// The first event that is it; others wait.
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
                Next::Event(event) if is_it(&event) => return Ok(event),
                Next::Event(event) if self.waiting.len() < MOST_EVENTS => self.waiting.push_back(event),
                Next::Event(_) => {
                    return Err(Trouble::broken(format!("{MOST_EVENTS} other events, and not {what}")));
                }
                Next::Nothing => {
                    return Err(Trouble::broken(format!("{what} did not come within {within:?}")));
                }
                Next::Closed => return Err(self.gone(what).await),
            }
        }
    }

    /// The next event, in the order in which they came.
    pub(super) async fn next(&mut self, within: Duration) -> Next {
        match self.waiting.pop_front() {
            Some(event) => Next::Event(event),
            None => self.read(Instant::now() + within).await,
        }
    }

    /// Everything that it still says.
    pub(super) async fn rest(&mut self, within: Duration) -> Vec<Value> {
        let deadline = Instant::now() + within;
        let mut events: Vec<Value> = self.waiting.drain(..).collect();
        while let Next::Event(event) = self.read(deadline).await {
            if events.len() < MOST_EVENTS {
                events.push(event);
            }
        }
        events
    }

    /// Whether it still answers.
    pub(super) async fn is_alive(&mut self) -> Result<(), Trouble> {
        let answer = self.ask("ping", json!({})).await?;
        match answer["type"] == "pong" {
            true => Ok(()),
            false => Err(Trouble::shown("it does not answer a ping afterwards", &answer)),
        }
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.child.status().ended.is_some()
    }

    /// How it ended, if it does in time.
    pub(super) async fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        let outcome = timeout(within, self.child.wait()).await.ok()?;
        outcome.report.and_then(|report| report.status)
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
                () = sleep_until(deadline) => return Next::Nothing,
            };
            let problem = match item {
                Ok(Some(Item::Line(line))) => {
                    let text = line.text_lossy();
                    match serde_json::from_str::<Value>(&text) {
                        Ok(event) if event["type"].is_string() => return Next::Event(event),
                        Ok(_) | Err(_) => shown(&text),
                    }
                }
                Ok(Some(Item::TooLong(_))) => "a line of more than 64 MiB".to_owned(),
                Ok(Some(Item::Defective(_))) => "a line that is not UTF-8".to_owned(),
                Ok(None) | Err(_) => return Next::Closed,
            };
            self.noise.get_or_insert(problem);
        }
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
