//! The provider that plays a file: for tests, demonstrations, and work without a network.
//!
//! A [`Script`] says what happens in each turn. Everything that a real agent can do to a host can be scripted: text, questions,
//! children of its own, waiting, failing, and losing its memory.

mod play;
mod read;
mod script;

pub use read::ScriptError;
pub use script::{Script, Step, Turn as ScriptTurn};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::process::Programs;
use super::{
    AgentSession, Change, Failure, FailureCode, Model, Outcome, Provider, SlashCommand, Turn as HostTurn,
};
use crate::BoxFuture;
use crate::protocol::{ContextQuery, SlashQuery, TitleRequest};

/// Plays a script.
pub struct Scripted {
    script: Arc<Script>,
    programs: Programs,
}

impl Scripted {
    /// Plays this one; its children are started by `programs`.
    #[must_use]
    pub fn new(script: Script, programs: Programs) -> Self {
        Self { script: Arc::new(script), programs }
    }
}

impl Provider for Scripted {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        Arc::new(Session {
            name: format!("scripted:{session_id}"),
            script: Arc::clone(&self.script),
            programs: self.programs.clone(),
            played: AtomicUsize::new(0),
        })
    }

    fn models<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        let models = self.script.models.clone();
        Box::pin(async move { models.ok_or_else(|| silent("models")) })
    }

    fn slash_commands<'a>(&'a self, _: &'a SlashQuery) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        let commands = self.script.commands.clone();
        Box::pin(async move { commands.ok_or_else(|| silent("commands")) })
    }

    fn one_shot<'a>(&'a self, _: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        let title = self.script.title.clone();
        Box::pin(async move { title.ok_or_else(|| silent("title")) })
    }

    fn configure(&self, _: &Change) {}
}

/// A session remembers which of the turns without a condition is next.
struct Session {
    name: String,
    script: Arc<Script>,
    programs: Programs,
    played: AtomicUsize,
}

impl AgentSession for Session {
    fn turn(self: Arc<Self>, turn: HostTurn) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let played = || self.played.fetch_add(1, Ordering::Relaxed);
            match self.script.turn_for(&turn.send.prompt, played) {
                Some(script) => play::play(script, turn, &self.name, &self.programs).await,
                None => Outcome::Failed(Failure::new(
                    FailureCode::Provider,
                    "the script has no turn for this prompt: each of its turns has a `when` that the prompt does not contain",
                )),
            }
        })
    }

    fn context_usage<'a>(&'a self, _: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        let usage = self.script.context_usage.clone();
        Box::pin(async move { usage.ok_or_else(|| silent("context_usage")) })
    }

    fn reconfigure<'a>(&'a self, _: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn warm_since(&self) -> Option<tokio::time::Instant> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// The script does not say.
fn silent(member: &str) -> Failure {
    Failure::new(FailureCode::Unsupported, format!("the script has no `{member}`"))
}
