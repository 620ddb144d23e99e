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

/// How many names of a session are remembered.
const NAMES: usize = 32;

/// A session of the host.
pub(super) struct Session {
    home: Arc<Home>,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    /// Claude Code's names of the session, the present one last. `/clear` gives it a new one, and hosts that have learned the
    /// first one go on using it.
    names: Vec<String>,
    used: Option<Instant>,
}

impl State {
    /// What is to be gone on with when the host says this.
    fn meant_by(&self, resume: Option<&String>) -> Option<String> {
        match resume {
            Some(name) if !self.names.contains(name) => Some(name.clone()),
            Some(_) | None => self.names.last().cloned(),
        }
    }

    /// The name that a program gave it.
    fn is_called(&mut self, name: String) {
        if self.names.last() == Some(&name) {
            return;
        }
        self.names.retain(|known| *known != name);
        if self.names.len() == NAMES {
            self.names.remove(0);
        }
        self.names.push(name);
    }
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
        if let Some(name) = live.now().session_id.clone() {
            state.is_called(name);
        }
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
        let same_session = send.resume.is_none() || state.meant_by(send.resume.as_ref()) == now.session_id;
        let can_mode = mode_of(send) != PermissionMode::BypassPermissions || live.can_bypass;
        let fits = live.link.is_open() && live.fixed == *fixed && same_session && can_mode;
        drop(now);
        fits.then(|| Arc::clone(live))
    }

    /// A new program, which goes on where the last one was, or where the host says.
    async fn fresh(&self, turn: &Turn, fixed: Fixed) -> Result<(Arc<Live>, Heard), Failure> {
        self.close().await;
        let send = &turn.send;
        let resume = self.lock().meant_by(send.resume.as_ref());
        let mut changing = Changing { model: send.model.clone(), mode: mode_of(send), resume };
        let name = format!("claude:{}", self.name);
        let started = match Live::start(&self.home, name.clone(), fixed.clone(), changing.clone()).await {
            Err(StartError::NoConversation(why)) => {
                let lost = changing.resume.take().unwrap_or_default();
                turn.desk.context_lost(&lost, &why);
                self.lock().names.clear();
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
        let resume = self.lock().meant_by(query.provider_session_id.as_ref());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_name_of_a_session_means_its_present_one() {
        let mut state = State::default();
        let old = "old".to_owned();
        assert_eq!(state.meant_by(None), None);
        assert_eq!(state.meant_by(Some(&old)), Some(old.clone()));
        state.is_called(old.clone());
        state.is_called("new".to_owned());
        assert_eq!(state.meant_by(Some(&old)).as_deref(), Some("new"));
        assert_eq!(state.meant_by(None).as_deref(), Some("new"));
        assert_eq!(state.meant_by(Some(&"foreign".to_owned())).as_deref(), Some("foreign"));
        state.is_called(old.clone());
        assert_eq!(state.meant_by(None), Some(old));
    }

    #[test]
    fn only_so_many_names_are_remembered() {
        let mut state = State::default();
        for name in 0..=NAMES {
            state.is_called(name.to_string());
        }
        assert_eq!((state.names.len(), state.names[0].as_str()), (NAMES, "1"));
    }
}
