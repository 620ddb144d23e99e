//! Answers to requests for approval, wherever they come from, and what they mean for the call that they are about.

use std::time::Duration;

use super::super::approvals::{AnswerError, Answered, Choice};
use super::super::calls::State;
use super::super::verdict::{How, Moment, Verdict};
use super::{Cause, Governor};
use crate::protocol::AskAction;

impl Governor {
    /// Somebody else's answer, which is written down already.
    pub(super) fn settle_elsewhere(&mut self, answered: &Answered) {
        if let Some(request) = self.desk.settle(answered) {
            let verdict = self.settled(answered, &request.tool_name);
            self.put_off(verdict);
        }
    }

    /// An answer that we give: the deadline's, or the end of the run's.
    pub(super) fn settle_ourselves(&mut self, answered: &Answered) {
        match self.desk.answer(answered) {
            Ok(request) => {
                let verdict = self.settled(answered, &request.tool_name);
                self.put_off(verdict);
            }
            Err(AnswerError::Already(first)) => self.settle_elsewhere(&first),
            Err(AnswerError::Unknown(_)) => {}
            Err(AnswerError::Ledger(error)) => {
                let warning = self.warn(format!("an answer could not be written down: {error}"));
                self.put_off(warning);
                self.desk.give_up_ledger();
                self.settle_elsewhere(answered);
            }
        }
    }

    /// What an answer means for the call that it is about.
    pub(super) fn settled(&mut self, answered: &Answered, tool: &str) -> Verdict {
        if answered.choice == Choice::AllowAlways {
            // What is open about the same tool is answered with it.
            for id in self.desk.open_for(tool) {
                self.settle_ourselves(&Answered { id, choice: Choice::Allow, ..answered.clone() });
            }
        }
        let why = answered.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let sentence = format!("`{tool}` was {} by {}{why}", answered.choice.word(), answered.by);
        let Some(call) = self.calls.waiting_for(&answered.id) else { return Verdict::Go };
        let asked = call.asked.clone();
        if answered.choice.allows() {
            call.state = State::Allowed;
            return asked.map_or(Verdict::Go, |ask| self.answer(&ask, Ok(sentence)));
        }
        call.state = State::Denied(sentence.clone());
        let how = if asked.is_some() { How::Asked } else { How::Reported };
        let now = Moment { since_start: Duration::ZERO, at: answered.at };
        let denial = self.refuse(now, tool, sentence, Cause::NotApproved, how);
        match asked {
            Some(ask) => self.answer(&ask, Err(denial.reason)),
            // It promised to ask about what it announces, and is told when it does.
            None if self.asks_for(&AskAction::Tool) => self.warn(denial.reason),
            None => self.end_or_warn(denial),
        }
    }
}
