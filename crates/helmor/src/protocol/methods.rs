//! The parameters of every method, read by the rules of the contract.

use serde_json::value::RawValue;

use super::params::{ParamError, Params, wrong};
use super::send::{AgentProxy, ContextQuery, SendMessage, SlashQuery, Steer};
use super::words::{Effort, PermissionMode, ProviderName};
use crate::provider::{Answer, Change, GoalChange, InputAction, Verdict};

impl SendMessage {
    /// Reads the parameters of `sendMessage`.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let thinking = params.optional("claudeThinkingDisplay");
        Ok(Self {
            session_id: params.string("sessionId")?,
            prompt: params.string("prompt")?,
            provider: params.provider()?,
            model: params.optional("model"),
            cwd: params.path("cwd"),
            resume: params.optional("resume"),
            permission_mode: mode(&params),
            effort: params.optional("effortLevel").map(Effort),
            fast_mode: params.boolean("fastMode").unwrap_or(false),
            ask_every_tool: params.boolean("askEveryTool").unwrap_or(false),
            thinking_display: ["summarized", "omitted"]
                .into_iter()
                .find(|word| thinking.as_deref() == Some(word)),
            claude_environment: params.environment("claudeEnvironment")?,
            agent_proxy: params.proxy()?,
            additional_directories: params.paths("additionalDirectories")?,
            source_repo: params.path("sourceRepoPath"),
            images: params.lenient("images").into_iter().map(Into::into).collect(),
        })
    }
}

/// `generateTitle`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerateTitle {
    /// What the session is about.
    pub user_message: String,
    /// How the host wants branches to be called.
    pub branch_rename_prompt: Option<String>,
    /// Whether a branch is to be named too.
    pub generate_branch: bool,
    /// The model for Claude.
    pub claude_model: Option<String>,
    /// Additional variables for Claude.
    pub claude_environment: Vec<(String, String)>,
    /// How the agent reaches the network.
    pub agent_proxy: Option<AgentProxy>,
    /// Only this one is to be asked.
    pub provider: Option<ProviderName>,
}

impl GenerateTitle {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        Ok(Self {
            user_message: params.string("userMessage")?,
            branch_rename_prompt: params.optional("branchRenamePrompt"),
            generate_branch: params.boolean("generateBranch").unwrap_or(true),
            claude_model: params.optional("claudeModel"),
            claude_environment: params.environment("claudeEnvironment")?,
            agent_proxy: params.proxy()?,
            provider: params.optional_provider()?,
        })
    }
}

/// `listModels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListModels {
    /// Whose.
    pub provider: ProviderName,
    /// A key for this question only.
    pub api_key: Option<String>,
}

impl ListModels {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        Ok(Self { provider: params.provider()?, api_key: params.optional("apiKey") })
    }
}

/// `listSlashCommands`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSlashCommands {
    /// Whose.
    pub provider: ProviderName,
    /// Where.
    pub query: SlashQuery,
}

impl ListSlashCommands {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let provider = params.provider()?;
        let additional_directories = params.paths("additionalDirectories")?;
        Ok(Self { provider, query: SlashQuery { cwd: params.path("cwd"), additional_directories } })
    }
}

/// `getContextUsage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetContextUsage {
    /// Whose session it is.
    pub provider: ProviderName,
    /// Which.
    pub query: ContextQuery,
}

impl GetContextUsage {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let query = ContextQuery {
            session_id: params.string("sessionId")?,
            model: params.string("model")?,
            provider_session_id: params.optional("providerSessionId"),
            cwd: params.path("cwd"),
            agent_proxy: params.proxy()?,
        };
        Ok(Self { provider: params.optional_provider()?.unwrap_or(ProviderName::Claude), query })
    }
}

/// `stopSession`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopSession {
    /// Which.
    pub session_id: String,
    /// Whose.
    pub provider: ProviderName,
}

impl StopSession {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        Ok(Self { session_id: params.string("sessionId")?, provider: params.provider()? })
    }
}

/// `steerSession`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerSession {
    /// Which.
    pub session_id: String,
    /// Whose.
    pub provider: ProviderName,
    /// What is said.
    pub steer: Steer,
}

impl SteerSession {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let (session_id, provider) = (params.string("sessionId")?, params.provider()?);
        let (prompt, files) = (params.string("prompt")?, params.strings("files")?);
        let steer = Steer { prompt, files, images: params.lenient("images") };
        Ok(Self { session_id, provider, steer })
    }

    /// The session that parameters name, if they can be read that far. A steer is never answered with an error, and its answer
    /// says the session.
    #[must_use]
    pub fn session_of(params: &RawValue) -> String {
        Params::of(params).optional("sessionId").unwrap_or_default()
    }
}

/// `updateConfig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateConfig {
    /// The session that it is for; all of them if absent.
    pub session_id: Option<String>,
    /// What changes.
    pub change: Change,
}

impl UpdateConfig {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let cleared = |name: &str| params.member(name).is_some_and(|raw| raw.get() == "null");
        let said = |name: &str| match params.optional(name) {
            Some(text) => Some(Some(text)),
            None => cleared(name).then_some(None),
        };
        let change = Change {
            model: said("model"),
            permission_mode: said("permissionMode")
                .map(|word| word.map(|word| PermissionMode::from_word(&word))),
            // Hosts of the original clear it with whatever is no string.
            cursor_api_key: params.member("cursorApiKey").map(|_| params.optional("cursorApiKey")),
        };
        Ok(Self { session_id: params.optional("sessionId"), change })
    }
}

/// `mutateCodexGoal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutateGoal {
    /// Which session's.
    pub session_id: String,
    /// How.
    pub action: GoalChange,
}

impl MutateGoal {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let session_id = params.string("sessionId")?;
        let action = match params.string("action")?.as_str() {
            "pause" => GoalChange::Pause,
            "clear" => GoalChange::Clear,
            _ => return Err(wrong("action", r#""pause" or "clear""#)),
        };
        Ok(Self { session_id, action })
    }
}

/// `permissionResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionResponse {
    /// Which question.
    pub permission_id: String,
    /// The answer.
    pub verdict: Verdict,
}

impl PermissionResponse {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let permission_id = params.string("permissionId")?;
        let verdict = match params.string("behavior")?.as_str() {
            "allow" => Verdict::Allow { updated: params.array("updatedPermissions")? },
            "deny" => Verdict::Deny { message: params.optional("message") },
            _ => return Err(wrong("behavior", r#""allow" or "deny""#)),
        };
        Ok(Self { permission_id, verdict })
    }
}

/// `userInputResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct UserInputResponse {
    /// Which question.
    pub user_input_id: String,
    /// The answer.
    pub answer: Answer,
}

impl UserInputResponse {
    /// Reads the parameters.
    pub fn read(params: &RawValue) -> Result<Self, ParamError> {
        let params = Params::of(params);
        let user_input_id = params.string("userInputId")?;
        let action = match params.string("action")?.as_str() {
            "submit" => InputAction::Submit,
            "decline" => InputAction::Decline,
            "cancel" => InputAction::Cancel,
            _ => return Err(wrong("action", r#""submit", "decline" or "cancel""#)),
        };
        let answer = Answer { action, content: params.object("content")?, meta: params.object("meta")? };
        Ok(Self { user_input_id, answer })
    }
}

/// A word that is none of the modes is one: the widest, as hosts of the original expect.
fn mode(params: &Params<'_>) -> Option<PermissionMode> {
    params.optional("permissionMode").map(|word| PermissionMode::from_word(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    /// What a host writes is what we read.
    macro_rules! same {
        ($value:expr, $type:ty) => {{
            let value: $type = $value;
            let params = value.to_params();
            assert_eq!(<$type>::read(&to_raw_value(&params).unwrap()), Ok(value), "{params}");
            params
        }};
    }

    fn full() -> SendMessage {
        SendMessage {
            session_id: "s".into(),
            prompt: "p \u{1F600} \"".into(),
            provider: ProviderName::Acp("gemini".into()),
            model: Some("m".into()),
            cwd: Some("/w".into()),
            resume: Some("r".into()),
            permission_mode: Some(PermissionMode::AcceptEdits),
            effort: Some(Effort("max".into())),
            fast_mode: true,
            ask_every_tool: true,
            thinking_display: Some("omitted"),
            claude_environment: vec![("A".into(), "1".into())],
            agent_proxy: Some(AgentProxy::Custom("http://p".into())),
            additional_directories: vec!["/a".into()],
            source_repo: Some("/r".into()),
            images: vec!["/i.png".into()],
        }
    }

    #[test]
    fn what_a_host_writes_is_what_we_read() {
        same!(full(), SendMessage);
        let title = GenerateTitle {
            user_message: "u".into(),
            branch_rename_prompt: None,
            generate_branch: false,
            claude_model: Some("m".into()),
            claude_environment: Vec::new(),
            agent_proxy: Some(AgentProxy::System),
            provider: Some(ProviderName::Codex),
        };
        same!(title, GenerateTitle);
        same!(ListModels { provider: ProviderName::Cursor, api_key: Some("k".into()) }, ListModels);
        let steer = Steer { prompt: "p".into(), files: vec!["f".into()], images: vec!["/i".into()] };
        same!(SteerSession { session_id: "s".into(), provider: ProviderName::Codex, steer }, SteerSession);
        let change = Change {
            model: Some(None),
            permission_mode: Some(Some(PermissionMode::Plan)),
            cursor_api_key: Some(None),
        };
        same!(UpdateConfig { session_id: Some("s".into()), change }, UpdateConfig);
        let verdict = Verdict::Allow { updated: vec![json!({ "type": "setMode" })] };
        same!(PermissionResponse { permission_id: "p".into(), verdict }, PermissionResponse);
        let verdict = Verdict::Deny { message: Some("no".into()) };
        same!(PermissionResponse { permission_id: "p".into(), verdict }, PermissionResponse);
        let answer = Answer { action: InputAction::Cancel, content: None, meta: None };
        same!(UserInputResponse { user_input_id: "i".into(), answer }, UserInputResponse);
        same!(MutateGoal { session_id: "s".into(), action: GoalChange::Clear }, MutateGoal);
    }

    #[test]
    fn a_host_of_the_original_says_null_for_what_it_has_not() {
        let mut send = full();
        (send.resume, send.effort, send.permission_mode) = (None, None, None);
        send.claude_environment.clear();
        let params = same!(send, SendMessage);
        for name in ["resume", "effortLevel", "permissionMode"] {
            assert_eq!(params.get(name), Some(&Value::Null), "{name}");
        }
        assert_eq!(params.get("claudeEnvironment"), None);
    }

    #[test]
    fn of_images_only_strings_count_and_words_that_are_no_mode_bypass() {
        let params = json!({ "sessionId": "s", "prompt": "p", "provider": "claude", "images": [1, "/a", null, "/b"],
            "permissionMode": "whatever", "claudeThinkingDisplay": "loud", "cwd": "", "model": "" });
        let send = SendMessage::read(&to_raw_value(&params).unwrap()).unwrap();
        assert_eq!(send.images, [std::path::PathBuf::from("/a"), "/b".into()]);
        assert_eq!(send.permission_mode, Some(PermissionMode::BypassPermissions));
        assert_eq!((send.thinking_display, send.cwd, send.model), (None, None, None));
    }
}
