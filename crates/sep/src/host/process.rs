//! One process of an extension, from the decision to start it to its end. Everything that happens to it is told, in order, to
//! whoever decides.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::{Child, Outcome, Session};
use outrigger_supervise::launch::Status;
use outrigger_supervise::ready::{Gate as ReadyGate, Ready};
use outrigger_supervise::report::Report;
use outrigger_supervise::sandbox::Enforced;
use outrigger_supervise::spec::{Logs, Rules, Spec, Stdin, Tee};
use outrigger_supervise::state::{Cause, Heartbeat, Restart};
use outrigger_supervise::tree::Pid;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::boxing::{self, Home};
use super::channel::{
    ChannelEnd, Conversation, Expected, InitializeError, Refusal, Rendezvous, Transport, Witness, now_ms,
};
use super::dossier::Dossier;
use super::gate::Desk;
use super::life::{Ground, SpawnTrouble};
use super::shared::Shared;
use crate::manifest::{self, Found, Launch, LaunchError};
use crate::protocol::{
    DeniedTopic, ExitKind, Initialize, InitializeEvents, InitializeExtension, InitializePlatform,
    LaunchReason, LimitsJson, PlatformState, Sdk, SessionId, V1_0, V1_1, Version,
};

/// The life itself watches the start; the supervisor only makes sure that none goes on for ever.
const START_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long what a process sent before it ended may take to be heard.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// What the exit report shows of standard error.
const TAIL: Logs = Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None };
/// Pieces of output that may wait for the log.
const SPOKEN: usize = 64;

/// Which process of an extension something is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(pub(super) u64);

/// Something that happened to a process.
#[derive(Debug)]
pub(super) enum Told {
    /// It is under supervision and can be killed.
    Begun { child: Child, session: SessionId, transport: Transport },
    /// It runs.
    Spawned { pid: u32, enforced: Box<Enforced> },
    /// It does not, and will not.
    NotSpawned(SpawnTrouble, String),
    /// It has its channel.
    Attached { sdk: Option<Sdk>, conversation: Conversation, desk: Arc<Desk> },
    /// It speaks this version.
    Initialized(Version),
    /// It speaks none that we do.
    Incompatible(String),
    /// It does not want to begin.
    InitializeFailed(String),
    /// Calls to it wait for too long, or no longer.
    Overdue { calls: usize },
    /// The conversation is over.
    Broken(ExitKind, String),
    /// It is gone.
    Exited { status: Status, last_words: Vec<String> },
}

/// Everything a start needs.
pub(super) struct Start {
    pub(super) generation: Generation,
    pub(super) shared: Arc<Shared>,
    pub(super) dossier: Arc<Dossier>,
    pub(super) found: Found,
    pub(super) reason: LaunchReason,
    pub(super) ground: Ground,
    pub(super) told: mpsc::Sender<(Generation, Told)>,
}

impl Start {
    /// Starts the process and stays with it until it is gone. Dropping the future kills it.
    pub(super) async fn run(self) {
        let (child, mut session, rendezvous) = match self.spawn().await {
            Ok(parts) => parts,
            Err((trouble, why)) => return self.tell(Told::NotSpawned(trouble, why)).await,
        };
        // The session has the lifeline, whose end tells the extension that the host is gone: it is held to the last.
        let outcome = {
            let talking = self.talk(&mut session, rendezvous);
            tokio::pin!(talking);
            tokio::select! {
                outcome = child.wait() => {
                    // What it said before it left is heard before its leaving is.
                    let _ = timeout(LAST_WORDS, &mut talking).await;
                    outcome
                }
                () = &mut talking => child.wait().await,
            }
        };
        self.tell(exited(&outcome)).await;
    }

    async fn tell(&self, told: Told) {
        // Whoever decides outlives the process; if the host is being torn down, nobody needs to know.
        let _ = self.told.send((self.generation, told)).await;
    }

    /// From the files on disk to a running process with its meeting place.
    async fn spawn(&self) -> Result<(Child, Session, Rendezvous), (SpawnTrouble, String)> {
        let other = |why: String| (SpawnTrouble::Other, why);
        self.shared.pace.turn().await;
        let launch = self.prepare().await?;
        let admission =
            self.found.admission.as_ref().ok_or_else(|| other("it was not admitted".to_owned()))?;
        let by = boxing::transport(admission, &self.shared.policy);
        let mut rendezvous = Rendezvous::open(by, &self.shared.run_dirs)
            .map_err(|error| (SpawnTrouble::Resource, error.to_string()))?;
        let home = Home::of(&self.dossier.id, &self.shared.policy.state_dir);
        make_private(&home).map_err(|error| (SpawnTrouble::Resource, format!("its data folder: {error}")))?;

        let (spoken, mut to_log) = mpsc::channel(SPOKEN);
        let log = Arc::clone(&self.dossier.log);
        // Ends with the process, which has the other end.
        tokio::spawn(async move {
            while let Some(spoken) = to_log.recv().await {
                log.heard(&spoken);
            }
            log.ended();
        });
        let rules = Rules {
            ready: Ready::When { gate: ReadyGate::Attach, within: START_AT_MOST },
            heartbeat: Heartbeat::None,
            restart: Restart::Never,
            logs: TAIL,
        };
        let sandbox = boxing::sandbox(admission, &launch, &self.found.dir, &home, by);
        let mut spec =
            Spec::new(self.dossier.id.as_str(), launch.program.as_os_str(), &launch.cwd, sandbox, rules)
                .args(launch.args.iter().map(String::as_str));
        spec.program.environment.set = boxing::environment(&self.dossier.id, &launch, &home);
        spec.stdin = Stdin::Session;
        spec.tee = Some(Tee::new(spoken));
        if let Some(theirs) = rendezvous.child_end() {
            spec = spec.extra(only_once(theirs));
        }
        let child = self.shared.supervisor.start(spec).map_err(|error| other(error.to_string()))?;
        let begun =
            Told::Begun { child: child.clone(), session: rendezvous.session().clone(), transport: by };
        self.tell(begun).await;
        match child.next_session().await {
            Some(session) => Ok((child, session, rendezvous)),
            None => Err(not_spawned(&child.wait().await)),
        }
    }

    async fn prepare(&self) -> Result<Launch, (SpawnTrouble, String)> {
        let (found, shared) = (self.found.clone(), Arc::clone(&self.shared));
        // Hashes every file of the extension.
        let prepared =
            tokio::task::spawn_blocking(move || manifest::prepare(&found, &shared.policy, &shared.facts))
                .await;
        match prepared {
            Ok(Ok(launch)) => Ok(launch),
            Ok(Err(error)) => {
                if error == LaunchError::Changed {
                    // It is decided about anew, and the next try starts what was found then.
                    let shared = Arc::clone(&self.shared);
                    tokio::spawn(async move { shared.rescan().await });
                }
                Err((trouble(&error), error.to_string()))
            }
            Err(panic) => Err((SpawnTrouble::Other, panic.to_string())),
        }
    }

    /// Speaks with a running process until there is nothing more to hear.
    async fn talk(&self, session: &mut Session, rendezvous: Rendezvous) {
        let handle = session.handle();
        let Session { pid, enforced, stdin: Some(lifeline), .. } = session else { return };
        self.tell(Told::Spawned { pid: pid.get(), enforced: Box::new(enforced.clone()) }).await;
        match self.begin(*pid, lifeline, rendezvous).await {
            Ok(conversation) => {
                // Others may start now.
                handle.attached().await;
                let ChannelEnd { kind, detail } = self.attend(&conversation).await;
                self.tell(Told::Broken(kind, detail)).await;
            }
            Err(Begin::Broken(kind, why)) => self.tell(Told::Broken(kind, why)).await,
            Err(Begin::Told) => {}
        }
    }

    /// From the first line on standard input to an accepted `initialize`.
    async fn begin(
        &self,
        pid: Pid,
        lifeline: &mut pipe::Sender,
        rendezvous: Rendezvous,
    ) -> Result<Conversation, Begin> {
        let lost = |why: String| Begin::Broken(ExitKind::ChannelLost, why);
        let session = rendezvous.session().clone();
        let bootstrap = rendezvous.bootstrap();
        let written = lifeline.write_all(bootstrap.as_bytes()).await;
        written.map_err(|error| lost(format!("it closed its standard input: {error}")))?;
        drop(bootstrap);

        let expected = Expected { pid, uid: self.shared.facts.uid };
        let strangers = Strangers { dossier: Arc::clone(&self.dossier), session: session.clone() };
        let attached = rendezvous.attach(expected, Arc::new(strangers)).await;
        let attached = attached.map_err(|error| lost(error.to_string()))?;
        let sdk = attached.sdk.clone();
        let desk = self.dossier.desk(&session);
        let tap = self.dossier.tap(&session);
        let conversation =
            Conversation::start(attached, Arc::clone(&desk) as _, &self.dossier.admission.limits, tap);
        self.tell(Told::Attached { sdk, conversation: conversation.clone(), desk: Arc::clone(&desk) }).await;

        let initialize = self.introduction(session);
        let answer = conversation.initialize(&initialize, self.dossier.manifest.api_version).await;
        match answer {
            Ok(initialized) => {
                let version = initialized.protocol_version;
                desk.opened(version);
                self.tell(Told::Initialized(version)).await;
                Ok(conversation)
            }
            Err(InitializeError::Incompatible { detail, said }) => {
                // What it asked for right behind its answer is answered too.
                desk.leaving();
                self.tell(Told::Incompatible(format!("{detail}: it said {said}"))).await;
                Err(Begin::Told)
            }
            Err(InitializeError::Refused(error)) => {
                desk.leaving();
                self.tell(Told::InitializeFailed(error.to_string())).await;
                Err(Begin::Told)
            }
            Err(InitializeError::Unanswered(failure)) => Err(lost(failure.to_string())),
        }
    }

    /// Watches the conversation until it is over.
    async fn attend(&self, conversation: &Conversation) -> ChannelEnd {
        let mut overdue = conversation.overdue();
        let ended = conversation.ended();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                end = &mut ended => return end,
                changed = overdue.changed() => {
                    if changed.is_err() {
                        return ended.await;
                    }
                    let calls = overdue.borrow_and_update().calls;
                    self.tell(Told::Overdue { calls }).await;
                }
            }
        }
    }

    /// What the extension is told first.
    fn introduction(&self, session: SessionId) -> Initialize {
        let Dossier { id, manifest, admission, .. } = &*self.dossier;
        let plan = &admission.events;
        let denied = |topic: &manifest::DeniedTopic| DeniedTopic {
            topic: topic.topic.clone(),
            reason: topic.reason.to_owned(),
        };
        let home = Home::of(id, &self.shared.policy.state_dir);
        Initialize {
            protocol_version: V1_1,
            supported_versions: vec![V1_1, V1_0],
            host: self.shared.program(),
            extension: InitializeExtension {
                id: id.clone(),
                version: manifest.version.clone(),
                data_dir: home.data.to_string_lossy().into_owned(),
            },
            session,
            launch_reason: self.reason,
            trust_level: admission.trust,
            permissions: self.dossier.grants.granted(),
            events: InitializeEvents {
                subscribed: self.dossier.subscribed(),
                denied: plan.denied.iter().map(denied).collect(),
                ignored: plan.ignored.clone(),
            },
            limits: LimitsJson::from(&admission.limits),
            platform: InitializePlatform {
                profile: admission.profile,
                state: match self.ground {
                    Ground::Foreground => PlatformState::Foreground,
                    Ground::Background => PlatformState::Background,
                },
            },
            now_ms: now_ms(),
        }
    }
}

/// Why there is no session.
enum Begin {
    Broken(ExitKind, String),
    /// It was told already.
    Told,
}

/// Writes down who was refused at the door.
struct Strangers {
    dossier: Arc<Dossier>,
    session: SessionId,
}

impl Witness for Strangers {
    fn refused(&self, refusal: Refusal) {
        self.dossier.attach_denied(&self.session, refusal);
    }
}

fn exited(outcome: &Outcome) -> Told {
    let report = outcome.report.as_deref();
    let status = report.and_then(|report| report.status).unwrap_or(Status::Unknown);
    let last_words = report.map(|report: &Report| &report.stderr[..]).unwrap_or_default();
    Told::Exited { status, last_words: last_words.iter().map(|line| line.text.clone()).collect() }
}

fn trouble(error: &LaunchError) -> SpawnTrouble {
    match error {
        LaunchError::Tampered { .. } => SpawnTrouble::Tampered,
        LaunchError::Blocked(_) | LaunchError::NotAdmitted { .. } => SpawnTrouble::Missing,
        LaunchError::Changed => SpawnTrouble::Other,
    }
}

/// Why a child that was to be started never had a process.
fn not_spawned(outcome: &Outcome) -> (SpawnTrouble, String) {
    let report = outcome.report.as_deref();
    let trouble = match report.map(|report| report.cause) {
        Some(Cause::SpawnFailed) => SpawnTrouble::Missing,
        Some(Cause::HostResource) => SpawnTrouble::Resource,
        Some(Cause::Sandbox) => SpawnTrouble::Sandbox,
        Some(_) | None => SpawnTrouble::Other,
    };
    let why = report.and_then(|report| report.detail.clone());
    (trouble, why.unwrap_or_else(|| "it was not started".to_owned()))
}

/// Gives a descriptor to the one process that there will be.
fn only_once(
    descriptor: OwnedFd,
) -> impl Fn(outrigger_supervise::state::Incarnation) -> io::Result<Vec<OwnedFd>> + Send + Sync + 'static {
    let slot = Mutex::new(Some(descriptor));
    move |_| {
        let taken = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(|descriptor| vec![descriptor]).ok_or_else(|| io::Error::other("it was given away already"))
    }
}

fn make_private(home: &Home) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&home.temporary)
}
