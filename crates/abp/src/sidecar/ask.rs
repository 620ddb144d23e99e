//! Questions before an act, and their answers.

use crate::protocol::{AskAction, AskDecision, AskNeeds, Raw};

/// What is asked before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What sort of act.
    pub action: AskAction,
    /// The tool, of a call.
    pub tool_name: Option<String>,
    /// What it is given.
    pub input: Option<Raw<'static>>,
    /// The file, of a read or a write.
    pub path: Option<String>,
    /// The host, of a connection.
    pub host: Option<String>,
    /// The id of the call that it is for.
    pub tool_use_id: Option<String>,
    /// Who must say yes, if the policy alone is not enough.
    pub needs: Option<AskNeeds>,
}

impl Question {
    /// May a tool be called?
    pub fn tool(name: impl Into<String>, input: Raw<'_>) -> Self {
        let input = Some(input.into_owned());
        Self { tool_name: Some(name.into()), input, ..Self::about(AskAction::Tool) }
    }

    /// May a file be read?
    pub fn read(path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::about(AskAction::Read) }
    }

    /// May a file be written?
    pub fn write(path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::about(AskAction::Write) }
    }

    /// May a host be talked to?
    pub fn network(host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..Self::about(AskAction::Network) }
    }

    /// What only a person can say. The answer's `content` is what they said.
    pub fn person(question: Raw<'_>) -> Self {
        Self { input: Some(question.into_owned()), ..Self::about(AskAction::Question) }
    }

    /// A person must say yes, whatever the policy would allow: the agent itself wants that.
    #[must_use]
    pub fn needing_a_person(mut self) -> Self {
        self.needs = Some(AskNeeds::Person);
        self
    }

    /// For the call with this id.
    #[must_use]
    pub fn for_call(mut self, tool_use_id: Option<String>) -> Self {
        self.tool_use_id = tool_use_id;
        self
    }

    fn about(action: AskAction) -> Self {
        Self { action, tool_name: None, input: None, path: None, host: None, tool_use_id: None, needs: None }
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Whether it may be done. A word that we do not know is no permission.
    pub decision: AskDecision,
    /// Why.
    pub reason: String,
    /// Who decided.
    pub by: By,
    /// What a person said to a question.
    pub content: Option<Raw<'static>>,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The host, or whoever it asked.
    Host,
    /// The policy of the work order, because the host does not take questions or has stopped listening.
    Policy,
    /// Nobody: the run was cancelled.
    Cancel,
}

impl Answered {
    /// Whether it may be done.
    pub fn is_allowed(&self) -> bool {
        self.decision == AskDecision::Allow
    }
}
