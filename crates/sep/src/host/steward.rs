//! The one who looks after an extension: a task that owns its life, performs what the life decides, and answers its callers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::Child;
use outrigger_supervise::state::{Ladder, Moment, PingSeq};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::channel::{CallFailure, Conversation, now_ms};
use super::dossier::Dossier;
use super::events::{Pump, Topic};
use super::gate::{Desk, NotRecorded};
use super::happening::Happening;
use super::life::{Effect, Event, Life, LifecycleTopic, SpawnTrouble, Transition, View};
use super::process::{Generation, Start, Told};
use super::record::EventFate;
use super::shared::Shared;
use super::view::{Exit, KEPT_EXITS, SessionView};
use crate::manifest::Found;
use crate::protocol::{ExitKind, HealthStatus, LaunchReason, Permission, ShutdownReason, State};

/// Orders that may wait for a steward.
const ORDERS: usize = 64;
/// Things that a process has to tell.
const TELLINGS: usize = 64;

/// What a steward can be asked to do.
pub(super) enum Order {
    /// Lets this happen to the life, and says when it is done.
    Happen(Event, oneshot::Sender<View>),
    /// What is on disk now, and whether somebody agreed to it.
    Look(Box<Found>, Option<Arc<Dossier>>, Event),
    /// The conversation, if there is one.
    Talk(oneshot::Sender<Option<Conversation>>),
    /// The process of this generation uses more memory than it may.
    Heavy(Generation, String),
    /// Gives it a permission, or takes it back; says whether that was written down.
    Permit(Permission, Permit, oneshot::Sender<Result<(), NotRecorded>>),
    /// What it is, now.
    Show(oneshot::Sender<Shown>),
    /// Leave, and do not come back.
    Finish(ShutdownReason),
}

/// What happens to a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    Give,
    TakeBack,
}

/// What a steward knows about its extension.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) view: View,
    pub(super) found: Found,
    pub(super) dossier: Option<Arc<Dossier>>,
    pub(super) pid: Option<u32>,
    pub(super) uptime: Option<Duration>,
    pub(super) next_start: Option<Duration>,
    pub(super) session: Option<SessionView>,
    pub(super) exits: VecDeque<Exit>,
}

/// A steward at work.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) orders: mpsc::Sender<Order>,
    state: watch::Receiver<State>,
}

struct Steward {
    state: watch::Sender<State>,
    shared: Arc<Shared>,
    found: Found,
    dossier: Option<Arc<Dossier>>,
    life: Life,
    began: Instant,
    generation: Generation,
    running: Option<Running>,
    tell: mpsc::Sender<(Generation, Told)>,
    exits: VecDeque<Exit>,
    /// What tasks of the current process found out.
    findings: mpsc::Sender<(Generation, Event)>,
    /// Our own ear, for those who wake a lazy extension.
    own: mpsc::WeakSender<Order>,
    /// Whoever waits for an event that a lazy extension wants to hear about.
    sleeping: Option<AbortHandle>,
}

/// The process there is.
struct Running {
    /// What it was started with.
    dossier: Arc<Dossier>,
    /// Dropping it ends everything that speaks with the process.
    tasks: JoinSet<()>,
    child: Option<Child>,
    since: Option<Instant>,
    pid: Option<u32>,
    session: Option<SessionView>,
    conversation: Option<Conversation>,
    desk: Option<Arc<Desk>>,
    last_words: Vec<String>,
    /// Pings that were sent.
    pings: u64,
    /// Lines that it sent beside its answers to those, when that was last looked at.
    work: u64,
    /// When that number last changed.
    worked: Instant,
}

impl Post {
    /// Puts a steward in charge of an extension. `life` has been restored; nothing has happened to it yet.
    pub(super) fn take(shared: &Arc<Shared>, found: Found, life: Life) -> Self {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let (tell, told) = mpsc::channel(TELLINGS);
        let (findings, found_out) = mpsc::channel(TELLINGS);
        let (told_state, state) = watch::channel(life.view().state);
        let steward = Steward {
            state: told_state,
            shared: Arc::clone(shared),
            found,
            dossier: None,
            life,
            began: shared.began,
            generation: Generation(0),
            running: None,
            tell,
            exits: VecDeque::new(),
            findings,
            own: orders.downgrade(),
            sleeping: None,
        };
        tokio::spawn(steward.run(inbox, told, found_out));
        Self { orders, state }
    }

    /// Lets something happen and waits until its first effects are on their way. `None` when the host is leaving.
    pub(super) async fn happen(&self, event: Event) -> Option<View> {
        let (done, view) = oneshot::channel();
        self.orders.send(Order::Happen(event, done)).await.ok()?;
        view.await.ok()
    }

    /// Waits until its state is such.
    pub(super) async fn until(&self, such: impl FnMut(&State) -> bool) -> Option<State> {
        self.state.clone().wait_for(such).await.ok().map(|state| *state)
    }

    pub(super) async fn show(&self) -> Option<Shown> {
        let (sender, shown) = oneshot::channel();
        self.orders.send(Order::Show(sender)).await.ok()?;
        shown.await.ok()
    }
}

impl Steward {
    async fn run(
        mut self,
        mut orders: mpsc::Receiver<Order>,
        mut told: mpsc::Receiver<(Generation, Told)>,
        mut found_out: mpsc::Receiver<(Generation, Event)>,
    ) {
        let mut finishing = None;
        loop {
            if finishing.is_some() && !self.life.has_process() {
                break;
            }
            let deadline = self.life.deadline().map(|moment| self.instant(moment));
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Finish(reason)) => {
                        finishing = Some(reason);
                        self.happens(Event::Stop(reason));
                    }
                    Some(order) => self.obey(order),
                    // The fleet is gone: nobody could ask for anything any more.
                    None => break,
                },
                Some((generation, told)) = told.recv() => {
                    if generation == self.generation && self.running.is_some() {
                        self.hear(told);
                    }
                }
                Some((generation, event)) = found_out.recv() => {
                    if generation == self.generation && self.running.is_some() {
                        self.happens(event);
                    }
                }
                () = sleep_until(deadline) => self.happens(Event::Tick),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Happen(event, done) => {
                self.happens(event);
                // Whoever asked may have gone.
                let _ = done.send(self.life.view());
            }
            Order::Look(found, dossier, event) => {
                if let Some(dossier) = &dossier {
                    self.life.set_terms(dossier.life_terms());
                }
                self.found = *found;
                // What runs keeps the dossier that it was started with.
                self.dossier = dossier;
                self.happens(event);
            }
            Order::Talk(conversation) => {
                let running = self.running.as_ref();
                let _ = conversation.send(running.and_then(|running| running.conversation.clone()));
            }
            Order::Heavy(generation, why) if generation == self.generation => {
                self.happens(Event::Broken(ExitKind::Memory, why));
            }
            Order::Heavy(..) => {}
            Order::Permit(permission, permit, done) => {
                let _ = done.send(self.permit(permission, permit));
            }
            Order::Show(shown) => {
                let _ = shown.send(self.shown());
            }
            Order::Finish(_) => {}
        }
    }

    /// Lets the life decide, and does what it says.
    fn happens(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.life.step(self.now(), event, &mut effects);
        for effect in effects {
            self.perform(effect);
        }
        let state = self.life.view().state;
        self.state.send_replace(state);
        match (state, &self.sleeping) {
            (State::Stopped, None) => self.sleep(),
            (State::Stopped, Some(_)) | (_, None) => {}
            (_, Some(_)) => self.awake(),
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn(reason) => self.spawn(reason),
            Effect::Stop { reason, ladder } => {
                let Some(running) = &mut self.running else { return };
                match running.child.clone() {
                    Some(child) => {
                        let talking = running.conversation.clone().zip(running.desk.clone());
                        drop(running.tasks.spawn(stop(child, talking, reason, ladder)));
                    }
                    // It is still being made: giving that up is the end of it.
                    None => self.abandon(),
                }
            }
            Effect::Kill => {
                let Some(running) = &mut self.running else { return };
                match running.child.clone() {
                    Some(child) => drop(running.tasks.spawn(async move {
                        child.kill().await;
                    })),
                    None => self.abandon(),
                }
            }
            Effect::Ping(_) if self.is_idle() => self.happens(Event::Stop(ShutdownReason::Stop)),
            Effect::Ping(seq) => self.ask_health(seq, Event::Pong(seq)),
            Effect::Probe(seq) => self.ask_health(seq, Event::ProbeAnswered),
            Effect::Tell(topic) => self.tell_lifecycle(topic),
            Effect::Suspend => {
                if let Some(running) = &self.running {
                    running.desk.iter().for_each(|desk| desk.suspend());
                    running.conversation.iter().for_each(Conversation::freeze);
                    running.dossier.subscription().outbox().iter().for_each(|outbox| outbox.hold());
                }
            }
            Effect::Resume => {
                if let Some(running) = &self.running {
                    running.conversation.iter().for_each(Conversation::thaw);
                    running.desk.iter().for_each(|desk| desk.resume());
                    running.dossier.subscription().outbox().iter().for_each(|outbox| outbox.resume());
                }
            }
            Effect::Changed(transition) => self.changed(&transition),
            Effect::Ended(record) => {
                let ended = self.running.take();
                let last_words = ended.as_ref().map(|running| running.last_words.clone());
                let exit = Exit::new(&record, now_ms(), last_words.unwrap_or_default());
                if let Some(running) = ended {
                    running.dossier.ended(running.session.as_ref().map(|session| &session.id), &exit);
                    self.shared.memory.forget(&running.dossier.id);
                }
                self.shared.announce(Happening::ended(self.found.id.as_ref(), &exit));
                if self.exits.len() == KEPT_EXITS {
                    self.exits.pop_front();
                }
                self.exits.push_back(exit);
            }
            Effect::Persist => {
                if let Some(id) = &self.found.id {
                    let crashes: Vec<Moment> = self.life.crashes().collect();
                    self.shared.persist(id, self.life.view().disabled, crashes, self.now());
                }
            }
        }
    }

    /// A lazy extension that rests is started by the first event that it wants to hear about.
    fn sleep(&mut self) {
        let Some(dossier) = self.dossier.as_ref().filter(|dossier| dossier.is_lazy()) else { return };
        let Some(outbox) = dossier.expect_events() else { return };
        let own = self.own.clone();
        let waiting = tokio::spawn(async move {
            outbox.arrived().await;
            if let Some(own) = own.upgrade() {
                let (done, _) = oneshot::channel();
                // If nobody is there any more, nobody has to be woken.
                let _ = own.send(Order::Happen(Event::Start(LaunchReason::LazyEvent), done)).await;
            }
        });
        self.sleeping = Some(waiting.abort_handle());
    }

    fn awake(&mut self) {
        if let Some(sleeping) = self.sleeping.take() {
            sleeping.abort();
        }
    }

    /// Looked at with every heartbeat: a lazy extension that has had nothing to do for long enough may go.
    fn is_idle(&mut self) -> bool {
        let Some(patience) = self.shared.policy.idle_stop else { return false };
        let Some(running) = self.running.as_mut().filter(|running| running.dossier.is_lazy()) else {
            return false;
        };
        let Some(counts) = running.conversation.as_ref().map(Conversation::counts) else { return false };
        // Every ping is answered by one line, which is no work.
        let work = counts.lines_in.saturating_sub(running.pings);
        running.pings += 1;
        if work != running.work || counts.requests_running > 0 || counts.calls_open > 0 {
            (running.work, running.worked) = (work, Instant::now());
        }
        running.worked.elapsed() >= patience
    }

    fn spawn(&mut self, reason: LaunchReason) {
        self.generation = Generation(self.generation.0 + 1);
        let Some(dossier) = self.dossier.clone() else {
            // Nothing is started before it was looked at.
            return self.happens(Event::SpawnFailed(SpawnTrouble::Other));
        };
        dossier.starting(reason);
        let kept = Arc::clone(&dossier);
        let start = Start {
            generation: self.generation,
            shared: Arc::clone(&self.shared),
            dossier,
            found: self.found.clone(),
            reason,
            ground: self.life.newest_ground(),
            told: self.tell.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(start.run());
        self.running = Some(Running {
            dossier: kept,
            tasks,
            child: None,
            since: None,
            pid: None,
            session: None,
            conversation: None,
            desk: None,
            last_words: Vec::new(),
            pings: 0,
            work: 0,
            worked: Instant::now(),
        });
    }

    /// Gives up a start that has no child yet.
    fn abandon(&mut self) {
        // Dropping the task drops whatever it had made.
        if let Some(running) = &mut self.running {
            running.tasks.abort_all();
        }
        self.happens(Event::SpawnFailed(SpawnTrouble::Other));
    }

    fn hear(&mut self, told: Told) {
        let Some(running) = &mut self.running else { return };
        match told {
            Told::Begun { child, session, transport } => {
                running.child = Some(child);
                running.session = Some(SessionView {
                    id: session,
                    protocol_version: None,
                    sdk: None,
                    transport: transport.as_str(),
                    sandbox: serde_json::Value::Null,
                });
            }
            Told::Spawned { pid, enforced } => {
                running.since = Some(Instant::now());
                running.pid = Some(pid);
                if let Some(session) = &mut running.session {
                    session.sandbox = serde_json::to_value(&*enforced).unwrap_or_default();
                }
                let session = running.session.as_ref().map(|session| &session.id);
                running.dossier.spawned(session, &enforced);
                self.shared.memory.watch(&running.dossier, pid, self.generation);
                self.happens(Event::Spawned);
            }
            Told::NotSpawned(trouble, why) => {
                running.dossier.host_says(&format!("could not be started: {why}"));
                self.happens(Event::SpawnFailed(trouble));
            }
            Told::Attached { sdk, conversation, desk } => {
                if let Some(session) = &mut running.session {
                    session.sdk = sdk.map(|sdk| format!("{} {}", sdk.name, sdk.version));
                }
                running.conversation = Some(conversation);
                running.desk = Some(desk);
                self.happens(Event::Attached);
            }
            Told::Initialized(version) => {
                if let Some(session) = &mut running.session {
                    session.protocol_version = Some(version);
                }
                if let Some(conversation) = running.conversation.clone() {
                    let pump = Pump { ack: running.dossier.admission.limits.event_ack };
                    let metrics = Arc::clone(&running.dossier.metrics);
                    let delivered =
                        move |topic: Topic| metrics.events(EventFate::Delivered, topic.as_str(), 1);
                    if let Some(outbox) = running.dossier.open_events(version) {
                        running.tasks.spawn(async move {
                            // The end of the conversation tells itself.
                            let _ = pump.run(conversation, outbox, delivered).await;
                        });
                    }
                }
                self.happens(Event::Initialized);
            }
            Told::Incompatible(why) => self.happens(Event::Incompatible(why)),
            Told::InitializeFailed(why) => {
                running.dossier.host_says(&format!("refused to begin: {why}"));
                self.happens(Event::InitializeFailed);
            }
            Told::Overdue { calls } => {
                self.happens(if calls == 0 { Event::Answered } else { Event::Overdue });
            }
            Told::Broken(kind, why) => self.happens(Event::Broken(kind, why)),
            Told::Exited { status, last_words } => {
                running.last_words = last_words;
                self.happens(Event::Exited(status));
            }
        }
    }

    fn ask_health(&mut self, seq: PingSeq, answered: Event) {
        self.ask(async move |conversation: Conversation| match conversation.health(seq).await {
            Ok(answer) if answer.status == HealthStatus::Stopping => vec![answered, Event::HealthStopping],
            Ok(_) => vec![answered],
            Err(CallFailure::Refused { .. }) => vec![Event::HealthUnsupported],
            // Silence is what the pulse listens for, and the end of the conversation tells itself.
            Err(_) => Vec::new(),
        });
    }

    fn tell_lifecycle(&mut self, topic: LifecycleTopic) {
        let data = lifecycle_data(topic);
        self.ask(async move |conversation: Conversation| {
            let told = conversation.lifecycle(topic, &data).await;
            match (told, topic) {
                (Ok(()), LifecycleTopic::Pausing) => vec![Event::PauseAcknowledged],
                (Ok(()), topic) => vec![Event::Told(topic)],
                (Err(_), _) => Vec::new(),
            }
        });
    }

    /// Asks the extension something in a task of its own, and lets happen what came of it.
    fn ask<F: Future<Output = Vec<Event>> + Send + 'static>(&mut self, ask: impl FnOnce(Conversation) -> F) {
        let Some(running) = &mut self.running else { return };
        let Some(conversation) = running.conversation.clone() else { return };
        let (findings, generation, asked) = (self.findings.clone(), self.generation, ask(conversation));
        running.tasks.spawn(async move {
            for event in asked.await {
                // The steward is there as long as its tasks are.
                let _ = findings.send((generation, event)).await;
            }
        });
    }

    /// Both what is there and what runs: a changed manifest may have made them differ.
    fn permit(&self, permission: Permission, permit: Permit) -> Result<(), NotRecorded> {
        let running = self.running.as_ref().map(|running| &running.dossier);
        let current = self
            .dossier
            .as_ref()
            .filter(|current| running.is_none_or(|running| !Arc::ptr_eq(running, current)));
        for dossier in running.into_iter().chain(current) {
            match permit {
                Permit::Give => {
                    dossier.gate.grant(permission)?;
                    let view = self.life.view().state;
                    dossier.permitted(permission, matches!(view, State::Ready | State::Unresponsive));
                }
                Permit::TakeBack => dossier.gate.revoke(permission)?,
            }
        }
        Ok(())
    }

    fn changed(&mut self, transition: &Transition) {
        let view = self.life.view();
        if let Some(dossier) = &self.dossier {
            let session = self.running.as_ref().and_then(|running| running.session.as_ref());
            dossier.changed(session.map(|session| &session.id), transition, &view);
        } else if let Some(id) = &self.found.id
            && matches!(transition.to, State::Invalid | State::Blocked | State::Disabled | State::Removed)
        {
            // What is there now has no panels; what was there before may have had some.
            self.shared.panels.withdraw(id);
        }
        self.shared.announce(Happening::changed(self.found.id.as_ref(), transition, &view));
    }

    fn shown(&self) -> Shown {
        let view = self.life.view();
        let running = self.running.as_ref();
        Shown {
            next_start: view.next_start.map(|moment| moment.since(self.now())),
            view,
            found: self.found.clone(),
            dossier: self.dossier.clone(),
            pid: running.and_then(|running| running.pid),
            uptime: running.and_then(|running| running.since).map(|since| since.elapsed()),
            session: running.and_then(|running| running.session.clone()),
            exits: self.exits.clone(),
        }
    }

    fn now(&self) -> Moment {
        Moment::after_origin(self.began.elapsed())
    }

    fn instant(&self, moment: Moment) -> Instant {
        self.began + moment.since(Moment::ORIGIN)
    }
}

fn lifecycle_data(topic: LifecycleTopic) -> Box<RawValue> {
    let data = match topic {
        LifecycleTopic::Trim(level) => serde_json::json!({ "level": level }),
        LifecycleTopic::Pausing | LifecycleTopic::Resumed | LifecycleTopic::Background => {
            serde_json::json!({})
        }
    };
    // An object of words is JSON.
    to_raw_value(&data).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The way down: asked in its own words, then by signal, then not asked any more.
async fn stop(
    child: Child,
    talking: Option<(Conversation, Arc<Desk>)>,
    reason: ShutdownReason,
    ladder: Ladder,
) {
    if let Some((conversation, desk)) = talking
        && !ladder.ask.is_zero()
    {
        desk.leaving();
        let leaves = async {
            // Whether it gives its word or not, it may leave.
            let _ = conversation.shutdown(reason, ladder.ask).await;
            child.wait().await
        };
        if tokio::time::timeout(ladder.ask, leaves).await.is_ok() {
            return;
        }
    }
    child.stop(Ladder { ask: Duration::ZERO, ..ladder }).await;
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
