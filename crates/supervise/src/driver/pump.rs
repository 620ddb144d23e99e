//! The tasks that read the streams of one process, and find the line that opens its ready gate.

use std::io;

use outrigger_wire::line::{
    Blank, Bom, CarriageReturn, Fault, Head, Item, LastLine, LineError, LineLimit, LinePolicy, Overlong,
    Splitter,
};
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::session::Output;
use crate::logs::{LineFeed, LogLine, Stream, Tails};
use crate::ready::{LineMatch, StdoutGate, Verdict};
use crate::spec::{Spoken, Tee};

/// One read. On the stack and only while bytes are there: a quiet child holds no buffer.
const CHUNK: usize = 32 * 1024;

/// Reads before other tasks get their turn.
const TURN: usize = 16;

/// What a pump has to say when it ends or finds something.
#[derive(Debug)]
pub(super) enum Pumped {
    /// The stream has ended.
    Ended,
    /// The gate opened with this line; the stream goes on in `then`.
    Opened { line: Vec<u8>, then: Then },
    /// This line was not the one that had to come first.
    Refused { detail: String, then: Then },
    /// Standard output ended before the gate opened.
    ClosedBeforeReady,
}

/// What becomes of a stream whose gate has been decided.
#[derive(Debug)]
pub(super) enum Then {
    /// It goes to the session.
    Session(Output),
    /// It goes on into the log.
    Log(Box<LogPump>),
}

/// When the process is reaped its streams should end; a descriptor that it passed to a stranger keeps them open. From the
/// last call on a pump takes what is there and waits for no more.
#[derive(Debug)]
pub(super) struct LastCall(watch::Sender<Called>);

/// What the pumps have been told.
#[derive(Clone, Copy, Debug)]
struct Called {
    /// The process is reaped: after this moment no more is waited for. What was read is still passed on.
    until: Option<Instant>,
    tee: Passing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// Every byte.
    On,
    /// The owner wants the child gone this instant; nobody waits for a reader any more.
    Cut,
}

impl LastCall {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Called { until: None, tee: Passing::On }))
    }

    pub(super) fn at(&self, when: Instant) {
        self.0.send_modify(|called| called.until = Some(when));
    }

    pub(super) fn cut(&self) {
        self.0.send_modify(|called| called.tee = Passing::Cut);
    }

    pub(super) fn listen(&self) -> Closing {
        Closing(self.0.subscribe())
    }
}

/// The pump's ear for the last call.
#[derive(Clone, Debug)]
pub(super) struct Closing(watch::Receiver<Called>);

impl Closing {
    /// Whether the time is over. Only a stranger can still be writing then.
    fn is_over(&self) -> bool {
        self.0.borrow().until.is_some_and(|until| until <= Instant::now())
    }

    /// Waits for more to read; says whether it is worth trying.
    async fn more(&mut self, pipe: &pipe::Receiver) -> bool {
        let last_call = async {
            let until =
                self.0.wait_for(|called| called.until.is_some()).await.ok().and_then(|called| called.until);
            // Without one the driver is gone, and the process with it.
            if let Some(until) = until {
                sleep_until(until).await;
            }
        };
        tokio::select! {
            biased;
            readable = pipe.readable() => readable.is_ok(),
            () = last_call => false,
        }
    }

    /// Waits until nobody wants what was read.
    async fn cut(&mut self) {
        // A driver that is gone wants nothing either.
        let _ = self.0.wait_for(|called| called.tee == Passing::Cut).await;
    }
}

/// Reads a stream into the log.
#[derive(Debug)]
pub(super) struct LogPump {
    pipe: pipe::Receiver,
    feed: LineFeed,
    gate: Option<LogGate>,
    closing: Closing,
    tee: Option<Tee>,
    /// What was read and not yet copied; at most one turn's worth.
    copies: Vec<Spoken>,
}

/// A gate on a stream that goes to the log.
#[derive(Clone, Debug)]
pub(super) enum LogGate {
    /// Any line may open it.
    Stderr(LineMatch),
    /// As the gate says.
    Stdout(StdoutGate),
}

impl LogGate {
    fn judge(&self, line: &[u8]) -> Verdict {
        match self {
            Self::Stderr(wanted) if wanted.matches(line) => Verdict::Opens,
            Self::Stderr(_) => Verdict::NotYet,
            // Blank lines are never minded, as on a stream that goes to the session.
            Self::Stdout(_) if line.trim_ascii().is_empty() => Verdict::NotYet,
            Self::Stdout(gate) => gate.judge(line),
        }
    }
}

impl LogPump {
    pub(super) fn new(
        pipe: pipe::Receiver,
        feed: LineFeed,
        gate: Option<LogGate>,
        tee: Option<Tee>,
        closing: Closing,
    ) -> Self {
        Self { pipe, feed, gate, closing, tee, copies: Vec::new() }
    }

    /// Reads until the gate is decided, or to the end.
    pub(super) async fn run(mut self) -> Pumped {
        loop {
            let (progress, decided) = self.turn();
            self.copy().await;
            if let Some(decided) = decided {
                self.gate = None;
                let then = Then::Log(Box::new(self));
                return match decided {
                    Decided::Opened(line) => Pumped::Opened { line, then },
                    Decided::Refused(detail) => Pumped::Refused { detail, then },
                };
            }
            match progress {
                Progress::More if !self.closing.is_over() => tokio::task::yield_now().await,
                Progress::Wait if self.closing.more(&self.pipe).await => {}
                Progress::More | Progress::Wait | Progress::End => {
                    return match self.gate {
                        Some(LogGate::Stdout(_)) => Pumped::ClosedBeforeReady,
                        Some(LogGate::Stderr(_)) | None => Pumped::Ended,
                    };
                }
            }
        }
    }

    /// Waits until the tee has taken what was read.
    async fn copy(&mut self) {
        let Some(Tee(to)) = &self.tee else { return };
        for copy in self.copies.drain(..) {
            let taken = tokio::select! {
                biased;
                () = self.closing.cut() => false,
                sent = to.send(copy) => sent.is_ok(),
            };
            if !taken {
                self.tee = None;
                break;
            }
        }
        self.copies = Vec::new();
    }

    fn turn(&mut self) -> (Progress, Option<Decided>) {
        let mut decided = None;
        let Self { pipe, feed, gate, tee, copies, closing: _ } = self;
        let mut see = |line: &outrigger_wire::line::Line<'_>| {
            let Some(gate) = gate.as_ref().filter(|_| decided.is_none()) else { return };
            match gate.judge(line.bytes()) {
                Verdict::Opens => decided = Some(Decided::Opened(line.bytes().to_vec())),
                Verdict::NotYet => {}
                Verdict::Refused => decided = Some(Decided::refused(line.bytes())),
            }
        };
        let progress = read_turn(pipe, |bytes| {
            if tee.is_some() {
                copies.push(feed.spoken(bytes));
            }
            feed.push(bytes, &mut see);
            Flow::GoOn
        });
        if progress == Progress::End {
            feed.finish(&mut see);
        }
        (progress, decided)
    }
}

/// Reads standard output up to the line that opens the gate and no further; what was read beyond goes to the session.
pub(super) async fn gate(
    pipe: pipe::Receiver,
    gate: StdoutGate,
    tails: std::sync::Arc<Tails>,
    mut closing: Closing,
) -> Pumped {
    let mut splitter = Splitter::new(gate_policy(gate.max_line_bytes));
    loop {
        let mut found = None;
        let progress = read_turn(&pipe, |bytes| {
            found = search(&mut splitter, bytes, &gate, &tails);
            if found.is_some() { Flow::Stop } else { Flow::GoOn }
        });
        if let Some((decided, unread)) = found {
            let then = Then::Session(Output::new(unread, pipe));
            return match decided {
                Decided::Opened(line) => Pumped::Opened { line, then },
                Decided::Refused(detail) => Pumped::Refused { detail, then },
            };
        }
        match progress {
            Progress::More if !closing.is_over() => tokio::task::yield_now().await,
            Progress::Wait if closing.more(&pipe).await => {}
            Progress::More | Progress::Wait | Progress::End => return Pumped::ClosedBeforeReady,
        }
    }
}

/// Looks for the deciding line in `bytes`; also returns what comes after it.
fn search(
    splitter: &mut Splitter,
    mut bytes: &[u8],
    gate: &StdoutGate,
    tails: &Tails,
) -> Option<(Decided, Vec<u8>)> {
    loop {
        let decoded = match splitter.decode(bytes) {
            Ok(decoded) => decoded,
            Err(error) => return Some((Decided::Refused(too_long(&error)), Vec::new())),
        };
        let consumed = decoded.consumed;
        let line = match decoded.item {
            Some(Item::Line(line)) => line,
            // The policy reports nothing but lines.
            Some(Item::TooLong(_) | Item::Defective(_)) => return None,
            None if consumed == bytes.len() => return None,
            // A blank line was skipped and there is more behind it.
            None => {
                bytes = &bytes[consumed..];
                continue;
            }
        };
        let decided = match gate.judge(line.bytes()) {
            Verdict::Opens => Some(Decided::Opened(line.bytes().to_vec())),
            Verdict::Refused => Some(Decided::refused(line.bytes())),
            Verdict::NotYet => None,
        };
        if !matches!(decided, Some(Decided::Opened(_))) {
            let kept = LogLine { text: line.text_lossy().into_owned(), cut_bytes: 0 };
            tails.lock(Stream::Stdout).push(kept);
        }
        bytes = &bytes[consumed..];
        if let Some(decided) = decided {
            return Some((decided, bytes.to_vec()));
        }
    }
}

#[derive(Debug)]
enum Decided {
    Opened(Vec<u8>),
    Refused(String),
}

impl Decided {
    fn refused(line: &[u8]) -> Self {
        Self::Refused(format!("its first line was {}", Head::of(line)))
    }
}

fn too_long(error: &LineError) -> String {
    format!("while it was not ready: {error}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// There may be more at once.
    More,
    /// There is nothing at the moment.
    Wait,
    /// There never will be more.
    End,
}

enum Flow {
    GoOn,
    Stop,
}

fn read_turn(pipe: &pipe::Receiver, mut take: impl FnMut(&[u8]) -> Flow) -> Progress {
    let mut chunk = [0; CHUNK];
    for _ in 0..TURN {
        match pipe.try_read(&mut chunk) {
            Ok(0) => return Progress::End,
            Ok(length) => match take(&chunk[..length]) {
                Flow::GoOn => {}
                Flow::Stop => return Progress::More,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Wait,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A pipe that cannot be read is a pipe that has ended.
            Err(_) => return Progress::End,
        }
    }
    Progress::More
}

fn gate_policy(max_line_bytes: usize) -> LinePolicy {
    LinePolicy {
        limit: LineLimit::before_newline(max_line_bytes),
        overlong: Overlong::Fatal,
        utf8: Fault::Pass,
        nul: Fault::Pass,
        bom: Bom::Pass,
        carriage_return: CarriageReturn::Strip,
        blank: Blank::Skip,
        last_line: LastLine::Accept,
    }
}
