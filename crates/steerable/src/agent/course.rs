//! The course of a turn: what comes next, decided without doing any of it.
//!
//! The driver asks [`Course::next`], does that, and tells what came of it. Everything that a turn can be surprised by
//! (a budget, a steer, an overflow, an answer that does not fit, a cancel) is a method here and a line in a test.

use std::collections::VecDeque;
use std::mem;

use serde_json::Value;
use serde_json::value::RawValue;

use super::output::{Budget, Exhausted};
use super::repeat::{Repeated, Repeats};
use super::structured;
use super::turn::Budgets;
use crate::chat::{ToolCall, ToolResult, Usage};
use crate::model::{Failure, FailureKind};

/// How often an answer that does not fit its schema is sent back.
const MOST_REPAIRS: u32 = 2;

/// Why a turn is completed that a tool has ended.
const TERMINAL_RESULT: &str = "terminal_result";

/// What the course is decided by.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) budgets: Budgets,
    /// What the host wants the model to say at most.
    pub(super) max_tokens: Option<u64>,
    /// Beyond how many tokens the transcript is compacted.
    pub(super) max_context_tokens: Option<u64>,
    /// What the answer has to fit.
    pub(super) schema: Option<Box<RawValue>>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// Tell that a round is over.
    RoundEnd(u64),
    /// Give the model what the person said meanwhile.
    Hear(Vec<String>),
    /// Tell the model what is wrong with its answer.
    Repair(String),
    /// Make the transcript smaller.
    Compact,
    /// Call the model, which may say so much.
    Model(Cap),
    /// Make these calls.
    Tools(Vec<Asked>),
    /// It is over.
    End(End),
}

/// How much the model may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// What the host said, if it said anything.
    Asked(Option<u64>),
    /// Less, because the budget has only so much left.
    Budget(u64),
}

impl Cap {
    /// The number for the request.
    pub(super) const fn max_tokens(self) -> Option<u64> {
        match self {
            Self::Asked(max_tokens) => max_tokens,
            Self::Budget(left) => Some(left),
        }
    }
}

/// A call that the model asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) call: ToolCall,
    /// What came instead of arguments.
    pub(super) unread: Option<String>,
}

/// What the model said in a round.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) text: String,
    pub(super) calls: Vec<Asked>,
    /// Why it ended, in the provider's words.
    pub(super) finish: Option<String>,
}

/// How a turn ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    Completed { reason: Option<String>, output: Option<Value> },
    Exhausted(Exhausted),
    Cancelled { reason: Option<String> },
    Failed { failure: Failure, reason: Option<String> },
}

/// Where a turn is.
#[derive(Debug)]
pub(super) struct Course {
    rules: Rules,
    round: u64,
    /// Tokens that were charged.
    tokens: u64,
    tool_errors: u64,
    repeats: Repeats,
    repairs: u32,
    heard: VecDeque<String>,
    repair: Option<String>,
    compaction: Compaction,
    /// The overflow that the compaction is to mend.
    overflow: Option<Failure>,
    cap: Cap,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The model is next.
    Ready,
    /// Calls are to be made.
    Acting(Vec<Asked>),
    /// The round is over and was not told yet; then this.
    RoundOver(After),
    /// It has answered, and nothing speaks against it being the end.
    Answered(End),
    /// It is over, whatever else comes.
    Over(End),
}

#[derive(Debug)]
enum After {
    Ready,
    Answered(End),
}

/// Whether the transcript should become smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compaction {
    /// If it has grown too much.
    IfNeeded,
    /// In any case.
    Wanted,
    /// It was done since the model spoke last; more of it helps nobody.
    Done,
}

impl Course {
    pub(super) fn new(rules: Rules) -> Self {
        let cap = Cap::Asked(rules.max_tokens);
        Self {
            rules,
            round: 0,
            tokens: 0,
            tool_errors: 0,
            repeats: Repeats::default(),
            repairs: 0,
            heard: VecDeque::new(),
            repair: None,
            compaction: Compaction::IfNeeded,
            overflow: None,
            cap,
            phase: Phase::Ready,
        }
    }

    /// What comes next, if the next prompt has about `prompt` tokens.
    pub(super) fn next(&mut self, prompt: u64) -> Next {
        match mem::replace(&mut self.phase, Phase::Ready) {
            Phase::Over(end) => {
                self.phase = Phase::Over(end.clone());
                Next::End(end)
            }
            Phase::Acting(calls) => Next::Tools(calls),
            Phase::RoundOver(after) => {
                self.phase = match after {
                    After::Ready => Phase::Ready,
                    After::Answered(end) => Phase::Answered(end),
                };
                Next::RoundEnd(self.round)
            }
            // Somebody who speaks while the last word is said is heard: then it was not the last word.
            Phase::Ready | Phase::Answered(_) if !self.heard.is_empty() => {
                self.repair = None;
                Next::Hear(self.heard.drain(..).collect())
            }
            Phase::Answered(end) => self.over(end),
            Phase::Ready => self.go_on(prompt),
        }
    }

    /// The round of the last call of the model, the first being 1.
    pub(super) const fn round(&self) -> u64 {
        self.round
    }

    /// Whether it is over, whatever else comes.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    /// How many tokens are left for something beside the rounds; `None` is no limit.
    pub(super) fn tokens_left(&self) -> Option<u64> {
        self.rules.budgets.tokens.map(|limit| limit.saturating_sub(self.tokens))
    }

    /// Tokens were spent.
    pub(super) fn spent(&mut self, usage: Usage) {
        self.tokens = self.tokens.saturating_add(usage.billed());
    }

    /// The person said something that the model hears at the next boundary.
    pub(super) fn steered(&mut self, content: String) {
        self.heard.push_back(content);
    }

    /// Whether the turn goes on although `end` was to be its end, because somebody was heard in that very moment. Only the
    /// model's own last word can be talked out of.
    pub(super) fn heard_after_all(&mut self, end: &End) -> bool {
        let was_last_word =
            matches!(end, End::Completed { reason, .. } if reason.as_deref() != Some(TERMINAL_RESULT));
        let goes_on = was_last_word && !self.heard.is_empty();
        if goes_on {
            self.phase = Phase::Ready;
        }
        goes_on
    }

    /// Somebody wants the transcript to be compacted.
    pub(super) fn compact(&mut self) {
        self.compaction = Compaction::Wanted;
    }

    /// The transcript was compacted, or there was nothing to compact.
    pub(super) fn compacted(&mut self, outcome: Compacted) {
        self.compaction = Compaction::Done;
        match (self.overflow.take(), outcome) {
            (Some(failure), Compacted::Nothing) => self.fail(failure, None),
            // The failure is kept: a second overflow is not mended again.
            (Some(failure), Compacted::Smaller) => self.overflow = Some(failure),
            (None, Compacted::Smaller | Compacted::Nothing) => {}
        }
    }

    /// The model spoke.
    pub(super) fn answered(&mut self, spoken: Spoken) {
        self.compaction = Compaction::IfNeeded;
        self.overflow = None;
        if !spoken.calls.is_empty() {
            self.phase = Phase::Acting(spoken.calls);
            return;
        }
        let cut = spoken.finish.as_deref().is_some_and(is_length);
        if let (true, Cap::Budget(_)) = (cut, self.cap) {
            let end = End::Exhausted(self.exhausted(Budget::Tokens, self.rules.budgets.tokens, self.tokens));
            self.phase = Phase::RoundOver(After::Answered(end));
            return;
        }
        let reason = match spoken.finish {
            Some(_) if cut => Some("length".to_owned()),
            Some(finish) if !is_ordinary(&finish) => Some(finish),
            Some(_) | None => None,
        };
        let after = match self.rules.schema.as_deref().map(|schema| structured::read(schema, &spoken.text)) {
            None => After::Answered(End::Completed { reason, output: None }),
            Some(Ok(output)) => After::Answered(End::Completed { reason, output: Some(output) }),
            Some(Err(problem)) if self.repairs < MOST_REPAIRS => {
                self.repairs += 1;
                self.repair = Some(problem);
                After::Ready
            }
            Some(Err(problem)) => {
                let message = format!("invalid_output: the answer does not fit the schema: {problem}");
                let failure = Failure::new(FailureKind::InvalidRequest, message);
                After::Answered(End::Failed { failure, reason: Some("invalid_output".to_owned()) })
            }
        };
        self.phase = Phase::RoundOver(after);
    }

    /// The call of the model was cut by the person, who is heard next.
    pub(super) fn interrupted(&mut self) {
        self.compaction = Compaction::IfNeeded;
        self.overflow = None;
        self.acted();
    }

    /// The call of the model failed.
    pub(super) fn failed(&mut self, failure: Failure) {
        let first = self.overflow.is_none();
        if failure.kind == FailureKind::ContextOverflow && first {
            self.compaction = Compaction::Wanted;
            self.overflow = Some(failure);
            // The call that was refused is made again, so it does not count twice.
            self.round = self.round.saturating_sub(1);
            return;
        }
        self.fail(failure, None);
    }

    /// A call came to something. What is returned is added to what the model is told.
    pub(super) fn result(&mut self, call: &ToolCall, result: &ToolResult, blame: Blame) -> Option<String> {
        if result.terminal == Some(true) {
            self.over_unless_worse(End::Completed { reason: Some(TERMINAL_RESULT.to_owned()), output: None });
        }
        if result.success {
            self.repeats.succeeded();
            return None;
        }
        match blame {
            Blame::Tool => self.tool_errors = self.tool_errors.saturating_add(1),
            Blame::Person => {}
            Blame::Nobody => return None,
        }
        match self.repeats.failed(call) {
            Repeated::Fine => None,
            Repeated::Tell(times) => Some(format!(
                "This very call has failed {times} times in a row. Do not make it again: do something else."
            )),
            Repeated::Enough(times) => {
                let message =
                    format!("the model made the same failing call of {} {times} times in a row", call.name);
                self.fail(Failure::new(FailureKind::Unknown, message), Some("repeated_failure".to_owned()));
                None
            }
        }
    }

    /// The round is over, unless the whole turn is.
    pub(super) fn acted(&mut self) {
        if let Phase::Ready = self.phase {
            self.phase = Phase::RoundOver(After::Ready);
        }
    }

    /// A call was not made because a budget does not cover it.
    pub(super) fn exhausted_by(&mut self, exhausted: Exhausted) {
        self.over_unless_worse(End::Exhausted(exhausted));
    }

    /// Somebody ended the turn.
    pub(super) fn cancelled(&mut self, reason: Option<String>) {
        self.phase = Phase::Over(End::Cancelled { reason });
    }

    /// Something else than the model failed.
    pub(super) fn fail(&mut self, failure: Failure, reason: Option<String>) {
        self.phase = Phase::Over(End::Failed { failure, reason });
    }

    /// Before a call of the model: is it covered, and does the prompt fit?
    fn go_on(&mut self, prompt: u64) -> Next {
        if let Some(problem) = self.repair.take() {
            return Next::Repair(problem);
        }
        let budgets = self.rules.budgets;
        if budgets.tool_errors.is_some_and(|limit| self.tool_errors > limit) {
            return self.stop(Budget::ToolErrors, budgets.tool_errors, self.tool_errors);
        }
        if budgets.rounds.is_some_and(|limit| self.round >= limit) {
            return self.stop(Budget::Rounds, budgets.rounds, self.round);
        }
        if budgets.tokens.is_some_and(|limit| self.tokens >= limit) {
            return self.stop(Budget::Tokens, budgets.tokens, self.tokens);
        }
        let too_long = self.rules.max_context_tokens.is_some_and(|limit| prompt > limit);
        match self.compaction {
            Compaction::Wanted => return Next::Compact,
            Compaction::IfNeeded if too_long => return Next::Compact,
            Compaction::IfNeeded | Compaction::Done => {}
        }
        self.cap = match budgets.tokens {
            None => Cap::Asked(self.rules.max_tokens),
            Some(limit) => {
                // At least one token has to come out, or the call is for nothing.
                let left = limit.saturating_sub(self.tokens).saturating_sub(prompt);
                if left == 0 {
                    return self.stop(Budget::Tokens, budgets.tokens, self.tokens);
                }
                match self.rules.max_tokens {
                    Some(asked) if asked <= left => Cap::Asked(Some(asked)),
                    Some(_) | None => Cap::Budget(left),
                }
            }
        };
        self.round += 1;
        Next::Model(self.cap)
    }

    fn stop(&mut self, budget: Budget, limit: Option<u64>, used: u64) -> Next {
        let end = End::Exhausted(self.exhausted(budget, limit, used));
        self.over(end)
    }

    fn exhausted(&self, budget: Budget, limit: Option<u64>, used: u64) -> Exhausted {
        Exhausted { budget, limit: limit.unwrap_or(u64::MAX), used }
    }

    fn over(&mut self, end: End) -> Next {
        self.phase = Phase::Over(end.clone());
        Next::End(end)
    }

    /// The first end counts, unless what comes later is a failure.
    fn over_unless_worse(&mut self, end: End) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.phase = Phase::Over(end);
        }
    }
}

/// What a compaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compacted {
    Smaller,
    Nothing,
}

/// Whose fault a failed call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The call itself failed, or could not be made.
    Tool,
    /// Somebody refused it, which is no error but can be repeated like one.
    Person,
    /// It was stopped from outside.
    Nobody,
}

/// Whether a provider's word says that the answer was cut because it became too long.
fn is_length(finish: &str) -> bool {
    ["length", "max_tokens", "max_output_tokens"].iter().any(|word| finish.eq_ignore_ascii_case(word))
}

/// Whether a provider's word says nothing but that the answer is over.
fn is_ordinary(finish: &str) -> bool {
    ["stop", "end_turn", "stop_sequence", "completed", "tool_calls", "tool_use", "function_call"]
        .iter()
        .any(|word| finish.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
