//! Claude Code: its stream of JSON and its control protocol, over one program for each session that stays warm between turns.
//!
//! `link` is the conversation with one running program, `live` that program. `session` keeps it between turns and starts
//! another one when it has to. `turn` runs a turn over it; `progress` knows when that is over and `outcome` how; `ask` is
//! what the program wants to know meanwhile. `catalogue` asks programs that are thrown away: models, commands, titles.

mod ask;
mod catalogue;
mod frame;
mod launch;
mod link;
mod live;
mod outcome;
mod progress;
mod session;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::catalogue::Catalogue;
use self::session::Session;
use super::process::Programs;
use super::{AgentSession, Change, Failure, Model, Provider, SlashCommand, locate};
use crate::BoxFuture;
use crate::protocol::{SlashQuery, TitleRequest};

/// How Claude Code is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The program, if somebody named it.
    pub program: Option<PathBuf>,
    /// Who tells the model what it is.
    pub system_prompt: SystemPrompt,
}

/// Who tells the model what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemPrompt {
    /// Claude Code, as it does for everybody.
    Own,
    /// Nobody, as hosts of the original had it.
    Empty,
}

/// Claude Code.
pub struct Claude {
    home: Arc<Home>,
    catalogue: Catalogue,
}

/// What everything about Claude Code shares.
struct Home {
    config: Config,
    programs: Programs,
}

impl Claude {
    /// The provider. Nothing is looked for or started yet.
    #[must_use]
    pub fn new(config: Config, programs: Programs) -> Self {
        let home = Arc::new(Home { config, programs });
        Self { catalogue: Catalogue::new(Arc::clone(&home)), home }
    }
}

impl Home {
    /// Where the program is; looked for anew for each start, because it may have been installed meanwhile.
    fn program(&self, cwd: Option<&Path>) -> Result<PathBuf, Failure> {
        let here = std::env::current_dir().ok();
        let here = cwd.or(here.as_deref());
        locate::find(&locate::CLAUDE, self.config.program.as_deref(), here).map(|found| found.path)
    }
}

impl Provider for Claude {
    fn session(&self, session_id: &str) -> Arc<dyn AgentSession> {
        Arc::new(Session::new(Arc::clone(&self.home), session_id))
    }

    fn models<'a>(&'a self, _api_key: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Model>, Failure>> {
        Box::pin(self.catalogue.models())
    }

    fn slash_commands<'a>(
        &'a self,
        query: &'a SlashQuery,
    ) -> BoxFuture<'a, Result<Vec<SlashCommand>, Failure>> {
        Box::pin(self.catalogue.commands(query))
    }

    fn one_shot<'a>(&'a self, request: &'a TitleRequest) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.catalogue.one_shot(request))
    }

    fn configure(&self, _change: &Change) {
        // Turns arrive with their defaults filled in, and nothing else of it is ours.
    }
}
