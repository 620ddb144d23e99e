//! All extensions of a host: finds them, puts a steward in charge of each, and is whom everybody else asks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_policy::Millis;
use outrigger_supervise::driver::Supervisor;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::time::Instant;

use super::channel::{Conversation, RunDirs, now_ms};
use super::events::Bus;
use super::folders::Folders;
use super::gate::{CursorKey, SendMemory};
use super::happening::{Happening, Scan};
use super::life::ledger::StateFile;
use super::life::{Event, PlatformSignal, View};
use super::listening::EventsCounted;
use super::memory::{self, MemoryWatch};
use super::pace::Pace;
use super::platform::Position;
use super::record::{Audit, AuditKind, MetricsBook, TracedFrame};
use super::refusal::{AskError, FleetError};
use super::shared::{Shared, standing_state};
use super::steward::{Order, Permit, Post, Shown};
use super::ui::{Notices, Panels};
use super::view::{Detail, HeardEvents, Summary, millis};
use crate::config::{HostPolicy, TracePolicy};
use crate::manifest::HostFacts;
use crate::mesh::Messaging;
use crate::protocol::{
    DisabledReason, ExtensionId, LaunchReason, LimitsJson, Permission, ShutdownReason, State,
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

fn why_not(view: &View) -> Option<String> {
    let word =
        view.disabled.map(|reason| reason.to_string()).or(view.failed.map(|reason| reason.to_string()));
    match (word, view.detail.clone()) {
        (Some(word), Some(detail)) => Some(format!("{word}, {detail}")),
        (word, detail) => word.or(detail),
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
