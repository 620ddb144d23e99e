//! What people want of an extension, and whether it may be: start it, switch it on again, forget what it did.

use outrigger_supervise::state::Record;

use super::machine::{At, Budget, Life, Process, Standing, Starting};
use super::terms::{Activation, after_reclaim};
use super::words::{Effect, StartPhase};
use crate::protocol::{DisabledReason, LaunchReason, State};

impl Life {
    pub(super) fn start(&mut self, reason: LaunchReason, effects: &mut Vec<Effect>) {
        let wanted = match (reason, self.terms.activation) {
            (LaunchReason::First, Activation::Lazy) => false,
            (LaunchReason::LazyEvent | LaunchReason::LazyAction, Activation::Eager) => false,
            (LaunchReason::First, Activation::Eager) => true,
            (LaunchReason::LazyEvent | LaunchReason::LazyAction, Activation::Lazy) => true,
            (LaunchReason::Manual | LaunchReason::Restart | LaunchReason::ResumeAfterReclaim, _) => true,
        };
        if !wanted || !self.may_start() {
            return;
        }
        match &mut self.at {
            At::Rest { .. } => self.launch_or_wait(reason, effects),
            // A person who asks does not wait for a timer; the crash loop still counts.
            At::Backoff { .. } | At::Reclaimed { .. } if reason == LaunchReason::Manual => {
                self.launch_or_wait(reason, effects);
            }
            At::Leaving(leaving) => leaving.come_back(reason),
            At::Backoff { .. } | At::Reclaimed { .. } | At::Starting(_) | At::Serving(_) | At::Held(_) => {}
        }
    }

    /// Starts it now, or as soon as the platform lets anything run.
    pub(super) fn launch_or_wait(&mut self, reason: LaunchReason, effects: &mut Vec<Effect>) {
        if self.may_run_here() {
            return self.launch(reason, effects);
        }
        // What the platform took already waits for the foreground.
        if !matches!(self.at, At::Reclaimed { .. }) {
            self.at = At::Rest { want: Some(reason) };
            self.announce("background", effects);
        }
    }

    pub(super) fn launch(&mut self, reason: LaunchReason, effects: &mut Vec<Effect>) {
        self.tally.starts += 1;
        match reason {
            LaunchReason::Restart | LaunchReason::ResumeAfterReclaim => self.tally.restarts += 1,
            LaunchReason::First
            | LaunchReason::Manual
            | LaunchReason::LazyEvent
            | LaunchReason::LazyAction => {}
        }
        self.process = Process::default();
        self.detail = None;
        let phase = StartPhase::Spawning;
        self.at = At::Starting(Starting { phase, reason, budget: Budget::Whole, abort: None });
        self.announce(reason.as_str(), effects);
        effects.push(Effect::Spawn(reason));
        self.pace_start();
    }

    pub(super) fn enable(&mut self, effects: &mut Vec<Effect>) {
        match self.disabled {
            None | Some(DisabledReason::CrashLoop) => {}
            Some(DisabledReason::Operator | DisabledReason::PolicyViolation | DisabledReason::Tampered) => {
                self.disabled = None;
                effects.push(Effect::Persist);
                self.announce("enable", effects);
            }
        }
    }

    pub(super) fn reset(&mut self, effects: &mut Vec<Effect>) {
        // Another seed than at first: a thousand resets at once must not fall into step.
        self.seed = self.seed.wrapping_add(1);
        self.record = Record::new(&self.terms.after_crash(), self.seed);
        self.losses = Record::new(&after_reclaim(), !self.seed);
        self.crashes.clear();
        self.failed = None;
        self.disabled = self.disabled.filter(|reason| *reason != DisabledReason::CrashLoop);
        effects.push(Effect::Persist);
        if let At::Rest { .. } = self.at {
            self.detail = None;
        }
        self.announce("reset", effects);
    }

    pub(super) fn judged(&mut self, standing: Standing, cause: &str, effects: &mut Vec<Effect>) {
        self.standing = standing;
        self.abandon_plans();
        self.announce(cause, effects);
    }

    /// Plans for a start are worth nothing when there may not be one.
    pub(super) fn abandon_plans(&mut self) {
        if !self.has_process() && !self.may_start() {
            self.at = At::Rest { want: None };
        }
    }

    pub(super) fn may_start(&self) -> bool {
        self.standing == Standing::Admitted && self.disabled.is_none() && self.failed.is_none()
    }
}

impl Standing {
    pub(super) fn refused(state: State, detail: String) -> Self {
        match state {
            State::Invalid | State::Unavailable | State::NeedsConsent => Self::Not(state, detail),
            // No other state is a verdict about a manifest.
            _ => Self::Not(State::Blocked, detail),
        }
    }
}
