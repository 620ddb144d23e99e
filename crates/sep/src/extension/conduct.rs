//! One session from the attach to the end: the conductor answers what must never wait, and knows when it is over.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use outrigger_wire::rpc::{Id, code};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::api::{Extension, Health, Shutdown, Trouble};
use super::client::HostClient;
use super::desk::{Control, Desk, empty};
use super::lanes::{begin, guarded};
use super::link::Link;
use super::session::{Outcome, Session, error};
use super::welcome::{SPOKEN, Welcome, negotiate};
use crate::protocol::{
    Attach, HealthAnswer, HealthStatus, HostMethod, Initialized, Sdk, SelfDescription, ShutdownReason,
};

/// How long the host may take to accept the attach; it ends the process itself long before that if it does not.
const ATTACH_PATIENCE: Duration = Duration::from_secs(120);

/// How long `on_health` may take before the kit answers in its place.
const HEALTH_PATIENCE: Duration = Duration::from_secs(1);

/// How much of the time to leave is kept for leaving.
const MARGIN: Duration = Duration::from_millis(200);

/// How long `on_shutdown` has when the host has gone.
const ORPHAN_TIME: Duration = Duration::from_secs(1);

/// Things that the conductor may have before it; then nothing more is read.
const MAX_CONTROLS: usize = 64;

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The host asked for it.
    Asked,
    /// The host has gone.
    HostGone,
    /// The host did not take the attach.
    Refused(String),
    /// No common version of the protocol.
    Incompatible(String),
    /// The extension says that it cannot work like this.
    NotConfigured(String),
    /// The channel was closed, or broke.
    Closed(String),
}

/// Tells a conductor that the host has gone.
pub(super) struct Lifeline(SyncSender<Control>);

impl Lifeline {
    /// The host has gone. Never waits: whoever cannot be told is ended anyway.
    pub(super) fn cut(&self) {
        let _ = self.0.try_send(Control::HostGone);
    }
}

/// A session that has not begun.
pub(super) struct Conductor {
    desk: Arc<Desk>,
    controls: Receiver<Control>,
    /// Who asks `on_health`, and where the answers come.
    health: Option<(SyncSender<()>, Receiver<Health>)>,
    /// `on_health` has been asked and has not answered.
    health_is_late: bool,
    leaving: Option<Instant>,
}

impl Conductor {
    pub(super) fn new(extension: Arc<dyn Extension>, link: Link) -> std::io::Result<Self> {
        let (control, controls) = sync_channel(MAX_CONTROLS);
        let session = Arc::new(Session::new(link.try_clone()?));
        let desk = Arc::new(Desk::new(extension, session, control));
        let reader = desk.clone();
        begin("sep-reader", move || reader.read(link))?;
        Ok(Self { desk, controls, health: None, health_is_late: false, leaving: None })
    }

    pub(super) fn lifeline(&self) -> Lifeline {
        Lifeline(self.desk.control.clone())
    }

    /// Attaches and serves until the session is over.
    pub(super) fn conduct(mut self, token: &str, session: &str) -> Ending {
        if let Err(why) = self.attach(token, session) {
            return Ending::Refused(why);
        }
        loop {
            match self.next() {
                Some(control) => {
                    if let Some(ending) = self.step(control) {
                        return ending;
                    }
                }
                // The time to leave is up, whatever `on_shutdown` still does.
                None => return Ending::Asked,
            }
        }
    }

    fn attach(&self, token: &str, session: &str) -> Result<(), String> {
        let sdk = Sdk {
            name: "outrigger-sep".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            language: "rust".into(),
        };
        let attach = Attach { token: token.to_owned(), session: session.to_owned(), sdk: Some(sdk) };
        let params = to_raw_value(&attach).map_err(|error| error.to_string())?;
        let method = HostMethod::Attach.as_str();
        match self.desk.session.call(method, Some(&*params), ATTACH_PATIENCE, None) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The next thing, or nothing when the time to leave is up.
    fn next(&self) -> Option<Control> {
        let closed = |_| Control::Closed("the kit's reader has gone".to_owned());
        match self.leaving {
            None => Some(self.controls.recv().unwrap_or_else(closed)),
            Some(until) => self.controls.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        }
    }

    fn step(&mut self, control: Control) -> Option<Ending> {
        let session = self.desk.session.clone();
        match control {
            Control::Initialize(id, params) => self.initialize(&id, &params).err(),
            Control::Ping(id, params) => {
                let answer = self.health(&params);
                session.answer_at_once(&id, &raw(&answer));
                None
            }
            Control::Shutdown(id, params) => {
                session.answer_at_once(&id, &Ok(empty()));
                let reason = params["reason"].as_str().and_then(|word| ShutdownReason::parse(word).ok());
                let within = Duration::from_millis(params["deadlineMs"].as_u64().unwrap_or_default());
                let reason = reason.unwrap_or(ShutdownReason::Stop);
                self.leave(Shutdown { reason, within: within.saturating_sub(MARGIN) }).err()
            }
            Control::Say(lines) => {
                lines.into_iter().for_each(|line| session.write(line));
                None
            }
            Control::Answer(id, outcome) => {
                session.answer_at_once(&id, &outcome);
                None
            }
            // Whoever is asked to leave in the middle of it has not failed.
            Control::NotConfigured(_) if self.leaving.is_some() => None,
            Control::NotConfigured(why) => Some(Ending::NotConfigured(why)),
            Control::SaidGoodbye => Some(Ending::Asked),
            Control::HostGone => {
                session.end("the host has gone");
                self.leave(Shutdown { reason: ShutdownReason::HostExit, within: ORPHAN_TIME })
                    .err()
                    .or_else(|| self.wait_for_goodbye())
            }
            // A host that closes while we leave has seen enough.
            Control::Closed(_) if self.leaving.is_some() => None,
            Control::Closed(why) => Some(Ending::Closed(why)),
        }
    }

    fn initialize(&self, id: &Id, params: &Value) -> Result<(), Ending> {
        let session = &self.desk.session;
        if session.version().is_some() {
            let again = error(code::sep::ALREADY_INITIALIZED, "already_initialized", "the session has begun");
            session.answer_at_once(id, &Err(again));
            return Ok(());
        }
        let about = self.desk.extension.about();
        let version = match negotiate(params, &about) {
            Ok(version) => version,
            Err(none) => {
                let mut refusal =
                    error(code::sep::VERSION_UNSUPPORTED, "version_unsupported", none.to_string());
                let supported: Vec<String> = SPOKEN
                    .iter()
                    .filter(|version| version.serves(about.lowest) && **version <= about.highest)
                    .map(ToString::to_string)
                    .collect();
                let data = json!({"sep": "version_unsupported", "requested": params["protocolVersion"], "supported": supported});
                refusal.data = to_raw_value(&data).ok();
                session.answer_at_once(id, &Err(refusal));
                return Err(Ending::Incompatible(none.to_string()));
            }
        };
        let welcome = Welcome::read(params, version);
        let who = SelfDescription { name: about.name, version: about.version };
        let described = who.name.is_some() || who.version.is_some();
        let extension = described.then_some(who);
        let answer = Initialized { protocol_version: version, extension, features: Vec::new() };
        // All before the answer: a host may tell and ask at once, and what it hears or asks for may call back at once.
        let (answered, wait) = sync_channel(1);
        self.begin_work(welcome.clone(), wait)
            .map_err(|error| Ending::Closed(format!("no thread for events: {error:?}")))?;
        session.agree(version, welcome.max_frame_bytes, welcome.max_calls);
        session.answer_at_once(id, &raw(&answer));
        let _ = answered.send(());
        Ok(())
    }

    /// `on_initialize` runs in the thread of the events, before all of them, once the host has been answered.
    fn begin_work(&self, welcome: Welcome, answered: Receiver<()>) -> Result<(), super::lanes::NotTaken> {
        let desk = self.desk.clone();
        self.desk.events.take(Box::new(move || {
            if answered.recv().is_err() {
                return;
            }
            let host = HostClient::new(desk.session.clone(), None);
            if let Err(trouble) = guarded(|| desk.extension.on_initialize(&host, &welcome)) {
                let _ = desk.control.send(Control::NotConfigured(trouble.to_string()));
                return;
            }
            let _ = desk.ready.set(());
        }))
    }

    fn health(&mut self, params: &Value) -> HealthAnswer {
        let seq = params["seq"].as_u64().unwrap_or_default();
        let (status, detail) = match self.leaving {
            Some(_) => (HealthStatus::Stopping, None),
            None => match self.ask_health() {
                Some(Health::Ok) => (HealthStatus::Ok, None),
                Some(Health::Degraded(why)) => {
                    (HealthStatus::Degraded, Some(why.chars().take(256).collect()))
                }
                Some(Health::Stopping) => (HealthStatus::Stopping, None),
                None => (HealthStatus::Degraded, Some("the health handler takes its time".to_owned())),
            },
        };
        HealthAnswer { status, detail, seq }
    }

    /// Asks `on_health` in its own thread; nothing if it does not answer in time.
    fn ask_health(&mut self) -> Option<Health> {
        if self.health.is_none() {
            self.health = health_thread(self.desk.extension.clone()).ok();
        }
        let (ask, answers) = self.health.as_ref()?;
        if self.health_is_late {
            // An answer to an earlier question is old, but shows that it answers again.
            self.health_is_late = answers.try_recv().is_err();
            if self.health_is_late {
                return None;
            }
        }
        ask.try_send(()).ok()?;
        let answer = answers.recv_timeout(HEALTH_PATIENCE).ok();
        self.health_is_late = answer.is_none();
        answer
    }

    fn leave(&mut self, shutdown: Shutdown) -> Result<(), Ending> {
        let until = Instant::now() + shutdown.within;
        if self.leaving.is_some() {
            self.leaving = self.leaving.map(|before| before.min(until));
            return Ok(());
        }
        self.leaving = Some(until);
        let (extension, control) = (self.desk.extension.clone(), self.desk.control.clone());
        let begun = begin("sep-shutdown", move || {
            let _ = guarded(|| -> Result<(), Trouble> {
                extension.on_shutdown(&shutdown);
                Ok(())
            });
            let _ = control.send(Control::SaidGoodbye);
        });
        begun.map_err(|_| Ending::Asked)
    }

    /// With nobody left to serve, only the goodbye is waited for.
    fn wait_for_goodbye(&self) -> Option<Ending> {
        while let Some(control) = self.next() {
            if matches!(control, Control::SaidGoodbye) {
                break;
            }
        }
        Some(Ending::HostGone)
    }
}

fn health_thread(extension: Arc<dyn Extension>) -> std::io::Result<(SyncSender<()>, Receiver<Health>)> {
    let (ask, asked) = sync_channel::<()>(1);
    let (answer, answers) = sync_channel(1);
    begin("sep-health", move || {
        while asked.recv().is_ok() {
            let health = guarded(|| Ok(extension.on_health()));
            let health = health.unwrap_or_else(|trouble| Health::Degraded(trouble.to_string()));
            if answer.send(health).is_err() {
                break;
            }
        }
    })?;
    Ok((ask, answers))
}

fn raw(value: &impl serde::Serialize) -> Outcome {
    let raw: Result<Box<RawValue>, _> = to_raw_value(value);
    raw.map_err(|why| error(code::INTERNAL_ERROR, "internal_error", why.to_string()))
}
