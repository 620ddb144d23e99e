//! The way out: asked or killed, once and twice, and what shall follow when the process is gone.

use std::time::Duration;

use outrigger_supervise::state::{Ladder, Moment};

use super::machine::{At, Life, Serving, Standing};
use super::terms::{FULL_LADDER, NO_LADDER, SILENT_LADDER, STOP_BOUND};
use super::words::{Effect, StartPhase};
use crate::protocol::{DisabledReason, ExitKind, FailedReason, LaunchReason, ShutdownReason, State};

/// A process on its way out.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) shown: State,
    pub(super) detail: Option<String>,
    pub(super) kind: ExitKind,
    pub(super) then: Then,
    /// Whether the user saw it when its end was decided.
    pub(super) seen: bool,
    rung: Rung,
}

#[derive(Clone, Copy, Debug)]
enum Rung {
    /// The process is still being made; this is done when it exists.
    Unborn(Errand),
    /// It walks down the ladder, and is killed then at the latest.
    Walking { kill_at: Moment },
    /// Nothing more can be done but to wait.
    Killed,
}

#[derive(Clone, Copy, Debug)]
enum Errand {
    Stop(ShutdownReason),
    Kill,
}

/// What follows when the process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The record decides.
    Judge,
    /// The record counts, but nobody wants another one.
    JudgeAndRest,
    Rest,
    /// Another one, as soon as it may run.
    Again(LaunchReason),
    Fail(FailedReason),
    /// It comes back with the foreground.
    Reclaim,
}

impl Leaving {
    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.rung {
            Rung::Walking { kill_at } => Some(kill_at),
            Rung::Unborn(_) | Rung::Killed => None,
        }
    }

    /// Whether the process is still being made.
    pub(super) fn is_unborn(&self) -> bool {
        matches!(self.rung, Rung::Unborn(_))
    }

    /// Somebody wants it back before it is gone.
    pub(super) fn come_back(&mut self, reason: LaunchReason) {
        match self.then {
            Then::Rest | Then::Again(_) => self.then = Then::Again(reason),
            // It comes back by itself if it may.
            Then::Judge | Then::Reclaim | Then::Fail(_) => {}
            Then::JudgeAndRest => self.then = Then::Judge,
        }
    }

    /// Nobody wants it back.
    fn stay_away(&mut self) {
        match self.then {
            Then::Judge | Then::JudgeAndRest => self.then = Then::JudgeAndRest,
            Then::Rest | Then::Again(_) | Then::Reclaim => self.then = Then::Rest,
            Then::Fail(_) => {}
        }
    }
}

impl Life {
    pub(super) fn stop(&mut self, reason: ShutdownReason, effects: &mut Vec<Effect>) {
        let second = matches!(self.at, At::Leaving(_));
        self.send_away(reason, "stop", effects);
        if second {
            self.hurry(effects);
        }
    }

    pub(super) fn disable(&mut self, reason: DisabledReason, effects: &mut Vec<Effect>) {
        // A crash loop takes a reset, and must not be hidden by a lesser reason.
        if self.disabled != Some(DisabledReason::CrashLoop) && self.disabled != Some(reason) {
            self.disabled = Some(reason);
            effects.push(Effect::Persist);
        }
        let told = match reason {
            DisabledReason::Operator | DisabledReason::CrashLoop => ShutdownReason::Disable,
            DisabledReason::PolicyViolation | DisabledReason::Tampered => ShutdownReason::Policy,
        };
        self.send_away(told, "disable", effects);
    }

    pub(super) fn removed(&mut self, effects: &mut Vec<Effect>) {
        self.standing = Standing::Removed;
        self.send_away(ShutdownReason::Stop, "removed", effects);
    }

    /// Nobody wants it any more, whatever it is doing.
    fn send_away(&mut self, reason: ShutdownReason, cause: &str, effects: &mut Vec<Effect>) {
        match &mut self.at {
            At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } => {
                self.at = At::Rest { want: None };
                self.announce(cause, effects);
            }
            At::Leaving(leaving) => leaving.stay_away(),
            At::Starting(_) | At::Serving(_) | At::Held(_) => {
                self.leave(ExitKind::Requested, None, Then::Rest, Errand::Stop(reason), cause, effects);
            }
        }
    }

    /// It is asked to leave, with all the time that the ladder gives it.
    pub(super) fn depart(
        &mut self,
        reason: ShutdownReason,
        kind: ExitKind,
        detail: Option<String>,
        then: Then,
        effects: &mut Vec<Effect>,
    ) {
        let cause = if kind == ExitKind::Requested { "background" } else { kind.as_str() };
        self.leave(kind, detail, then, Errand::Stop(reason), cause, effects);
    }

    /// It has to go, at once: one that hangs or lies gets no farewell.
    pub(super) fn condemn(&mut self, kind: ExitKind, detail: Option<String>, effects: &mut Vec<Effect>) {
        let then = match &self.at {
            // One that was paused has not crashed, whatever it did.
            At::Held(_) => Then::Reclaim,
            _ if kind == ExitKind::Reclaimed => Then::Reclaim,
            _ => Then::Judge,
        };
        self.leave(kind, detail, then, Errand::Kill, kind.as_str(), effects);
    }

    fn leave(
        &mut self,
        kind: ExitKind,
        detail: Option<String>,
        then: Then,
        errand: Errand,
        cause: &str,
        effects: &mut Vec<Effect>,
    ) {
        let unborn = matches!(&self.at, At::Starting(starting) if starting.phase == StartPhase::Spawning);
        let hangs = matches!(kind, ExitKind::Unhealthy | ExitKind::WriteStall);
        let shown = match &self.at {
            At::Serving(_) if hangs => State::Unresponsive,
            _ => State::Stopping,
        };
        let ladder = match errand {
            // It has just answered, so it can be told why it has to go.
            Errand::Stop(ShutdownReason::VersionUnsupported) => FULL_LADDER,
            Errand::Stop(_) | Errand::Kill => self.ladder(),
        };
        let seen = self.is_seen();
        self.process.stretch = self.ready_for();
        self.process.lost = None;
        self.process.voice.hush();
        let rung = Rung::Unborn(errand);
        self.at = At::Leaving(Leaving { shown, detail, kind, then, seen, rung });
        self.announce(cause, effects);
        if !unborn {
            self.run(errand, ladder, effects);
        }
    }

    fn run(&mut self, errand: Errand, ladder: Ladder, effects: &mut Vec<Effect>) {
        let kill_at = self.now + STOP_BOUND;
        let At::Leaving(leaving) = &mut self.at else { return };
        match errand {
            Errand::Stop(reason) => {
                leaving.rung = Rung::Walking { kill_at };
                effects.push(Effect::Stop { reason, ladder });
            }
            Errand::Kill => {
                leaving.rung = Rung::Killed;
                effects.push(Effect::Kill);
            }
        }
    }

    /// The process exists after all, and nobody wants it.
    pub(super) fn unwanted_arrived(&mut self, effects: &mut Vec<Effect>) {
        if let At::Leaving(Leaving { rung: Rung::Unborn(errand), .. }) = &self.at {
            self.run(*errand, SILENT_LADDER, effects);
        }
    }

    fn hurry(&mut self, effects: &mut Vec<Effect>) {
        let At::Leaving(leaving) = &mut self.at else { return };
        match leaving.rung {
            Rung::Unborn(_) => leaving.rung = Rung::Unborn(Errand::Kill),
            Rung::Walking { .. } => {
                leaving.rung = Rung::Killed;
                effects.push(Effect::Kill);
            }
            Rung::Killed => {}
        }
    }

    /// The ladder should have ended by now.
    pub(super) fn ladder_failed(&mut self, effects: &mut Vec<Effect>) {
        self.hurry(effects);
    }

    /// The longest time that the process was ready without a break: after a quiet stretch the waits begin anew, also for
    /// one that fell silent in the end.
    pub(super) fn ready_for(&self) -> Duration {
        match &self.at {
            At::Serving(Serving { overdue: false, silent: false, since, .. }) => {
                self.process.stretch.max(self.now.since(*since))
            }
            At::Serving(_)
            | At::Held(_)
            | At::Leaving(_)
            | At::Starting(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. } => self.process.stretch,
        }
    }

    /// Only one that can be spoken with is asked, and only one that can hear gets a signal.
    fn ladder(&self) -> Ladder {
        match &self.at {
            _ if self.frozen => NO_LADDER,
            At::Serving(_) | At::Held(_) => FULL_LADDER,
            At::Starting(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Leaving(_) => SILENT_LADDER,
        }
    }
}
