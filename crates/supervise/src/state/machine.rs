//! The machine itself: what it knows, how it starts, what it makes of what happens.

use std::time::Duration;

use super::judge::{End, Record};
use super::policy::{Policy, PolicyError};
use super::pulse::{Beat, Pong, Pulse};
use super::stop::{Stopping, Then};
use super::time::Moment;
use super::words::{
    Action, Cause, Change, Ending, Event, Fault, Final, Happening, Incarnation, Next, Phase, PingSeq, Rung,
    SpawnFailure, Trigger,
};
use crate::launch::Status;

/// When a channel closes, the exit of the process usually follows by itself and says more than "channel lost".
const CHANNEL_SETTLE: Duration = Duration::from_millis(500);

/// One child over all its restarts.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) policy: Policy,
    record: Record,
    pub(super) state: State,
    incarnation: Incarnation,
    pub(super) now: Moment,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    Idle,
    /// The spawn was asked for and has not been answered.
    Spawning,
    /// The spawn was withdrawn and has not been answered.
    Cancelling,
    Starting {
        deadline: Option<Moment>,
        lost: Option<Moment>,
    },
    Ready {
        /// Ready without a break since then.
        since: Moment,
        pulse: Pulse,
        lost: Option<Moment>,
        answering: Answering,
    },
    Stopping(Stopping),
    Backoff {
        until: Moment,
    },
    Exited(Final),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answering {
    Yes,
    NotLately,
}

/// Takes one event at `now` and returns what to do, in order. Time that goes backwards is taken to stand still.
pub fn step(machine: &mut Machine, event: Event, now: Moment) -> Vec<Action> {
    machine.now = machine.now.max(now);
    let mut actions = Vec::new();
    match event {
        Event::Start => machine.start(&mut actions),
        Event::Stop(ladder) => machine.stop(ladder, &mut actions),
        Event::StopNow => machine.stop_now(&mut actions),
        Event::Restart(ladder) => machine.restart(ladder, &mut actions),
        Event::Tick => machine.tick(&mut actions),
        Event::Of(incarnation, happening) if incarnation == machine.incarnation => {
            machine.happened(happening, &mut actions)
        }
        Event::Of(_, _) => {}
    }
    actions
}

impl Machine {
    /// A machine at rest. `seed` spreads the backoff; the same seed gives the same waits.
    pub fn new(policy: Policy, seed: u64) -> Result<Self, PolicyError> {
        policy.check()?;
        let record = Record::new(&policy.restart, seed);
        Ok(Self { policy, record, state: State::Idle, incarnation: Incarnation(0), now: Moment::ORIGIN })
    }

    /// Writes down crashes from an earlier run of the host, oldest first, so that a crash loop survives a restart of ours.
    pub fn remember_crashes(&mut self, times: impl IntoIterator<Item = Moment>) {
        for at in times {
            self.record.remember_crash(at);
        }
    }

    /// Where the child is in its life.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Idle => Phase::Idle,
            State::Spawning | State::Starting { .. } => Phase::Starting,
            State::Cancelling => Phase::Stopping(Rung::Kill),
            State::Ready { answering: Answering::Yes, .. } => Phase::Ready,
            State::Ready { answering: Answering::NotLately, .. } => Phase::Unresponsive,
            State::Stopping(stopping) => Phase::Stopping(stopping.rung),
            State::Backoff { .. } => Phase::Backoff,
            State::Exited(_) => Phase::Exited,
        }
    }

    /// The current process, or the last one.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Why it is never started again, once that is so.
    pub fn ended(&self) -> Option<Final> {
        match &self.state {
            State::Exited(why) => Some(*why),
            State::Idle
            | State::Spawning
            | State::Cancelling
            | State::Starting { .. }
            | State::Ready { .. }
            | State::Stopping(_)
            | State::Backoff { .. } => None,
        }
    }

    /// When [`Event::Tick`] is due; one timer is enough for everything.
    pub fn next_deadline(&self) -> Option<Moment> {
        match &self.state {
            State::Idle | State::Spawning | State::Cancelling | State::Exited(_) => None,
            State::Starting { deadline, lost } => earliest([*deadline, *lost]),
            State::Ready { pulse, lost, .. } => earliest([pulse.deadline(), *lost]),
            State::Stopping(stopping) => stopping.deadline,
            State::Backoff { until } => Some(*until),
        }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        if let State::Idle = self.state {
            self.spawn(Trigger::Started, actions);
        }
    }

    fn tick(&mut self, actions: &mut Vec<Action>) {
        let now = self.now;
        match &mut self.state {
            State::Idle | State::Spawning | State::Cancelling | State::Exited(_) => {}
            State::Starting { deadline, lost } => {
                if is_due(*lost, now) {
                    self.condemn(Cause::ChannelLost, actions);
                } else if is_due(*deadline, now) {
                    self.condemn(Cause::StartupTimeout, actions);
                }
            }
            State::Ready { lost, .. } if is_due(*lost, now) => self.condemn(Cause::ChannelLost, actions),
            State::Ready { pulse, answering, .. } => match pulse.look(now) {
                Beat::Nothing => {}
                Beat::Ping(seq) => actions.push(Action::Ping(seq)),
                Beat::Missed(seq) => {
                    let first = *answering == Answering::Yes;
                    *answering = Answering::NotLately;
                    if first {
                        self.changed(Phase::Ready, Trigger::PingMissed, actions);
                    }
                    actions.push(Action::Ping(seq));
                }
                Beat::Dead => self.condemn(Cause::Unhealthy, actions),
            },
            State::Stopping(stopping) if is_due(stopping.deadline, now) => {
                let stopping = *stopping;
                self.next_rung(stopping, actions);
            }
            State::Stopping(_) => {}
            State::Backoff { until } if *until <= now => self.spawn(Trigger::BackoffElapsed, actions),
            State::Backoff { .. } => {}
        }
    }

    fn happened(&mut self, happening: Happening, actions: &mut Vec<Action>) {
        match happening {
            Happening::Spawned => self.spawned(actions),
            Happening::SpawnFailed(failure) => self.spawn_failed(failure, actions),
            Happening::Ready => {
                if let State::Starting { lost, .. } = self.state {
                    self.become_ready(lost, actions);
                }
            }
            Happening::Pong(seq) => self.pong(seq, actions),
            Happening::Beat(at) => self.with_pulse(|pulse, now| pulse.beat(at.min(now))),
            Happening::StreamBegan => self.with_pulse(Pulse::stream_began),
            Happening::StreamEnded => self.with_pulse(|pulse, _| pulse.stream_ended()),
            Happening::Fault(fault) => self.fault(fault, actions),
            Happening::AskRefused => {
                if let State::Stopping(stopping) = self.state
                    && stopping.rung == Rung::Ask
                {
                    self.take_rung(Rung::Term, stopping, Trigger::AskRefused, actions);
                }
            }
            Happening::Reaped(status) => self.reaped(status, actions),
        }
    }

    fn spawned(&mut self, actions: &mut Vec<Action>) {
        match self.state {
            State::Spawning => match self.policy.ready_within {
                Some(within) => {
                    self.state = State::Starting { deadline: Some(self.now + within), lost: None }
                }
                None => self.become_ready(None, actions),
            },
            State::Cancelling => self.kill_latecomer(actions),
            State::Idle
            | State::Starting { .. }
            | State::Ready { .. }
            | State::Stopping(_)
            | State::Backoff { .. }
            | State::Exited(_) => {}
        }
    }

    fn spawn_failed(&mut self, failure: SpawnFailure, actions: &mut Vec<Action>) {
        let (cause, then) = match self.state {
            State::Spawning => (failure.cause(), Then::Judge),
            State::Cancelling => (Cause::Requested, Then::Leave),
            State::Idle
            | State::Starting { .. }
            | State::Ready { .. }
            | State::Stopping(_)
            | State::Backoff { .. }
            | State::Exited(_) => return,
        };
        let end = End { cause, died_in: Phase::Starting, ready_for: Duration::ZERO, status: None };
        self.end(end, then, actions);
    }

    fn become_ready(&mut self, lost: Option<Moment>, actions: &mut Vec<Action>) {
        let pulse = Pulse::begin(self.policy.heartbeat, self.now);
        self.state = State::Ready { since: self.now, pulse, lost, answering: Answering::Yes };
        self.changed(Phase::Starting, Trigger::GateOpened, actions);
    }

    fn pong(&mut self, seq: PingSeq, actions: &mut Vec<Action>) {
        let now = self.now;
        if let State::Ready { pulse, answering, since, .. } = &mut self.state
            && pulse.pong(seq) == Pong::Fresh
            && *answering == Answering::NotLately
        {
            *answering = Answering::Yes;
            *since = now;
            self.changed(Phase::Unresponsive, Trigger::PongReceived, actions);
        }
    }

    fn with_pulse(&mut self, change: impl FnOnce(&mut Pulse, Moment)) {
        if let State::Ready { pulse, .. } = &mut self.state {
            change(pulse, self.now);
        }
    }

    fn fault(&mut self, fault: Fault, actions: &mut Vec<Action>) {
        let settled_by = self.now + CHANNEL_SETTLE;
        match (&mut self.state, fault) {
            (State::Starting { lost, .. } | State::Ready { lost, .. }, Fault::ChannelLost) => {
                *lost = Some(lost.unwrap_or(settled_by));
            }
            (
                State::Starting { .. } | State::Ready { .. },
                Fault::ProtocolViolation | Fault::WriteStall | Fault::Unhealthy | Fault::Incompatible,
            ) => self.condemn(fault.cause(), actions),
            // A child that is leaving may close its channel as it likes, and before it exists there is none.
            (
                State::Idle
                | State::Spawning
                | State::Cancelling
                | State::Stopping(_)
                | State::Backoff { .. }
                | State::Exited(_),
                _,
            ) => {}
        }
    }

    fn reaped(&mut self, status: Status, actions: &mut Vec<Action>) {
        let (cause, then) = match &self.state {
            State::Starting { .. } => (Cause::ExitBeforeReady, Then::Judge),
            State::Ready { .. } if status.success() => (Cause::Voluntary, Then::Judge),
            State::Ready { .. } => (Cause::Crash, Then::Judge),
            State::Stopping(stopping) => (stopping.cause, stopping.then),
            State::Idle | State::Spawning | State::Cancelling | State::Backoff { .. } | State::Exited(_) => {
                return;
            }
        };
        let (died_in, ready_for) = match &self.state {
            State::Stopping(stopping) => (stopping.died_in, stopping.ready_for),
            _ => (self.phase(), self.ready_for()),
        };
        self.end(End { cause, died_in, ready_for, status: Some(status) }, then, actions);
    }

    /// The process is gone, or never was: what now?
    fn end(&mut self, end: End, then: Then, actions: &mut Vec<Action>) {
        let next = match then {
            Then::Leave => Next::Final(Final::Requested),
            Then::Respawn => Next::Respawn,
            Then::Judge => self.record.judge(&self.policy.restart, &end, self.now),
        };
        let ending = Ending { incarnation: self.incarnation, died_in: end.died_in, cause: end.cause, next };
        actions.push(Action::Ended(ending));
        match next {
            Next::Restart { after, attempt: _ } => {
                let from = self.phase();
                self.state = State::Backoff { until: self.now + after };
                self.changed(from, Trigger::Cause(end.cause), actions);
            }
            Next::Respawn => self.spawn(Trigger::RestartRequested, actions),
            Next::Final(why) => self.leave(why, Trigger::Cause(end.cause), actions),
        }
    }

    pub(super) fn spawn(&mut self, trigger: Trigger, actions: &mut Vec<Action>) {
        let from = self.phase();
        self.incarnation = Incarnation(self.incarnation.0 + 1);
        self.state = State::Spawning;
        self.changed(from, trigger, actions);
        actions.push(Action::Spawn(self.incarnation));
    }

    pub(super) fn leave(&mut self, why: Final, trigger: Trigger, actions: &mut Vec<Action>) {
        let from = self.phase();
        self.state = State::Exited(why);
        self.changed(from, trigger, actions);
    }

    pub(super) fn ready_for(&self) -> Duration {
        match &self.state {
            State::Ready { since, .. } => self.now.since(*since),
            State::Idle
            | State::Spawning
            | State::Cancelling
            | State::Starting { .. }
            | State::Stopping(_)
            | State::Backoff { .. }
            | State::Exited(_) => Duration::ZERO,
        }
    }

    pub(super) fn changed(&self, from: Phase, trigger: Trigger, actions: &mut Vec<Action>) {
        let change = Change { incarnation: self.incarnation, from, to: self.phase(), trigger };
        actions.push(Action::Changed(change));
    }
}

pub(super) fn earliest(deadlines: [Option<Moment>; 2]) -> Option<Moment> {
    deadlines.into_iter().flatten().min()
}

fn is_due(deadline: Option<Moment>, now: Moment) -> bool {
    deadline.is_some_and(|deadline| deadline <= now)
}
