//! A `codex app-server` as a child: found, started, greeted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_supervise::tree::{self, Identity};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Config;
use super::link::{CallError, Link};
use crate::protocol::AgentProxy;
use crate::provider::locate::{self, CODEX};
use crate::provider::process::{Agent, Command, Programs};
use crate::provider::slot::Slot;
use crate::provider::{Failure, FailureCode};

/// How long the server has for an ordinary call. Starting a thread may mean starting MCP servers.
pub(super) const CALL: Duration = Duration::from_secs(20);

/// How long it has between SIGTERM and SIGKILL. It leaves at once, so this is for when it does not.
const TERM: Duration = Duration::from_secs(1);

/// A server that runs. Dropping it kills its tree.
#[derive(Debug)]
pub(super) struct Server {
    /// The conversation.
    pub(super) link: Link,
    /// What was decided at its start and cannot be changed.
    pub(super) place: Place,
    agent: Agent,
}

/// What a server is started with and cannot change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder.
    pub(super) cwd: PathBuf,
    /// How it reaches the network.
    pub(super) proxy: Option<AgentProxy>,
}

/// How often a server is started that finds its own data being made by another one.
const ATTEMPTS: u32 = 3;

/// How long we wait before we try again, times the attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits and lets it be tried again if two servers made Codex's data at the same time, which only one of them survives. Every
/// other failure stays one.
pub(super) async fn again(failure: Failure, attempt: &mut u32) -> Result<(), Failure> {
    if *attempt >= ATTEMPTS || !failure.message.contains("sqlite state runtime") {
        return Err(failure);
    }
    tokio::time::sleep(PAUSE * *attempt).await;
    *attempt += 1;
    Ok(())
}

impl Place {
    /// The place of a request: its folder, or ours.
    pub(super) fn new(cwd: Option<&Path>, proxy: Option<&AgentProxy>) -> Self {
        let here = || std::env::current_dir().unwrap_or_else(|_| "/".into());
        Self { cwd: cwd.map_or_else(here, Path::to_owned), proxy: proxy.cloned() }
    }
}

impl Server {
    /// Starts a server. It has not been greeted yet, and is in `slot` as long as nobody else looks after it.
    pub(super) async fn start(
        name: &str,
        config: &Config,
        programs: &Programs,
        place: Place,
        slot: &Slot,
    ) -> Result<Self, Failure> {
        if !place.cwd.is_dir() {
            let message = format!("{} is not a folder to work in", place.cwd.display());
            return Err(Failure::new(FailureCode::InvalidRequest, message));
        }
        let found = locate::find(&CODEX, config.program.as_deref(), Some(&place.cwd))?;
        let command = Command {
            name: name.to_owned(),
            args: ["app-server", "-c", "notify=[]", "-c", "features.goals=true"].map(OsString::from).into(),
            cwd: Some(place.cwd.clone()),
            set: variables(&found.path, place.proxy.as_ref()),
            unset: Vec::new(),
            program: found.path,
        };
        let (agent, pipes) = slot.start(programs, command).await?;
        Ok(Self { link: Link::open(pipes), place, agent })
    }

    /// Greets it, which must be the first thing.
    pub(super) async fn greet(&self) -> Result<(), Failure> {
        let client =
            json!({ "name": "outrigger", "title": "Outrigger", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
        match self.link.call("initialize", params, CALL).await {
            Ok(_) => self.link.notify("initialized").await.map_err(Failure::from),
            Err(CallError::Gone) => Err(self.last_words("Codex ended before it was ready").await),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls a method and reads its result.
    pub(super) async fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, CallError> {
        let result = self.link.call(method, params, CALL).await?;
        serde_json::from_str(result.get())
            .map_err(|error| CallError::Odd { method: method.to_owned(), why: error.to_string() })
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.agent.is_over()
    }

    /// Why it is of no use.
    pub(super) async fn last_words(&self, problem: &str) -> Failure {
        self.agent.last_words(problem).await
    }

    /// Ends it with everything it started. Returns when nothing is left.
    pub(super) async fn end(&self) {
        self.agent.stop(TERM).await;
    }

    /// Everything that runs in its box now, itself included.
    pub(super) fn processes(&self) -> Vec<Identity> {
        let root = self.agent.child().status().pid;
        root.and_then(|pid| tree::in_box_of(pid).ok()).unwrap_or_default()
    }
}

/// The variables it gets beside ours: the search program that comes with it, and the proxy.
fn variables(program: &Path, proxy: Option<&AgentProxy>) -> Vec<(OsString, OsString)> {
    let mut set = Vec::new();
    let tools = program.parent().and_then(Path::parent).map(|vendor| vendor.join("codex-path"));
    if let Some(tools) = tools.filter(|tools| tools.is_dir()) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let joined = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)));
        // A folder with a colon in its name cannot be on a PATH.
        set.extend(joined.ok().map(|joined| (OsString::from("PATH"), joined)));
    }
    if let Some(AgentProxy::Custom(url)) = proxy {
        let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        set.extend(names.map(|name| (OsString::from(name), OsString::from(url))));
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_program_of_codex_comes_first_on_its_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("codex-path")).unwrap();
        let set = variables(&folder.path().join("bin/codex"), None);
        let [(name, value)] = set.as_slice() else { panic!("{set:?}") };
        assert_eq!(name, "PATH");
        assert_eq!(std::env::split_paths(value).next(), Some(folder.path().join("codex-path")));
        assert_eq!(variables(Path::new("/nowhere/bin/codex"), None), vec![]);
    }

    #[test]
    fn a_proxy_of_the_host_is_told_in_all_six_ways() {
        let set =
            variables(Path::new("/nowhere/bin/codex"), Some(&AgentProxy::Custom("http://p:1".to_owned())));
        assert_eq!(set.len(), 6);
        assert!(set.contains(&("https_proxy".into(), "http://p:1".into())));
        assert_eq!(variables(Path::new("/nowhere/bin/codex"), Some(&AgentProxy::System)), vec![]);
    }
}
