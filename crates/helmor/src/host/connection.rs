//! The conversation with one process: one task reads and never waits for anybody, one writes whole lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_supervise::driver::{Output, SessionHandle};
use outrigger_supervise::state::Fault;
use outrigger_supervise::tree::Pid;
use outrigger_wire::line::{Head, Item, LineReader, LineWriter, dialect};
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::error::{BridgeError, Lost};
use super::event::StreamEnd;
use super::hub::{Answer, Delivered, Hub, ToStop};
use super::queue::Queue;
use super::read::refusal;
use super::reverse::{Answering, HostCall, Notice, Reverse};
use super::sessions::{Sessions, TurnGuard};
use super::terms::Terms;
use crate::protocol::{Event, Said, SendMessage, request_line};

/// How many lines may wait to be written. Whoever has another one waits.
const LINES: usize = 8;

/// The longest line, newline aside.
pub(super) const LONGEST_LINE: usize = dialect::HELMOR.limit.payload();

/// How long a turn that is to be stopped may wait for its turn to be told.
const TELL: Duration = Duration::from_secs(1);

/// One process, spoken to.
pub(super) struct Connection {
    pub(super) pid: Pid,
    pub(super) hub: Hub,
    terms: Terms,
    lines: mpsc::Sender<String>,
    handle: SessionHandle,
    answering: Answering,
    reverse: Arc<dyn Reverse>,
    /// Gives up what is done for it: there is nobody left to answer.
    gone: CancellationToken,
    /// Its standard output has ended.
    ending: CancellationToken,
    counts: Arc<Counts>,
}

/// What is counted over all processes.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// For ids that no two requests share.
    next_id: AtomicU64,
    /// Everything that was read.
    lines: AtomicU64,
    pub(super) noise: AtomicU64,
    pub(super) strays: AtomicU64,
    pub(super) complaints: AtomicU64,
}

impl Connection {
    /// Begins to speak. The task ends with the sidecar's standard output.
    pub(super) fn open(
        (pid, handle): (Pid, SessionHandle),
        (stdin, stdout): (pipe::Sender, Output),
        (terms, sessions): (Terms, Sessions),
        reverse: Arc<dyn Reverse>,
        counts: Arc<Counts>,
    ) -> (Arc<Self>, JoinHandle<()>) {
        let (lines, to_write) = mpsc::channel(LINES);
        let connection = Arc::new(Self {
            pid,
            hub: Hub::new(sessions, terms.stream_bytes),
            lines,
            handle: handle.clone(),
            answering: Answering::new(Arc::clone(&reverse), terms.reverse),
            reverse,
            gone: CancellationToken::new(),
            ending: CancellationToken::new(),
            counts,
            terms,
        });
        let gone = connection.gone.clone();
        tokio::spawn(write(
            LineWriter::new(stdin, LONGEST_LINE),
            to_write,
            connection.terms.write_stall,
            handle,
            gone,
        ));
        let reader = tokio::spawn(read(Arc::clone(&connection), stdout));
        (connection, reader)
    }

    /// Asks and waits for the answer.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        params: &Value,
        within: Duration,
    ) -> Result<Answer, BridgeError> {
        let id = self.next_id();
        let lost = |lost| BridgeError::Lost { method, lost };
        let answer = self.hub.expect(&id).map_err(lost)?;
        let _forget = Forget { hub: &self.hub, id: &id };
        let answered = async {
            self.say(method, &id, params).await?;
            answer.await.map_err(|_| lost(self.lost()))
        };
        match timeout(within, answered).await {
            Ok(answer) => refused(method, answer?),
            Err(_) => Err(BridgeError::Late { method, after: within }),
        }
    }

    /// Tells something that is only answered if it is wrong. A ping behind it shows that it was heard.
    pub(super) async fn tell(
        &self,
        method: &'static str,
        params: &Value,
        within: Duration,
    ) -> Result<(), BridgeError> {
        let (id, fence) = (self.next_id(), self.next_id());
        let lost = |lost| BridgeError::Lost { method, lost };
        let mut answer = self.hub.expect(&id).map_err(lost)?;
        let pong = self.hub.expect(&fence).map_err(lost)?;
        let _forget = (Forget { hub: &self.hub, id: &id }, Forget { hub: &self.hub, id: &fence });
        let heard = async {
            self.say(method, &id, params).await?;
            self.say("ping", &fence, &json!({})).await?;
            tokio::select! {
                biased;
                answer = &mut answer => answer.map(Some).map_err(|_| lost(self.lost())),
                pong = pong => pong.map(|_| None).map_err(|_| lost(self.lost())),
            }
        };
        match timeout(within, heard).await {
            Ok(Ok(Some(answer))) => refused(method, answer).map(drop),
            // The answer may have come with the pong.
            Ok(Ok(None)) => answer.try_recv().map_or(Ok(()), |answer| refused(method, answer).map(drop)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(BridgeError::Late { method, after: within }),
        }
    }

    /// Sends what nobody waits for the answer of.
    pub(super) async fn post(&self, method: &'static str, params: &Value) -> Result<(), BridgeError> {
        let id = self.next_id();
        drop(self.hub.expect(&id).map_err(|lost| BridgeError::Lost { method, lost })?);
        self.say(method, &id, params).await
    }

    /// Opens a stream: makes its place, so that nothing of it can be missed, and listens for silence.
    pub(super) fn open_stream(
        self: &Arc<Self>,
        send: &SendMessage,
        turn: TurnGuard,
    ) -> Result<(String, Arc<Queue>), BridgeError> {
        let id = self.next_id();
        let whose = (send.provider.clone(), send.session_id.clone());
        let queue = self.hub.open(&id, whose, turn);
        let queue = queue.map_err(|lost| BridgeError::Lost { method: "sendMessage", lost })?;
        let watch = tokio::spawn(Arc::clone(self).listen(id.clone(), Arc::clone(&queue)));
        self.hub.watched(&id, watch.abort_handle());
        Ok((id, queue))
    }

    /// Writes a request.
    pub(super) async fn say(
        &self,
        method: &'static str,
        id: &str,
        params: &Value,
    ) -> Result<(), BridgeError> {
        let line = request_line(id, method, params);
        if line.len() > LONGEST_LINE {
            return Err(BridgeError::TooLong { method, length: line.len(), limit: LONGEST_LINE });
        }
        self.lines.send(line).await.map_err(|_| BridgeError::Lost { method, lost: self.lost() })
    }

    /// Stops a turn that the host has given up, without anybody waiting for that.
    pub(super) fn stop_unattended(self: &Arc<Self>, turn: ToStop) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let connection = Arc::clone(self);
        runtime.spawn(async move { connection.stop_turn(turn).await });
    }

    /// Stops a turn, and says whether that was answered. Its session is free again when the order of the lines is certain, or
    /// when there is no hope of it.
    async fn stop_turn(&self, turn: ToStop) -> Answered {
        let id = self.next_id();
        let Ok(stopped) = self.hub.expect(&id) else { return Answered::Yes };
        let _forget = Forget { hub: &self.hub, id: &id };
        let told = timeout(TELL, self.say("stopSession", &id, &turn.params())).await;
        drop(turn);
        match told {
            Ok(Ok(())) => match timeout(self.terms.waits.stop, stopped).await {
                Ok(_) => Answered::Yes,
                Err(_) => Answered::No,
            },
            // A sidecar that is gone is not to be blamed for its silence.
            Ok(Err(_)) => Answered::Yes,
            Err(_) => Answered::No,
        }
    }

    /// It is gone, and everything that it said was heard: what is open ends.
    pub(super) fn lose(&self, lost: &Lost) {
        self.hub.lose(lost);
        self.gone.cancel();
    }

    /// Whether nothing can come from it any more. It may still be unknown why.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_cancelled() || self.gone.is_cancelled()
    }

    /// Waits until everybody was told that it is gone.
    pub(super) async fn ended(&self) {
        self.gone.cancelled().await;
    }

    /// Why it is gone, or at least that.
    fn lost(&self) -> Lost {
        self.hub.lost().unwrap_or_else(|| Lost { what: "the sidecar is gone".to_owned(), report: None })
    }

    fn next_id(&self) -> String {
        format!("r{}", self.counts.next_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Waits until nothing has come on a stream for too long.
    async fn listen(self: Arc<Self>, id: String, queue: Arc<Queue>) {
        let silence = self.terms.silence;
        loop {
            let due = queue.last_heard() + silence;
            sleep_until(due).await;
            if queue.last_heard() + silence <= due {
                break;
            }
        }
        // Ending the stream ends this task.
        tokio::spawn(self.silent(id, silence));
    }

    /// Ends a silent stream, and its sidecar if that does not say anything any more either.
    async fn silent(self: Arc<Self>, id: String, after: Duration) {
        let Some(turn) = self.hub.end(&id, StreamEnd::Silent { after }) else { return };
        let heard = self.counts.lines.load(Ordering::Relaxed);
        let answered = self.stop_turn(turn).await;
        if answered == Answered::No && self.counts.lines.load(Ordering::Relaxed) == heard {
            let detail = format!("nothing was heard for {after:?}, and `stopSession` was not answered");
            self.handle.fault(Fault::Unhealthy, detail).await;
        }
    }

    fn hear(self: &Arc<Self>, line: &str) {
        self.counts.lines.fetch_add(1, Ordering::Relaxed);
        let Ok(event) = Event::read(line) else { return self.noise(line.as_bytes()) };
        let Some(id) = &event.id else { return self.hear_for_nobody(&event) };
        match self.hub.deliver(id, &event) {
            Delivered::Taken => {}
            Delivered::Stray => self.stray(&event.kind),
            Delivered::Overflow(turn) => self.stop_unattended(turn),
        }
    }

    fn hear_for_nobody(self: &Arc<Self>, event: &Event<'_>) {
        match event.said() {
            Ok(Said::HostRequest { callback_id, method, params }) if !callback_id.is_empty() => {
                self.answer(HostCall { callback_id, method, params });
            }
            Ok(Said::Error { message, .. }) => {
                self.counts.complaints.fetch_add(1, Ordering::Relaxed);
                self.reverse.noticed(Notice::Complaint { message: &message });
            }
            Ok(_) | Err(_) => self.stray(&event.kind),
        }
    }

    fn noise(&self, bytes: &[u8]) {
        self.counts.noise.fetch_add(1, Ordering::Relaxed);
        self.reverse.noticed(Notice::Noise { head: Head::of(bytes) });
    }

    fn stray(&self, kind: &str) {
        self.counts.strays.fetch_add(1, Ordering::Relaxed);
        self.reverse.noticed(Notice::Stray { kind });
    }

    /// Answers a question of the sidecar, side by side with everything else.
    fn answer(self: &Arc<Self>, call: HostCall) {
        let connection = Arc::clone(self);
        match self.answering.begin(call) {
            Ok(answer) => drop(tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = connection.gone.cancelled() => {}
                    answer = answer => drop(connection.lines.send(answer).await),
                }
            })),
            // A sidecar that asks more than it may and does not read is not waited for.
            Err(refusal) => drop(self.lines.try_send(refusal)),
        }
    }
}

/// Whether a stop was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Yes,
    No,
}

/// Makes sure that a request that is given up has no place.
struct Forget<'a> {
    hub: &'a Hub,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.hub.forget(self.id);
    }
}

/// Reads until the end of the stream. Nothing here waits for anything else.
async fn read(connection: Arc<Connection>, stdout: Output) {
    let mut lines = LineReader::new(stdout, dialect::HELMOR);
    loop {
        match lines.next().await {
            Ok(Some(Item::Line(line))) => match line.text() {
                Ok(text) => connection.hear(text),
                // The policy reports those as defective.
                Err(_) => connection.noise(line.bytes()),
            },
            Ok(Some(Item::TooLong(long))) => connection.noise(long.head),
            Ok(Some(Item::Defective(defective))) => connection.noise(defective.bytes),
            Ok(None) | Err(_) => return connection.ending.cancel(),
        }
    }
}

/// Writes until nobody has anything to say any more, or the sidecar does not listen.
async fn write(
    mut output: LineWriter<pipe::Sender>,
    mut lines: mpsc::Receiver<String>,
    stall: Duration,
    handle: SessionHandle,
    gone: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            () = gone.cancelled() => return,
            line = lines.recv() => line,
        };
        let Some(line) = line else { return };
        match timeout(stall, output.write(line.as_bytes())).await {
            Ok(Ok(())) => {}
            // The reader sees the end too, and the supervisor how.
            Ok(Err(_)) => return,
            Err(_) => {
                handle.fault(Fault::WriteStall, format!("it did not read for {stall:?}")).await;
                return;
            }
        }
    }
}

fn refused(method: &'static str, answer: Answer) -> Result<Answer, BridgeError> {
    match answer.kind.as_str() {
        "error" => Err(BridgeError::Refused { method, refusal: refusal(&answer.line) }),
        _ => Ok(answer),
    }
}
