//! The servers of all sessions: who is there, who has to be started, who is not needed any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::message::Listed;
use super::name::Names;
use super::server::Server;
use super::spec::McpSpec;
use super::tool::McpTool;
use crate::chat::ToolSpec;
use crate::net::http::Http;
use crate::tools::Tool;

/// A server that nobody used for this long is ended.
const IDLE: Duration = Duration::from_secs(600);

/// The servers of all sessions. Clones are the same servers; when the last one goes, so do they.
#[derive(Clone)]
pub struct Servers {
    shared: Arc<Shared>,
}

struct Shared {
    supervisor: Supervisor,
    http: Http,
    table: Mutex<Table>,
}

/// Who there is.
#[derive(Default)]
struct Table {
    /// By record and name.
    servers: BTreeMap<(String, String), Arc<Server>>,
    /// Whether somebody looks for idle ones.
    sweeping: bool,
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
        let table = Mutex::new(Table::default());
        Self { shared: Arc::new(Shared { supervisor, http, table }) }
    }

    /// The tools of these servers for a record: those that are not there are started or reached, all at the same time.
    /// One that cannot be is told in the offer and is no reason to go without the others.
    pub async fn tools_of(&self, record: &str, specs: &[McpSpec]) -> Offer {
        let mut asked = JoinSet::new();
        for (index, spec) in specs.iter().enumerate() {
            let server = self.server_of(record, spec);
            asked.spawn(async move {
                let began = Instant::now();
                let found = server.tools().await;
                (index, server, found, began.elapsed())
            });
        }
        let mut found = Vec::new();
        while let Some(answer) = asked.join_next().await {
            // A task of ours does not panic, and is aborted only with all others.
            found.extend(answer);
        }
        found.sort_by_key(|(index, ..)| *index);
        let mut names = Names::default();
        let mut offer = Offer { tools: Vec::new(), servers: Vec::new() };
        for (_, server, found, took) in found {
            let name = server.name().to_owned();
            offer.servers.push(match found {
                Ok((listed, since)) => {
                    offer.tools.extend(listed.iter().map(|tool| tool_of(&server, tool, &mut names)));
                    Connected { name, since, took, tools: listed.len(), error: None }
                }
                Err(problem) => {
                    let error = Some(McpError { server: name.clone(), problem });
                    Connected { name, since: Since::Now, took, tools: 0, error }
                }
            });
        }
        offer
    }

    /// How the servers are that are in use.
    #[must_use]
    pub fn health(&self) -> Vec<ServerHealth> {
        let table = self.shared.table();
        let mut health: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for server in table.servers.values() {
            let problem = health.entry(server.name()).or_default();
            *problem = problem.take().or_else(|| server.problem());
        }
        health.into_iter().map(|(name, problem)| ServerHealth { name: name.to_owned(), problem }).collect()
    }

    /// Ends all servers in good order.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut self.shared.table().servers);
        close_all(servers.into_values()).await;
    }

    /// The server of a record, made if there is none, or if it is another one by now.
    fn server_of(&self, record: &str, spec: &McpSpec) -> Arc<Server> {
        let shared = &self.shared;
        let key = (record.to_owned(), spec.name.clone());
        let mut table = shared.table();
        if !table.sweeping {
            table.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(shared)));
        }
        match table.servers.get(&key) {
            Some(server) if server.spec() == spec => Arc::clone(server),
            Some(_) | None => {
                let server = Server::new(spec.clone(), shared.supervisor.clone(), shared.http.clone());
                let server = Arc::new(server);
                table.servers.insert(key, Arc::clone(&server));
                server
            }
        }
    }
}

impl Shared {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out who is idle, and says when to look again; `None` when there is nobody left.
    fn take_idle(&self, now: Instant) -> (Vec<Arc<Server>>, Option<Instant>) {
        let mut table = self.table();
        let mut next = None;
        let mut idle = Vec::new();
        table.servers.retain(|_, server| {
            let over = server.idle_since().map_or(now, |since| since) + IDLE;
            if over <= now {
                idle.push(Arc::clone(server));
                return false;
            }
            next = Some(next.map_or(over, |next: Instant| next.min(over)));
            true
        });
        table.sweeping = next.is_some();
        (idle, next)
    }
}

/// Ends servers that nobody uses any more, as long as there are any.
async fn sweep(shared: Weak<Shared>) {
    let mut next = Instant::now() + IDLE;
    loop {
        tokio::time::sleep_until(next).await;
        let Some(shared) = shared.upgrade() else { return };
        let (idle, again) = shared.take_idle(Instant::now());
        drop(shared);
        close_all(idle.into_iter()).await;
        match again {
            Some(again) => next = again,
            None => return,
        }
    }
}

async fn close_all(servers: impl Iterator<Item = Arc<Server>>) {
    let mut closing = JoinSet::new();
    for server in servers {
        closing.spawn(async move { server.close().await });
    }
    while closing.join_next().await.is_some() {}
}

fn tool_of(server: &Arc<Server>, listed: &Listed, names: &mut Names) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: names.give(server.name(), &listed.name),
        description: listed.description(),
        parameters: listed.schema(),
        as_given: None,
    };
    Arc::new(McpTool { server: Arc::clone(server), name: listed.name.clone(), spec, mode: listed.mode() })
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("health", &self.health()).finish()
    }
}
