//! Calls of tools: those that a child asks for, and those that it only reports.

use outrigger_policy::{Decision, Reason, Verdict as Policy};

use super::super::approvals::{Waits, input_hash};
use super::super::calls::{Call, Key, State, known_by};
use super::super::desk::Question;
use super::super::verdict::{Approver, How, Moment, Verdict};
use super::{Cause, Governor};
use crate::protocol::{AskAction, AskNeeds};

/// The tool that a command is judged as when no call of a tool announced it.
pub const COMMAND_TOOL: &str = "Bash";

/// Who approved what nobody was asked about.
const BY_RULE: &str = "operator, everything";

/// A call as a child tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) tool: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) input: &'a str,
}

impl<'a> Told<'a> {
    /// What the call is known by. Costs a walk over its input, so only where it matters.
    fn key(self) -> Key<'a> {
        Key { tool_use_id: self.id, tool_name: self.tool, input: input_hash(self.input) }
    }
}

impl Governor {
    /// A call was reported.
    pub(super) fn called(&mut self, now: Moment, told: Told<'_>) -> Verdict {
        let judgement = self.judge.tool(told.tool, told.input);
        self.decisions.unread += u64::from(judgement.unread.is_some());
        let decision = self.with_approver(now, told, judgement.decision, Waits::Reported);
        self.decisions.count(&decision);
        match decision.verdict {
            Policy::Allow => Verdict::Go,
            Policy::Ask => self.reported_before_approval(now, told, &decision),
            Policy::Deny if self.asks_for(&AskAction::Tool) => {
                // It promised to ask, so this may announce a call that it asks for next, or tell of one that was denied. If
                // the call is made all the same, its result will say so.
                let denial = self.deny(now, &decision, How::Reported);
                let key = told.key();
                match self.calls.not_yet_reported(key) {
                    Some(call) => call.reported = true,
                    None => self.remember(key, None, State::Denied(denial.reason.clone())),
                }
                self.warn(denial.reason)
            }
            Policy::Deny => self.did(now, &decision),
        }
    }

    /// A command was executed. A call of a shell that was reported before it has been judged; without one, this is all
    /// that is ever heard of it.
    pub(super) fn executed(&mut self, now: Moment, command: &str) -> Verdict {
        if self.announced > 0 {
            self.announced -= 1;
            return Verdict::Go;
        }
        self.tally.call();
        let input = serde_json::json!({ "command": command }).to_string();
        let told = Told { tool: COMMAND_TOOL, id: None, input: &input };
        let decision = self.judge.tool_name(COMMAND_TOOL);
        let decision = self.with_approver(now, told, decision, Waits::Reported);
        self.decisions.count(&decision);
        match decision.verdict {
            Policy::Allow => Verdict::Go,
            Policy::Ask => self.reported_before_approval(now, told, &decision),
            Policy::Deny => self.did(now, &decision),
        }
    }

    /// The child asks to call a tool, and waits.
    pub(super) fn asked_to_call(
        &mut self,
        now: Moment,
        ask: &str,
        told: Told<'_>,
        needs: Option<&AskNeeds>,
    ) -> Verdict {
        let mut judgement = self.judge.tool(told.tool, told.input);
        if needs.is_some() && judgement.decision.verdict == Policy::Allow {
            if self.calls.was_approved(told.key()) {
                self.decisions.count(&judgement.decision);
                return self.answer(ask, Ok("it was approved".to_owned()));
            }
            let (verdict, reason) = (Policy::Ask, Reason::NeedsApproval);
            judgement.decision = Decision { verdict, reason, ..judgement.decision };
        }
        if let Some(unread) = judgement.unread
            && judgement.decision.verdict != Policy::Deny
        {
            // Nothing need happen that nobody could look at.
            self.decisions.unread += 1;
            let reason = format!("`{}` cannot be judged: {unread}", told.tool);
            let denial = self.refuse(now, told.tool, reason, Cause::Unreadable, How::Asked);
            return self.answer(ask, Err(denial.reason));
        }
        let decision = self.with_approver(now, told, judgement.decision, Waits::Asked);
        self.decisions.count(&decision);
        match decision.verdict {
            Policy::Allow => {
                self.tally.call_asked();
                self.answer(ask, Ok(decision.explain()))
            }
            Policy::Ask => self.asked_before_approval(now, ask, told, &decision),
            Policy::Deny => {
                let denial = self.deny(now, &decision, How::Asked);
                let key = told.key();
                match self.calls.not_yet_asked(key) {
                    Some(call) => call.asked = Some(ask.to_owned()),
                    None => self.remember(key, Some(ask), State::Denied(denial.reason.clone())),
                }
                self.answer(ask, Err(denial.reason))
            }
        }
    }

    /// The result of a call that is no error. If the call was denied, it was made all the same.
    pub(super) fn succeeded(&mut self, now: Moment, id: &str) -> Verdict {
        match self.calls.finished(id) {
            Some(Call { state: State::Denied(reason), tool_name, .. }) => {
                let reason = format!("{reason}; it was made all the same");
                let denial = self.refuse(now, &tool_name, reason, Cause::MadeAllTheSame, How::Reported);
                self.end_or_warn(denial)
            }
            Some(Call { state: State::Allowed | State::Waiting(_), .. }) | None => Verdict::Go,
        }
    }

    fn reported_before_approval(&mut self, now: Moment, told: Told<'_>, decision: &Decision) -> Verdict {
        let key = told.key();
        if let Some(call) = self.calls.not_yet_reported(key) {
            call.reported = true;
            return match call.state.clone() {
                State::Allowed | State::Waiting(_) => Verdict::Go,
                State::Denied(reason) => self.warn(format!("{reason}; the call is reported all the same")),
            };
        }
        if self.ended {
            return Verdict::Go;
        }
        match self.raise(now, key, told.input, decision, None) {
            Ok(raise) => raise,
            Err(reason) => {
                let denial = self.refuse(now, told.tool, reason, Cause::NotApproved, How::Reported);
                self.end_or_warn(denial)
            }
        }
    }

    fn asked_before_approval(
        &mut self,
        now: Moment,
        ask: &str,
        told: Told<'_>,
        decision: &Decision,
    ) -> Verdict {
        let key = told.key();
        if let Some(call) = self.calls.not_yet_asked(key) {
            call.asked = Some(ask.to_owned());
            return match call.state.clone() {
                // It was raised when the call was reported; the answer will go to this question.
                State::Waiting(_) => Verdict::Go,
                State::Allowed => self.answer(ask, Ok("it was approved".to_owned())),
                State::Denied(reason) => self.answer(ask, Err(reason)),
            };
        }
        // A child may have more than one place where it asks about a call; it is still one call.
        if self.calls.was_approved(key) {
            return self.answer(ask, Ok("it was approved".to_owned()));
        }
        match self.raise(now, key, told.input, decision, Some(ask)) {
            Ok(raise) => {
                self.tally.call_asked();
                raise
            }
            Err(reason) => {
                let denial = self.refuse(now, told.tool, reason, Cause::NotApproved, How::Asked);
                self.answer(ask, Err(denial.reason))
            }
        }
    }

    /// Asks a person about a call, and remembers it with the question that waits for the answer, if the child asked one.
    fn raise(
        &mut self,
        now: Moment,
        key: Key<'_>,
        input: &str,
        decision: &Decision,
        asked: Option<&str>,
    ) -> Result<Verdict, String> {
        let reason = decision.explain();
        let waits = if asked.is_some() { Waits::Asked } else { Waits::Reported };
        let Key { tool_use_id, tool_name, input: hash } = key;
        let question = Question { tool_name, tool_use_id, input, hash, reason: &reason, waits };
        match self.rules.approver {
            Approver::Person { within, default } => match self.desk.raise(now, question, within, default) {
                Ok(request) => {
                    self.remember(key, asked, State::Waiting(request.id.clone()));
                    Ok(Verdict::Raise(Box::new(request)))
                }
                Err(error) => Err(format!("nobody can be asked about `{tool_name}`: {error}")),
            },
            // Decided before it came here; see `with_approver`.
            Approver::Everything | Approver::Nobody => Err(reason),
        }
    }

    /// The decision where nobody is asked: what a person has said once and for all, or the operator's rule.
    fn with_approver(&mut self, now: Moment, told: Told<'_>, decision: Decision, waits: Waits) -> Decision {
        if decision.verdict != Policy::Ask {
            return decision;
        }
        let granted = |decision| Decision { verdict: Policy::Allow, reason: Reason::Granted, ..decision };
        match self.rules.approver {
            Approver::Person { .. } if self.desk.is_always_allowed(told.tool) => granted(decision),
            Approver::Person { .. } => decision,
            Approver::Nobody => decision.without_approver(),
            Approver::Everything => {
                // A call that is asked for and reported is written down once.
                if waits == Waits::Asked || !self.asks_for(&AskAction::Tool) {
                    self.desk.note(now, told.tool, BY_RULE);
                }
                granted(decision)
            }
        }
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
}
