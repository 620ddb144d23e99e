//! The way down: stop, stop now, restart, and the end of a child that has to go. One ladder, entered at different rungs.

use std::time::Duration;

use super::machine::{Machine, State, earliest};
use super::policy::{Ask, Ladder};
use super::time::Moment;
use super::words::{Action, Cause, Final, Phase, Rung, Trigger};

/// A process on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    pub(super) rung: Rung,
    /// When the next rung is due; the last rung has none.
    pub(super) deadline: Option<Moment>,
    pub(super) ladder: Ladder,
    pub(super) cause: Cause,
    pub(super) died_in: Phase,
    pub(super) ready_for: Duration,
    pub(super) then: Then,
}

/// What follows when a stopping process is reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The owner wanted it gone.
    Leave,
    /// The owner wanted a fresh one.
    Respawn,
    /// The policy decides.
    Judge,
}

/// Why a stop begins and what follows it.
#[derive(Clone, Copy, Debug)]
struct Errand {
    cause: Cause,
    then: Then,
    trigger: Trigger,
}

const REQUESTED: Errand =
    Errand { cause: Cause::Requested, then: Then::Leave, trigger: Trigger::StopRequested };
const RESTARTED: Errand =
    Errand { cause: Cause::Restarted, then: Then::Respawn, trigger: Trigger::RestartRequested };

/// A stop that takes no detour.
const NO_LADDER: Ladder = Ladder { ask: Duration::ZERO, term: Duration::ZERO };

impl Machine {
    pub(super) fn stop(&mut self, ladder: Ladder, actions: &mut Vec<Action>) {
        match &self.state {
            State::Starting { .. } | State::Ready { .. } => {
                self.descend(self.first_rung(), ladder, REQUESTED, actions)
            }
            State::Stopping(stopping) if stopping.then == Then::Leave => self.stop_now(actions),
            State::Stopping(stopping) => {
                // It is on its way out for another reason. The ladder is not climbed again; what remains of it may only
                // shrink.
                let budget = match stopping.rung {
                    Rung::Ask => Some(ladder.ask),
                    Rung::Term => Some(ladder.term),
                    Rung::Kill => None,
                };
                let deadline = earliest([stopping.deadline, budget.map(|budget| self.now + budget)]);
                self.state = State::Stopping(Stopping { then: Then::Leave, ladder, deadline, ..*stopping });
            }
            State::Idle | State::Spawning | State::Cancelling | State::Backoff { .. } | State::Exited(_) => {
                self.stop_now(actions);
            }
        }
    }

    pub(super) fn stop_now(&mut self, actions: &mut Vec<Action>) {
        match &self.state {
            State::Idle | State::Backoff { .. } => {
                self.leave(Final::Requested, Trigger::StopRequested, actions);
            }
            State::Spawning => {
                let from = self.phase();
                self.state = State::Cancelling;
                self.changed(from, Trigger::StopRequested, actions);
                actions.push(Action::CancelSpawn(self.incarnation()));
            }
            State::Starting { .. } | State::Ready { .. } => {
                self.descend(Rung::Kill, NO_LADDER, REQUESTED, actions);
            }
            State::Stopping(stopping) => {
                let stopping = Stopping { then: Then::Leave, ..*stopping };
                self.state = State::Stopping(stopping);
                if stopping.rung != Rung::Kill {
                    self.take_rung(Rung::Kill, stopping, Trigger::StopRequested, actions);
                }
            }
            State::Cancelling | State::Exited(_) => {}
        }
    }

    pub(super) fn restart(&mut self, ladder: Ladder, actions: &mut Vec<Action>) {
        match &self.state {
            State::Idle => self.spawn(Trigger::Started, actions),
            State::Backoff { .. } => self.spawn(Trigger::RestartRequested, actions),
            State::Starting { .. } | State::Ready { .. } => {
                self.descend(self.first_rung(), ladder, RESTARTED, actions);
            }
            // A fresh one is already coming, or must not come.
            State::Spawning | State::Cancelling | State::Stopping(_) | State::Exited(_) => {}
        }
    }

    /// It has to go, at once: a child that hangs or lies gets no farewell.
    pub(super) fn condemn(&mut self, cause: Cause, actions: &mut Vec<Action>) {
        let errand = Errand { cause, then: Then::Judge, trigger: Trigger::Cause(cause) };
        self.descend(Rung::Kill, NO_LADDER, errand, actions);
    }

    /// Our withdrawal of a spawn came too late: there is a process after all, and it goes at once.
    pub(super) fn kill_latecomer(&mut self, actions: &mut Vec<Action>) {
        self.state = State::Stopping(Stopping {
            rung: Rung::Kill,
            deadline: None,
            ladder: NO_LADDER,
            cause: Cause::Requested,
            died_in: Phase::Starting,
            ready_for: Duration::ZERO,
            then: Then::Leave,
        });
        actions.push(Action::Kill);
    }

    /// The budget of the current rung is spent.
    pub(super) fn next_rung(&mut self, stopping: Stopping, actions: &mut Vec<Action>) {
        let next = match stopping.rung {
            Rung::Ask => Rung::Term,
            Rung::Term | Rung::Kill => Rung::Kill,
        };
        self.take_rung(next, stopping, Trigger::BudgetSpent, actions);
    }

    /// Takes `rung`, or the next one below it that has a budget.
    pub(super) fn take_rung(
        &mut self,
        rung: Rung,
        stopping: Stopping,
        trigger: Trigger,
        actions: &mut Vec<Action>,
    ) {
        let from = self.phase();
        let Ladder { ask, term } = stopping.ladder;
        let (rung, deadline, action) = match rung {
            Rung::Ask if !ask.is_zero() => (Rung::Ask, Some(self.now + ask), Action::Ask { within: ask }),
            Rung::Ask | Rung::Term if !term.is_zero() => (Rung::Term, Some(self.now + term), Action::Term),
            Rung::Ask | Rung::Term | Rung::Kill => (Rung::Kill, None, Action::Kill),
        };
        self.state = State::Stopping(Stopping { rung, deadline, ..stopping });
        self.changed(from, trigger, actions);
        actions.push(action);
    }

    /// Begins a stop of the process that exists now.
    fn descend(&mut self, rung: Rung, ladder: Ladder, errand: Errand, actions: &mut Vec<Action>) {
        let Errand { cause, then, trigger } = errand;
        let (died_in, ready_for) = (self.phase(), self.ready_for());
        let stopping = Stopping { rung, deadline: None, ladder, cause, died_in, ready_for, then };
        self.take_rung(rung, stopping, trigger, actions);
    }

    /// Nobody speaks with a child that is not ready: there is no one to ask.
    fn first_rung(&self) -> Rung {
        match (&self.state, self.policy.ask) {
            (State::Ready { .. }, Ask::Session) => Rung::Ask,
            (_, Ask::Session | Ask::Skip) => Rung::Term,
        }
    }
}
