//! A session of the host: its agent, warm between turns, and who of both is asked what.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::ear::Stage;
use super::event::usage_meta;
use super::open::{Connection, Opened, open};
use super::program::Key;
use super::turn::Prompted;
use crate::BoxFuture;
use crate::protocol::{ContextQuery, PermissionMode, SendMessage};
use crate::provider::slot::Slot;
use crate::provider::{AgentSession, Change, Desk, Failure, FailureCode, Outcome, Steering, Turn};

/// How long an agent has after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long an agent may take to forget a session.
const FORGETS_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Session {
    host_session: String,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Since when it has nothing to do.
    idle_since: Option<Instant>,
    /// The agent's name of the session whose program is gone.
    last: Option<String>,
}

impl State {
    /// Lets go of the program, and remembers what is to be gone on with.
    fn let_go(&mut self) -> Option<Arc<Connection>> {
        self.idle_since = None;
        let connection = self.connection.take()?;
        self.last = Some(connection.session.clone());
        Some(connection)
    }
}

impl Session {
    pub(super) fn new(host_session: &str, shared: Arc<Shared>) -> Self {
        Self { host_session: host_session.to_owned(), shared, state: Mutex::default() }
    }

    /// Has the agent forget everything about this session, where it can.
    pub(super) async fn forget(&self) {
        if let Some(connection) = self.connection().filter(|connection| connection.offers.delete) {
            let params = json!({ "sessionId": connection.session });
            // Who cannot keeps it; there is nobody to tell.
            let _ = connection.link.call_within(FORGETS_WITHIN, "session/delete", &params).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> Option<Arc<Connection>> {
        self.state().connection.clone()
    }

    /// What a turn wants of its program.
    fn key(&self, send: &SendMessage) -> Key {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Key {
            cwd: send.cwd.clone().unwrap_or_else(here),
            directories: send.additional_directories.clone(),
            proxy: send.agent_proxy.clone(),
            api_key: self.shared.memory().api_key.clone(),
        }
    }

    async fn run(&self, turn: Turn) -> Outcome {
        let Turn { send, desk, stop, steering } = turn;
        self.state().idle_since = None;
        let outcome = tokio::select! {
            biased;
            outcome = self.work(&send, &desk, &stop) => outcome,
            never = refuse(steering) => match never {},
        };
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|connection| connection.link.is_over()) {
            state.let_go();
        }
        state.idle_since = state.connection.is_some().then(Instant::now);
        outcome
    }

    async fn work(&self, send: &SendMessage, desk: &Arc<dyn Desk>, stop: &CancellationToken) -> Outcome {
        let slot = Slot::default();
        let ready = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Outcome::Aborted),
            ready = self.ready(send, desk, &slot) => ready.map_err(Outcome::Failed),
        };
        let connection = match ready {
            Ok(connection) => connection,
            Err(outcome) => {
                slot.end().await;
                return outcome;
            }
        };
        let (ours, theirs) = (self.host_session.clone(), connection.session.clone());
        let mode = send.permission_mode.unwrap_or(PermissionMode::BypassPermissions);
        let stage = Stage::new(ours, theirs, Arc::clone(desk), stop.clone(), mode);
        connection.ear.set_stage(Some(Arc::clone(&stage)));
        let prompted = connection.prompt(send, &stage).await;
        connection.ear.set_stage(None);
        self.shared.memory().learn(&connection.key.cwd, connection.ear.lasting());
        match prompted {
            Prompted::Ended(outcome) => outcome,
            Prompted::Stopped => Outcome::Aborted,
            Prompted::Unstopped => {
                self.close_now().await;
                Outcome::Aborted
            }
        }
    }

    /// A program with the right session and the right settings: the one that is warm, or a new one.
    async fn ready(
        &self,
        send: &SendMessage,
        desk: &Arc<dyn Desk>,
        slot: &Slot,
    ) -> Result<Arc<Connection>, Failure> {
        let key = self.key(send);
        let warm = self.connection().filter(|connection| {
            let wanted = send.resume.as_ref().is_none_or(|resume| *resume == connection.session);
            wanted && connection.key == key && !connection.link.is_over()
        });
        let connection = match warm {
            Some(connection) => connection,
            None => self.start(send, desk, key, slot).await?,
        };
        connection.apply(send, desk).await?;
        Ok(connection)
    }

    async fn start(
        &self,
        send: &SendMessage,
        desk: &Arc<dyn Desk>,
        key: Key,
        slot: &Slot,
    ) -> Result<Arc<Connection>, Failure> {
        self.close_now().await;
        let resume = send.resume.clone().or_else(|| self.state().last.clone());
        let name = self.shared.config.flavour.program_name(&self.host_session);
        let Opened { connection, lost } = open(&self.shared, key, name, resume.as_deref(), slot).await?;
        if let (Some(resume), Some(why)) = (&resume, &lost) {
            desk.context_lost(resume, why);
        }
        let connection = Arc::new(connection);
        // From here on the session looks after the program.
        slot.release().await;
        let mut state = self.state();
        state.connection = Some(Arc::clone(&connection));
        state.last = None;
        Ok(connection)
    }

    /// Ends the program with everything it started.
    async fn close_now(&self) {
        let connection = self.state().let_go();
        if let Some(connection) = connection {
            connection.agent.stop(GRACE).await;
        }
    }
}

impl AgentSession for Session {
    fn turn(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.run(turn).await })
    }

    fn context_usage<'a>(&'a self, _: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        let lasting = self.connection().map(|connection| connection.ear.lasting());
        let usage = lasting.and_then(|lasting| {
            let (used, size) = lasting.usage?;
            Some(usage_meta(lasting.options.model.map(|model| model.current).as_deref(), used, size))
        });
        let title = self.shared.config.flavour.title();
        Box::pin(async move {
            let unknown = || format!("{title} has not said how full its window is");
            usage.ok_or_else(|| Failure::new(FailureCode::Unsupported, unknown()))
        })
    }

    fn reconfigure<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let Some(connection) = self.connection() else { return Ok(()) };
            if let Some(mode) = change.permission_mode {
                let mode = mode.unwrap_or(PermissionMode::BypassPermissions);
                connection.set_mode(mode).await?;
                connection.ear.set_mode(mode);
            }
            if let Some(Some(model)) = &change.model
                && !connection.set_model(model).await?
            {
                let message = format!("{} does not offer the model `{model}`", connection.flavour.title());
                return Err(Failure::new(FailureCode::InvalidRequest, message));
            }
            Ok(())
        })
    }

    fn warm_since(&self) -> Option<Instant> {
        self.state().idle_since
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_now())
    }
}

/// Agents of this protocol cannot be told anything in the middle of a turn.
async fn refuse(mut steering: mpsc::Receiver<Steering>) -> Infallible {
    while let Some(Steering { taken, .. }) = steering.recv().await {
        // Who asked may have gone.
        let _ = taken.send(Err("unsupported".to_owned()));
    }
    std::future::pending().await
}
