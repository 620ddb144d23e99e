//! A session of the host: one warm server, one thread in it, and what is left of earlier turns.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::Config;
use super::ear::Ear;
use super::link::CallError;
use super::server::{self, CALL, Place, Server};
use super::terms::{self, Leave, Left};
use super::turn::Run;
use crate::BoxFuture;
use crate::protocol::{ContextQuery, SendMessage};
use crate::provider::process::Programs;
use crate::provider::slot::Slot;
use crate::provider::{AgentSession, Change, Desk, Failure, FailureCode, GoalChange, Outcome, Turn};

/// How long a thread that was just resumed has to tell how full its window is.
const TELLS_USAGE: Duration = Duration::from_secs(5);

/// How many turns that were stopped are remembered, because something of them may still be told.
const STALE: usize = 8;

/// One session.
pub(super) struct Session {
    id: String,
    config: Config,
    programs: Programs,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    server: Option<Arc<Server>>,
    /// The thread that the session goes on with; also without a server, which then resumes it.
    thread: Option<Thread>,
    /// Whether `server` has loaded it.
    loaded: bool,
    stale: Vec<String>,
    leave: Option<Leave>,
    used: Option<Instant>,
}

/// The thread of a session.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Its name.
    pub(super) id: String,
    /// What earlier turns left in it.
    pub(super) left: Left,
}

/// What a turn can begin with.
pub(super) struct Ready {
    /// The server, which has loaded the thread.
    pub(super) server: Arc<Server>,
    /// What it says from now on.
    pub(super) ear: Ear,
    /// The thread.
    pub(super) thread: Thread,
}

impl Session {
    /// A session without anything yet.
    pub(super) fn new(id: &str, config: Config, programs: Programs) -> Self {
        Self { id: id.to_owned(), config, programs, state: Mutex::default() }
    }

    async fn run(&self, turn: Turn) -> Outcome {
        self.state().leave = Some(Leave::of(turn.send.permission_mode));
        let slot = Slot::default();
        let prepared = turn.stop.run_until_cancelled(self.prepare(&turn.send, &*turn.desk, &slot)).await;
        match prepared {
            // There is no turn that could be interrupted yet.
            None => {
                slot.end().await;
                self.end().await;
                Outcome::Aborted
            }
            Some(Err(failure)) => Outcome::Failed(failure),
            Some(Ok(ready)) => Run::new(self, ready, turn).drive().await,
        }
    }

    /// A server in the right place that has loaded the right thread.
    async fn prepare(&self, send: &SendMessage, desk: &dyn Desk, slot: &Slot) -> Result<Ready, Failure> {
        let place = Place::new(send.cwd.as_deref(), send.agent_proxy.as_ref());
        let server = self.server(place, slot).await?;
        // Something about a thread may be told before its name is.
        let mut ear = Ear::new(&server.link);
        let thread = match self.open(send, &server, &mut ear, desk).await {
            Ok(thread) => thread,
            Err(error) => return Err(self.failed(&server, error, "while it opened the session").await),
        };
        {
            let mut state = self.state();
            state.thread = Some(thread.clone());
            state.loaded = true;
        }
        Ok(Ready { server, ear, thread })
    }

    /// The warm server if it is the right one, else a new one.
    async fn server(&self, place: Place, slot: &Slot) -> Result<Arc<Server>, Failure> {
        let warm = self.state().server.clone();
        if let Some(warm) = warm {
            if !warm.is_over() && warm.place == place {
                return Ok(warm);
            }
            self.end().await;
        }
        let name = format!("codex:{}", self.id);
        let mut attempt = 1;
        loop {
            let server = Server::start(&name, &self.config, &self.programs, place.clone(), slot).await?;
            let server = Arc::new(server);
            // Before the greeting, so that a stop finds it.
            self.state().server = Some(Arc::clone(&server));
            slot.release().await;
            let Err(failure) = server.greet().await else { return Ok(server) };
            self.end().await;
            server::again(failure, &mut attempt).await?;
        }
    }

    /// Goes on with the thread that is wanted, or starts one. A thread that is lost is told, and replaced.
    async fn open(
        &self,
        send: &SendMessage,
        server: &Server,
        ear: &mut Ear,
        desk: &dyn Desk,
    ) -> Result<Thread, CallError> {
        let (known, loaded) = {
            let state = self.state();
            (state.thread.clone(), state.loaded)
        };
        let known_id = known.as_ref().map(|thread| thread.id.clone());
        let wanted = send.resume.clone().or_else(|| known_id.clone());
        if let (true, Some(known)) = (loaded && wanted == known_id, known) {
            return Ok(known);
        }
        let cwd = &server.place.cwd;
        if let Some(wanted) = &wanted {
            match open_thread(server, ear, send, cwd, Some(wanted)).await {
                Err(CallError::Refused { message, .. }) if is_lost(&message) => {
                    desk.context_lost(wanted, &message);
                }
                opened => return opened,
            }
        }
        open_thread(server, ear, send, cwd, None).await
    }

    /// Ends what is warm. Returns when nothing is left of it. The thread is remembered.
    pub(super) async fn end(&self) {
        let server = {
            let mut state = self.state();
            state.loaded = false;
            state.server.take()
        };
        if let Some(server) = server {
            server.end().await;
        }
    }

    /// The failure of a call; a server that has ended is forgotten, and says why.
    pub(super) async fn failed(&self, server: &Server, error: CallError, when: &str) -> Failure {
        match error {
            CallError::Gone => {
                let failure = server.last_words(&format!("Codex ended {when}")).await;
                self.end().await;
                failure
            }
            // Whether it will ever answer nobody knows.
            CallError::Late { .. } => {
                self.end().await;
                error.into()
            }
            CallError::Refused { .. } | CallError::Odd { .. } => error.into(),
        }
    }

    /// The host's name for it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// What may be done unasked, by what was said last.
    pub(super) fn leave(&self) -> Leave {
        self.state().leave.unwrap_or(Leave::Harmless)
    }

    /// Remembers what a turn leaves in the thread.
    pub(super) fn leaves(&self, left: Left) {
        if let Some(thread) = &mut self.state().thread {
            thread.left = left;
        }
    }

    /// Remembers a turn that was stopped.
    pub(super) fn stopped(&self, turn: String) {
        let mut state = self.state();
        if state.stale.len() == STALE {
            state.stale.remove(0);
        }
        state.stale.push(turn);
    }

    /// Whether the turn was stopped, so that nobody wants to hear of it.
    pub(super) fn is_stale(&self, turn: &str) -> bool {
        self.state().stale.iter().any(|stale| stale == turn)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By what the warm server told, else by one that resumes the thread and is told then.
    async fn usage(&self, query: &ContextQuery) -> Result<String, Failure> {
        let known = {
            let state = self.state();
            let wanted = query.provider_session_id.clone();
            let thread = wanted.or_else(|| state.thread.as_ref().map(|thread| thread.id.clone()));
            (state.server.clone(), thread)
        };
        let (warm, Some(thread)) = known else {
            return Err(unknown_usage("the session has not begun"));
        };
        let warm = warm.filter(|server| !server.is_over());
        if let Some(usage) = warm.and_then(|server| server.link.usages().of(&thread)) {
            return Ok(usage.meta(&query.model));
        }
        let place = Place::new(query.cwd.as_deref(), query.agent_proxy.as_ref());
        let name = format!("codex-usage:{}", self.id);
        let server = Server::start(&name, &self.config, &self.programs, place, &Slot::default()).await?;
        let told = resumed_usage(&server, &thread).await;
        server.end().await;
        told.map(|usage| usage.meta(&query.model))
    }
}

async fn resumed_usage(server: &Server, thread: &str) -> Result<super::usage::Usage, Failure> {
    server.greet().await?;
    let mut ear = Ear::new(&server.link);
    let params = json!({ "threadId": thread, "cwd": server.place.cwd, "excludeTurns": true });
    ear.call(&server.link, "thread/resume", params, CALL).await?;
    let told = async {
        loop {
            if let Some(usage) = server.link.usages().of(thread) {
                return Some(usage);
            }
            ear.next().await?;
        }
    };
    let told = tokio::time::timeout(TELLS_USAGE, told).await.ok().flatten();
    told.ok_or_else(|| unknown_usage("Codex does not say"))
}

fn unknown_usage(why: &str) -> Failure {
    Failure::new(FailureCode::Provider, format!("how full the window is cannot be told: {why}"))
}

/// `thread/start` and `thread/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    thread: Named,
    #[serde(default)]
    model: String,
    reasoning_effort: Option<String>,
    service_tier: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

async fn open_thread(
    server: &Server,
    ear: &mut Ear,
    send: &SendMessage,
    cwd: &Path,
    resume: Option<&str>,
) -> Result<Thread, CallError> {
    let method = if resume.is_some() { "thread/resume" } else { "thread/start" };
    let result = ear.call(&server.link, method, terms::thread(send, cwd, resume), CALL).await?;
    let opened: Opened = serde_json::from_str(result.get())
        .map_err(|error| CallError::Odd { method: method.to_owned(), why: error.to_string() })?;
    let left = Left {
        model: opened.model,
        effort: opened.reasoning_effort,
        // Nobody tells in which mode a thread was left.
        planning: resume.is_some(),
        fast: opened.service_tier.is_some_and(|tier| tier != "default"),
    };
    Ok(Thread { id: opened.thread.id, left })
}

/// Whether a refusal of `thread/resume` means that there is no such thread. Other refusals, such as a model that does not exist,
/// are no reason to lose a conversation.
fn is_lost(message: &str) -> bool {
    const WHAT: [&str; 4] = ["rollout", "thread", "session", "conversation"];
    const WORDS: [&str; 7] =
        ["no rollout found", "not found", "missing", "no such", "unknown", "does not exist", "invalid"];
    let message = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    has(&WHAT) && has(&WORDS)
}

impl AgentSession for Session {
    fn turn(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let outcome = self.run(turn).await;
            self.state().used = Some(Instant::now());
            outcome
        })
    }

    fn context_usage<'a>(&'a self, query: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.usage(query))
    }

    /// The server takes a model and a way of asking at the beginning of a turn. What it asks in a running one is answered by what
    /// was said last.
    fn reconfigure<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        // A mode that is cleared counts from the next turn on: no word means that everything is allowed, and a turn that asks
        // must not be let loose by that.
        if let Some(Some(mode)) = change.permission_mode {
            self.state().leave = Some(Leave::of(Some(mode)));
        }
        Box::pin(async { Ok(()) })
    }

    fn mutate_goal<'a>(&'a self, change: GoalChange) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (server, thread) = {
                let state = self.state();
                let loaded = state.thread.clone().filter(|_| state.loaded);
                (state.server.clone(), loaded)
            };
            // Without a server nothing works on a goal.
            let (Some(server), Some(thread)) = (server, thread) else { return Ok(()) };
            let (method, params) = match change {
                GoalChange::Pause => {
                    ("thread/goal/set", json!({ "threadId": thread.id, "status": "paused" }))
                }
                GoalChange::Clear => ("thread/goal/clear", json!({ "threadId": thread.id })),
            };
            server.link.call(method, params, CALL).await?;
            Ok(())
        })
    }

    fn warm_since(&self) -> Option<Instant> {
        let state = self.state();
        state.server.as_ref().filter(|server| !server.is_over()).and(state.used)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_is_not_there_counts_as_lost() {
        for message in [
            "no rollout found for thread id 01a1e32a-0a7f-7ab2-9f2b-f059b05cba54",
            "thread not found: x",
            "invalid session id: invalid character",
        ] {
            assert!(is_lost(message), "{message}");
        }
        for message in ["model gpt-9 not found", "unexpected status 401", "the thread is busy", ""] {
            assert!(!is_lost(message), "{message}");
        }
    }
}
