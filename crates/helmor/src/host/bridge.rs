//! The bridge: a sidecar that is started when it is needed, and again when it has died.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_supervise::driver::{Child, ChildEvent, Heard, Opened, Supervisor};
use outrigger_supervise::report::Report;
use outrigger_supervise::state::{Cause, Phase, Rung};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Counts};
use super::error::{BridgeError, Lost, StartError, StartErrorKind};
use super::keeper::Keeper;
use super::reverse::Reverse;
use super::sessions::Sessions;
use super::spec::BridgeSpec;
use super::starts::{Deaths, TooMany};
use super::stream::Stream;
use super::terms::Terms;
use crate::protocol::{Event, ProviderName, Said, SendMessage, UpdateConfig};
use crate::provider::Change;

/// A bridge to the agents. Clones are the same bridge; dropping the last one kills the sidecar with everything it started.
#[derive(Clone)]
pub struct Bridge {
    inner: Arc<Inner>,
}

struct Inner {
    supervisor: Supervisor,
    spec: BridgeSpec,
    terms: Terms,
    reverse: Arc<dyn Reverse>,
    sessions: Sessions,
    counts: Arc<Counts>,
    deaths: Arc<Mutex<Deaths>>,
    /// What is told to every new process.
    config: Mutex<Change>,
    /// The process that is ready, for those who do not want one to be started.
    current: Mutex<Option<Arc<Connection>>>,
    /// Whoever wants to change which process there is waits for this.
    slot: tokio::sync::Mutex<Slot>,
    closing: CancellationToken,
}

#[derive(Default)]
struct Slot {
    up: Option<Up>,
    /// How the last start failed, for those who waited for it.
    failed: Option<BridgeError>,
}

struct Up {
    child: Child,
    connection: Arc<Connection>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(connection) = lock(&self.current).take() {
            connection.lose(&Lost { what: "the host let go of the sidecar".to_owned(), report: None });
        }
    }
}

/// How a sidecar was stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// What it took.
    pub by: StoppedBy,
    /// The report on its process, if there was one.
    pub report: Option<Arc<Report>>,
}

/// What it took to stop a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoppedBy {
    /// Nothing: none was running.
    NotRunning,
    /// It left when it was asked to.
    Request,
    /// SIGTERM.
    Sigterm,
    /// SIGKILL for its whole tree.
    Sigkill,
}

impl Bridge {
    /// A bridge. Nothing is started before the first request.
    pub fn new(supervisor: Supervisor, spec: BridgeSpec, terms: Terms, reverse: Arc<dyn Reverse>) -> Self {
        let deaths = Deaths::new(terms.backoff, terms.crashes);
        let inner = Inner {
            supervisor,
            spec,
            sessions: Sessions::new(terms.sessions),
            terms,
            reverse,
            counts: Arc::default(),
            deaths: Arc::new(Mutex::new(deaths)),
            config: Mutex::default(),
            current: Mutex::default(),
            slot: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Begins a turn. A session without a `resume` goes on where its last turn with this provider was; to begin anew,
    /// [`forget`](Self::forget) it first. What goes wrong after the request was written is the end of the stream.
    ///
    /// # Errors
    /// When the session is busy, or there is no sidecar.
    pub async fn send(&self, mut send: SendMessage) -> Result<Stream, BridgeError> {
        let busy = || BridgeError::Busy { session: send.session_id.clone() };
        let turn = self.inner.sessions.begin(&send.session_id).ok_or_else(busy)?;
        let connection = self.connection().await?;
        match &send.resume {
            Some(resume) => self.remember(&send.session_id, &send.provider, resume),
            None => send.resume = self.inner.sessions.resume(&send.session_id, &send.provider),
        }
        let (id, queue) = connection.open_stream(&send, turn)?;
        let whose = (send.session_id.clone(), send.provider.clone());
        // From here on dropping this future drops the stream, which stops the turn.
        let stream = Stream::new(id, whose, queue, Arc::downgrade(&connection));
        match connection.say("sendMessage", stream.id(), &send.to_params()).await {
            Ok(()) => Ok(stream),
            Err(error) => {
                connection.hub.withdraw(stream.id());
                Err(error)
            }
        }
    }

    /// Replaces the process by a fresh one, also one that died too often. Streams are stopped; sessions can be resumed.
    ///
    /// # Errors
    /// When the fresh one does not become ready.
    pub async fn restart(&self) -> Result<(), BridgeError> {
        let mut slot = self.inner.slot.lock().await;
        self.stop_process(&mut slot).await;
        lock(&self.inner.deaths).forgive();
        self.start(&mut slot).await.map(drop)
    }

    /// Stops the sidecar for good: `shutdown`, SIGTERM, SIGKILL, each with its time ([`Terms::ladder`]). Streams end as it ends
    /// them, or lost. Returns when everything is reaped; every later request is refused.
    pub async fn shutdown(&self) -> Stopped {
        self.inner.closing.cancel();
        let mut slot = self.inner.slot.lock().await;
        self.stop_process(&mut slot).await
    }

    /// The provider's name of a session, which the next turn goes on with.
    #[must_use]
    pub fn resume_id(&self, session: &str) -> Option<(ProviderName, String)> {
        self.inner.sessions.resumable(session)
    }

    /// Tells the name of a session that was begun before this bridge was.
    pub fn remember(&self, session: &str, provider: &ProviderName, resume: &str) {
        self.inner.sessions.remember(session, provider.clone(), resume.to_owned());
    }

    /// Forgets what a session would go on with.
    pub fn forget(&self, session: &str) {
        self.inner.sessions.forget_resume(session);
    }

    /// The process, while there is one that is ready.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running().map(|connection| connection.pid.get())
    }

    /// Changes settings for all sessions, now and in every later process. Starts nothing.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer. The setting is kept all the same.
    pub async fn update_config(&self, change: Change) -> Result<(), BridgeError> {
        let params = UpdateConfig { session_id: None, change: change.clone() }.to_params();
        {
            let mut config = lock(&self.inner.config);
            let Change { model, permission_mode, cursor_api_key } = change;
            config.model = model.or(config.model.take());
            config.permission_mode = permission_mode.or(config.permission_mode);
            config.cursor_api_key = cursor_api_key.or(config.cursor_api_key.take());
        }
        let Some(connection) = self.running() else { return Ok(()) };
        connection.ask("updateConfig", &params, self.inner.terms.waits.control).await.map(drop)
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.inner.terms
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// The process, if it is there already.
    pub(super) fn running(&self) -> Option<Arc<Connection>> {
        lock(&self.inner.current).clone().filter(|connection| !connection.is_ending())
    }

    /// The process, which is started if there is none.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, BridgeError> {
        if self.inner.closing.is_cancelled() {
            return Err(BridgeError::Closed);
        }
        if let Some(connection) = self.running() {
            return Ok(connection);
        }
        let mut slot = match self.inner.slot.try_lock() {
            Ok(slot) => slot,
            Err(_) => {
                // Somebody starts it. Whoever waited for that gets what came of it, and does not try again.
                let slot = self.inner.slot.lock().await;
                if let Some(connection) = self.running() {
                    return Ok(connection);
                }
                if let Some(error) = &slot.failed {
                    return Err(error.clone());
                }
                slot
            }
        };
        match self.running() {
            Some(connection) => Ok(connection),
            None => self.start(&mut slot).await,
        }
    }

    /// Starts a process, after the last one has been mourned.
    async fn start(&self, slot: &mut Slot) -> Result<Arc<Connection>, BridgeError> {
        slot.failed = None;
        if let Some(Up { connection, .. }) = slot.up.take() {
            connection.ended().await;
        }
        let started = tokio::select! {
            biased;
            () = self.inner.closing.cancelled() => Err(BridgeError::Closed),
            started = self.begin() => started,
        };
        match started {
            Ok(up) => {
                let connection = Arc::clone(&up.connection);
                *lock(&self.inner.current) = Some(Arc::clone(&connection));
                slot.up = Some(up);
                Ok(connection)
            }
            Err(error) => {
                slot.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn begin(&self) -> Result<Up, BridgeError> {
        let next = lock(&self.inner.deaths).next_start(Instant::now());
        let at =
            next.map_err(|TooMany { deaths, within, last }| BridgeError::CrashLoop { deaths, within, last })?;
        sleep_until(at).await;
        let up = self.spawn().await.inspect_err(|error| {
            let lost =
                Lost { what: format!("`{}` {}", error.name, error.what), report: error.report.clone() };
            lock(&self.inner.deaths).died(Instant::now(), lost);
        })?;
        let change = lock(&self.inner.config).clone();
        if change != Change::default() {
            // It is on the wire before the request that wanted the process; nobody waits for the answer.
            up.connection
                .post("updateConfig", &UpdateConfig { session_id: None, change }.to_params())
                .await?;
        }
        Ok(up)
    }

    async fn spawn(&self) -> Result<Up, StartError> {
        let Inner { supervisor, spec, terms, .. } = &*self.inner;
        let failed = |kind, what: String, child: Option<&Child>| {
            let report = child.and_then(Child::last_report);
            let stderr = match (&report, child) {
                (Some(report), _) => report.stderr.clone(),
                (None, Some(child)) => child.stderr_tail(),
                (None, None) => Vec::new(),
            };
            StartError { kind, name: spec.name.clone(), what, report, stderr }
        };
        let child = supervisor
            .start(spec.supervised(terms))
            .map_err(|error| failed(StartErrorKind::Spawn, format!("cannot be started: {error}"), None))?;
        let events = child.events();
        let Some(mut session) = child.next_session().await else {
            let cause = child.wait().await.report.map(|report| report.cause);
            let (kind, what) = match cause {
                Some(Cause::StartupTimeout) => {
                    (StartErrorKind::Late, format!("was not ready within {:?}", terms.ready_within))
                }
                Some(
                    Cause::ExitBeforeReady | Cause::ProtocolViolation | Cause::ChannelLost | Cause::Crash,
                ) => (StartErrorKind::Exited, "ended before it was ready".to_owned()),
                _ => (StartErrorKind::Spawn, "could not be started".to_owned()),
            };
            return Err(failed(kind, what, Some(&child)));
        };
        if let Some(version) = strange_version(session.ready().await) {
            child.kill().await;
            let what = format!("speaks version {version}, and this host speaks 1");
            return Err(failed(StartErrorKind::Incompatible, what, Some(&child)));
        }
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err(failed(StartErrorKind::Spawn, "was started without pipes".to_owned(), Some(&child)));
        };
        let (connection, reader) = Connection::open(
            (session.pid, session.handle()),
            (stdin, stdout),
            (terms.clone(), self.inner.sessions.clone()),
            Arc::clone(&self.inner.reverse),
            Arc::clone(&self.inner.counts),
        );
        let keeper = Keeper {
            name: spec.name.clone(),
            connection: Arc::clone(&connection),
            session,
            events,
            reader,
            deaths: Arc::clone(&self.inner.deaths),
        };
        tokio::spawn(keeper.keep());
        Ok(Up { child, connection })
    }

    async fn stop_process(&self, slot: &mut Slot) -> Stopped {
        let Some(Up { child, connection }) = slot.up.take() else {
            return Stopped { by: StoppedBy::NotRunning, report: None };
        };
        let was_over = child.status().ended.is_some();
        let report = child.stop(self.inner.terms.ladder).await.report;
        connection.ended().await;
        *lock(&self.inner.current) = None;
        let by = if was_over { StoppedBy::NotRunning } else { rung(&child).await };
        Stopped { by, report }
    }
}

/// How far down the ladder it went.
async fn rung(child: &Child) -> StoppedBy {
    let mut events = child.events();
    let mut by = StoppedBy::Request;
    while let Some(heard) = events.next().await {
        if let Heard::Event(ChildEvent::Changed(change)) = heard
            && let Phase::Stopping(rung) = change.to
        {
            by = by.max(match rung {
                Rung::Ask => StoppedBy::Request,
                Rung::Term => StoppedBy::Sigterm,
                Rung::Kill => StoppedBy::Sigkill,
            });
        }
    }
    by
}

/// The version that a ready line says, if it is one that we do not speak. One that says none is of the first.
fn strange_version(opened: Option<Opened>) -> Option<u64> {
    let Some(Opened::Line(line)) = opened else { return None };
    let line = String::from_utf8(line).ok()?;
    match Event::read(&line).ok()?.said().ok()? {
        Said::Ready { version } => (version > 1).then_some(version),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("name", &self.inner.spec.name)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}
