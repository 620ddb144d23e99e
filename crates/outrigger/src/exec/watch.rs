//! What the program says and what we say to it: output passed on, heartbeats recognised, input forwarded.

use std::io::Read;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Request, Session, SessionHandle};
use outrigger_supervise::sandbox::Contained;
use outrigger_supervise::spec::{Spoken, Stream};
use outrigger_supervise::state::{Fault, Incarnation, PingSeq};
use outrigger_wire::line::{Item, Splitter, dialect};
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::forward::Output;
use crate::args::{ExecArgs, HeartbeatArg, StdinArg};
use crate::say::{self, Format};

/// The longest line that is shown as one JSON object, or searched for a heartbeat.
const MAX_LINE: usize = 64 << 10;
/// One read of our own standard input.
const CHUNK: usize = 64 << 10;

/// Passes on what the program says, over all its restarts.
pub(super) struct Watcher {
    output: Output,
    heartbeat: HeartbeatArg,
    stdout: Lines,
    stderr: Lines,
    /// The process that spoke last.
    latest: Incarnation,
    input: Input,
    stall: Option<Duration>,
    /// Why trees cannot be written down, if that is so.
    unwritten: Option<String>,
}

impl Watcher {
    pub(super) fn new(args: &ExecArgs, output: Output, unwritten: Option<String>) -> Self {
        Self {
            output,
            heartbeat: args.heartbeat.clone(),
            stdout: Lines::new(),
            stderr: Lines::new(),
            latest: Incarnation(0),
            input: if args.stdin == StdinArg::Forward { Input::forwarded() } else { Input::None },
            stall: args.stall,
            unwritten,
        }
    }

    /// Ends when the child has ended for good and everything it said is passed on.
    pub(super) async fn watch(mut self, child: Child, mut spoken: mpsc::Receiver<Spoken>) {
        let input = std::mem::replace(&mut self.input, Input::None);
        let (handles, mut current) = mpsc::channel(1);
        let talking = tokio::spawn(talk(child, input, self.stall, handles));
        let mut handle: Option<SessionHandle> = None;
        loop {
            tokio::select! {
                biased;
                Some((next, contained)) = current.recv() => {
                    handle = Some(next);
                    self.warn(&contained).await;
                }
                heard = spoken.recv() => match heard {
                    Some(heard) => self.hear(heard, handle.as_ref()).await,
                    None => break,
                },
            }
        }
        self.finish().await;
        // It has nobody to talk to any more; it may sit in a write or wait for input.
        talking.abort();
    }

    /// A tree that only a sweep could find after a crash, and nowhere to write it down: said once.
    async fn warn(&mut self, contained: &Contained) {
        let Contained::Subreaper { .. } = contained else { return };
        let Some(problem) = self.unwritten.take() else { return };
        let text =
            format!("{problem}; if outrigger and its keeper are killed at once, orphans will not be found");
        match self.output.format() {
            Format::Text => self.output.note(&format!("{}: {text}\n", say::label())).await,
            Format::Json => self.output.events([Warning { event: "warning", message: &text }]).await,
        }
    }

    async fn hear(&mut self, spoken: Spoken, handle: Option<&SessionHandle>) {
        let Spoken { incarnation, stream, bytes } = spoken;
        if incarnation != self.latest {
            // What the last process left unfinished is not the beginning of what this one says.
            self.finish().await;
            self.latest = incarnation;
        }
        if self.heartbeat != HeartbeatArg::None
            && let Some(handle) = handle.filter(|handle| handle.incarnation() == incarnation)
        {
            self.listen_for_life(stream, &bytes, handle).await;
        }
        match (self.output.format(), stream) {
            (Format::Text, Stream::Stdout) => self.output.stdout(bytes).await,
            (Format::Text, Stream::Stderr) => self.output.stderr(bytes).await,
            (Format::Json, stream) => self.show_lines(incarnation, stream, &bytes).await,
        }
    }

    async fn listen_for_life(&mut self, stream: Stream, bytes: &[u8], handle: &SessionHandle) {
        if let HeartbeatArg::Silence(_) = self.heartbeat {
            handle.beat();
            return;
        }
        if stream != Stream::Stdout {
            return;
        }
        for line in self.stdout.pulse.push(bytes) {
            match &self.heartbeat {
                HeartbeatArg::Beat { text, .. } if line.contains(text.as_str()) => handle.beat(),
                HeartbeatArg::Ping { .. } => {
                    if let Some(seq) = line.strip_prefix("pong ").and_then(|seq| seq.trim().parse().ok()) {
                        handle.pong(PingSeq(seq)).await;
                    }
                }
                HeartbeatArg::Beat { .. } | HeartbeatArg::Silence(_) | HeartbeatArg::None => {}
            }
        }
    }

    async fn show_lines(&mut self, incarnation: Incarnation, stream: Stream, bytes: &[u8]) {
        let lines = match stream {
            Stream::Stdout => self.stdout.shown.push(bytes),
            Stream::Stderr => self.stderr.shown.push(bytes),
        };
        self.show(incarnation, stream, &lines).await;
    }

    async fn show(&self, incarnation: Incarnation, stream: Stream, lines: &[String]) {
        self.output.events(lines.iter().map(|line| Line { event: stream.code(), incarnation, line })).await;
    }

    async fn finish(&mut self) {
        if self.output.format() == Format::Text {
            return;
        }
        for (stream, rest) in
            [(Stream::Stdout, self.stdout.shown.finish()), (Stream::Stderr, self.stderr.shown.finish())]
        {
            self.show(self.latest, stream, &rest).await;
        }
    }
}

/// Something of our own that a program should know.
#[derive(Serialize)]
struct Warning<'a> {
    event: &'static str,
    message: &'a str,
}

/// A line of the program, as programs see it.
#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    incarnation: Incarnation,
    line: &'a str,
}

/// The lines of one stream, for those who look at lines.
struct Lines {
    shown: Cutter,
    pulse: Cutter,
}

impl Lines {
    fn new() -> Self {
        Self { shown: Cutter::new(), pulse: Cutter::new() }
    }
}

/// Bytes to text lines, cut at a length that a person can look at.
struct Cutter(Splitter);

impl Cutter {
    fn new() -> Self {
        Self(Splitter::new(dialect::logs(MAX_LINE)))
    }

    fn push(&mut self, mut bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        // The policy for logs has an answer for every line, so no error ends this early.
        while let Ok(decoded) = self.0.decode(bytes) {
            let Some(item) = decoded.item else { break };
            lines.extend(text(&item));
            bytes = &bytes[decoded.consumed..];
        }
        lines
    }

    fn finish(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(Some(item)) = self.0.finish() {
            lines.extend(text(&item));
        }
        lines
    }
}

fn text(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Line(line) => Some(line.text_lossy().into_owned()),
        Item::TooLong(_) | Item::Defective(_) => None,
    }
}

/// Our own standard input, if it is passed on.
enum Input {
    None,
    Forwarded(mpsc::Receiver<Vec<u8>>),
}

impl Input {
    /// Reads standard input in a thread of its own, a chunk ahead at most.
    fn forwarded() -> Self {
        let (chunks, receiver) = mpsc::channel(1);
        let read = move || {
            let mut stdin = std::io::stdin().lock();
            let mut chunk = vec![0; CHUNK];
            while let Ok(length @ 1..) = stdin.read(&mut chunk) {
                if chunks.blocking_send(chunk[..length].to_vec()).is_err() {
                    break;
                }
            }
        };
        // Without a thread the input is empty, because the sender is gone.
        let _ = std::thread::Builder::new().name("stdin".to_owned()).spawn(read);
        Self::Forwarded(receiver)
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::None => std::future::pending().await,
            Self::Forwarded(chunks) => chunks.recv().await,
        }
    }
}

/// Serves one session after the other: input, pings, and the request to leave.
async fn talk(
    child: Child,
    mut input: Input,
    stall: Option<Duration>,
    handles: mpsc::Sender<(SessionHandle, Contained)>,
) {
    // A weak hold would do, but the watcher ends this task when the child has ended.
    while let Some(session) = child.next_session().await {
        if handles.send((session.handle(), session.enforced.containment.clone())).await.is_err() {
            return;
        }
        converse(session, &mut input, stall).await;
    }
}

/// Ends when the process takes no more input and wants nothing from us.
async fn converse(mut session: Session, input: &mut Input, stall: Option<Duration>) {
    let handle = session.handle();
    let mut stdin = session.stdin.take();
    loop {
        tokio::select! {
            request = session.requests.recv() => match request {
                Some(Request::Ping(PingSeq(seq))) => {
                    write(&mut stdin, format!("ping {seq}\n").as_bytes(), stall, &handle).await;
                }
                // The end of its input is all that every program understands.
                Some(Request::Leave { within: _ }) => stdin = None,
                None => return,
            },
            chunk = input.next(), if stdin.is_some() => match chunk {
                Some(chunk) => write(&mut stdin, &chunk, stall, &handle).await,
                None => {
                    stdin = None;
                    *input = Input::None;
                }
            },
        }
    }
}

async fn write(
    stdin: &mut Option<pipe::Sender>,
    bytes: &[u8],
    stall: Option<Duration>,
    handle: &SessionHandle,
) {
    let Some(pipe) = stdin else { return };
    // Each write that the program takes shows that it reads; only one that it does not take at all is a stall.
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = match stall {
            None => pipe.write(rest).await,
            Some(limit) => match tokio::time::timeout(limit, pipe.write(rest)).await {
                Ok(written) => written,
                Err(_) => {
                    handle.fault(Fault::WriteStall, format!("it read nothing for {limit:?}")).await;
                    *stdin = None;
                    return;
                }
            },
        };
        match written {
            Ok(length @ 1..) => rest = &rest[length..],
            // It has closed its input; what is left is not for it.
            Ok(0) | Err(_) => {
                *stdin = None;
                return;
            }
        }
    }
}
