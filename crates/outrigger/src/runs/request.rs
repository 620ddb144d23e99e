//! What is asked for: the members of a work order, and what is ours around them.

use std::collections::BTreeMap;

use outrigger_abp::protocol::{OrderId, WorkOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::approval::DefaultAnswer;
use super::id::RunId;
use crate::config::nearest;

/// The longest script or task.
const MAX_TEXT: usize = 1 << 20;

/// The most that can be tried after a failure.
pub(crate) const MAX_RETRIES: u32 = 20;

/// A run, as it is asked for. A script has `script`; an agent has `task`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// Its id, if the caller wants to be able to ask twice: the second time nothing happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Who does it; the configured default if nobody is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) backend: Option<String>,
    /// What to call it in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// What an agent is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// The JavaScript of a script run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<String>,
    /// Global variables of a script.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) inputs: Map<String, Value>,
    /// What a script may call: the name in the script, and what stands behind it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tools: BTreeMap<String, ToolChoice>,
    /// Whether a person lets every single host call of a script through.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) step: bool,
    /// What a script may use.
    #[serde(default, skip_serializing_if = "ScriptLimits::is_none")]
    pub(crate) limits: ScriptLimits,
    /// Where an agent works: `root`, `mode` (`staged` or `pass_through`), `include`, `exclude`. None is an empty folder of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<Value>,
    /// What an agent should know: `files`, `snippets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Value>,
    /// The seven lists of a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<Value>,
    /// What an agent must be able to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requirements: Option<Value>,
    /// `model`, `vendor`, `env`, `max_budget_usd`, `max_turns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
    /// How long people have to answer, and what is taken if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approvals: Option<ApprovalTerms>,
    /// How often it is tried again after a failure that may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<u32>,
    /// Who tries when a backend has failed for good, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fallback: Vec<String>,
    /// The conversation that it belongs to: an earlier run's agent goes on where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
}

/// What stands behind a name that a script calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToolChoice {
    /// A person answers.
    Person,
    /// A tool of the configuration, or a built-in one, by its name there.
    Tool(String),
    /// The same, and a person approves every call.
    Approved(String),
    /// Always this value.
    Value(Value),
}

/// What a script may use; what is not said is as the engine's own limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) heap_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call_depth: Option<u64>,
    /// Host calls of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host_calls: Option<u64>,
    /// How long it may compute between two host calls, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step_ms: Option<u64>,
}

/// How long people have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalTerms {
    /// `10m`, `24h`, `7d`; none for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<String>,
    /// What is taken then.
    #[serde(default = "deny")]
    pub(crate) default: DefaultAnswer,
}

/// What is wrong with what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct RequestError {
    /// Where: `script`, `policy.allowed_tools`, `retries`; empty for the whole.
    pub(crate) field: String,
    /// In words, with what to do about it.
    pub(crate) message: String,
}

impl RequestError {
    pub(crate) fn at(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }
}

impl NewRun {
    /// Reads what somebody sent.
    pub(crate) fn from_value(value: Value) -> Result<Self, RequestError> {
        let Value::Object(members) = &value else {
            return Err(RequestError::at(
                "",
                "a run is a JSON object, such as {\"task\": \"…\"} or {\"script\": \"…\"}",
            ));
        };
        if let Some(stranger) = members.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
            let hint = match nearest(stranger, MEMBERS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there may be: {}", MEMBERS.join(", ")),
            };
            return Err(RequestError::at(stranger, format!("unknown member `{stranger}`; {hint}")));
        }
        let new: Self = serde_json::from_value(value)
            .map_err(|error| RequestError::at("", format!("the run cannot be read: {error}")))?;
        new.check()?;
        Ok(new)
    }

    /// What can be said without knowing the backends.
    fn check(&self) -> Result<(), RequestError> {
        if let Some(id) = &self.id {
            RunId::parse(id).map_err(|error| RequestError::at("id", error.to_string()))?;
        }
        for (field, text) in [("script", &self.script), ("task", &self.task)] {
            if let Some(text) = text
                && text.len() > MAX_TEXT
            {
                let message = format!("`{field}` has {} bytes; it may have {MAX_TEXT}", text.len());
                return Err(RequestError::at(field, message));
            }
        }
        match (&self.script, &self.task) {
            (None, None) => {
                return Err(RequestError::at("task", "there is nothing to do: give `task` or `script`"));
            }
            (Some(_), Some(_)) => {
                return Err(RequestError::at("task", "a run has a `task` or a `script`, not both"));
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        if self.retries.is_some_and(|retries| retries > MAX_RETRIES) {
            return Err(RequestError::at("retries", format!("`retries` may be 0 to {MAX_RETRIES}")));
        }
        if let Some(terms) = &self.approvals
            && let Some(within) = &terms.within
        {
            crate::duration::duration(within).map_err(|error| RequestError::at("approvals.within", error))?;
        }
        let order =
            self.work_order("check").map_err(|error| RequestError::at(&error.field, error.message))?;
        order.policy.compile().map_err(|error| RequestError::at("policy", error.to_string()))?;
        Ok(())
    }

    /// The members of a work order as a work order.
    pub(crate) fn work_order(&self, id: &str) -> Result<WorkOrder, RequestError> {
        let mut members = Map::new();
        members.insert("id".to_owned(), OrderId::new(id).as_str().into());
        members.insert("task".to_owned(), self.task.clone().unwrap_or_default().into());
        let parts = [
            ("workspace", &self.workspace),
            ("context", &self.context),
            ("policy", &self.policy),
            ("requirements", &self.requirements),
            ("config", &self.config),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                members.insert(name.to_owned(), part.clone());
            }
        }
        let text = Value::Object(members).to_string();
        WorkOrder::read(&text).map_err(|error| RequestError::at("", error.to_string()))
    }

    /// Whether it works in a folder of its caller, not in a copy.
    pub(crate) fn works_in_place(&self) -> bool {
        let mode = self.workspace.as_ref().and_then(|workspace| workspace.get("mode"));
        mode.and_then(Value::as_str) == Some("pass_through")
    }

    /// What it is called in lists.
    pub(crate) fn shown_title(&self) -> String {
        let from =
            self.title.as_deref().or(self.task.as_deref()).or(self.script.as_deref()).unwrap_or_default();
        let line = from.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let mut title: String = line.chars().take(120).collect();
        if line.chars().count() > 120 {
            title.push('…');
        }
        title
    }
}

impl ScriptLimits {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

fn deny() -> DefaultAnswer {
    DefaultAnswer::Deny
}

fn is_false(truth: &bool) -> bool {
    !truth
}

const MEMBERS: [&str; 18] = [
    "id",
    "backend",
    "title",
    "task",
    "script",
    "inputs",
    "tools",
    "step",
    "limits",
    "workspace",
    "context",
    "policy",
    "requirements",
    "config",
    "approvals",
    "retries",
    "fallback",
    "thread",
];
