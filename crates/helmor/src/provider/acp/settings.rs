//! What a turn wants of an agent that has a session already: its mode, its model, how hard it thinks.

use std::sync::Arc;
use std::time::Duration;

use super::link::CallError;
use super::open::{Connection, refused};
use super::options::{Options, Selector};
use crate::protocol::{PermissionMode, SendMessage};
use crate::provider::{Desk, Failure, FailureCode};

/// How long an agent may take to change a setting.
const SET_WITHIN: Duration = Duration::from_secs(20);

impl Connection {
    /// Sets what the turn says about mode, model and effort.
    pub(super) async fn apply(&self, send: &SendMessage, desk: &Arc<dyn Desk>) -> Result<(), Failure> {
        self.set_mode(send.permission_mode.unwrap_or(PermissionMode::BypassPermissions)).await?;
        if let Some(model) = &send.model
            && !self.set_model(model).await?
        {
            desk.log(&format!("{} does not offer the model `{model}`", self.flavour.title()));
        }
        let options = self.ear.lasting().options;
        if let (Some(selector), Some(effort)) = (&options.effort, &send.effort)
            && let Some(choice) = selector.find(&effort.0)
        {
            self.choose(selector, &choice.id, "change its effort").await?;
        }
        Ok(())
    }

    /// Puts the agent into a mode. Whatever it does not offer we can do ourselves by our answers to its questions, except
    /// that nobody but the agent can keep it from doing what it does not ask for.
    pub(super) async fn set_mode(&self, mode: PermissionMode) -> Result<(), Failure> {
        let options = self.ear.lasting().options;
        let choice = options.mode.as_ref().and_then(|selector| {
            let otherwise = match mode {
                PermissionMode::Plan => None,
                PermissionMode::Default
                | PermissionMode::BypassPermissions
                | PermissionMode::AcceptEdits
                | PermissionMode::DontAsk
                | PermissionMode::Auto => selector.for_mode(PermissionMode::Default),
            };
            Some((selector, selector.for_mode(mode).or(otherwise)?))
        });
        match choice {
            Some((selector, choice)) => self.choose(selector, &choice.id, "change its mode").await,
            None if mode == PermissionMode::Plan => {
                let message = format!("{} has no mode in which it only plans", self.flavour.title());
                Err(Failure::new(FailureCode::Unsupported, message))
            }
            None => Ok(()),
        }
    }

    /// Whether the model is offered; then it is chosen.
    pub(super) async fn set_model(&self, model: &str) -> Result<bool, Failure> {
        let options = self.ear.lasting().options;
        let offered = options.model.as_ref().and_then(|selector| Some((selector, selector.find(model)?)));
        let Some((selector, choice)) = offered else { return Ok(false) };
        self.choose(selector, &choice.id, "change its model").await?;
        Ok(true)
    }

    async fn choose(&self, selector: &Selector, value: &str, what: &str) -> Result<(), Failure> {
        if selector.current == value {
            return Ok(());
        }
        let (method, params) = selector.choose(&self.session, value);
        // Known before it is confirmed, so that the confirmation is no news.
        self.ear.change_options(|options| {
            for known in [&mut options.mode, &mut options.model, &mut options.effort].into_iter().flatten() {
                if *known == *selector {
                    value.clone_into(&mut known.current);
                }
            }
        });
        match self.link.call_within(SET_WITHIN, method, &params).await {
            Ok(answer) => {
                // One choice may change what else can be chosen.
                self.ear.change_options(|options| options.update(Options::read(&answer)));
                Ok(())
            }
            Err(error) => Err(self.failed(what, error).await),
        }
    }

    /// Why a call of a running session failed.
    pub(super) async fn failed(&self, what: &str, error: CallError) -> Failure {
        let title = self.flavour.title();
        match error {
            CallError::Refused(error) => refused(&self.flavour, what, &error),
            CallError::Gone => {
                self.agent.last_words(&format!("{title} ended in the middle of the turn")).await
            }
            CallError::Silent(after) => {
                Failure::new(FailureCode::Timeout, format!("{title} did not {what} within {after:?}"))
            }
        }
    }
}
