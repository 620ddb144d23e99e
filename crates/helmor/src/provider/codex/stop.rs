//! The end of a turn that was stopped: by the protocol first, and if something of it is left then, by signals for everything.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::link::{CallError, Heard};
use super::notice::About;
use super::turn::{Goal, Run};
use crate::provider::Outcome;

/// How long the protocol has.
const BY_PROTOCOL: Duration = Duration::from_secs(2);

/// How long the server has for each call of that.
const EACH: Duration = Duration::from_secs(1);

/// How often we look whether everything has gone.
const LOOK: Duration = Duration::from_millis(10);

impl Run<'_> {
    /// Interrupts the turn. When it returns nothing of the turn runs any more.
    pub(super) async fn interrupt(&mut self) -> Outcome {
        // The host has been told; nobody will answer.
        self.questions.withdraw().await;
        let until = Instant::now() + BY_PROTOCOL;
        let by_protocol = tokio::time::timeout_at(until, self.by_protocol()).await;
        if !matches!(by_protocol, Ok(Ok(()))) {
            self.session.end().await;
            // It may be on its way out already, because of a failure that the stop cut short.
            self.server.end().await;
        }
        if let Some(turn) = self.turn.take() {
            self.session.stopped(turn);
        }
        Outcome::Aborted
    }

    async fn by_protocol(&mut self) -> Result<(), CallError> {
        let thread = self.thread.id.clone();
        if self.goal == Goal::Active {
            // Otherwise the server begins the next turn by itself.
            self.call("thread/goal/set", json!({ "threadId": thread, "status": "paused" }), EACH).await?;
        }
        // Between two turns of a goal there may be nothing to interrupt.
        let between = self.between_turns();
        loop {
            let nothing_runs = between && !self.begun && self.ear.is_quiet();
            if nothing_runs || self.is_interrupted().await? {
                break;
            }
            self.hear_silently().await?;
        }
        for (other, turn) in std::mem::take(&mut self.others) {
            // A sub-agent that has just ended cannot be interrupted.
            let _ = self.call("turn/interrupt", json!({ "threadId": other, "turnId": turn }), EACH).await;
            let _ = self.call("thread/backgroundTerminals/clean", json!({ "threadId": other }), EACH).await;
        }
        // An interrupted turn leaves its commands running.
        self.call("thread/backgroundTerminals/clean", json!({ "threadId": thread }), EACH).await?;
        while self.server.processes().iter().any(|process| !self.before.contains(process)) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Interrupts the turn if it can be now. `false` before the server has said that it began, and until it says that it is over.
    async fn is_interrupted(&mut self) -> Result<bool, CallError> {
        if !self.begun {
            return Ok(false);
        }
        let params = json!({ "threadId": self.thread.id, "turnId": self.turn });
        match self.call("turn/interrupt", params, EACH).await {
            // It is over already, or a later one has begun, of which we shall hear.
            Ok(_) | Err(CallError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        while self.begun {
            self.hear_silently().await?;
        }
        Ok(true)
    }

    /// Takes note of what the server says without passing it on.
    async fn hear_silently(&mut self) -> Result<(), CallError> {
        match self.ear.next().await.ok_or(CallError::Gone)? {
            Heard::Asked { id, .. } => {
                self.server.link.refuse(&id, "the turn was stopped").await;
            }
            Heard::Told { method, params } => {
                let about = About::read(&params);
                if let Some(other) = about.thread().filter(|thread| *thread != self.thread.id) {
                    self.note_other(&method, other, about.turn());
                } else if method == "turn/started" {
                    self.turn = about.turn().map(str::to_owned);
                    self.begun = true;
                } else if method == "turn/completed" && about.turn() == self.turn.as_deref() {
                    self.begun = false;
                }
            }
        }
        Ok(())
    }
}
