//! Tools of MCP servers: a server is started when it is first needed, kept, and started again when it is gone.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_mustard::host::{HostError, Plain};
use outrigger_supervise::driver::Supervisor;
use tokio::sync::Mutex;

use super::host_error;
use crate::config::nearest;
use crate::js::tool::Server;

/// The servers of a configuration while it is read.
pub(super) struct Servers {
    supervisor: Supervisor,
    known: Vec<Arc<Kept>>,
}

/// A tool of a server.
pub(super) struct ServerTool {
    server: Arc<Kept>,
    tool: String,
}

/// A server that runs, or will.
struct Kept {
    command: String,
    cwd: PathBuf,
    supervisor: Supervisor,
    running: Mutex<Option<Running>>,
}

#[derive(Clone)]
struct Running {
    server: Arc<Server>,
    tools: Arc<[String]>,
}

impl Servers {
    pub(super) fn new(supervisor: &Supervisor) -> Self {
        Self { supervisor: supervisor.clone(), known: Vec::new() }
    }

    /// A tool; the server is the same for the same command in the same folder.
    pub(super) fn tool(&mut self, command: String, cwd: PathBuf, tool: String) -> ServerTool {
        let same = |kept: &&Arc<Kept>| kept.command == command && kept.cwd == cwd;
        let server = match self.known.iter().find(same) {
            Some(kept) => Arc::clone(kept),
            None => {
                let supervisor = self.supervisor.clone();
                let kept = Arc::new(Kept { command, cwd, supervisor, running: Mutex::new(None) });
                self.known.push(Arc::clone(&kept));
                kept
            }
        };
        ServerTool { server, tool }
    }
}

impl ServerTool {
    pub(super) async fn call(&self, name: &str, args: Vec<Plain>) -> Result<Plain, HostError> {
        let Running { server, tools } = self.server.running(name).await?;
        if !tools.contains(&self.tool) {
            let hint = match nearest(&self.tool, tools.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has: {}", tools.join(", ")),
            };
            let message = format!("`{name}`: the MCP server has no tool `{}`; {hint}", self.tool);
            return Err(host_error("McpError", message, "no_such_tool"));
        }
        server.call(&self.tool, args).await
    }

    /// The next call begins with a fresh server.
    pub(super) fn give_up(&self) {
        // Whoever holds the lock is starting a server right now, which is as good.
        if let Ok(mut running) = self.server.running.try_lock() {
            *running = None;
        }
    }
}

impl Kept {
    /// The server, started if it has to be. Whoever comes meanwhile waits for the same one.
    async fn running(&self, name: &str) -> Result<Running, HostError> {
        let mut running = self.running.lock().await;
        if let Some(kept) = running.as_ref().filter(|kept| kept.server.is_alive()) {
            return Ok(kept.clone());
        }
        *running = None;
        let started = Server::start_in(&self.command, &self.cwd, &self.supervisor).await;
        let (server, tools) = started.map_err(|error| {
            let message = format!("`{name}`: the MCP server `{}` is not there: {error:#}", self.command);
            host_error("McpError", message, "no_server")
        })?;
        Ok(running.insert(Running { server: Arc::new(server), tools: tools.into() }).clone())
    }
}

#[cfg(test)]
impl ServerTool {
    pub(super) fn is_on_the_server_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
    }
}
