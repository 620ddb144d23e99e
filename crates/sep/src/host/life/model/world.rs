//! A world around one extension: people, a platform, a process that does as it likes, and a driver that tells the truth.

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{Moment, PingSeq};

use super::super::words::{Effect, Event, LifecycleTopic, SpawnTrouble};
use super::super::{Activation, AndroidTerms, Life, LifeTerms, PlatformSignal, TrimLevel};
use super::chance::Chance;
use super::laws::Laws;
use super::reference::Reference;
use crate::protocol::{DisabledReason, ExitKind, LaunchReason, ShutdownReason, State};

/// So many moves are more than enough to come to rest when everybody helps.
const MOVES_TO_REST: u32 = 400;

/// How to see a broken law again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case {
    Seed { name: &'static str, seed: u64, steps: u32 },
    Bytes { name: &'static str },
}

pub(super) struct World<'a> {
    case: Case,
    chance: Chance<'a>,
    life: Life,
    laws: Laws,
    reference: Option<Reference>,
    terms: LifeTerms,
    now: Moment,
    process: Process,
    step: u32,
}

/// The process as it really is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    None,
    /// Asked for, and not yet there.
    Unborn,
    Alive {
        /// When it will be gone, because it was asked or killed.
        gone: Option<Moment>,
        ping: Option<PingSeq>,
        told: Option<LifecycleTopic>,
        probed: bool,
    },
}

impl<'a> World<'a> {
    pub(super) fn desktop(mut chance: Chance<'a>, case: Case) -> Self {
        let terms = some_terms(&mut chance, None);
        let reference = Some(Reference::new(terms));
        Self::new(chance, case, terms, reference)
    }

    pub(super) fn phone(mut chance: Chance<'a>, case: Case) -> Self {
        let background_ok = chance.once_in(2);
        let terms = some_terms(&mut chance, Some(AndroidTerms { background_ok }));
        Self::new(chance, case, terms, None)
    }

    fn new(chance: Chance<'a>, case: Case, terms: LifeTerms, reference: Option<Reference>) -> Self {
        Self {
            case,
            chance,
            life: Life::new(terms, 11),
            laws: Laws::new(terms),
            reference,
            terms,
            now: Moment::ORIGIN,
            process: Process::None,
            step: 0,
        }
    }

    /// Lives for so many steps, and then comes to rest.
    pub(super) fn live(mut self, steps: u32) {
        self.tell(Event::Admitted);
        while self.step < steps && !self.chance.is_over() {
            self.step += 1;
            self.play();
        }
        self.come_to_rest();
    }

    fn play(&mut self) {
        match self.chance.below(20) {
            0..=3 => self.pass(),
            4..=5 => self.people(),
            6..=8 if self.terms.android.is_some() => self.platform(),
            6 => self.storm(),
            _ => self.process(),
        }
    }

    /// Time passes; usually somebody ticks, sometimes the host was asleep.
    fn pass(&mut self) {
        let millis =
            self.chance.one(&[1, 100, 250, 500, 2000, 3000, 6000, 10_000, 30_000, 300_000, 3_600_000]);
        let until = self.now + Duration::from_millis(millis);
        match self.chance.once_in(6) {
            true => self.now = until,
            false => self.pass_until(until),
        }
        self.tell(Event::Tick);
    }

    fn pass_until(&mut self, until: Moment) {
        while let Some(next) = self.next_event().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.at_its_time();
        }
        self.now = self.now.max(until);
    }

    fn next_event(&self) -> Option<Moment> {
        let gone = match self.process {
            Process::Alive { gone, .. } => gone,
            Process::None | Process::Unborn => None,
        };
        [self.life.deadline(), gone].into_iter().flatten().min()
    }

    fn at_its_time(&mut self) {
        match self.process {
            Process::Alive { gone: Some(gone), .. } if gone <= self.now => {
                let status = self.some_status();
                self.tell(Event::Exited(status));
            }
            Process::Alive { .. } | Process::None | Process::Unborn => self.tell(Event::Tick),
        }
    }

    fn people(&mut self) {
        let event = match self.chance.below(16) {
            0..=4 => Event::Start(self.chance.one(LaunchReason::ALL)),
            5..=6 => Event::Start(LaunchReason::Manual),
            7..=8 => Event::Stop(self.chance.one(ShutdownReason::ALL)),
            9 => Event::Disable(self.chance.one(DisabledReason::ALL)),
            10 => Event::Enable,
            11 => Event::Reset,
            12..=13 => Event::Admitted,
            14 => {
                let states = [State::Invalid, State::Blocked, State::Unavailable, State::NeedsConsent];
                Event::NotAdmitted(self.chance.one(&states), "so it is".to_owned())
            }
            _ => Event::Removed,
        };
        self.tell(event);
    }

    fn platform(&mut self) {
        let signal = match self.chance.below(9) {
            0..=2 => PlatformSignal::Foreground,
            3..=4 => PlatformSignal::Background,
            5 => PlatformSignal::TrimMemory(self.chance.one(TrimLevel::ALL)),
            6 => PlatformSignal::Freeze,
            7 => PlatformSignal::Thaw,
            _ => PlatformSignal::Reclaimed,
        };
        self.tell(Event::Signal(signal));
    }

    /// Many small things at once.
    fn storm(&mut self) {
        for _ in 0..20 {
            let event = match self.chance.below(4) {
                0 => Event::Overdue,
                1 => Event::Answered,
                2 => Event::Pong(PingSeq(self.chance.below(4) as u64)),
                _ => Event::Tick,
            };
            self.tell(event);
        }
    }

    /// The process does something, if there is one.
    fn process(&mut self) {
        let event = match self.process {
            Process::None => Event::Start(LaunchReason::Manual),
            Process::Unborn if self.chance.once_in(5) => Event::SpawnFailed(self.chance.one(&[
                SpawnTrouble::Resource,
                SpawnTrouble::Other,
                SpawnTrouble::Missing,
                SpawnTrouble::Sandbox,
                SpawnTrouble::Tampered,
            ])),
            Process::Unborn => Event::Spawned,
            Process::Alive { ping, told, probed, .. } => match self.chance.below(24) {
                0..=3 => Event::Attached,
                4..=10 => Event::Initialized,
                11..=13 => match (ping, told, probed) {
                    (_, _, true) => Event::ProbeAnswered,
                    (_, Some(LifecycleTopic::Pausing), _) => Event::PauseAcknowledged,
                    (_, Some(topic), _) => Event::Told(topic),
                    (Some(seq), None, false) => Event::Pong(seq),
                    (None, None, false) => Event::Answered,
                },
                14..=15 => Event::Pong(ping.unwrap_or(PingSeq(1))),
                16 => Event::Overdue,
                17 => Event::Answered,
                18 => self.some_fault(),
                19..=20 => Event::Exited(self.some_status()),
                21 => Event::PauseAcknowledged,
                22 => Event::ProbeAnswered,
                _ => Event::Tick,
            },
        };
        self.tell(event);
    }

    fn some_fault(&mut self) -> Event {
        let kinds = [
            ExitKind::WriteStall,
            ExitKind::ChannelLost,
            ExitKind::ProtocolViolation,
            ExitKind::FrameOverrun,
            ExitKind::Memory,
        ];
        match self.chance.below(9) {
            0..=4 => Event::Broken(self.chance.one(&kinds), "broken".to_owned()),
            5 => Event::Incompatible("no version".to_owned()),
            6 => Event::InitializeFailed,
            7 => Event::HealthStopping,
            _ => Event::HealthUnsupported,
        }
    }

    fn some_status(&mut self) -> Status {
        let codes = [1, 0, 76, 78, 2];
        match self.chance.below(4) {
            0 => Status::Signal(9),
            1 if self.chance.once_in(4) => Status::Unknown,
            _ => Status::Code(self.chance.one(&codes)),
        }
    }

    /// Tells the machine, checks the laws, does what it wants.
    fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.laws.before(&event);
        self.life.step(self.now, event.clone(), &mut effects);
        let view = self.life.view();
        let checked = self.laws.after(self.now, &effects, &view);
        checked.unwrap_or_else(|why| self.broken(&event, &why));
        let deadline = self.life.deadline();
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            self.broken(&event, "the deadline has passed");
        }
        let waiting = self.laws.timers(deadline, &view);
        waiting.unwrap_or_else(|why| self.broken(&event, &why));
        let ended = effects.iter().find_map(|effect| match effect {
            Effect::Ended(exit) => Some(exit),
            _ => None,
        });
        if let Some(reference) = &mut self.reference {
            let compared = reference.compare(self.now, &event, &view, ended);
            compared.unwrap_or_else(|why| self.broken(&event, &why));
        }
        if event == Event::Spawned && self.process == Process::Unborn {
            self.process = Process::Alive { gone: None, ping: None, told: None, probed: false };
        }
        for effect in &effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: &Effect) {
        let now = self.now;
        let soon = |chance: &mut Chance<'_>| now + Duration::from_millis(chance.below(2000) as u64);
        match (effect, &mut self.process) {
            (Effect::Spawn(_), process) => *process = Process::Unborn,
            (Effect::Ended(_), process) => *process = Process::None,
            (Effect::Kill, Process::Alive { gone, .. }) => *gone = Some(soon(&mut self.chance)),
            (Effect::Stop { .. }, Process::Alive { gone, .. }) if !self.chance.once_in(4) => {
                *gone = Some(soon(&mut self.chance));
            }
            (Effect::Ping(seq), Process::Alive { ping, .. }) => *ping = Some(*seq),
            (Effect::Tell(topic), Process::Alive { told, .. }) => *told = Some(*topic),
            (Effect::Probe(_), Process::Alive { probed, .. }) => *probed = true,
            (Effect::Resume | Effect::Suspend, Process::Alive { probed, .. }) => *probed = false,
            _ => {}
        }
    }

    /// Everybody helps: the user looks, the process behaves, answers come. Then it must come to rest.
    fn come_to_rest(&mut self) {
        if self.terms.android.is_some() {
            self.tell(Event::Signal(PlatformSignal::Thaw));
            self.tell(Event::Signal(PlatformSignal::Foreground));
            self.pass_until(self.now + Duration::from_secs(1));
        }
        for _ in 0..MOVES_TO_REST {
            let view = self.life.view();
            if is_rest(view.state) && self.settled() {
                let open = self.laws.open_processes();
                let right = u32::from(self.life.has_process()) == open;
                let lasting = !Laws::is_looping(&view) || view.state != State::Stopped;
                if !right || !lasting {
                    self.broken(&Event::Tick, &format!("{open} processes without an end at rest"));
                }
                return;
            }
            self.help(view.state);
        }
        let state = self.life.view().state;
        self.broken(&Event::Tick, &format!("it does not come to rest, and is {state}"));
    }

    fn settled(&self) -> bool {
        match self.process {
            Process::None => true,
            Process::Unborn => false,
            Process::Alive { gone, .. } => gone.is_none(),
        }
    }

    fn help(&mut self, state: State) {
        match (self.process, state) {
            (Process::Unborn, _) => self.tell(Event::Spawned),
            (Process::Alive { gone: None, .. }, State::Starting) => {
                self.tell(Event::Attached);
                self.tell(Event::Initialized);
            }
            (Process::Alive { gone: None, .. }, State::Unresponsive) if self.life.deadline().is_some() => {
                self.tell(Event::Answered);
                self.answer();
                self.next_deadline();
            }
            (Process::Alive { gone: None, .. }, State::Pausing | State::Resuming) => {
                self.answer();
                self.tell(Event::ProbeAnswered);
                self.next_deadline();
            }
            _ => self.next_deadline(),
        }
    }

    fn answer(&mut self) {
        if let Process::Alive { ping, told, .. } = self.process {
            if let Some(seq) = ping {
                self.tell(Event::Pong(seq));
            }
            match told {
                Some(LifecycleTopic::Pausing) => self.tell(Event::PauseAcknowledged),
                Some(topic) => self.tell(Event::Told(topic)),
                None => {}
            }
        }
    }

    fn next_deadline(&mut self) {
        if let Some(next) = self.next_event() {
            self.now = self.now.max(next);
            self.at_its_time();
        }
    }

    fn broken(&self, event: &Event, why: &str) -> ! {
        let (now, step) = (self.now, self.step);
        match self.case {
            Case::Seed { name, seed, steps } => {
                panic!("life::model::{name}({seed}, {steps}): step {step} at {now}, after {event:?}: {why}")
            }
            Case::Bytes { name } => {
                panic!("life::model::{name}: step {step} at {now}, after {event:?}: {why}")
            }
        }
    }
}

fn is_rest(state: State) -> bool {
    match state {
        State::Invalid
        | State::Blocked
        | State::NeedsConsent
        | State::Disabled
        | State::Unavailable
        | State::Stopped
        | State::Ready
        | State::Failed
        | State::Removed => true,
        State::Starting
        | State::Unresponsive
        | State::Pausing
        | State::Suspended
        | State::Resuming
        | State::Reclaimed
        | State::Stopping
        | State::Backoff => false,
    }
}

fn some_terms(chance: &mut Chance<'_>, android: Option<AndroidTerms>) -> LifeTerms {
    let number = |of: u32| NonZeroU32::new(of).unwrap_or(NonZeroU32::MIN);
    LifeTerms {
        startup: Duration::from_secs(chance.one(&[1, 15, 120])),
        heartbeat: Duration::from_secs(chance.one(&[1, 10, 120])),
        missed: number(chance.one(&[1, 3, 20])),
        threshold: number(chance.one(&[3, 5])),
        activation: chance.one(&[Activation::Eager, Activation::Lazy]),
        android,
    }
}
