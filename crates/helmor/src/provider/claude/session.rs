//! A session of the host with Claude Code: the program that is kept warm for it, and the name under which it can be gone on with
//! when that program is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::launch::{self, Changing, Fixed};
use super::link::ControlError;
use super::live::{Heard, Live, StartError, mode_of};
use super::turn::{self, Keep};
use super::{Home, outcome};
use crate::BoxFuture;
use crate::protocol::{ContextQuery, PermissionMode, SendMessage};
use crate::provider::{AgentSession, Change, Failure, FailureCode, Outcome, Turn};

/// How long the account of the window may take.
const COUNTS_WITHIN: Duration = Duration::from_secs(30);

/// How long an idle program has after SIGTERM.
const LEAVES_WITHIN: Duration = Duration::from_millis(500);

/// How long what a program began by itself may take to end, once it has been interrupted.
const RESTS_WITHIN: Duration = Duration::from_secs(2);

/// A session of the host.
pub(super) struct Session {
    home: Arc<Home>,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    /// Claude Code's name of the session, known since a program introduced it.
    resume: Option<String>,
    used: Option<Instant>,
}

impl Session {
    pub(super) fn new(home: Arc<Home>, name: &str) -> Self {
        Self { home, name: name.to_owned(), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, mut turn: Turn) -> Outcome {
        let fixed = Fixed::of(&turn.send);
        let stop = turn.stop.clone();
        let warm = match self.warm(&turn.send, &fixed) {
            Some(live) if live.link.rests(RESTS_WITHIN).await => Some(live),
            Some(_) | None => None,
        };
        let (live, heard) = match warm {
            Some(live) => {
                let said = live.link.listen();
                (live, Heard { early: Vec::new(), said })
            }
            None => tokio::select! {
                biased;
                // What has begun to start is killed with everything it has, because nobody holds it any more.
                () = stop.cancelled() => return Outcome::Aborted,
                started = self.fresh(&turn, fixed) => match started {
                    Ok(started) => started,
                    Err(failure) => return Outcome::Failed(failure),
                },
            },
        };
        let (outcome, keep) = turn::run(&live, heard, &mut turn).await;
        let mut state = self.lock();
        state.resume = live.now().session_id.clone().or(state.resume.take());
        state.used = Some(Instant::now());
        if keep == Keep::Gone {
            state.live = None;
        }
        outcome
    }

    /// The warm program, if it can do this turn.
    fn warm(&self, send: &SendMessage, fixed: &Fixed) -> Option<Arc<Live>> {
        let state = self.lock();
        let live = state.live.as_ref()?;
        let now = live.now();
        let same_session = send.resume.is_none() || send.resume == now.session_id;
        let can_mode = mode_of(send) != PermissionMode::BypassPermissions || live.can_bypass;
        let fits = live.link.is_open() && live.fixed == *fixed && same_session && can_mode;
        drop(now);
        fits.then(|| Arc::clone(live))
    }

    /// A new program, which goes on where the last one was, or where the host says.
    async fn fresh(&self, turn: &Turn, fixed: Fixed) -> Result<(Arc<Live>, Heard), Failure> {
        self.close().await;
        let send = &turn.send;
        let resume = send.resume.clone().or_else(|| self.lock().resume.clone());
        let mut changing = Changing { model: send.model.clone(), mode: mode_of(send), resume };
        let name = format!("claude:{}", self.name);
        let started = match Live::start(&self.home, name.clone(), fixed.clone(), changing.clone()).await {
            Err(StartError::NoConversation(why)) => {
                let lost = changing.resume.take().unwrap_or_default();
                turn.desk.context_lost(&lost, &why);
                self.lock().resume = None;
                Live::start(&self.home, name, fixed, changing).await
            }
            started => started,
        };
        let (live, heard) = started.map_err(StartError::into_failure)?;
        let live = Arc::new(live);
        let mut state = self.lock();
        state.live = Some(Arc::clone(&live));
        state.used = Some(Instant::now());
        Ok((live, heard))
    }

    /// A program that runs, if there is one.
    fn live(&self) -> Option<Arc<Live>> {
        self.lock().live.clone().filter(|live| live.link.is_open())
    }

    async fn count(&self, query: &ContextQuery) -> Result<String, Failure> {
        let request = json!({"subtype": "get_context_usage"});
        let live = match self.live() {
            Some(live) => live,
            None => Arc::new(self.to_be_asked(query).await?),
        };
        let answer = live.link.control(&request, COUNTS_WITHIN).await.map_err(ControlError::into_failure)?;
        let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
        outcome::usage_in_full(&answer, &query.model).ok_or_else(|| {
            Failure::new(FailureCode::AgentProtocol, "Claude Code did not say how full its window is")
        })
    }

    /// A program that is thrown away after a question about a session that nobody runs.
    async fn to_be_asked(&self, query: &ContextQuery) -> Result<Live, Failure> {
        let resume = query.provider_session_id.clone().or_else(|| self.lock().resume.clone());
        let environment = launch::environment(&[], query.agent_proxy.as_ref());
        let fixed = Fixed::throw_away(query.cwd.clone(), environment);
        let model = Some(query.model.clone()).filter(|model| !model.is_empty());
        let changing = Changing { model, mode: PermissionMode::Default, resume };
        let started = Live::start(&self.home, format!("claude:{}:usage", self.name), fixed, changing).await;
        started.map(|(live, _)| live).map_err(StartError::into_failure)
    }

    async fn change(&self, change: &Change) -> Result<(), Failure> {
        // What is not running gets its settings with the next turn.
        let Some(live) = self.live() else { return Ok(()) };
        if let Some(model) = &change.model {
            live.set_model(model.clone()).await?;
        }
        if let Some(mode) = change.permission_mode {
            live.set_mode(mode.unwrap_or(PermissionMode::BypassPermissions)).await?;
        }
        Ok(())
    }
}

impl AgentSession for Session {
    fn turn(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.run(turn).await })
    }

    fn context_usage<'a>(&'a self, query: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.count(query))
    }

    fn reconfigure<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.change(change))
    }

    fn warm_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.live.as_ref().filter(|live| live.link.is_open()).and(state.used)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let live = self.lock().live.take();
            if let Some(live) = live {
                live.link.agent.stop(LEAVES_WITHIN).await;
            }
        })
    }
}
