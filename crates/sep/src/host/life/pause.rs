//! What a phone does to an extension: it is paused, suspended, resumed, taken away. On a desktop none of this happens.

use outrigger_supervise::state::{Moment, PingSeq, Pulse};

use super::leave::Then;
use super::machine::{At, Budget, Life};
use super::platform::{PlatformSignal, TrimLevel};
use super::terms::{ABORT_AFTER, DEBOUNCE, PROBE_WITHIN, TOLD_WITHIN};
use super::words::{Effect, Ground, LifecycleTopic, Transition};
use crate::protocol::{ExitKind, LaunchReason, ShutdownReason};

/// A process that may not serve now.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) how: Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It was told, or will be as soon as it has heard what it was told before.
    Pausing,
    Suspended,
    /// The probe is sent when it was told that it may go on.
    Resuming {
        probe: Option<(PingSeq, Moment)>,
    },
}

/// What it is told outside the queue of events: one thing at a time, and the newest of what waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Voice {
    said: Option<(LifecycleTopic, Moment)>,
    next: Option<LifecycleTopic>,
}

impl Held {
    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.how {
            Hold::Resuming { probe: Some((_, until)) } => Some(until),
            Hold::Resuming { probe: None } | Hold::Pausing | Hold::Suspended => None,
        }
    }

    pub(super) fn probes_with(&self, seq: PingSeq) -> bool {
        matches!(self.how, Hold::Resuming { probe: Some((probe, _)) } if probe == seq)
    }
}

impl Voice {
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.said.map(|(_, until)| until)
    }

    /// Nobody listens any more.
    pub(super) fn hush(&mut self) {
        *self = Self::default();
    }
}

impl Life {
    pub(super) fn signal(&mut self, signal: PlatformSignal, effects: &mut Vec<Effect>) {
        if self.terms.android.is_none() {
            return;
        }
        match signal {
            PlatformSignal::Foreground => self.head_for(Ground::Foreground),
            PlatformSignal::Background => self.head_for(Ground::Background),
            PlatformSignal::TrimMemory(level) => self.trim(level, effects),
            PlatformSignal::Freeze => self.freeze(effects),
            PlatformSignal::Thaw => self.thaw(effects),
            PlatformSignal::Reclaimed => match &self.at {
                At::Starting(_) | At::Serving(_) | At::Held(_) => {
                    self.condemn(ExitKind::Reclaimed, None, effects);
                }
                At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } | At::Leaving(_) => {}
            },
        }
    }

    /// The first of a burst of changes sets the time, the last one the direction: a burst without end cannot delay us.
    fn head_for(&mut self, ground: Ground) {
        let due = self.pending.map_or(self.now + DEBOUNCE, |(_, due)| due);
        self.pending = Some((ground, due));
        if ground == Ground::Foreground {
            // What the user looks at is not frozen, unless it is frozen again later.
            self.frozen = false;
        }
    }

    /// The platform has stayed there long enough to be believed.
    pub(super) fn arrive(&mut self, ground: Ground, effects: &mut Vec<Effect>) {
        self.ground = ground;
        self.settle(effects);
    }

    /// Does what the platform asks of the state we are in; nothing, if that is done already.
    pub(super) fn settle(&mut self, effects: &mut Vec<Effect>) {
        match (&self.at, self.ground) {
            (At::Starting(_), _) => self.pace_start(),
            (At::Serving(_), _) if self.frozen => self.suspend("freeze", effects),
            (At::Serving(serving), Ground::Background) if serving.mode == Ground::Foreground => {
                match self.terms.background_ok() {
                    true => self.change_mode(Ground::Background, LifecycleTopic::Background, effects),
                    false => {
                        self.process.stretch = self.ready_for();
                        self.at = At::Held(Held { how: Hold::Pausing });
                        self.announce("background", effects);
                        self.say(LifecycleTopic::Pausing, effects);
                    }
                }
            }
            (At::Serving(serving), Ground::Foreground) if serving.mode == Ground::Background => {
                self.change_mode(Ground::Foreground, LifecycleTopic::Resumed, effects);
            }
            (At::Held(held), Ground::Foreground) if !self.frozen => match held.how {
                Hold::Pausing | Hold::Suspended => self.resume("foreground", effects),
                Hold::Resuming { .. } => {}
            },
            (At::Reclaimed { not_before }, Ground::Foreground) if self.is_seen() && self.may_start() => {
                let (until, reason) = (*not_before, LaunchReason::ResumeAfterReclaim);
                if until <= self.now {
                    return self.launch(reason, effects);
                }
                self.at = At::Backoff { until, reason };
                self.announce("foreground", effects);
            }
            (At::Rest { want: Some(reason) }, _) if self.may_run_here() && self.may_start() => {
                let reason = *reason;
                self.launch(reason, effects);
            }
            (
                At::Serving(_)
                | At::Held(_)
                | At::Reclaimed { .. }
                | At::Rest { .. }
                | At::Backoff { .. }
                | At::Leaving(_),
                _,
            ) => {}
        }
    }

    /// It goes on serving, in another light: the pulse beats at another pace.
    fn change_mode(&mut self, mode: Ground, topic: LifecycleTopic, effects: &mut Vec<Effect>) {
        let stretch = match mode {
            Ground::Foreground => 1,
            Ground::Background => 2,
        };
        let At::Serving(serving) = &mut self.at else { return };
        serving.mode = mode;
        serving.base = self.process.pings;
        serving.pulse = Pulse::begin(self.terms.heartbeat(stretch), self.now);
        serving.silent = false;
        let state = self.state();
        self.announce(mode.as_str(), effects);
        // The state is the same and yet something changed that shows in it.
        let cause = mode.as_str().to_owned();
        effects.push(Effect::Changed(Transition { from: state, to: state, cause }));
        self.say(topic, effects);
    }

    /// Sets the two timers of a start to what the platform allows it.
    pub(super) fn pace_start(&mut self) {
        let may_go_on = self.terms.background_ok() || self.ground == Ground::Foreground;
        let stands_still = self.frozen || self.ground == Ground::Background;
        let (now, frozen) = (self.now, self.frozen);
        let At::Starting(starting) = &mut self.at else { return };
        starting.budget = match starting.budget {
            Budget::Running { until } if stands_still => Budget::Frozen { left: until.since(now) },
            Budget::Frozen { left } if !stands_still => Budget::Running { until: now + left },
            same @ (Budget::Whole | Budget::Running { .. } | Budget::Frozen { .. }) => same,
        };
        starting.abort = match may_go_on || frozen {
            true => None,
            false => Some(starting.abort.unwrap_or(now + ABORT_AFTER)),
        };
    }

    fn trim(&mut self, level: TrimLevel, effects: &mut Vec<Effect>) {
        let unseen = self.newest_ground() == Ground::Background;
        match &self.at {
            At::Starting(_) | At::Serving(_) | At::Held(_) if unseen && level == TrimLevel::Critical => {
                let detail = Some("memory is short".to_owned());
                self.depart(ShutdownReason::Policy, ExitKind::Reclaimed, detail, Then::Reclaim, effects);
            }
            At::Serving(_) => self.say(LifecycleTopic::Trim(level), effects),
            At::Starting(_)
            | At::Held(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Leaving(_) => {}
        }
    }

    fn freeze(&mut self, effects: &mut Vec<Effect>) {
        self.frozen = true;
        match &self.at {
            At::Starting(_) => self.pace_start(),
            At::Serving(_) => self.suspend("freeze", effects),
            At::Held(held) if held.how != Hold::Suspended => self.suspend("freeze", effects),
            At::Held(_) | At::Rest { .. } | At::Backoff { .. } | At::Reclaimed { .. } | At::Leaving(_) => {}
        }
    }

    fn thaw(&mut self, effects: &mut Vec<Effect>) {
        self.frozen = false;
        match &self.at {
            At::Held(held) if held.how == Hold::Suspended => self.resume("thaw", effects),
            At::Held(_)
            | At::Starting(_)
            | At::Serving(_)
            | At::Rest { .. }
            | At::Backoff { .. }
            | At::Reclaimed { .. }
            | At::Leaving(_) => self.settle(effects),
        }
    }

    fn suspend(&mut self, cause: &str, effects: &mut Vec<Effect>) {
        self.process.stretch = self.ready_for();
        self.at = At::Held(Held { how: Hold::Suspended });
        self.announce(cause, effects);
        // One that was resuming has not been let loose yet.
        if !std::mem::replace(&mut self.process.suspended, true) {
            effects.push(Effect::Suspend);
        }
    }

    fn resume(&mut self, cause: &str, effects: &mut Vec<Effect>) {
        if let At::Held(held) = &mut self.at {
            held.how = Hold::Resuming { probe: None };
            self.announce(cause, effects);
            self.say(LifecycleTopic::Resumed, effects);
        }
    }

    pub(super) fn probe_answered(&mut self, effects: &mut Vec<Effect>) {
        if let At::Held(Held { how: Hold::Resuming { probe: Some(_) } }) = self.at {
            self.serve("probe_answered", effects);
            self.process.suspended = false;
            effects.push(Effect::Resume);
            self.settle(effects);
        }
    }

    pub(super) fn probe_unanswered(&mut self, effects: &mut Vec<Effect>) {
        let detail = Some("it did not come back from its pause".to_owned());
        self.condemn(ExitKind::Reclaimed, detail, effects);
    }

    /// Tells it now, or as soon as it has heard what it was told before.
    fn say(&mut self, topic: LifecycleTopic, effects: &mut Vec<Effect>) {
        match (self.process.voice.said, self.process.voice.next, topic) {
            (None, _, _) => self.tell(topic, effects),
            // A hint about memory must not replace word of a pause.
            (Some(_), Some(_), LifecycleTopic::Trim(_)) => {}
            (Some(_), _, _) => self.process.voice.next = Some(topic),
        }
    }

    fn tell(&mut self, topic: LifecycleTopic, effects: &mut Vec<Effect>) {
        self.process.voice.said = Some((topic, self.now + TOLD_WITHIN));
        effects.push(Effect::Tell(topic));
        if topic == LifecycleTopic::Resumed
            && matches!(&self.at, At::Held(held) if held.how == Hold::Resuming { probe: None })
        {
            let seq = self.next_ping();
            let until = self.now + PROBE_WITHIN;
            if let At::Held(held) = &mut self.at {
                held.how = Hold::Resuming { probe: Some((seq, until)) };
            }
            effects.push(Effect::Probe(seq));
        }
    }

    /// It has heard; a late word about something else than the latest changes nothing.
    pub(super) fn told(&mut self, topic: LifecycleTopic, effects: &mut Vec<Effect>) {
        if self.process.voice.said.is_some_and(|(said, _)| said == topic) {
            self.heard("acknowledged", effects);
        }
    }

    /// It had its time to hear.
    pub(super) fn unheard(&mut self, effects: &mut Vec<Effect>) {
        self.heard("pause_timeout", effects);
    }

    fn heard(&mut self, cause: &str, effects: &mut Vec<Effect>) {
        let Some((topic, _)) = self.process.voice.said.take() else { return };
        let pausing = matches!(&self.at, At::Held(held) if held.how == Hold::Pausing);
        if topic == LifecycleTopic::Pausing && pausing {
            return self.suspend(cause, effects);
        }
        let Some(next) = self.process.voice.next.take() else { return };
        let timely = match (&self.at, next) {
            (At::Held(held), LifecycleTopic::Pausing) => held.how == Hold::Pausing,
            (At::Held(held), LifecycleTopic::Resumed) => matches!(held.how, Hold::Resuming { .. }),
            (At::Serving(serving), LifecycleTopic::Background) => serving.mode == Ground::Background,
            (At::Serving(_), LifecycleTopic::Resumed | LifecycleTopic::Trim(_)) => true,
            _ => false,
        };
        if timely {
            self.tell(next, effects);
        }
    }

    /// Where the platform is going, as far as we have heard.
    pub(crate) fn newest_ground(&self) -> Ground {
        self.pending.map_or(self.ground, |(ground, _)| ground)
    }

    /// Whether the user sees it and it can move: only then is its death its own doing.
    pub(super) fn is_seen(&self) -> bool {
        self.ground == Ground::Foreground && self.newest_ground() == Ground::Foreground && !self.frozen
    }

    /// Whether the platform would let a process live now.
    pub(super) fn may_run_here(&self) -> bool {
        self.is_seen() || (self.terms.background_ok() && !self.frozen)
    }
}
