//! The requests that have one answer, as types.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bridge::Bridge;
use super::error::BridgeError;
use super::hub::Answer as Line;
use crate::protocol::{
    Event, GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, MutateGoal, PermissionResponse,
    ProviderName, Said, SteerSession, StopSession, UpdateConfig, UserInputResponse,
};
use crate::provider::{Answer, Change, Verdict};

/// A title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// For people.
    pub title: String,
    /// For a branch, if one was asked for and made.
    pub branch_name: Option<String>,
}

/// What became of a steer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// The agent will hear it.
    Accepted,
    /// It will not.
    Refused {
        /// Why: `no_active_turn`, `unsupported`, or a sentence.
        reason: String,
    },
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Its name.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// What goes into `sendMessage.model`.
    pub cli_model: String,
    /// How hard it can think.
    #[serde(default)]
    pub effort_levels: Vec<String>,
    /// Whether it can be fast.
    #[serde(default)]
    pub supports_fast_mode: bool,
    /// What else Cursor lets one choose.
    #[serde(default)]
    pub cursor_parameters: Option<Value>,
}

/// Something that a prompt may begin with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandChoice {
    /// Without the slash.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// What comes after it.
    #[serde(default)]
    pub argument_hint: Option<String>,
    /// `builtin` or `skill`.
    #[serde(default)]
    pub source: String,
}

/// What was irregular about the sidecar so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular {
    /// Lines on its standard output that were no events.
    pub noise: u64,
    /// Events for requests that were over or never were.
    pub strays: u64,
    /// Errors without an id: lines of ours that it did not understand.
    pub complaints: u64,
}

impl Bridge {
    /// Asks for a sign of life, and says how long it took. Starts the sidecar if there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ping(&self) -> Result<Duration, BridgeError> {
        let connection = self.connection().await?;
        let asked = Instant::now();
        let answer = connection.ask("ping", &json!({}), self.terms().waits.control).await?;
        match said("ping", &answer)? {
            Said::Pong => Ok(asked.elapsed()),
            _ => Err(other("ping", &answer)),
        }
    }

    /// Stops the turn of a session; its stream ends with `aborted`. Fine for a session that has none.
    ///
    /// # Errors
    /// Why that is not certain.
    pub async fn stop(&self, session: &str, provider: &ProviderName) -> Result<(), BridgeError> {
        const METHOD: &str = "stopSession";
        // What does not run has no turns.
        let Some(connection) = self.running() else { return Ok(()) };
        let stop = StopSession { session_id: session.to_owned(), provider: provider.clone() };
        let answer = connection.ask(METHOD, &stop.to_params(), self.terms().waits.stop).await?;
        match said(METHOD, &answer)? {
            Said::Stopped { .. } => Ok(()),
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// Says something in the middle of a turn.
    ///
    /// # Errors
    /// Why it is not known whether it was taken.
    pub async fn steer(&self, steer: &SteerSession) -> Result<Steered, BridgeError> {
        const METHOD: &str = "steerSession";
        let Some(connection) = self.running() else {
            return Ok(Steered::Refused { reason: "no_active_turn".to_owned() });
        };
        let answer = connection.ask(METHOD, &steer.to_params(), self.terms().waits.steer).await?;
        match said(METHOD, &answer)? {
            Said::Steered { accepted: true, .. } => Ok(Steered::Accepted),
            Said::Steered { accepted: false, reason, .. } => {
                Ok(Steered::Refused { reason: reason.unwrap_or_else(|| "it does not say why".to_owned()) })
            }
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// Answers a [`Permission`](super::StreamEvent::Permission).
    ///
    /// # Errors
    /// [`BridgeError::Refused`] when nobody waits for it any more. Sidecars of the original do not tell that.
    pub async fn permission(&self, permission_id: &str, verdict: Verdict) -> Result<(), BridgeError> {
        const METHOD: &str = "permissionResponse";
        let connection = self.running().ok_or(BridgeError::NotRunning { method: METHOD })?;
        let response = PermissionResponse { permission_id: permission_id.to_owned(), verdict };
        connection.tell(METHOD, &response.to_params(), self.terms().waits.control).await
    }

    /// Answers an [`Input`](super::StreamEvent::Input).
    ///
    /// # Errors
    /// [`BridgeError::Refused`] when nobody waits for it any more.
    pub async fn input(&self, user_input_id: &str, answer: Answer) -> Result<(), BridgeError> {
        const METHOD: &str = "userInputResponse";
        let connection = self.running().ok_or(BridgeError::NotRunning { method: METHOD })?;
        let response = UserInputResponse { user_input_id: user_input_id.to_owned(), answer };
        connection.tell(METHOD, &response.to_params(), self.terms().waits.control).await
    }

    /// A title for a conversation.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn title(&self, request: &GenerateTitle) -> Result<Title, BridgeError> {
        const METHOD: &str = "generateTitle";
        let connection = self.connection().await?;
        let answer = connection.ask(METHOD, &request.to_params(), self.terms().waits.title).await?;
        match said(METHOD, &answer)? {
            Said::TitleGenerated { title, branch_name } => Ok(Title { title, branch_name }),
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// The models of a provider.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn models(&self, query: &ListModels) -> Result<Vec<ModelChoice>, BridgeError> {
        const METHOD: &str = "listModels";
        let connection = self.connection().await?;
        let answer = connection.ask(METHOD, &query.to_params(), self.terms().waits.models).await?;
        match said(METHOD, &answer)? {
            Said::ModelsListed { models, .. } => each(METHOD, models),
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// What a prompt may begin with.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn slash_commands(&self, query: &ListSlashCommands) -> Result<Vec<CommandChoice>, BridgeError> {
        const METHOD: &str = "listSlashCommands";
        let connection = self.connection().await?;
        let answer = connection.ask(METHOD, &query.to_params(), self.terms().waits.slash_commands).await?;
        match said(METHOD, &answer)? {
            Said::SlashCommandsListed { commands } => each(METHOD, commands),
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// How full the window of a session is: JSON as a text. Without a name for the provider's session the one that is known counts.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn context_usage(&self, mut query: GetContextUsage) -> Result<String, BridgeError> {
        const METHOD: &str = "getContextUsage";
        let connection = self.connection().await?;
        if query.query.provider_session_id.is_none() {
            let known = self.sessions().resume(&query.query.session_id, &query.provider);
            query.query.provider_session_id = known;
        }
        let answer = connection.ask(METHOD, &query.to_params(), self.terms().waits.context).await?;
        match said(METHOD, &answer)? {
            Said::ContextUsageResult { meta } => Ok(meta),
            _ => Err(other(METHOD, &answer)),
        }
    }

    /// Changes the goal of a Codex session. One whose process does not run has none.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn goal(&self, change: &MutateGoal) -> Result<(), BridgeError> {
        let Some(connection) = self.running() else { return Ok(()) };
        let within = self.terms().waits.goal;
        connection.ask("mutateCodexGoal", &change.to_params(), within).await.map(drop)
    }

    /// Changes settings of one session, also in the middle of a turn. They end with the process.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn update_session(&self, session: &str, change: Change) -> Result<(), BridgeError> {
        let connection = self.connection().await?;
        let update = UpdateConfig { session_id: Some(session.to_owned()), change };
        let within = self.terms().waits.control;
        connection.ask("updateConfig", &update.to_params(), within).await.map(drop)
    }

    /// What was irregular so far, over all processes.
    #[must_use]
    pub fn irregular(&self) -> Irregular {
        let counts = self.counts();
        Irregular {
            noise: counts.noise.load(Ordering::Relaxed),
            strays: counts.strays.load(Ordering::Relaxed),
            complaints: counts.complaints.load(Ordering::Relaxed),
        }
    }
}

fn said(method: &'static str, answer: &Line) -> Result<Said, BridgeError> {
    let said = Event::read(&answer.line).and_then(|event| event.said());
    said.map_err(|error| BridgeError::Unreadable { method, what: error.to_string() })
}

fn other(method: &'static str, answer: &Line) -> BridgeError {
    BridgeError::Unreadable { method, what: format!("a `{}`", answer.kind) }
}

fn each<T: DeserializeOwned>(method: &'static str, values: Vec<Value>) -> Result<Vec<T>, BridgeError> {
    let unreadable = |error: serde_json::Error| BridgeError::Unreadable { method, what: error.to_string() };
    values.into_iter().map(|value| serde_json::from_value(value).map_err(unreadable)).collect()
}
