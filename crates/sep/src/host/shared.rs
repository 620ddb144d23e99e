//! What all parts of a host have in common, and how it is decided what becomes of an extension that was found.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::state::Moment;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use super::channel::{RunDirs, now_ms};
use super::dossier::{Belongings, Dossier, operator_grant};
use super::events::Bus;
use super::fleet::Begin;
use super::gate::{CursorKey, SendMemory};
use super::happening::{Happening, Scan};
use super::life::ledger::{Agreement, Asking, Clocks, Ledger, StateFile};
use super::life::{Activation, Event, Life, LifeTerms, View};
use super::memory::MemoryWatch;
use super::pace::Pace;
use super::platform::Position;
use super::record::{Audit, AuditKind, Entry, MetricsBook, Ruling};
use super::refusal::AskError;
use super::steward::{Order, Post};
use super::ui::{Notices, Panels};
use super::view::worst;
use crate::config::HostPolicy;
use crate::manifest::{self, Found, HostFacts, Standing};
use crate::mesh::Messaging;
use crate::protocol::{DisabledReason, ExtensionId, LaunchReason, Permission, Program, State};

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
    pub(super) bus: Arc<Bus>,
    pub(super) seed: u64,
    pub(super) begin: Begin,
    pub(super) state: Mutex<(StateFile, Ledger)>,
    pub(super) stewards: Mutex<BTreeMap<ExtensionId, Charge>>,
    /// What was found without a usable id.
    pub(super) nameless: Mutex<Vec<Found>>,
    pub(super) happenings: broadcast::Sender<Arc<Happening>>,
    pub(super) scanning: tokio::sync::Mutex<()>,
    /// Held while a signal goes round, so that nobody hears signals in another order than they came.
    pub(super) platform: tokio::sync::Mutex<Position>,
    pub(super) leaving: Notify,
}

/// An extension that has a steward.
pub(super) struct Charge {
    pub(super) post: Post,
    pub(super) found: Found,
    pub(super) belongings: Option<Belongings>,
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
    pub(super) async fn begin_one(&self, post: &Post) -> Result<View, AskError> {
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

    pub(super) fn change_ledger(&self, change: impl FnOnce(&mut Ledger)) -> Result<(), AskError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, ledger) = &mut *state;
        change(ledger);
        file.save(ledger).map_err(|error| AskError::NotRecorded { why: error.to_string() })
    }

    pub(super) fn note(&self, extension: Option<&ExtensionId>, kind: AuditKind, method: &str, reason: &str) {
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

    pub(super) fn stewards(&self) -> MutexGuard<'_, BTreeMap<ExtensionId, Charge>> {
        self.stewards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, id: &str) -> Result<(ExtensionId, Post), AskError> {
        let stewards = self.stewards();
        let found =
            ExtensionId::new(id).ok().and_then(|id| Some((id.clone(), stewards.get(&id)?.post.clone())));
        found.ok_or_else(|| AskError::Unknown {
            id: id.escape_debug().take(128).collect(),
            nearest: manifest::nearest(id, stewards.keys().map(ExtensionId::as_str)).map(str::to_owned),
        })
    }

    /// An extension was found. Says whether it is new or different.
    pub(super) async fn look(self: &Arc<Self>, id: &ExtensionId, found: Found) -> bool {
        let known = self.stewards().get(id).is_some_and(|charge| same(&charge.found, &found));
        if known && self.stewards().get(id).is_some_and(|charge| !charge.post.orders.is_closed()) {
            return false;
        }
        self.admit(id, found).await;
        true
    }

    /// Decides about an extension again, because somebody agreed to something.
    pub(super) async fn look_again(self: &Arc<Self>, id: &ExtensionId) {
        let found = self.stewards().get(id).map(|charge| charge.found.clone());
        if let Some(found) = found {
            self.admit(id, found).await;
        }
    }

    pub(super) async fn admit(self: &Arc<Self>, id: &ExtensionId, found: Found) {
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
    pub(super) fn charge(
        self: &Arc<Self>,
        id: &ExtensionId,
        found: &Found,
        belongings: Option<Belongings>,
    ) -> Post {
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

    pub(super) fn belongings(&self, id: &ExtensionId, found: &Found) -> Option<Belongings> {
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

    pub(super) fn agreement(&self, id: &ExtensionId, asking: Asking<'_>) -> Agreement {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, ledger) = &mut *state;
        if ledger.found(id, asking) {
            // A consent that cannot be written down is asked for again by the next host.
            let _ = file.save(ledger);
        }
        ledger.agreement(id, asking)
    }

    /// Whether what earlier hosts had written down could not be read.
    pub(super) fn forgot(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.moved_aside().is_some()
    }

    pub(super) fn revoked(&self, id: &ExtensionId) -> Vec<Permission> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.entry(id).map(|entry| entry.revoked.iter().copied().collect()).unwrap_or_default()
    }

    /// Somebody agrees to an extension and gives it `permissions`: `None` what it may simply have, empty all it declares.
    pub(super) fn agree(
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
    pub(super) fn known_folders(&self) -> Vec<PathBuf> {
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
