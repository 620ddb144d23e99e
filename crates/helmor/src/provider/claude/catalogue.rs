//! What programs are asked that are thrown away afterwards: which models and commands there are, and one answer for a title.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Home;
use super::frame::{self, Kind};
use super::launch::{self, Changing, Fixed};
use super::link::{Link, Said};
use super::live::{Live, StartError};
use super::outcome::{self, Seen};
use crate::protocol::{PermissionMode, SlashQuery, TitleRequest};
use crate::provider::{Failure, FailureCode, Model, Outcome, SlashCommand};

/// How long an introduction is believed. Long enough for a host that asks for models and commands at once, short enough for a
/// user who has just written a command.
const FRESH: Duration = Duration::from_secs(10);

/// How many folders' introductions are remembered.
const REMEMBERED: usize = 8;

/// How long one answer may take.
const ONE_SHOT: Duration = Duration::from_secs(30);

/// The model for titles, if the host names none: the cheapest.
const SMALL_MODEL: &str = "haiku";

/// What Claude Code says about itself, remembered for a moment.
pub(super) struct Catalogue {
    home: Arc<Home>,
    known: Mutex<Vec<Known>>,
}

struct Known {
    place: Place,
    since: Instant,
    introduction: Arc<Value>,
}

/// What an introduction depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    cwd: Option<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Catalogue {
    pub(super) fn new(home: Arc<Home>) -> Self {
        Self { home, known: Mutex::default() }
    }

    pub(super) async fn models(&self) -> Result<Vec<Model>, Failure> {
        let introduction = self.introduction(Place { cwd: None, directories: Vec::new() }).await?;
        Ok(models_in(&introduction))
    }

    pub(super) async fn commands(&self, query: &SlashQuery) -> Result<Vec<SlashCommand>, Failure> {
        let place = Place { cwd: query.cwd.clone(), directories: query.additional_directories.clone() };
        Ok(commands_in(&*self.introduction(place).await?))
    }

    /// What the program says about itself there. The lock is held meanwhile, so that ten hosts' windows that open at once do not
    /// start ten programs.
    async fn introduction(&self, place: Place) -> Result<Arc<Value>, Failure> {
        let mut known = self.known.lock().await;
        known.retain(|known| known.since.elapsed() < FRESH);
        if let Some(known) = known.iter().find(|known| known.place == place) {
            return Ok(Arc::clone(&known.introduction));
        }
        let introduction = match self.ask(&place).await {
            // It may have been updating itself.
            Err(StartError::Failed(failure)) if failure.code == FailureCode::AgentExited => {
                self.ask(&place).await
            }
            asked => asked,
        };
        let introduction = Arc::new(introduction.map_err(StartError::into_failure)?);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push(Known { place, since: Instant::now(), introduction: Arc::clone(&introduction) });
        Ok(introduction)
    }

    async fn ask(&self, place: &Place) -> Result<Value, StartError> {
        let mut fixed = Fixed::throw_away(place.cwd.clone(), Vec::new());
        fixed.directories.clone_from(&place.directories);
        let changing = Changing { model: None, mode: PermissionMode::Default, resume: None };
        let (live, _) = Live::start(&self.home, "claude:about".to_owned(), fixed, changing).await?;
        Ok(live.introduction)
    }

    pub(super) async fn one_shot(&self, request: &TitleRequest) -> Result<String, Failure> {
        let environment = launch::environment(&request.claude_environment, request.agent_proxy.as_ref());
        let fixed = Fixed::throw_away(None, environment);
        let model = request.model.as_deref().unwrap_or(SMALL_MODEL);
        let command = launch::one_shot(self.home.program(None)?, &fixed, model);
        let link = Link::start(&self.home.programs, command).await?;
        match tokio::time::timeout(ONE_SHOT, answer(&link, &request.prompt)).await {
            Ok(answer) => answer,
            Err(_) => {
                let why = format!("Claude Code gave no answer within {} s", ONE_SHOT.as_secs());
                Err(Failure::new(FailureCode::Timeout, why))
            }
        }
    }
}

/// The answer of a model to one prompt.
async fn answer(link: &Link, prompt: &str) -> Result<String, Failure> {
    let mut said = link.listen();
    let message = [json!({"type": "text", "text": prompt})];
    link.write(frame::user(&frame::uuid(), &message)).await;
    let mut seen = Seen::default();
    while let Some(heard) = said.recv().await {
        let Said::Line(line) = heard else { continue };
        if line.kind == Kind::Assistant {
            seen.trouble = frame::made_up(&line.text).or(seen.trouble);
        }
        if line.kind == Kind::Result {
            return answer_in(&serde_json::from_str(&line.text).unwrap_or_default(), &seen);
        }
    }
    Err(link.agent.last_words("Claude Code ended without an answer").await)
}

fn answer_in(result: &Value, seen: &Seen) -> Result<String, Failure> {
    match outcome::of(result, seen) {
        Outcome::Failed(failure) => Err(failure),
        Outcome::EndedBadly { message } => Err(Failure::new(FailureCode::Provider, message)),
        Outcome::Ended | Outcome::Aborted => Ok(result["result"].as_str().unwrap_or_default().to_owned()),
    }
}

fn models_in(introduction: &Value) -> Vec<Model> {
    let models = introduction["models"].as_array().into_iter().flatten();
    models
        .filter_map(|model| {
            let id = model["value"].as_str()?;
            let efforts = model["supportedEffortLevels"].as_array().into_iter().flatten();
            let efforts: Vec<String> = efforts.filter_map(Value::as_str).map(str::to_owned).collect();
            Some(Model {
                id: id.to_owned(),
                label: model["displayName"].as_str().unwrap_or(id).to_owned(),
                cli_model: id.to_owned(),
                effort_levels: (!efforts.is_empty()).then_some(efforts),
                supports_fast_mode: model["supportsFastMode"].as_bool(),
                cursor_parameters: None,
            })
        })
        .collect()
}

fn commands_in(introduction: &Value) -> Vec<SlashCommand> {
    let mut commands: Vec<SlashCommand> = Vec::new();
    for command in introduction["commands"].as_array().into_iter().flatten() {
        let Some(name) = command["name"].as_str() else { continue };
        if commands.iter().any(|known| known.name == name) {
            continue;
        }
        let hint = command["argumentHint"].as_str().filter(|hint| !hint.is_empty());
        commands.push(SlashCommand {
            name: name.to_owned(),
            description: command["description"].as_str().unwrap_or_default().to_owned(),
            argument_hint: hint.map(str::to_owned),
            source: "builtin",
        });
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_what_the_program_says() {
        let introduction = json!({"models": [
            {"value": "default", "displayName": "Default", "supportedEffortLevels": ["low", "max"], "supportsFastMode": true},
            {"value": "haiku"},
            {"displayName": "without a name"}
        ]});
        let models = serde_json::to_value(models_in(&introduction)).unwrap();
        assert_eq!(
            models,
            json!([
                {"id": "default", "label": "Default", "cliModel": "default", "effortLevels": ["low", "max"], "supportsFastMode": true},
                {"id": "haiku", "label": "haiku", "cliModel": "haiku"}
            ])
        );
        assert_eq!(models_in(&json!({})), []);
    }

    #[test]
    fn a_command_is_named_once_and_an_empty_hint_is_none() {
        let introduction = json!({"commands": [
            {"name": "compact", "description": "Shorter", "argumentHint": ""},
            {"name": "review", "description": "Look", "argumentHint": "[pr]"},
            {"name": "compact", "description": "Again"}
        ]});
        let commands = serde_json::to_value(commands_in(&introduction)).unwrap();
        assert_eq!(
            commands,
            json!([
                {"name": "compact", "description": "Shorter", "source": "builtin"},
                {"name": "review", "description": "Look", "argumentHint": "[pr]", "source": "builtin"}
            ])
        );
    }
}
