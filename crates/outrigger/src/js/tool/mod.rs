//! What stands behind the capabilities of a script: a command, a fixed answer, a tool of an MCP server, or a person.

mod command;
mod mcp;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use outrigger_mustard::host::HostError;
use outrigger_mustard::host::Plain;
use outrigger_supervise::driver::Supervisor;

pub(crate) use command::Shell;
pub(crate) use mcp::Server;

use super::args::{AllowArg, McpArg};

/// Who answers one capability.
#[derive(Clone)]
pub(crate) enum Tool {
    /// A command: arguments as JSON on its standard input, the answer as JSON on its standard output.
    Command(Arc<Shell>),
    /// Always the same value.
    Fixed(Plain),
    /// A tool of an MCP server.
    Mcp {
        server: Arc<Server>,
        /// The tool's name there.
        name: String,
    },
    /// Nobody here: the run stops at the call and is kept.
    Person,
}

/// Every capability of a script, by name.
pub(crate) type Tools = BTreeMap<String, Tool>;

/// The tools that the arguments name. Starts the MCP servers among them.
pub(crate) async fn open(
    allow: &[AllowArg],
    servers: &[McpArg],
    supervisor: &Supervisor,
) -> anyhow::Result<Tools> {
    let mut tools = Tools::new();
    for given in allow {
        let tool = match given {
            AllowArg::Command { name, command } => {
                Tool::Command(Arc::new(Shell::new(name, command, supervisor)?))
            }
            AllowArg::Fixed { value, .. } => Tool::Fixed(value.clone()),
            AllowArg::Person { .. } => Tool::Person,
        };
        add(&mut tools, given.name().to_owned(), tool)?;
    }
    for given in servers {
        let command = &given.command;
        let server = Server::start(command, supervisor);
        let (server, names) = server.await.with_context(|| format!("--mcp {command}"))?;
        let server = Arc::new(server);
        for name in names {
            let granted = mcp::granted_name(given.prefix.as_deref(), &name);
            add(&mut tools, granted, Tool::Mcp { server: Arc::clone(&server), name })?;
        }
    }
    Ok(tools)
}

fn add(tools: &mut Tools, name: String, tool: Tool) -> anyhow::Result<()> {
    if tools.contains_key(&name) {
        bail!("the capability `{name}` is given twice; give MCP servers a prefix (--mcp PREFIX=COMMAND)");
    }
    tools.insert(name, tool);
    Ok(())
}

impl Tool {
    /// Answers a call. What goes wrong is an error that the script can catch.
    pub(crate) async fn answer(&self, args: Vec<Plain>) -> Result<Plain, HostError> {
        match self {
            Tool::Command(shell) => shell.answer(&args).await,
            Tool::Fixed(value) => Ok(value.clone()),
            Tool::Mcp { server, name } => server.call(name, args).await,
            Tool::Person => Err(failed("NoAnswer", "nobody is here to answer".to_owned(), None)),
        }
    }
}

/// An error for the script.
fn failed(name: &str, message: String, code: Option<String>) -> HostError {
    HostError { name: name.to_owned(), message, code, details: None }
}
