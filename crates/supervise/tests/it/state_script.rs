//! A tiny notation for the life of a child, so that a test is one line of what happens and one line of what must follow.
//!
//! Events, each with an optional `@seconds` (absolute) and `#process` (default: the current one):
//! `start stop stop! restart spawned ready exit(1) signal(9) pong(1) beat stream+ stream- fault(channel_lost)`
//! `spawn_failed(resource) ask_refused wait stall`. Before an event every deadline that has passed is ticked, as the driver
//! does; `wait` also ticks one that is due right then; `stall` is a host that slept and ticks only once, at its end.
//!
//! What follows: phases by their code, `spawn#1 cancel#1 ask term kill ping1` for actions, `ended(cause → next)`, and
//! `@seconds` whenever time has moved on.

use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{
    Action, Event, Fault, Happening, Incarnation, Ladder, Machine, Moment, Next, PingSeq, Policy,
    SpawnFailure, step,
};

/// The ladder of every `stop` and `restart` in a script.
pub(crate) const LADDER: Ladder = Ladder { ask: Duration::from_secs(3), term: Duration::from_secs(2) };

/// Plays `events` to a machine under `policy` and compares all that follows with `expected`.
#[track_caller]
pub(crate) fn check(policy: Policy, events: &str, expected: &str) {
    let got = play(policy, events);
    let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(got, expected, "\nevents: {events}");
}

/// Plays `events` and returns all that follows.
pub(crate) fn play(policy: Policy, events: &str) -> String {
    let mut player = Player {
        machine: Machine::new(policy, 1).expect("the policy of a test makes sense"),
        now: Moment::ORIGIN,
        shown: Moment::ORIGIN,
        out: Vec::new(),
    };
    for word in events.split_whitespace() {
        player.play(word);
    }
    player.out.join(" ")
}

struct Player {
    machine: Machine,
    now: Moment,
    shown: Moment,
    out: Vec<String>,
}

impl Player {
    fn play(&mut self, word: &str) {
        let (word, at) = match word.split_once('@') {
            Some((word, seconds)) => (word, Moment::after_origin(Duration::from_secs_f64(number(seconds)))),
            None => (word, self.now),
        };
        if word != "stall" {
            self.tick_while(|deadline| if word.starts_with("wait") { deadline <= at } else { deadline < at });
        }
        self.now = at;
        // Which process is the current one is only known after the ticks.
        let (word, incarnation) = match word.split_once('#') {
            Some((word, incarnation)) => (word, Incarnation(incarnation.parse().expect("a process number"))),
            None => (word, self.machine.incarnation()),
        };
        self.step(event(word, incarnation, at));
    }

    fn tick_while(&mut self, due: impl Fn(Moment) -> bool) {
        for _ in 0..100_000 {
            match self.machine.next_deadline() {
                Some(deadline) if due(deadline) => {
                    self.now = self.now.max(deadline);
                    self.step(Event::Tick);
                }
                Some(_) | None => return,
            }
        }
        panic!("the machine never comes to rest");
    }

    fn step(&mut self, event: Event) {
        for action in step(&mut self.machine, event, self.now) {
            let text = show(action);
            if self.now != self.shown {
                self.shown = self.now;
                let seconds = self.now.since(Moment::ORIGIN).as_secs_f64();
                self.out.push(format!("@{}", (seconds * 1000.0).round() / 1000.0));
            }
            self.out.push(text);
        }
    }
}

fn event(word: &str, incarnation: Incarnation, at: Moment) -> Event {
    let (name, argument) = match word.split_once('(') {
        Some((name, argument)) => (name, argument.trim_end_matches(')')),
        None => (word, ""),
    };
    let happening = match name {
        "start" => return Event::Start,
        "stop" => return Event::Stop(LADDER),
        "stop!" => return Event::StopNow,
        "restart" => return Event::Restart(LADDER),
        "wait" | "stall" => return Event::Tick,
        "spawned" => Happening::Spawned,
        "ready" => Happening::Ready,
        "exit" => Happening::Reaped(Status::Code(argument.parse().expect("an exit code"))),
        "signal" => Happening::Reaped(Status::Signal(argument.parse().expect("a signal"))),
        "pong" => Happening::Pong(PingSeq(argument.parse().expect("a ping"))),
        // `beat(3)` is a sign of life from second 3 that is delivered only now.
        "beat" if argument.is_empty() => Happening::Beat(at),
        "beat" => Happening::Beat(Moment::after_origin(Duration::from_secs_f64(number(argument)))),
        "stream+" => Happening::StreamBegan,
        "stream-" => Happening::StreamEnded,
        "ask_refused" => Happening::AskRefused,
        "fault" => Happening::Fault(match argument {
            "channel_lost" => Fault::ChannelLost,
            "protocol_violation" => Fault::ProtocolViolation,
            "write_stall" => Fault::WriteStall,
            "unhealthy" => Fault::Unhealthy,
            "incompatible" => Fault::Incompatible,
            other => panic!("no fault is called {other}"),
        }),
        "spawn_failed" => Happening::SpawnFailed(match argument {
            "permanent" => SpawnFailure::Permanent,
            "sandbox" => SpawnFailure::Sandbox,
            "resource" => SpawnFailure::Resource,
            "unexplained" => SpawnFailure::Unexplained,
            "cancelled" => SpawnFailure::Cancelled,
            other => panic!("no spawn failure is called {other}"),
        }),
        other => panic!("no event is called {other}"),
    };
    Event::Of(incarnation, happening)
}

fn show(action: Action) -> String {
    match action {
        Action::Spawn(incarnation) => format!("spawn{incarnation}"),
        Action::CancelSpawn(incarnation) => format!("cancel{incarnation}"),
        Action::Ask { within: _ } => "ask".into(),
        Action::Term => "term".into(),
        Action::Kill => "kill".into(),
        Action::Ping(seq) => format!("ping{}", seq.0),
        Action::Changed(change) => change.to.code().into(),
        Action::Ended(ending) => match ending.next {
            Next::Restart { after, attempt } => {
                format!("ended({}→restart{attempt}+{})", ending.cause, after.as_secs_f64())
            }
            Next::Respawn => format!("ended({}→respawn)", ending.cause),
            Next::Final(why) => format!("ended({}→{})", ending.cause, why.code()),
        },
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number of seconds"))
}
