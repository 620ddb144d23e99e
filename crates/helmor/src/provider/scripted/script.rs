//! A script as types: turns, and the steps of each.

use serde_json::{Map, Value};

use crate::provider::{Model, SlashCommand};

/// A script. See [`Script::read`].
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// What happens in each turn.
    pub turns: Vec<Turn>,
    /// What `listModels` says.
    pub models: Option<Vec<Model>>,
    /// What `listSlashCommands` says.
    pub commands: Option<Vec<SlashCommand>>,
    /// What a model says that is asked for a title.
    pub title: Option<String>,
    /// What `getContextUsage` says: JSON.
    pub context_usage: Option<String>,
}

/// A turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// It is played when the prompt contains this. Those without are played one after the other.
    pub when: Option<String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An object is passed on: its text, on one line.
    Pass(String),
    /// Nothing happens for so many milliseconds.
    Wait(u64),
    /// Steps happen again and again.
    Repeat(u64, Vec<Step>),
    /// Whether a tool may be used. The verdict is passed on.
    Permission(Permission),
    /// The user is asked. The answer is passed on.
    Ask(Value),
    /// Waits for the host to steer.
    Steer,
    /// The host is asked something of its own. The answer is passed on.
    Host {
        /// What.
        method: String,
        /// With what.
        params: Value,
    },
    /// A real child runs. What it prints and how it ends is passed on.
    Run(Vec<String>),
    /// Nothing happens any more.
    Hang,
    /// The turn fails.
    Fail(String),
    /// What was to be gone on with is lost, if there is anything.
    LoseResume(String),
}

/// A question whether a tool may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub input: Map<String, Value>,
    /// What the host may pass back.
    pub suggestions: Vec<Value>,
}

impl Script {
    /// The turn for a prompt: the first whose `when` is in it, else the next of those without, the last of them for ever.
    /// `played` counts those on.
    pub(super) fn turn_for(&self, prompt: &str, played: impl FnOnce() -> usize) -> Option<&Turn> {
        let named =
            self.turns.iter().find(|turn| turn.when.as_ref().is_some_and(|when| prompt.contains(when)));
        named.or_else(|| {
            let unnamed: Vec<&Turn> = self.turns.iter().filter(|turn| turn.when.is_none()).collect();
            let last = unnamed.len().checked_sub(1)?;
            unnamed.get(played().min(last)).copied()
        })
    }
}

impl Turn {
    /// Whether it ever waits to be steered.
    pub(super) fn takes_steers(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Steer => true,
                Step::Repeat(_, steps) => any(steps),
                Step::Pass(_)
                | Step::Wait(_)
                | Step::Permission(_)
                | Step::Ask(_)
                | Step::Host { .. }
                | Step::Run(_)
                | Step::Hang
                | Step::Fail(_)
                | Step::LoseResume(_) => false,
            })
        }
        any(&self.steps)
    }
}
