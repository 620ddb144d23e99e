//! The peer as its users meet it, on in-memory pipes and a paused clock.

mod calls;
mod ending;
mod flood;
mod interop;
mod requests;
mod sending;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CancelWire, Complaint, Crowded, DuplicateIds, End, Farewell, Handler,
    IncomingLimits, Note, OutboxLimits, Outcome, Peer, PeerConfig, Reaction, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject, Id, code};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

pub(crate) const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STANDARD,
    max_line_out: 1 << 20,
    max_calls: 100_000,
    incoming: IncomingLimits { running: 64, waiting: 100_000, notifications: 64, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 1 << 20, reply_bytes: 1 << 20, events: 16, event_bytes: 1 << 16 },
    write_stall: Duration::from_secs(10),
    drain: Duration::from_secs(5),
    cancel: CancelWire::Notify("$/cancel"),
    duplicate_ids: DuplicateIds::Refuse,
};

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

type Method = Box<dyn Fn(Call) -> Answer + Send + Sync>;
type Temper = Box<dyn Fn(&Complaint<'_>) -> Option<Reaction> + Send + Sync>;
type NoteWork = Box<dyn Fn(Note) -> Option<BoxFuture<()>> + Send + Sync>;
type Gate = Box<dyn Fn(&str) -> Result<(), ErrorObject> + Send + Sync>;

/// A handler put together by a test.
#[derive(Default)]
pub(crate) struct Script {
    methods: HashMap<&'static str, Method>,
    temper: Option<Temper>,
    gate: Option<Gate>,
    farewell: Option<&'static str>,
    notes: Option<mpsc::Sender<String>>,
    note_work: Option<NoteWork>,
    complaints: Arc<Mutex<Vec<String>>>,
    arrivals: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A method that answers at once.
    pub(crate) fn now(
        mut self,
        method: &'static str,
        answer: impl Fn(Call) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.methods.insert(method, Box::new(move |call| Answer::Now(answer(call))));
        self
    }

    /// A method that answers later.
    pub(crate) fn later<F>(
        mut self,
        method: &'static str,
        answer: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.methods.insert(method, Box::new(move |call| Answer::Later(Box::pin(answer(call)))));
        self
    }

    pub(crate) fn temper(
        mut self,
        temper: impl Fn(&Complaint<'_>) -> Option<Reaction> + Send + Sync + 'static,
    ) -> Self {
        self.temper = Some(Box::new(temper));
        self
    }

    pub(crate) fn gate(
        mut self,
        gate: impl Fn(&str) -> Result<(), ErrorObject> + Send + Sync + 'static,
    ) -> Self {
        self.gate = Some(Box::new(gate));
        self
    }

    pub(crate) fn farewell(mut self, method: &'static str) -> Self {
        self.farewell = Some(method);
        self
    }

    pub(crate) fn notes(mut self, notes: mpsc::Sender<String>) -> Self {
        self.notes = Some(notes);
        self
    }

    pub(crate) fn on_note(
        mut self,
        work: impl Fn(Note) -> Option<BoxFuture<()>> + Send + Sync + 'static,
    ) -> Self {
        self.note_work = Some(Box::new(work));
        self
    }

    /// Where complaints are written down, by their debug form.
    pub(crate) fn complaints(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.complaints)
    }
}

impl Script {
    /// Where answers and requests are written down, in order of arrival.
    pub(crate) fn arrivals(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.arrivals)
    }
}

impl Handler for Script {
    fn answered(&self, method: &str) {
        self.arrivals.lock().unwrap().push(format!("answer to {method}"));
    }

    fn request(&self, call: Call) -> Answer {
        self.arrivals.lock().unwrap().push(format!("request {}", call.method));
        match self.methods.get(call.method.as_str()) {
            Some(method) => method(call),
            None => Answer::Now(Err(ErrorObject::new(code::METHOD_NOT_FOUND, "unknown method"))),
        }
    }

    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        if let Some(notes) = &self.notes {
            let params = note.params.as_deref().map_or("-", RawValue::get);
            notes.try_send(format!("{} {params}", note.method)).unwrap();
        }
        self.note_work.as_ref().and_then(|work| work(note))
    }

    fn admit(&self, method: &str, _: &Id) -> Result<(), ErrorObject> {
        self.gate.as_ref().map_or(Ok(()), |gate| gate(method))
    }

    fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        self.complaints.lock().unwrap().push(format!("{complaint:?}"));
        let temper = self.temper.as_ref().and_then(|temper| temper(complaint));
        temper.unwrap_or_else(|| Reaction::Answer(complaint.to_error()))
    }

    fn farewell(&self, _: &End) -> Option<Farewell> {
        self.farewell.map(|method| Farewell { method: method.into(), params: None })
    }
}

/// The other side, spoken by hand.
pub(crate) struct Remote {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Remote {
    pub(crate) async fn send(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line; empty at the end.
    pub(crate) async fn read(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        line.truncate(line.trim_end_matches('\n').len());
        line
    }

    pub(crate) async fn hang_up(&mut self) {
        self.output.shutdown().await.unwrap();
    }
}

/// A peer whose other side is spoken by hand, over a pipe that holds `pipe` bytes.
pub(crate) fn peer_with_pipe(script: Script, config: PeerConfig, pipe: usize) -> (Peer, Remote) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (input, output) = tokio::io::split(ours);
    let peer = Peer::start(Wiring::new(input, output), Arc::new(script), config);
    let (input, output) = tokio::io::split(theirs);
    (peer, Remote { input: BufReader::new(input), output })
}

pub(crate) fn peer(script: Script, config: PeerConfig) -> (Peer, Remote) {
    peer_with_pipe(script, config, 1 << 20)
}

/// Two peers that talk to each other over a pipe that holds `pipe` bytes.
pub(crate) fn pair(left: Script, right: Script, config: PeerConfig, pipe: usize) -> (Peer, Peer) {
    let (near, far) = tokio::io::duplex(pipe);
    let (input, output) = tokio::io::split(near);
    let left = Peer::start(Wiring::new(input, output), Arc::new(left), config);
    let (input, output) = tokio::io::split(far);
    let right = Peer::start(Wiring::new(input, output), Arc::new(right), config);
    (left, right)
}

/// A script whose `echo` returns its params.
pub(crate) fn echo() -> Script {
    Script::new().now("echo", |call| Ok(call.params.unwrap_or_else(|| raw("null"))))
}
