//! A session of the host: its agent, warm between turns, and the turns themselves.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_supervise::tree::{self, Identity};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::ear::Stage;
use super::event::usage_meta;
use super::link::CallError;
use super::open::{Connection, Opened, open, refused};
use super::options::{Options, Selector};
use super::program::Key;
use crate::BoxFuture;
use crate::protocol::{ContextQuery, PermissionMode, SendMessage};
use crate::provider::prompt::{PICTURES, image_blocks, text_of};
use crate::provider::slot::Slot;
use crate::provider::{AgentSession, Change, Desk, Failure, FailureCode, Outcome, Steering, Turn};

/// How long an agent has to end a turn that was cancelled.
const CANCELLED_WITHIN: Duration = Duration::from_secs(2);

/// How long the processes of a cancelled turn have to go by themselves.
const TOOLS_GONE_WITHIN: Duration = Duration::from_millis(500);

/// How often we look whether they have gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long an agent has after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long an agent may take to change a setting.
const SET_WITHIN: Duration = Duration::from_secs(20);

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
    /// The agent's name of the session, for when its program is gone.
    last: Option<String>,
}

impl Session {
    pub(super) fn new(host_session: &str, shared: Arc<Shared>) -> Self {
        Self { host_session: host_session.to_owned(), shared, state: Mutex::default() }
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
        if let Some(connection) = state.connection.take_if(|connection| connection.link.is_over()) {
            state.last = connection.offers.can_go_on().then(|| connection.session.clone());
        }
        state.idle_since = state.connection.is_some().then(Instant::now);
        outcome
    }

    async fn work(&self, send: &SendMessage, desk: &Arc<dyn Desk>, stop: &CancellationToken) -> Outcome {
        let slot = Slot::default();
        let ready = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ready = self.ready(send, desk, &slot) => Some(ready),
        };
        let connection = match ready {
            Some(Ok(connection)) => connection,
            Some(Err(failure)) => {
                slot.end().await;
                return Outcome::Failed(failure);
            }
            None => {
                slot.end().await;
                return Outcome::Aborted;
            }
        };
        let mode = send.permission_mode.unwrap_or(PermissionMode::BypassPermissions);
        let stage = Stage::new(
            self.host_session.clone(),
            connection.session.clone(),
            Arc::clone(desk),
            stop.clone(),
            mode,
        );
        connection.ear.set_stage(Some(Arc::clone(&stage)));
        let outcome = self.prompt(&connection, send, &stage).await;
        connection.ear.set_stage(None);
        let lasting = connection.ear.lasting();
        let mut memory = self.shared.memory();
        memory.models = lasting.options.models().or(memory.models.take());
        memory.commands = lasting.commands.or(memory.commands.take());
        outcome
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
        self.apply(&connection, send, desk).await?;
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

    /// Sets what the turn says about mode, model and effort.
    async fn apply(
        &self,
        connection: &Connection,
        send: &SendMessage,
        desk: &Arc<dyn Desk>,
    ) -> Result<(), Failure> {
        let mode = send.permission_mode.unwrap_or(PermissionMode::BypassPermissions);
        self.set_mode(connection, mode).await?;
        if let Some(model) = &send.model
            && !self.set_model(connection, model).await?
        {
            desk.log(&format!("{} does not offer the model `{model}`", self.shared.config.flavour.title()));
        }
        let options = connection.ear.lasting().options;
        if let (Some(selector), Some(effort)) = (&options.effort, &send.effort)
            && let Some(choice) = selector.find(&effort.0)
        {
            self.choose(connection, selector, &choice.id, "change its effort").await?;
        }
        Ok(())
    }

    /// Puts the agent into a mode. Whatever it does not offer we can do ourselves by our answers to its questions, except
    /// that nobody but the agent can keep it from doing what it does not ask for.
    async fn set_mode(&self, connection: &Connection, mode: PermissionMode) -> Result<(), Failure> {
        let options = connection.ear.lasting().options;
        let choice = options.mode.as_ref().and_then(|selector| {
            let fallback = || selector.for_mode(PermissionMode::Default);
            let choice = selector
                .for_mode(mode)
                .or_else(|| if mode == PermissionMode::Plan { None } else { fallback() });
            Some((selector, choice?))
        });
        match choice {
            Some((selector, choice)) => {
                self.choose(connection, selector, &choice.id, "change its mode").await
            }
            None if mode == PermissionMode::Plan => {
                let message =
                    format!("{} has no mode in which it only plans", self.shared.config.flavour.title());
                Err(Failure::new(FailureCode::Unsupported, message))
            }
            None => Ok(()),
        }
    }

    /// Whether the model is offered; then it is chosen.
    async fn set_model(&self, connection: &Connection, model: &str) -> Result<bool, Failure> {
        let options = connection.ear.lasting().options;
        let Some((selector, choice)) =
            options.model.as_ref().and_then(|selector| Some((selector, selector.find(model)?)))
        else {
            return Ok(false);
        };
        self.choose(connection, selector, &choice.id, "change its model").await?;
        Ok(true)
    }

    async fn choose(
        &self,
        connection: &Connection,
        selector: &Selector,
        value: &str,
        what: &str,
    ) -> Result<(), Failure> {
        if selector.current == value {
            return Ok(());
        }
        let (method, params) = selector.choose(&connection.session, value);
        // Known before it is confirmed, so that the confirmation is no news.
        connection.ear.change_options(|options| {
            for known in [&mut options.mode, &mut options.model, &mut options.effort].into_iter().flatten() {
                if *known == *selector {
                    value.clone_into(&mut known.current);
                }
            }
        });
        match connection.link.call_within(SET_WITHIN, method, &params).await {
            Ok(answer) => {
                // One choice may change what else can be chosen.
                connection.ear.change_options(|options| options.update(Options::read(&answer)));
                Ok(())
            }
            Err(error) => Err(self.failed(connection, what, error).await),
        }
    }

    async fn prompt(&self, connection: &Connection, send: &SendMessage, stage: &Stage) -> Outcome {
        let Stage { desk, stop, .. } = stage;
        let family = self.shared.config.flavour.family();
        let options = connection.ear.lasting().options;
        let mut init = json!({ "type": format!("{family}/agent_init"), "session_id": connection.session });
        if let Some(model) = &options.model {
            init["model"] = Value::from(model.current.as_str());
        }
        desk.pass(&init.to_string());
        let blocks = blocks(connection, send).await;
        let before = processes(connection).await;
        if stop.is_cancelled() {
            return Outcome::Aborted;
        }
        let status = |word: &str| json!({ "type": format!("{family}/status"), "agent_id": connection.session, "status": word });
        desk.pass(&status("RUNNING").to_string());
        let params = json!({ "sessionId": connection.session, "prompt": blocks });
        let mut answer = pin!(connection.link.call("session/prompt", &params));
        let answered = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            answered = &mut answer => Some(answered),
        };
        match answered {
            Some(Ok(answer)) => {
                let stopped = serde_json::from_str::<Value>(answer.get()).unwrap_or_default();
                let mut finished = status("FINISHED");
                for (name, ours) in [("stopReason", "stop_reason"), ("usage", "usage")] {
                    if let Some(value) = stopped.get(name).filter(|value| !value.is_null()) {
                        finished[ours] = value.clone();
                    }
                }
                desk.pass(&finished.to_string());
                self.ended(stopped.get("stopReason").and_then(Value::as_str), stage)
            }
            Some(Err(error)) => Outcome::Failed(self.failed(connection, "finish the turn", error).await),
            None => {
                self.stop(connection, answer, &before).await;
                Outcome::Aborted
            }
        }
    }

    /// What the reason means that an agent gives for the end of its turn.
    fn ended(&self, reason: Option<&str>, stage: &Stage) -> Outcome {
        let title = self.shared.config.flavour.title();
        let badly = |what: &str| Outcome::EndedBadly { message: format!("{title} {what}") };
        match reason {
            Some("refusal") => badly("refused to go on"),
            Some("max_tokens") => badly("reached its limit of tokens"),
            Some("max_turn_requests") => badly("reached its limit of requests for one turn"),
            // Who is not allowed to go on and stops has done as it should.
            Some("cancelled") if stage.has_denied() => Outcome::Ended,
            Some("cancelled") => badly("says that the turn was cancelled, which nobody asked for"),
            Some("end_turn") => Outcome::Ended,
            // A reason that is newer than us is still an end.
            Some(_) => Outcome::Ended,
            None => badly("ended the turn without a reason"),
        }
    }

    /// Interrupts a turn: by the protocol, and if that does not help or leaves something running, by signals.
    async fn stop(
        &self,
        connection: &Connection,
        answer: impl Future<Output = Result<Box<RawValue>, CallError>>,
        before: &[Identity],
    ) {
        let params = json!({ "sessionId": connection.session });
        let cancelled = async {
            connection.link.notify("session/cancel", &params).await?;
            answer.await
        };
        let clean = match tokio::time::timeout(CANCELLED_WITHIN, cancelled).await {
            // An agent that answers with an error has ended the turn as well.
            Ok(Ok(_) | Err(CallError::Refused(_))) => tools_are_gone(connection, before).await,
            Ok(Err(CallError::Gone | CallError::Silent(_))) | Err(_) => false,
        };
        if !clean {
            self.close_now().await;
        }
    }

    async fn failed(&self, connection: &Connection, what: &str, error: CallError) -> Failure {
        let title = self.shared.config.flavour.title();
        match error {
            CallError::Refused(error) => refused(&self.shared.config.flavour, what, &error),
            CallError::Gone => {
                connection.agent.last_words(&format!("{title} ended in the middle of the turn")).await
            }
            CallError::Silent(after) => {
                let message = format!("{title} did not {what} within {after:?}");
                Failure::new(FailureCode::Timeout, message)
            }
        }
    }

    /// Ends the program with everything it started, and remembers what can be gone on with.
    async fn close_now(&self) {
        let connection = {
            let mut state = self.state();
            state.idle_since = None;
            let connection = state.connection.take();
            if let Some(connection) = &connection {
                state.last = connection.offers.can_go_on().then(|| connection.session.clone());
            }
            connection
        };
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
                self.set_mode(&connection, mode).await?;
                connection.ear.set_mode(mode);
            }
            if let Some(Some(model)) = &change.model
                && !self.set_model(&connection, model).await?
            {
                let message =
                    format!("{} does not offer the model `{model}`", self.shared.config.flavour.title());
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
async fn refuse(mut steering: mpsc::Receiver<Steering>) -> std::convert::Infallible {
    while let Some(Steering { taken, .. }) = steering.recv().await {
        let _ = taken.send(Err("unsupported".to_owned()));
    }
    std::future::pending().await
}

/// The prompt as the protocol wants it.
async fn blocks(connection: &Connection, send: &SendMessage) -> Vec<Value> {
    let none: &[PathBuf] = &[];
    // Who takes the folders with the session need not be told about them.
    let told = if connection.offers.directories { none } else { &send.additional_directories };
    let text = text_of(&send.prompt, &send.images, told);
    if !connection.offers.images && !send.images.is_empty() {
        let note = format!("[{} image(s) are not attached: this agent takes none.]", send.images.len());
        return vec![json!({ "type": "text", "text": text }), json!({ "type": "text", "text": note })];
    }
    let blocks = image_blocks(&text, send.images.clone(), PICTURES).await;
    blocks.into_iter().map(image_of_the_protocol).collect()
}

/// A picture of Claude's protocol as one of this.
fn image_of_the_protocol(block: Value) -> Value {
    match (block.pointer("/source/media_type"), block.pointer("/source/data")) {
        (Some(media_type), Some(data)) => json!({ "type": "image", "mimeType": media_type, "data": data }),
        _ => block,
    }
}

/// The processes of an agent. An empty list if they cannot be known, and then nothing is taken for left over.
async fn processes(connection: &Connection) -> Vec<Identity> {
    let Some(pid) = connection.agent.child().status().pid else { return Vec::new() };
    let listed = tokio::task::spawn_blocking(move || tree::in_box_of(pid)).await;
    listed.ok().and_then(Result::ok).unwrap_or_default()
}

/// Whether everything has gone that a turn started. Gives it some time.
async fn tools_are_gone(connection: &Connection, before: &[Identity]) -> bool {
    let until = Instant::now() + TOOLS_GONE_WITHIN;
    loop {
        if processes(connection).await.iter().all(|process| before.contains(process)) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
