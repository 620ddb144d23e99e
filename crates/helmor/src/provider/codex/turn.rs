//! One turn: begun, listened to, steered, until it is over.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::tree::Identity;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ear::Ear;
use super::link::{CallError, Heard};
use super::questions::Questions;
use super::server::{CALL, Server};
use super::session::{Ready, Session, Thread};
use super::terms;
use super::trouble::Notices;
use crate::protocol::SendMessage;
use crate::provider::{Desk, Outcome, Steering, Turn, prompt};

/// How long the server has for a steer.
const STEER: Duration = Duration::from_secs(5);

/// After how many notifications at most we wait until the host has read enough.
const BATCH: u32 = 64;

/// A turn that runs.
pub(super) struct Run<'s> {
    pub(super) session: &'s Session,
    pub(super) server: Arc<Server>,
    pub(super) ear: Ear,
    pub(super) thread: Thread,
    /// The turn of the server that runs, as far as we know.
    pub(super) turn: Option<String>,
    /// Whether the server said so. Before that it refuses to steer and to interrupt.
    pub(super) begun: bool,
    pub(super) goal: Goal,
    pub(super) questions: Questions,
    /// What ran before the first tool of the turn, so that it can be told what the turn left.
    pub(super) before: Vec<Identity>,
    /// Whether a tool may run.
    pub(super) tools: bool,
    /// The threads of sub-agents, and which turn they are in.
    pub(super) others: HashMap<String, String>,
    send: SendMessage,
    pub(super) desk: Arc<dyn Desk>,
    stop: CancellationToken,
    steering: mpsc::Receiver<Steering>,
    /// Steers that were taken and of which nothing was seen yet.
    pub(super) owed: VecDeque<Owed>,
    /// Whether the server tells what it has been told.
    pub(super) echoes: bool,
    pub(super) notices: Notices,
    /// Whether something of its own was said: an answer, or what a tool did.
    pub(super) said: bool,
    pub(super) next_of_goal: Option<Instant>,
}

/// Whether the server goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// It does not.
    None,
    /// It does, turn after turn.
    Active,
}

/// A steer that was taken.
pub(super) struct Owed {
    /// Its text, to be recognised by.
    pub(super) text: String,
    /// All of it, to be said again.
    pub(super) input: Value,
}

enum Next {
    Steer(Steering),
    Heard(Option<Heard>),
    Answered,
    Rested,
}

impl<'s> Run<'s> {
    /// A turn that has not begun.
    pub(super) fn new(session: &'s Session, ready: Ready, turn: Turn) -> Self {
        let Ready { server, ear, thread } = ready;
        let Turn { send, desk, stop, steering } = turn;
        Self {
            session,
            questions: Questions::new(Arc::clone(&server), Arc::clone(&desk)),
            before: server.processes(),
            tools: false,
            server,
            ear,
            thread,
            turn: None,
            begun: false,
            goal: Goal::None,
            others: HashMap::new(),
            send,
            desk,
            stop,
            steering,
            owed: VecDeque::new(),
            echoes: false,
            notices: Notices::default(),
            said: false,
            next_of_goal: None,
        }
    }

    /// Runs it until it is over.
    pub(super) async fn drive(mut self) -> Outcome {
        let stop = self.stop.clone();
        let outcome = match stop.run_until_cancelled(self.until_over()).await {
            Some(outcome) => outcome,
            None => self.interrupt().await,
        };
        self.questions.withdraw().await;
        outcome
    }

    async fn until_over(&mut self) -> Outcome {
        if let Err(error) = self.begin().await {
            return Outcome::Failed(self.session.failed(&self.server, error, "as the turn began").await);
        }
        let mut heard_at_once = 0;
        loop {
            match self.next().await {
                Next::Answered => {}
                Next::Steer(steering) => self.steer(steering).await,
                Next::Rested => return Outcome::Ended,
                Next::Heard(None) => {
                    let failure = self.server.last_words("Codex ended in the middle of the turn").await;
                    self.session.end().await;
                    return Outcome::Failed(failure);
                }
                Next::Heard(Some(heard)) => {
                    if let Some(outcome) = self.hear(heard).await {
                        return outcome;
                    }
                    heard_at_once += 1;
                }
            }
            if self.ear.is_quiet() || heard_at_once >= BATCH {
                heard_at_once = 0;
                self.desk.room().await;
            }
        }
    }

    async fn next(&mut self) -> Next {
        let next_of_goal = self.next_of_goal;
        let rest = async move {
            match next_of_goal {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(()) = self.questions.answered() => Next::Answered,
            Some(steering) = self.steering.recv(), if self.begun => Next::Steer(steering),
            heard = self.ear.next() => Next::Heard(heard),
            () = rest => Next::Rested,
        }
    }

    /// Begins the turn; a prompt may be a command of ours.
    async fn begin(&mut self) -> Result<(), CallError> {
        let thread = self.thread.id.clone();
        let prompt = self.send.prompt.trim();
        let cwd = self.server.place.cwd.clone();
        if prompt == "/compact" {
            self.call("thread/compact/start", json!({ "threadId": thread }), CALL).await?;
            return Ok(());
        }
        let goal = prompt.strip_prefix("/goal").filter(|rest| rest.starts_with(char::is_whitespace));
        let params = terms::turn(&self.send, &cwd, &thread, &mut self.thread.left);
        let begun = match goal.map(str::trim).filter(|goal| !goal.is_empty()) {
            None => {
                let result = self.call("turn/start", params, CALL).await?;
                let started: Started = serde_json::from_str(result.get()).map_err(|error| {
                    CallError::Odd { method: "turn/start".to_owned(), why: error.to_string() }
                })?;
                self.turn = Some(started.turn.id);
                Ok(())
            }
            Some(goal) => {
                let goal = goal.to_owned();
                self.begin_goal(&goal, params).await
            }
        };
        self.session.leaves(self.thread.left.clone());
        begun
    }

    /// The turns of a goal are begun by the server itself, on the terms of the thread.
    async fn begin_goal(&mut self, goal: &str, mut terms: Value) -> Result<(), CallError> {
        if let Some(terms) = terms.as_object_mut() {
            terms.remove("input");
        }
        match self.call("thread/settings/update", terms, CALL).await {
            // Older servers have no such method; then the terms are those of the thread's start.
            Ok(_) | Err(CallError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        let thread = &self.thread.id;
        let params = match goal {
            "resume" => json!({ "threadId": thread, "status": "active" }),
            objective => json!({ "threadId": thread, "objective": objective, "status": "active" }),
        };
        self.call("thread/goal/set", params, CALL).await?;
        self.goal = Goal::Active;
        Ok(())
    }

    /// Whether the last turn is over and the next one of a goal has not begun.
    pub(super) fn between_turns(&self) -> bool {
        self.next_of_goal.is_some()
    }

    /// Calls a method; what the server says in the meantime comes after it.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        self.ear.call(&self.server.link, method, params, within).await
    }

    /// Everything the server says before its answer is held, so the host hears of the steer before whatever follows from it.
    async fn steer(&mut self, steering: Steering) {
        let Steering { steer, taken } = steering;
        let text = prompt::strip_image_marks(&steer.prompt, &steer.images);
        let input = terms::input(&text, &steer.images);
        let params = json!({ "threadId": self.thread.id, "input": input, "expectedTurnId": self.turn });
        let answer = match self.call("turn/steer", params, STEER).await {
            Ok(_) => {
                self.owed.push_back(Owed { text, input });
                self.desk.steered(&steer);
                Ok(())
            }
            Err(CallError::Refused { message, .. }) if message.contains("no active turn") => {
                Err("no_active_turn".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        // Who asked may have gone.
        let _ = taken.send(answer);
    }
}

/// `turn/start`.
#[derive(Deserialize)]
pub(super) struct Started {
    /// It.
    pub(super) turn: StartedTurn,
}

#[derive(Deserialize)]
pub(super) struct StartedTurn {
    /// Its name.
    pub(super) id: String,
}
