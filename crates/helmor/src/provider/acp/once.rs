//! What is asked of an agent outside of any session of the host: its models, its commands, a title. Each takes a program of its
//! own, which is gone afterwards.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::open::{Connection, open};
use super::program::Key;
use super::session::Session;
use super::{Flavour, Shared, skills};
use crate::BoxFuture;
use crate::protocol::{PermissionMode, ProviderName, SendMessage, SlashQuery, Steer, TitleRequest};
use crate::provider::slot::Slot;
use crate::provider::{
    AgentSession, Answer, Asked, Desk, Failure, FailureCode, InputAsk, Model, Outcome, PermissionAsk,
    SlashCommand, Turn, Verdict,
};

/// How long an agent may take to say what its commands are, after it made a session.
const COMMANDS_WITHIN: Duration = Duration::from_secs(3);

/// The longest answer that is kept; titles are short.
const LONGEST_ANSWER: usize = 64 << 10;

/// The models, as an agent last offered them, or as one offers them that is started for the question.
pub(super) async fn models(shared: &Shared, api_key: Option<&str>) -> Result<Vec<Model>, Failure> {
    if api_key.is_none()
        && let Some(models) = shared.memory().models.clone()
    {
        return Ok(models);
    }
    let offered = match probe(shared, here(), api_key).await {
        Ok(connection) => {
            let lasting = connection.ear.lasting();
            connection.agent.kill().await;
            let models = lasting.options.models();
            if api_key.is_none() {
                shared.memory().learn(&connection.key.cwd, lasting);
            }
            Ok(models)
        }
        Err(failure) => Err(failure),
    };
    match (offered, &shared.config.flavour) {
        (Ok(Some(models)), _) => Ok(models),
        // Without a login, or without the program, there is still something to choose from.
        (Ok(None) | Err(_), Flavour::Cursor { .. }) => Ok(cursor_models()),
        (Ok(None), Flavour::Named { .. }) => Ok(Vec::new()),
        (Err(failure), Flavour::Named { .. }) => Err(failure),
    }
}

/// What Cursor has had for long.
fn cursor_models() -> Vec<Model> {
    let model = |id: &str, label: &str, fast: Option<bool>| Model {
        id: id.to_owned(),
        label: label.to_owned(),
        cli_model: id.to_owned(),
        effort_levels: None,
        supports_fast_mode: fast,
        cursor_parameters: None,
    };
    vec![
        model("composer-2", "Composer 2", Some(true)),
        model("gpt-5.3-codex", "GPT-5.3 Codex", None),
        model("claude-sonnet-4-5", "Claude Sonnet 4.5", None),
    ]
}

/// The commands: Cursor's are files, those of other agents are what they say.
pub(super) async fn slash_commands(
    shared: &Shared,
    query: &SlashQuery,
) -> Result<Vec<SlashCommand>, Failure> {
    let cwd = query.cwd.clone().unwrap_or_else(here);
    match &shared.config.flavour {
        Flavour::Cursor { .. } => {
            let mut folders = vec![cwd];
            folders.extend(query.additional_directories.iter().cloned());
            folders.extend(std::env::home_dir());
            let scanned = tokio::task::spawn_blocking(move || skills::scan(&folders)).await;
            scanned.map_err(|error| Failure::new(FailureCode::Provider, error.to_string()))
        }
        Flavour::Named { .. } => {
            if let Some(commands) = shared.memory().commands.get(&cwd).cloned() {
                return Ok(commands);
            }
            let connection = probe(shared, cwd, None).await?;
            let commands = tokio::time::timeout(COMMANDS_WITHIN, said_commands(&connection)).await;
            connection.agent.kill().await;
            shared.memory().learn(&connection.key.cwd, connection.ear.lasting());
            Ok(commands.unwrap_or_default())
        }
    }
}

async fn said_commands(connection: &Connection) -> Vec<SlashCommand> {
    loop {
        let changed = connection.ear.changed.notified();
        if let Some(commands) = connection.ear.lasting().commands {
            return commands;
        }
        changed.await;
    }
}

/// The answer of a model to a prompt, without tools.
pub(super) async fn one_shot(shared: &Arc<Shared>, request: &TitleRequest) -> Result<String, Failure> {
    let session = Arc::new(Session::new("one-shot", Arc::clone(shared)));
    let notes = Arc::new(Notes::default());
    let (_steer, steering) = mpsc::channel(1);
    let desk: Arc<dyn Desk> = Arc::<Notes>::clone(&notes);
    let send = SendMessage {
        session_id: "one-shot".to_owned(),
        prompt: request.prompt.clone(),
        provider: ProviderName::Cursor,
        model: request.model.clone(),
        cwd: Some(std::env::temp_dir()),
        resume: None,
        permission_mode: Some(PermissionMode::DontAsk),
        effort: None,
        fast_mode: false,
        ask_every_tool: false,
        thinking_display: None,
        claude_environment: Vec::new(),
        agent_proxy: request.agent_proxy.clone(),
        additional_directories: Vec::new(),
        source_repo: None,
        images: Vec::new(),
    };
    let turn = Turn { send, desk, stop: CancellationToken::new(), steering };
    let outcome = Arc::clone(&session).turn(turn).await;
    session.forget().await;
    session.close().await;
    let said = std::mem::take(&mut *notes.said.lock().unwrap_or_else(PoisonError::into_inner));
    match outcome {
        Outcome::Ended if !said.trim().is_empty() => Ok(said),
        Outcome::Ended | Outcome::Aborted => Err(Failure::new(
            FailureCode::Provider,
            format!("{} said nothing", shared.config.flavour.title()),
        )),
        Outcome::EndedBadly { message } => Err(Failure::new(FailureCode::Provider, message)),
        Outcome::Failed(failure) => Err(failure),
    }
}

/// An agent with a session, for one question.
async fn probe(shared: &Shared, cwd: PathBuf, api_key: Option<&str>) -> Result<Connection, Failure> {
    let api_key = api_key.map(ToOwned::to_owned).or_else(|| shared.memory().api_key.clone());
    let key = Key { cwd, directories: Vec::new(), proxy: None, api_key };
    let name = shared.config.flavour.program_name("question");
    let slot = Slot::default();
    match open(shared, key, name, None, &slot).await {
        Ok(opened) => Ok(opened.connection),
        Err(failure) => {
            slot.end().await;
            Err(failure)
        }
    }
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// A desk that only takes down what is said, and at which nobody answers.
#[derive(Default)]
struct Notes {
    said: Mutex<String>,
}

impl Desk for Notes {
    fn pass(&self, object: &str) {
        let Ok(object) = serde_json::from_str::<Value>(object) else { return };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        if !kind.ends_with("/assistant") {
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = object.pointer("/message/content/0/text").and_then(Value::as_str)
            && said.len() + text.len() <= LONGEST_ANSWER
        {
            said.push_str(text);
        }
    }

    fn tell(&self, _: &str, _: &[(&str, Value)]) {}

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn ask_permission(&self, _: PermissionAsk) -> Asked<Verdict> {
        nobody()
    }

    fn ask_input(&self, _: InputAsk) -> Asked<Answer> {
        nobody()
    }

    fn steered(&self, _: &Steer) {}

    fn context_lost(&self, _: &str, _: &str) {}

    fn host_call<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Err("nobody is asked".to_owned()) })
    }

    fn log(&self, _: &str) {}
}

fn nobody<T>() -> Asked<T> {
    let (_, answer) = oneshot::channel();
    Asked::new(answer, || {})
}
