//! Codex, driven through its own `codex app-server`: JSON-RPC lines, one warm server for each session.
//!
//! * `server`, `link`, `ear`: the program as a child, the conversation with it, and what a turn hears of it.
//! * `session`, `turn`, `hear`, `stop`: what stays between turns, one turn, what it makes of what it hears, and how it is
//!   stopped.
//! * `terms`, `ask`, `form`, `questions`, `notice`, `trouble`, `usage`, `models`: how its words become ours, and ours its.

mod ask;
mod ear;
mod form;
mod hear;
mod link;
mod models;
mod notice;
mod questions;
mod server;
mod session;
mod stop;
mod terms;
mod trouble;
mod turn;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use self::ear::Ear;
use self::link::Heard;
use self::notice::{About, Completed, WithItem};
use self::server::{CALL, Place, Server};
use self::session::Session;
use super::process::Programs;
use super::slot::Slot;
use super::{AgentSession, Change, Failure, FailureCode, Model, Provider, SlashCommand};
use crate::BoxFuture;
use crate::protocol::{SlashQuery, TitleRequest};

/// How long a title may take.
const ONE_SHOT: Duration = Duration::from_secs(30);

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

    /// A server for one question.
    async fn server(&self, place: Place) -> Result<Server, Failure> {
        let mut attempt = 1;
        loop {
            let slot = Slot::default();
            let server = Server::start("codex", &self.config, &self.programs, place.clone(), &slot).await?;
            let Err(failure) = server.greet().await else { return Ok(server) };
            server.end().await;
            server::again(failure, &mut attempt).await?;
        }
    }

    async fn list_models(&self) -> Result<Vec<Model>, Failure> {
        let server = self.server(Place::new(None, None)).await?;
        let models = models_of(&server).await;
        server.end().await;
        Ok(models)
    }

    async fn list_commands(&self, query: &SlashQuery) -> Result<Vec<SlashCommand>, Failure> {
        let place = Place::new(query.cwd.as_deref(), None);
        let folders: Vec<PathBuf> =
            std::iter::once(place.cwd.clone()).chain(query.additional_directories.iter().cloned()).collect();
        let server = self.server(place).await?;
        let listed = server.link.call("skills/list", json!({ "cwds": folders }), CALL).await;
        server.end().await;
        let odd = || {
            Failure::new(FailureCode::AgentProtocol, "Codex lists its skills in a way that is not understood")
        };
        models::commands(&listed?).ok_or_else(odd)
    }

    /// In a folder of nobody, in a thread that leaves no trace.
    async fn answer_once(&self, request: &TitleRequest) -> Result<String, Failure> {
        let place = Place::new(Some(&std::env::temp_dir()), request.agent_proxy.as_ref());
        let server = self.server(place).await?;
        let answer = tokio::time::timeout(ONE_SHOT, titled(&server, request)).await;
        server.end().await;
        let late = || Failure::new(FailureCode::Timeout, format!("Codex did not answer within {ONE_SHOT:?}"));
        answer.unwrap_or_else(|_| Err(late()))
    }
}

impl Provider for Codex {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        Arc::new(Session::new(session_id, self.config.clone(), self.programs.clone()))
    }

    fn models<'a>(&'a self, _api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        Box::pin(self.list_models())
    }

    fn slash_commands<'a>(
        &'a self,
        query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        Box::pin(self.list_commands(query))
    }

    fn one_shot<'a>(&'a self, request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.answer_once(request))
    }

    /// Nothing that the whole sidecar can change is Codex's.
    fn configure(&self, _change: &Change) {}
}

/// The list of the server, or the one we know if it does not tell.
async fn models_of(server: &Server) -> Vec<Model> {
    let listed = server.link.call("model/list", json!({}), CALL).await;
    listed.ok().and_then(|listed| models::read(&listed)).unwrap_or_else(models::known)
}

/// With the model that was asked for; else with the cheapest, and if the account does not have that, with its own choice.
async fn titled(server: &Server, request: &TitleRequest) -> Result<String, Failure> {
    if let Some(model) = &request.model {
        return once(server, &request.prompt, Some(model)).await;
    }
    let models = models_of(server).await;
    let first = once(server, &request.prompt, models::cheapest(&models)).await;
    match first {
        Err(failure) if matches!(failure.code, FailureCode::InvalidRequest | FailureCode::Provider) => {
            once(server, &request.prompt, None).await
        }
        answered => answered,
    }
}

/// The last thing that the model says to this prompt.
async fn once(server: &Server, prompt: &str, model: Option<&str>) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Opened {
        thread: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let mut ear = Ear::new(&server.link);
    let start = json!({
        "cwd": server.place.cwd, "model": model, "approvalPolicy": "never", "sandbox": "read-only",
        "ephemeral": true, "environments": [],
    });
    let opened: Opened = server.ask("thread/start", start).await?;
    let thread = opened.thread.id;
    let input = terms::input(prompt, &[] as &[&Path]);
    let turn = json!({ "threadId": thread, "input": input, "effort": "low" });
    ear.call(&server.link, "turn/start", turn, CALL).await?;
    let mut said = String::new();
    while let Some(heard) = ear.next().await {
        match heard {
            Heard::Asked { id, .. } => server.link.refuse(&id, "nobody can be asked").await,
            Heard::Told { method, params } if About::read(&params).thread() == Some(&*thread) => {
                if let Some(text) = answer_in(&method, &params) {
                    said = text;
                } else if method == "turn/completed" {
                    return over(&params, said);
                }
            }
            Heard::Told { .. } => {}
        }
    }
    Err(server.last_words("Codex ended before it answered").await)
}

fn answer_in(method: &str, params: &RawValue) -> Option<String> {
    let item = WithItem::read(params).filter(|_| method == "item/completed")?;
    item.text.filter(|_| item.kind == "agentMessage")
}

fn over(params: &RawValue, said: String) -> Result<String, Failure> {
    let completed: Completed = serde_json::from_str(params.get())
        .map_err(|error| Failure::new(FailureCode::AgentProtocol, error.to_string()))?;
    match completed.turn.status.as_str() {
        "completed" => Ok(said),
        _ => Err(trouble::failure(&completed.turn.error.unwrap_or_default())),
    }
}

/// A name that no other question has. Without randomness the number alone still makes it one.
fn uuid() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 16];
    let random = getrandom::fill(&mut bytes).is_ok();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let value = if random { u128::from_be_bytes(bytes) } else { u128::from(number) };
    // The marks of a random UUID, version 4.
    let value = value & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{value:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
