//! What a turn makes of what the server says: most of it is passed on, some of it is also ours to understand.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::link::{CallError, Heard};
use super::notice::{self, About, Completed, WithItem};
use super::server::CALL;
use super::trouble;
use super::turn::{Goal, Owed, Run, Started};
use crate::provider::Outcome;

/// How long we wait for the next turn of a goal that is still active. The server begins it at once.
const NEXT_OF_GOAL: Duration = Duration::from_secs(5);

/// How many threads of sub-agents are watched.
const OTHERS: usize = 64;

impl Run<'_> {
    /// Takes note of what the server says, and passes it on. With an outcome if it was the last thing.
    pub(super) async fn hear(&mut self, heard: Heard) -> Option<Outcome> {
        match heard {
            Heard::Asked { id, method, params } => {
                let leave = self.session.leave();
                self.questions.ask(leave, id, &method, &params).await;
                None
            }
            Heard::Told { method, params } => self.told(&method, &params).await,
        }
    }

    async fn told(&mut self, method: &str, params: &RawValue) -> Option<Outcome> {
        let about = About::read(params);
        if let Some(other) = about.thread().filter(|thread| *thread != self.thread.id) {
            self.note_other(method, other, about.turn());
            return None;
        }
        if about.turn().is_some_and(|turn| self.session.is_stale(turn)) {
            return None;
        }
        if method == "error" {
            self.trouble(params);
            return None;
        }
        self.desk.pass(&notice::object(method, params, &self.thread.id));
        match method {
            "turn/started" => {
                self.turn = about.turn().map(str::to_owned).or_else(|| self.turn.take());
                self.begun = true;
                self.next_of_goal = None;
                self.look_around();
            }
            "mcpServer/startupStatus/updated" => self.look_around(),
            "turn/completed" if about.turn() == self.turn.as_deref() || self.turn.is_none() => {
                return self.completed(params).await;
            }
            "item/started" | "item/completed" => self.note_item(method, params),
            "thread/tokenUsage/updated" => self.tell_usage(),
            "thread/goal/updated" | "thread/goal/cleared" => self.tell_goal(params),
            "serverRequest/resolved" => {
                if let Ok(resolved) = serde_json::from_str::<Resolved<'_>>(params.get()) {
                    self.questions.resolved(resolved.request_id);
                }
            }
            _ => {}
        }
        None
    }

    /// As long as no tool has been called, everything that runs is of the server itself, as its MCP servers are.
    fn look_around(&mut self) {
        if !self.tools {
            self.before = self.server.processes();
        }
    }

    /// Sub-agents have threads of their own. What they say is theirs, but a stop must reach them.
    pub(super) fn note_other(&mut self, method: &str, thread: &str, turn: Option<&str>) {
        match (method, turn) {
            ("turn/started", Some(turn)) if self.others.len() < OTHERS => {
                self.others.insert(thread.to_owned(), turn.to_owned());
            }
            ("turn/completed", _) => {
                self.others.remove(thread);
            }
            _ => {}
        }
    }

    fn trouble(&mut self, params: &RawValue) {
        // What is not tried again ends the turn, and is told by that.
        let told = serde_json::from_str::<trouble::Told>(params.get()).ok().filter(|told| told.will_retry);
        if let Some(notice) = told.and_then(|told| self.notices.notice(&told.error)) {
            self.desk.tell("system", &notice);
        }
    }

    fn note_item(&mut self, method: &str, params: &RawValue) {
        let Some(item) = WithItem::read(params) else { return };
        self.tools |= !matches!(item.kind.as_str(), "userMessage" | "agentMessage" | "reasoning");
        match (method, item.kind.as_str()) {
            ("item/started", "fileChange") => {
                if let Some(changes) = item.changes {
                    self.questions.remember(item.id, changes);
                }
            }
            ("item/started", "userMessage") => {
                // `Display` of a JSON string is its JSON spelling.
                let seen = |owed: &Owed| params.get().contains(&Value::from(owed.text.as_str()).to_string());
                self.owed.retain(|owed| !seen(owed));
                self.echoes = true;
            }
            // A thought is no answer, and neither is what the user said.
            ("item/completed", "userMessage" | "reasoning" | "contextCompaction") => {}
            ("item/completed", _) => self.said = true,
            _ => {}
        }
    }

    fn tell_usage(&self) {
        let usage = self.server.link.usages().of(&self.thread.id);
        if let Some(usage) = usage {
            let meta = usage.meta(&self.thread.left.model);
            self.desk.tell(
                "contextUsageUpdated",
                &[("sessionId", json!(self.session.id())), ("meta", json!(meta))],
            );
        }
    }

    fn tell_goal(&mut self, params: &RawValue) {
        let goal = serde_json::from_str::<WithGoal>(params.get()).ok().and_then(|with| with.goal);
        let active = goal.as_ref().is_some_and(|goal| goal["status"] == "active");
        self.goal = if active { Goal::Active } else { Goal::None };
        let goal = goal.map(|goal| goal.to_string());
        self.desk.tell("codexGoalUpdated", &[("sessionId", json!(self.session.id())), ("goal", json!(goal))]);
    }

    async fn completed(&mut self, params: &RawValue) -> Option<Outcome> {
        let completed: Completed = match serde_json::from_str(params.get()) {
            Ok(completed) => completed,
            Err(error) => {
                let odd = CallError::Odd { method: "turn/completed".to_owned(), why: error.to_string() };
                return Some(Outcome::Failed(odd.into()));
            }
        };
        self.begun = false;
        let error = completed.turn.error.unwrap_or_default();
        match completed.turn.status.as_str() {
            "failed" if self.said => Some(Outcome::EndedBadly { message: trouble::failure(&error).message }),
            "failed" => Some(Outcome::Failed(trouble::failure(&error))),
            "interrupted" => Some(Outcome::EndedBadly { message: "Codex interrupted the turn".to_owned() }),
            // `completed`, and words to come.
            _ => self.goes_on().await,
        }
    }

    /// A turn that is over is not the end if a steer that was taken has not been seen, or if the server works on a goal.
    async fn goes_on(&mut self) -> Option<Outcome> {
        // A server that does not repeat what it is told may well have heard it.
        if let Some(owed) = self.owed.pop_front().filter(|_| self.echoes) {
            let params = json!({ "threadId": self.thread.id, "input": owed.input });
            let result = self.call("turn/start", params, CALL).await;
            return match result.map(|result| serde_json::from_str::<Started>(result.get())) {
                Ok(Ok(started)) => {
                    self.turn = Some(started.turn.id);
                    None
                }
                Ok(Err(_)) => None,
                Err(error) => {
                    let when = "before it answered what was said last";
                    Some(Outcome::Failed(self.session.failed(&self.server, error, when).await))
                }
            };
        }
        match self.goal {
            Goal::Active => {
                self.next_of_goal = Some(Instant::now() + NEXT_OF_GOAL);
                None
            }
            Goal::None => Some(Outcome::Ended),
        }
    }
}

/// `serverRequest/resolved`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resolved<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// `thread/goal/updated`.
#[derive(Deserialize)]
struct WithGoal {
    goal: Option<Value>,
}
