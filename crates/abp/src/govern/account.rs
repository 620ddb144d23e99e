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

#[cfg(test)]
mod tests {
    use super::super::boxing::{Extras, plan};
    use super::*;
    use outrigger_supervise::sandbox::{Contained, LandlockStatus, Layer, Limits, Processes};
    use std::path::Path;

    fn enforced(level: Level, landlock: Landlock, network: Network) -> Enforced {
        Enforced {
            level,
            containment: Contained::Subreaper { reason: "for the test".to_owned() },
            no_new_privs: Layer::Applied,
            landlock,
            seccomp: Layer::Applied,
            network,
            processes: Processes::Many,
            limits: Limits::as_the_host(),
            skipped_paths: Vec::new(),
        }
    }

    fn strict(network: Network) -> Enforced {
        enforced(Level::Strict, Landlock::Applied { abi: 7, status: LandlockStatus::Full }, network)
    }

    fn profile(deny_read: &[&str], deny_write: &[&str], deny_network: &[&str]) -> PolicyProfile {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        PolicyProfile {
            deny_read: list(deny_read),
            deny_write: list(deny_write),
            deny_network: list(deny_network),
            ..PolicyProfile::unrestricted()
        }
    }

    fn worth(profile: &PolicyProfile, asks: &[AskAction], box_made: &Enforced) -> (Worth, Worth) {
        let extras = Extras { read: Vec::new(), write: Vec::new(), limits: Limits::as_the_host() };
        let plan = plan(profile, Path::new("/work"), &extras);
        let boxed = Boxed { plan: &plan, enforced: box_made };
        let enforcement = enforcement(profile, asks, Some(boxed), Limited::Not);
        (enforcement.files, enforcement.network)
    }

    #[test]
    fn files_and_hosts_are_enforced_by_the_box_or_by_asking_or_by_both_together() {
        use Worth::{Enforced as E, None as N, Observed as O};
        let online = strict(Network::Allow);
        let offline = strict(Network::Deny);
        let weak = enforced(Level::Basic, Landlock::NotRequested, Network::Allow);
        let missing = Landlock::Missing { reason: "old".to_owned() };
        let without = enforced(Level::Basic, missing, Network::Allow);
        let secret = profile(&["**/.env"], &[], &[]);
        let frozen = profile(&["**/.env"], &["**"], &["*"]);
        let (reads, both) = ([AskAction::Read], [AskAction::Read, AskAction::Write]);
        type Row<'a> = (&'a PolicyProfile, &'a [AskAction], &'a Enforced, (Worth, Worth));
        let table: [Row<'_>; 11] = [
            (&profile(&[], &[], &[]), &[], &online, (E, N)),
            (&profile(&[], &[], &[]), &[], &weak, (O, N)),
            (&profile(&[], &[], &[]), &[], &without, (O, N)),
            (&secret, &[], &online, (O, N)),
            (&secret, &reads, &online, (E, N)),
            (&secret, &reads, &weak, (O, N)),
            (&secret, &both, &weak, (E, N)),
            (&frozen, &[], &offline, (O, E)),
            (&frozen, &reads, &offline, (E, E)),
            (&profile(&[], &[], &["a.org"]), &[], &online, (E, O)),
            (&profile(&[], &[], &["a.org"]), &[AskAction::Network], &online, (E, E)),
        ];
        for (profile, asks, box_made, expected) in table {
            assert_eq!(worth(profile, asks, box_made), expected, "{profile:?} {asks:?}");
        }
    }

    #[test]
    fn the_account_has_the_members_that_the_contract_names() {
        let profile = profile(&["**/.env"], &[], &[]);
        let extras = Extras { read: Vec::new(), write: Vec::new(), limits: Limits::as_the_host() };
        let plan = plan(&profile, Path::new("/work"), &extras);
        let boxed = Boxed { plan: &plan, enforced: &strict(Network::Allow) };
        let account = Account {
            enforcement: enforcement(&profile, &[], Some(boxed), Limited::ByReports),
            decisions: Decisions::default(),
            approvals: Vec::new(),
            budgets: Vec::new(),
        };
        let mut value = serde_json::to_value(&account).unwrap();
        let facts = value["enforcement"]["sandbox"]["enforced"].take();
        assert_eq!((&facts["level"], &facts["network"]), (&"strict".into(), &"allow".into()));
        let expected = serde_json::json!({
            "enforcement": {
                "tools": "none", "files": "observed", "network": "none", "approvals": "none", "budgets": "observed",
                "sandbox": {
                    "enforced": null,
                    "not_expressed": [{
                        "list": "deny_read", "pattern": "**/.env",
                        "why": "the kernel can close whole folders, not files inside an open one"
                    }]
                }
            },
            "decisions": {"allowed": 0, "denied": 0, "asked": 0, "unread": 0, "first_denied": []},
            "approvals": [],
            "budgets": []
        });
        assert_eq!(value, expected);
    }
}
