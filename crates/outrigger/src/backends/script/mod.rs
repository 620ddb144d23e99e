//! Scripts as runs: the log of the run is the journal, and a script that waits is a snapshot.
//!
//! # Theory of operation
//!
//! Nothing that a script may call is called by its child: every name parks. So each step of a script ends at its next host calls, with a
//! snapshot that is kept and noted in the log ([`Entry::Suspended`](crate::runs::entry::Entry)) *before* any of them is made. Then
//! [`decide`] says what to do with each: call a tool, give a value, ask a person, refuse. A `tool_call` is in the log before its tool is
//! begun, and a `tool_result` before the script hears of it. When only people are left the attempt ends *at rest*: nothing is held.
//!
//! A daemon that is killed anywhere is followed by one that reads the same log: what has a result is not called again, what was begun
//! and has none is called again if that is safe and is a question to a person if not, and what was asked is not asked twice.
//!
//! The clock of a script stands still at the moment when the run was submitted, and its randomness is seeded, so that a replay is the
//! same; the built-in tool `now` asks the real clock.

mod course;
mod decide;
mod end;
mod host;
mod journal;
mod outcome;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_abp::protocol::{Capability, Manifest, SupportLevel};
use outrigger_mustard::host::{Fanout, Host, Limits, RunRules};
use outrigger_policy::{Policy, PolicyProfile, ProfileError};

use self::course::Course;
pub(crate) use self::host::host;
use super::tools::Tools;
use crate::engine::BoxFuture;
use crate::runs::request::{ScriptLimits, ToolChoice};
use crate::runs::{Attempt, Backend, BackendView, Concluded, Health, NewRun, RequestError};

/// What the backend is called.
pub(crate) const NAME: &str = "mustard";

/// The most names that a script may call.
const MAX_TOOLS: usize = 256;

/// The longest name.
const MAX_NAME: usize = 128;

/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(600);

/// The largest heap.
const LARGEST_HEAP: u64 = 128 << 20;

/// A step is all that a child ever does at once, and the step has its own limit; so this is for ever.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The backend of scripts.
#[derive(Debug)]
pub(crate) struct Scripts {
    host: Host,
    tools: Tools,
    /// What no script may do, whatever its order says.
    house: Policy,
}

impl Scripts {
    /// Scripts that may do what their orders let them.
    pub(crate) fn new(host: Host, tools: Tools) -> Self {
        let unrestricted = PolicyProfile::unrestricted().compile();
        // Empty lists hold nothing that could be wrong.
        let Ok(house) = unrestricted else { unreachable!("empty lists are a policy") };
        Self { host, tools, house }
    }

    /// The same, and what the house forbids or wants a person for counts too.
    ///
    /// # Errors
    /// When the policy is none.
    pub(crate) fn under(self, house: &PolicyProfile) -> Result<Self, ProfileError> {
        Ok(Self { house: house.compile()?, ..self })
    }
}

impl Backend for Scripts {
    fn name(&self) -> &str {
        NAME
    }

    fn resumes(&self) -> bool {
        true
    }

    fn check(&self, new: &NewRun) -> Result<(), RequestError> {
        if new.script.is_none() {
            let message = "`mustard` runs scripts: give `script`, or name another backend for a `task`";
            return Err(RequestError::at("script", message));
        }
        if new.tools.len() > MAX_TOOLS {
            let message = format!("a script may be given {MAX_TOOLS} tools, not {}", new.tools.len());
            return Err(RequestError::at("tools", message));
        }
        for (name, choice) in &new.tools {
            self.check_tool(name, choice)?;
        }
        for name in new.inputs.keys() {
            let field = format!("inputs.{name}");
            if !is_identifier(name) {
                return Err(RequestError::at(&field, format!("`{name}` is not a name in JavaScript")));
            }
            if new.tools.contains_key(name) {
                return Err(RequestError::at(&field, format!("`{name}` is a tool already")));
            }
        }
        check_limits(&new.limits)
    }

    fn look(&self) -> BoxFuture<'_, BackendView> {
        Box::pin(async move {
            let native = |word: &str| (word.to_owned(), "native".to_owned());
            let mut capabilities: BTreeMap<String, String> =
                ["suspend", "approvals", "resume", "fork", "replay", "step"].map(native).into();
            let manifest = manifest().0;
            capabilities.extend(
                manifest.iter().map(|(what, level)| (what.as_str().to_owned(), level.word().to_owned())),
            );
            BackendView {
                name: NAME.to_owned(),
                dialect: "mustard".to_owned(),
                about: "sandboxed JavaScript that costs nothing while it waits".to_owned(),
                health: Health::Ready,
                capabilities,
                at_once: 0,
                running: 0,
                queued: 0,
            }
        })
    }

    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
        Box::pin(Course::run(self, attempt))
    }
}

impl Scripts {
    fn check_tool(&self, name: &str, choice: &ToolChoice) -> Result<(), RequestError> {
        let field = format!("tools.{name}");
        if !is_identifier(name) {
            return Err(RequestError::at(&field, format!("`{name}` is not a name in JavaScript")));
        }
        let tool = match choice {
            ToolChoice::Tool(tool) | ToolChoice::Approved(tool) => tool,
            ToolChoice::Value(value) => {
                let kept = outcome::kept(&super::tools::plain(value));
                return kept.map(drop).map_err(|why| RequestError::at(&field, format!("the value {why}")));
            }
            ToolChoice::Person => return Ok(()),
        };
        if self.tools.find(tool).is_some() {
            return Ok(());
        }
        let hint = match self.tools.near(tool) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let names: Vec<String> = self.tools.list().into_iter().map(|(name, _)| name).collect();
                format!("there are: {}", names.join(", "))
            }
        };
        Err(RequestError::at(&field, format!("there is no tool `{tool}`; {hint}")))
    }
}

fn check_limits(limits: &ScriptLimits) -> Result<(), RequestError> {
    let longest = u64::try_from(LONGEST_STEP.as_millis()).unwrap_or(u64::MAX);
    if limits.step_ms.is_some_and(|ms| ms == 0 || ms > longest) {
        return Err(RequestError::at("limits.step_ms", format!("`step_ms` may be 1 to {longest}")));
    }
    if limits.heap_bytes.is_some_and(|bytes| bytes > LARGEST_HEAP) {
        return Err(RequestError::at(
            "limits.heap_bytes",
            format!("`heap_bytes` may be {LARGEST_HEAP} at most"),
        ));
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    name.len() <= MAX_NAME
        && name.starts_with(begins)
        && name.chars().all(|c| begins(c) || c.is_ascii_digit())
}

/// What a script can do, in the words of the contract.
fn manifest() -> Manifest {
    use Capability::{
        Checkpointing, CodeExecution, FunctionCalling, SeedDeterminism, SessionFork, SessionResume,
    };
    let native = |capability| (capability, SupportLevel::Native);
    [Checkpointing, CodeExecution, FunctionCalling, SeedDeterminism, SessionFork, SessionResume]
        .map(native)
        .into_iter()
        .collect()
}

/// How a step is conducted.
fn rules(limits: &ScriptLimits) -> RunRules {
    RunRules {
        limits: Limits {
            instruction_budget: limits.instructions,
            heap_limit_bytes: limits.heap_bytes,
            call_depth_limit: limits.call_depth,
            ..Limits::DEFAULTS
        },
        step_within: limits.step_ms.map_or(end::STEP_WITHIN, Duration::from_millis),
        total_within: FOR_EVER,
        fanout: Fanout::AsTheyCome,
        ..RunRules::usual()
    }
}
