//! A program that nobody may want any more while it is still being started: who gives up must be able to wait for its end.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::process::{Agent, Command, Pipes, Programs};
use super::{Failure, FailureCode};

/// A place for one program, from the moment on when it is being started.
#[derive(Clone, Default)]
pub(super) struct Slot {
    agent: Arc<Mutex<Option<Agent>>>,
}

impl Slot {
    /// Starts a program. When this future is dropped the start goes on, so that [`end`](Self::end) finds what came of it.
    pub(super) async fn start(
        &self,
        programs: &Programs,
        command: Command,
    ) -> Result<(Agent, Pipes), Failure> {
        let mut place = Arc::clone(&self.agent).lock_owned().await;
        let programs = programs.clone();
        let started = tokio::spawn(async move {
            let (agent, pipes) = programs.start(command).await?;
            *place = Some(agent.clone());
            Ok((agent, pipes))
        });
        started.await.unwrap_or_else(|error| Err(Failure::new(FailureCode::AgentExited, error.to_string())))
    }

    /// Somebody else looks after the program from here on.
    pub(super) async fn release(&self) {
        self.agent.lock().await.take();
    }

    /// Kills the program, if there is one, with everything it started. Returns when nothing is left.
    pub(super) async fn end(&self) {
        let agent = self.agent.lock().await.take();
        if let Some(agent) = agent {
            agent.kill().await;
        }
    }
}
