//! Codex, driven through its own `codex app-server`: JSON-RPC lines, one warm process for each session.

use std::path::PathBuf;
use std::sync::Arc;

use super::process::Programs;
use super::{AgentSession, Change, Failure, FailureCode, Model, Outcome, Provider, SlashCommand, Turn};
use crate::BoxFuture;
use crate::protocol::{ContextQuery, SlashQuery, TitleRequest};

/// What is configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program; looked for if absent.
    pub program: Option<PathBuf>,
}

/// Codex as a provider.
pub struct Codex {
    config: Config,
    programs: Programs,
}

impl Codex {
    /// Nothing is started or looked for yet.
    #[must_use]
    pub fn new(config: Config, programs: Programs) -> Self {
        Self { config, programs }
    }
}

impl Provider for Codex {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        let _ = (&self.config, &self.programs, session_id);
        Arc::new(Session)
    }

    fn models<'a>(&'a self, _api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        Box::pin(async { Err(unsupported()) })
    }

    fn slash_commands<'a>(
        &'a self,
        _query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        Box::pin(async { Err(unsupported()) })
    }

    fn one_shot<'a>(&'a self, _request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async { Err(unsupported()) })
    }

    fn configure(&self, _change: &Change) {}
}

struct Session;

impl AgentSession for Session {
    fn turn(self: Arc<Self>, _turn: Turn) -> BoxFuture<'static, Outcome> {
        Box::pin(async { Outcome::Failed(unsupported()) })
    }

    fn context_usage<'a>(&'a self, _query: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async { Err(unsupported()) })
    }

    fn reconfigure<'a>(&'a self, _change: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Err(unsupported()) })
    }

    fn warm_since(&self) -> Option<tokio::time::Instant> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn unsupported() -> Failure {
    Failure::new(FailureCode::Unsupported, "Codex cannot be driven yet")
}
