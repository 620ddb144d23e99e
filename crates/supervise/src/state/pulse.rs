//! Is a ready child still there? The heartbeat rules, for pings that we send and for signs of life that it sends.

use std::num::NonZeroU32;
use std::time::Duration;

use super::policy::{Counted, Heartbeat};
use super::time::Moment;
use super::words::PingSeq;

/// What is known about the heartbeat of one ready process.
#[derive(Clone, Debug)]
pub struct Pulse(Watch);

#[derive(Clone, Debug)]
enum Watch {
    /// Nobody looks.
    Unwatched,
    /// We ping.
    Pinged(Pinged),
    /// We listen.
    Heard(Heard),
}

/// Pings that we send.
#[derive(Clone, Debug)]
struct Pinged {
    every: Duration,
    limit: NonZeroU32,
    next: Moment,
    latest: PingSeq,
    answered: Answered,
    missed: u32,
}

/// Signs of life that the child sends.
#[derive(Clone, Debug)]
struct Heard {
    silence: Duration,
    last: Moment,
    listening: Listening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listening {
    Always,
    Streaming,
    NotStreaming,
}

/// What the timer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Too early, or nothing to look at.
    Nothing,
    /// Send this ping; the previous one was answered.
    Ping(PingSeq),
    /// Send this ping; the previous one was not answered.
    Missed(PingSeq),
    /// That was one too many.
    Dead,
}

impl Pulse {
    /// The pulse of a child that became ready at `now`.
    pub fn begin(heartbeat: Heartbeat, now: Moment) -> Self {
        match heartbeat {
            Heartbeat::None => Self(Watch::Unwatched),
            Heartbeat::WePing { every, missed } => Self(Watch::Pinged(Pinged {
                every,
                limit: missed,
                next: now + every,
                latest: PingSeq(0),
                answered: Answered::Yes,
                missed: 0,
            })),
            Heartbeat::TheyBeat { silence, counted } => {
                let listening = match counted {
                    Counted::Always => Listening::Always,
                    Counted::WhileStreaming => Listening::NotStreaming,
                };
                Self(Watch::Heard(Heard { silence, last: now, listening }))
            }
        }
    }

    /// When to look again.
    pub fn deadline(&self) -> Option<Moment> {
        match &self.0 {
            Watch::Unwatched | Watch::Heard(Heard { listening: Listening::NotStreaming, .. }) => None,
            Watch::Pinged(pinged) => Some(pinged.next),
            Watch::Heard(heard) => Some(heard.last + heard.silence),
        }
    }

    /// Looks, because the time has come.
    pub fn look(&mut self, now: Moment) -> Beat {
        match self.deadline() {
            Some(due) if due <= now => match &mut self.0 {
                Watch::Unwatched => Beat::Nothing,
                Watch::Pinged(pinged) => pinged.round(now.since(due), now),
                Watch::Heard(heard) => heard.silent(now.since(due), now),
            },
            Some(_) | None => Beat::Nothing,
        }
    }

    /// An answer to a ping arrived; says whether it was the answer we wait for.
    pub fn pong(&mut self, seq: PingSeq) -> Pong {
        match &mut self.0 {
            Watch::Pinged(pinged) if pinged.latest == seq && pinged.answered == Answered::No => {
                pinged.answered = Answered::Yes;
                pinged.missed = 0;
                Pong::Fresh
            }
            Watch::Pinged(_) | Watch::Unwatched | Watch::Heard(_) => Pong::Late,
        }
    }

    /// A sign of life at `at`, which may be a while ago: the driver collects them.
    pub fn beat(&mut self, at: Moment) {
        if let Watch::Heard(heard) = &mut self.0 {
            heard.last = heard.last.max(at);
        }
    }

    /// Silence counts from here.
    pub fn stream_began(&mut self, now: Moment) {
        if let Watch::Heard(heard) = &mut self.0
            && heard.listening == Listening::NotStreaming
        {
            heard.listening = Listening::Streaming;
            heard.last = now;
        }
    }

    /// Silence no longer counts.
    pub fn stream_ended(&mut self) {
        if let Watch::Heard(heard) = &mut self.0
            && heard.listening == Listening::Streaming
        {
            heard.listening = Listening::NotStreaming;
        }
    }
}

/// Whether an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pong {
    /// It answers the latest ping.
    Fresh,
    /// It answers an older one, or none, or comes a second time.
    Late,
}

impl Pinged {
    fn round(&mut self, late: Duration, now: Moment) -> Beat {
        // A timer that fired more than an interval late says that we were stalled (a suspended laptop, a busy host), and then
        // the child had no fair chance to be heard.
        let unanswered = self.answered == Answered::No && late <= self.every;
        if unanswered {
            self.missed += 1;
            if self.missed >= self.limit.get() {
                return Beat::Dead;
            }
        }
        self.latest = PingSeq(self.latest.0 + 1);
        self.answered = Answered::No;
        self.next = now + self.every;
        if unanswered { Beat::Missed(self.latest) } else { Beat::Ping(self.latest) }
    }
}

impl Heard {
    fn silent(&mut self, late: Duration, now: Moment) -> Beat {
        if late > self.silence {
            self.last = now;
            return Beat::Nothing;
        }
        Beat::Dead
    }
}
