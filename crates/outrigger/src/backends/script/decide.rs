//! What to do with a call that waits: a function of what stands behind its name, what the policy says, and what the log says.

use outrigger_policy::{Decision, Verdict};
use serde_json::Value;

use super::journal::{Seen, Word};
use super::outcome::{HostCall, Outcome, Thrown};
use crate::backends::tools::{ApprovalRule, Repeat};
use crate::runs::{Approval, Choice, Given};

/// What stands behind the name of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Behind {
    /// A person.
    Person,
    /// Always this value.
    Value(Value),
    /// A tool.
    Tool { name: String, approval: ApprovalRule, repeat: Repeat },
    /// Nothing, any more: the configuration has changed.
    Nothing,
}

/// Whether a person lets every single call through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepping {
    Off,
    On,
}

/// Whether a person has let the tool through for the rest of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    None,
    Given,
}

/// A call and all that decides.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) call: &'a HostCall,
    pub(super) behind: &'a Behind,
    pub(super) seen: Option<&'a Seen>,
    pub(super) policy: &'a Decision,
    pub(super) stepping: Stepping,
    pub(super) leave: Leave,
}

/// What to do with a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Todo {
    /// It came to this already.
    Settled(Outcome),
    /// Somebody was asked, and has said nothing yet.
    Wait,
    /// It comes to this; nothing is called.
    Reply(Outcome, By),
    /// Its tool is called, with the arguments that a person gave if one did.
    Make(By),
    /// A person is asked.
    Ask { reason: String, choices: &'static [Choice] },
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The order, which gave the script the tool or the value.
    Order,
    Policy,
    /// Nobody: it cannot be.
    Fault,
    /// A person, in this approval.
    Person {
        approval: String,
        choice: Choice,
        who: String,
    },
}

/// What can be said to a call that nobody but a person answers.
const ANSWER: &[Choice] = &[Choice::Answer, Choice::Deny];

/// What can be said to a call of a tool.
const APPROVE: &[Choice] =
    &[Choice::Approve, Choice::ApproveAlways, Choice::Edit, Choice::Answer, Choice::Deny];

/// What can be said to a call that may have happened.
const AGAIN: &[Choice] = &[Choice::Approve, Choice::Answer, Choice::Deny];

/// What to do with a call.
pub(super) fn decide(question: &Question<'_>) -> Todo {
    if let Some(outcome) = question.seen.and_then(|seen| seen.result.clone()) {
        return Todo::Settled(outcome);
    }
    match question.seen.map_or(Word::None, Seen::word) {
        Word::Awaited => Todo::Wait,
        Word::Fresh(approval, given) => obey(question, approval, given),
        Word::Used(approval, given) => match (given.answer.choice, question.behind) {
            (Choice::Approve | Choice::ApproveAlways | Choice::Edit, Behind::Tool { .. }) => begun(question),
            // Nothing was called for these: they were on their way into the log.
            _ => obey(question, approval, given),
        },
        Word::None if question.seen.is_some_and(Seen::was_begun) => begun(question),
        Word::None => fresh(question),
    }
}

/// A person has spoken.
fn obey(question: &Question<'_>, approval: &Approval, given: &Given) -> Todo {
    let choice = given.answer.choice;
    let by = By::Person { approval: approval.id.0.clone(), choice, who: given.by.0.clone() };
    match choice {
        Choice::Answer => {
            return Todo::Reply(Outcome::Value(given.answer.value.clone().unwrap_or_default()), by);
        }
        Choice::Deny => {
            let message = given.answer.reason.clone().unwrap_or_else(|| format!("denied by {}", given.by.0));
            return Todo::Reply(Outcome::Thrown(Thrown::new("Denied", message, "denied")), by);
        }
        Choice::Edit | Choice::Approve | Choice::ApproveAlways => {}
    }
    match question.behind {
        Behind::Tool { .. } => Todo::Make(by),
        Behind::Value(value) => Todo::Reply(Outcome::Value(value.clone()), by),
        // A person can only answer or deny, and whoever let something else through let nothing through.
        Behind::Person | Behind::Nothing => Todo::Reply(nothing(question.call), By::Fault),
    }
}

/// It was begun, and nobody knows whether it happened.
fn begun(question: &Question<'_>) -> Todo {
    match question.behind {
        // Nothing was called for these: they were on their way into the log.
        _ if question.call.fault.is_some() || question.policy.verdict == Verdict::Deny => fresh(question),
        Behind::Value(_) | Behind::Person => fresh(question),
        Behind::Tool { repeat: Repeat::Safe, .. } => Todo::Make(By::Order),
        Behind::Tool { name, repeat: Repeat::Ask, .. } => {
            let call = question.call.text();
            let reason = format!(
                "may have happened: {call} was begun with the tool `{name}` when the daemon was killed; approve calls it again"
            );
            Todo::Ask { reason, choices: AGAIN }
        }
        Behind::Nothing => Todo::Reply(nothing(question.call), By::Fault),
    }
}

/// Nothing has happened to it yet.
fn fresh(question: &Question<'_>) -> Todo {
    let Question { call, behind, policy, stepping, leave, .. } = question;
    if let Some(fault) = &call.fault {
        return Todo::Reply(Outcome::Thrown(fault.clone()), By::Fault);
    }
    if policy.verdict == Verdict::Deny {
        let denied = Thrown::new("Denied", policy.explain(), "policy_denied");
        return Todo::Reply(Outcome::Thrown(denied), By::Policy);
    }
    let name = &call.capability;
    let why = match behind {
        Behind::Nothing => return Todo::Reply(nothing(call), By::Fault),
        Behind::Person => {
            return Todo::Ask {
                reason: format!("the script asks a person: {}", call.text()),
                choices: ANSWER,
            };
        }
        _ if *leave == Leave::Given => None,
        _ if policy.verdict == Verdict::Ask => Some(policy.explain()),
        Behind::Tool { name: tool, approval: ApprovalRule::Always, .. } if tool == name => {
            Some(format!("every call of `{tool}` is approved by a person"))
        }
        Behind::Tool { name: tool, approval: ApprovalRule::Always, .. } => {
            Some(format!("every call of `{name}` (the tool `{tool}`) is approved by a person"))
        }
        _ if *stepping == Stepping::On => Some("the run is stepped through call by call".to_owned()),
        Behind::Tool { approval: ApprovalRule::Never, .. } | Behind::Value(_) => None,
    };
    match (why, behind) {
        (Some(reason), _) => Todo::Ask { reason, choices: APPROVE },
        (None, Behind::Value(value)) => Todo::Reply(Outcome::Value(value.clone()), By::Order),
        (None, Behind::Tool { .. } | Behind::Person | Behind::Nothing) => Todo::Make(By::Order),
    }
}

fn nothing(call: &HostCall) -> Outcome {
    let message = format!("nothing stands behind `{}` that could be called", call.capability);
    Outcome::Thrown(Thrown::new("ToolError", message, "no_such_tool"))
}
