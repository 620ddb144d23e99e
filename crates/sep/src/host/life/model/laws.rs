//! What must hold for every life, whatever happens in it.

use outrigger_supervise::state::Moment;

use super::super::words::{Effect, Event, ExitRecord, Ground, LifecycleTopic, Transition, View};
use super::super::{LifeTerms, PlatformSignal, TOLD_WITHIN};
use crate::protocol::{DisabledReason, ExitKind, State};

/// Every word that a transition may name as its cause.
const CAUSES: &[&str] = &[
    "first",
    "restart",
    "resume_after_reclaim",
    "manual",
    "lazy_event",
    "lazy_action",
    "initialized",
    "stop",
    "disable",
    "enable",
    "reset",
    "admitted",
    "not_admitted",
    "removed",
    "heartbeat_missed",
    "heartbeat_answered",
    "overdue",
    "answered",
    "crash_loop",
    "background",
    "foreground",
    "freeze",
    "thaw",
    "acknowledged",
    "pause_timeout",
    "probe_answered",
];

/// The books that are kept about one life.
#[derive(Clone, Debug)]
pub(super) struct Laws {
    terms: LifeTerms,
    /// As of the last announcement.
    state: State,
    admitted: bool,
    spawned: u32,
    ended: u32,
    /// Whether the current process was asked to leave, and killed.
    asked: bool,
    killed: bool,
    suspended: bool,
    told: Option<(LifecycleTopic, Moment)>,
    crashes: Vec<Moment>,
    ground: Ground,
    frozen: bool,
    /// What it was doing before it began to leave.
    doing: State,
    /// Whether the user saw it when that began.
    seen: bool,
}

impl Laws {
    pub(super) fn new(terms: LifeTerms) -> Self {
        Self {
            terms,
            state: State::Stopped,
            admitted: false,
            spawned: 0,
            ended: 0,
            asked: false,
            killed: false,
            suspended: false,
            told: None,
            crashes: Vec::new(),
            ground: Ground::Foreground,
            frozen: false,
            doing: State::Stopped,
            seen: true,
        }
    }

    /// What the machine is about to be told.
    pub(super) fn before(&mut self, event: &Event) {
        match event {
            Event::Admitted => self.admitted = true,
            Event::NotAdmitted(..) | Event::Removed => self.admitted = false,
            Event::Reset => self.crashes.clear(),
            Event::PauseAcknowledged => {
                self.told = self.told.filter(|(said, _)| *said != LifecycleTopic::Pausing)
            }
            Event::Told(topic) => self.told = self.told.filter(|(said, _)| said != topic),
            Event::Signal(signal) if self.terms.android.is_some() => match signal {
                PlatformSignal::Foreground => (self.ground, self.frozen) = (Ground::Foreground, false),
                PlatformSignal::Background => self.ground = Ground::Background,
                PlatformSignal::Freeze => self.frozen = true,
                PlatformSignal::Thaw => self.frozen = false,
                PlatformSignal::TrimMemory(_) | PlatformSignal::Reclaimed => {}
            },
            _ => {}
        }
        if matches!(self.state, State::Starting | State::Ready | State::Unresponsive) && !self.killed {
            (self.doing, self.seen) = (self.state, self.ground == Ground::Foreground && !self.frozen);
        } else if matches!(self.state, State::Pausing | State::Suspended | State::Resuming) {
            (self.doing, self.seen) = (self.state, false);
        }
    }

    /// What it wants done about it.
    pub(super) fn after(&mut self, now: Moment, effects: &[Effect], view: &View) -> Result<(), String> {
        for effect in effects {
            self.effect(now, effect, view)?;
        }
        match view.state == self.state {
            true => Ok(()),
            false => Err(format!("it is {} and was announced as {}", view.state, self.state)),
        }
    }

    fn effect(&mut self, now: Moment, effect: &Effect, view: &View) -> Result<(), String> {
        let alive = self.spawned > self.ended;
        match effect {
            Effect::Spawn(_) if alive => Err("a second process".to_owned()),
            Effect::Spawn(_) => self.spawn(now, view),
            _ if !alive && !matches!(effect, Effect::Changed(_) | Effect::Persist) => {
                Err(format!("{effect:?} without a process"))
            }
            Effect::Stop { .. } if self.asked || self.killed => Err("asked to leave twice".to_owned()),
            Effect::Stop { .. } => {
                self.asked = true;
                Ok(())
            }
            Effect::Kill if self.killed => Err("killed twice".to_owned()),
            Effect::Kill => {
                self.killed = true;
                Ok(())
            }
            Effect::Ping(_) if !matches!(self.state, State::Ready | State::Unresponsive) => {
                Err(format!("pinged while {}", self.state))
            }
            Effect::Probe(_) if self.state != State::Resuming => Err(format!("probed while {}", self.state)),
            Effect::Ping(_) | Effect::Probe(_) => Ok(()),
            Effect::Tell(topic) => match self.told {
                Some((said, until)) if now < until => {
                    Err(format!("told {topic:?} before it has heard {said:?}"))
                }
                Some(_) | None => {
                    self.told = Some((*topic, now + TOLD_WITHIN));
                    Ok(())
                }
            },
            Effect::Suspend if self.suspended => Err("suspended twice".to_owned()),
            Effect::Suspend => {
                self.suspended = true;
                Ok(())
            }
            Effect::Resume => {
                self.suspended = false;
                Ok(())
            }
            Effect::Changed(change) => self.changed(change),
            Effect::Ended(exit) => self.end(now, exit),
            Effect::Persist => Ok(()),
        }
    }

    fn spawn(&mut self, now: Moment, view: &View) -> Result<(), String> {
        self.spawned += 1;
        (self.asked, self.killed, self.suspended, self.told) = (false, false, false, None);
        if self.state != State::Starting {
            return Err(format!("spawned while {}", self.state));
        }
        if !self.admitted || view.disabled.is_some() || view.failed.is_some() {
            return Err("spawned what may not run".to_owned());
        }
        let window = self.terms.window();
        let recent = self.crashes.iter().filter(|at| now.since(**at) <= window).count();
        match recent < self.terms.threshold.get() as usize {
            true => Ok(()),
            false => Err(format!("spawned after {recent} crashes within {window:?}")),
        }
    }

    fn changed(&mut self, change: &Transition) -> Result<(), String> {
        let Transition { from, to, cause } = change;
        let same_but_elsewhere = from == to && matches!(cause.as_str(), "background" | "foreground");
        if *from != self.state || (from == to && !same_but_elsewhere) {
            return Err(format!("a change from {from} to {to} while {}", self.state));
        }
        if !CAUSES.contains(&cause.as_str()) && ExitKind::parse(cause).is_err() {
            return Err(format!("`{cause}` is not the name of a cause"));
        }
        self.state = *to;
        Ok(())
    }

    fn end(&mut self, now: Moment, exit: &ExitRecord) -> Result<(), String> {
        self.ended += 1;
        if !exit.counted {
            return Ok(());
        }
        self.crashes.push(now);
        let own_doing =
            matches!(self.doing, State::Starting | State::Ready | State::Unresponsive) && self.seen;
        // Ten losses under the user's eyes are counted, too; then the kind says that it was a loss.
        match own_doing || (exit.kind == ExitKind::Reclaimed && self.ground == Ground::Foreground) {
            true => Ok(()),
            false => Err(format!("{} was counted while {}", exit.kind, self.doing)),
        }
    }

    /// Nothing that is over may keep a timer: who waits for nothing is not woken.
    pub(super) fn timers(&self, deadline: Option<Moment>, view: &View) -> Result<(), String> {
        let desktop = self.terms.android.is_none();
        let waits = self.spawned > self.ended && !self.killed;
        match deadline {
            Some(at) if desktop && !waits && view.state != State::Backoff => {
                Err(format!("it waits for {at} while nothing can happen by itself"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the two books about processes agree, for the end of a life.
    pub(super) fn open_processes(&self) -> u32 {
        self.spawned - self.ended
    }

    /// Whether a crash loop has ended it, and nothing but a reset brings it back.
    pub(super) fn is_looping(view: &View) -> bool {
        view.disabled == Some(DisabledReason::CrashLoop)
    }
}
