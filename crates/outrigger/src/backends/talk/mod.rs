//! Conversations as runs: a prompt to the steerable runtime, one process a run, one transcript a thread.
//!
//! [`model`] says who is talked to, [`turn`] runs a turn to its end, [`translate`] makes events of what it says, [`ask`] brings what it asks to a
//! person, [`ending`] says what came of it. The receipt is sealed from the log, as a script's is.

mod ask;
mod ending;
mod model;
mod plan;
mod thread;
mod translate;
mod turn;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_abp::protocol::{Capability, Manifest, PolicyProfile, SupportLevel};
use outrigger_steerable::host::{Nobody, Sidecar, SidecarSpec, Terms};
use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::state::Restart;
use std::sync::Arc;
use tokio::time::timeout;

use self::model::Model;
use super::order::job;
use super::order::look::{Looks, Seen, WITHIN};
use super::turns::Turns;
use crate::config;
use crate::engine::BoxFuture;
use crate::runs::{Attempt, Backend, BackendView, Concluded, Health, NewRun, RequestError};

/// The longest name of a thread.
const MAX_THREAD: usize = 200;

/// Talks to a model through the steerable runtime.
pub(crate) struct Talk {
    name: String,
    chat: config::Chat,
    at_once: usize,
    /// Where transcripts are kept, a file a thread.
    folder: PathBuf,
    /// What holds for a run that brings no policy.
    policy: PolicyProfile,
    supervisor: Supervisor,
    turns: Turns,
    looks: Looks,
}

impl Talk {
    pub(crate) fn new(
        name: impl Into<String>,
        chat: config::Chat,
        at_once: usize,
        folder: PathBuf,
        policy: PolicyProfile,
        supervisor: Supervisor,
    ) -> Self {
        let (turns, looks) = (Turns::default(), Looks::none());
        Self { name: name.into(), chat, at_once, folder, policy, supervisor, turns, looks }
    }

    /// Who is talked to, as things stand now: a key may come into the environment only with the next daemon, but it is read as late as
    /// possible.
    fn model(&self) -> Result<Model, String> {
        Model::of(&self.chat, &|name| std::env::var(name).ok())
    }

    async fn see(&self) -> Seen {
        let model = match self.model() {
            Ok(model) => model,
            Err(why) => {
                let about = "talks to a model through the steerable runtime".to_owned();
                return Seen { about, health: Health::Missing { why }, capabilities: BTreeMap::new() };
            }
        };
        let about = format!("{} through the steerable runtime", model.shown());
        let health = match timeout(WITHIN, self.try_it()).await {
            Ok(Ok(())) => Health::Ready,
            Ok(Err(why)) => Health::Failing { why },
            Err(_) => {
                Health::Failing { why: format!("the runtime was not ready within {} s", WITHIN.as_secs()) }
            }
        };
        let level = |(capability, level): (&Capability, &SupportLevel)| {
            (capability.as_str().to_owned(), level.word().to_owned())
        };
        let capabilities = match health {
            Health::Ready => capabilities().0.iter().map(level).collect(),
            Health::Missing { .. } | Health::Failing { .. } => BTreeMap::new(),
        };
        Seen { about, health, capabilities }
    }

    /// Starts the runtime and stops it. Nothing is sent to a model.
    async fn try_it(&self) -> Result<(), String> {
        let spec = runtime(&self.name, Path::new("/"), &[])?;
        let started = Sidecar::start(&self.supervisor, &spec, terms(), Arc::new(Nobody)).await;
        // It is killed where it is dropped: it has nothing to lose.
        started.map(drop).map_err(|error| error.to_string())
    }
}

impl Backend for Talk {
    fn name(&self) -> &str {
        &self.name
    }

    fn resumes(&self) -> bool {
        false
    }

    fn check(&self, new: &NewRun) -> Result<(), RequestError> {
        job::check(new)?;
        if new.thread.as_ref().is_some_and(|thread| thread.is_empty() || thread.len() > MAX_THREAD) {
            let message = format!("the name of a thread has 1 to {MAX_THREAD} bytes");
            return Err(RequestError::at("thread", message));
        }
        let order = new.work_order("check")?;
        if order.config.max_budget_usd.is_some() {
            // A budget that nobody counts is none.
            let message = "prices are not known here, so that money cannot be limited; `max_turns` can";
            return Err(RequestError::at("config.max_budget_usd", message));
        }
        let model = self.model().map_err(|why| RequestError::at("backend", why))?;
        model.name(order.config.model.as_deref()).map_err(|why| RequestError::at("config.model", why))?;
        Ok(())
    }

    fn look(&self) -> BoxFuture<'_, BackendView> {
        Box::pin(async {
            let Seen { about, health, capabilities } = self.looks.last_or(self.see()).await;
            BackendView {
                name: self.name.clone(),
                dialect: "steerable".to_owned(),
                about,
                health,
                capabilities,
                at_once: self.at_once,
                running: 0,
                queued: 0,
            }
        })
    }

    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
        Box::pin(turn::attempt(self, attempt))
    }
}

/// What a conversation can do, in the words of the contract.
fn capabilities() -> Manifest {
    let native = [
        Capability::Streaming,
        Capability::ToolUse,
        Capability::ToolAskUser,
        Capability::ToolRead,
        Capability::ToolWrite,
        Capability::ToolEdit,
        Capability::SessionResume,
        Capability::SystemMessage,
    ];
    native.map(|capability| (capability, SupportLevel::Native)).into_iter().collect()
}

/// This program as the runtime, with these flags after the usual ones.
fn runtime(name: &str, cwd: &Path, flags: &[std::ffi::OsString]) -> Result<SidecarSpec, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("our own program cannot be found: {error}"))?;
    let mut request = Request::new(Level::Basic, Limits::as_the_host());
    request.network = Network::Allow;
    let spec = SidecarSpec::new(name, program, cwd, request)
        .args(["sidecar", "steerable", "--log-level", "WARNING"])
        .args(flags.iter().cloned())
        .inherit_env();
    Ok(spec)
}

/// One process a run: what it loses is tried again by the daemon, not under the same stream.
fn terms() -> Terms {
    Terms { restart: Restart::Never, ..Terms::usual() }
}
