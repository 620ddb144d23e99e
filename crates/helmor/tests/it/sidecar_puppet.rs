//! A provider that does what its prompt says, also what no driver should do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_helmor::BoxFuture;
use outrigger_helmor::protocol::{ContextQuery, ProviderName, SlashQuery, TitleRequest};
use outrigger_helmor::provider::{
    AgentSession, Change, Desk, Failure, FailureCode, InputAsk, Model, Outcome, PermissionAsk, Provider,
    SlashCommand, Turn,
};
use outrigger_helmor::sidecar::Providers;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// What the puppets of a test have been seen to do.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Remarks, in order.
    pub(crate) remarks: Arc<Mutex<Vec<String>>>,
    pub(crate) turns: Arc<AtomicUsize>,
    /// How many things a `say` has said.
    pub(crate) said: Arc<AtomicUsize>,
}

impl Seen {
    fn remark(&self, remark: impl Into<String>) {
        self.remarks.lock().unwrap().push(remark.into());
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        self.remarks.lock().unwrap().clone()
    }
}

/// Everybody is a puppet, except Cursor, which is not installed.
pub(crate) fn puppets(seen: &Seen) -> Providers {
    let seen = seen.clone();
    Providers::made_by(Box::new(move |name, _| match name {
        ProviderName::Acp(_) => None,
        ProviderName::Cursor => Some(Err(Failure::new(FailureCode::NotInstalled, "there is no Cursor"))),
        ProviderName::Claude | ProviderName::Codex | ProviderName::Scripted => {
            Some(Ok(Arc::new(Puppet { name: name.to_string(), seen: seen.clone() })))
        }
    }))
}

struct Puppet {
    name: String,
    seen: Seen,
}

impl Provider for Puppet {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        assert!(session_id != "panics", "a session that cannot be made");
        let (seen, id) = (self.seen.clone(), session_id.to_owned());
        Arc::new(Session { id, seen, warm: Mutex::new(None) })
    }

    fn models<'a>(&'a self, api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        Box::pin(async move {
            assert!(api_key != Some("panic"), "no models with this key");
            let model = Model {
                id: "m".to_owned(),
                label: self.name.clone(),
                cli_model: api_key.unwrap_or("none").to_owned(),
                effort_levels: None,
                supports_fast_mode: None,
                cursor_parameters: None,
            };
            Ok(vec![model])
        })
    }

    fn slash_commands<'a>(
        &'a self,
        query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        Box::pin(async move {
            let name = query.additional_directories.len().to_string();
            let description = format!("{:?}", query.cwd);
            Ok(vec![SlashCommand { name, description, argument_hint: None, source: "builtin" }])
        })
    }

    fn one_shot<'a>(&'a self, request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            self.seen.remark(format!("{} {:?}", self.name, request.model));
            match (self.name.as_str(), request.prompt.contains("codex knows")) {
                ("codex", true) => Ok("title: \"From Codex\"\nbranch: from-codex".to_owned()),
                (_, true) => Err(Failure::new(FailureCode::Auth, "nobody is logged in")),
                ("claude", false) => Ok("title: From Claude\nbranch: from-claude".to_owned()),
                (_, false) => Ok(String::new()),
            }
        })
    }

    fn configure(&self, change: &Change) {
        self.seen.remark(format!("{} configured {:?}", self.name, change.cursor_api_key));
    }
}

struct Session {
    id: String,
    seen: Seen,
    warm: Mutex<Option<Instant>>,
}

impl AgentSession for Session {
    fn turn(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, Outcome> {
        self.seen.turns.fetch_add(1, Ordering::SeqCst);
        assert!(turn.send.prompt != "panic early", "before there is a future");
        Box::pin(async move {
            let outcome = self.act(turn).await;
            *self.warm.lock().unwrap() = Some(Instant::now());
            outcome
        })
    }

    fn context_usage<'a>(&'a self, query: &'a ContextQuery) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move { Ok(json!({ "modelId": query.model, "session": self.id }).to_string()) })
    }

    fn reconfigure<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.seen.remark(format!("{} reconfigured {:?}", self.id, change.model));
            Ok(())
        })
    }

    fn warm_since(&self) -> Option<Instant> {
        *self.warm.lock().unwrap()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            *self.warm.lock().unwrap() = None;
            self.seen.remark(format!("{} closed", self.id));
        })
    }
}

impl Session {
    async fn act(&self, turn: Turn) -> Outcome {
        let Turn { send, desk, stop, mut steering } = turn;
        let desk = &*desk;
        let (word, rest) = send.prompt.split_once(' ').unwrap_or((&send.prompt, ""));
        let count = || rest.parse::<usize>().unwrap();
        match word {
            "say" => {
                for at in 0..count() {
                    desk.pass(&json!({ "type": "assistant", "at": at }).to_string());
                    self.seen.said.fetch_add(1, Ordering::SeqCst);
                    desk.room().await;
                }
                Outcome::Ended
            }
            // Says something again and again until it is stopped.
            "chatter" => {
                for at in 0.. {
                    desk.pass(&json!({ "type": "assistant", "at": at }).to_string());
                    desk.room().await;
                    tokio::task::yield_now().await;
                    if stop.is_cancelled() {
                        break;
                    }
                }
                Outcome::Aborted
            }
            "echo" => {
                let mode = send.permission_mode.map(|mode| mode.word());
                desk.tell("echo", &[("model", json!(send.model)), ("mode", json!(mode))]);
                Outcome::Ended
            }
            "pass" => {
                desk.pass(rest);
                Outcome::Ended
            }
            // Fills what the host does not read, and never asks whether there is room.
            "rude" => {
                let text = "x".repeat(1 << 20);
                for _ in 0..count() {
                    desk.pass(&json!({ "type": "rude", "text": text }).to_string());
                }
                self.seen.remark("rude");
                Outcome::Ended
            }
            "panic" => panic!("a driver that panics"),
            "tell" => {
                for kind in ["end", "aborted", "error"] {
                    desk.tell(kind, &[]);
                    desk.pass(&json!({ "type": kind }).to_string());
                }
                Outcome::Ended
            }
            "fail" => Outcome::Failed(Failure::new(FailureCode::RateLimit, "too many")),
            "badly" => Outcome::EndedBadly { message: "not well".to_owned() },
            "abort" => Outcome::Aborted,
            "hang" => {
                desk.tell("hanging", &[]);
                stop.cancelled().await;
                self.seen.remark("stopped");
                Outcome::Aborted
            }
            // Talks on after the host has been told that it is over.
            "talk" => {
                desk.tell("talking", &[]);
                stop.cancelled().await;
                for _ in 0..100 {
                    desk.pass(r#"{"type":"late"}"#);
                    desk.tell("late", &[]);
                    let mut asked = desk.ask_permission(permission("late"));
                    assert_eq!(asked.answer().await, None);
                }
                self.seen.remark("talked on");
                Outcome::Failed(Failure::new(FailureCode::Provider, "late"))
            }
            "slowly" => {
                desk.tell("hanging", &[]);
                stop.cancelled().await;
                tokio::time::sleep(Duration::from_millis(count() as u64)).await;
                self.seen.remark("slowly stopped");
                Outcome::Aborted
            }
            "never" => {
                desk.tell("hanging", &[]);
                std::future::pending().await
            }
            // Holds its thread and gives it to nobody, until it is stopped.
            "spin" => {
                desk.tell("spinning", &[]);
                while !stop.is_cancelled() {
                    std::hint::spin_loop();
                }
                Outcome::Aborted
            }
            "ask" => self.ask(desk, rest, &stop).await,
            "input" => {
                let mut asked = desk.ask_input(InputAsk {
                    id: rest.to_owned(),
                    source: "Puppet".to_owned(),
                    message: "which?".to_owned(),
                    payload: json!({ "kind": "url", "url": "https://example.com" }),
                });
                let answer = asked.answer().await;
                desk.tell("answered", &[("answer", json!(format!("{answer:?}")))]);
                Outcome::Ended
            }
            "withdraw" => {
                drop(desk.ask_permission(permission(rest)));
                Outcome::Ended
            }
            "steer" => {
                desk.tell("steerable", &[]);
                for _ in 0..count() {
                    let Some(said) = steering.recv().await else { break };
                    if said.steer.prompt == "refuse" {
                        let _ = said.taken.send(Err("not now".to_owned()));
                        continue;
                    }
                    desk.steered(&said.steer);
                    let _ = said.taken.send(Ok(()));
                }
                Outcome::Ended
            }
            // Takes no steer before it is stopped.
            "deaf" => {
                desk.tell("deaf", &[]);
                stop.cancelled().await;
                Outcome::Aborted
            }
            "host" => {
                let answer = desk.host_call("test.call", json!({ "n": 1 })).await;
                desk.tell("called", &[("answer", json!(answer))]);
                Outcome::Ended
            }
            "lost" => {
                desk.context_lost("old", "it is gone");
                Outcome::Ended
            }
            _ => Outcome::Ended,
        }
    }

    async fn ask(&self, desk: &dyn Desk, id: &str, stop: &tokio_util::sync::CancellationToken) -> Outcome {
        let mut asked = desk.ask_permission(permission(id));
        let verdict = tokio::select! {
            verdict = asked.answer() => verdict,
            () = stop.cancelled() => None,
        };
        match verdict {
            Some(verdict) => {
                desk.tell("judged", &[("verdict", json!(format!("{verdict:?}")))]);
                Outcome::Ended
            }
            None => {
                self.seen.remark("nobody answered");
                Outcome::Aborted
            }
        }
    }
}

fn permission(id: &str) -> PermissionAsk {
    let tool_input: Map<String, Value> = [("command".to_owned(), json!("ls"))].into_iter().collect();
    PermissionAsk {
        id: id.to_owned(),
        call_id: None,
        tool_name: "Bash".to_owned(),
        tool_input,
        title: None,
        description: Some("lists".to_owned()),
        suggestions: vec![json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" })],
        required: true,
    }
}
