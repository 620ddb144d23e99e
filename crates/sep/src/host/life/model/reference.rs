//! The contract for desktops once more, as a plain table: no shared code, no cleverness, and it has to agree.

use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::Moment;

use super::super::words::{Event, ExitRecord, SpawnTrouble, View};
use super::super::{Activation, LifeTerms};
use crate::protocol::{DisabledReason, ExitKind as Kind, FailedReason, LaunchReason, State};

const SECOND: Duration = Duration::from_secs(1);

/// What follows the end of a process that is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Judge,
    Stay,
    Again,
    Fail,
}

#[derive(Clone, Debug)]
pub(super) struct Reference {
    terms: LifeTerms,
    window: Duration,
    state: State,
    /// `None` until somebody said something; then admitted (`Stopped`) or what stands against it.
    verdict: Option<State>,
    disabled: Option<DisabledReason>,
    failed: Option<FailedReason>,
    /// Whether a process was made.
    born: bool,
    /// Why the process will have ended, and what then.
    end: Option<(Kind, After)>,
    /// A stop came while it was being killed.
    unwanted: bool,
    /// The next deadline of the state, and when a closed channel is a crash.
    due: Option<Moment>,
    lost: Option<Moment>,
    ping: u64,
    awaiting: bool,
    misses: u32,
    silent: bool,
    overdue: bool,
    going: bool,
    refusals: u32,
    /// Ready since then, and the longest such time.
    since: Moment,
    ready_for: Duration,
    attempts: u32,
    crashes: Vec<Moment>,
    starts: u64,
    last_end: Option<(Kind, bool)>,
}

impl Reference {
    pub(super) fn new(terms: LifeTerms) -> Self {
        let t = terms.threshold.get();
        let backoffs: f64 = (0..t - 1).map(|k| (0.5 * 2f64.powi(k as i32)).min(60.0)).sum();
        let slow = f64::from(t) * (terms.startup.as_secs_f64() + 6.0) + backoffs * 1.2 + 30.0;
        Self {
            terms,
            window: Duration::from_secs_f64(slow.max(600.0)),
            state: State::Stopped,
            verdict: None,
            disabled: None,
            failed: None,
            born: false,
            end: None,
            unwanted: false,
            due: None,
            lost: None,
            ping: 0,
            awaiting: false,
            misses: 0,
            silent: false,
            overdue: false,
            going: false,
            refusals: 0,
            since: Moment::ORIGIN,
            ready_for: Duration::ZERO,
            attempts: 0,
            crashes: Vec::new(),
            starts: 0,
            last_end: None,
        }
    }

    /// Takes the event and says in which way the machine differs.
    pub(super) fn compare(
        &mut self,
        now: Moment,
        event: &Event,
        view: &View,
        ended: Option<&ExitRecord>,
    ) -> Result<(), String> {
        self.last_end = None;
        self.happen(now, event);
        self.time(now);
        if self.state == State::Backoff && self.due.is_none() {
            self.due = Some(self.plausible_wait(now, view.next_start)?);
        }
        let mine = (self.state, self.disabled, self.failed, self.starts, self.last_end);
        let ended = ended.map(|exit| (exit.kind, exit.counted));
        let yours = (view.state, view.disabled, view.failed, view.starts, ended);
        if mine == yours {
            Ok(())
        } else {
            Err(format!("the plain model has {mine:?}, the machine {yours:?}"))
        }
    }

    /// The waits are spread at random: the machine says which it chose, and it has to be a fifth from the right one at most.
    fn plausible_wait(&self, now: Moment, due: Option<Moment>) -> Result<Moment, String> {
        let due = due.ok_or("no restart is due")?;
        let base = (0.5 * 2f64.powi(self.attempts.min(20) as i32 - 1)).min(60.0);
        let wait = due.since(now).as_secs_f64();
        let right = (base * 0.799..=base * 1.201).contains(&wait);
        if right { Ok(due) } else { Err(format!("a wait of {wait} s before restart {}", self.attempts)) }
    }

    fn happen(&mut self, now: Moment, event: &Event) {
        use State::{Backoff, Ready, Starting, Stopped, Unresponsive};
        let runs = matches!(self.state, Starting | Ready | Unresponsive) && self.end.is_none();
        let serves = runs && self.state != Starting;
        match event {
            Event::Start(reason) => {
                let lazy = matches!(reason, LaunchReason::LazyEvent | LaunchReason::LazyAction);
                let eager = self.terms.activation == Activation::Eager;
                let mute = (lazy && eager) || (*reason == LaunchReason::First && !eager);
                let barred =
                    self.verdict != Some(Stopped) || self.disabled.is_some() || self.failed.is_some();
                match self.state {
                    _ if mute || barred => {}
                    Stopped => self.launch(),
                    Backoff if *reason == LaunchReason::Manual => self.launch(),
                    _ => match &mut self.end {
                        Some((_, after @ After::Stay)) => *after = After::Again,
                        _ => self.unwanted = false,
                    },
                }
            }
            Event::Stop(_) => self.away(now),
            Event::Disable(reason) => {
                if self.disabled != Some(DisabledReason::CrashLoop) {
                    self.disabled = Some(*reason);
                }
                self.away(now);
            }
            Event::Removed => {
                self.verdict = Some(State::Removed);
                self.away(now);
            }
            Event::Enable if self.disabled != Some(DisabledReason::CrashLoop) => self.disabled = None,
            Event::Reset => {
                self.crashes.clear();
                self.attempts = 0;
                self.failed = None;
                self.disabled = self.disabled.filter(|reason| *reason != DisabledReason::CrashLoop);
            }
            Event::Admitted => self.verdict = Some(Stopped),
            Event::NotAdmitted(state, _) => self.verdict = Some(*state),
            Event::Spawned if self.state == Starting && !self.born => {
                self.born = true;
                self.due = Some(now + self.terms.startup);
            }
            Event::Spawned => self.born = true,
            Event::SpawnFailed(trouble) => self.unborn(now, *trouble),
            Event::Initialized if runs && self.state == Starting && self.born => {
                self.state = Ready;
                self.since = now;
                self.due = Some(now + self.terms.heartbeat);
            }
            Event::Incompatible(_) if runs && self.state == Starting => {
                self.failed_as(now, FailedReason::Incompatible);
            }
            Event::InitializeFailed if runs && self.state == Starting => {
                self.kill(now, Kind::ExitBeforeReady)
            }
            Event::Pong(seq) if serves && seq.0 == self.ping => self.pong(now),
            Event::HealthUnsupported if serves => {
                self.refusals += 1;
                match self.refusals {
                    3 => self.failed_as(now, FailedReason::Incompatible),
                    _ => self.pong(now),
                }
            }
            Event::HealthStopping if serves && !self.going => {
                self.going = true;
                self.due = Some(now + SECOND * 10);
            }
            Event::Overdue if serves => {
                self.note_stretch(now);
                self.overdue = true;
            }
            Event::Answered if serves && self.overdue => {
                self.overdue = false;
                self.since = now;
            }
            Event::Broken(Kind::ChannelLost, _) if runs => {
                self.lost = self.lost.or(Some(now + SECOND / 2));
            }
            Event::Broken(kind, _) if runs => self.kill(now, *kind),
            Event::Exited(status) => self.gone(now, *status),
            _ => {}
        }
        if serves && self.end.is_none() && matches!(self.state, Ready | Unresponsive) {
            self.state = if self.overdue || self.silent { Unresponsive } else { Ready };
        }
        self.rest();
    }

    /// A state without a process is what weighs most against a start.
    fn rest(&mut self) {
        use State::{
            Backoff, Disabled, Failed, NeedsConsent, Ready, Starting, Stopped, Stopping, Unresponsive,
        };
        let barred = match (self.verdict.unwrap_or(Stopped), self.disabled, self.failed) {
            (NeedsConsent | Stopped, Some(_), _) => Some(Disabled),
            (Stopped, None, Some(_)) => Some(Failed),
            (Stopped, None, None) => None,
            (verdict, _, _) => Some(verdict),
        };
        match (self.state, barred) {
            (Starting | Ready | Unresponsive | Stopping, _) | (Backoff, None) => {}
            (_, barred) => (self.state, self.due) = (barred.unwrap_or(Stopped), None),
        }
    }

    fn time(&mut self, now: Moment) {
        for _ in 0..8 {
            if self.lost.take_if(|due| *due <= now).is_some() {
                self.kill(now, Kind::ChannelLost);
            }
            let Some(due) = self.due.filter(|due| *due <= now) else { return };
            match self.state {
                _ if self.end.is_some() => self.due = None,
                State::Backoff => self.launch(),
                State::Starting => self.kill(now, Kind::StartupTimeout),
                State::Ready | State::Unresponsive if self.going => self.kill(now, Kind::Unhealthy),
                State::Ready | State::Unresponsive => {
                    if self.awaiting && now.since(due) <= self.terms.heartbeat {
                        self.note_stretch(now);
                        self.misses += 1;
                        self.silent = true;
                        self.state = State::Unresponsive;
                    }
                    if self.misses >= self.terms.missed.get() {
                        self.kill(now, Kind::Unhealthy);
                    } else {
                        self.awaiting = true;
                        self.ping += 1;
                        self.due = Some(now + self.terms.heartbeat);
                    }
                }
                _ => self.due = None,
            }
        }
    }

    fn launch(&mut self) {
        self.starts += 1;
        self.state = State::Starting;
        (self.born, self.end, self.unwanted, self.due, self.lost) = (false, None, false, None, None);
        (self.ping, self.awaiting, self.misses, self.refusals) = (0, false, 0, 0);
        (self.silent, self.overdue, self.going) = (false, false, false);
        self.ready_for = Duration::ZERO;
    }

    fn note_stretch(&mut self, now: Moment) {
        if self.state == State::Ready && self.end.is_none() {
            self.ready_for = self.ready_for.max(now.since(self.since));
        }
    }

    fn pong(&mut self, now: Moment) {
        if self.awaiting {
            (self.awaiting, self.misses) = (false, 0);
            if std::mem::take(&mut self.silent) {
                self.since = now;
            }
        }
    }

    fn leave(&mut self, now: Moment, kind: Kind, after: After) {
        self.note_stretch(now);
        let hangs = matches!(kind, Kind::Unhealthy | Kind::WriteStall) && self.state != State::Starting;
        self.state = if hangs { State::Unresponsive } else { State::Stopping };
        (self.end, self.due, self.lost) = (Some((kind, after)), None, None);
    }

    fn kill(&mut self, now: Moment, kind: Kind) {
        self.leave(now, kind, After::Judge);
    }

    fn failed_as(&mut self, now: Moment, _reason: FailedReason) {
        self.leave(now, Kind::Incompatible, After::Fail);
    }

    /// Nobody wants it any more.
    fn away(&mut self, now: Moment) {
        match (&mut self.end, self.state) {
            (Some((_, after @ After::Again)), _) => *after = After::Stay,
            (Some(_), _) => self.unwanted = true,
            (None, State::Starting | State::Ready | State::Unresponsive) => {
                self.leave(now, Kind::Requested, After::Stay);
            }
            (None, _) => (self.state, self.due) = (State::Stopped, None),
        }
    }

    fn unborn(&mut self, now: Moment, trouble: SpawnTrouble) {
        if self.born || !matches!(self.state, State::Starting | State::Stopping) {
            return;
        }
        let (kind, after) = self.end.unwrap_or(match trouble {
            SpawnTrouble::Missing | SpawnTrouble::Tampered => (Kind::SpawnFailed, After::Stay),
            SpawnTrouble::Resource => (Kind::HostResource, After::Judge),
            SpawnTrouble::Sandbox => (Kind::Sandbox, After::Fail),
            SpawnTrouble::Other => (Kind::SpawnFailed, After::Judge),
        });
        match trouble {
            SpawnTrouble::Missing => self.verdict = Some(State::Blocked),
            SpawnTrouble::Tampered => self.disabled = Some(DisabledReason::Tampered),
            _ => {}
        }
        self.conclude(now, kind, after);
    }

    fn gone(&mut self, now: Moment, status: Status) {
        self.note_stretch(now);
        let (kind, after) = match (self.end, self.state, status) {
            (Some(end), _, _) => end,
            (None, State::Starting, Status::Code(76)) => (Kind::Incompatible, After::Fail),
            (None, State::Starting, _) => (Kind::ExitBeforeReady, After::Judge),
            (None, State::Ready | State::Unresponsive, Status::Code(0)) => (Kind::Voluntary, After::Stay),
            (None, State::Ready | State::Unresponsive, Status::Code(78)) => (Kind::Crash, After::Fail),
            (None, State::Ready | State::Unresponsive, _) => (Kind::Crash, After::Judge),
            (None, _, _) => return,
        };
        self.conclude(now, kind, after);
    }

    fn conclude(&mut self, now: Moment, kind: Kind, after: After) {
        (self.due, self.lost, self.state) = (None, None, State::Stopped);
        let counts = !matches!(kind, Kind::HostResource | Kind::SpawnFailed) && after == After::Judge;
        self.last_end = Some((kind, counts));
        self.end = None;
        match after {
            After::Stay => {}
            After::Fail => {
                self.failed = Some(match kind {
                    Kind::Crash => FailedReason::Config,
                    Kind::Sandbox => FailedReason::Sandbox,
                    _ => FailedReason::Incompatible,
                });
            }
            After::Again => {
                let free = self.disabled.is_none() && self.failed.is_none();
                if self.verdict == Some(State::Stopped) && free {
                    self.launch();
                }
            }
            After::Judge => {
                if self.ready_for >= SECOND * 300 {
                    self.attempts = 0;
                }
                if counts {
                    self.crashes.push(now);
                }
                let within =
                    |window: Duration| self.crashes.iter().filter(|at| now.since(**at) <= window).count();
                let too_many = within(self.window) >= self.terms.threshold.get() as usize
                    || within(SECOND * 86400) >= 20;
                if counts && too_many {
                    self.disabled = Some(DisabledReason::CrashLoop);
                } else {
                    self.attempts += 1;
                    if !self.unwanted {
                        self.state = State::Backoff;
                    }
                }
            }
        }
    }
}
