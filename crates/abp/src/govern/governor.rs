//! The governor of one run: hears of everything that a child does, and says what is to be done about it.
//!
//! It decides and counts; it sends nothing and ends nothing. Time is given to it. The only thing it touches is the ledger
//! of approvals, and the file system where a path has to be followed.

mod calling;
mod settling;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use outrigger_policy::{Decision, ProfileError};

pub use self::calling::COMMAND_TOOL;
use self::calling::Told;
use super::account::{Account, Boxed, Decisions, enforcement};
use super::approvals::{AnswerError, Answered, ApprovalId, Choice, Ledger};
use super::calls::Calls;
use super::complaint::complaints;
use super::desk::Desk;
use super::judge::Judge;
use super::names::is_shell;
use super::place::{Root, RootError};
use super::tally::{Limits, Tally};
use super::verdict::{Clock, Denial, EndReason, How, Moment, OnDenied, Rules, Verdict};
use crate::protocol::{
    AgentEvent, Answer, Ask, AskAction, AskDecision, EventKind, MAX_ID_BYTES, PolicyProfile, Usage, WorkOrder,
};

/// The most warnings that one run gives. Whoever misbehaves more often is not told more often.
pub const MAX_WARNINGS: usize = 64;

/// The governor of one run.
#[derive(Debug)]
pub struct Governor {
    judge: Judge,
    profile: PolicyProfile,
    rules: Rules,
    tally: Tally,
    decisions: Decisions,
    calls: Calls,
    desk: Desk,
    /// Calls of shells that no `command_executed` has been matched with yet.
    announced: u64,
    /// Verdicts that are still to be given, one at each tick.
    later: VecDeque<Verdict>,
    warnings: usize,
    ended: bool,
}

/// A run cannot be governed as it is to be.
#[derive(Debug, thiserror::Error)]
pub enum GovernError {
    /// The policy is wrong.
    #[error(transparent)]
    Policy(#[from] ProfileError),
    /// The root is not there.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The order's budget is no amount of money.
    #[error("the work order's `max_budget_usd` is {usd}, which is no budget: {source}")]
    Budget {
        /// What it says.
        usd: f64,
        /// What is wrong with it.
        source: outrigger_policy::MoneyError,
    },
}

/// Why a call was refused that no list denies.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// A person said no, or nobody could be asked.
    NotApproved,
    /// Its input could not be looked into.
    Unreadable,
    /// It was denied before and was made.
    MadeAllTheSame,
}

impl Cause {
    fn code(self) -> &'static str {
        match self {
            Cause::NotApproved => "not_approved",
            Cause::Unreadable => "unreadable_input",
            Cause::MadeAllTheSame => "made_all_the_same",
        }
    }
}

impl Governor {
    /// Governs a run of `order` in `root` by the order's policy and limits, and by `rules`. With a ledger, requests for
    /// approval are written down and others can answer them.
    pub fn new(
        order: &WorkOrder,
        root: &Path,
        rules: Rules,
        ledger: Option<Ledger>,
    ) -> Result<Governor, GovernError> {
        let limits = order_limits(order, rules.limits)?;
        Ok(Governor {
            judge: Judge::new(&order.policy, Root::open(root)?, &rules.subject)?,
            profile: order.policy.clone(),
            tally: Tally::new(limits),
            decisions: Decisions::default(),
            calls: Calls::default(),
            desk: Desk::new(rules.run_id.clone(), ledger),
            announced: 0,
            later: VecDeque::new(),
            warnings: 0,
            ended: false,
            rules,
        })
    }

    /// The child reported something.
    pub fn event(&mut self, clock: &impl Clock, event: &AgentEvent<'_>) -> Verdict {
        let verdict = match &event.kind {
            // By far the most events, and nothing in them to judge.
            EventKind::AssistantDelta { .. }
            | EventKind::RunStarted { .. }
            | EventKind::RunCompleted { .. }
            | EventKind::Warning { .. }
            | EventKind::Error { .. }
            | EventKind::Other { .. } => {
                if event.ext.is_none() {
                    return Verdict::Go;
                }
                Verdict::Go
            }
            EventKind::AssistantMessage { .. } => {
                self.tally.message();
                Verdict::Go
            }
            EventKind::Usage(report) => {
                self.tally.report(report);
                event.raw.as_deref().map_or(Verdict::Go, |text| self.complain(text))
            }
            EventKind::ToolCall { tool_name, tool_use_id, input, .. } => {
                self.tally.call();
                self.announced = self.announced.saturating_add(u64::from(is_shell(tool_name)));
                let told = Told { tool: tool_name, id: tool_use_id.as_deref(), input: input.as_str() };
                self.called(clock.now(), told)
            }
            EventKind::ToolResult { tool_use_id, is_error, .. } => match tool_use_id {
                Some(id) if !is_error => self.succeeded(clock.now(), id),
                Some(id) => {
                    self.calls.finished(id);
                    Verdict::Go
                }
                None => Verdict::Go,
            },
            EventKind::FileChanged { path, .. } => {
                let decision = self.judge.write(path);
                self.decisions.count(&decision);
                if decision.is_allowed() { Verdict::Go } else { self.did(clock.now(), &decision) }
            }
            EventKind::CommandExecuted { command, .. } => self.executed(clock.now(), command),
        };
        let verdict = match &event.kind {
            EventKind::Usage(_) => verdict,
            _ => match event.ext_usage() {
                None => verdict,
                Some(report) => {
                    self.tally.report(&report);
                    let odd = event.ext.as_ref().map_or(Verdict::Go, |ext| self.complain(ext.as_str()));
                    self.both(verdict, odd)
                }
            },
        };
        self.within_budget(verdict)
    }

    /// The child asks before it acts. The answer may come later, after a [`Verdict::Raise`].
    pub fn ask(&mut self, clock: &impl Clock, ask: &Ask<'_>) -> Verdict {
        let now = clock.now();
        if self.ended {
            return self.answer(&ask.id, Err("the run is ending".to_owned()));
        }
        if ask.id.len() > MAX_ID_BYTES {
            return self
                .answer(&ask.id, Err(format!("the question's id is longer than {MAX_ID_BYTES} bytes")));
        }
        let nothing = |what: &str| format!("the question does not say which {what}");
        let decision = match &ask.action {
            AskAction::Tool => match &ask.tool_name {
                Some(name) => {
                    let input = ask.input.as_ref().map_or("null", |input| input.as_str());
                    let told = Told { tool: name, id: ask.tool_use_id.as_deref(), input };
                    let needs = ask.needs.as_ref();
                    let verdict = self.asked_to_call(now, &ask.id, told, needs);
                    return self.within_budget(verdict);
                }
                None => return self.answer(&ask.id, Err(nothing("tool"))),
            },
            AskAction::Read | AskAction::Write => match &ask.path {
                Some(path) if ask.action == AskAction::Read => self.judge.read(path),
                Some(path) => self.judge.write(path),
                None => return self.answer(&ask.id, Err(nothing("file"))),
            },
            AskAction::Network => match &ask.host {
                Some(host) => self.judge.network(host),
                None => return self.answer(&ask.id, Err(nothing("host"))),
            },
            // Whoever watches answers that; see `conduct`.
            AskAction::Question => {
                return self.answer(&ask.id, Err("nobody is here to answer questions".to_owned()));
            }
            AskAction::Other(action) => {
                let action: String = action.chars().take(40).collect();
                return self.answer(&ask.id, Err(format!("nobody here knows what `{action}` is")));
            }
        };
        self.decisions.count(&decision);
        if decision.is_allowed() {
            return self.answer(&ask.id, Ok(decision.explain()));
        }
        let denial = self.deny(now, &decision, How::Asked);
        self.answer(&ask.id, Err(denial.reason))
    }

    /// Time has passed. Gives one verdict; call it again as long as [`Governor::wake_at`] names a time that has come.
    pub fn tick(&mut self, clock: &impl Clock) -> Verdict {
        if let Some(verdict) = self.later.pop_front() {
            return verdict;
        }
        let now = clock.now();
        self.tally.time(now.since_start);
        match self.desk.news(now) {
            Ok(news) => news.iter().for_each(|answered| self.settle_elsewhere(answered)),
            Err(error) => {
                let warning = self.warn(format!("answers of others are not seen any more: {error}"));
                self.put_off(warning);
            }
        }
        for answered in self.desk.overdue(now) {
            self.settle_ourselves(&answered);
        }
        let verdict = self.later.pop_front().unwrap_or(Verdict::Go);
        self.within_budget(verdict)
    }

    /// When [`Governor::tick`] has something to do next, counted from the start of the run.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        if !self.later.is_empty() {
            return Some(Duration::ZERO);
        }
        let up = if self.ended { None } else { self.tally.time_is_up_at() };
        up.into_iter().chain(self.desk.wake_at()).min()
    }

    /// Somebody answered a request for approval.
    pub fn answered(
        &mut self,
        clock: &impl Clock,
        id: &ApprovalId,
        choice: Choice,
        by: &str,
    ) -> Result<Verdict, AnswerError> {
        let at = clock.now().at;
        let answered = Answered { id: id.clone(), choice, by: by.to_owned(), at, reason: None };
        match self.desk.answer(&answered) {
            Ok(request) => {
                let verdict = self.settled(&answered, &request.tool_name);
                Ok(self.within_budget(verdict))
            }
            Err(AnswerError::Already(first)) => {
                // Written down by somebody else, and not yet noticed here.
                self.settle_elsewhere(&first);
                Err(AnswerError::Already(first))
            }
            Err(error) => Err(error),
        }
    }

    /// The run is over: nobody needs to answer any more, and whoever looks at the ledger sees that.
    pub fn close(&mut self, clock: &impl Clock) {
        self.ended = true;
        self.later.clear();
        let at = clock.now().at;
        for id in self.desk.all_open() {
            let reason = Some("the run ended before anybody answered".to_owned());
            let by = "end of the run".to_owned();
            self.settle_ourselves(&Answered { id, choice: Choice::Deny, by, at, reason });
        }
        self.later.clear();
    }

    /// What was counted, as a receipt says it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.tally.usage()
    }

    /// What the receipt says about all this, for a child that ran in this box.
    #[must_use]
    pub fn account(&self, boxed: Option<Boxed<'_>>) -> Account {
        Account {
            enforcement: enforcement(&self.profile, &self.rules.asks, boxed, self.tally.limited()),
            decisions: self.decisions.clone(),
            approvals: self.desk.listed().to_vec(),
            budgets: self.tally.balances(),
        }
    }

    /// Something that is denied was done.
    fn did(&mut self, now: Moment, decision: &Decision) -> Verdict {
        let denial = self.deny(now, decision, How::Reported);
        self.end_or_warn(denial)
    }

    fn end_or_warn(&mut self, denial: Denial) -> Verdict {
        match self.rules.on_denied {
            OnDenied::End => self.end(EndReason::Policy(denial)),
            OnDenied::Warn => self.warn(denial.reason),
        }
    }

    /// The policy says no.
    fn deny(&mut self, now: Moment, decision: &Decision, how: How) -> Denial {
        let denial = Denial::of(decision, now.at, how);
        self.decisions.deny(&denial);
        denial
    }

    /// A call is refused for a cause that no list names.
    fn refuse(&mut self, now: Moment, tool: &str, reason: String, cause: Cause, how: How) -> Denial {
        let denial = Denial::call(tool, cause.code(), reason, now.at, how);
        self.decisions.deny(&denial);
        denial
    }

    fn asks_for(&self, action: &AskAction) -> bool {
        self.rules.asks.contains(action)
    }

    fn answer(&self, id: &str, answer: Result<String, String>) -> Verdict {
        let (decision, reason) = match answer {
            Ok(reason) => (AskDecision::Allow, reason),
            Err(reason) => (AskDecision::Deny, reason),
        };
        let ref_id = self.rules.run_id.to_string();
        Verdict::Answer(Answer { ref_id, id: id.to_owned(), decision, reason, content: None })
    }

    fn complain(&mut self, text: &str) -> Verdict {
        let complaints = complaints(text);
        if complaints.is_empty() { Verdict::Go } else { self.warn(complaints.join("; ")) }
    }

    fn warn(&mut self, text: String) -> Verdict {
        self.warnings += 1;
        match self.warnings.cmp(&MAX_WARNINGS) {
            std::cmp::Ordering::Less => Verdict::Warn(text),
            std::cmp::Ordering::Equal => {
                Verdict::Warn(format!("{text} (the last warning of this kind that is given)"))
            }
            std::cmp::Ordering::Greater => Verdict::Go,
        }
    }

    /// The run ends once.
    fn end(&mut self, reason: EndReason) -> Verdict {
        if std::mem::replace(&mut self.ended, true) {
            return Verdict::Go;
        }
        Verdict::End(reason)
    }

    /// The verdict, unless a budget is used up by now.
    fn within_budget(&mut self, verdict: Verdict) -> Verdict {
        if self.ended {
            return verdict;
        }
        match self.tally.crossed() {
            None => verdict,
            Some(crossed) => {
                self.put_off(verdict);
                self.end(EndReason::Budget(crossed))
            }
        }
    }

    /// Two verdicts about one thing: the weightier one now, the other one at the next tick.
    fn both(&mut self, one: Verdict, other: Verdict) -> Verdict {
        if one == Verdict::Go {
            return other;
        }
        self.put_off(other);
        one
    }

    fn put_off(&mut self, verdict: Verdict) {
        if verdict != Verdict::Go {
            self.later.push_back(verdict);
        }
    }
}

fn order_limits(order: &WorkOrder, limits: Limits) -> Result<Limits, GovernError> {
    let usd = order.config.max_budget_usd;
    limits
        .and_order(usd, order.config.max_turns.map(u64::from))
        .map_err(|source| GovernError::Budget { usd: usd.unwrap_or(0.0), source })
}
