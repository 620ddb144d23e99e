//! Requests as a host writes them: exactly the members that hosts of the original send, and ours only when they say something.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::methods::{
    GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, MutateGoal, PermissionResponse,
    SteerSession, StopSession, UpdateConfig, UserInputResponse,
};
use super::send::{AgentProxy, SendMessage};
use super::words::ProviderName;
use crate::provider::{GoalChange, InputAction, Verdict};

/// A request as a line, without its newline.
#[must_use]
pub fn request_line(id: &str, method: &str, params: &Value) -> String {
    let (id, method) = (Value::from(id), Value::from(method));
    format!(r#"{{"id":{id},"method":{method},"params":{params}}}"#)
}

/// The answer to a `hostRequest` as a line, without its newline.
#[must_use]
pub fn host_response_line(callback_id: &str, answer: &Result<Value, String>) -> String {
    let id = Value::from(callback_id);
    match answer {
        Ok(ok) => format!(r#"{{"type":"hostResponse","callbackId":{id},"ok":{ok}}}"#),
        Err(why) => {
            format!(r#"{{"type":"hostResponse","callbackId":{id},"error":{}}}"#, Value::from(why.as_str()))
        }
    }
}

impl SendMessage {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let mut params = object(json!({
            "sessionId": self.session_id,
            "prompt": self.prompt,
            "provider": self.provider.to_string(),
            // Hosts of the original write these always.
            "resume": self.resume,
            "permissionMode": self.permission_mode.map(|mode| mode.word()),
            "effortLevel": self.effort.as_ref().map(|effort| &effort.0),
            "fastMode": self.fast_mode,
        }));
        if self.ask_every_tool {
            params.insert("askEveryTool".to_owned(), true.into());
        }
        said(&mut params, "model", self.model.as_deref());
        path(&mut params, "cwd", self.cwd.as_deref());
        said(&mut params, "claudeThinkingDisplay", self.thinking_display);
        environment(&mut params, &self.claude_environment);
        proxy(&mut params, self.agent_proxy.as_ref());
        paths(&mut params, "additionalDirectories", &self.additional_directories);
        path(&mut params, "sourceRepoPath", self.source_repo.as_deref());
        paths(&mut params, "images", &self.images);
        Value::Object(params)
    }
}

impl GenerateTitle {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let mut params = object(json!({
            "userMessage": self.user_message,
            "branchRenamePrompt": self.branch_rename_prompt,
            "generateBranch": self.generate_branch,
        }));
        said(&mut params, "claudeModel", self.claude_model.as_deref());
        environment(&mut params, &self.claude_environment);
        proxy(&mut params, self.agent_proxy.as_ref());
        provider(&mut params, self.provider.as_ref());
        Value::Object(params)
    }
}

impl ListModels {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let mut params = object(json!({ "provider": self.provider.to_string() }));
        said(&mut params, "apiKey", self.api_key.as_deref());
        Value::Object(params)
    }
}

impl ListSlashCommands {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let mut params = object(json!({ "provider": self.provider.to_string() }));
        path(&mut params, "cwd", self.query.cwd.as_deref());
        paths(&mut params, "additionalDirectories", &self.query.additional_directories);
        Value::Object(params)
    }
}

impl GetContextUsage {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let query = &self.query;
        let mut params = object(json!({ "sessionId": query.session_id, "model": query.model }));
        said(&mut params, "providerSessionId", query.provider_session_id.as_deref());
        path(&mut params, "cwd", query.cwd.as_deref());
        proxy(&mut params, query.agent_proxy.as_ref());
        provider(&mut params, Some(&self.provider).filter(|name| **name != ProviderName::Claude));
        Value::Object(params)
    }
}

impl StopSession {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        json!({ "sessionId": self.session_id, "provider": self.provider.to_string() })
    }
}

impl SteerSession {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        json!({
            "sessionId": self.session_id,
            "provider": self.provider.to_string(),
            "prompt": self.steer.prompt,
            "files": self.steer.files,
            "images": self.steer.images,
        })
    }
}

impl UpdateConfig {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let mut params = Map::new();
        said(&mut params, "sessionId", self.session_id.as_deref());
        if let Some(key) = &self.change.cursor_api_key {
            params.insert("cursorApiKey".to_owned(), json!(key));
        }
        if let Some(model) = &self.change.model {
            params.insert("model".to_owned(), json!(model));
        }
        if let Some(mode) = self.change.permission_mode {
            params.insert("permissionMode".to_owned(), json!(mode.map(|mode| mode.word())));
        }
        Value::Object(params)
    }
}

impl MutateGoal {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let action = match self.action {
            GoalChange::Pause => "pause",
            GoalChange::Clear => "clear",
        };
        json!({ "sessionId": self.session_id, "action": action })
    }
}

impl PermissionResponse {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let id = &self.permission_id;
        match &self.verdict {
            Verdict::Allow { updated } if updated.is_empty() => {
                json!({ "permissionId": id, "behavior": "allow" })
            }
            Verdict::Allow { updated } => {
                json!({ "permissionId": id, "behavior": "allow", "updatedPermissions": updated })
            }
            Verdict::Deny { message: None } => json!({ "permissionId": id, "behavior": "deny" }),
            Verdict::Deny { message: Some(message) } => {
                json!({ "permissionId": id, "behavior": "deny", "message": message })
            }
        }
    }
}

impl UserInputResponse {
    /// The parameters of the request.
    #[must_use]
    pub fn to_params(&self) -> Value {
        let action = match self.answer.action {
            InputAction::Submit => "submit",
            InputAction::Decline => "decline",
            InputAction::Cancel => "cancel",
        };
        let mut params = object(json!({ "userInputId": self.user_input_id, "action": action }));
        for (name, said) in [("content", &self.answer.content), ("meta", &self.answer.meta)] {
            if let Some(said) = said {
                params.insert(name.to_owned(), Value::Object(said.clone()));
            }
        }
        Value::Object(params)
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn said(params: &mut Map<String, Value>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        params.insert(name.to_owned(), Value::from(text));
    }
}

fn path(params: &mut Map<String, Value>, name: &str, path: Option<&Path>) {
    said(params, name, path.map(|path| path.to_string_lossy()).as_deref());
}

fn paths(params: &mut Map<String, Value>, name: &str, paths: &[PathBuf]) {
    if !paths.is_empty() {
        let texts = paths.iter().map(|path| Value::from(path.to_string_lossy()));
        params.insert(name.to_owned(), texts.collect());
    }
}

fn environment(params: &mut Map<String, Value>, variables: &[(String, String)]) {
    if !variables.is_empty() {
        let variables = variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        params.insert("claudeEnvironment".to_owned(), variables.collect());
    }
}

fn proxy(params: &mut Map<String, Value>, proxy: Option<&AgentProxy>) {
    let said = match proxy {
        None => return,
        Some(AgentProxy::System) => json!({ "mode": "system" }),
        Some(AgentProxy::Custom(url)) => json!({ "mode": "custom", "customUrl": url }),
    };
    params.insert("agentProxy".to_owned(), said);
}

fn provider(params: &mut Map<String, Value>, name: Option<&ProviderName>) {
    said(params, "provider", name.map(ToString::to_string).as_deref());
}
