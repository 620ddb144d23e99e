//! The tools of a turn by name: the built-in ones that the grants make useful, and whatever is added.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use outrigger_supervise::driver::Supervisor;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::command::CommandTool;
use super::fetch::WebFetch;
use super::files::{EditFile, ListFiles, ReadFile, SearchFiles, WriteFile};
use super::grants::{Commands, Grants};
use super::script::{RunScript, Scripts};
use super::todo::TodoWrite;
use super::tool::Tool;
use crate::chat::ToolSpec;

/// The names of the built-in tools, in the order in which they are listed.
pub const NAMES: [&str; 9] = [
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "edit_file",
    "run_command",
    "web_fetch",
    "todo_write",
    "run_script",
];

/// What tools need to start processes. Nothing is started before it is needed; clones share what is kept warm.
#[derive(Clone, Debug)]
pub struct Programs {
    supervisor: Supervisor,
    scripts: Option<Arc<Scripts>>,
}

impl Programs {
    /// Programs under `supervisor`; `mustard` is the command of a mustard sidecar that speaks JSON lines, if there is one.
    #[must_use]
    pub fn new(supervisor: Supervisor, mustard: Option<Vec<OsString>>) -> Self {
        let command = mustard.filter(|command| !command.is_empty());
        let scripts = command.map(|command| Arc::new(Scripts::new(supervisor.clone(), command)));
        Self { supervisor, scripts }
    }

    /// What starts them.
    #[must_use]
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }
}

/// Tools by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    /// In the order in which they came.
    order: Vec<String>,
    tools: BTreeMap<String, Arc<dyn Tool>>,
    /// Built-in tools that are not listed, and why.
    missing: BTreeMap<&'static str, &'static str>,
}

impl Toolbox {
    /// The built-in tools that the grants make useful; with `only`, those of them that it names.
    #[must_use]
    pub fn builtin(programs: &Programs, grants: &Grants, only: Option<&[String]>) -> Self {
        let mut toolbox = Self::default();
        for name in NAMES {
            let wanted = only.is_none_or(|only| only.iter().any(|wanted| wanted == name));
            if !wanted {
                toolbox.missing.insert(name, "it is not among the tools of this turn (toolNames, --tools)");
                continue;
            }
            match builtin(name, programs, grants) {
                Ok(tool) => toolbox.add(tool),
                Err(missing) => {
                    toolbox.missing.insert(name, missing);
                }
            }
        }
        toolbox
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.spec().name.clone();
        if self.tools.insert(name.clone(), tool).is_none() {
            self.order.push(name);
        }
    }

    /// What a model is told, in a stable order.
    #[must_use]
    pub fn list(&self) -> Vec<ToolSpec> {
        self.order.iter().filter_map(|name| self.tools.get(name)).map(|tool| tool.spec().clone()).collect()
    }

    /// The names, in the same order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.order
    }

    /// The tool of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).map(Arc::clone)
    }

    /// Why a built-in tool is not there, and what would grant it; `None` for names that are no built-in tools.
    #[must_use]
    pub fn missing(&self, name: &str) -> Option<&'static str> {
        self.missing.get(name).copied()
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.order).finish()
    }
}

/// The tool, or what is missing for it.
fn builtin(name: &str, programs: &Programs, grants: &Grants) -> Result<Arc<dyn Tool>, &'static str> {
    let reads = !grants.readable().is_empty();
    let writes = !grants.write_roots.is_empty();
    match name {
        "read_file" | "list_files" | "search_files" if !reads => Err(NO_READ),
        "write_file" | "edit_file" if !writes => Err(NO_WRITE),
        "run_command" if grants.commands == Commands::Deny => Err(NO_COMMANDS),
        "web_fetch" if grants.hosts.is_empty() => Err(NO_HOSTS),
        "run_script" => match &programs.scripts {
            Some(scripts) => Ok(Arc::new(RunScript::new(Arc::clone(scripts)))),
            None => Err(NO_MUSTARD),
        },
        "read_file" => Ok(Arc::new(ReadFile::new())),
        "list_files" => Ok(Arc::new(ListFiles::new())),
        "search_files" => Ok(Arc::new(SearchFiles::new())),
        "write_file" => Ok(Arc::new(WriteFile::new())),
        "edit_file" => Ok(Arc::new(EditFile::new())),
        "run_command" => Ok(Arc::new(CommandTool::new(programs.supervisor.clone()))),
        "web_fetch" => Ok(Arc::new(WebFetch::new())),
        "todo_write" => Ok(Arc::new(TodoWrite::new())),
        _ => Err("it is not built in"),
    }
}

const NO_READ: &str = "no folder may be read; --read-root DIR or readRoots would grant one";
const NO_WRITE: &str = "no folder may be written; --write-root DIR or writeRoots would grant one";
const NO_COMMANDS: &str = "no command may be run; --commands ask|allow or the member commands would grant it";
const NO_HOSTS: &str = "no host may be reached; --allow-host HOST or allowedHosts would grant one";
const NO_MUSTARD: &str = "this sidecar was started without a program that runs scripts";

/// What a model is told about a built-in tool.
pub(super) fn spec(name: &str, description: &str, parameters: &Value) -> ToolSpec {
    // A value of ours has only string keys, so that it can always be written.
    let parameters =
        to_raw_value(parameters).unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned());
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters, as_given: None }
}
