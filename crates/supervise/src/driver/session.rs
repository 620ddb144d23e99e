//! What a dialect gets when a process is there: the pipes, the requests to serve, and a handle to tell what it finds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use super::clock::Clock;
use crate::logs::{LogLine, Tails};
use crate::sandbox::Enforced;
use crate::state::{Fault, Happening, Incarnation, Moment, PingSeq};
use crate::tree::Pid;

/// The conversation with one process. A restarted child gives a new session.
#[derive(Debug)]
pub struct Session {
    /// Which process of the child this is.
    pub incarnation: Incarnation,
    /// Its process id.
    pub pid: Pid,
    /// What its box is really made of.
    pub enforced: Enforced,
    /// Its standard input, if the spec gives that to the session. Dropping it is end-of-file for the child.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output, if the spec gives that to the session.
    pub stdout: Option<Output>,
    /// What the supervisor wants from whoever speaks with the child. Ignoring it costs the child its polite goodbye and its
    /// pongs, nothing else.
    pub requests: mpsc::Receiver<Request>,
    pub(super) opened: oneshot::Receiver<Opened>,
    pub(super) handle: SessionHandle,
}

/// What the supervisor wants from whoever speaks with the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send a ping; answer with [`SessionHandle::pong`] when the child does.
    Ping(PingSeq),
    /// Ask the child to leave. SIGTERM follows when the time is over.
    Leave {
        /// How long the child has.
        within: Duration,
    },
}

/// What opened the ready gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It has none.
    OnSpawn,
    /// This line, without its line ending.
    Line(Vec<u8>),
    /// The session said so.
    Attached,
}

impl Session {
    /// Waits until the process is ready and says what made it so; `None` when it ended before.
    pub async fn ready(&mut self) -> Option<Opened> {
        (&mut self.opened).await.ok()
    }

    /// A handle for tasks that share the conversation.
    pub fn handle(&self) -> SessionHandle {
        self.handle.clone()
    }
}

/// Tells the supervisor what the conversation shows. Everything said about a process that has been replaced is ignored.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    incarnation: Incarnation,
    said: mpsc::Sender<Said>,
    last_beat: Arc<LastBeat>,
    frames: Frames,
}

/// Where the last frames of a conversation are kept for the exit report.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    pub(super) tails: Arc<Tails>,
    /// A longer frame is cut.
    pub(super) max_bytes: usize,
}

/// One thing that a session said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) incarnation: Incarnation,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Attached,
    Happening(Happening),
    Fault(Fault, String),
}

impl SessionHandle {
    pub(super) fn new(
        incarnation: Incarnation,
        said: mpsc::Sender<Said>,
        last_beat: Arc<LastBeat>,
        frames: Frames,
    ) -> Self {
        Self { incarnation, said, last_beat, frames }
    }

    /// The process this handle speaks of.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The child has introduced itself: opens [`Gate::Attach`](crate::ready::Gate::Attach).
    pub async fn attached(&self) {
        self.say(What::Attached).await;
    }

    /// The child answered this ping.
    pub async fn pong(&self, seq: PingSeq) {
        self.say(What::Happening(Happening::Pong(seq))).await;
    }

    /// The child gave a sign of life. Cheap enough to be called for every message: it stores a time and wakes nobody.
    pub fn beat(&self) {
        self.last_beat.note();
    }

    /// Keeps a frame that the child sent, so that the exit report can show its last words. As bounded as the log is.
    pub fn keep_frame(&self, frame: &[u8]) {
        let kept = &frame[..frame.len().min(self.frames.max_bytes)];
        let text = String::from_utf8_lossy(kept).into_owned();
        let cut_bytes = (frame.len() - kept.len()) as u64;
        self.frames.tails.keep_for(self.incarnation, LogLine { text, cut_bytes });
    }

    /// A stream of the child began; silence counts from here.
    pub async fn stream_began(&self) {
        self.say(What::Happening(Happening::StreamBegan)).await;
    }

    /// The last stream of the child ended; it may be silent.
    pub async fn stream_ended(&self) {
        self.say(What::Happening(Happening::StreamEnded)).await;
    }

    /// The child is broken. `detail` goes into the exit report: the offending line, the limit that was hit.
    pub async fn fault(&self, fault: Fault, detail: impl Into<String>) {
        self.say(What::Fault(fault, detail.into())).await;
    }

    /// A [`Request::Leave`] cannot be served; SIGTERM follows at once.
    pub async fn cannot_ask(&self) {
        self.say(What::Happening(Happening::AskRefused)).await;
    }

    async fn say(&self, what: What) {
        let said = Said { incarnation: self.incarnation, what };
        // Nobody listens once the child has exited for good, and then there is nothing to tell.
        let _ = self.said.send(said).await;
    }
}

/// The time of the last sign of life, shared so that a chatty child does not flood its driver.
#[derive(Debug)]
pub(super) struct LastBeat {
    clock: Clock,
    nanos: AtomicI64,
}

impl LastBeat {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, nanos: AtomicI64::new(i64::MIN) }
    }

    pub(super) fn get(&self) -> Option<Moment> {
        let nanos = self.nanos.load(Ordering::Relaxed);
        (nanos != i64::MIN).then(|| Moment::from_nanos(nanos))
    }

    fn note(&self) {
        self.nanos.fetch_max(self.clock.now().as_nanos(), Ordering::Relaxed);
    }
}

/// A child's standard output: first what was read beyond the ready line, then the pipe.
#[derive(Debug)]
pub struct Output {
    unread: Vec<u8>,
    read: usize,
    pipe: pipe::Receiver,
}

impl Output {
    pub(super) fn new(unread: Vec<u8>, pipe: pipe::Receiver) -> Self {
        Self { unread, read: 0, pipe }
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.unread[self.read..];
        if rest.is_empty() {
            return Pin::new(&mut self.pipe).poll_read(context, buffer);
        }
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..taken]);
        self.read += taken;
        if self.read == self.unread.len() {
            self.unread = Vec::new();
            self.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}
