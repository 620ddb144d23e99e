//! A session of the host with Claude Code: the program that is kept warm for it, and the name under which it can be gone on with
//! when that program is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::launch::{self, Changing, Fixed};
use super::link::{ControlError, Link, Said};
use super::outcome;
use super::turn::{self, Keep};
use super::{Home, SystemPrompt};
use crate::BoxFuture;
use crate::protocol::{ContextQuery, PermissionMode, SendMessage};
use crate::provider::{AgentSession, Change, Failure, FailureCode, Outcome, Turn};

/// How long the program may take to introduce itself.
const INTRODUCES_WITHIN: Duration = Duration::from_secs(30);

/// How long a change of a setting may take.
const CHANGES_WITHIN: Duration = Duration::from_secs(10);

/// How long the account of the window may take.
const COUNTS_WITHIN: Duration = Duration::from_secs(30);

/// How long an idle program has after SIGTERM.
const LEAVES_WITHIN: Duration = Duration::from_millis(500);

/// Lines that are kept for the turn while the program introduces itself.
const EARLY: usize = 256;

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

/// A program that runs.
pub(super) struct Live {
    pub(super) link: Link,
    fixed: Fixed,
    can_bypass: bool,
    /// What it answered to `initialize`.
    pub(super) introduction: Value,
    now: Mutex<Now>,
}

/// What changes while it runs.
struct Now {
    model: Option<String>,
    mode: PermissionMode,
    session_id: Option<String>,
    model_in_use: Option<String>,
}

/// What a program says from now on, and what it said while it started.
pub(super) struct Heard {
    pub(super) early: Vec<Said>,
    pub(super) said: mpsc::Receiver<Said>,
}

/// Why a program does not run.
pub(super) enum StartError {
    /// What was to be gone on with does not exist.
    NoConversation(String),
    /// Something else.
    Failed(Failure),
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
        let (live, heard) = match self.warm(&turn.send, &fixed) {
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

impl Live {
    /// Starts a program and has it introduce itself.
    pub(super) async fn start(
        home: &Home,
        name: String,
        fixed: Fixed,
        changing: Changing,
    ) -> Result<(Self, Heard), StartError> {
        let program = home.program(fixed.cwd.as_deref()).map_err(StartError::Failed)?;
        let command = launch::session(name, program, &fixed, &changing);
        let link = Link::start(&home.programs, command).await.map_err(StartError::Failed)?;
        let (introduction, heard) = introduce(&link, home.config.system_prompt, &changing).await?;
        let now = Now {
            model: changing.model,
            mode: changing.mode,
            session_id: changing.resume,
            model_in_use: None,
        };
        let can_bypass = changing.mode == PermissionMode::BypassPermissions;
        Ok((Self { link, fixed, can_bypass, introduction, now: Mutex::new(now) }, heard))
    }

    /// Gives it the model and the mode that a turn wants.
    pub(super) async fn adapt(&self, send: &SendMessage) -> Result<(), Failure> {
        let (model, mode) = {
            let now = self.now();
            (now.model.clone(), now.mode)
        };
        if model != send.model {
            self.set_model(send.model.clone()).await?;
        }
        if mode != mode_of(send) {
            self.set_mode(mode_of(send)).await?;
        }
        Ok(())
    }

    async fn set_model(&self, model: Option<String>) -> Result<(), Failure> {
        let mut request = json!({"subtype": "set_model"});
        if let Some(model) = &model {
            request["model"] = json!(model);
        }
        self.link.control(&request, CHANGES_WITHIN).await.map_err(ControlError::into_failure)?;
        self.now().model = model;
        Ok(())
    }

    async fn set_mode(&self, mode: PermissionMode) -> Result<(), Failure> {
        if mode == PermissionMode::BypassPermissions && !self.can_bypass {
            let why =
                "Claude Code was started without leave to bypass permissions; it counts from the next turn";
            return Err(Failure::new(FailureCode::Unsupported, why));
        }
        let request = json!({"subtype": "set_permission_mode", "mode": mode.word()});
        self.link.control(&request, CHANGES_WITHIN).await.map_err(ControlError::into_failure)?;
        self.mode_is(mode);
        Ok(())
    }

    /// The mode was changed by an answer of the host.
    pub(super) fn mode_is(&self, mode: PermissionMode) {
        self.now().mode = mode;
    }

    /// The program said who it is.
    pub(super) fn introduced(&self, session_id: Option<String>, model: Option<String>) {
        let mut now = self.now();
        now.session_id = session_id.or(now.session_id.take());
        now.model_in_use = model.or(now.model_in_use.take());
    }

    pub(super) fn model_in_use(&self) -> Option<String> {
        self.now().model_in_use.clone()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `initialize`, and what the program says meanwhile.
async fn introduce(
    link: &Link,
    system_prompt: SystemPrompt,
    changing: &Changing,
) -> Result<(Value, Heard), StartError> {
    let mut said = link.listen();
    let mut early = Vec::new();
    let request = match system_prompt {
        SystemPrompt::Own => json!({"subtype": "initialize"}),
        SystemPrompt::Empty => json!({"subtype": "initialize", "systemPrompt": [""]}),
    };
    let answer = link.control(&request, INTRODUCES_WITHIN);
    tokio::pin!(answer);
    let answer = loop {
        tokio::select! {
            answer = &mut answer => break answer,
            Some(line) = said.recv() => if early.len() < EARLY {
                early.push(line);
            },
        }
    };
    match answer {
        Ok(answer) => {
            let introduction = serde_json::from_str(answer.get()).unwrap_or_default();
            Ok((introduction, Heard { early, said }))
        }
        Err(ControlError::Gone) => {
            let failure = link.agent.last_words("Claude Code ended before it was ready").await;
            Err(why_not(failure, changing))
        }
        Err(other) => Err(StartError::Failed(other.into_failure())),
    }
}

/// What the last words of a program that did not start mean.
fn why_not(mut failure: Failure, changing: &Changing) -> StartError {
    let lost = ["No conversation found", "--resume requires a valid session"];
    if changing.resume.is_some()
        && let Some(line) = failure.message.lines().find(|line| lost.iter().any(|words| line.contains(words)))
    {
        return StartError::NoConversation(line.trim().to_owned());
    }
    if failure.message.contains("root/sudo") {
        failure.message.push_str(
            "\nRun it as another user, choose another permission mode, or set IS_SANDBOX=1 in its environment if \
             nothing here can come to harm.",
        );
    }
    StartError::Failed(failure)
}

impl StartError {
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::NoConversation(why) => Failure::new(FailureCode::InvalidRequest, why),
            Self::Failed(failure) => failure,
        }
    }
}

impl ControlError {
    pub(super) fn into_failure(self) -> Failure {
        let code = match &self {
            Self::Gone => FailureCode::AgentExited,
            Self::Refused(_) => FailureCode::Provider,
            Self::Silent(_) => FailureCode::Timeout,
        };
        Failure::new(code, self.to_string())
    }
}

fn mode_of(send: &SendMessage) -> PermissionMode {
    send.permission_mode.unwrap_or(PermissionMode::BypassPermissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changing(resume: Option<&str>) -> Changing {
        Changing { model: None, mode: PermissionMode::Default, resume: resume.map(str::to_owned) }
    }

    fn last_words(said: &str) -> Failure {
        Failure::new(FailureCode::AgentExited, format!("it ended\nstderr:\n  {said}\n"))
    }

    #[test]
    fn a_lost_conversation_is_told_from_other_failures_and_only_when_one_was_asked_for() {
        let lost = last_words("No conversation found with session ID: x");
        assert!(matches!(why_not(lost.clone(), &changing(Some("x"))), StartError::NoConversation(why)
            if why == "No conversation found with session ID: x"));
        assert!(matches!(why_not(lost, &changing(None)), StartError::Failed(_)));
        assert!(matches!(why_not(last_words("boom"), &changing(Some("x"))), StartError::Failed(_)));
    }

    #[test]
    fn root_is_told_what_to_do() {
        let failure = last_words("--dangerously-skip-permissions cannot be used with root/sudo privileges");
        assert!(why_not(failure, &changing(None)).into_failure().message.contains("IS_SANDBOX=1"));
    }
}
