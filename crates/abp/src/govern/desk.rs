//! The requests of one run that wait for a person: raised, written down, answered by somebody or by the deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outrigger_policy::Digest;

use super::approvals::{
    AnswerError, Answered, ApprovalId, ApprovalRequest, Choice, Ledger, LedgerError, MAX_OPEN, MAX_REQUESTS,
    MAX_SHOWN_INPUT, MAX_SHOWN_TEXT, Waits, cut,
};
use super::verdict::{Approval, Moment};
use crate::protocol::RunId;

/// The most approvals that a receipt lists.
pub const MAX_LISTED: usize = 256;

/// How often the ledger is looked at while somebody else may be answering.
pub const POLL: Duration = Duration::from_millis(200);

/// Who answers when nobody did.
const BY_DEADLINE: &str = "deadline";

/// The requests of one run.
#[derive(Debug)]
pub(super) struct Desk {
    run_id: RunId,
    ledger: Option<Ledger>,
    raised: usize,
    open: BTreeMap<ApprovalId, Open>,
    /// Who answered what, as far as a second answer needs to know.
    settled: BTreeMap<ApprovalId, Answered>,
    always: BTreeSet<String>,
    listed: Vec<Approval>,
    next_poll: Duration,
}

#[derive(Debug)]
struct Open {
    request: ApprovalRequest,
    /// The deadline by the clock that only goes forward.
    due: Duration,
}

/// What is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) tool_name: &'a str,
    pub(super) tool_use_id: Option<&'a str>,
    pub(super) input: &'a str,
    pub(super) hash: Digest,
    pub(super) reason: &'a str,
    pub(super) waits: Waits,
}

impl Desk {
    /// No requests yet. With a ledger they are written down, and others can answer.
    pub(super) fn new(run_id: RunId, ledger: Option<Ledger>) -> Desk {
        // A ledger that is opened again must not see an id twice.
        let raised = ledger.as_ref().map_or(0, Ledger::requests);
        Desk {
            run_id,
            ledger,
            raised,
            open: BTreeMap::new(),
            settled: BTreeMap::new(),
            always: BTreeSet::new(),
            listed: Vec::new(),
            next_poll: Duration::ZERO,
        }
    }

    /// Whether somebody said that this tool may always be called.
    pub(super) fn is_always_allowed(&self, tool_name: &str) -> bool {
        self.always.contains(tool_name)
    }

    /// Asks. What cannot be written down is not asked, because an answer could not be found again.
    pub(super) fn raise(
        &mut self,
        now: Moment,
        question: Question<'_>,
        within: Duration,
        default: Choice,
    ) -> Result<ApprovalRequest, LedgerError> {
        let request = self.request(now, question, within, default);
        if self.open.len() >= MAX_OPEN || self.raised >= MAX_REQUESTS {
            return Err(LedgerError::Full { requests: self.raised, open: self.open.len() });
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.request(&request)?;
        }
        self.raised += 1;
        let due = now.since_start.saturating_add(within);
        self.open.insert(request.id.clone(), Open { request: request.clone(), due });
        self.next_poll = now.since_start.saturating_add(POLL);
        Ok(request)
    }

    /// Writes down what is approved without asking anybody.
    pub(super) fn note(&mut self, now: Moment, tool_name: &str, by: &str) {
        self.raised = self.raised.saturating_add(1);
        let id = ApprovalId::numbered(&self.run_id, self.raised);
        let tool_name = cut(tool_name, MAX_SHOWN_TEXT);
        self.list(Approval { id, tool_name, decision: Choice::Allow, by: by.to_owned(), at: now.at });
    }

    /// Takes an answer, unless there is one. Gives the request that it answers.
    pub(super) fn answer(&mut self, answered: &Answered) -> Result<ApprovalRequest, AnswerError> {
        if let Some(first) = self.settled.get(&answered.id) {
            return Err(AnswerError::Already(first.clone()));
        }
        if !self.open.contains_key(&answered.id) {
            return Err(AnswerError::Unknown(answered.id.clone()));
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.answer(answered)?;
        }
        self.settle(answered).ok_or_else(|| AnswerError::Unknown(answered.id.clone()))
    }

    /// An answer that is already written down counts.
    pub(super) fn settle(&mut self, answered: &Answered) -> Option<ApprovalRequest> {
        let Open { request, .. } = self.open.remove(&answered.id)?;
        if answered.choice == Choice::AllowAlways {
            self.always.insert(request.tool_name.clone());
        }
        self.list(Approval {
            id: request.id.clone(),
            tool_name: request.tool_name.clone(),
            decision: answered.choice,
            by: cut(&answered.by, MAX_SHOWN_TEXT),
            at: answered.at,
        });
        self.settled.insert(answered.id.clone(), answered.clone());
        Some(request)
    }

    /// The open requests for a tool.
    pub(super) fn open_for(&self, tool_name: &str) -> Vec<ApprovalId> {
        let of = |open: &&Open| open.request.tool_name == tool_name;
        self.open.values().filter(of).map(|open| open.request.id.clone()).collect()
    }

    /// Every open request.
    pub(super) fn all_open(&self) -> Vec<ApprovalId> {
        self.open.keys().cloned().collect()
    }

    /// What others answered since the last time. A ledger that fails is said to fail once and is then left alone: what is
    /// open goes by its deadline.
    pub(super) fn news(&mut self, now: Moment) -> Result<Vec<Answered>, LedgerError> {
        let Some(ledger) = &mut self.ledger else { return Ok(Vec::new()) };
        if self.open.is_empty() || now.since_start < self.next_poll {
            return Ok(Vec::new());
        }
        self.next_poll = now.since_start.saturating_add(POLL);
        let news = ledger.refresh();
        if news.is_err() {
            self.ledger = None;
        }
        news
    }

    /// The answers that the deadline gives now. By whichever clock says first that it has passed: the machine may have
    /// slept, and the calendar may have been set back.
    pub(super) fn overdue(&self, now: Moment) -> Vec<Answered> {
        let over = |open: &&Open| now.since_start >= open.due || now.at >= open.request.deadline;
        let answer = |open: &Open| Answered {
            id: open.request.id.clone(),
            choice: open.request.default,
            by: BY_DEADLINE.to_owned(),
            at: now.at,
            reason: Some("nobody answered in time".to_owned()),
        };
        self.open.values().filter(over).map(answer).collect()
    }

    /// When there is something to look at, since the start of the run.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        let due = self.open.values().map(|open| open.due).min()?;
        Some(if self.ledger.is_some() { due.min(self.next_poll) } else { due })
    }

    /// The ledger is not to be trusted any more.
    pub(super) fn give_up_ledger(&mut self) {
        self.ledger = None;
    }

    /// The approvals for the receipt.
    pub(super) fn listed(&self) -> &[Approval] {
        &self.listed
    }

    fn request(
        &self,
        now: Moment,
        question: Question<'_>,
        within: Duration,
        default: Choice,
    ) -> ApprovalRequest {
        ApprovalRequest {
            id: ApprovalId::numbered(&self.run_id, self.raised + 1),
            run_id: self.run_id.clone(),
            tool_name: cut(question.tool_name, MAX_SHOWN_TEXT),
            tool_use_id: question.tool_use_id.map(|id| cut(id, MAX_SHOWN_TEXT)),
            input: cut(question.input, MAX_SHOWN_INPUT),
            input_bytes: question.input.len() as u64,
            input_sha256: question.hash,
            reason: cut(question.reason, MAX_SHOWN_TEXT),
            waits: question.waits,
            asked_at: now.at,
            deadline: now.at.after(within),
            default,
        }
    }

    fn list(&mut self, approval: Approval) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(approval);
        }
    }
}
