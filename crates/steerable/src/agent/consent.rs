//! Who has to agree before a call is made, and what was decided before.
//!
//! | approval | `read` | `safe_write`, `other` | `destructive` | `run_command`, commands `ask` | `run_command`, commands `allow` |
//! |---|---|---|---|---|---|
//! | nobody | made | made | refused | refused | made |
//! | auto | made | made | made | refused | made |
//! | host | made | asked | asked | asked | asked |
//!
//! A grant of `commands: allow` is consent to commands, and one of `ask` is a promise that somebody is asked: where
//! nobody can be, they are not run. Commands that are not granted at all are refused by the tool itself, which says
//! what would grant them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::port::Verdict;
use super::turn::Approval;
use crate::chat::ToolCall;
use crate::tools::{Commands, Mode};

/// The most decisions that are remembered; the oldest goes first, and then the question is asked again.
const MOST_REMEMBERED: usize = 4_096;

/// What has to happen before a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// Somebody has to be asked, for this reason.
    Ask(&'static str),
    /// It is not made, for this reason.
    Refuse(&'static str),
}

/// What has to happen before a call of the tool `name`.
pub(super) fn judge(name: &str, mode: Mode, approval: Approval, commands: Commands) -> Need {
    let command = (name == "run_command").then_some(commands);
    match (approval, mode, command) {
        (_, Mode::Read, _) => Need::Nothing,
        // The tool itself says what would grant it; nobody is bothered before that.
        (_, _, Some(Commands::Deny)) => Need::Nothing,
        (Approval::Host { .. }, Mode::Destructive, _) => Need::Ask("the call can do what cannot be undone"),
        (Approval::Host { .. }, Mode::SafeWrite | Mode::Other, _) => {
            Need::Ask("the call does more than read")
        }
        (Approval::Nobody | Approval::Auto, _, Some(Commands::Ask)) => Need::Refuse(
            "commands are granted with `ask`, and there is nobody to ask: set approval.mode to host",
        ),
        (Approval::Nobody | Approval::Auto, _, Some(Commands::Allow)) => Need::Nothing,
        (Approval::Auto, _, None) => Need::Nothing,
        (Approval::Nobody, Mode::Destructive, None) => Need::Refuse(
            "the call can do what cannot be undone, and nobody was named to consent: set approval",
        ),
        (Approval::Nobody, Mode::SafeWrite | Mode::Other, None) => Need::Nothing,
    }
}

/// Whose tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Host,
}

/// What kind of thing a call is, for the one who is asked.
pub(super) fn category(name: &str, whose: Whose) -> &'static str {
    match name {
        _ if whose == Whose::Host => "host",
        "run_command" => "command",
        "read_file" | "list_files" | "search_files" | "write_file" | "edit_file" => "file",
        "web_fetch" | "web_search" => "network",
        _ if name.starts_with("mcp__") => "mcp",
        _ => "tool",
    }
}

/// What calls have in common that one decision is about: the tool and, for a command, the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Matter(String);

impl Matter {
    pub(super) fn of(call: &ToolCall) -> Self {
        #[derive(Deserialize)]
        struct Command {
            command: String,
        }
        let program = match call.name.as_str() {
            "run_command" => serde_json::from_str::<Command>(call.arguments.get()).ok(),
            _ => None,
        };
        match program {
            Some(Command { command }) => Self(format!("{} {command}", call.name)),
            None => Self(call.name.clone()),
        }
    }
}

/// The decisions that hold for longer than a call. One for a sidecar; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Consents {
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    decided: HashMap<Scope, Verdict>,
    order: VecDeque<Scope>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Record(String, Matter),
    Everywhere(Matter),
}

impl Consents {
    /// A memory with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was decided about such calls in this record, or for all; a refusal wins.
    pub(super) fn recall(&self, record: &str, matter: &Matter) -> Option<Verdict> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let here = memory.decided.get(&Scope::Record(record.to_owned(), matter.clone())).copied();
        let everywhere = memory.decided.get(&Scope::Everywhere(matter.clone())).copied();
        let refusal = [everywhere, here].into_iter().flatten().find(|verdict| !verdict.allows());
        refusal.or(here).or(everywhere)
    }

    /// Keeps a decision for as long as it says that it holds.
    pub(super) fn keep(&self, record: &str, matter: Matter, verdict: Verdict) {
        let scope = match verdict {
            Verdict::AllowForSession | Verdict::DenyForSession => Scope::Record(record.to_owned(), matter),
            Verdict::AllowAlways | Verdict::DenyAlways => Scope::Everywhere(matter),
            Verdict::AllowOnce | Verdict::DenyOnce | Verdict::TimedOut | Verdict::Abort => return,
        };
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.decided.insert(scope.clone(), verdict).is_none() {
            memory.order.push_back(scope);
        }
        while memory.order.len() > MOST_REMEMBERED {
            if let Some(oldest) = memory.order.pop_front() {
                memory.decided.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use std::time::Duration;

    const HOST: Approval = Approval::Host { patience: Duration::from_secs(1) };

    fn call(name: &str, arguments: &str) -> ToolCall {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments }
    }

    #[test]
    fn the_table_at_the_top_of_this_file_is_what_is_judged() {
        let word = |need: Need| match need {
            Need::Nothing => "made",
            Need::Ask(_) => "asked",
            Need::Refuse(_) => "refused",
        };
        for (approval, expected) in [
            (Approval::Nobody, ["made", "made", "made", "refused", "refused", "made"]),
            (Approval::Auto, ["made", "made", "made", "made", "refused", "made"]),
            (HOST, ["made", "asked", "asked", "asked", "asked", "asked"]),
        ] {
            let seen = [
                ("x", Mode::Read, Commands::Deny),
                ("x", Mode::SafeWrite, Commands::Deny),
                ("x", Mode::Other, Commands::Deny),
                ("x", Mode::Destructive, Commands::Allow),
                ("run_command", Mode::Destructive, Commands::Ask),
                ("run_command", Mode::Destructive, Commands::Allow),
            ]
            .map(|(name, mode, commands)| word(judge(name, mode, approval, commands)));
            assert_eq!(seen, expected, "{approval:?}");
        }
    }

    #[test]
    fn a_decision_holds_where_it_was_made_to_hold() {
        let consents = Consents::new();
        let matter = Matter::of(&call("delete_row", "{}"));
        consents.keep("a", matter.clone(), Verdict::AllowOnce);
        assert_eq!(consents.recall("a", &matter), None);
        consents.keep("a", matter.clone(), Verdict::AllowForSession);
        assert_eq!(consents.recall("a", &matter), Some(Verdict::AllowForSession));
        assert_eq!(consents.recall("b", &matter), None);
        consents.keep("b", matter.clone(), Verdict::DenyAlways);
        assert_eq!(consents.recall("a", &matter), Some(Verdict::DenyAlways));
        consents.keep("b", matter.clone(), Verdict::AllowAlways);
        assert_eq!(consents.recall("c", &matter), Some(Verdict::AllowAlways));
    }

    #[test]
    fn a_command_is_allowed_by_its_program_and_not_with_all_others() {
        let git = Matter::of(&call("run_command", r#"{"command":"git","args":["log"]}"#));
        let same = Matter::of(&call("run_command", r#"{"args":["status"],"command":"git"}"#));
        let other = Matter::of(&call("run_command", r#"{"command":"rm"}"#));
        assert_eq!(git, same);
        assert_ne!(git, other);
    }

    #[test]
    fn the_memory_of_decisions_has_an_end() {
        let consents = Consents::new();
        let matter = Matter::of(&call("a", "{}"));
        for record in 0..=MOST_REMEMBERED {
            consents.keep(&record.to_string(), matter.clone(), Verdict::AllowForSession);
        }
        assert_eq!(consents.recall("0", &matter), None);
        assert_eq!(consents.recall("1", &matter), Some(Verdict::AllowForSession));
    }
}
