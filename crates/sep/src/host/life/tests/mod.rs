//! A bench for lives: events as words, effects as words, and a clock that moves when it is told to.

mod crash;
mod health;
mod pause;
mod start;
mod stop;

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{Moment, PingSeq};

use super::*;
use crate::protocol::{DisabledReason, ExitKind, LaunchReason, ShutdownReason, State};

/// One extension on the bench.
struct Bench {
    life: Life,
    now: Moment,
}

fn desktop() -> LifeTerms {
    LifeTerms {
        startup: Duration::from_secs(15),
        heartbeat: Duration::from_secs(10),
        missed: NonZeroU32::new(3).expect("not zero"),
        threshold: NonZeroU32::new(5).expect("not zero"),
        activation: Activation::Eager,
        android: None,
    }
}

fn phone() -> LifeTerms {
    LifeTerms { android: Some(AndroidTerms { background_ok: false }), ..desktop() }
}

fn patient_phone() -> LifeTerms {
    LifeTerms { android: Some(AndroidTerms { background_ok: true }), ..desktop() }
}

impl Bench {
    fn new(terms: LifeTerms) -> Self {
        Self { life: Life::new(terms, 7), now: Moment::ORIGIN }
    }

    /// An admitted extension that is not started.
    fn admitted(terms: LifeTerms) -> Self {
        let mut bench = Self::new(terms);
        assert_eq!(bench.does("admitted"), "");
        bench
    }

    fn ready(terms: LifeTerms) -> Self {
        let mut bench = Self::admitted(terms);
        assert_eq!(bench.does("start first"), "stopped → starting: first, spawn first");
        bench.becomes_ready();
        bench
    }

    /// From a spawn that was asked for to ready.
    fn becomes_ready(&mut self) {
        assert_eq!(self.does("spawned"), "");
        assert_eq!(self.does("attached"), "");
        assert_eq!(self.does("initialized"), "starting → ready: initialized");
    }

    /// What the host has to do about this.
    fn does(&mut self, event: &str) -> String {
        self.step(parse(event))
    }

    fn step(&mut self, event: Event) -> String {
        let mut effects = Vec::new();
        self.life.step(self.now, event, &mut effects);
        if let Some(deadline) = self.life.deadline() {
            assert!(deadline > self.now, "the deadline {deadline} has passed at {}", self.now);
        }
        effects.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    /// Lets time pass, with a tick at every deadline in it; what the host has to do at which second.
    fn after(&mut self, seconds: f64) -> String {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut said = Vec::new();
        while let Some(deadline) = self.life.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            let effects = self.step(Event::Tick);
            if !effects.is_empty() {
                said.push(format!("@{} {effects}", deadline.as_nanos() as f64 / 1e9));
            }
        }
        self.now = until;
        said.join(" | ")
    }

    /// Time passes and nobody ticks: the host was asleep.
    fn sleep(&mut self, seconds: f64) {
        self.now = self.now + Duration::from_secs_f64(seconds);
    }

    fn state(&self) -> State {
        self.life.view().state
    }

    /// Waits for the next start and takes it to ready.
    fn comes_back(&mut self) {
        let due = self.life.view().next_start.expect("a restart is due");
        self.now = due;
        assert!(self.does("tick").ends_with("spawn restart"));
        self.becomes_ready();
    }

    fn crash(&mut self) -> String {
        self.does("exit 1")
    }
}

fn parse(text: &str) -> Event {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "start" => Event::Start(LaunchReason::parse(rest).expect("a launch reason")),
        "stop" => Event::Stop(ShutdownReason::parse(rest).unwrap_or(ShutdownReason::Stop)),
        "disable" => Event::Disable(DisabledReason::parse(rest).expect("a reason")),
        "enable" => Event::Enable,
        "reset" => Event::Reset,
        "admitted" => Event::Admitted,
        "refused" => Event::NotAdmitted(State::parse(rest).expect("a state"), format!("because {rest}")),
        "removed" => Event::Removed,
        "spawned" => Event::Spawned,
        "unspawned" => Event::SpawnFailed(match rest {
            "missing" => SpawnTrouble::Missing,
            "resource" => SpawnTrouble::Resource,
            "sandbox" => SpawnTrouble::Sandbox,
            "tampered" => SpawnTrouble::Tampered,
            "other" => SpawnTrouble::Other,
            unknown => panic!("no such trouble: {unknown}"),
        }),
        "attached" => Event::Attached,
        "initialized" => Event::Initialized,
        "incompatible" => Event::Incompatible(rest.to_owned()),
        "initialize_failed" => Event::InitializeFailed,
        "pong" => Event::Pong(PingSeq(rest.parse().expect("a number"))),
        "health_stopping" => Event::HealthStopping,
        "health_unsupported" => Event::HealthUnsupported,
        "overdue" => Event::Overdue,
        "answered" => Event::Answered,
        "broken" => Event::Broken(ExitKind::parse(rest).expect("a kind"), format!("{rest} it was")),
        "exit" => Event::Exited(Status::Code(rest.parse().expect("a code"))),
        "signal" => Event::Exited(Status::Signal(rest.parse().expect("a number"))),
        "paused" => Event::PauseAcknowledged,
        "told" => Event::Told(match rest {
            "resumed" => LifecycleTopic::Resumed,
            "background" => LifecycleTopic::Background,
            unknown => panic!("no such topic: {unknown}"),
        }),
        "probed" => Event::ProbeAnswered,
        "tick" => Event::Tick,
        _ => {
            let script: platform::Script = format!("t=0 {text}").parse().expect("an event or a signal");
            Event::Signal(script.entries()[0].1)
        }
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Spawn(reason) => format!("spawn {reason}"),
        Effect::Stop { reason, ladder } => {
            format!("stop {reason} {}+{}", ladder.ask.as_secs(), ladder.term.as_secs())
        }
        Effect::Kill => "kill".to_owned(),
        Effect::Ping(seq) => format!("ping {}", seq.0),
        Effect::Probe(seq) => format!("probe {}", seq.0),
        Effect::Tell(topic) => format!("tell {}", topic.as_str()),
        Effect::Suspend => "suspend".to_owned(),
        Effect::Resume => "resume".to_owned(),
        Effect::Changed(Transition { from, to, cause }) => format!("{from} → {to}: {cause}"),
        Effect::Ended(exit) => {
            let counted = if exit.counted { " counted" } else { "" };
            let code = exit.code.map(|code| format!(" {code}")).unwrap_or_default();
            let signal = exit.signal.map(|signal| format!(" by {signal}")).unwrap_or_default();
            format!("ended {}{code}{signal}{counted}", exit.kind)
        }
        Effect::Persist => "persist".to_owned(),
    }
}
