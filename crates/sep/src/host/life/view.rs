//! How a life looks from outside, and how that is announced.

use super::machine::{At, Life, Serving, Standing};
use super::pause::Hold;
use super::words::{Effect, Transition, View};
use crate::protocol::State;

impl Life {
    /// How it looks from outside.
    #[must_use]
    pub fn view(&self) -> View {
        let state = self.state();
        View {
            state,
            phase: match &self.at {
                At::Starting(starting) => Some(starting.phase),
                _ => None,
            },
            disabled: self.disabled,
            failed: self.failed,
            detail: self.detail_of(state),
            ground: self.ground,
            starts: self.tally.starts,
            restarts: self.tally.restarts,
            reclaims: self.tally.reclaims,
            missed: self.tally.missed,
            next_start: match &self.at {
                At::Backoff { until, .. } => Some(*until),
                _ => None,
            },
        }
    }

    pub(super) fn state(&self) -> State {
        match &self.at {
            At::Rest { .. } => self.rest_state(),
            At::Backoff { .. } => State::Backoff,
            At::Reclaimed { .. } => State::Reclaimed,
            At::Starting(_) => State::Starting,
            At::Serving(Serving { overdue: false, silent: false, .. }) => State::Ready,
            At::Serving(_) => State::Unresponsive,
            At::Held(held) => match held.how {
                Hold::Pausing => State::Pausing,
                Hold::Suspended => State::Suspended,
                Hold::Resuming { .. } => State::Resuming,
            },
            At::Leaving(leaving) => leaving.shown,
        }
    }

    /// The state without a process: what weighs most against a start.
    fn rest_state(&self) -> State {
        match (&self.standing, self.disabled, self.failed) {
            (Standing::Removed, _, _) => State::Removed,
            (Standing::Not(State::NeedsConsent, _), Some(_), _) => State::Disabled,
            (Standing::Not(state, _), _, _) => *state,
            (Standing::Admitted | Standing::Unjudged, Some(_), _) => State::Disabled,
            (Standing::Admitted | Standing::Unjudged, None, Some(_)) => State::Failed,
            (Standing::Admitted | Standing::Unjudged, None, None) => State::Stopped,
        }
    }

    fn detail_of(&self, state: State) -> Option<String> {
        match (&self.at, &self.standing) {
            (At::Leaving(leaving), _) => leaving.detail.clone(),
            (At::Rest { .. }, Standing::Not(refused, why)) if *refused == state => Some(why.clone()),
            (At::Rest { want: Some(_) }, _) => Some("waits_for_foreground".to_owned()),
            _ => self.detail.clone(),
        }
    }

    /// Says that the state changed, if it did.
    pub(super) fn announce(&mut self, cause: &str, effects: &mut Vec<Effect>) {
        let (from, to) = (self.announced, self.state());
        if from != to {
            self.announced = to;
            effects.push(Effect::Changed(Transition { from, to, cause: cause.to_owned() }));
        }
    }
}
