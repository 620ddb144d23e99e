//! Everything the host has for one extension: what was decided about it, its gate, its log, its numbers, its ears.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_policy::Millis;
use outrigger_supervise::sandbox::Enforced;
use outrigger_wire::tape::{Direction, Listener};

use super::channel::{Refusal, TraceTap, now_ms};
use super::events::{Outbox, Subscription, Topic};
use super::gate::{About, Desk, Gate, GateParts, GrantLayers, GrantSet, Listening, OperatorGrant, Services};
use super::life::{Activation, AndroidTerms, Ground, LifeTerms, Transition, View};
use super::listening::ListensTo;
use super::record::log::{Level, Stream};
use super::record::{
    Audit, AuditKind, Entry, ExtensionLog, Incident, Metrics, Ruling, Trace, TraceMode, Way,
};
use super::shared::Shared;
use super::ui::{Owner, Panels, Waking};
use super::view::Exit;
use crate::config::{self, TracePolicy};
use crate::manifest::{Admission, Found, Manifest, SandboxLevel};
use crate::protocol::{
    DeniedTopic, ExitKind, ExtensionId, LaunchReason, Permission, Profile, SessionId, State, TrustLevel,
    V1_1, Version,
};

/// What belongs to one extension as it was found; a changed manifest makes another one.
#[derive(Debug)]
pub(super) struct Dossier {
    pub(super) id: ExtensionId,
    pub(super) manifest: Arc<Manifest>,
    pub(super) admission: Admission,
    pub(super) gate: Arc<Gate>,
    pub(super) grants: Arc<GrantSet>,
    pub(super) log: Arc<ExtensionLog>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) trace: Arc<Trace>,
    subscription: Arc<Subscription>,
    listening: Arc<ListensTo>,
    audit: Arc<Audit>,
    panels: Arc<Panels>,
    terms: LifeTerms,
    /// Whether events wait already for the session that comes next.
    expecting: AtomicBool,
}

/// What an extension has for as long as the host runs, whatever becomes of its manifest.
#[derive(Clone, Debug)]
pub(super) struct Belongings {
    log: Arc<ExtensionLog>,
    trace: Arc<Trace>,
}

impl Belongings {
    pub(super) fn open(shared: &Shared, id: &ExtensionId, admission: &Admission) -> io::Result<Self> {
        let folder = shared.policy.state_dir.join("logs").join(id.as_str());
        let log = ExtensionLog::open(&folder, &admission.limits).map_err(io::Error::other)?;
        let mode = match shared.policy.trace {
            TracePolicy::Off => TraceMode::Off,
            TracePolicy::Redacted => TraceMode::Redacted,
            TracePolicy::Unredacted => TraceMode::Unredacted,
        };
        Ok(Self { log: Arc::new(log), trace: Arc::new(Trace::new(mode)) })
    }
}

impl Dossier {
    /// What there is for an admitted extension; `granted` and `revoked` are the operator's words.
    pub(super) fn new(
        shared: &Shared,
        found: &Found,
        belongings: Belongings,
        operator: OperatorGrant,
        revoked: Vec<Permission>,
    ) -> Option<Arc<Self>> {
        let (id, manifest, admission) =
            (found.id.clone()?, found.manifest.clone()?, found.admission.clone()?);
        let layers = GrantLayers {
            declared: manifest.permissions.clone(),
            operator,
            revoked,
            ceiling: admission.grantable.clone(),
            profile: Permission::ALL.to_vec(),
        };
        let grants = Arc::new(GrantSet::new(&id, layers));
        let metrics = shared.metrics.of(&id);
        let subscription = Arc::new(Subscription::new(&admission.limits));
        let listening = ListensTo::new(Arc::clone(&subscription), Arc::clone(&grants), &manifest.events);
        let listening = Arc::new(listening);
        let services = Services {
            messaging: Arc::clone(&shared.messaging),
            panels: Arc::clone(&shared.panels),
            notices: Arc::clone(&shared.notices),
            audit: Arc::clone(&shared.audit) as _,
            metrics: Arc::clone(&metrics) as _,
            logs: Arc::clone(&belongings.log) as _,
            subscription: Arc::clone(&listening) as _,
            dedup: Arc::clone(&shared.sent),
            cursor_key: shared.cursor_key.clone(),
        };
        let about = About {
            host: shared.program(),
            os: shared.facts.os.clone(),
            arch: shared.facts.arch.clone(),
            sandbox: sandbox_word(shared, &admission).to_owned(),
            features: Vec::new(),
        };
        let gate = Gate::new(GateParts {
            extension: id.clone(),
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            admission: admission.clone(),
            grants: Arc::clone(&grants),
            services,
            about,
        });
        let Belongings { log, trace } = belongings;
        log.count_in(Arc::clone(&metrics));
        Some(Arc::new(Self {
            terms: terms(shared, &manifest, &admission, &id),
            gate,
            grants,
            log,
            metrics,
            trace,
            subscription,
            listening,
            audit: Arc::clone(&shared.audit),
            panels: Arc::clone(&shared.panels),
            expecting: AtomicBool::new(false),
            id,
            manifest,
            admission,
        }))
    }

    pub(super) fn life_terms(&self) -> LifeTerms {
        self.terms
    }

    /// Shows the panels of its manifest, if it may have panels.
    pub(super) fn show_panels(&self) {
        let may = self.grants.granted().contains(&Permission::ToolsRegister);
        match may {
            true => self.panels.admit(&Owner {
                id: &self.id,
                name: &self.manifest.name,
                trust: self.admission.trust,
                claims: &self.manifest.panels,
                limits: &self.admission.limits,
                waking: match self.terms.activation {
                    Activation::Lazy => Waking::OnAction,
                    Activation::Eager => Waking::Never,
                },
            }),
            false => self.panels.withdraw(&self.id),
        }
    }

    /// A permission was given or taken back while it runs: its panels come or go.
    pub(super) fn permitted(&self, permission: Permission, ready: bool) {
        if permission == Permission::ToolsRegister && self.grants.granted().contains(&permission) {
            self.show_panels();
            if ready {
                self.panels.activate(&self.id);
            }
        }
    }

    /// Brings the numbers that are not counted but looked at up to date.
    pub(super) fn look_at_queue(&self) {
        if let Some(outbox) = self.subscription.outbox() {
            let tally = outbox.tally();
            self.metrics.set_queue(usize::try_from(tally.waiting).unwrap_or(usize::MAX), tally.waiting_bytes);
        }
    }

    pub(super) fn subscription(&self) -> &Arc<Subscription> {
        &self.subscription
    }

    /// The desk of a new session; events begin to wait for it.
    pub(super) fn desk(&self, session: &SessionId) -> Arc<Desk> {
        if !self.expecting.swap(false, Ordering::AcqRel) {
            self.begin_events();
        }
        self.gate.desk(session.clone())
    }

    /// Lets events wait for a session that is yet to be started. `None` when it hears about nothing.
    pub(super) fn expect_events(&self) -> Option<Arc<Outbox>> {
        self.expecting.store(true, Ordering::Release);
        let outbox = self.begin_events();
        (!self.subscription.topics().is_empty()).then_some(outbox)
    }

    fn begin_events(&self) -> Arc<Outbox> {
        self.listening.reset(&self.manifest.events);
        self.subscription.begin(&self.topics(), &self.grants.granted())
    }

    pub(super) fn is_lazy(&self) -> bool {
        self.terms.activation == Activation::Lazy
    }

    /// The session has begun: what waits for it is delivered.
    pub(super) fn open_events(&self, version: Version) -> Option<Arc<Outbox>> {
        self.subscription.ready(version);
        self.subscription.outbox()
    }

    /// What it wants to hear about and does, now or once it runs.
    pub(super) fn wanted_and_heard(&self) -> Vec<String> {
        self.listening.subscribed(V1_1)
    }

    pub(super) fn subscribed(&self) -> Vec<String> {
        self.subscription.topics().into_iter().map(|topic| topic.as_str().to_owned()).collect()
    }

    /// What it wants to hear about and does not.
    pub(super) fn unheard(&self) -> Vec<DeniedTopic> {
        self.listening.denied(V1_1)
    }

    fn topics(&self) -> Vec<Topic> {
        self.admission.events.subscribed.iter().filter_map(|name| Topic::parse(name).ok()).collect()
    }

    /// Who hears the frames of a session.
    pub(super) fn tap(&self, _: &SessionId) -> Option<TraceTap> {
        (self.trace.mode() != TraceMode::Off).then(|| Arc::new(Tap(Arc::clone(&self.trace))) as TraceTap)
    }

    pub(super) fn attach_denied(&self, session: &SessionId, refusal: Refusal) {
        self.metrics.incident(Incident::AttachDenied);
        let who = refusal.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
        self.host_says(&format!("refused a connection{who}: {}", refusal.why));
        self.note(Some(session), AuditKind::Attach, "host.attach", Ruling::Deny, refusal.why.as_str());
    }

    pub(super) fn starting(&self, reason: LaunchReason) {
        self.metrics.started();
        if reason == LaunchReason::Restart {
            self.metrics.restarted();
        }
    }

    pub(super) fn spawned(&self, session: Option<&SessionId>, enforced: &Enforced) {
        self.log.begin(session);
        let level = match enforced.level {
            outrigger_supervise::sandbox::Level::Off => "off",
            outrigger_supervise::sandbox::Level::Basic => "basic",
            _ => "strict",
        };
        self.note(session, AuditKind::Lifecycle, "sandbox", Ruling::Allow, level);
    }

    pub(super) fn ended(&self, session: Option<&SessionId>, exit: &Exit) {
        self.subscription.end();
        self.metrics.exited(exit.kind);
        if exit.kind == ExitKind::Reclaimed {
            self.metrics.incident(Incident::Reclaimed);
        }
        let code = exit.code.map(|code| format!(" with code {code}"));
        let signal = exit.signal.map(|signal| format!(" by signal {signal}"));
        let detail = exit.detail.as_ref().map(|detail| format!(": {detail}"));
        let parts = [code, signal, detail].into_iter().flatten().collect::<String>();
        self.host_says(&format!("ended ({}){parts}", exit.kind));
        self.note(session, AuditKind::Lifecycle, "exit", Ruling::Allow, exit.kind.as_str());
    }

    pub(super) fn changed(&self, session: Option<&SessionId>, transition: &Transition, view: &View) {
        self.metrics.set_state(transition.to);
        self.follow_ground(view.ground);
        let what = format!("{}_to_{}", transition.from, transition.to);
        self.note(session, AuditKind::Lifecycle, &what, Ruling::Allow, &transition.cause);
        self.host_says(&format!("{} → {} ({})", transition.from, transition.to, transition.cause));
        match transition.to {
            State::Ready if matches!(transition.from, State::Resuming | State::Pausing) => {
                self.panels.resume(&self.id)
            }
            State::Ready if transition.from == State::Unresponsive => {}
            State::Ready => self.panels.activate(&self.id),
            State::Stopped => self.panels.sleep(&self.id),
            State::Pausing | State::Suspended => self.panels.suspend(&self.id, "it is paused"),
            State::Backoff | State::Failed | State::Unavailable | State::Reclaimed => {
                let why = view.detail.clone().unwrap_or_else(|| transition.to.to_string());
                self.panels.fail(&self.id, &why);
            }
            State::Disabled | State::Removed | State::Invalid | State::Blocked | State::NeedsConsent => {
                self.panels.withdraw(&self.id);
            }
            State::Starting => self.panels.start(&self.id),
            State::Unresponsive => self.metrics.incident(Incident::HealthMissed),
            State::Resuming | State::Stopping => {}
        }
        if transition.from == State::Disabled || transition.from == State::NeedsConsent {
            self.show_panels();
        }
    }

    /// In the background half as many events may be on their way.
    fn follow_ground(&self, ground: Ground) {
        if let Some(outbox) = self.subscription.outbox() {
            let window = self.admission.limits.event_window;
            outbox.set_window(match ground {
                Ground::Foreground => window,
                Ground::Background => (window / 2).max(1),
            });
        }
    }

    pub(super) fn host_says(&self, line: &str) {
        self.log.line(Stream::Host, Level::Info, line);
    }

    /// Writes a decision about this extension down.
    pub(super) fn note(
        &self,
        session: Option<&SessionId>,
        kind: AuditKind,
        method: &str,
        decision: Ruling,
        reason: &str,
    ) {
        let entry = Entry {
            extension: Some(&self.id),
            session,
            kind,
            method,
            permission: None,
            decision,
            reason,
            request: None,
            params: None,
        };
        // What happens to a process has happened; only what is still to be allowed depends on being written down.
        let _ = self.audit.write(&entry);
    }
}

struct Tap(Arc<Trace>);

impl Listener for Tap {
    fn heard(&self, dir: Direction, line: &[u8]) {
        let way = match dir {
            Direction::In => Way::FromExtension,
            Direction::Out => Way::ToExtension,
        };
        self.0.frame(Millis(now_ms()), way, line);
    }
}

fn sandbox_word(shared: &Shared, admission: &Admission) -> &'static str {
    match admission.sandbox {
        SandboxLevel::Off => "off",
        SandboxLevel::Strict => "strict",
        SandboxLevel::Auto => shared.auto_level,
    }
}

fn terms(shared: &Shared, manifest: &Manifest, admission: &Admission, id: &ExtensionId) -> LifeTerms {
    let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
    let activation = match shared.policy.activation {
        config::Activation::Eager => Activation::Eager,
        config::Activation::Lazy => Activation::Lazy,
    };
    let android = (admission.profile == Profile::Android).then(|| AndroidTerms {
        background_ok: manifest.android.is_some_and(|android| android.background)
            && shared.policy.android.background.allows(id),
    });
    LifeTerms {
        startup: admission.limits.startup,
        heartbeat: manifest.health.heartbeat,
        missed: at_least_one(manifest.health.missed),
        threshold: at_least_one(admission.limits.crash_threshold),
        activation,
        android,
    }
}

/// What the operator grants: by the policy, by the ledger, and to first parties by being that.
pub(super) fn operator_grant(
    shared: &Shared,
    id: &ExtensionId,
    manifest: &Manifest,
    admission: &Admission,
    agreed: &[Permission],
) -> OperatorGrant {
    let policy = shared.policy.grants.get(id).map(Vec::as_slice).unwrap_or_default();
    let mut these: Vec<Permission> = match admission.trust {
        TrustLevel::FirstParty => manifest.permissions.clone(),
        TrustLevel::TrustedThirdParty | TrustLevel::UntrustedLocal => Vec::new(),
    };
    these.extend(policy.iter().chain(agreed));
    these.sort_unstable();
    these.dedup();
    OperatorGrant::These(these)
}
