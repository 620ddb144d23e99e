//! One program that was started and introduced itself: what it was started with, what has changed since, and what its last words
//! mean when it does not get that far.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::launch::{self, Changing, Fixed};
use super::link::{ControlError, Link, Said};
use super::progress::Progress;
use super::{Home, SystemPrompt};
use crate::protocol::{PermissionMode, SendMessage};
use crate::provider::{Failure, FailureCode};

/// How long the program may take to introduce itself.
const INTRODUCES_WITHIN: Duration = Duration::from_secs(30);

/// How long a change of a setting may take.
const CHANGES_WITHIN: Duration = Duration::from_secs(10);

/// Lines that are kept for the turn while the program introduces itself.
const EARLY: usize = 256;

/// A program that runs.
pub(super) struct Live {
    pub(super) link: Link,
    pub(super) fixed: Fixed,
    pub(super) can_bypass: bool,
    /// What it answered to `initialize`.
    pub(super) introduction: Value,
    now: Mutex<Now>,
}

/// What changes while it runs.
pub(super) struct Now {
    model: Option<String>,
    mode: PermissionMode,
    pub(super) session_id: Option<String>,
    model_in_use: Option<String>,
    /// Of the last turn.
    progress: Progress,
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
        let (introduction, heard) =
            introduce(&link, home.config.system_prompt, fixed.ask_every_tool, &changing).await?;
        let now = Now {
            model: changing.model,
            mode: changing.mode,
            session_id: changing.resume,
            model_in_use: None,
            progress: Progress::default(),
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

    pub(super) async fn set_model(&self, model: Option<String>) -> Result<(), Failure> {
        let mut request = json!({"subtype": "set_model"});
        if let Some(model) = &model {
            request["model"] = json!(model);
        }
        self.link.control(&request, CHANGES_WITHIN).await.map_err(ControlError::into_failure)?;
        self.now().model = model;
        Ok(())
    }

    pub(super) async fn set_mode(&self, mode: PermissionMode) -> Result<(), Failure> {
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

    /// The mode that the program has now. Returns the one that it had.
    pub(super) fn mode_is(&self, mode: PermissionMode) -> PermissionMode {
        std::mem::replace(&mut self.now().mode, mode)
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

    /// For the next turn.
    pub(super) fn progress(&self) -> Progress {
        self.now().progress.next()
    }

    /// What the turn learned about the program.
    pub(super) fn made(&self, progress: &Progress) {
        self.now().progress = progress.next();
    }

    pub(super) fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `initialize`, and what the program says meanwhile.
async fn introduce(
    link: &Link,
    system_prompt: SystemPrompt,
    ask_every_tool: bool,
    changing: &Changing,
) -> Result<(Value, Heard), StartError> {
    let mut said = link.listen();
    let mut early = Vec::new();
    let mut request = json!({"subtype": "initialize"});
    if system_prompt == SystemPrompt::Empty {
        request["systemPrompt"] = json!([""]);
    }
    if ask_every_tool {
        request["hooks"] = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["before-tool"]}]});
    }
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

/// The mode of a turn.
pub(super) fn mode_of(send: &SendMessage) -> PermissionMode {
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
