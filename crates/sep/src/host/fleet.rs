//! All extensions of a host: finds them, puts a steward in charge of each, and is whom everybody else asks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_policy::Millis;
use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::state::Moment;
use serde::Serialize;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::time::Instant;

use super::channel::{Conversation, RunDirs, now_ms};
use super::dossier::{Belongings, Dossier, operator_grant};
use super::events::Bus;
use super::folders::Folders;
use super::gate::{CursorKey, SendMemory};
use super::life::ledger::{Agreement, Asking, Clocks, Ledger, LedgerError, StateFile};
use super::life::{Activation, Event, Life, LifeTerms, PlatformSignal, Transition, View};
use super::listening::EventsCounted;
use super::memory::{self, MemoryWatch};
use super::pace::Pace;
use super::platform::Position;
use super::record::{Audit, AuditError, AuditKind, Entry, MetricsBook, Ruling, TracedFrame};
use super::steward::{Order, Permit, Post, Shown};
use super::ui::{Notices, Panels};
use super::view::{Detail, Exit, HeardEvents, Summary, millis, worst};
use crate::config::{HostPolicy, TracePolicy};
use crate::manifest::{self, Found, HostFacts, Standing};
use crate::mesh::Messaging;
use crate::protocol::{
    DisabledReason, ExtensionId, LaunchReason, LimitsJson, Permission, Program, ShutdownReason, State,
};

/// Happenings that are kept for listeners that are behind.
const KEPT_HAPPENINGS: usize = 1024;
/// All extensions leave within this, or are killed.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// A folder of extensions that is not there is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a host needs to begin.
pub struct FleetOptions {
    /// What the operator decided.
    pub policy: HostPolicy,
    /// What the machine is.
    pub facts: HostFacts,
    /// Who starts processes.
    pub supervisor: Supervisor,
    /// The network.
    pub messaging: Arc<dyn Messaging>,
    /// What `auto` amounts to here: `off`, `basic` or `strict`.
    pub auto_level: &'static str,
    /// Spreads the waits before restarts; the same seed gives the same waits.
    pub seed: u64,
    /// Whether extensions run.
    pub begin: Begin,
}

/// Whether extensions run in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// They do.
    Running,
    /// They do not: somebody only wants to look, or to decide for the next host.
    OnlyLooking,
}

/// All extensions of a host. Clones are the same fleet.
#[derive(Clone, Debug)]
pub struct Fleet {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) policy: HostPolicy,
    pub(super) facts: HostFacts,
    pub(super) supervisor: Supervisor,
    pub(super) messaging: Arc<dyn Messaging>,
    pub(super) auto_level: &'static str,
    pub(super) run_dirs: RunDirs,
    pub(super) pace: Pace,
    pub(super) began: Instant,
    pub(super) memory: MemoryWatch,
    pub(super) audit: Arc<Audit>,
    pub(super) metrics: Arc<MetricsBook>,
    pub(super) panels: Arc<Panels>,
    pub(super) notices: Arc<Notices>,
    pub(super) sent: Arc<SendMemory>,
    pub(super) cursor_key: CursorKey,
    bus: Arc<Bus>,
    seed: u64,
    begin: Begin,
    state: Mutex<(StateFile, Ledger)>,
    stewards: Mutex<BTreeMap<ExtensionId, Charge>>,
    /// What was found without a usable id.
    nameless: Mutex<Vec<Found>>,
    happenings: broadcast::Sender<Arc<Happening>>,
    scanning: tokio::sync::Mutex<()>,
    /// Held while a signal goes round, so that nobody hears signals in another order than they came.
    platform: tokio::sync::Mutex<Position>,
    leaving: Notify,
}

/// An extension that has a steward.
struct Charge {
    post: Post,
    found: Found,
    belongings: Option<Belongings>,
}

/// Why a host cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// What earlier hosts wrote down cannot be opened, or another host has it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Decisions could not be recorded.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A folder or file of the state cannot be used.
    #[error("{} cannot be used: {source}", .path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no such extension.
    #[error("there is no extension `{id}`{}", suggestion(.nearest))]
    Unknown {
        /// What was asked for.
        id: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// It is not in a state for that.
    #[error("{id} is {state}{}", because(.why))]
    State {
        /// Which.
        id: ExtensionId,
        /// Where it is in its life.
        state: State,
        /// Why.
        why: Option<String>,
    },
    /// It does not ask for that permission, or may not have it.
    #[error("{id} cannot be given {permission}: {why}")]
    Permission {
        /// Which.
        id: ExtensionId,
        /// What.
        permission: Permission,
        /// Why not.
        why: String,
    },
    /// It could not be written down, so it was not done.
    #[error("it could not be written down, so it was not done: {why}")]
    NotRecorded {
        /// Why not.
        why: String,
    },
    /// The host is leaving.
    #[error("the host is leaving")]
    Leaving,
    /// Nothing runs here.
    #[error("no host is up")]
    NotUp,
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; is `{nearest}` meant?"))
}

fn because(why: &Option<String>) -> String {
    why.as_ref().map_or_else(String::new, |why| format!(": {why}"))
}

/// Something that happened in the fleet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Happening {
    /// An extension came from one state to another.
    #[serde(rename_all = "camelCase")]
    Changed {
        /// When, since the epoch.
        time_ms: u64,
        /// Which.
        ext: Option<ExtensionId>,
        /// The state that ended.
        from: State,
        /// The state that began.
        to: State,
        /// What made it so.
        cause: String,
        /// What is known beyond that.
        detail: Option<String>,
    },
    /// A process of an extension ended.
    #[serde(rename_all = "camelCase")]
    Ended {
        /// Which.
        ext: Option<ExtensionId>,
        /// How.
        exit: Exit,
    },
    /// Folders were looked at.
    #[serde(rename_all = "camelCase")]
    Scanned {
        /// When, since the epoch.
        time_ms: u64,
        /// How many there are.
        found: usize,
        /// Those that are new or different.
        changed: Vec<ExtensionId>,
        /// Those that are gone.
        removed: Vec<ExtensionId>,
    },
}

impl Happening {
    pub(super) fn changed(ext: Option<&ExtensionId>, transition: &Transition, view: &View) -> Self {
        let Transition { from, to, cause } = transition.clone();
        Self::Changed { time_ms: now_ms(), ext: ext.cloned(), from, to, cause, detail: view.detail.clone() }
    }

    pub(super) fn ended(ext: Option<&ExtensionId>, exit: &Exit) -> Self {
        Self::Ended { ext: ext.cloned(), exit: exit.clone() }
    }
}

/// What a look at the folders found.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// How many there are.
    pub found: usize,
    /// Those that are new or different.
    pub changed: Vec<ExtensionId>,
    /// Those that are gone.
    pub removed: Vec<ExtensionId>,
}

impl Fleet {
    /// Opens the state of the host, finds extensions and starts those that should run. Must be called within a tokio runtime.
    pub async fn start(options: FleetOptions) -> Result<Self, FleetError> {
        let FleetOptions { policy, facts, supervisor, messaging, auto_level, seed, begin } = options;
        let state_dir = policy.state_dir.clone();
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| FleetError::State { path, source }
        };
        make_private(&state_dir).map_err(unusable(&state_dir))?;
        // First, because it says whether another host is here.
        let (file, ledger) = StateFile::open(&state_dir, now_ms())?;
        let run_dirs = RunDirs::from_env(&state_dir);
        super::channel::sweep(&run_dirs);
        let audit = Arc::new(Audit::open(&state_dir.join("audit"))?);
        let sent = state_dir.join("sent.json");
        let sent = SendMemory::load(&sent, now_ms()).map_err(unusable(&sent))?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| unusable(&state_dir)(io::Error::other(error)))?;
        let metrics = Arc::new(MetricsBook::new());
        let bus = Arc::new(Bus::new(Arc::new(EventsCounted(Arc::clone(&metrics)))));
        let moved_aside = ledger.moved_aside().is_some();
        let shared = Arc::new(Shared {
            policy,
            facts,
            supervisor,
            messaging,
            auto_level,
            run_dirs,
            pace: Pace::new(),
            began: Instant::now(),
            memory: MemoryWatch::default(),
            audit,
            metrics,
            panels: Arc::new(Panels::new()),
            notices: Arc::new(Notices::new()),
            sent: Arc::new(sent),
            cursor_key: CursorKey::new(key),
            bus,
            seed,
            begin,
            state: Mutex::new((file, ledger)),
            stewards: Mutex::new(BTreeMap::new()),
            nameless: Mutex::new(Vec::new()),
            happenings: broadcast::Sender::new(KEPT_HAPPENINGS),
            scanning: tokio::sync::Mutex::new(()),
            platform: tokio::sync::Mutex::new(Position::default()),
            leaving: Notify::new(),
        });
        if shared.policy.trace == TracePolicy::Unredacted {
            shared.note(None, AuditKind::Policy, "trace", "unredacted");
        }
        shared.note(None, AuditKind::Policy, "host", "start");
        if moved_aside {
            shared.note(None, AuditKind::Policy, "state_unreadable", "moved_aside");
        }
        shared.messaging.listen(Arc::clone(&shared.bus) as _);
        let fleet = Self { shared };
        tokio::spawn(memory::keep_looking(Arc::downgrade(&fleet.shared)));
        Ok(fleet)
    }

    /// Looks at the folders now: new extensions get a steward, changed ones are looked at again, vanished ones are stopped.
    pub async fn rescan(&self) -> Scan {
        self.shared.rescan().await
    }

    /// Looks at the folders whenever something changes in them, until the host leaves.
    pub async fn keep_scanning(&self) -> io::Result<()> {
        loop {
            // Before the look, so that nothing is missed between them.
            let watched = self.shared.known_folders();
            let folders = Folders::watch(watched.iter().map(PathBuf::as_path))?;
            self.rescan().await;
            if self.shared.known_folders() != watched {
                // There are folders that nobody watched while they were looked at.
                continue;
            }
            tokio::select! {
                changed = folders.changed() => changed?,
                () = tokio::time::sleep(LOOK_AGAIN), if !folders.absent.is_empty() => {}
                () = self.shared.leaving.notified() => return Ok(()),
            }
        }
    }

    /// What happens, from now on. A listener that is too slow is told how much it missed.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Happening>> {
        self.shared.happenings.subscribe()
    }

    /// One line about each, sorted by id.
    pub async fn list(&self) -> Vec<Summary> {
        let posts: Vec<Post> = self.shared.stewards().values().map(|charge| charge.post.clone()).collect();
        let mut list = Vec::new();
        for post in posts {
            list.extend(post.show().await.map(|shown| summary(&shown)));
        }
        let nameless = self.shared.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        list.extend(nameless.iter().map(|found| Summary::of(found, standing_state(found.standing))));
        list
    }

    /// Everything about one.
    pub async fn show(&self, id: &str) -> Result<Detail, AskError> {
        let shown = self.shared.find(id)?.1.show().await.ok_or(AskError::Leaving)?;
        Ok(detail(&shown))
    }

    /// Starts it, whatever its activation.
    pub async fn start_one(&self, id: &str) -> Result<View, AskError> {
        let (id, post) = self.shared.find(id)?;
        if self.shared.begin == Begin::OnlyLooking {
            return Err(AskError::NotUp);
        }
        let view = post.happen(Event::Start(LaunchReason::Manual)).await.ok_or(AskError::Leaving)?;
        match view.state {
            State::Starting | State::Ready | State::Unresponsive | State::Backoff | State::Stopping => {
                Ok(view)
            }
            State::Pausing | State::Suspended | State::Resuming | State::Reclaimed => Ok(view),
            state => Err(AskError::State { id, state, why: why_not(&view) }),
        }
    }

    /// Stops it and waits until it is gone.
    pub async fn stop_one(&self, id: &str) -> Result<View, AskError> {
        let (_, post) = self.shared.find(id)?;
        post.happen(Event::Stop(ShutdownReason::Stop)).await.ok_or(AskError::Leaving)?;
        rest(&post).await
    }

    /// Stops it and starts it again.
    pub async fn restart_one(&self, id: &str) -> Result<View, AskError> {
        self.stop_one(id).await?;
        self.start_one(id).await
    }

    /// Lets it run again, and agrees to what it declares if nobody has been asked about it.
    pub async fn enable(&self, id: &str) -> Result<View, AskError> {
        let (id, post) = self.shared.find(id)?;
        self.shared.agree(&id, None)?;
        post.happen(Event::Enable).await.ok_or(AskError::Leaving)?;
        self.shared.look_again(&id).await;
        let view = self.shared.begin_one(&post).await?;
        match view.disabled {
            Some(reason) => Err(AskError::State {
                id,
                state: view.state,
                why: Some(format!("it was disabled for {reason}; `reset` forgets that")),
            }),
            None => Ok(view),
        }
    }

    /// Switches it off, also for the next host, and waits until it is gone.
    pub async fn disable(&self, id: &str) -> Result<View, AskError> {
        let (_, post) = self.shared.find(id)?;
        post.happen(Event::Disable(DisabledReason::Operator)).await.ok_or(AskError::Leaving)?;
        rest(&post).await
    }

    /// Forgets its crashes and what has failed.
    pub async fn reset(&self, id: &str) -> Result<View, AskError> {
        let (_, post) = self.shared.find(id)?;
        post.happen(Event::Reset).await.ok_or(AskError::Leaving)?;
        self.shared.begin_one(&post).await
    }

    /// Gives it permissions; none means all that it declares. Acts on its next call.
    pub async fn grant(&self, id: &str, permissions: &[Permission]) -> Result<Vec<Permission>, AskError> {
        let (id, post) = self.shared.find(id)?;
        let given = self.shared.agree(&id, Some(permissions))?;
        for permission in &given {
            permit(&post, *permission, Permit::Give).await?;
        }
        self.shared.look_again(&id).await;
        self.shared.begin_one(&post).await?;
        Ok(given)
    }

    /// Takes permissions back; none means all. Acts on its next call.
    pub async fn revoke(&self, id: &str, permissions: &[Permission]) -> Result<Vec<Permission>, AskError> {
        let (id, post) = self.shared.find(id)?;
        let all = if permissions.is_empty() { Permission::ALL } else { permissions };
        // First what runs: if the ledger cannot be written, it has lost the permission all the same.
        for permission in all {
            permit(&post, *permission, Permit::TakeBack).await?;
        }
        self.shared
            .change_ledger(|ledger| all.iter().for_each(|permission| ledger.revoke(&id, *permission)))?;
        Ok(all.to_vec())
    }

    /// What the platform did, for everybody or for one. Whoever is found later hears of what was for everybody.
    pub async fn signal(&self, signal: PlatformSignal, only: Option<&ExtensionId>) {
        let mut position = self.shared.platform.lock().await;
        if only.is_none() {
            position.note(signal);
        }
        let posts: Vec<Post> = {
            let stewards = self.shared.stewards();
            let meant = stewards.iter().filter(|(id, _)| only.is_none_or(|only| only == *id));
            meant.map(|(_, charge)| charge.post.clone()).collect()
        };
        for post in posts {
            post.happen(Event::Signal(signal)).await;
        }
    }

    /// Ends when the host begins to leave, also if nobody looks at that moment.
    pub(super) fn left(&self) -> Notified<'_> {
        self.shared.leaving.notified()
    }

    /// The conversation with an extension that runs.
    pub(super) async fn conversation(&self, id: &ExtensionId) -> Option<Conversation> {
        let post = self.shared.stewards().get(id)?.post.clone();
        let (sender, conversation) = oneshot::channel();
        post.orders.send(Order::Talk(sender)).await.ok()?;
        conversation.await.ok()?
    }

    /// Wakes an extension because one of its panels is used.
    pub(super) async fn wake(&self, id: &ExtensionId) -> Option<View> {
        let post = self.shared.stewards().get(id)?.post.clone();
        post.happen(Event::Start(LaunchReason::LazyAction)).await
    }

    /// The panels.
    pub fn panels(&self) -> &Arc<Panels> {
        &self.shared.panels
    }

    /// The notices.
    pub fn notices(&self) -> &Arc<Notices> {
        &self.shared.notices
    }

    /// Shows a notice of an extension.
    pub(super) fn show_notice(&self, id: &ExtensionId, draft: super::ui::ToastDraft) {
        let name = self.shared.stewards().get(id).and_then(|charge| charge.found.manifest.clone());
        let name = name.map_or_else(|| id.to_string(), |manifest| manifest.name.clone());
        // One that cannot be shown is not worth an error to somebody who wanted something else.
        let _ = self.shared.notices.show(Millis(now_ms()), id, &name, draft);
    }

    /// The numbers.
    pub fn metrics(&self) -> &Arc<MetricsBook> {
        &self.shared.metrics
    }

    /// The network.
    pub fn messaging(&self) -> &Arc<dyn Messaging> {
        &self.shared.messaging
    }

    /// The last frames of an extension, as far as the policy has them kept.
    pub async fn trace(&self, id: &str) -> Result<Vec<TracedFrame>, AskError> {
        let shown = self.shared.find(id)?.1.show().await.ok_or(AskError::Leaving)?;
        Ok(shown.dossier.map(|dossier| dossier.trace.after(0)).unwrap_or_default())
    }

    /// Where the state of the host is.
    pub fn state_dir(&self) -> &Path {
        &self.shared.policy.state_dir
    }

    /// Stops everybody at the same time, and waits until they are gone.
    pub async fn shutdown(&self) {
        self.shared.leaving.notify_waiters();
        let posts: Vec<Post> = self.shared.stewards().values().map(|charge| charge.post.clone()).collect();
        for post in &posts {
            let _ = post.orders.send(Order::Finish(ShutdownReason::HostExit)).await;
        }
        let gone = async {
            for post in &posts {
                post.orders.closed().await;
            }
        };
        // Whoever is left is killed when the supervisor's children are dropped with the runtime.
        let _ = tokio::time::timeout(LEAVE_WITHIN, gone).await;
        let _ = self.shared.sent.save(&self.shared.policy.state_dir.join("sent.json"), now_ms());
        self.shared.note(None, AuditKind::Policy, "host", "exit");
        let _ = self.shared.audit.flush();
    }
}

impl Shared {
    /// See [`Fleet::rescan`].
    pub(super) async fn rescan(self: &Arc<Self>) -> Scan {
        let _one_at_a_time = self.scanning.lock().await;
        let (policy, facts) = (self.policy.clone(), self.facts.clone());
        let looking = tokio::task::spawn_blocking(move || manifest::discover(&policy, &facts));
        // Discovery never panics on what it finds; if it did, nothing would have been found.
        let all = looking.await.unwrap_or_default();
        let mut scan = Scan { found: all.len(), changed: Vec::new(), removed: Vec::new() };
        let mut nameless = Vec::new();
        let mut here = Vec::new();
        for found in all {
            match found.id.clone() {
                Some(id) => {
                    here.push(id.clone());
                    if self.look(&id, found).await {
                        scan.changed.push(id);
                    }
                }
                None => nameless.push(found),
            }
        }
        *self.nameless.lock().unwrap_or_else(PoisonError::into_inner) = nameless;
        let gone: Vec<(ExtensionId, Post)> = {
            let stewards = self.stewards();
            let gone = stewards.iter().filter(|(id, _)| !here.contains(id));
            gone.map(|(id, charge)| (id.clone(), charge.post.clone())).collect()
        };
        for (id, post) in gone {
            if post.show().await.is_some_and(|shown| shown.view.state != State::Removed) {
                post.happen(Event::Removed).await;
                self.bus.leave(&id);
                scan.removed.push(id);
            }
        }
        let Scan { found, changed, removed } = scan.clone();
        self.announce(Happening::Scanned { time_ms: now_ms(), found, changed, removed });
        scan
    }

    pub(super) fn program(&self) -> Program {
        Program { name: "outrigger".to_owned(), version: self.facts.version.clone() }
    }

    pub(super) fn announce(&self, happening: Happening) {
        // Nobody has to listen.
        let _ = self.happenings.send(Arc::new(happening));
    }

    pub(super) async fn order(&self, id: &ExtensionId, order: Order) {
        let post = self.stewards().get(id).map(|charge| charge.post.clone());
        if let Some(post) = post {
            let _ = post.orders.send(order).await;
        }
    }

    /// Starts what is to be started with the host, in a host where something runs.
    async fn begin_one(&self, post: &Post) -> Result<View, AskError> {
        match self.begin {
            Begin::Running => post.happen(Event::Start(LaunchReason::First)).await.ok_or(AskError::Leaving),
            Begin::OnlyLooking => Ok(post.show().await.ok_or(AskError::Leaving)?.view),
        }
    }

    /// Writes down what must survive the host.
    pub(super) fn persist(
        &self,
        id: &ExtensionId,
        disabled: Option<DisabledReason>,
        crashes: Vec<Moment>,
        now: Moment,
    ) {
        let clocks = Clocks { now, wall_ms: now_ms() };
        if let Err(error) = self.change_ledger(|ledger| ledger.note(id, disabled, crashes, clocks)) {
            self.note(Some(id), AuditKind::Policy, "state_not_written", &error.to_string());
        }
    }

    fn change_ledger(&self, change: impl FnOnce(&mut Ledger)) -> Result<(), AskError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, ledger) = &mut *state;
        change(ledger);
        file.save(ledger).map_err(|error| AskError::NotRecorded { why: error.to_string() })
    }

    fn note(&self, extension: Option<&ExtensionId>, kind: AuditKind, method: &str, reason: &str) {
        let entry = Entry {
            extension,
            session: None,
            kind,
            method,
            permission: None,
            decision: Ruling::Allow,
            reason,
            request: None,
            params: None,
        };
        // It has happened already.
        let _ = self.audit.write(&entry);
    }

    fn stewards(&self) -> MutexGuard<'_, BTreeMap<ExtensionId, Charge>> {
        self.stewards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Result<(ExtensionId, Post), AskError> {
        let stewards = self.stewards();
        let found =
            ExtensionId::new(id).ok().and_then(|id| Some((id.clone(), stewards.get(&id)?.post.clone())));
        found.ok_or_else(|| AskError::Unknown {
            id: id.escape_debug().take(128).collect(),
            nearest: manifest::nearest(id, stewards.keys().map(ExtensionId::as_str)).map(str::to_owned),
        })
    }

    /// An extension was found. Says whether it is new or different.
    async fn look(self: &Arc<Self>, id: &ExtensionId, found: Found) -> bool {
        let known = self.stewards().get(id).is_some_and(|charge| same(&charge.found, &found));
        if known && self.stewards().get(id).is_some_and(|charge| !charge.post.orders.is_closed()) {
            return false;
        }
        self.admit(id, found).await;
        true
    }

    /// Decides about an extension again, because somebody agreed to something.
    async fn look_again(self: &Arc<Self>, id: &ExtensionId) {
        let found = self.stewards().get(id).map(|charge| charge.found.clone());
        if let Some(found) = found {
            self.admit(id, found).await;
        }
    }

    async fn admit(self: &Arc<Self>, id: &ExtensionId, found: Found) {
        let belongings = self.belongings(id, &found);
        let (dossier, event) = match (&found.manifest, &found.admission, belongings.clone()) {
            (Some(manifest), Some(admission), Some(belongings)) if may_be_shown(found.standing) => {
                let asking = Asking {
                    version: &manifest.version,
                    declared: &manifest.permissions,
                    trust: admission.trust,
                };
                let agreement = self.agreement(id, asking);
                let agreed: Vec<Permission> = match &agreement {
                    Agreement::Given(given) => given.iter().copied().collect(),
                    Agreement::Needed(_) => Vec::new(),
                };
                let revoked = self.revoked(id);
                let operator = operator_grant(self, id, manifest, admission, &agreed);
                let dossier = Dossier::new(self, &found, belongings, operator, revoked);
                let event = match agreement {
                    // It is as welcome as any other; only nobody here can run it.
                    _ if found.standing == Standing::Unavailable => {
                        Event::NotAdmitted(State::Unavailable, worst(&found).unwrap_or_default())
                    }
                    Agreement::Given(_) => Event::Admitted,
                    // What the policy grants was agreed to by whoever wrote it; but not when nobody knows what was agreed to.
                    Agreement::Needed(_) if self.policy.grants.contains_key(id) && !self.forgot() => {
                        Event::Admitted
                    }
                    Agreement::Needed(needed) => {
                        let needed: Vec<&str> = needed.iter().map(|permission| permission.as_str()).collect();
                        let detail = match needed.is_empty() {
                            true => "nobody has agreed to it yet".to_owned(),
                            false => format!("it asks for {}", needed.join(", ")),
                        };
                        Event::NotAdmitted(State::NeedsConsent, detail)
                    }
                };
                if let Some(why) = &admission.clamped {
                    self.note(Some(id), AuditKind::Trust, "trust_clamped", why);
                }
                (dossier, event)
            }
            _ => {
                let detail = worst(&found).unwrap_or_default();
                let tampered = found.findings.iter().any(|finding| finding.code == manifest::code::TAMPERED);
                let event = match tampered {
                    true => Event::Disable(DisabledReason::Tampered),
                    false => Event::NotAdmitted(standing_state(found.standing), detail),
                };
                (None, event)
            }
        };
        let post = self.charge(id, &found, belongings);
        if let Some(dossier) = &dossier {
            dossier.show_panels();
            self.bus.join(id.clone(), Arc::clone(dossier.subscription()));
        }
        let starts = event == Event::Admitted && self.begin == Begin::Running;
        let _ = post.orders.send(Order::Look(Box::new(found), dossier, event)).await;
        {
            let position = self.platform.lock().await;
            for signal in position.missed() {
                post.happen(Event::Signal(signal)).await;
            }
        }
        if starts {
            post.happen(Event::Start(LaunchReason::First)).await;
        }
    }

    /// The steward of an extension; a new one gets what earlier hosts knew.
    fn charge(self: &Arc<Self>, id: &ExtensionId, found: &Found, belongings: Option<Belongings>) -> Post {
        let mut stewards = self.stewards();
        if let Some(charge) = stewards.get_mut(id) {
            charge.found = found.clone();
            charge.belongings = belongings.or_else(|| charge.belongings.clone());
            return charge.post.clone();
        }
        let clocks = Clocks { now: Moment::after_origin(self.began.elapsed()), wall_ms: now_ms() };
        let (disabled, crashes) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.1.recall(id, clocks)
        };
        let mut life = Life::new(UNKNOWN_TERMS, self.seed ^ hash(id));
        life.restore(disabled, crashes);
        let post = Post::take(self, found.clone(), life);
        stewards.insert(id.clone(), Charge { post: post.clone(), found: found.clone(), belongings });
        post
    }

    fn belongings(&self, id: &ExtensionId, found: &Found) -> Option<Belongings> {
        let admission = found.admission.as_ref()?;
        if let Some(kept) = self.stewards().get(id).and_then(|charge| charge.belongings.clone()) {
            return Some(kept);
        }
        match Belongings::open(self, id, admission) {
            Ok(belongings) => Some(belongings),
            Err(error) => {
                self.note(Some(id), AuditKind::Policy, "log_not_opened", &error.to_string());
                None
            }
        }
    }

    fn agreement(&self, id: &ExtensionId, asking: Asking<'_>) -> Agreement {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, ledger) = &mut *state;
        if ledger.found(id, asking) {
            // A consent that cannot be written down is asked for again by the next host.
            let _ = file.save(ledger);
        }
        ledger.agreement(id, asking)
    }

    /// Whether what earlier hosts had written down could not be read.
    fn forgot(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.moved_aside().is_some()
    }

    fn revoked(&self, id: &ExtensionId) -> Vec<Permission> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.entry(id).map(|entry| entry.revoked.iter().copied().collect()).unwrap_or_default()
    }

    /// Somebody agrees to an extension and gives it `permissions`: `None` what it may simply have, empty all it declares.
    fn agree(
        &self,
        id: &ExtensionId,
        permissions: Option<&[Permission]>,
    ) -> Result<Vec<Permission>, AskError> {
        let found = self.stewards().get(id).map(|charge| charge.found.clone());
        let found = found.filter(|found| found.manifest.is_some() && found.admission.is_some());
        let Some((manifest, admission)) = found.and_then(|found| Some((found.manifest?, found.admission?)))
        else {
            // Nothing can be agreed to; whoever asked learns of it from the state.
            return Ok(Vec::new());
        };
        let asking =
            Asking { version: &manifest.version, declared: &manifest.permissions, trust: admission.trust };
        let mut given = match permissions {
            Some([]) => manifest
                .permissions
                .iter()
                .copied()
                .filter(|wanted| admission.grantable.contains(wanted))
                .collect(),
            Some(these) => {
                for permission in these {
                    let cannot = |why: &str| AskError::Permission {
                        id: id.clone(),
                        permission: *permission,
                        why: why.to_owned(),
                    };
                    if !manifest.permissions.contains(permission) {
                        return Err(cannot("its manifest does not ask for it"));
                    }
                    if !admission.grantable.contains(permission) {
                        return Err(cannot(&format!("it is above the trust {}", admission.trust)));
                    }
                }
                these.to_vec()
            }
            None => match self.agreement(id, asking) {
                Agreement::Given(_) => return Ok(Vec::new()),
                Agreement::Needed(_) => {
                    let simple = |wanted: &Permission| {
                        admission.grantable.contains(wanted) && !admission.explicit_only.contains(wanted)
                    };
                    manifest.permissions.iter().copied().filter(simple).collect::<Vec<_>>()
                }
            },
        };
        let before = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.1.entry(id).map(|entry| entry.granted.clone()).unwrap_or_default()
        };
        let answer = given.clone();
        given.extend(before);
        self.change_ledger(|ledger| ledger.consent(id, asking, &given))?;
        Ok(answer)
    }

    /// The folders in which something may change.
    fn known_folders(&self) -> Vec<PathBuf> {
        let roots = self.policy.builtin_dir.iter().chain(&self.policy.extensions_dirs).cloned();
        let stewards = self.stewards();
        let nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        let known = stewards.values().map(|charge| &charge.found.dir);
        roots.chain(known.chain(nameless.iter().map(|found| &found.dir)).cloned()).collect()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.policy.state_dir).finish_non_exhaustive()
    }
}

/// The terms of an extension that was never admitted: it is not started under them.
const UNKNOWN_TERMS: LifeTerms = LifeTerms {
    startup: Duration::from_secs(10),
    heartbeat: Duration::from_secs(15),
    missed: std::num::NonZeroU32::new(3).expect("three is not zero"),
    threshold: std::num::NonZeroU32::new(3).expect("three is not zero"),
    activation: Activation::Eager,
    android: None,
};

async fn permit(post: &Post, permission: Permission, permit: Permit) -> Result<(), AskError> {
    let (sender, done) = oneshot::channel();
    post.orders.send(Order::Permit(permission, permit, sender)).await.map_err(|_| AskError::Leaving)?;
    let done = done.await.map_err(|_| AskError::Leaving)?;
    done.map_err(|error| AskError::NotRecorded { why: error.to_string() })
}

/// Waits until an extension that was told to leave is gone.
async fn rest(post: &Post) -> Result<View, AskError> {
    post.until(|state| *state != State::Stopping).await.ok_or(AskError::Leaving)?;
    Ok(post.show().await.ok_or(AskError::Leaving)?.view)
}

fn summary(shown: &Shown) -> Summary {
    let Shown { view, found, pid, uptime, next_start, .. } = shown;
    Summary {
        pid: *pid,
        uptime_ms: uptime.map(millis),
        next_start_ms: next_start.map(millis),
        ..Summary::of(found, view.state).living(view)
    }
}

fn detail(shown: &Shown) -> Detail {
    let Shown { found, dossier, session, exits, .. } = shown;
    let manifest = found.manifest.as_deref();
    let events = dossier
        .as_ref()
        .map(|dossier| HeardEvents { subscribed: dossier.wanted_and_heard(), denied: dossier.unheard() });
    Detail {
        summary: summary(shown),
        findings: found.findings.clone(),
        claimed_trust: manifest.map(|manifest| manifest.claimed_trust),
        clamped: found.admission.as_ref().and_then(|admission| admission.clamped.clone()),
        tree_sha256: found.digest.as_ref().map(ToString::to_string),
        declared: manifest.map(|manifest| manifest.permissions.clone()).unwrap_or_default(),
        permissions: dossier.as_ref().map(|dossier| dossier.grants.list()),
        events,
        limits: found.admission.as_ref().map(|admission| LimitsJson::from(&admission.limits)),
        session: session.clone(),
        exits: exits.clone(),
    }
}

/// The state of an extension that may not run.
pub(super) fn standing_state(standing: Standing) -> State {
    match standing {
        Standing::Invalid => State::Invalid,
        Standing::Blocked => State::Blocked,
        Standing::Unavailable => State::Unavailable,
        Standing::Admitted => State::Stopped,
    }
}

/// Whether people see the panels of such an extension, usable or not.
fn may_be_shown(standing: Standing) -> bool {
    match standing {
        Standing::Admitted | Standing::Unavailable => true,
        Standing::Invalid | Standing::Blocked => false,
    }
}

fn why_not(view: &View) -> Option<String> {
    let word =
        view.disabled.map(|reason| reason.to_string()).or(view.failed.map(|reason| reason.to_string()));
    match (word, view.detail.clone()) {
        (Some(word), Some(detail)) => Some(format!("{word}, {detail}")),
        (word, detail) => word.or(detail),
    }
}

fn same(known: &Found, found: &Found) -> bool {
    known.dir == found.dir
        && known.standing == found.standing
        && known.digest == found.digest
        && known.manifest == found.manifest
        && known.findings == found.findings
        && known.admission == found.admission
}

fn hash(id: &ExtensionId) -> u64 {
    // FNV-1a: the same id waits the same times on every machine.
    id.as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
