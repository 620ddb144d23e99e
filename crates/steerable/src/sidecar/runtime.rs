//! What all requests and streams of a sidecar share. Nothing in it is made before it is used.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use outrigger_supervise::driver::{Settings as SupervisorSettings, Supervisor};
use outrigger_supervise::launch::Launcher;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::options::Options;
use super::pulse::{Phase, Pulse};
use super::streams::Streams;
use crate::agent::Consents;
use crate::model::Client;
use crate::net::Http;
use crate::protocol::{Check, Settings, Unsaid};
use crate::store::{Level, Store};
use crate::tools::mcp::Servers;
use crate::tools::{Grants, Programs, Stated, TodoList, Toolbox};

/// How many children may be starting at once.
const STARTING: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not 0");

/// What all requests and streams share.
pub(super) struct Runtime {
    pub(super) options: Options,
    pub(super) log: Log,
    pub(super) store: Store,
    pub(super) http: Http,
    pub(super) client: Client,
    pub(super) streams: Arc<Streams>,
    pub(super) consents: Consents,
    /// What a host's own calls of `todo_write` write.
    pub(super) todo: TodoList,
    /// Aborts requests that take long, and what they run.
    pub(super) stop: CancellationToken,
    /// What a stream is that does not say.
    pub(super) unsaid: Unsaid,
    /// One change of the settings at a time, because each builds on the one before.
    pub(super) setting: tokio::sync::Mutex<()>,
    settings: Mutex<Settings>,
    /// How many calls of tools the host has had made.
    pub(super) tool_calls: Arc<AtomicU64>,
    supervisor: OnceLock<Supervisor>,
    servers: OnceLock<Servers>,
    own: OnceLock<Own>,
    pulse: Pulse,
}

/// The sidecar's own tools, as the flags grant them.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) grants: Arc<Grants>,
}

impl Runtime {
    pub(super) fn new(options: Options, store: Store, settings: Settings, started: Instant) -> Self {
        let http = Http::new();
        let unsaid = match std::env::var_os("STEERABLE_SIDECAR_CORELOOP") {
            Some(value) if value == "1" || value == "true" => Unsaid::Turn,
            Some(_) | None => Unsaid::Plain,
        };
        Self {
            pulse: Pulse::new(&options.version, started),
            log: Log::new(settings.log_level),
            client: Client::new(http.clone()),
            http,
            streams: Streams::new(),
            consents: Consents::new(),
            todo: TodoList::default(),
            stop: CancellationToken::new(),
            unsaid,
            setting: tokio::sync::Mutex::new(()),
            settings: Mutex::new(settings),
            tool_calls: Arc::new(AtomicU64::new(0)),
            supervisor: OnceLock::new(),
            servers: OnceLock::new(),
            own: OnceLock::new(),
            options,
            store,
        }
    }

    pub(super) fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, settings: Settings) {
        self.log.set_level(settings.log_level);
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// How the runtime is, as JSON.
    pub(super) fn health(&self) -> Box<RawValue> {
        let active = self.store.active_traces() as u64;
        let phase = if self.streams.is_closed() { Phase::Closing } else { Phase::Serving };
        self.pulse.health(phase, self.own().toolbox.names().len(), active, &self.checks())
    }

    /// The sidecar's own tools.
    pub(super) fn own(&self) -> &Own {
        self.own.get_or_init(|| {
            let grants = Grants::settle(&self.options.grants, &Stated::default());
            let toolbox = self.toolbox(&grants, None);
            Own { toolbox: Arc::new(toolbox), grants: Arc::new(grants) }
        })
    }

    /// The built-in tools that these grants make useful, as far as the flags and `only` name them.
    pub(super) fn toolbox(&self, grants: &Grants, only: Option<&[String]>) -> Toolbox {
        let programs = Programs::new(self.supervisor().clone(), self.options.mustard.clone());
        let names: Option<Vec<String>> = match (&self.options.tool_names, only) {
            (None, only) => only.map(<[String]>::to_vec),
            (Some(flags), None) => Some(flags.clone()),
            (Some(flags), Some(only)) => {
                Some(only.iter().filter(|name| flags.contains(name)).cloned().collect())
            }
        };
        Toolbox::builtin(&programs, grants, names.as_deref())
    }

    /// The servers of tools.
    pub(super) fn servers(&self) -> &Servers {
        self.servers.get_or_init(|| Servers::new(self.supervisor().clone(), self.http.clone()))
    }

    /// Ends the servers of tools, if there are any.
    pub(super) async fn close_servers(&self) {
        if let Some(servers) = self.servers.get() {
            servers.close().await;
        }
    }

    fn supervisor(&self) -> &Supervisor {
        self.supervisor.get_or_init(|| {
            let launcher = Launcher::current_exe();
            Supervisor::new(SupervisorSettings { launcher, starting_at_once: STARTING })
        })
    }

    fn checks(&self) -> Vec<(String, Check)> {
        let storage = self.store.health();
        let status = match storage.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        let latency_ms =
            storage.latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX));
        let storage = Check { status: status.to_owned(), message: storage.message, latency_ms };
        let mut checks = vec![("storage".to_owned(), storage)];
        for server in self.servers.get().map(Servers::health).unwrap_or_default() {
            let status = if server.problem.is_none() { "ok" } else { "warn" };
            let check = Check { status: status.to_owned(), message: server.problem, latency_ms: None };
            checks.push((format!("mcp:{}", server.name), check));
        }
        checks
    }
}
