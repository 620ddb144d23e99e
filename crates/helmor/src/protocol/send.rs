//! The parameters of the requests that a provider answers.

use std::path::PathBuf;

use super::words::{Effort, PermissionMode, ProviderName};

/// `sendMessage`: a turn of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendMessage {
    /// The host's name for the session.
    pub session_id: String,
    /// What the user says.
    pub prompt: String,
    /// Who is to answer.
    pub provider: ProviderName,
    /// The model; the provider's own choice if absent.
    pub model: Option<String>,
    /// The folder to work in; the sidecar's own if absent.
    pub cwd: Option<PathBuf>,
    /// The provider's name of a session to go on with.
    pub resume: Option<String>,
    /// What the agent may do unasked. `None`: the host said nothing, or nothing that is a word.
    pub permission_mode: Option<PermissionMode>,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Whether to be fast at a higher price, where the model can.
    pub fast_mode: bool,
    /// Whether the host wants to be asked before every tool, also where the agent would not ask. Only Claude Code can do that.
    pub ask_every_tool: bool,
    /// `summarized` or `omitted`, for Claude.
    pub thinking_display: Option<&'static str>,
    /// Additional variables for Claude Code.
    pub claude_environment: Vec<(String, String)>,
    /// How the agent reaches the network.
    pub agent_proxy: Option<AgentProxy>,
    /// Further folders that belong to the work.
    pub additional_directories: Vec<PathBuf>,
    /// The repository that `cwd` is a worktree of, whose project settings count.
    pub source_repo: Option<PathBuf>,
    /// Pictures, as absolute paths.
    pub images: Vec<PathBuf>,
}

/// How an agent reaches the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentProxy {
    /// As the system says.
    System,
    /// Through this proxy.
    Custom(String),
}

/// `steerSession`, or what of it reaches a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// What the user says.
    pub prompt: String,
    /// Files it names.
    pub files: Vec<String>,
    /// Pictures, as absolute paths.
    pub images: Vec<String>,
}

/// `generateTitle`, for one provider of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleRequest {
    /// The whole prompt, instructions included.
    pub prompt: String,
    /// The model; the driver's cheapest if absent.
    pub model: Option<String>,
    /// Additional variables, for Claude.
    pub claude_environment: Vec<(String, String)>,
    /// How the agent reaches the network.
    pub agent_proxy: Option<AgentProxy>,
}

/// `listSlashCommands`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashQuery {
    /// The folder; the sidecar's own if absent.
    pub cwd: Option<PathBuf>,
    /// Further folders.
    pub additional_directories: Vec<PathBuf>,
}

/// `getContextUsage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextQuery {
    /// The host's name for the session.
    pub session_id: String,
    /// The model whose window counts.
    pub model: String,
    /// The provider's name of the session, for one that is not running.
    pub provider_session_id: Option<String>,
    /// The folder.
    pub cwd: Option<PathBuf>,
    /// How the agent reaches the network.
    pub agent_proxy: Option<AgentProxy>,
}
