//! What the log of a run folds to: all that lists, the dispatcher and the next daemon need to know.

use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, Counts, EventKind, Timestamp};
use outrigger_policy::Digest;
use serde::{Deserialize, Deserializer, Serialize};

use super::approval::{Approval, Given};
use super::entry::{Entry, Line, Origin, Suspended};
use super::id::RunId;

/// How much of what is long is kept in the state: the log has all of it.
const SHOWN: usize = 2048;

/// A point in time, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Moment(pub(crate) Timestamp);

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// It waits for its backend.
    Queued,
    /// Its backend is at work.
    Running,
    /// It waits for a person.
    Waiting,
    /// It ended well.
    Completed,
    /// It did not.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// What a run came to so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunState {
    pub(crate) id: RunId,
    pub(crate) phase: Phase,
    pub(crate) title: String,
    /// Who does it, or will.
    pub(crate) backend: String,
    /// Whether it is a script.
    pub(crate) script: bool,
    /// Those who may try after the one that does it now.
    pub(crate) fallback: Vec<String>,
    /// Whether it works in a folder of its caller, not in a copy.
    #[serde(default)]
    pub(crate) in_place: bool,
    pub(crate) retries_left: u32,
    /// The attempt that is under way, or was the last one; 0 before the first.
    pub(crate) attempt: u32,
    /// Whether that attempt is under way: nobody has said how it ended.
    pub(crate) underway: bool,
    /// Events of that attempt.
    pub(crate) attempt_events: u64,
    pub(crate) thread: Option<String>,
    pub(crate) origin: Option<Origin>,
    pub(crate) created_at: Moment,
    pub(crate) started_at: Option<Moment>,
    pub(crate) updated_at: Moment,
    pub(crate) finished_at: Option<Moment>,
    /// Somebody wants it to end.
    pub(crate) cancelling: Option<String>,
    pub(crate) approvals: Vec<Approval>,
    /// Where a script stands still.
    pub(crate) suspended: Option<Suspended>,
    pub(crate) spent: Spent,
    pub(crate) error: Option<String>,
    pub(crate) ending: Option<String>,
    /// What a script gave, or the last words of an agent; the beginning of it.
    pub(crate) result: Option<String>,
    pub(crate) receipt: Option<Receipt>,
    /// Receipts of earlier attempts.
    pub(crate) earlier: Vec<Receipt>,
    pub(crate) patch: Option<String>,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Spent {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_usd: f64,
    pub(crate) tool_calls: u64,
    pub(crate) model_calls: u64,
}

/// A receipt in the daemon's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// The name of the file.
    pub(crate) file: String,
    pub(crate) sha256: Digest,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Timestamp::now())
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.after(duration))
    }

    /// How long it was since then.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.since(earlier.0)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = Timestamp::parse(&text);
        parsed.map(Self).map_err(|_| serde::de::Error::custom(format!("`{text}` is no point in time")))
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Phase {
    pub(crate) const ALL: [Phase; 6] =
        [Phase::Queued, Phase::Running, Phase::Waiting, Phase::Completed, Phase::Failed, Phase::Cancelled];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Running => "running",
            Phase::Waiting => "waiting",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.word() == word)
    }

    /// Whether nothing more happens.
    pub(crate) fn is_over(self) -> bool {
        match self {
            Phase::Queued | Phase::Running | Phase::Waiting => false,
            Phase::Completed | Phase::Failed | Phase::Cancelled => true,
        }
    }
}

impl RunState {
    /// What the first record says; none if it is not the beginning of a run.
    pub(crate) fn begin(id: RunId, line: &Line) -> Option<Self> {
        let Entry::Accepted(accepted) = &line.entry else { return None };
        let request = &accepted.request;
        Some(Self {
            id,
            phase: Phase::Queued,
            title: request.shown_title(),
            backend: accepted.backend.clone(),
            script: request.script.is_some(),
            fallback: request.fallback.clone(),
            in_place: request.works_in_place(),
            retries_left: request.retries.unwrap_or(0),
            attempt: 0,
            underway: false,
            attempt_events: 0,
            thread: request.thread.clone(),
            origin: accepted.origin.clone(),
            created_at: line.at,
            started_at: None,
            updated_at: line.at,
            finished_at: None,
            cancelling: None,
            approvals: Vec::new(),
            suspended: None,
            spent: Spent::default(),
            error: None,
            ending: None,
            result: None,
            receipt: None,
            earlier: Vec::new(),
            patch: None,
        })
    }

    /// The state after one more record.
    pub(crate) fn fold(&mut self, line: &Line) {
        self.updated_at = line.at;
        match &line.entry {
            Entry::Started(started) => {
                if started.attempt != self.attempt {
                    self.attempt_events = 0;
                    self.suspended = None;
                }
                self.attempt = started.attempt;
                self.backend.clone_from(&started.backend);
                self.underway = true;
                self.started_at.get_or_insert(line.at);
            }
            Entry::Event(told) => {
                self.attempt_events = told.number;
                if let Ok(event) = AgentEvent::read(told.event.get()) {
                    self.count(&event);
                }
            }
            Entry::Suspended(suspended) => self.suspended = Some(suspended.clone()),
            Entry::Asked(approval) => self.approvals.push(shown(approval)),
            Entry::Answered(answered) => {
                let asked = self.approvals.iter_mut().find(|approval| approval.id == answered.approval);
                if let Some(asked) = asked {
                    let given =
                        Given { answer: answered.answer.clone(), by: answered.by.clone(), at: line.at };
                    asked.given = Some(given);
                }
            }
            Entry::Cancelling(cancelling) => self.cancelling = Some(cancelling.why.clone()),
            Entry::Attempted(attempted) => {
                self.underway = false;
                self.suspended = None;
                if attempted.interrupted {
                } else if attempted.next_backend == self.backend {
                    self.retries_left = self.retries_left.saturating_sub(1);
                } else {
                    self.fallback.retain(|name| *name != attempted.next_backend);
                    self.backend.clone_from(&attempted.next_backend);
                }
                self.earlier.extend(attempted.receipt.clone());
                self.error = Some(attempted.error.clone());
            }
            Entry::Finished(finished) => {
                self.underway = false;
                self.finished_at = Some(line.at);
                self.error.clone_from(&finished.error);
                self.ending = Some(finished.ending.clone());
                self.receipt.clone_from(&finished.receipt);
                self.patch.clone_from(&finished.patch);
                if let Some(value) = &finished.value {
                    self.result = Some(cut(&value.to_string()));
                }
                self.phase = finished.phase;
                return;
            }
            Entry::Accepted(_) | Entry::Steered(_) | Entry::Note(_) | Entry::Other(_) => {}
        }
        if !self.phase.is_over() {
            let waits = self.open_approvals().next().is_some();
            self.phase = match (waits, self.underway) {
                (true, _) => Phase::Waiting,
                (false, true) => Phase::Running,
                (false, false) => Phase::Queued,
            };
        }
    }

    /// What waits for a person.
    pub(crate) fn open_approvals(&self) -> impl Iterator<Item = &Approval> {
        let over = self.phase.is_over();
        self.approvals.iter().filter(move |approval| approval.is_open() && !over)
    }

    fn count(&mut self, event: &AgentEvent<'_>) {
        match &event.kind {
            EventKind::ToolCall { .. } => self.spent.tool_calls += 1,
            EventKind::AssistantMessage { text } => self.result = Some(cut(text)),
            EventKind::Usage(report) => {
                let usage = report.usage;
                let add = |sum: &mut u64, part: Option<u64>| match report.counts {
                    Counts::Increments => *sum += part.unwrap_or(0),
                    Counts::Totals => *sum = (*sum).max(part.unwrap_or(0)),
                };
                add(&mut self.spent.input_tokens, usage.input_tokens);
                add(&mut self.spent.output_tokens, usage.output_tokens);
                let cost = usage.estimated_cost_usd.unwrap_or(0.0);
                match report.counts {
                    Counts::Increments => self.spent.cost_usd += cost,
                    Counts::Totals => self.spent.cost_usd = self.spent.cost_usd.max(cost),
                }
                self.spent.model_calls += 1;
            }
            _ => {}
        }
    }
}

/// An approval as the state keeps it: what is long is in the log.
fn shown(approval: &Approval) -> Approval {
    Approval { input: cut(&approval.input), ..approval.clone() }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
