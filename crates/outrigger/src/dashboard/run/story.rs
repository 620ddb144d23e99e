//! What happened in a run, as its page shows it: made from the log, record by record. Pure, and bounded however long the log is.

use std::collections::VecDeque;

use outrigger_abp::protocol::{AgentEvent, EventKind, UsageReport};

use super::super::parts::json::arguments;
use super::super::parts::say::{beginning, bytes, count, money};
use super::super::parts::waterfall::{Mark, Part, Span, SpanKind};
use crate::engine::Seq;
use crate::runs::approval::{Approval, Choice};
use crate::runs::entry::{Accepted, Answered, Attempted, Entry, Finished, Line, Started, Suspended, Told};
use crate::runs::state::{Moment, Phase};
use crate::say;

/// The most rows of the timeline; older ones are folded.
pub(in super::super) const MAX_SPANS: usize = 300;
/// The most things said.
pub(in super::super) const MAX_SAID: usize = 120;
/// The most of an input or an output.
const MAX_PART: usize = 4 * 1024;
/// The most of what was said at once.
const MAX_WORDS: usize = 32 * 1024;
/// The most of what a script gave.
const MAX_VALUE: usize = 64 * 1024;
/// Inputs of approvals are kept whole up to this, so that they can be edited.
const MAX_INPUT: usize = 64 * 1024;

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Story {
    /// The last record that is in it.
    pub(in super::super) seq: Seq,
    pub(in super::super) accepted: Option<Accepted>,
    /// When that was.
    pub(in super::super) begun: Option<Moment>,
    pub(in super::super) spans: VecDeque<Span>,
    pub(in super::super) folded_spans: usize,
    pub(in super::super) said: VecDeque<Said>,
    pub(in super::super) folded_said: usize,
    /// What a script gave, as JSON text.
    pub(in super::super) value: Option<String>,
    /// The whole inputs of approvals, newest last.
    pub(in super::super) inputs: Vec<(String, String)>,
    /// Since when the model may be at it.
    thinking_since: Option<i64>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Said {
    pub(in super::super) who: Who,
    pub(in super::super) at: Moment,
    pub(in super::super) text: String,
    /// Whether more of it may come.
    pub(in super::super) open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Who {
    Person,
    Agent,
    /// The daemon or the backend, about what it does.
    Note,
    Trouble,
}

impl Story {
    /// The story after one more record.
    pub(in super::super) fn fold(&mut self, seq: Seq, line: &Line) {
        self.seq = seq;
        let at = line.at;
        match &line.entry {
            Entry::Accepted(accepted) => self.accepted(accepted, at),
            Entry::Started(started) => self.started(started, at),
            Entry::Event(told) => self.told(told, at),
            Entry::Suspended(suspended) => self.suspended(suspended, seq, at),
            Entry::Asked(approval) => self.asked(approval, at),
            Entry::Answered(answered) => self.answered(answered, at),
            Entry::Steered(steered) => {
                self.say(Who::Person, at, &steered.text);
                self.moment(SpanKind::Person, "steered", &steered.text, at, Mark::Ended);
                self.think_from(at);
            }
            Entry::Cancelling(cancelling) => {
                let label = format!("{} cancels", cancelling.by.0);
                self.moment(SpanKind::Person, &label, &cancelling.why, at, Mark::Ended);
            }
            Entry::Attempted(attempted) => self.attempted(attempted, at),
            Entry::Note(note) => self.say(Who::Note, at, &note.text),
            Entry::Finished(finished) => self.finished(finished, at),
            Entry::Other(_) => {}
        }
    }

    /// The whole input of an approval, if it is known and not too long to be edited.
    pub(in super::super) fn input(&self, approval: &str) -> Option<&str> {
        self.inputs.iter().rev().find(|(id, _)| id == approval).map(|(_, input)| input.as_str())
    }

    pub(in super::super) fn is_script(&self) -> bool {
        self.accepted.as_ref().is_some_and(|accepted| accepted.request.script.is_some())
    }

    fn accepted(&mut self, accepted: &Accepted, at: Moment) {
        if let Some(task) = &accepted.request.task {
            self.say(Who::Person, at, task);
        }
        self.accepted = Some(accepted.clone());
        self.begun = Some(at);
    }

    fn started(&mut self, started: &Started, at: Moment) {
        let key = format!("attempt{}", started.attempt);
        if self.spans.iter().any(|span| span.key == key) {
            return;
        }
        let label = format!("attempt {}", started.attempt);
        self.open(Opening { key, kind: SpanKind::Attempt, label, gist: started.backend.clone(), at });
        self.think_from(at);
    }

    fn told(&mut self, told: &Told, at: Moment) {
        let Ok(event) = AgentEvent::read(told.event.get()) else { return };
        match &event.kind {
            EventKind::RunStarted { .. } => self.think_from(at),
            EventKind::RunCompleted { .. } => self.thought(at, Mark::Good),
            EventKind::AssistantDelta { text } => {
                self.thinks(at);
                self.continue_saying(at, text);
            }
            EventKind::AssistantMessage { text } => {
                self.thinks(at);
                self.thought(at, Mark::Good);
                self.finish_saying(at, text);
            }
            EventKind::ToolCall { tool_name, tool_use_id, input, .. } => {
                self.thinks(at);
                self.thought(at, Mark::Good);
                self.stop_saying();
                let key = tool_key(told.attempt, tool_use_id.as_deref(), told.number);
                let gist = gist(input.as_str());
                self.open(Opening { key, kind: SpanKind::Tool, label: tool_name.to_string(), gist, at });
                self.part_of_last("Input", input.as_str());
            }
            EventKind::ToolResult { tool_name, tool_use_id, output, is_error } => {
                let mark = if *is_error { Mark::Bad } else { Mark::Good };
                let key = tool_use_id.as_deref().map(|id| tool_key(told.attempt, Some(id), 0));
                let is_it = |span: &Span| match &key {
                    Some(key) => span.key == *key && span.to.is_none(),
                    None => span.kind == SpanKind::Tool && span.label == *tool_name && span.to.is_none(),
                };
                if let Some(span) = self.spans.iter_mut().rev().find(|span| is_it(span)) {
                    end(span, at, mark);
                    let name = if *is_error { "Error" } else { "Output" };
                    span.parts.push(part(name, output.as_str()));
                }
                self.end_open(SpanKind::Suspension, at, Mark::Ended);
                self.think_from(at);
            }
            EventKind::FileChanged { path, summary } => {
                self.moment(SpanKind::Deed, path, summary, at, Mark::Ended);
            }
            EventKind::CommandExecuted { command, exit_code, output_preview } => {
                let mark = if exit_code.is_some_and(|code| code != 0) { Mark::Bad } else { Mark::Ended };
                let code = exit_code.map_or_else(String::new, |code| format!("exit {code}"));
                self.moment(SpanKind::Deed, command, &code, at, mark);
                if let Some(preview) = output_preview {
                    self.part_of_last("Output", preview);
                }
            }
            EventKind::Warning { message } => {
                self.moment(SpanKind::Trouble, "warning", message, at, Mark::Ended);
                self.say(Who::Note, at, message);
            }
            EventKind::Error { message, .. } => {
                self.moment(SpanKind::Trouble, "error", message, at, Mark::Bad);
                self.say(Who::Trouble, at, message);
            }
            EventKind::Usage(report) => {
                self.thinks(at);
                let usage = usage_words(report);
                let model = self.spans.iter_mut().rev().find(|span| span.kind == SpanKind::Model);
                if let Some(model) = model {
                    model.gist = usage;
                }
            }
            EventKind::Other { .. } => {}
        }
    }

    fn suspended(&mut self, suspended: &Suspended, seq: Seq, at: Moment) {
        self.end_open(SpanKind::Suspension, at, Mark::Ended);
        let key = format!("suspension{}.{}", suspended.attempt, suspended.step);
        let calls: Vec<&str> = suspended.calls.iter().map(|call| call.capability.as_str()).collect();
        let label = format!("suspended at {}", beginning(&calls.join(", "), 120).0);
        let gist = format!("{} snapshot", bytes(suspended.snapshot_bytes));
        self.open(Opening { key, kind: SpanKind::Suspension, label, gist, at });
        let waiting: Vec<String> = suspended.calls.iter().take(32).map(call_words).collect();
        self.part_of_last("Calls", &waiting.join("\n"));
        self.part_of_last("Snapshot", &format!("sha256 {}", suspended.snapshot));
        if let Some(span) = self.spans.back_mut() {
            span.fork_at = Some(seq.0);
        }
    }

    fn asked(&mut self, approval: &Approval, at: Moment) {
        let Approval { id, tool, input, reason, .. } = approval;
        let key = format!("approval{}", id.0);
        let label = format!("approval {}", id.0);
        self.open(Opening { key, kind: SpanKind::Approval, label, gist: tool.clone(), at });
        self.part_of_last("Asked because", reason);
        self.part_of_last("Input", input);
        if input.len() <= MAX_INPUT {
            self.inputs.push((id.0.clone(), input.clone()));
            let old = self.inputs.len().saturating_sub(16);
            self.inputs.drain(..old);
        }
    }

    fn answered(&mut self, answered: &Answered, at: Moment) {
        let key = format!("approval{}", answered.approval.0);
        let Some(span) = self.spans.iter_mut().rev().find(|span| span.key == key) else { return };
        let answer = &answered.answer;
        let mark = match answer.choice {
            Choice::Approve | Choice::ApproveAlways | Choice::Edit | Choice::Answer => Mark::Good,
            Choice::Deny => Mark::Bad,
        };
        end(span, at, mark);
        span.gist = format!("{} · {} by {}", span.gist, choice_words(answer.choice), answered.by.0);
        for (name, value) in [("Arguments instead", &answer.arguments), ("Answer", &answer.value)] {
            if let Some(value) = value {
                span.parts.push(part(name, &value.to_string()));
            }
        }
        if let Some(reason) = &answer.reason {
            span.parts.push(part("Reason", reason));
        }
    }

    fn attempted(&mut self, attempted: &Attempted, at: Moment) {
        self.stop_saying();
        for span in self.spans.iter_mut().filter(|span| span.to.is_none()) {
            let mark = if span.kind == SpanKind::Attempt { Mark::Bad } else { Mark::Ended };
            end(span, at, mark);
        }
        self.thinking_since = None;
        let next = format!("{}; next: {}", attempted.error, attempted.next_backend);
        self.moment(SpanKind::Trouble, "attempt ended", &next, at, Mark::Bad);
        self.say(Who::Trouble, at, &attempted.error);
    }

    fn finished(&mut self, finished: &Finished, at: Moment) {
        self.stop_saying();
        let mark = match finished.phase {
            Phase::Completed => Mark::Good,
            Phase::Failed => Mark::Bad,
            Phase::Queued | Phase::Running | Phase::Waiting | Phase::Cancelled => Mark::Ended,
        };
        for span in self.spans.iter_mut().filter(|span| span.to.is_none()) {
            end(span, at, if span.kind == SpanKind::Attempt { mark } else { Mark::Ended });
        }
        self.thinking_since = None;
        self.value = finished.value.as_ref().map(|value| {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            cut(&text, MAX_VALUE)
        });
    }

    // Timeline.

    fn open(&mut self, opening: Opening) {
        let Opening { key, kind, label, gist, at } = opening;
        let from = at.0.unix_millis();
        let (label, gist) = (say::short(&label), say::short(&gist));
        let span = Span {
            key,
            kind,
            label,
            gist,
            from,
            to: None,
            mark: Mark::Open,
            parts: Vec::new(),
            fork_at: None,
        };
        self.spans.push_back(span);
        if self.spans.len() > MAX_SPANS {
            // The oldest that is over; an attempt or an approval that goes on is worth more than it is old.
            let over = self.spans.iter().position(|span| span.to.is_some()).unwrap_or(0);
            self.spans.remove(over);
            self.folded_spans += 1;
        }
    }

    fn moment(&mut self, kind: SpanKind, label: &str, gist: &str, at: Moment, mark: Mark) {
        let key = format!("moment{}", self.seq.0);
        self.open(Opening { key, kind, label: label.to_owned(), gist: gist.to_owned(), at });
        if let Some(span) = self.spans.back_mut() {
            end(span, at, mark);
            if gist.len() > 100 {
                span.parts.push(part("More", gist));
            }
        }
    }

    fn part_of_last(&mut self, name: &'static str, text: &str) {
        if let Some(span) = self.spans.back_mut()
            && !text.is_empty()
        {
            span.parts.push(part(name, text));
        }
    }

    fn end_open(&mut self, kind: SpanKind, at: Moment, mark: Mark) {
        let open = self.spans.iter_mut().filter(|span| span.kind == kind && span.to.is_none());
        open.for_each(|span| end(span, at, mark));
    }

    fn think_from(&mut self, at: Moment) {
        if !self.is_script() {
            self.thinking_since = Some(at.0.unix_millis());
        }
    }

    /// There is a sign of the model: it has been at it since it last could.
    fn thinks(&mut self, at: Moment) {
        let Some(since) = self.thinking_since.take() else { return };
        let key = format!("model{}", self.seq.0);
        let label = "model".to_owned();
        self.open(Opening { key, kind: SpanKind::Model, label, gist: String::new(), at });
        if let Some(span) = self.spans.back_mut() {
            span.from = since;
        }
    }

    fn thought(&mut self, at: Moment, mark: Mark) {
        self.end_open(SpanKind::Model, at, mark);
    }

    // What was said.

    fn say(&mut self, who: Who, at: Moment, text: &str) {
        self.stop_saying();
        self.push(Said { who, at, text: cut(text, MAX_WORDS), open: false });
    }

    fn continue_saying(&mut self, at: Moment, text: &str) {
        match self.said.back_mut() {
            Some(said) if said.open => {
                if said.text.len() < MAX_WORDS {
                    said.text.push_str(beginning(text, MAX_WORDS).0);
                }
            }
            Some(_) | None => self.push(Said { who: Who::Agent, at, text: cut(text, MAX_WORDS), open: true }),
        }
    }

    /// The whole of what was said in parts, or all at once.
    fn finish_saying(&mut self, at: Moment, text: &str) {
        match self.said.back_mut() {
            Some(said) if said.open => {
                said.text = cut(text, MAX_WORDS);
                said.open = false;
            }
            Some(_) | None => {
                self.push(Said { who: Who::Agent, at, text: cut(text, MAX_WORDS), open: false })
            }
        }
    }

    fn stop_saying(&mut self) {
        if let Some(said) = self.said.back_mut() {
            said.open = false;
        }
    }

    fn push(&mut self, said: Said) {
        self.said.push_back(said);
        if self.said.len() > MAX_SAID {
            self.said.pop_front();
            self.folded_said += 1;
        }
    }
}

/// A span that begins.
struct Opening {
    key: String,
    kind: SpanKind,
    label: String,
    gist: String,
    at: Moment,
}

fn end(span: &mut Span, at: Moment, mark: Mark) {
    span.to = Some(at.0.unix_millis());
    span.mark = mark;
}

fn part(name: &'static str, text: &str) -> Part {
    Part { name, text: cut(text, MAX_PART) }
}

fn cut(text: &str, most: usize) -> String {
    match beginning(text, most) {
        (shown, false) => shown.to_owned(),
        (shown, true) => format!("{shown}…"),
    }
}

fn tool_key(attempt: u32, id: Option<&str>, number: u64) -> String {
    match id {
        Some(id) => format!("tool{attempt}.{}", beginning(id, 200).0),
        None => format!("tool{attempt}#{number}"),
    }
}

fn gist(input: &str) -> String {
    match serde_json::from_str(input) {
        Ok(value @ serde_json::Value::Array(_)) => arguments(&value),
        Ok(_) | Err(_) => say::gist(input),
    }
}

fn call_words(call: &crate::runs::entry::Call) -> String {
    format!("#{} {}({})", call.id, call.capability, arguments(&call.args))
}

fn usage_words(report: &UsageReport) -> String {
    let usage = report.usage;
    let mut words = Vec::new();
    words.extend(usage.input_tokens.map(|tokens| format!("{} in", count(tokens))));
    words.extend(usage.output_tokens.map(|tokens| format!("{} out", count(tokens))));
    words.extend(usage.estimated_cost_usd.filter(|cost| *cost > 0.0).map(money));
    words.join(" · ")
}

pub(in super::super) fn choice_words(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "approved",
        Choice::ApproveAlways => "approved for the whole run",
        Choice::Edit => "approved with other arguments",
        Choice::Answer => "answered",
        Choice::Deny => "denied",
    }
}
