//! The answer to "may X do Y?", with its reason: what every check of this crate returns.

use crate::name::{Subject, presentable};
use serde::{Serialize, Serializer};
use std::fmt;

/// The longest text of a request that a decision keeps, in bytes. The full text decided; this is for showing.
pub const MAX_SHOWN_BYTES: usize = 512;

/// What may happen. The order is the order of severity: when several rules speak, the greatest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// A person decides.
    Ask,
    /// It may not be done.
    Deny,
}

/// Why. The code of each is stable: it is written into audits and sent to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Every layer grants the capability.
    Granted,
    /// A list of what is allowed names it.
    AllowListed,
    /// No list says anything about it.
    Unrestricted,
    /// A rule wants a person to approve it.
    NeedsApproval,
    /// A rule wants approval, and there is nobody to ask.
    NoApprover,
    /// The subject never declared that it wants the capability.
    NotDeclared,
    /// The operator did not grant it.
    NotGranted,
    /// It was granted, and the grant was taken back.
    Revoked,
    /// Nobody who is trusted this little may have it.
    TrustCeiling,
    /// The platform profile does not have it.
    ProfileForbidden,
    /// The grants are absent or cannot be read.
    GrantsUnreadable,
    /// A list of what is denied names it.
    DenyListed,
    /// There is a list of what is allowed, and it does not name it.
    NotAllowListed,
    /// The path leads out of the root.
    PathEscapes,
    /// No file can have this path.
    PathInvalid,
    /// No host can have this name.
    HostInvalid,
    /// No tool can have this name.
    ToolInvalid,
    /// No rule maps the method to a capability.
    Unmapped,
    /// The method is newer than the version that was agreed on.
    VersionGated,
    /// Not at this point of the conversation.
    SessionState,
    /// A privileged method was sent in a form that expects no answer.
    NotificationForm,
    /// A budget does not cover it.
    BudgetExhausted,
    /// Too many in too short a time.
    RateLimited,
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Reason; 23] = [
        Reason::Granted,
        Reason::AllowListed,
        Reason::Unrestricted,
        Reason::NeedsApproval,
        Reason::NoApprover,
        Reason::NotDeclared,
        Reason::NotGranted,
        Reason::Revoked,
        Reason::TrustCeiling,
        Reason::ProfileForbidden,
        Reason::GrantsUnreadable,
        Reason::DenyListed,
        Reason::NotAllowListed,
        Reason::PathEscapes,
        Reason::PathInvalid,
        Reason::HostInvalid,
        Reason::ToolInvalid,
        Reason::Unmapped,
        Reason::VersionGated,
        Reason::SessionState,
        Reason::NotificationForm,
        Reason::BudgetExhausted,
        Reason::RateLimited,
    ];

    /// The stable code, for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Reason::Granted => "granted",
            Reason::AllowListed => "allow_listed",
            Reason::Unrestricted => "unrestricted",
            Reason::NeedsApproval => "needs_approval",
            Reason::NoApprover => "no_approver",
            Reason::NotDeclared => "not_declared",
            Reason::NotGranted => "not_granted",
            Reason::Revoked => "revoked",
            Reason::TrustCeiling => "trust_ceiling",
            Reason::ProfileForbidden => "profile_forbidden",
            Reason::GrantsUnreadable => "grants_unreadable",
            Reason::DenyListed => "deny_listed",
            Reason::NotAllowListed => "not_allow_listed",
            Reason::PathEscapes => "path_escapes",
            Reason::PathInvalid => "path_invalid",
            Reason::HostInvalid => "host_invalid",
            Reason::ToolInvalid => "tool_invalid",
            Reason::Unmapped => "unmapped",
            Reason::VersionGated => "version_gated",
            Reason::SessionState => "session_state",
            Reason::NotificationForm => "notification_form",
            Reason::BudgetExhausted => "budget_exhausted",
            Reason::RateLimited => "rate_limited",
        }
    }

    /// The verdict this is a reason for. So no decision can allow for a reason that denies.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Reason::Granted | Reason::AllowListed | Reason::Unrestricted => Verdict::Allow,
            Reason::NeedsApproval => Verdict::Ask,
            Reason::NoApprover
            | Reason::NotDeclared
            | Reason::NotGranted
            | Reason::Revoked
            | Reason::TrustCeiling
            | Reason::ProfileForbidden
            | Reason::GrantsUnreadable
            | Reason::DenyListed
            | Reason::NotAllowListed
            | Reason::PathEscapes
            | Reason::PathInvalid
            | Reason::HostInvalid
            | Reason::ToolInvalid
            | Reason::Unmapped
            | Reason::VersionGated
            | Reason::SessionState
            | Reason::NotificationForm
            | Reason::BudgetExhausted
            | Reason::RateLimited => Verdict::Deny,
        }
    }

    /// The end of the sentence "… may not do it: …".
    fn sentence(self) -> &'static str {
        match self {
            Reason::Granted => "it is granted",
            Reason::AllowListed => "it is on the list of what is allowed",
            Reason::Unrestricted => "no rule restricts it",
            Reason::NeedsApproval => "a person has to approve it",
            Reason::NoApprover => "a person would have to approve it, and there is nobody to ask",
            Reason::NotDeclared => "it was never declared",
            Reason::NotGranted => "the operator did not grant it",
            Reason::Revoked => "the grant was taken back",
            Reason::TrustCeiling => "it is trusted too little for that",
            Reason::ProfileForbidden => "the platform profile does not have it",
            Reason::GrantsUnreadable => "the grants are absent or cannot be read",
            Reason::DenyListed => "it is on the list of what is denied",
            Reason::NotAllowListed => "it is not on the list of what is allowed",
            Reason::PathEscapes => "the path leads out of the root",
            Reason::PathInvalid => "no file can have this path",
            Reason::HostInvalid => "no host can have this name",
            Reason::ToolInvalid => "no tool can have this name",
            Reason::Unmapped => "nothing says which capability it needs",
            Reason::VersionGated => "it is newer than the version agreed on",
            Reason::SessionState => "it is not possible at this point of the session",
            Reason::NotificationForm => "it must be sent as a request",
            Reason::BudgetExhausted => "the budget does not cover it",
            Reason::RateLimited => "too many came in too short a time",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// To use a capability.
    Use,
    /// To call a tool.
    Call,
    /// To read a file.
    Read,
    /// To write a file.
    Write,
    /// To talk to a host.
    Connect,
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Action::Use => "use",
            Action::Call => "call",
            Action::Read => "read",
            Action::Write => "write",
            Action::Connect => "connect to",
        }
    }
}

/// The rule that decided: a list and, when one matched, the pattern in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rule {
    /// The list as its owner knows it: `deny_read`, `operator`.
    pub list: &'static str,
    /// The entry that matched; none when the absence of an entry decided.
    pub pattern: Option<String>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What may happen.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Which rule said so; none when no rule was involved.
    pub rule: Option<Rule>,
    /// Who asked.
    pub subject: Subject,
    /// What for.
    pub action: Action,
    /// On what: the capability, tool, path or host, fit to be shown and cut at [`MAX_SHOWN_BYTES`].
    pub object: String,
}

impl Decision {
    /// A decision for `reason`, which determines the verdict.
    #[must_use]
    pub fn new(
        reason: Reason,
        rule: Option<Rule>,
        subject: &Subject,
        action: Action,
        object: &str,
    ) -> Decision {
        let object = presentable(object, MAX_SHOWN_BYTES);
        Decision { verdict: reason.verdict(), reason, rule, subject: subject.clone(), action, object }
    }

    /// Whether it may be done without asking anybody.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// Both must agree: the more severe of the two, and of equals the first.
    #[must_use]
    pub fn and(self, other: Decision) -> Decision {
        if other.verdict > self.verdict { other } else { self }
    }

    /// The decision where there is no channel to a person: asking becomes denying.
    #[must_use]
    pub fn without_approver(self) -> Decision {
        match self.verdict {
            Verdict::Ask => Decision { verdict: Verdict::Deny, reason: Reason::NoApprover, ..self },
            Verdict::Allow | Verdict::Deny => self,
        }
    }

    /// The decision as one sentence for a person.
    #[must_use]
    pub fn explain(&self) -> String {
        let modal = match self.verdict {
            Verdict::Allow => "may",
            Verdict::Ask => "may, once approved,",
            Verdict::Deny => "may not",
        };
        let Decision { subject, action, object, reason, .. } = self;
        let rule = match &self.rule {
            None => String::new(),
            Some(Rule { list, pattern: None }) => format!(" ({list})"),
            Some(Rule { list, pattern: Some(pattern) }) => format!(" ({list} has `{pattern}`)"),
        };
        format!("{subject} {modal} {} `{object}`: {}{rule}", action.verb(), reason.sentence())
    }
}
