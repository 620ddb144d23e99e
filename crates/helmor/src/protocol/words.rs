//! The words that requests use: who does the work, and how much it may do unasked.

use std::fmt;

/// Who does the work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProviderName {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Cursor's agent, over ACP.
    Cursor,
    /// An agent that speaks ACP, under the name it was configured with: `acp:NAME` on the wire.
    Acp(String),
    /// A file that is played.
    Scripted,
}

impl ProviderName {
    /// The provider of that word, or `None`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "claude" => Self::Claude,
            "codex" => Self::Codex,
            "cursor" => Self::Cursor,
            "scripted" => Self::Scripted,
            other => match other.strip_prefix("acp:") {
                Some(name) if !name.is_empty() => Self::Acp(name.to_owned()),
                Some(_) | None => return None,
            },
        })
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claude => f.write_str("claude"),
            Self::Codex => f.write_str("codex"),
            Self::Cursor => f.write_str("cursor"),
            Self::Scripted => f.write_str("scripted"),
            Self::Acp(name) => write!(f, "acp:{name}"),
        }
    }
}

/// How much an agent may do without being allowed to. Each driver knows which of these its program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// It asks.
    Default,
    /// It plans and changes nothing.
    Plan,
    /// It does not ask. Also what a word that is none of these means, and none at all.
    BypassPermissions,
    /// Edits of files are accepted.
    AcceptEdits,
    /// What is not allowed already is denied.
    DontAsk,
    /// The program judges.
    Auto,
}

impl PermissionMode {
    /// The mode of that word; every other word is [`Self::BypassPermissions`].
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word {
            "default" => Self::Default,
            "plan" => Self::Plan,
            "acceptEdits" => Self::AcceptEdits,
            "dontAsk" => Self::DontAsk,
            "auto" => Self::Auto,
            _ => Self::BypassPermissions,
        }
    }

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
            Self::AcceptEdits => "acceptEdits",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
        }
    }
}

/// How hard a model should think, as the host said it. Each driver drops what its program does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort(pub String);
