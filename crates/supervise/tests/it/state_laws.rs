//! Laws that hold for every life, not only for those that somebody thought of.
//!
//! A simulated world answers the machine truthfully (a spawn is answered once, a process ends once, a kill works) while
//! everything else is arbitrary: when, in which order, what the owner wants and what stale or invented events arrive.

use std::num::NonZeroU32;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{
    Action, Ask, Backoff, Counted, CrashLimit, Event, Fault, Happening, Heartbeat, Incarnation, Ladder,
    Machine, Moment, Next, Phase, PingSeq, Policy, Restart, Retry, SpawnFailure, step,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

pub(crate) fn trials() -> Vec<Trial> {
    crate::trials![
        no_life_breaks_the_laws,
        no_lie_breaks_the_machine,
        every_stop_ends_within_its_budgets,
        an_idle_machine_wants_no_timer,
    ]
}

const CASES: u32 = 4000;

/// What may happen next in the world; whether it can is decided by the world.
#[derive(Clone, Debug)]
enum Move {
    /// Time passes; every deadline in it is ticked.
    Pass(Duration),
    /// Time passes and nobody ticks: the host was asleep.
    Sleep(Duration),
    Owner(Event),
    /// The launch under way is answered.
    AnswerSpawn(Result<(), SpawnFailure>),
    /// The process ends by itself.
    End(Status),
    /// Something about the current process.
    Happens(Happening),
    /// Something about an earlier process.
    Stale(u32, Happening),
}

fn ladder() -> impl Strategy<Value = Ladder> {
    let millis = || prop_oneof![1 => Just(0u64), 4 => 0..5000u64];
    (millis(), millis())
        .prop_map(|(ask, term)| Ladder { ask: Duration::from_millis(ask), term: Duration::from_millis(term) })
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        (0..3i32).prop_map(Status::Code),
        Just(Status::Code(78)),
        Just(Status::Signal(9)),
        Just(Status::Unknown)
    ]
}

fn spawn_failure() -> impl Strategy<Value = SpawnFailure> {
    prop_oneof![
        1 => Just(SpawnFailure::Permanent),
        1 => Just(SpawnFailure::Sandbox),
        4 => Just(SpawnFailure::Resource),
        2 => Just(SpawnFailure::Unexplained),
    ]
}

/// Everything that can be said of a process except its birth and its death, which only the world decides.
fn remark() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => Just(Happening::Ready),
        4 => (0..6u64).prop_map(|seq| Happening::Pong(PingSeq(seq))),
        1 => (0..100_000u64).prop_map(|ms| Happening::Beat(Moment::after_origin(Duration::from_millis(ms)))),
        1 => Just(Happening::StreamBegan),
        1 => Just(Happening::StreamEnded),
        1 => Just(Happening::AskRefused),
        1 => prop_oneof![
            Just(Fault::ChannelLost),
            Just(Fault::ProtocolViolation),
            Just(Fault::WriteStall),
            Just(Fault::Unhealthy),
            Just(Fault::Incompatible),
        ]
        .prop_map(Happening::Fault),
    ]
}

fn any_happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => remark(),
        1 => Just(Happening::Spawned),
        1 => spawn_failure().prop_map(Happening::SpawnFailed),
        1 => Just(Happening::SpawnFailed(SpawnFailure::Cancelled)),
        1 => status().prop_map(Happening::Reaped),
    ]
}

fn owner() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Start),
        1 => ladder().prop_map(Event::Stop),
        1 => Just(Event::StopNow),
        2 => ladder().prop_map(Event::Restart),
        1 => Just(Event::Tick),
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    let millis = |most| (0..most).prop_map(Duration::from_millis);
    prop_oneof![
        6 => millis(8000u64).prop_map(Move::Pass),
        1 => millis(100_000u64).prop_map(Move::Sleep),
        2 => owner().prop_map(Move::Owner),
        8 => prop_oneof![6 => Just(Ok(())), 1 => spawn_failure().prop_map(Err)].prop_map(Move::AnswerSpawn),
        4 => status().prop_map(Move::End),
        8 => remark().prop_map(Move::Happens),
        2 => (1..4u32, any_happening()).prop_map(|(back, what)| Move::Stale(back, what)),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let heartbeat = prop_oneof![
        Just(Heartbeat::None),
        (1..10_000u64, 1..4u32).prop_map(|(ms, missed)| Heartbeat::WePing {
            every: Duration::from_millis(ms),
            missed: NonZeroU32::new(missed).expect("from one"),
        }),
        (1..50_000u64, prop_oneof![Just(Counted::Always), Just(Counted::WhileStreaming)])
            .prop_map(|(ms, counted)| Heartbeat::TheyBeat { silence: Duration::from_millis(ms), counted }),
    ];
    let retry = (1..2000u64, 0..=50u8, 1..6u32, proptest::option::of(1..6u32)).prop_map(
        |(first, jitter, crashes, attempts)| Retry {
            backoff: Backoff {
                first: Duration::from_millis(first),
                cap: Duration::from_millis(first * 8),
                jitter_percent: jitter,
            },
            stable_after: Duration::from_secs(20),
            max_attempts: attempts.and_then(NonZeroU32::new),
            crash_loop: CrashLimit {
                crashes: NonZeroU32::new(crashes).expect("from one"),
                within: Duration::from_secs(1000),
            },
            slow_crash: None,
            permanent_codes: vec![78],
        },
    );
    let restart = prop_oneof![
        1 => Just(Restart::Never),
        4 => retry.clone().prop_map(Restart::OnFailure),
        4 => retry.prop_map(Restart::Always),
    ];
    let ready_within = proptest::option::of((1..20_000u64).prop_map(Duration::from_millis));
    let ask = prop_oneof![Just(Ask::Session), Just(Ask::Skip)];
    (ready_within, heartbeat, restart, ask).prop_map(|(ready_within, heartbeat, restart, ask)| Policy {
        ready_within,
        heartbeat,
        restart,
        ask,
    })
}

/// The world around a machine, which checks the laws at every step.
struct World {
    machine: Machine,
    now: Moment,
    launching: Option<Incarnation>,
    alive: Option<Incarnation>,
    /// The kill was sent; the process ends with the next [`World::bury`].
    doomed: bool,
    spawns: u32,
}

impl World {
    fn new(policy: Policy) -> Self {
        let machine = Machine::new(policy, 7).expect("a policy that can work");
        Self { machine, now: Moment::ORIGIN, launching: None, alive: None, doomed: false, spawns: 0 }
    }

    fn play(&mut self, next: &Move) {
        match next {
            Move::Pass(time) => self.pass(*time),
            Move::Sleep(time) => {
                self.now = self.now + *time;
                self.step(Event::Tick);
            }
            Move::Owner(event) => self.step(*event),
            Move::AnswerSpawn(answer) => self.answer(*answer),
            Move::End(status) => self.end(*status),
            Move::Happens(happening) => {
                // Before it exists nobody can say anything about it.
                if let Some(incarnation) = self.alive {
                    self.step(Event::Of(incarnation, *happening));
                }
            }
            Move::Stale(back, happening) => {
                let current = self.machine.incarnation();
                if let Some(earlier) = current.0.checked_sub(*back) {
                    let (before, deadline) = (self.machine.phase(), self.machine.next_deadline());
                    self.step(Event::Of(Incarnation(earlier), *happening));
                    assert_eq!(
                        (before, deadline),
                        (self.machine.phase(), self.machine.next_deadline()),
                        "stale events change nothing"
                    );
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(deadline) = self.machine.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.step(Event::Tick);
        }
        self.now = until;
    }

    fn answer(&mut self, answer: Result<(), SpawnFailure>) {
        let Some(incarnation) = self.launching.take() else { return };
        match answer {
            Ok(()) => {
                self.alive = Some(incarnation);
                self.step(Event::Of(incarnation, Happening::Spawned));
            }
            Err(failure) => self.step(Event::Of(incarnation, Happening::SpawnFailed(failure))),
        }
    }

    fn end(&mut self, status: Status) {
        if let Some(incarnation) = self.alive.take() {
            self.doomed = false;
            self.step(Event::Of(incarnation, Happening::Reaped(status)));
        }
    }

    /// Whatever was killed ends now.
    fn bury(&mut self) {
        if self.doomed {
            self.end(Status::Signal(9));
        }
    }

    fn step(&mut self, event: Event) {
        let was = self.machine.phase();
        let mut phase = was;
        let actions = step(&mut self.machine, event, self.now);
        let mut cancelled = None;
        for action in actions {
            match action {
                Action::Spawn(incarnation) => {
                    assert_ne!(was, Phase::Exited, "nothing is spawned after the end");
                    assert_eq!((self.alive, self.launching), (None, None), "at most one process at a time");
                    self.spawns += 1;
                    assert_eq!(incarnation, Incarnation(self.spawns), "every process has its own number");
                    self.launching = Some(incarnation);
                }
                Action::CancelSpawn(incarnation) => {
                    assert_eq!(self.launching, Some(incarnation), "only a launch under way can be withdrawn");
                    cancelled = Some(incarnation);
                }
                Action::Ask { .. } | Action::Term | Action::Ping(_) => {
                    assert!(self.alive.is_some(), "{action:?} needs a process");
                    assert!(!self.doomed, "{action:?} after the kill");
                }
                Action::Kill => {
                    assert!(self.alive.is_some(), "a kill needs a process");
                    assert!(!self.doomed, "a process is killed once");
                    self.doomed = true;
                }
                Action::Changed(change) => {
                    assert_eq!(change.from, phase, "transitions form a chain");
                    phase = change.to;
                }
                Action::Ended(ending) => {
                    assert_eq!(self.alive, None, "an end is reported only when everything is reaped");
                    assert!(
                        !matches!(ending.next, Next::Restart { .. })
                            || self.machine.phase() == Phase::Backoff
                    );
                }
            }
        }
        assert_eq!(phase, self.machine.phase(), "every transition is told");
        assert_eq!(phase == Phase::Exited, self.machine.ended().is_some());
        if event == Event::Tick {
            let deadline = self.machine.next_deadline();
            assert!(
                deadline.is_none_or(|deadline| deadline > self.now),
                "a tick that leaves {deadline:?} at {} would spin",
                self.now
            );
        }
        if cancelled.is_some() {
            // The driver withdraws at once and says so.
            self.answer(Err(SpawnFailure::Cancelled));
        }
    }
}

fn run<S: Strategy>(strategy: S, test: impl Fn(S::Value)) {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn no_life_breaks_the_laws() {
    run((policy(), prop::collection::vec(a_move(), 0..80)), |(policy, moves)| {
        let mut world = World::new(policy);
        world.step(Event::Start);
        for next in &moves {
            world.play(next);
        }
    });
}

/// Even events that cannot be true must not panic, spin, or raise the dead.
fn no_lie_breaks_the_machine() {
    let lie = (0..4u32, any_happening(), 0..5000u64).prop_map(|(incarnation, happening, ms)| {
        (Event::Of(Incarnation(incarnation), happening), Duration::from_millis(ms))
    });
    let order = (owner(), 0..5000u64).prop_map(|(event, ms)| (event, Duration::from_millis(ms)));
    run((policy(), prop::collection::vec(prop_oneof![lie, order], 0..80)), |(policy, events)| {
        let mut machine = Machine::new(policy, 7).expect("a policy that can work");
        let mut now = Moment::ORIGIN;
        for (event, later) in events {
            now = now + later;
            let ended = machine.ended();
            let actions = step(&mut machine, event, now);
            if ended.is_some() {
                assert_eq!((actions, machine.ended()), (vec![], ended), "the end is the end");
            }
            step(&mut machine, Event::Tick, now);
            assert!(machine.next_deadline().is_none_or(|deadline| deadline > now));
        }
    });
}

fn every_stop_ends_within_its_budgets() {
    run((policy(), prop::collection::vec(a_move(), 0..60), ladder()), |(policy, moves, ladder)| {
        let mut world = World::new(policy);
        world.step(Event::Start);
        for next in &moves {
            world.play(next);
        }
        world.step(Event::Stop(ladder));
        let asked = world.now;
        // The child ignores everything it can ignore; only a kill works.
        for _ in 0..4 {
            world.bury();
            let Some(deadline) = world.machine.next_deadline() else { break };
            world.now = world.now.max(deadline);
            world.step(Event::Tick);
        }
        world.bury();
        assert_eq!(world.machine.phase(), Phase::Exited, "after {:?}", world.now.since(asked));
        assert!(
            world.now.since(asked) <= ladder.ask + ladder.term,
            "took {:?} of {ladder:?}",
            world.now.since(asked)
        );
        assert_eq!((world.alive, world.launching), (None, None));
    });
}

fn an_idle_machine_wants_no_timer() {
    let policy = Policy {
        ready_within: Some(Duration::from_secs(10)),
        heartbeat: Heartbeat::TheyBeat { silence: Duration::from_secs(45), counted: Counted::WhileStreaming },
        restart: Restart::Never,
        ask: Ask::Session,
    };
    let mut world = World::new(policy);
    world.step(Event::Start);
    assert_eq!(world.machine.next_deadline(), None, "waiting for the launch");
    world.answer(Ok(()));
    world.step(Event::Of(Incarnation(1), Happening::Ready));
    assert_eq!(world.machine.next_deadline(), None, "ready, and nothing to watch");
}
