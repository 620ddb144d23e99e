//! A process that has to become ready, and one that has to stay so: the start, the heartbeat, the faults.

use outrigger_supervise::state::{Beat, PingSeq, Pong, Pulse};

use super::leave::Then;
use super::machine::{At, Budget, Life, Serving};
use super::pause::Hold;
use super::terms::{CHANNEL_SETTLE, HEALTH_REFUSALS, LEAVING_WITHIN};
use super::words::{Effect, Ground, StartPhase};
use crate::protocol::{ExitKind, FailedReason, ShutdownReason};

impl Life {
    pub(super) fn spawned(&mut self, effects: &mut Vec<Effect>) {
        match &mut self.at {
            At::Starting(starting) if starting.phase == StartPhase::Spawning => {
                starting.phase = StartPhase::Attaching;
                starting.budget = Budget::Running { until: self.now + self.terms.startup };
                self.pace_start();
            }
            At::Leaving(_) => self.unwanted_arrived(effects),
            At::Starting(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Serving(_)
            | At::Held(_) => {}
        }
    }

    pub(super) fn attached(&mut self) {
        if let At::Starting(starting) = &mut self.at
            && starting.phase == StartPhase::Attaching
        {
            starting.phase = StartPhase::Initializing;
        }
    }

    pub(super) fn initialized(&mut self, effects: &mut Vec<Effect>) {
        if let At::Starting(starting) = &self.at
            && starting.phase != StartPhase::Spawning
        {
            self.serve("initialized", effects);
            self.settle(effects);
        }
    }

    /// It serves from here on, in the foreground until [`settle`](Self::settle) has looked around.
    pub(super) fn serve(&mut self, cause: &str, effects: &mut Vec<Effect>) {
        self.at = At::Serving(Serving {
            since: self.now,
            pulse: Pulse::begin(self.terms.heartbeat(1), self.now),
            base: self.process.pings,
            mode: Ground::Foreground,
            overdue: false,
            silent: false,
            gone_by: None,
        });
        self.announce(cause, effects);
    }

    pub(super) fn incompatible(&mut self, detail: String, effects: &mut Vec<Effect>) {
        if let At::Starting(_) = self.at {
            self.detail = Some(detail.clone());
            let then = Then::Fail(FailedReason::Incompatible);
            self.depart(
                ShutdownReason::VersionUnsupported,
                ExitKind::Incompatible,
                Some(detail),
                then,
                effects,
            );
        }
    }

    pub(super) fn initialize_failed(&mut self, effects: &mut Vec<Effect>) {
        if let At::Starting(_) = self.at {
            self.condemn(ExitKind::ExitBeforeReady, Some("initialize was refused".to_owned()), effects);
        }
    }

    /// One of the two timers of a start is due.
    pub(super) fn start_is_late(&mut self, effects: &mut Vec<Effect>) {
        let At::Starting(starting) = &self.at else { return };
        let reason = starting.reason;
        match starting.abort {
            Some(abort) if abort <= self.now => {
                let detail = Some("background".to_owned());
                self.depart(
                    ShutdownReason::Policy,
                    ExitKind::Requested,
                    detail,
                    Then::Again(reason),
                    effects,
                );
            }
            Some(_) | None => {
                let detail = format!("not ready while {}", starting.phase);
                self.condemn(ExitKind::StartupTimeout, Some(detail), effects);
            }
        }
    }

    /// A heartbeat is due, or the time of one that said it would leave is over.
    pub(super) fn look(&mut self, effects: &mut Vec<Effect>) {
        let (now, ready_for) = (self.now, self.ready_for());
        let At::Serving(serving) = &mut self.at else { return };
        if serving.gone_by.is_some() {
            let detail = Some("said that it would leave and stayed".to_owned());
            return self.condemn(ExitKind::Unhealthy, detail, effects);
        }
        match serving.pulse.look(now) {
            Beat::Nothing => {}
            Beat::Ping(seq) => self.ping(seq, effects),
            Beat::Missed(seq) => {
                serving.silent = true;
                self.process.stretch = ready_for;
                self.tally.missed += 1;
                self.announce("heartbeat_missed", effects);
                self.ping(seq, effects);
            }
            Beat::Dead => {
                self.tally.missed += 1;
                let detail = format!("{} heartbeats in a row without an answer", self.terms.missed);
                self.condemn(ExitKind::Unhealthy, Some(detail), effects);
            }
        }
    }

    fn ping(&mut self, seq: PingSeq, effects: &mut Vec<Effect>) {
        if let At::Serving(serving) = &self.at {
            let seq = PingSeq(serving.base + seq.0);
            self.process.pings = seq.0;
            effects.push(Effect::Ping(seq));
        }
    }

    pub(super) fn pong(&mut self, seq: PingSeq, effects: &mut Vec<Effect>) {
        match &mut self.at {
            At::Serving(serving) => {
                // An answer to a ping from before the last pause is late, and nothing else.
                let Some(own) = seq.0.checked_sub(serving.base) else { return };
                if serving.pulse.pong(PingSeq(own)) == Pong::Fresh && serving.silent {
                    serving.silent = false;
                    serving.since = self.now;
                    self.announce("heartbeat_answered", effects);
                }
            }
            At::Held(held) if held.probes_with(seq) => self.probe_answered(effects),
            At::Held(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Starting(_)
            | At::Leaving(_) => {}
        }
    }

    pub(super) fn health_stopping(&mut self) {
        if let At::Serving(serving) = &mut self.at {
            let by = self.now + LEAVING_WITHIN;
            serving.gone_by = Some(serving.gone_by.unwrap_or(by));
        }
    }

    pub(super) fn health_unsupported(&mut self, effects: &mut Vec<Effect>) {
        match &self.at {
            At::Serving(_) | At::Held(_) => {}
            At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Starting(_)
            | At::Leaving(_) => return,
        }
        self.process.refusals += 1;
        if self.process.refusals >= HEALTH_REFUSALS {
            let detail = "it does not know sep.health".to_owned();
            self.detail = Some(detail.clone());
            let then = Then::Fail(FailedReason::Incompatible);
            let (reason, kind) = (ShutdownReason::VersionUnsupported, ExitKind::Incompatible);
            return self.depart(reason, kind, Some(detail), then, effects);
        }
        // It is a poor answer, but only a living process can give it.
        match &self.at {
            At::Held(held) if matches!(held.how, Hold::Resuming { .. }) => self.probe_answered(effects),
            _ => self.pong(PingSeq(self.process.pings), effects),
        }
    }

    pub(super) fn overdue(&mut self, effects: &mut Vec<Effect>) {
        let ready_for = self.ready_for();
        if let At::Serving(serving) = &mut self.at {
            serving.overdue = true;
            self.process.stretch = ready_for;
            self.announce("overdue", effects);
        }
    }

    pub(super) fn answered(&mut self, effects: &mut Vec<Effect>) {
        if let At::Serving(serving) = &mut self.at
            && serving.overdue
        {
            serving.overdue = false;
            serving.since = self.now;
            self.announce("answered", effects);
        }
    }

    pub(super) fn broken(&mut self, kind: ExitKind, detail: String, effects: &mut Vec<Effect>) {
        match &self.at {
            At::Starting(_) | At::Serving(_) | At::Held(_) => {}
            // One that is leaving may close its channel as it likes.
            At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } | At::Leaving(_) => return,
        }
        match kind {
            ExitKind::ChannelLost => {
                let settled = self.now + CHANNEL_SETTLE;
                self.process.lost.get_or_insert((settled, detail));
            }
            _ => self.condemn(kind, Some(detail), effects),
        }
    }

    pub(super) fn channel_stayed_lost(&mut self, detail: String, effects: &mut Vec<Effect>) {
        match &self.at {
            At::Starting(_) | At::Serving(_) | At::Held(_) => {
                self.condemn(ExitKind::ChannelLost, Some(detail), effects);
            }
            At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } | At::Leaving(_) => {}
        }
    }
}
