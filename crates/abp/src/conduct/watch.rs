//! The eye on a run: each event is judged, recorded and shown, in that order.

use std::time::Duration;

use tokio::time::Instant;

use super::job::Audience;
use crate::govern::{Clock, EndReason, Governor, RunClock, Verdict};
use crate::host::{Warning, Watcher, Wish};
use crate::protocol::{AgentEvent, Ask, AskAction};
use crate::receipt::{RecordError, Recorder};

/// What is recorded is on disk at the latest after this time, as far as we are concerned.
const FLUSH: Duration = Duration::from_secs(1);

/// Watches one run for its governor, its record and its audience.
pub(super) struct Observer<'a> {
    governor: Governor,
    clock: RunClock,
    began: Instant,
    recorder: Recorder,
    audience: &'a mut dyn Audience,
    events: u64,
    /// When what was recorded must be written out; none when it is.
    flush_at: Option<Instant>,
    ended: Option<EndReason>,
    broken: Option<RecordError>,
}

/// What is left of the eye when the run is over.
pub(super) struct Watched {
    pub(super) governor: Governor,
    pub(super) recorder: Recorder,
    pub(super) ended: Option<EndReason>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        governor: Governor,
        clock: RunClock,
        recorder: Recorder,
        audience: &'a mut dyn Audience,
    ) -> Self {
        let began = Instant::now();
        Self {
            governor,
            clock,
            began,
            recorder,
            audience,
            events: 0,
            flush_at: None,
            ended: None,
            broken: None,
        }
    }

    /// The run is over.
    pub(super) fn finish(mut self) -> Result<Watched, RecordError> {
        self.governor.close(&self.clock);
        match self.broken {
            Some(error) => Err(error),
            None => Ok(Watched { governor: self.governor, recorder: self.recorder, ended: self.ended }),
        }
    }

    fn act(&mut self, verdict: Verdict) -> Wish {
        match verdict {
            Verdict::Go => Wish::GoOn,
            Verdict::Warn(text) => {
                self.audience.remark(&text);
                Wish::GoOn
            }
            Verdict::Raise(request) => {
                self.audience.approval(&request);
                Wish::GoOn
            }
            Verdict::Answer(answer) => Wish::Answer(answer),
            Verdict::End(reason) => {
                let why = reason.to_string();
                self.ended.get_or_insert(reason);
                Wish::Cancel { why }
            }
        }
    }

    fn record(&mut self, event: &AgentEvent<'_>) -> Result<(), Wish> {
        let recorded = self.recorder.event(event);
        self.kept(recorded)?;
        if self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + FLUSH);
        }
        Ok(())
    }

    /// A run that cannot be recorded must not go on.
    fn kept(&mut self, outcome: Result<(), RecordError>) -> Result<(), Wish> {
        outcome.map_err(|error| {
            let why = format!("it cannot be recorded any more: {error}");
            self.broken.get_or_insert(error);
            Wish::Cancel { why }
        })
    }
}

impl Watcher for Observer<'_> {
    fn event(&mut self, event: &AgentEvent<'_>, line: &str) -> Wish {
        self.events += 1;
        if let Err(wish) = self.record(event) {
            return wish;
        }
        let verdict = self.governor.event(&self.clock, event);
        self.audience.event(self.events, event, line);
        match verdict {
            Verdict::Go => Wish::GoOn,
            verdict => self.act(verdict),
        }
    }

    fn ask(&mut self, ask: &Ask<'_>) -> Wish {
        if ask.action == AskAction::Question && self.audience.question(ask) {
            return Wish::GoOn;
        }
        let verdict = self.governor.ask(&self.clock, ask);
        self.act(verdict)
    }

    fn warning(&mut self, warning: &Warning) {
        self.audience.warning(warning);
    }

    fn wake_at(&self) -> Option<Instant> {
        let governor = self.governor.wake_at().map(|since| self.began + since);
        governor.into_iter().chain(self.flush_at).min()
    }

    fn tick(&mut self, now: Instant) -> Wish {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            let flushed = self.recorder.flush();
            if let Err(wish) = self.kept(flushed) {
                return wish;
            }
        }
        match self.governor.wake_at() {
            Some(since) if self.clock.now().since_start >= since => {
                let verdict = self.governor.tick(&self.clock);
                self.act(verdict)
            }
            Some(_) | None => Wish::GoOn,
        }
    }
}
