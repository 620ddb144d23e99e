//! Budgets that refuse before the spend: reserve, do the work, settle to what it really cost.
//!
//! Everything is an integer and every addition saturates, so a hostile amount can exhaust a budget and can never
//! wrap it around.

use crate::decision::{Action, Decision, Reason, Rule};
use crate::name::Subject;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What is counted. The unit is part of the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Tokens that a model reads.
    InputTokens,
    /// Tokens that a model writes.
    OutputTokens,
    /// Tokens of either kind.
    TotalTokens,
    /// Money, in millionths of a unit; see [`crate::money::Micros`].
    Money,
    /// Rounds of a conversation.
    Turns,
    /// Calls of tools.
    ToolCalls,
    /// Time by the clock on the wall, in milliseconds.
    WallMillis,
    /// Bytes moved or kept.
    Bytes,
}

impl Resource {
    /// The stable name, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Resource::InputTokens => "input_tokens",
            Resource::OutputTokens => "output_tokens",
            Resource::TotalTokens => "total_tokens",
            Resource::Money => "money",
            Resource::Turns => "turns",
            Resource::ToolCalls => "tool_calls",
            Resource::WallMillis => "wall_millis",
            Resource::Bytes => "bytes",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The budgets of one run. A resource without a limit is counted and never refused.
#[derive(Debug)]
pub struct Budgets {
    accounts: BTreeMap<Resource, Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    limit: Option<u64>,
    spent: u64,
    reserved: u64,
}

/// How one budget stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// What is counted.
    pub resource: Resource,
    /// The most that may be spent; none is no limit.
    pub limit: Option<u64>,
    /// What was spent for certain.
    pub spent: u64,
    /// What is set aside for work that is under way.
    pub reserved: u64,
    /// What can still be reserved; none is no limit.
    pub remaining: Option<u64>,
}

/// A right to spend. It is settled or released exactly once, with the [`Budgets`] that gave it; one that is lost
/// stays reserved, because nobody knows what was spent on it.
#[derive(Debug)]
#[must_use = "settle or release it: what is reserved is not available to others"]
pub struct Reservation {
    amounts: BTreeMap<Resource, u64>,
}

/// A budget does not cover what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error(
    "the budget of {limit} {resource} does not cover {asked} more: {spent} are spent and {reserved} are reserved"
)]
pub struct Exhausted {
    /// Which budget.
    pub resource: Resource,
    /// The most that may be spent.
    pub limit: u64,
    /// What was spent for certain.
    pub spent: u64,
    /// What is set aside for work that is under way.
    pub reserved: u64,
    /// What was asked for.
    pub asked: u64,
}

impl Exhausted {
    /// The same as a decision, for audits.
    #[must_use]
    pub fn decision(&self, subject: &Subject) -> Decision {
        let rule = Rule { list: "budget", pattern: Some(format!("{} {}", self.limit, self.resource)) };
        let object = format!("{} {}", self.asked, self.resource);
        Decision::new(Reason::BudgetExhausted, Some(rule), subject, Action::Use, &object)
    }
}

/// What settling found: the budgets that are past their limit now, because the work cost more than was reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an overrun should end the run"]
pub struct Settled {
    /// Each budget that is overdrawn, with how much.
    pub overdrawn: Vec<(Resource, u64)>,
}

impl Budgets {
    /// Budgets with these limits.
    #[must_use]
    pub fn new(limits: impl IntoIterator<Item = (Resource, u64)>) -> Budgets {
        let account = |(resource, limit)| (resource, Account { limit: Some(limit), ..Account::default() });
        Budgets { accounts: limits.into_iter().map(account).collect() }
    }

    /// Sets `amounts` aside, all of them or none.
    pub fn reserve(&mut self, amounts: &[(Resource, u64)]) -> Result<Reservation, Exhausted> {
        // One resource may be named twice; together they must fit.
        let mut sums: BTreeMap<Resource, u64> = BTreeMap::new();
        for (resource, amount) in amounts {
            let sum = sums.entry(*resource).or_default();
            *sum = sum.saturating_add(*amount);
        }
        for (resource, asked) in &sums {
            self.account(*resource).check(*resource, *asked)?;
        }
        for (resource, asked) in &sums {
            let account = self.accounts.entry(*resource).or_default();
            account.reserved = account.reserved.saturating_add(*asked);
        }
        Ok(Reservation { amounts: sums })
    }

    /// Ends a reservation with what the work really cost, which may be less, more, or something else entirely.
    /// The truth is recorded even when it is past the limit; then nothing more can be reserved.
    pub fn settle(&mut self, reservation: Reservation, actual: &[(Resource, u64)]) -> Settled {
        self.release(reservation);
        self.spend(actual)
    }

    /// Ends a reservation for which nothing was spent.
    pub fn release(&mut self, reservation: Reservation) {
        for (resource, amount) in reservation.amounts {
            if let Some(account) = self.accounts.get_mut(&resource) {
                account.reserved = account.reserved.saturating_sub(amount);
            }
        }
    }

    /// Records what was spent without a reservation, such as the time that passed.
    pub fn spend(&mut self, actual: &[(Resource, u64)]) -> Settled {
        for (resource, amount) in actual {
            let account = self.accounts.entry(*resource).or_default();
            account.spent = account.spent.saturating_add(*amount);
        }
        let over = |(resource, account): (&Resource, &Account)| {
            let over = account.spent.saturating_sub(account.limit?);
            (over > 0).then_some((*resource, over))
        };
        Settled { overdrawn: self.accounts.iter().filter_map(over).collect() }
    }

    /// How the budget of `resource` stands.
    #[must_use]
    pub fn balance(&self, resource: Resource) -> Balance {
        let account = self.account(resource);
        let Account { limit, spent, reserved } = account;
        Balance { resource, limit, spent, reserved, remaining: account.remaining() }
    }

    /// How every budget stands that has a limit or was spent from.
    pub fn balances(&self) -> impl Iterator<Item = Balance> {
        self.accounts.keys().map(|resource| self.balance(*resource))
    }

    fn account(&self, resource: Resource) -> Account {
        self.accounts.get(&resource).copied().unwrap_or_default()
    }
}

impl Account {
    fn remaining(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.spent).saturating_sub(self.reserved))
    }

    fn check(self, resource: Resource, asked: u64) -> Result<(), Exhausted> {
        let Account { limit: Some(limit), spent, reserved } = self else { return Ok(()) };
        let committed = u128::from(spent) + u128::from(reserved) + u128::from(asked);
        if committed > u128::from(limit) {
            return Err(Exhausted { resource, limit, spent, reserved, asked });
        }
        Ok(())
    }
}
