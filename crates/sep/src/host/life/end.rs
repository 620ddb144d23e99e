//! The end of a process: what it was, what follows, and when ends are too many.

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{Cause, End, Final, Next, Phase};

use super::leave::Then;
use super::machine::{At, Life, Standing};
use super::terms::after_reclaim;
use super::words::{Effect, ExitRecord, Ground, SpawnTrouble, StartPhase};
use crate::protocol::{DisabledReason, ExitKind, FailedReason, LaunchReason, State};

/// "I speak no version that you speak", before it was ready.
const EXIT_INCOMPATIBLE: Status = Status::Code(76);
/// "My configuration is wrong", after it was ready.
const EXIT_CONFIG: Status = Status::Code(78);

/// The end of one process, before it is judged.
struct Death {
    kind: ExitKind,
    detail: Option<String>,
    status: Option<Status>,
    seen: bool,
    then: Then,
}

impl Life {
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
            At::Leaving(leaving) if leaving.is_unborn() => (leaving.kind, leaving.then),
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
