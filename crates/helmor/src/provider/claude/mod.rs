//! Claude Code: its stream of JSON and its control protocol, over one program for each session that stays warm between turns.

use std::path::PathBuf;

use super::process::Programs;

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
    config: Config,
    programs: Programs,
}

impl Claude {
    /// The provider. Nothing is looked for or started yet.
    #[must_use]
    pub fn new(config: Config, programs: Programs) -> Self {
        Self { config, programs }
    }
}
