//! The conversation with one agent: JSON-RPC lines both ways, heard strictly in the order in which they were said.
//!
//! A [`Peer`](outrigger_wire::peer::Peer) would let the answer to a prompt overtake the updates before it, which it hears in a
//! task of their own; here one task hears everything, because in this protocol the answer is the end of the turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_wire::line::{Item, LineReader, dialect};
use outrigger_wire::rpc::{self, EnvelopePolicy, ErrorObject, Id, Incoming, Message, Version};
use outrigger_wire::tape::{Direction, Tape};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::ear::Ear;
use crate::provider::process::Pipes;

/// How many lines may wait to be written to an agent that does not read.
const WAITING: usize = 64;

/// Some agents leave out `jsonrpc`, or an `id` that is null; nothing is unclear by that.
const ENVELOPE: EnvelopePolicy =
    EnvelopePolicy { version: Version::OptionalButRight, ..EnvelopePolicy::STEERABLE_HOST };

/// One conversation.
pub(super) struct Link {
    out: mpsc::Sender<Vec<u8>>,
    calls: Mutex<Calls>,
    over: CancellationToken,
}

#[derive(Default)]
struct Calls {
    last: u64,
    pending: HashMap<u64, oneshot::Sender<Result<Box<RawValue>, ErrorObject>>>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The agent says no.
    Refused(ErrorObject),
    /// The agent is gone.
    Gone,
    /// It said nothing for so long.
    Silent(Duration),
}

impl Link {
    /// Speaks over these pipes; what the agent says of itself goes to `ear`.
    pub(super) fn start(pipes: Pipes, ear: Arc<Ear>) -> Arc<Self> {
        let Pipes { stdin, stdout, tape } = pipes;
        let (out, lines) = mpsc::channel(WAITING);
        let link =
            Arc::new(Self { out, calls: Mutex::new(Calls::default()), over: CancellationToken::new() });
        let mut reader = LineReader::new(stdout, dialect::HELMOR);
        if let Some(tape) = tape.clone() {
            reader = reader.taped(tape);
        }
        tokio::spawn(hear(Arc::clone(&link), ear, reader));
        tokio::spawn(write(link.over.clone(), lines, stdin, tape));
        link
    }

    /// Calls the agent and waits for its answer, however long that takes.
    pub(super) async fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, CallError> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut calls = self.calls();
            calls.last += 1;
            let number = calls.last;
            calls.pending.insert(number, answer);
            number
        };
        let _forget = Forget { link: self, number };
        let mut line = Vec::new();
        rpc::encode_request(&mut line, &Id::from(number), method, raw(params).as_deref());
        self.send(line).await?;
        tokio::select! {
            biased;
            answer = answered => answer.map_err(|_| CallError::Gone)?.map_err(CallError::Refused),
            () = self.over.cancelled() => Err(CallError::Gone),
        }
    }

    /// Calls the agent and waits for its answer for so long.
    pub(super) async fn call_within(
        &self,
        within: Duration,
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, CallError> {
        let answer = tokio::time::timeout(within, self.call(method, params)).await;
        answer.unwrap_or(Err(CallError::Silent(within)))
    }

    /// Tells the agent something.
    pub(super) async fn notify(&self, method: &str, params: &Value) -> Result<(), CallError> {
        let mut line = Vec::new();
        rpc::encode_notification(&mut line, method, raw(params).as_deref());
        self.send(line).await
    }

    /// Answers a request of the agent. One that is gone needs no answer.
    pub(super) async fn answer(&self, id: &Id, outcome: Result<Value, ErrorObject>) {
        let mut line = Vec::new();
        match outcome {
            Ok(result) => match raw(&result) {
                Some(result) => rpc::encode_result(&mut line, id, &result),
                None => return,
            },
            Err(error) => rpc::encode_error(&mut line, id, &error),
        }
        let _ = self.send(line).await;
    }

    /// Answers at once, from where nothing may wait. With 64 lines unread the agent is not reading anyway.
    pub(super) fn answer_now(&self, id: &Id, error: &ErrorObject) {
        let mut line = Vec::new();
        rpc::encode_error(&mut line, id, error);
        let _ = self.out.try_send(line);
    }

    /// Whether nothing more will be heard.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    async fn send(&self, line: Vec<u8>) -> Result<(), CallError> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err(CallError::Gone),
            sent = self.out.send(line) => sent.map_err(|_| CallError::Gone),
        }
    }

    fn settle(&self, id: &Id, answer: Result<Box<RawValue>, ErrorObject>) {
        // An answer to a call that was given up, or that nobody made, is nobody's.
        let waiting = id.as_u64().and_then(|number| self.calls().pending.remove(&number));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value always serialises.
fn raw(value: &Value) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}

/// Forgets a call that is given up.
struct Forget<'a> {
    link: &'a Link,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.link.calls().pending.remove(&self.number);
    }
}

/// Hears everything, in order. After each batch of lines it waits until the host has read enough.
async fn hear<R: tokio::io::AsyncRead + Unpin>(link: Arc<Link>, ear: Arc<Ear>, mut reader: LineReader<R>) {
    let _over = link.over.clone().drop_guard();
    loop {
        match reader.next().await {
            Ok(Some(item)) => take(&link, &ear, item),
            Ok(None) | Err(_) => return,
        }
        while let Ok(Some(item)) = reader.next_buffered() {
            take(&link, &ear, item);
        }
        ear.room().await;
    }
}

fn take(link: &Arc<Link>, ear: &Arc<Ear>, item: Item<'_>) {
    let line = match item {
        Item::Line(line) => line,
        Item::TooLong(_) | Item::Defective(_) => {
            return ear.garbage("a line that is no text of 64 MiB or less");
        }
    };
    let Ok(text) = line.text() else { return ear.garbage("a line that is not UTF-8") };
    match rpc::parse(text, &ENVELOPE) {
        Ok(Incoming::One(message)) => match message {
            Message::Request { id, method, params, .. } => Ear::request(ear, link, id, &method, params),
            Message::Notification { method, params, .. } => ear.note(&method, params),
            Message::Response { id, result, .. } => {
                link.settle(&id, Ok(result.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned)));
            }
            Message::Error { id: Some(id), error, .. } => link.settle(&id, Err(error)),
            Message::Error { id: None, error, .. } => ear.garbage(&error.to_string()),
        },
        // The policy refuses batches. Many agents print something for people now and then.
        Ok(Incoming::Batch(_)) | Err(_) => ear.garbage(text),
    }
}

async fn write(
    over: CancellationToken,
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut stdin: pipe::Sender,
    tape: Option<Tape>,
) {
    loop {
        let mut line = tokio::select! {
            biased;
            () = over.cancelled() => return,
            line = lines.recv() => match line {
                Some(line) => line,
                None => return,
            },
        };
        if let Some(tape) = &tape {
            tape.line(Direction::Out, &line);
        }
        line.push(b'\n');
        let written = tokio::select! {
            biased;
            () = over.cancelled() => return,
            written = stdin.write_all(&line) => written,
        };
        if written.is_err() {
            // It does not read any more; what it still says is heard until it ends.
            return;
        }
    }
}
