//! What the log says about the calls that wait: which were begun, what they came to, what was asked and answered.
//!
//! The order of things in the log is what decides: a tool that was begun *after* the last thing that a person said may have done its
//! work, and one that was begun before has not been begun since.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_abp::protocol::{AgentEvent, EventKind};
use serde::Deserialize;
use serde_json::Value;

use super::end::End;
use super::outcome::{Outcome, call_of};
use crate::backends::seal::PAGE;
use crate::engine::{EngineError, Seq};
use crate::runs::entry::{Entry, Line};
use crate::runs::{Approval, ApprovalId, Choice, Given, Teller};

/// What is known of an attempt.
#[derive(Debug, Default)]
pub(super) struct Journal {
    calls: BTreeMap<u64, Seen>,
    /// Tools that a person let through for the rest of the run.
    always: BTreeSet<String>,
    /// What was asked, and for which call.
    asked: BTreeMap<ApprovalId, u64>,
    /// How it ended, if it has.
    pub(super) end: Option<End>,
    /// Grows with everything that is noted.
    clock: u64,
}

/// What is known of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Whether its `tool_call` was told.
    pub(super) told: Told,
    /// Whether what it says aloud was told.
    pub(super) aloud: Told,
    /// When its tool was last begun.
    begun: Option<u64>,
    pub(super) result: Option<Outcome>,
    /// The last thing that was asked about it, and when that was asked or answered.
    asked: Option<(Approval, u64)>,
    /// Arguments that a person gave it instead of its own.
    pub(super) edited: Option<Value>,
}

/// Whether something is in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Told {
    #[default]
    No,
    Yes,
}

/// What a person has to do with a call.
#[derive(Debug)]
pub(super) enum Word<'a> {
    /// Nobody was asked.
    None,
    /// Somebody was asked.
    Awaited,
    /// Somebody answered, and the tool was not begun since.
    Fresh(&'a Approval, &'a Given),
    /// Somebody answered, and the tool was begun since.
    Used(&'a Approval, &'a Given),
}

/// The log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("its log has a record that cannot be read: {0}")]
    Record(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Beside {
    /// The call that something was said by.
    call: Option<String>,
    /// The call that is made again.
    again: Option<String>,
}

impl Journal {
    /// Reads what the log has of an attempt about the calls that wait.
    pub(super) async fn read(teller: &Teller, waiting: &BTreeSet<u64>) -> Result<Self, ReadError> {
        let mut journal = Self::default();
        let mut after = Seq(0);
        loop {
            let page = teller.read(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(journal) };
            after = last.seq;
            for stored in &page {
                journal.note(&Line::read(&stored.record)?, teller.attempt(), waiting);
            }
        }
    }

    /// Notes a line of the log.
    fn note(&mut self, line: &Line, attempt: u32, waiting: &BTreeSet<u64>) {
        match &line.entry {
            Entry::Event(told) if told.attempt == attempt => {
                // What cannot be read was not told by a script.
                let Ok(event) = AgentEvent::read(told.event.get()) else { return };
                self.note_event(&event, waiting);
            }
            Entry::Asked(approval) if approval.attempt == attempt => self.ask(approval.clone()),
            Entry::Answered(answered) => {
                let given = Given { answer: answered.answer.clone(), by: answered.by.clone(), at: line.at };
                self.give(&answered.approval, given);
            }
            Entry::Accepted(_)
            | Entry::Started(_)
            | Entry::Event(_)
            | Entry::Suspended(_)
            | Entry::Asked(_)
            | Entry::Steered(_)
            | Entry::Cancelling(_)
            | Entry::Attempted(_)
            | Entry::Note(_)
            | Entry::Finished(_)
            | Entry::Other(_) => {}
        }
    }

    fn note_event(&mut self, event: &AgentEvent<'_>, waiting: &BTreeSet<u64>) {
        if let Some(end) = End::of_event(event) {
            self.end = Some(end);
            return;
        }
        let beside = || event.ext.as_ref().and_then(|ext| ext.parse::<Beside>().ok());
        let waits = |use_id: &str| call_of(use_id).filter(|call| waiting.contains(call));
        match &event.kind {
            EventKind::ToolCall { tool_use_id: Some(use_id), .. } => {
                if let Some(call) = waits(use_id) {
                    self.begin(call);
                }
            }
            EventKind::ToolResult { tool_use_id: Some(use_id), output, is_error, .. } => {
                if let Some(call) = waits(use_id) {
                    let output = output.to_value();
                    let written = if *is_error { Err(output) } else { Ok(output) };
                    self.settle(call, Outcome::of_written(&written));
                }
            }
            EventKind::AssistantMessage { .. } => {
                let call = beside().and_then(|beside| waits(&beside.call?));
                if let Some(call) = call {
                    self.call(call).aloud = Told::Yes;
                }
            }
            EventKind::Warning { .. } => {
                let call = beside().and_then(|beside| waits(&beside.again?));
                if let Some(call) = call {
                    self.begin(call);
                }
            }
            _ => {}
        }
    }

    /// What is known of a call.
    pub(super) fn seen(&self, call: u64) -> Option<&Seen> {
        self.calls.get(&call)
    }

    fn call(&mut self, call: u64) -> &mut Seen {
        self.calls.entry(call).or_default()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The tool of a call is begun, for the first time or again.
    pub(super) fn begin(&mut self, call: u64) {
        let now = self.tick();
        let seen = self.call(call);
        (seen.told, seen.begun) = (Told::Yes, Some(now));
    }

    pub(super) fn settle(&mut self, call: u64, outcome: Outcome) {
        self.call(call).result = Some(outcome);
    }

    /// Somebody was asked about a call.
    pub(super) fn ask(&mut self, approval: Approval) {
        // What is no call of ours is none of our business.
        let Ok(call) = approval.key.parse() else { return };
        let now = self.tick();
        self.asked.insert(approval.id.clone(), call);
        self.call(call).asked = Some((approval, now));
    }

    /// Somebody answered. Whoever says it again says nothing.
    pub(super) fn give(&mut self, approval: &ApprovalId, given: Given) {
        let Some(call) = self.asked.get(approval).copied() else { return };
        let now = self.tick();
        let seen = self.call(call);
        let Some((asked, at)) = &mut seen.asked else { return };
        if asked.id != *approval || asked.given.is_some() {
            return;
        }
        let (tool, choice) = (asked.tool.clone(), given.answer.choice);
        if choice == Choice::Edit {
            seen.edited.clone_from(&given.answer.arguments);
        }
        (asked.given, *at) = (Some(given), now);
        if choice == Choice::ApproveAlways {
            self.always.insert(tool);
        }
    }

    /// Whether a person let this tool through for the rest of the run.
    pub(super) fn is_always(&self, capability: &str) -> bool {
        self.always.contains(capability)
    }

    /// Forgets the calls that wait no longer.
    pub(super) fn retain(&mut self, waits: impl Fn(u64) -> bool) {
        self.calls.retain(|call, _| waits(*call));
        self.asked.retain(|_, call| waits(*call));
    }
}

impl Seen {
    /// What a person has to do with it.
    pub(super) fn word(&self) -> Word<'_> {
        match &self.asked {
            None => Word::None,
            Some((asked, at)) => match &asked.given {
                None => Word::Awaited,
                Some(given) if self.begun.is_some_and(|begun| begun > *at) => Word::Used(asked, given),
                Some(given) => Word::Fresh(asked, given),
            },
        }
    }

    /// Whether its tool was begun, ever.
    pub(super) fn was_begun(&self) -> bool {
        self.begun.is_some()
    }
}
