//! Agents that speak the Agent Client Protocol: Cursor's, and every other one that somebody names.
//!
//! One driver for all of them. A session of the host is a program with one session in it; the program stays warm between turns.
//! What an agent offers (modes, models, earlier sessions, pictures) is used, and what it does not offer is not pretended.

mod ask;
mod ear;
mod event;
mod files;
mod link;
mod once;
mod open;
mod options;
mod program;
mod request;
mod session;
mod settings;
mod skills;
mod turn;

pub use program::{known_command, known_names};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::ear::Lasting;
use super::process::Programs;
use super::{AgentSession, Change, Failure, Model, Provider, SlashCommand};
use crate::BoxFuture;
use crate::protocol::{SlashQuery, TitleRequest};

/// How an agent is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which agent.
    pub flavour: Flavour,
}

/// Which agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Cursor's, `cursor` on the wire.
    Cursor {
        /// The program; looked for if absent.
        program: Option<PathBuf>,
        /// The key, if the host has one; else the agent's own login counts.
        api_key: Option<String>,
    },
    /// Another one, `acp:NAME` on the wire.
    Named {
        /// Its name.
        name: String,
        /// The program and its arguments. Empty: what [`known_command`] says.
        command: Vec<String>,
    },
}

impl Flavour {
    /// What stands before the slash in the types of its events.
    fn family(&self) -> &'static str {
        match self {
            Self::Cursor { .. } => "cursor",
            Self::Named { .. } => "acp",
        }
    }

    /// What people call it.
    fn title(&self) -> String {
        match self {
            Self::Cursor { .. } => "Cursor's agent".to_owned(),
            Self::Named { name, .. } => format!("the agent `{name}`"),
        }
    }

    /// What its programs are called.
    fn program_name(&self, session: &str) -> String {
        match self {
            Self::Cursor { .. } => format!("cursor:{session}"),
            Self::Named { name, .. } => format!("acp:{name}:{session}"),
        }
    }
}

/// Agents that speak ACP, as a provider.
pub struct Acp {
    shared: Arc<Shared>,
}

/// What all sessions of one provider share.
struct Shared {
    config: Config,
    programs: Programs,
    memory: Mutex<Memory>,
}

/// What was last said by the host, and by an agent of any session.
struct Memory {
    api_key: Option<String>,
    models: Option<Vec<Model>>,
    /// By the folder in which it was said: projects have commands of their own.
    commands: HashMap<PathBuf, Vec<SlashCommand>>,
}

/// For how many folders commands are remembered.
const FOLDERS: usize = 64;

impl Memory {
    /// Takes over what an agent said in this folder.
    fn learn(&mut self, folder: &Path, lasting: Lasting) {
        self.models = lasting.options.models().or(self.models.take());
        if let Some(commands) = lasting.commands {
            if self.commands.len() >= FOLDERS {
                self.commands.clear();
            }
            self.commands.insert(folder.to_owned(), commands);
        }
    }
}

impl Acp {
    /// Nothing is started or looked for yet.
    #[must_use]
    pub fn new(config: Config, programs: Programs) -> Self {
        let api_key = match &config.flavour {
            Flavour::Cursor { api_key, .. } => api_key.clone(),
            Flavour::Named { .. } => None,
        };
        let memory = Mutex::new(Memory { api_key, models: None, commands: HashMap::new() });
        Self { shared: Arc::new(Shared { config, programs, memory }) }
    }
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Acp {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        Arc::new(session::Session::new(session_id, Arc::clone(&self.shared)))
    }

    fn models<'a>(&'a self, api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        Box::pin(once::models(&self.shared, api_key))
    }

    fn slash_commands<'a>(
        &'a self,
        query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        Box::pin(once::slash_commands(&self.shared, query))
    }

    fn one_shot<'a>(&'a self, request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(once::one_shot(&self.shared, request))
    }

    fn configure(&self, change: &Change) {
        if let Some(api_key) = &change.cursor_api_key {
            self.shared.memory().api_key.clone_from(api_key);
        }
    }
}
