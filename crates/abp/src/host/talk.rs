//! What a control plane makes of one run: of every line, every tick of a clock and every command. Starts and awaits nothing, so
//! that the loop around it stays short.

use std::io;
use std::time::Duration;

use outrigger_supervise::state::Fault;
use outrigger_wire::line::{Head, Item};
use tokio::time::Instant;

use super::control::Command;
use super::ended::Observed;
use super::failure::{FailureKind, Fatal};
use super::hear::{Heard, hear};
use super::outbox::{NotTaken, Outbox};
use super::process::span;
use super::terms::{Foreign, Noise, Pulse, Terms};
use super::timers::{Due, Timers};
use super::warning::{Warning, Warnings};
use super::watch::{Watcher, Wish};
use crate::protocol::{AgentEvent, Answer, Ask, Envelope, Feature, ReceivedReceipt, RunId, Taking};

/// A child that closed its input before the run was sent is probably leaving; it gets this long to say why.
const FAREWELL: Duration = Duration::from_secs(2);

/// A watcher that was woken, had nothing to answer and still names a time that has come is asked again after this long.
const DOZE: Duration = Duration::from_millis(10);

/// One run, seen from the control plane.
pub(super) struct Talk<'a> {
    pub(super) outbox: Outbox,
    pub(super) timers: Timers,
    pub(super) warnings: Warnings,
    pub(super) observed: Observed,
    pub(super) cancelled: Option<Cancelled>,
    pub(super) stage: Stage,
    id: &'a RunId,
    previous: Option<&'a RunId>,
    terms: &'a Terms,
    takes: &'a [Taking],
    watcher: &'a mut dyn Watcher,
    /// Not to be woken before.
    dozes: Option<Instant>,
}

/// How far the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The run is still being sent.
    Sending,
    /// It could not be sent.
    Unsent,
    /// The child has it.
    Running,
    /// The supervisor takes the child down.
    Stopping,
}

/// Why a run was cancelled.
#[derive(Clone, Debug)]
pub(super) struct Cancelled {
    /// [`FailureKind::Cancelled`] or [`FailureKind::Timeout`].
    pub(super) kind: FailureKind,
    /// What to say about it.
    pub(super) what: String,
}

/// How a conversation ends.
#[derive(Debug)]
pub(super) enum End {
    /// With a receipt.
    Final(Box<ReceivedReceipt<'static>>),
    /// The child gives up.
    Fatal(Fatal),
    /// The child is given up.
    Broken { kind: FailureKind, fault: Fault, what: String },
    /// It says nothing any more.
    Closed { torn: Option<Head> },
    /// Somebody wants it dead.
    Kill { why: String },
}

impl End {
    /// A breach of the protocol.
    pub(super) fn violation(what: String) -> Self {
        Self::Broken { kind: FailureKind::Protocol, fault: Fault::ProtocolViolation, what }
    }

    /// A line that cannot be read.
    pub(super) fn bad_line((why, head): (String, Head)) -> Self {
        Self::violation(format!("broke the protocol: it {why}: {head}"))
    }
}

/// What the clocks call for.
#[derive(Debug)]
pub(super) enum Deed {
    /// The conversation ends.
    End(End),
    /// The child is to be stopped by its supervisor, while it is still listened to.
    Stop,
}

impl<'a> Talk<'a> {
    /// Begins: `run` waits to be written.
    pub(super) fn begin(
        id: &'a RunId,
        previous: Option<&'a RunId>,
        (terms, takes): (&'a Terms, &'a [Taking]),
        mut outbox: Outbox,
        run: &Envelope<'_>,
        watcher: &'a mut dyn Watcher,
        observed: Observed,
    ) -> Self {
        let now = Instant::now();
        let mut timers = Timers::begin(terms, now);
        let stage = match outbox.put(run) {
            Ok(()) => {
                timers.writing(now);
                Stage::Sending
            }
            // It cannot be full, because nothing waited.
            Err(NotTaken::Closed | NotTaken::Full) => {
                timers.cancelled(FAREWELL, now);
                Stage::Unsent
            }
        };
        Self {
            outbox,
            timers,
            warnings: Warnings::none(),
            observed,
            cancelled: None,
            stage,
            id,
            previous,
            terms,
            takes,
            watcher,
            dozes: None,
        }
    }

    /// When to look at the clocks again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.timers.next(), self.wake_at()].into_iter().flatten().min()
    }

    fn wake_at(&self) -> Option<Instant> {
        self.watcher.wake_at().map(|at| self.dozes.map_or(at, |until| at.max(until)))
    }

    /// What a line means.
    #[inline]
    pub(super) fn hear(&mut self, item: Item<'_>) -> Option<End> {
        match hear(item) {
            Heard::Message(Envelope::Event { ref_id, event }, line) if &*ref_id == self.id.as_str() => {
                self.event(&event, line)
            }
            other => self.rarely(other),
        }
    }

    #[inline]
    fn event(&mut self, event: &AgentEvent<'_>, line: &str) -> Option<End> {
        self.observed.events += 1;
        self.observed.event_bytes += line.len() as u64;
        match self.watcher.event(event, line) {
            Wish::GoOn => None,
            wish => self.fulfil(wish, Instant::now()),
        }
    }

    /// Everything but an event of this run.
    fn rarely(&mut self, heard: Heard<'_>) -> Option<End> {
        let (message, line) = match heard {
            Heard::Message(message, line) => (message, line),
            Heard::Noise { why, head } => return self.noise(why, head),
            Heard::Broken { why, head } => {
                return Some(End::violation(format!("broke the protocol: {why}: {head}")));
            }
            Heard::Torn { head } => return Some(End::Closed { torn: Some(head) }),
        };
        match message {
            Envelope::Event { ref_id, .. } => self.foreign("event", &ref_id),
            Envelope::Final { ref_id, receipt } => match self.is_own(&ref_id) {
                true => Some(End::Final(Box::new(receipt.into_owned()))),
                false => self.foreign("final", &ref_id),
            },
            Envelope::Fatal { ref_id, error, error_code } => match ref_id {
                Some(ref_id) if !self.is_own(&ref_id) => self.foreign("fatal", &ref_id),
                Some(_) | None => Some(End::Fatal(Fatal { error: error.into_owned(), error_code })),
            },
            Envelope::Ask(ask) => self.ask(&ask),
            Envelope::Pong { .. } => {
                self.observed.pongs += 1;
                None
            }
            Envelope::Hello(_) => {
                self.warn(Warning::HelloAgain);
                None
            }
            other @ (Envelope::Run(_)
            | Envelope::Cancel { .. }
            | Envelope::Steer { .. }
            | Envelope::Ping { .. }
            | Envelope::Answer(_)) => Some(End::violation(format!(
                "broke the protocol: `{}` is for the control plane to send: {}",
                other.t(),
                Head::of(line.as_bytes())
            ))),
            Envelope::Other { .. } => Some(End::violation(format!(
                "broke the protocol: it sent a message that this protocol does not have: {}",
                Head::of(line.as_bytes())
            ))),
        }
    }

    fn ask(&mut self, ask: &Ask<'_>) -> Option<End> {
        if !self.is_own(&ask.ref_id) {
            return self.foreign("ask", &ask.ref_id);
        }
        if !self.terms.offer.as_ref().is_some_and(|offer| offer.has(&Feature::Ask)) {
            return Some(End::violation(
                "broke the protocol: it sent `ask`, which `run` did not offer".to_owned(),
            ));
        }
        self.observed.asks += 1;
        self.timers.asked();
        let wish = self.watcher.ask(ask);
        self.fulfil(wish, Instant::now())
    }

    fn noise(&mut self, why: String, head: Head) -> Option<End> {
        match self.terms.noise {
            Noise::Fail => Some(End::violation(format!(
                "wrote a line that is no message ({why}) to standard output: {head}"
            ))),
            Noise::SkipAndWarn => {
                self.observed.noise += 1;
                self.warn(Warning::Noise { why, head });
                None
            }
        }
    }

    /// A message of another run: of the one before, which has ended, or of one that never was.
    fn foreign(&mut self, t: &'static str, ref_id: &str) -> Option<End> {
        let late = self.previous.is_some_and(|previous| previous.as_str() == ref_id);
        let named = Head::of(ref_id.as_bytes());
        match self.terms.foreign {
            Foreign::DropAndCount => {
                self.observed.foreign += 1;
                self.warn(if late {
                    Warning::Late { t: t.to_owned() }
                } else {
                    Warning::Foreign { t, ref_id: named }
                });
                None
            }
            Foreign::Fail if late => Some(End::violation(format!(
                "broke the protocol: it sent `{t}` for run {named}, which had ended before this one began"
            ))),
            Foreign::Fail => Some(End::Broken {
                kind: FailureKind::Correlation,
                fault: Fault::ProtocolViolation,
                what: format!("sent `{t}` with the ref_id {named}, and the run is \"{}\"", self.id),
            }),
        }
    }

    /// What somebody else wants.
    pub(super) fn command(&mut self, command: Command, now: Instant) -> Option<End> {
        let wish = match command {
            Command::Cancel { why } => Wish::Cancel { why },
            Command::Kill { why } => Wish::Kill { why },
            Command::Answer(answer) => Wish::Answer(answer),
            Command::Steer { text } => {
                self.steer(text, now);
                Wish::GoOn
            }
        };
        self.fulfil(wish, now)
    }

    fn fulfil(&mut self, wish: Wish, now: Instant) -> Option<End> {
        match wish {
            Wish::GoOn => None,
            Wish::Answer(answer) => self.answer(answer, now),
            Wish::Cancel { why } => {
                let what = format!("was cancelled: {why}");
                self.cancel(FailureKind::Cancelled, what, why, now);
                None
            }
            Wish::Kill { why } => Some(End::Kill { why }),
        }
    }

    fn steer(&mut self, text: String, now: Instant) {
        if !self.takes.contains(&Taking::Steer) {
            return self.warn(Warning::NotSteered { why: "this backend does not listen while it works" });
        }
        let ref_id = self.id.as_str().to_owned().into();
        match self.put(&Envelope::Steer { ref_id, text: text.into() }, now) {
            Ok(()) => {}
            Err(NotTaken::Closed) => self.warn(Warning::NotSteered { why: "it closed its standard input" }),
            Err(NotTaken::Full) => self.warn(Warning::NotSteered { why: "it does not read what it is told" }),
        }
    }

    fn answer(&mut self, answer: Answer, now: Instant) -> Option<End> {
        self.timers.answered(now);
        self.put(&Envelope::Answer(answer), now).err().and_then(|not_taken| match not_taken {
            // It was warned about; a child that asks and does not listen will be silent.
            NotTaken::Closed => None,
            NotTaken::Full => Some(self.unread()),
        })
    }

    /// Asks the child to end the run; a second time changes nothing.
    fn cancel(&mut self, kind: FailureKind, what: String, reason: String, now: Instant) {
        if self.cancelled.is_some() {
            return;
        }
        let ref_id = self.id.as_str().to_owned().into();
        let sent = self.put(&Envelope::Cancel { ref_id, reason: Some(reason.into()) }, now);
        self.cancelled = Some(Cancelled { kind, what });
        match sent {
            Ok(()) => self.timers.cancelled(self.terms.cancel_grace, now),
            // It cannot be asked, so that there is nothing to wait for.
            Err(NotTaken::Closed | NotTaken::Full) => self.timers.cancelled(Duration::ZERO, now),
        }
    }

    /// What the clocks call for.
    pub(super) fn due(&mut self, now: Instant) -> Option<Deed> {
        while let Some(due) = self.timers.due(now) {
            match due {
                Due::Ping => self.ping(now),
                Due::Total => {
                    let limit = self.terms.total.map(span).unwrap_or_default();
                    let reason = format!("the time limit of {limit} is over");
                    self.cancel(FailureKind::Timeout, format!("took longer than {limit}"), reason, now);
                }
                Due::Grace if self.stage == Stage::Unsent && self.cancelled.is_none() => {
                    let what = "closed its standard input before the run was sent".to_owned();
                    let end = End::Broken { kind: FailureKind::Write, fault: Fault::WriteStall, what };
                    return Some(Deed::End(end));
                }
                Due::Grace => {
                    self.stage = Stage::Stopping;
                    self.outbox.close();
                    self.timers.leaving();
                    return Some(Deed::Stop);
                }
                Due::Stalled => return Some(Deed::End(self.stalled())),
                Due::Silent => {
                    let what =
                        format!("said nothing for {}", self.terms.silence.map(span).unwrap_or_default());
                    let end = End::Broken { kind: FailureKind::Silent, fault: Fault::Unhealthy, what };
                    return Some(Deed::End(end));
                }
                Due::WriteStall => return Some(Deed::End(self.stalled_write())),
                Due::Drained => return Some(Deed::End(End::Closed { torn: None })),
            }
        }
        while self.wake_at().is_some_and(|at| at <= now) {
            let wish = self.watcher.tick(now);
            if !matches!(wish, Wish::Answer(_)) {
                self.dozes = Some(now + DOZE);
            }
            if let Some(end) = self.fulfil(wish, now) {
                return Some(Deed::End(end));
            }
        }
        None
    }

    fn ping(&mut self, now: Instant) {
        // A child that does not read would only have more to read.
        if self.outbox.waiting() == 0 {
            let seq = self.observed.pings + 1;
            if self.put(&Envelope::Ping { seq }, now).is_ok() {
                self.observed.pings = seq;
            }
        }
    }

    fn stalled(&self) -> End {
        let what = match self.terms.pulse {
            Pulse::Ping { every, missed } => {
                format!("is stalled: it left {missed} pings unanswered, one every {}", span(every))
            }
            Pulse::None => "is stalled".to_owned(),
        };
        End::Broken { kind: FailureKind::Stalled, fault: Fault::Unhealthy, what }
    }

    fn stalled_write(&self) -> End {
        let what = format!("did not read its standard input for {}", span(self.terms.write_stall));
        End::Broken { kind: FailureKind::Write, fault: Fault::WriteStall, what }
    }

    fn unread(&self) -> End {
        let what = format!("asks without reading the answers; {} bytes wait for it", self.outbox.waiting());
        End::Broken { kind: FailureKind::Write, fault: Fault::WriteStall, what }
    }

    fn put(&mut self, message: &Envelope<'_>, now: Instant) -> Result<(), NotTaken> {
        self.outbox.put(message)?;
        self.timers.writing(now);
        Ok(())
    }

    /// Something was written, or nothing can be written any more.
    pub(super) fn wrote(&mut self, wrote: io::Result<()>, now: Instant) {
        match wrote {
            Ok(()) => {
                let left = self.outbox.waiting();
                self.timers.wrote(left, now);
                if left == 0 && self.stage == Stage::Sending {
                    self.stage = Stage::Running;
                }
            }
            Err(_) => self.deafened(now),
        }
    }

    /// The child closed its standard input. That is its right, unless it has no run yet.
    fn deafened(&mut self, now: Instant) {
        self.outbox.close();
        self.timers.wrote(0, now);
        self.timers.no_more_pings();
        if self.stage == Stage::Sending {
            self.stage = Stage::Unsent;
            self.timers.cancelled(FAREWELL, now);
        } else {
            self.warn(Warning::Deaf);
            if self.cancelled.is_some() && self.stage == Stage::Running {
                self.timers.cancelled(Duration::ZERO, now);
            }
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.watcher.warning(&warning);
        self.warnings.add(warning);
    }

    fn is_own(&self, ref_id: &str) -> bool {
        ref_id == self.id.as_str()
    }
}
