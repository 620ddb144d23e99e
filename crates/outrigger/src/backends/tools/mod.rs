//! What scripts of the daemon can call: built-in tools and those of the configuration.
//!
//! A tool is known by its name; what a script calls it is the script's business. Each says two things about itself beside what it
//! does: whether a person approves every call, and whether a call that a killed daemon had begun may simply be made again.

mod mcp;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_mustard::host::{HostError, Plain};
use outrigger_supervise::driver::Supervisor;
use serde_json::Value;

use self::mcp::{ServerTool, Servers};
use crate::config::nearest;
use crate::engine::Millis;
use crate::js::json::{FromJson, Json};
use crate::js::tool::Shell;

/// The longest that `wait` waits.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a tool may take for which nobody said how long.
pub(crate) const USUAL_WITHIN: Duration = Duration::from_secs(600);

/// A tool of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolSpec {
    /// What requests name it.
    pub(crate) name: String,
    /// In a sentence; empty for a sentence of ours.
    pub(crate) about: String,
    pub(crate) kind: ToolKind,
    pub(crate) approval: ApprovalRule,
    pub(crate) repeat: Repeat,
    /// How long one call may take.
    pub(crate) within: Duration,
}

/// What a tool is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolKind {
    /// A command line of the shell: the arguments as a JSON array on its standard input, the answer as JSON on its standard output.
    Command {
        command: String,
        /// Where it runs.
        cwd: PathBuf,
    },
    /// A tool of an MCP server. Tools with the same command and folder share the server.
    Mcp {
        /// The command line of the server.
        command: String,
        cwd: PathBuf,
        /// What the server calls it.
        tool: String,
    },
    /// Always this.
    Value(Value),
}

/// Whether a person approves every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalRule {
    Never,
    Always,
}

/// What becomes of a call that was begun and of which nobody knows whether it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It is made again.
    Safe,
    /// A person is asked.
    Ask,
}

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolsError {
    #[error("the tool `{name}` is built in; give yours another name")]
    BuiltIn { name: String },
    #[error("there are two tools `{name}`")]
    Twice { name: String },
    #[error("the tool `{name}` cannot be: {why}")]
    Wrong { name: String, why: String },
}

/// All tools, by name. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tools {
    table: Arc<BTreeMap<String, Tool>>,
}

/// A tool.
pub(crate) struct Tool {
    pub(crate) about: String,
    pub(crate) approval: ApprovalRule,
    pub(crate) repeat: Repeat,
    within: Duration,
    action: Action,
}

enum Action {
    Print,
    Now,
    Wait,
    Value(Value),
    Command(Box<Shell>),
    Mcp(ServerTool),
    #[cfg(test)]
    Played(Played),
}

/// A tool that a test plays.
#[cfg(test)]
pub(crate) type Played =
    Box<dyn Fn(Vec<Plain>) -> crate::engine::BoxFuture<'static, Result<Plain, HostError>> + Send + Sync>;

/// What a tool answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) result: Result<Plain, HostError>,
    /// What it wants people to read.
    pub(crate) aloud: Option<String>,
}

impl Tools {
    /// The built-in tools and these.
    pub(crate) fn new(specs: Vec<ToolSpec>, supervisor: &Supervisor) -> Result<Self, ToolsError> {
        let mut table = built_in();
        let built_in: Vec<String> = table.keys().cloned().collect();
        let mut servers = Servers::new(supervisor);
        for spec in specs {
            let ToolSpec { name, about, kind, approval, repeat, within } = spec;
            if built_in.contains(&name) {
                return Err(ToolsError::BuiltIn { name });
            }
            if table.contains_key(&name) {
                return Err(ToolsError::Twice { name });
            }
            let about = if about.is_empty() { kind.about() } else { about };
            let action = match kind {
                ToolKind::Command { command, cwd } => shell(&name, &command, &cwd, supervisor)?,
                ToolKind::Mcp { command, cwd, tool } => Action::Mcp(servers.tool(command, cwd, tool)),
                ToolKind::Value(value) => Action::Value(value),
            };
            table.insert(name, Tool { about, approval, repeat, within, action });
        }
        Ok(Self { table: Arc::new(table) })
    }

    /// Every tool, with a sentence.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        self.table.iter().map(|(name, tool)| (name.clone(), tool.about.clone())).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.table.get(name)
    }

    /// The tool whose name is closest to this one.
    pub(crate) fn near(&self, name: &str) -> Option<&str> {
        nearest(name, self.table.keys().map(String::as_str))
    }

    /// Calls a tool. What goes wrong is an error that the script can catch. Dropping the future ends what it started.
    pub(crate) async fn call(&self, name: &str, args: Vec<Plain>) -> Said {
        let Some(tool) = self.table.get(name) else {
            let message = format!("there is no tool `{name}` any more");
            return Said::thrown(host_error("ToolError", message, "no_such_tool"));
        };
        match tokio::time::timeout(tool.within, tool.action.call(name, args)).await {
            Ok(said) => said,
            Err(_) => {
                tool.action.give_up();
                let message = format!("`{name}` did not answer within {} ms", tool.within.as_millis());
                Said::thrown(host_error("TimeoutError", message, "timeout"))
            }
        }
    }
}

#[cfg(test)]
impl Tools {
    /// The same with a tool that the test plays.
    pub(crate) fn with(mut self, name: &str, approval: ApprovalRule, repeat: Repeat, played: Played) -> Self {
        let table = Arc::get_mut(&mut self.table).expect("nobody else has them yet");
        let (about, action) = ("played".to_owned(), Action::Played(played));
        table.insert(name.to_owned(), Tool { about, approval, repeat, within: USUAL_WITHIN, action });
        self
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.table.keys()).finish()
    }
}

impl ToolKind {
    /// What can be said of it when nobody said anything.
    fn about(&self) -> String {
        match self {
            ToolKind::Command { command, .. } => format!("runs `{}`", crate::say::short(command)),
            ToolKind::Mcp { command, tool, .. } => {
                format!("`{tool}` of the MCP server `{}`", crate::say::short(command))
            }
            ToolKind::Value(value) => format!("always {}", crate::say::short(&value.to_string())),
        }
    }
}

impl Said {
    fn value(value: Plain) -> Self {
        Self { result: Ok(value), aloud: None }
    }

    fn thrown(error: HostError) -> Self {
        Self { result: Err(error), aloud: None }
    }
}

impl Action {
    async fn call(&self, name: &str, args: Vec<Plain>) -> Said {
        match self {
            Action::Print => {
                let words: Vec<String> = args.iter().map(printed).collect();
                Said { result: Ok(Plain::Null), aloud: Some(words.join(" ")) }
            }
            Action::Now => Said::value(Plain::Number(Millis::now().0 as f64)),
            Action::Wait => wait(&args).await,
            Action::Value(value) => Said::value(plain(value)),
            Action::Command(shell) => Said { result: shell.answer(&args).await, aloud: None },
            Action::Mcp(tool) => Said { result: tool.call(name, args).await, aloud: None },
            #[cfg(test)]
            Action::Played(played) => Said { result: played(args).await, aloud: None },
        }
    }

    /// It did not answer in time, and whoever it runs on may hang.
    fn give_up(&self) {
        match self {
            Action::Mcp(tool) => tool.give_up(),
            Action::Print | Action::Now | Action::Wait | Action::Value(_) | Action::Command(_) => {}
            #[cfg(test)]
            Action::Played(_) => {}
        }
    }
}

fn built_in() -> BTreeMap<String, Tool> {
    let tool = |about: &str, action| Tool {
        about: about.to_owned(),
        approval: ApprovalRule::Never,
        repeat: Repeat::Safe,
        // Longer than the longest wait.
        within: LONGEST_WAIT + Duration::from_secs(1),
        action,
    };
    BTreeMap::from([
        ("print".to_owned(), tool("print(...) shows its arguments in the run's timeline", Action::Print)),
        ("now".to_owned(), tool("now() gives the milliseconds since 1970", Action::Now)),
        ("wait".to_owned(), tool("wait(ms) waits, at most a minute", Action::Wait)),
    ])
}

fn shell(name: &str, command: &str, cwd: &Path, supervisor: &Supervisor) -> Result<Action, ToolsError> {
    let shell = Shell::in_folder(name, command, cwd, supervisor);
    let wrong = |error: anyhow::Error| ToolsError::Wrong { name: name.to_owned(), why: format!("{error:#}") };
    Ok(Action::Command(Box::new(shell.map_err(wrong)?)))
}

/// Text as it is, everything else as JSON.
fn printed(value: &Plain) -> String {
    match value {
        Plain::String(text) => text.clone(),
        other => Json(other).to_string(),
    }
}

async fn wait(args: &[Plain]) -> Said {
    let longest = LONGEST_WAIT.as_millis();
    match args {
        [Plain::Number(ms)] if *ms >= 0.0 && *ms <= longest as f64 => {
            tokio::time::sleep(Duration::from_secs_f64(ms / 1000.0)).await;
            Said::value(Plain::Null)
        }
        _ => {
            let message = format!("wait(ms) takes a number of milliseconds, 0 to {longest}");
            Said::thrown(host_error("RangeError", message, "range"))
        }
    }
}

/// A value of JSON for a script.
pub(crate) fn plain(value: &Value) -> Plain {
    use serde::Deserialize;
    // Whatever JSON is, a script can hold.
    FromJson::deserialize(value).map_or(Plain::Null, |FromJson(plain)| plain)
}

fn host_error(name: &str, message: String, code: &str) -> HostError {
    HostError { name: name.to_owned(), message, code: Some(code.to_owned()), details: None }
}

#[cfg(test)]
mod tests;
