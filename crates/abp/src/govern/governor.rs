//! The governor of one run: hears of everything that a child does, and says what is to be done about it.
//!
//! It decides and counts; it sends nothing and ends nothing. Time is given to it. The only thing it touches is the ledger
//! of approvals, and the file system where a path has to be followed.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_policy::{Action, Decision, ProfileError, Reason};

use super::account::{Account, Boxed, Decisions, enforcement};
use super::approvals::{AnswerError, Answered, ApprovalId, Choice, Ledger, Waits, input_hash};
use super::calls::{Call, Calls, Key, State, known_by};
use super::complaint::complaints;
use super::desk::{Desk, Question};
use super::judge::Judge;
use super::names::is_shell;
use super::place::{Root, RootError};
use super::tally::{Limits, Tally};
use super::verdict::{Approver, Clock, Denial, EndReason, How, Moment, OnDenied, Rules, Verdict};
use crate::protocol::{
    AgentEvent, Answer, Ask, AskAction, AskDecision, EventKind, MAX_ID_BYTES, PolicyProfile, Usage, WorkOrder,
};

/// The most warnings that one run gives. Whoever misbehaves more often is not told more often.
pub const MAX_WARNINGS: usize = 64;

/// The tool that a command is judged as when no call of a tool announced it.
pub const COMMAND_TOOL: &str = "Bash";

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

impl Governor {
    /// Governs a run of `order` in `root` by the order's policy and limits, and by `rules`. With a ledger, requests for
    /// approval are written down and others can answer them.
    pub fn new(
        order: &WorkOrder,
        root: &std::path::Path,
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
                self.called(clock.now(), tool_name, tool_use_id.as_deref(), input.as_str())
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
                self.reported(clock.now(), &decision)
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
                    return self.asked_to_call(now, ask, name, input);
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
            AskAction::Other(action) => {
                return self.answer(&ask.id, Err(format!("nobody here knows what `{action}` is")));
            }
        };
        self.decisions.count(&decision);
        if decision.is_allowed() {
            return self.answer(&ask.id, Ok(decision.explain()));
        }
        let denial = self.denied(now, &decision, How::Asked);
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
            Ok(news) => news.iter().for_each(|answered| self.settled_elsewhere(answered)),
            Err(error) => {
                let warning = self.warn(format!("answers of others are not seen any more: {error}"));
                self.put_off(warning);
            }
        }
        for answered in self.desk.overdue(now) {
            self.settle_by_us(&answered);
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
                self.settled_elsewhere(&first);
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
            self.settle_by_us(&Answered { id, choice: Choice::Deny, by, at, reason });
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

    /// A call was reported.
    fn called(&mut self, now: Moment, tool: &str, id: Option<&str>, input: &str) -> Verdict {
        let judgement = self.judge.tool(tool, input);
        self.decisions.unread += u64::from(judgement.unread.is_some());
        let decision = self.with_approver(judgement.decision);
        match decision.verdict {
            outrigger_policy::Verdict::Allow => {
                self.decisions.count(&decision);
                Verdict::Go
            }
            outrigger_policy::Verdict::Ask => {
                self.decisions.count(&decision);
                self.call_needs_approval(now, tool, id, input, &decision)
            }
            outrigger_policy::Verdict::Deny if self.asks_for(&AskAction::Tool) => {
                // It promised to ask, so this may be the announcement of a call that it asks for next or was denied. If the
                // call is made all the same, its result will say so.
                self.decisions.count(&decision);
                let denial = self.denied(now, &decision, How::Reported);
                let key = Key { tool_use_id: id, tool_name: tool, input: input_hash(input) };
                match self.calls.to_be_reported(key) {
                    Some(call) => call.reported = true,
                    None => self.remember(key, None, State::Denied(denial.reason.clone())),
                }
                self.warn(denial.reason)
            }
            outrigger_policy::Verdict::Deny => self.reported(now, &decision),
        }
    }

    fn call_needs_approval(
        &mut self,
        now: Moment,
        tool: &str,
        id: Option<&str>,
        input: &str,
        decision: &Decision,
    ) -> Verdict {
        let key = Key { tool_use_id: id, tool_name: tool, input: input_hash(input) };
        if let Some(call) = self.calls.to_be_reported(key) {
            call.reported = true;
            return match &call.state {
                State::Allowed | State::Waiting(_) => Verdict::Go,
                State::Denied(reason) => {
                    let reason = reason.clone();
                    self.warn(format!("{reason} (it was told so, and reports the call)"))
                }
            };
        }
        if self.ended {
            return Verdict::Go;
        }
        match self.raise(now, key, input, decision, Waits::Reported) {
            Ok(raise) => {
                self.remember_reported(key, &raise);
                raise
            }
            Err(reason) => self.did_what_was_denied(self.approval_denial(now, tool, reason, How::Reported)),
        }
    }

    /// A result without an error of a call that was denied: it was made all the same.
    fn succeeded(&mut self, now: Moment, id: &str) -> Verdict {
        let Some(call) = self.calls.finished(id) else { return Verdict::Go };
        match call.state {
            State::Allowed | State::Waiting(_) => Verdict::Go,
            State::Denied(reason) => {
                let reason = format!("{reason}; it was denied and made all the same");
                self.did_what_was_denied(self.approval_denial(now, &call.tool_name, reason, How::Reported))
            }
        }
    }

    /// A command was executed. A call of a shell that was reported before it has been judged; without one, this is all that
    /// is ever heard of it.
    fn executed(&mut self, now: Moment, command: &str) -> Verdict {
        if self.announced > 0 {
            self.announced -= 1;
            return Verdict::Go;
        }
        self.tally.call();
        let input = serde_json::json!({ "command": command }).to_string();
        let decision = self.with_approver(self.judge.tool_name(COMMAND_TOOL));
        match decision.verdict {
            outrigger_policy::Verdict::Ask => {
                self.decisions.count(&decision);
                self.call_needs_approval(now, COMMAND_TOOL, None, &input, &decision)
            }
            outrigger_policy::Verdict::Allow | outrigger_policy::Verdict::Deny => {
                self.reported(now, &decision)
            }
        }
    }

    /// The child asks to call a tool.
    fn asked_to_call(&mut self, now: Moment, ask: &Ask<'_>, tool: &str, input: &str) -> Verdict {
        let judgement = self.judge.tool(tool, input);
        let decision = self.with_approver(judgement.decision);
        self.decisions.count(&decision);
        let key = Key { tool_use_id: ask.tool_use_id.as_deref(), tool_name: tool, input: input_hash(input) };
        if let Some(unread) = judgement.unread
            && decision.verdict != outrigger_policy::Verdict::Deny
        {
            // It waits for us, so nothing need happen that nobody looked at.
            self.decisions.unread += 1;
            let reason = format!("`{tool}` cannot be judged: {unread}");
            let denial = self.approval_denial(now, tool, reason, How::Asked);
            self.decisions.list(&denial);
            return self.answer(&ask.id, Err(denial.reason));
        }
        match decision.verdict {
            outrigger_policy::Verdict::Allow => {
                self.tally.call_asked();
                let answer = self.answer(&ask.id, Ok(decision.explain()));
                self.within_budget(answer)
            }
            outrigger_policy::Verdict::Deny => {
                let denial = self.denied(now, &decision, How::Asked);
                match self.calls.to_be_asked(key) {
                    Some(call) => call.asked = Some(ask.id.to_string()),
                    None => self.remember(key, Some(&ask.id), State::Denied(denial.reason.clone())),
                }
                self.answer(&ask.id, Err(denial.reason))
            }
            outrigger_policy::Verdict::Ask => self.ask_needs_approval(now, ask, key, input, &decision),
        }
    }

    fn ask_needs_approval(
        &mut self,
        now: Moment,
        ask: &Ask<'_>,
        key: Key<'_>,
        input: &str,
        decision: &Decision,
    ) -> Verdict {
        if let Some(call) = self.calls.to_be_asked(key) {
            call.asked = Some(ask.id.to_string());
            let state = call.state.clone();
            return match state {
                // It was raised when the call was reported; the answer goes to both.
                State::Waiting(_) => Verdict::Go,
                State::Allowed => self.answer(&ask.id, Ok("it was approved".to_owned())),
                State::Denied(reason) => self.answer(&ask.id, Err(reason)),
            };
        }
        match self.raise(now, key, input, decision, Waits::Asked) {
            Ok(raise) => {
                if let Verdict::Raise(request) = &raise {
                    self.remember(key, Some(&ask.id), State::Waiting(request.id.clone()));
                }
                self.tally.call_asked();
                self.within_budget(raise)
            }
            Err(reason) => {
                let denial = self.approval_denial(now, key.tool_name, reason, How::Asked);
                self.decisions.list(&denial);
                self.answer(&ask.id, Err(denial.reason))
            }
        }
    }

    fn raise(
        &mut self,
        now: Moment,
        key: Key<'_>,
        input: &str,
        decision: &Decision,
        waits: Waits,
    ) -> Result<Verdict, String> {
        let reason = decision.explain();
        let Key { tool_use_id, tool_name, input: hash } = key;
        let question = Question { tool_name, tool_use_id, input, hash, reason: &reason, waits };
        match self.rules.approver {
            Approver::Person { within, default } => match self.desk.raise(now, question, within, default) {
                Ok(request) => Ok(Verdict::Raise(Box::new(request))),
                Err(error) => Err(format!("nobody can be asked about `{tool_name}`: {error}")),
            },
            // Decided before it came here; see `with_approver`.
            Approver::Everything | Approver::Nobody => Err(reason),
        }
    }

    /// The decision where nobody is asked: everything is approved, or nothing.
    fn with_approver(&mut self, decision: Decision) -> Decision {
        if decision.verdict != outrigger_policy::Verdict::Ask {
            return decision;
        }
        let allowed = |decision: Decision| Decision {
            verdict: outrigger_policy::Verdict::Allow,
            reason: Reason::AllowListed,
            ..decision
        };
        match self.rules.approver {
            Approver::Person { .. } if self.desk.is_always_allowed(&decision.object) => allowed(decision),
            Approver::Person { .. } => decision,
            Approver::Everything => allowed(decision),
            Approver::Nobody => decision.without_approver(),
        }
    }

    /// Somebody else's answer, which is written down already.
    fn settled_elsewhere(&mut self, answered: &Answered) {
        if let Some(request) = self.desk.settle(answered) {
            let verdict = self.settled(answered, &request.tool_name);
            self.put_off(verdict);
        }
    }

    /// An answer that we give: the deadline's, or the end of the run's.
    fn settle_by_us(&mut self, answered: &Answered) {
        match self.desk.answer(answered) {
            Ok(request) => {
                let verdict = self.settled(answered, &request.tool_name);
                self.put_off(verdict);
            }
            Err(AnswerError::Already(first)) => self.settled_elsewhere(&first),
            Err(AnswerError::Unknown(_)) => {}
            Err(AnswerError::Ledger(error)) => {
                let warning = self.warn(format!("an answer could not be written down: {error}"));
                self.put_off(warning);
                self.desk.give_up_ledger();
                self.settled_elsewhere(answered);
            }
        }
    }

    /// What an answer means for the call that it is about.
    fn settled(&mut self, answered: &Answered, tool_name: &str) -> Verdict {
        if answered.choice == Choice::AllowAlways {
            self.allow_the_others(answered, tool_name);
        }
        let by = &answered.by;
        let why = answered.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let sentence = format!("`{tool_name}` was {} by {by}{why}", answered.choice.word());
        let asks = self.asks_for(&AskAction::Tool);
        let Some(call) = self.calls.waiting_for(&answered.id) else { return Verdict::Go };
        let (asked, reported) = (call.asked.clone(), call.reported);
        if answered.choice.allows() {
            call.state = State::Allowed;
            return asked.map_or(Verdict::Go, |id| self.answer(&id, Ok(sentence)));
        }
        call.state = State::Denied(sentence.clone());
        let how = if asked.is_some() { How::Asked } else { How::Reported };
        let now = Moment { since_start: Duration::ZERO, at: answered.at };
        let denial = self.approval_denial(now, tool_name, sentence, how);
        match asked {
            Some(id) => {
                self.decisions.list(&denial);
                self.answer(&id, Err(denial.reason))
            }
            // It may ask about what it announced.
            None if asks && reported => {
                self.decisions.list(&denial);
                self.warn(denial.reason)
            }
            None => self.did_what_was_denied(denial),
        }
    }

    /// One answer for every call of a tool also answers what is open about it.
    fn allow_the_others(&mut self, answered: &Answered, tool_name: &str) {
        for id in self.desk.open_for(tool_name) {
            self.settle_by_us(&Answered { id, choice: Choice::Allow, ..answered.clone() });
        }
    }

    /// Something happened that `decision` is about.
    fn reported(&mut self, now: Moment, decision: &Decision) -> Verdict {
        self.decisions.count(decision);
        if decision.is_allowed() {
            return Verdict::Go;
        }
        let denial = Denial::of(decision, now.at, How::Reported);
        self.did_what_was_denied(denial)
    }

    fn did_what_was_denied(&mut self, denial: Denial) -> Verdict {
        self.decisions.list(&denial);
        match self.rules.on_denied {
            OnDenied::End => self.end(EndReason::Policy(denial)),
            OnDenied::Warn => self.warn(denial.reason),
        }
    }

    fn denied(&mut self, now: Moment, decision: &Decision, how: How) -> Denial {
        let denial = Denial::of(decision, now.at, how);
        self.decisions.list(&denial);
        denial
    }

    fn approval_denial(&self, now: Moment, tool: &str, reason: String, how: How) -> Denial {
        let decision = self.judge.refuse(Reason::NeedsApproval, Action::Call, tool);
        Denial { reason, code: "not_approved", ..Denial::of(&decision, now.at, how) }
    }

    fn remember(&mut self, key: Key<'_>, asked: Option<&str>, state: State) {
        self.calls.push(Call {
            tool_use_id: key.tool_use_id.map(known_by),
            tool_name: key.tool_name.to_owned(),
            input: key.input,
            asked: asked.map(str::to_owned),
            reported: asked.is_none(),
            state,
        });
    }

    fn remember_reported(&mut self, key: Key<'_>, raise: &Verdict) {
        if let Verdict::Raise(request) = raise {
            self.remember(key, None, State::Waiting(request.id.clone()));
        }
    }

    fn asks_for(&self, action: &AskAction) -> bool {
        self.rules.asks.contains(action)
    }

    fn answer(&self, id: &str, answer: Result<String, String>) -> Verdict {
        let (decision, reason) = match answer {
            Ok(reason) => (AskDecision::Allow, reason),
            Err(reason) => (AskDecision::Deny, reason),
        };
        Verdict::Answer(Answer { ref_id: self.rules.run_id.to_string(), id: id.to_owned(), decision, reason })
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
