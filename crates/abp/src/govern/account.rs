//! What the receipt says about the governing of a run: what was enforced and what only observed, decided, approved, spent.

use outrigger_policy::{Decision, Verdict};
use outrigger_supervise::sandbox::{Enforced, Landlock, Level, Network};
use serde::Serialize;

use super::boxing::{BoxPlan, Unexpressed};
use super::tally::{Balance, Limited};
use super::verdict::{Approval, Denial};
use crate::protocol::{AskAction, PolicyProfile};

/// The most denials that a receipt lists.
pub const MAX_FIRST_DENIED: usize = 32;

/// The members `enforcement`, `decisions`, `approvals` and `budgets` of the receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What a denial was worth.
    pub enforcement: Enforcement,
    /// What was decided.
    pub decisions: Decisions,
    /// What a person decided, at most [`MAX_LISTED`](super::desk::MAX_LISTED).
    pub approvals: Vec<Approval>,
    /// What was spent. Money is in millionths, time in milliseconds.
    pub budgets: Vec<Balance>,
}

/// What a denial was worth, by what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Enforcement {
    /// The lists of tools.
    pub tools: Worth,
    /// The lists of files, and the root.
    pub files: Worth,
    /// The lists of hosts.
    pub network: Worth,
    /// The list of tools that need a person.
    pub approvals: Worth,
    /// The limits of what may be spent.
    pub budgets: Worth,
    /// The box that the child ran in; none if it ran in none.
    pub sandbox: Option<Sandbox>,
}

/// What a denial was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// What is denied did not happen: the host was asked before, or the box forbids it.
    Enforced,
    /// The child told afterwards, and the run was ended for it.
    Observed,
    /// There was nothing to enforce.
    None,
}

/// The box of the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sandbox {
    /// What the kernel enforces.
    pub enforced: Enforced,
    /// The entries of the policy that the box does not cover.
    pub not_expressed: Vec<Unexpressed>,
}

/// How often something was decided. A call that is asked for and reported is decided twice.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Decisions {
    /// It might be done.
    pub allowed: u64,
    /// It might not.
    pub denied: u64,
    /// A person was to decide.
    pub asked: u64,
    /// Of these, calls whose input could not be looked into: only the tool was judged.
    pub unread: u64,
    /// The first that were denied, at most [`MAX_FIRST_DENIED`].
    pub first_denied: Vec<Denial>,
}

impl Decisions {
    /// A decision was made; a denial counts when its [`Denial`] is known.
    pub(super) fn count(&mut self, decision: &Decision) {
        match decision.verdict {
            Verdict::Allow => self.allowed += 1,
            Verdict::Ask => self.asked += 1,
            Verdict::Deny => {}
        }
    }

    pub(super) fn deny(&mut self, denial: &Denial) {
        self.denied += 1;
        if self.first_denied.len() < MAX_FIRST_DENIED {
            self.first_denied.push(denial.clone());
        }
    }
}

/// What was planned for the child's box, and what the kernel made of it.
#[derive(Clone, Copy, Debug)]
pub struct Boxed<'a> {
    /// The plan.
    pub plan: &'a BoxPlan,
    /// The fact.
    pub enforced: &'a Enforced,
}

/// What the denials of `profile` are worth with a child that asks for `asks`, in this box, with these limits.
pub(super) fn enforcement(
    profile: &PolicyProfile,
    asks: &[AskAction],
    boxed: Option<Boxed<'_>>,
    limited: Limited,
) -> Enforcement {
    let asked = |action: AskAction| asks.contains(&action);
    let strict = boxed.filter(|boxed| holds_files(boxed.enforced));
    let covers = |list: &str| strict.is_some_and(|boxed| boxed.plan.covers(list));
    let worth = |nothing: bool, enforced: bool| match (nothing, enforced) {
        (true, _) => Worth::None,
        (false, true) => Worth::Enforced,
        (false, false) => Worth::Observed,
    };
    let reads = asked(AskAction::Read) || covers("deny_read");
    let writes = asked(AskAction::Write) || covers("deny_write");
    let offline = boxed.is_some_and(|boxed| boxed.enforced.network == Network::Deny);
    Enforcement {
        tools: worth(
            profile.allowed_tools.is_empty() && profile.disallowed_tools.is_empty(),
            asked(AskAction::Tool),
        ),
        // The root itself is always a limit.
        files: worth(false, reads && writes),
        network: worth(
            profile.allow_network.is_empty() && profile.deny_network.is_empty(),
            asked(AskAction::Network) || offline,
        ),
        approvals: worth(profile.require_approval_for.is_empty(), asked(AskAction::Tool)),
        budgets: match limited {
            Limited::Not => Worth::None,
            Limited::ByTheClock => Worth::Enforced,
            Limited::ByReports => Worth::Observed,
        },
        sandbox: boxed.map(|Boxed { plan, enforced }| Sandbox {
            enforced: enforced.clone(),
            not_expressed: plan.not_expressed.clone(),
        }),
    }
}

fn holds_files(enforced: &Enforced) -> bool {
    let landlock = match enforced.landlock {
        Landlock::Applied { .. } => true,
        Landlock::NotRequested | Landlock::Missing { .. } => false,
    };
    landlock && enforced.level == Level::Strict
}
