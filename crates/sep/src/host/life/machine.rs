//! The machine itself: what it knows about an extension, what can happen to it, which timer is next.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_supervise::state::{Moment, PingSeq, Pulse, Record};

use super::leave::Leaving;
use super::pause::{Held, Voice};
use super::terms::{LifeTerms, SLOW_CRASHES, after_reclaim};
use super::words::{Effect, Event, Ground, StartPhase};
use crate::protocol::{DisabledReason, FailedReason, LaunchReason, State};

/// More timers than this cannot be due in one instant; a clock at the end of time must not keep us for ever.
const MOST_TIMERS: usize = 16;

/// One extension over all its processes.
#[derive(Clone, Debug)]
pub struct Life {
    pub(super) terms: LifeTerms,
    /// Terms that wait for the running process to end.
    next_terms: Option<LifeTerms>,
    pub(super) record: Record,
    /// The same memory for what the platform took.
    pub(super) losses: Record,
    /// The crashes that counted, oldest first, for whoever writes them down.
    pub(super) crashes: VecDeque<Moment>,
    pub(super) seed: u64,
    pub(super) now: Moment,
    pub(super) at: At,
    pub(super) announced: State,
    pub(super) standing: Standing,
    pub(super) disabled: Option<DisabledReason>,
    pub(super) failed: Option<FailedReason>,
    pub(super) detail: Option<String>,
    pub(super) ground: Ground,
    /// Where the platform is going, and when we believe it.
    pub(super) pending: Option<(Ground, Moment)>,
    pub(super) frozen: bool,
    pub(super) process: Process,
    pub(super) tally: Tally,
}

/// Where an extension is.
#[derive(Clone, Debug)]
pub(super) enum At {
    /// There is no process, and none is due; `want` waits for the platform to allow it.
    Rest {
        want: Option<LaunchReason>,
    },
    Backoff {
        until: Moment,
        reason: LaunchReason,
    },
    Reclaimed {
        not_before: Moment,
    },
    Starting(Starting),
    Serving(Serving),
    Held(Held),
    Leaving(Leaving),
}

#[derive(Clone, Debug)]
pub(super) struct Starting {
    pub(super) phase: StartPhase,
    pub(super) reason: LaunchReason,
    pub(super) budget: Budget,
    /// When a start that may not go on in the background is given up.
    pub(super) abort: Option<Moment>,
}

/// What is left for a start.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    /// It begins with the process.
    Whole,
    Running {
        until: Moment,
    },
    Frozen {
        left: Duration,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Serving {
    /// Ready without a break since then, if it answers.
    pub(super) since: Moment,
    pub(super) pulse: Pulse,
    /// The pulse counts from one after every pause; on the wire the numbers go on from here.
    pub(super) base: u64,
    pub(super) mode: Ground,
    /// A request is overdue.
    pub(super) overdue: bool,
    /// The latest ping but one was not answered.
    pub(super) silent: bool,
    /// It said that it leaves, and has until then.
    pub(super) gone_by: Option<Moment>,
}

/// What belongs to the current process in whatever state it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) voice: Voice,
    /// The longest time that it was ready without a break.
    pub(super) stretch: Duration,
    /// Its requests are refused until it is resumed.
    pub(super) suspended: bool,
    /// The channel closed; if the process is still there by then, that was a crash.
    pub(super) lost: Option<(Moment, String)>,
    /// The number of the latest ping.
    pub(super) pings: u64,
    /// How often it did not know `sep.health`.
    pub(super) refusals: u32,
}

/// What manifest, files and operator say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody has said anything yet.
    Unjudged,
    Admitted,
    Not(State, String),
    Removed,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) starts: u64,
    pub(super) restarts: u64,
    pub(super) reclaims: u64,
    pub(super) missed: u64,
}

impl Life {
    /// An extension that nobody has admitted yet. `seed` spreads the waits; the same seed gives the same waits.
    #[must_use]
    pub fn new(terms: LifeTerms, seed: u64) -> Self {
        Self {
            record: Record::new(&terms.after_crash(), seed),
            losses: Record::new(&after_reclaim(), !seed),
            terms,
            next_terms: None,
            crashes: VecDeque::new(),
            seed,
            now: Moment::ORIGIN,
            at: At::Rest { want: None },
            announced: State::Stopped,
            standing: Standing::Unjudged,
            disabled: None,
            failed: None,
            detail: None,
            ground: Ground::Foreground,
            pending: None,
            frozen: false,
            process: Process::default(),
            tally: Tally::default(),
        }
    }

    /// Takes up what an earlier host wrote down. Crashes come oldest first and may lie before the origin.
    pub fn restore(&mut self, disabled: Option<DisabledReason>, crashes: impl IntoIterator<Item = Moment>) {
        self.disabled = disabled;
        for at in crashes {
            self.record.remember_crash(at);
            self.write_crash(at);
        }
        self.announced = self.state();
    }

    /// New terms, from the next start on.
    pub fn set_terms(&mut self, terms: LifeTerms) {
        match self.has_process() {
            true => self.next_terms = Some(terms),
            false => self.terms = terms,
        }
    }

    /// Takes one event at `now` and says what to do, in order. Time that goes backwards is taken to stand still.
    pub fn step(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        // What has happened goes before what is late: an answer that waited in our own queue still counts.
        self.happen(event, effects);
        for _ in 0..MOST_TIMERS {
            match self.deadline() {
                Some(due) if due <= self.now => self.expire(effects),
                Some(_) | None => break,
            }
        }
    }

    /// When to call [`step`](Self::step) with [`Event::Tick`] at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        let own = match &self.at {
            At::Rest { .. } | At::Reclaimed { .. } => [None, None],
            At::Backoff { until, .. } => [Some(*until), None],
            At::Starting(starting) => [starting.budget.deadline(), starting.abort],
            At::Serving(Serving { gone_by: Some(gone_by), .. }) => [Some(*gone_by), None],
            At::Serving(serving) => [serving.pulse.deadline(), None],
            At::Held(held) => [held.deadline(), None],
            At::Leaving(leaving) => [leaving.deadline(), None],
        };
        let pending = self.pending.map(|(_, due)| due);
        let lost = self.process.lost.as_ref().map(|(due, _)| *due);
        own.into_iter().chain([pending, lost, self.process.voice.deadline()]).flatten().min()
    }

    /// The crashes that count towards a crash loop, oldest first, at most as many as a day may have.
    pub fn crashes(&self) -> impl Iterator<Item = Moment> + '_ {
        self.crashes.iter().copied()
    }

    /// Whether a process exists, or is being made.
    #[must_use]
    pub fn has_process(&self) -> bool {
        match &self.at {
            At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } => false,
            At::Starting(_) | At::Serving(_) | At::Held(_) | At::Leaving(_) => true,
        }
    }

    fn happen(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Start(reason) => self.start(reason, effects),
            Event::Stop(reason) => self.stop(reason, effects),
            Event::Disable(reason) => self.disable(reason, effects),
            Event::Enable => self.enable(effects),
            Event::Reset => self.reset(effects),
            Event::Admitted => self.judged(Standing::Admitted, "admitted", effects),
            Event::NotAdmitted(state, detail) => {
                self.judged(Standing::refused(state, detail), "not_admitted", effects);
            }
            Event::Removed => self.removed(effects),
            Event::SpawnFailed(trouble) => self.spawn_failed(trouble, effects),
            Event::Spawned => self.spawned(effects),
            Event::Attached => self.attached(),
            Event::Initialized => self.initialized(effects),
            Event::Incompatible(detail) => self.incompatible(detail, effects),
            Event::InitializeFailed => self.initialize_failed(effects),
            Event::Pong(seq) => self.pong(seq, effects),
            Event::HealthStopping => self.health_stopping(),
            Event::HealthUnsupported => self.health_unsupported(effects),
            Event::Overdue => self.overdue(effects),
            Event::Answered => self.answered(effects),
            Event::Broken(kind, detail) => self.broken(kind, detail, effects),
            Event::Exited(status) => self.exited(status, effects),
            Event::Signal(signal) => self.signal(signal, effects),
            Event::PauseAcknowledged => self.told(super::LifecycleTopic::Pausing, effects),
            Event::Told(topic) => self.told(topic, effects),
            Event::ProbeAnswered => self.probe_answered(effects),
            Event::Tick => {}
        }
    }

    /// Handles one timer that is due.
    fn expire(&mut self, effects: &mut Vec<Effect>) {
        let now = self.now;
        if let Some((ground, _)) = self.pending.take_if(|(_, due)| *due <= now) {
            return self.arrive(ground, effects);
        }
        if let Some((_, detail)) = self.process.lost.take_if(|(due, _)| *due <= now) {
            return self.channel_stayed_lost(detail, effects);
        }
        if self.process.voice.deadline().is_some_and(|due| due <= now) {
            return self.unheard(effects);
        }
        match &self.at {
            At::Rest { .. } | At::Reclaimed { .. } => {}
            At::Backoff { reason, .. } => {
                let reason = *reason;
                self.launch_or_wait(reason, effects);
            }
            At::Starting(_) => self.start_is_late(effects),
            At::Serving(_) => self.look(effects),
            At::Held(_) => self.probe_unanswered(effects),
            At::Leaving(_) => self.ladder_failed(effects),
        }
    }

    /// The process is gone, and with it the terms that it ran under.
    pub(super) fn take_up_terms(&mut self) {
        if let Some(terms) = self.next_terms.take() {
            self.terms = terms;
        }
    }

    pub(super) fn write_crash(&mut self, at: Moment) {
        if self.crashes.len() == SLOW_CRASHES.get() as usize {
            self.crashes.pop_front();
        }
        self.crashes.push_back(at);
    }

    /// The number of the next ping on the wire.
    pub(super) fn next_ping(&mut self) -> PingSeq {
        self.process.pings += 1;
        PingSeq(self.process.pings)
    }
}

impl Budget {
    fn deadline(self) -> Option<Moment> {
        match self {
            Self::Running { until } => Some(until),
            Self::Whole | Self::Frozen { .. } => None,
        }
    }
}
