//! The conversation with a `codex app-server`: JSON-RPC lines without their `jsonrpc` member, calls both ways.
//!
//! One task reads and one writes, so that a call that is given up leaves no half of a line behind and an answer is never
//! stuck behind what nobody reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Output;
use outrigger_wire::line::{Item, LineReader, LineWriter, dialect};
use outrigger_wire::rpc::code::{self, Code};
use outrigger_wire::rpc::{self, EnvelopePolicy, Id, Incoming, Message};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::usage::Usages;
use crate::provider::process::Pipes;
use crate::provider::{Failure, FailureCode};

/// How many lines wait to be written, and how many that were read wait for the turn.
const QUEUE: usize = 256;

/// How long a line to the server may be. The prompt in it came in a line of half of that.
const LINE_BYTES: usize = 128 << 20;

/// What the server says by itself.
#[derive(Debug)]
pub(super) enum Heard {
    /// A notification.
    Told {
        /// What sort.
        method: String,
        /// Its members, as they were written.
        params: Box<RawValue>,
    },
    /// A request, to be answered with [`Link::answer`] or [`Link::refuse`].
    Asked {
        /// For the answer.
        id: Id,
        /// What is asked.
        method: String,
        /// Its members, as they were written.
        params: Box<RawValue>,
    },
}

impl Heard {
    /// About how much memory it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Told { method, params } | Self::Asked { method, params, .. } => {
                method.len() + params.get().len()
            }
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The server says no.
    #[error("Codex refused `{method}`: {message}")]
    Refused {
        /// What was called.
        method: String,
        /// Its number.
        code: Code,
        /// Its words.
        message: String,
    },
    /// It does not answer.
    #[error("Codex did not answer `{method}` within {within:?}")]
    Late {
        /// What was called.
        method: String,
        /// How long was waited.
        within: Duration,
    },
    /// It speaks no more.
    #[error("Codex has ended")]
    Gone,
    /// Its answer is not what it should be.
    #[error("Codex answered `{method}` in a way that is not understood: {why}")]
    Odd {
        /// What was called.
        method: String,
        /// What is wrong with the answer.
        why: String,
    },
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let code = match &error {
            CallError::Refused { .. } => FailureCode::InvalidRequest,
            CallError::Late { .. } => FailureCode::Timeout,
            CallError::Gone => FailureCode::AgentExited,
            CallError::Odd { .. } => FailureCode::AgentProtocol,
        };
        Self::new(code, error.to_string())
    }
}

/// The conversation. Dropping it ends both tasks, and with them the server's standard input.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
    out: mpsc::Sender<Vec<u8>>,
    next: AtomicU64,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct Shared {
    calls: Mutex<Calls>,
    listener: Mutex<Option<mpsc::Sender<Heard>>>,
    usages: Mutex<Usages>,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    closed: bool,
}

type Reply = Result<Box<RawValue>, (Code, String)>;

impl Link {
    /// Begins to listen and to write.
    pub(super) fn open(pipes: Pipes) -> Self {
        let shared = Arc::new(Shared {
            calls: Mutex::default(),
            listener: Mutex::default(),
            usages: Mutex::default(),
        });
        let (out, lines) = mpsc::channel(QUEUE);
        let mut reader = LineReader::new(pipes.stdout, dialect::HELMOR);
        let mut writer = LineWriter::new(pipes.stdin, LINE_BYTES);
        if let Some(tape) = pipes.tape {
            reader = reader.taped(tape.clone());
            writer = writer.taped(tape);
        }
        let reading = tokio::spawn(read(reader, Arc::clone(&shared), out.clone().downgrade()));
        let writing = tokio::spawn(write(writer, lines));
        Self { shared, out, next: AtomicU64::new(1), tasks: [reading.abort_handle(), writing.abort_handle()] }
    }

    /// Calls a method and waits for its result.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut calls = self.shared.calls();
            if calls.closed {
                return Err(CallError::Gone);
            }
            calls.waiting.insert(number, sender);
        }
        let _forget = Forget { shared: &self.shared, number };
        let answered = async {
            let call = serde_json::json!({ "id": number, "method": method, "params": params });
            self.write(call).await?;
            receiver.await.map_err(|_| CallError::Gone)
        };
        match tokio::time::timeout(within, answered).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err((code, message)))) => {
                Err(CallError::Refused { method: method.to_owned(), code, message })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::Late { method: method.to_owned(), within }),
        }
    }

    /// Tells the server something.
    pub(super) async fn notify(&self, method: &str) -> Result<(), CallError> {
        self.write(serde_json::json!({ "method": method })).await
    }

    /// Answers a question of the server.
    pub(super) async fn answer(&self, id: &Id, result: Value) {
        // A server that is gone needs no answer.
        let _ = self.write_raw(reply(id, "result", &result)).await;
    }

    /// Answers a question of the server with an error.
    pub(super) async fn refuse(&self, id: &Id, why: &str) {
        let _ = self.write_raw(refusal(id, why)).await;
    }

    /// From now on everything the server says by itself goes here, until the receiver is dropped. What it says while nobody
    /// listens is lost, and its questions are refused.
    pub(super) fn listen(&self) -> mpsc::Receiver<Heard> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        *lock(&self.shared.listener) = Some(sender);
        receiver
    }

    /// What the server said about how full the windows of its threads are.
    pub(super) fn usages(&self) -> MutexGuard<'_, Usages> {
        lock(&self.shared.usages)
    }

    async fn write(&self, message: Value) -> Result<(), CallError> {
        self.write_raw(message.to_string().into_bytes()).await
    }

    async fn write_raw(&self, line: Vec<u8>) -> Result<(), CallError> {
        self.out.send(line).await.map_err(|_| CallError::Gone)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    /// Nothing comes any more: every call that waits, and who listens, must know.
    fn close(&self) {
        {
            let mut calls = self.calls();
            calls.closed = true;
            calls.waiting.clear();
        }
        *lock(&self.listener) = None;
    }
}

/// A call that was given up does not wait any more.
struct Forget<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.calls().waiting.remove(&self.number);
    }
}

async fn write(mut writer: LineWriter<pipe::Sender>, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // The reader sees that the server is gone, and says so.
        if writer.write(&line).await.is_err() {
            return;
        }
    }
}

async fn read(mut reader: LineReader<Output>, shared: Arc<Shared>, out: mpsc::WeakSender<Vec<u8>>) {
    // A line that cannot be read is no reason to end a turn: the next one may be the end of it.
    while let Ok(Some(item)) = reader.next().await {
        let Item::Line(line) = item else { continue };
        let Ok(text) = line.text() else { continue };
        let Ok(Incoming::One(message)) = rpc::parse(text, &EnvelopePolicy::STEERABLE_HOST) else { continue };
        if let Some(heard) = shared.sort(message) {
            deliver(&shared, heard, &out).await;
        }
    }
    shared.close();
}

impl Shared {
    /// Answers go to whoever waits for them; what is left is for the listener.
    fn sort(&self, message: Message<'_>) -> Option<Heard> {
        match message {
            Message::Response { id, result, .. } => {
                let result = result.map_or_else(null, RawValue::to_owned);
                self.reply(&id, Ok(result));
                None
            }
            Message::Error { id, error, .. } => {
                if let Some(id) = id {
                    self.reply(&id, Err((error.code, error.message)));
                }
                None
            }
            Message::Notification { method, params, .. } => {
                let heard = Heard::Told {
                    method: method.into_owned(),
                    params: params.map_or_else(null, RawValue::to_owned),
                };
                if let Heard::Told { method, params } = &heard {
                    lock(&self.usages).note(method, params.get());
                }
                Some(heard)
            }
            Message::Request { id, method, params, .. } => {
                let params = params.map_or_else(null, RawValue::to_owned);
                Some(Heard::Asked { id, method: method.into_owned(), params })
            }
        }
    }

    fn reply(&self, id: &Id, reply: Reply) {
        let waiting = id.as_u64().and_then(|number| self.calls().waiting.remove(&number));
        if let Some(waiting) = waiting {
            // Who gave up does not want it any more.
            let _ = waiting.send(reply);
        }
    }
}

/// Waits until the listener has room: a slow host slows the server down.
async fn deliver(shared: &Shared, heard: Heard, out: &mpsc::WeakSender<Vec<u8>>) {
    let listener = lock(&shared.listener).clone();
    let unheard = match listener {
        Some(listener) => listener.send(heard).await.err().map(|mpsc::error::SendError(heard)| heard),
        None => Some(heard),
    };
    if let (Some(Heard::Asked { id, .. }), Some(out)) = (unheard, out.upgrade()) {
        let _ = out.send(refusal(&id, "no turn is running, so nobody can be asked")).await;
    }
}

fn refusal(id: &Id, why: &str) -> Vec<u8> {
    let error = serde_json::json!({ "code": code::METHOD_NOT_FOUND.0, "message": why });
    reply(id, "error", &error)
}

/// The id goes back as it was spelled.
fn reply(id: &Id, member: &str, value: &Value) -> Vec<u8> {
    format!("{{\"id\":{id},\"{member}\":{value}}}").into_bytes()
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
