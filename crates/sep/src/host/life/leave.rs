//! The way out: asked or killed, and what follows when the process is gone.

use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{Cause, End, Final, Moment, Next, Phase};

use super::machine::{At, Life, Serving, Standing};
use super::terms::{FULL_LADDER, NO_LADDER, SILENT_LADDER, STOP_BOUND, after_reclaim};
use super::words::{Effect, ExitRecord, Ground, SpawnTrouble, StartPhase};
use crate::protocol::{DisabledReason, ExitKind, FailedReason, LaunchReason, ShutdownReason, State};

/// "I speak no version that you speak", before it was ready.
const EXIT_INCOMPATIBLE: Status = Status::Code(76);
/// "My configuration is wrong", after it was ready.
const EXIT_CONFIG: Status = Status::Code(78);

/// A process on its way out.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) shown: State,
    pub(super) detail: Option<String>,
    kind: ExitKind,
    then: Then,
    /// Whether the user saw it when its end was decided.
    seen: bool,
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

/// The end of one process, before it is judged.
struct Death {
    kind: ExitKind,
    detail: Option<String>,
    status: Option<Status>,
    seen: bool,
    then: Then,
}

impl Leaving {
    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.rung {
            Rung::Walking { kill_at } => Some(kill_at),
            Rung::Unborn(_) | Rung::Killed => None,
        }
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
        let (seen, ladder) = (self.is_seen(), self.ladder());
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

    fn run(&mut self, errand: Errand, ladder: outrigger_supervise::state::Ladder, effects: &mut Vec<Effect>) {
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

    pub(super) fn spawn_failed(&mut self, trouble: SpawnTrouble, effects: &mut Vec<Effect>) {
        let (kind, then) = match trouble {
            SpawnTrouble::Missing => (ExitKind::SpawnFailed, Then::Rest),
            SpawnTrouble::Resource => (ExitKind::HostResource, Then::Judge),
            SpawnTrouble::Sandbox => (ExitKind::Sandbox, Then::Fail(FailedReason::Sandbox)),
            SpawnTrouble::Tampered => (ExitKind::SpawnFailed, Then::Rest),
            SpawnTrouble::Other => (ExitKind::SpawnFailed, Then::Judge),
        };
        let (kind, then) = match &self.at {
            At::Starting(starting) if starting.phase == StartPhase::Spawning => (kind, then),
            // There was nobody to send away.
            At::Leaving(Leaving { rung: Rung::Unborn(_), kind, then, .. }) => (*kind, *then),
            _ => return,
        };
        match trouble {
            SpawnTrouble::Missing => {
                self.standing = Standing::Not(State::Blocked, "M-cmd-missing".to_owned());
            }
            SpawnTrouble::Tampered => {
                self.disabled = Some(DisabledReason::Tampered);
                effects.push(Effect::Persist);
            }
            SpawnTrouble::Resource | SpawnTrouble::Sandbox | SpawnTrouble::Other => {}
        }
        let seen = self.is_seen();
        self.conclude(Death { kind, detail: None, status: None, seen, then }, effects);
    }

    pub(super) fn exited(&mut self, status: Status, effects: &mut Vec<Effect>) {
        let seen = self.is_seen();
        let (kind, then) = match &self.at {
            At::Starting(_) if status == EXIT_INCOMPATIBLE => {
                (ExitKind::Incompatible, Then::Fail(FailedReason::Incompatible))
            }
            At::Starting(_) if seen => (ExitKind::ExitBeforeReady, Then::Judge),
            At::Serving(_) if status.success() => (ExitKind::Voluntary, Then::Rest),
            At::Serving(_) if status == EXIT_CONFIG => (ExitKind::Crash, Then::Fail(FailedReason::Config)),
            At::Serving(_) if seen => (ExitKind::Crash, Then::Judge),
            At::Starting(_) | At::Serving(_) | At::Held(_) => (ExitKind::Reclaimed, Then::Reclaim),
            At::Leaving(leaving) => (leaving.kind, leaving.then),
            At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } => return,
        };
        let (seen, detail) = match &self.at {
            At::Leaving(leaving) => (leaving.seen, leaving.detail.clone()),
            _ => (seen, None),
        };
        self.process.stretch = self.ready_for();
        self.conclude(Death { kind, detail, status: Some(status), seen, then }, effects);
    }

    /// The process is gone, or never was: what now?
    fn conclude(&mut self, death: Death, effects: &mut Vec<Effect>) {
        self.process.lost = None;
        self.process.voice.hush();
        let mut counted = false;
        self.at = match death.then {
            Then::Rest => {
                if death.kind == ExitKind::Voluntary {
                    self.detail = Some("voluntary".to_owned());
                }
                At::Rest { want: None }
            }
            Then::Again(reason) => At::Rest { want: Some(reason) },
            Then::Fail(reason) => {
                self.failed = Some(reason);
                At::Rest { want: None }
            }
            Then::Judge | Then::JudgeAndRest => {
                let cause = cause(death.kind);
                if cause.counts_as_crash() && !death.seen {
                    self.reclaim(&death, &mut counted)
                } else {
                    counted = cause.counts_as_crash();
                    self.judge(cause, &death)
                }
            }
            Then::Reclaim => self.reclaim(&death, &mut counted),
        };
        if death.then == Then::JudgeAndRest {
            self.at = At::Rest { want: None };
        }
        self.abandon_plans();
        self.take_up_terms();
        if counted {
            self.write_crash(self.now);
            effects.push(Effect::Persist);
        }
        let restart_in = match &self.at {
            At::Backoff { until, .. } => Some(until.since(self.now)),
            _ => None,
        };
        let Death { kind, detail, status, .. } = death;
        let ready_for = self.process.stretch;
        let (code, signal) = match status {
            Some(Status::Code(code)) => (Some(code), None),
            Some(Status::Signal(signal)) => (None, Some(signal)),
            Some(Status::Unknown) | None => (None, None),
        };
        let next = self.state();
        let record = ExitRecord { kind, code, signal, ready_for, detail, counted, next, restart_in };
        effects.push(Effect::Ended(record));
        let cause = match (next, self.disabled) {
            (State::Disabled, Some(DisabledReason::CrashLoop)) if counted => "crash_loop",
            _ => kind.as_str(),
        };
        self.announce(cause, effects);
        self.settle(effects);
    }

    /// What the record makes of it.
    fn judge(&mut self, cause: Cause, death: &Death) -> At {
        let end = End { cause, died_in: Phase::Ready, ready_for: self.process.stretch, status: death.status };
        match self.record.judge(&self.terms.after_crash(), &end, self.now) {
            Next::Restart { after, attempt: _ } => {
                At::Backoff { until: self.now + after, reason: LaunchReason::Restart }
            }
            Next::Final(why @ (Final::CrashLoop(_) | Final::SlowCrash(_))) => {
                self.disabled = Some(DisabledReason::CrashLoop);
                self.detail = Some(why.code().to_owned());
                At::Rest { want: None }
            }
            Next::Respawn | Next::Final(_) => At::Rest { want: None },
        }
    }

    /// The platform took it, which is no crash, unless it does so again and again under the user's eyes.
    fn reclaim(&mut self, death: &Death, counted: &mut bool) -> At {
        self.tally.reclaims += 1;
        let cause = match self.newest_ground() {
            Ground::Foreground => Cause::Crash,
            Ground::Background => Cause::HostResource,
        };
        let end = End { cause, died_in: Phase::Ready, ready_for: self.process.stretch, status: death.status };
        match self.losses.judge(&after_reclaim(), &end, self.now) {
            // The first one comes back without a wait.
            Next::Restart { attempt: 1, .. } | Next::Respawn => At::Reclaimed { not_before: self.now },
            Next::Restart { after, attempt: _ } => At::Reclaimed { not_before: self.now + after },
            Next::Final(_) => {
                *counted = true;
                self.judge(Cause::Crash, death)
            }
        }
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
    fn ladder(&self) -> outrigger_supervise::state::Ladder {
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

/// The same end in the words of the record.
fn cause(kind: ExitKind) -> Cause {
    match kind {
        ExitKind::Requested => Cause::Requested,
        ExitKind::Voluntary => Cause::Voluntary,
        ExitKind::ExitBeforeReady => Cause::ExitBeforeReady,
        ExitKind::StartupTimeout => Cause::StartupTimeout,
        ExitKind::Crash | ExitKind::Memory => Cause::Crash,
        ExitKind::Unhealthy => Cause::Unhealthy,
        ExitKind::WriteStall => Cause::WriteStall,
        ExitKind::ChannelLost => Cause::ChannelLost,
        ExitKind::ProtocolViolation | ExitKind::FrameOverrun => Cause::ProtocolViolation,
        // It is tried again without being held against the extension.
        ExitKind::HostResource | ExitKind::SpawnFailed | ExitKind::Reclaimed => Cause::HostResource,
        ExitKind::Incompatible => Cause::Incompatible,
        ExitKind::Sandbox => Cause::Sandbox,
    }
}
