//! The conversation with one running Claude Code: a task that reads, a task that writes, and control requests that wait for their
//! answers. Between turns it goes on reading, so that the program is never held up and its end is noticed, and so that nothing runs
//! that nobody sees: a command in the background that ends would make Claude Code begin a turn by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Output;
use outrigger_wire::line::{Item, LineReader, LineWriter, dialect};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::frame::{self, Kind};
use crate::provider::Failure;
use crate::provider::process::{Agent, Command, Programs};

/// Lines of ours that wait to be written. The reader only adds refusals, and drops them when it is full.
const TO_WRITE: usize = 64;

/// Lines of the program that wait for their turn's loop.
const TO_HANDLE: usize = 64;

/// A line from this length on counts against what long lines together may take.
const LONG: usize = 64 << 10;

/// How many KiB of long lines may wait for their turn's loop; the longest line alone may have as many.
const LONG_LINES: u32 = 64 << 10;

/// One running program. Dropping it kills the program's tree.
pub(super) struct Link {
    pub(super) agent: Agent,
    out: mpsc::Sender<String>,
    shared: Arc<Shared>,
}

/// Something that the program said during a turn.
#[derive(Debug)]
pub(super) enum Said {
    /// A line.
    Line(Line),
    /// Something that was no line; for the log.
    Noise(String),
}

/// A line of the program, checked to be a JSON object.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// The room that a long line takes of what may wait.
    _room: Option<OwnedSemaphorePermit>,
}

impl Line {
    /// What the program says it does, if that is what the line is about.
    pub(super) fn state(&self) -> Option<String> {
        if self.kind != Kind::System {
            return None;
        }
        let system: frame::System = serde_json::from_str(&self.text).ok()?;
        (system.subtype == "session_state_changed").then_some(system.state)
    }
}

/// Why a control request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ControlError {
    /// The program has ended.
    #[error("Claude Code has ended")]
    Gone,
    /// It said no.
    #[error("Claude Code says: {0}")]
    Refused(String),
    /// It said nothing.
    #[error("Claude Code did not answer within {0:?}")]
    Silent(Duration),
}

impl Link {
    /// Starts a program.
    pub(super) async fn start(programs: &Programs, command: Command) -> Result<Self, Failure> {
        let (agent, pipes) = programs.start(command).await?;
        let (out, lines) = mpsc::channel(TO_WRITE);
        let mut reader = LineReader::new(pipes.stdout, dialect::HELMOR);
        // What we write has its bounds already: those of requests and of pictures.
        let mut writer = LineWriter::new(pipes.stdin, usize::MAX);
        if let Some(tape) = pipes.tape {
            reader = reader.taped(tape.clone());
            writer = writer.taped(tape);
        }
        let state = Mutex::new(State { open: true, ..State::default() });
        let shared = Arc::new(Shared { state, unattended: watch::Sender::new(false) });
        tokio::spawn(write(writer, lines));
        tokio::spawn(read(reader, Arc::clone(&shared), out.downgrade()));
        Ok(Self { agent, out, shared })
    }

    /// Whether it still speaks.
    pub(super) fn is_open(&self) -> bool {
        self.shared.lock().open && !self.agent.is_over()
    }

    /// What it says from now on, until the receiver is dropped or another turn listens. Ends when the program does.
    pub(super) fn listen(&self) -> mpsc::Receiver<Said> {
        let (sink, said) = mpsc::channel(TO_HANDLE);
        let mut state = self.shared.lock();
        state.sink = state.open.then_some(sink);
        drop(state);
        // From here on somebody sees what it does.
        self.shared.unattended.send_replace(false);
        said
    }

    /// Waits until the program does nothing of its own accord any more. `false` when that takes too long.
    pub(super) async fn rests(&self, within: Duration) -> bool {
        let mut unattended = self.shared.unattended.subscribe();
        tokio::time::timeout(within, unattended.wait_for(|busy| !busy)).await.is_ok_and(|rests| rests.is_ok())
    }

    /// Writes a line. `false` when the program does not read any more.
    pub(super) async fn write(&self, line: String) -> bool {
        self.out.send(line).await.is_ok()
    }

    /// The turn is over: deals with what was said meanwhile as if nobody had listened.
    pub(super) async fn stop_listening(&self, mut said: mpsc::Receiver<Said>) {
        said.close();
        while let Some(said) = said.recv().await {
            if let Said::Line(line) = said {
                unheard(&line, &self.shared, &self.out);
            }
        }
    }

    /// Asks the program something and waits for the answer.
    pub(super) async fn control(
        &self,
        request: &Value,
        within: Duration,
    ) -> Result<Box<RawValue>, ControlError> {
        let (id, answer) = self.shared.expect_answer().ok_or(ControlError::Gone)?;
        let forget = Forget { shared: &self.shared, id: &id };
        if !self.write(frame::request(&id, request)).await {
            return Err(ControlError::Gone);
        }
        let answer = tokio::time::timeout(within, answer).await;
        drop(forget);
        match answer {
            Ok(Ok(answer)) => answer.map_err(ControlError::Refused),
            Ok(Err(_)) => Err(ControlError::Gone),
            Err(_) => Err(ControlError::Silent(within)),
        }
    }
}

struct Shared {
    state: Mutex<State>,
    /// The program has begun something while no turn was running.
    unattended: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    open: bool,
    asked: u64,
    waiting: HashMap<String, oneshot::Sender<Result<Box<RawValue>, String>>>,
    sink: Option<mpsc::Sender<Said>>,
}

/// A request that nobody waits for any more is forgotten, so that the map holds only what is waited for.
struct Forget<'a> {
    shared: &'a Shared,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.lock().waiting.remove(self.id);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new request's name, and where its answer comes; `None` when no answer can come.
    #[expect(clippy::type_complexity, reason = "said once, here")]
    fn expect_answer(&self) -> Option<(String, oneshot::Receiver<Result<Box<RawValue>, String>>)> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.lock();
        if !state.open {
            return None;
        }
        state.asked += 1;
        let id = format!("outrigger-{}", state.asked);
        state.waiting.insert(id.clone(), sender);
        Some((id, answer))
    }

    fn answered(&self, line: &str) {
        let Ok(frame::Answer { response }) = serde_json::from_str::<frame::Answer<'_>>(line) else { return };
        let Some(waiting) = self.lock().waiting.remove(&response.request_id) else { return };
        let answer = match (&*response.subtype, response.response) {
            ("success", Some(body)) => Ok(body.to_owned()),
            ("success", None) => Ok(RawValue::NULL.to_owned()),
            _ => Err(response.error.unwrap_or_else(|| format!("{} without a reason", response.subtype))),
        };
        // Whoever asked may have gone in the meantime.
        let _ = waiting.send(answer);
    }

    fn closed(&self) {
        let mut state = self.lock();
        state.open = false;
        state.sink = None;
        state.waiting.clear();
        self.unattended.send_replace(false);
    }
}

async fn write(mut writer: LineWriter<tokio::net::unix::pipe::Sender>, mut lines: mpsc::Receiver<String>) {
    while let Some(line) = lines.recv().await {
        if writer.write(line.as_bytes()).await.is_err() {
            // The program reads no more; its reader will say that it has ended.
            break;
        }
    }
}

async fn read(mut reader: LineReader<Output>, shared: Arc<Shared>, out: mpsc::WeakSender<String>) {
    let room = Arc::new(Semaphore::new(LONG_LINES as usize));
    loop {
        let said = match reader.next().await {
            Ok(Some(Item::Line(line))) => match line.text() {
                Ok(text) => match frame::kind_of(text) {
                    Ok(Kind::Answer) => {
                        shared.answered(text);
                        continue;
                    }
                    Ok(Kind::Quiet) => continue,
                    Ok(kind) => {
                        let text = text.to_owned();
                        let _room = take(&room, text.len()).await;
                        Said::Line(Line { kind, text, _room })
                    }
                    Err(error) => Said::Noise(format!("a line of Claude Code is no message ({error})")),
                },
                Err(error) => Said::Noise(format!("a line of Claude Code is no text ({error})")),
            },
            Ok(Some(Item::TooLong(line))) => {
                Said::Noise(format!("a line of Claude Code with {} bytes was thrown away", line.dropped))
            }
            Ok(Some(Item::Defective(line))) => Said::Noise(format!("a line of Claude Code: {}", line.defect)),
            Ok(None) | Err(_) => break,
        };
        let sink = shared.lock().sink.clone();
        let said = match sink {
            Some(sink) => match sink.send(said).await {
                Ok(()) => continue,
                Err(back) => {
                    // Unless the next turn listens already.
                    let mut state = shared.lock();
                    state.sink = state.sink.take().filter(|now| !now.same_channel(&sink));
                    back.0
                }
            },
            None => said,
        };
        if let (Said::Line(line), Some(out)) = (&said, out.upgrade()) {
            unheard(line, &shared, &out);
        }
    }
    shared.closed();
}

/// Waits until a line of this length may wait. The room is given back when the line has been handled.
async fn take(room: &Arc<Semaphore>, length: usize) -> Option<OwnedSemaphorePermit> {
    if length < LONG {
        return None;
    }
    let kib = u32::try_from(length >> 10).unwrap_or(LONG_LINES).min(LONG_LINES);
    // Nobody closes it.
    Arc::clone(room).acquire_many_owned(kib).await.ok()
}

/// What is said while nobody listens. What it asks must be answered, or it would wait for ever; what it begins is interrupted, and
/// the next turn tells the model what it was about.
fn unheard(line: &Line, shared: &Shared, out: &mpsc::Sender<String>) {
    if line.kind == Kind::Request {
        refuse(&line.text, out);
    }
    if let Some(state) = line.state() {
        let busy = state != "idle";
        let was_busy = shared.unattended.send_replace(busy);
        if busy && !was_busy {
            let _ = out.try_send(frame::request("outrigger-unattended", &json!({"subtype": "interrupt"})));
        }
    }
}

/// Says no to a control request that came when no turn was running.
fn refuse(line: &str, out: &mpsc::Sender<String>) {
    let Ok(request) = serde_json::from_str::<frame::Request<'_>>(line) else { return };
    let _ =
        out.try_send(frame::answer(&request.request_id, Err("no turn is running, so nobody can be asked")));
}
