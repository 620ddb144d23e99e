//! Who does the work: each provider is made when it is first asked for, so that a sidecar is small while nobody asks.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::ProviderName;
use crate::provider::process::Programs;
use crate::provider::{Change, Failure, FailureCode, Provider, acp, claude, codex, scripted};

/// Makes a provider; `None` if nobody has that name.
pub type Make =
    Box<dyn Fn(&ProviderName, &Programs) -> Option<Result<Arc<dyn Provider>, Failure>> + Send + Sync>;

/// Who does the work.
pub struct Providers {
    make: Make,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    providers: HashMap<ProviderName, Arc<dyn Provider>>,
    /// What was set for all of them, for those that are yet to be made.
    set: Change,
}

/// Which programs the real providers use, as far as the configuration says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Claude Code.
    pub claude: Option<PathBuf>,
    /// Codex.
    pub codex: Option<PathBuf>,
    /// Cursor's agent.
    pub cursor: Option<PathBuf>,
    /// Agents that speak ACP: their names and commands.
    pub acp: Vec<(String, Vec<String>)>,
    /// What the scripted provider plays.
    pub script: Option<PathBuf>,
    /// Who tells Claude what it is.
    pub claude_system_prompt: claude::SystemPrompt,
}

impl Settings {
    /// Nothing is said: every program is looked for.
    #[must_use]
    pub fn unsaid() -> Self {
        let claude_system_prompt = claude::SystemPrompt::Own;
        Self { claude: None, codex: None, cursor: None, acp: Vec::new(), script: None, claude_system_prompt }
    }

    fn make(&self, name: &ProviderName, programs: Programs) -> Option<Result<Arc<dyn Provider>, Failure>> {
        Some(match name {
            ProviderName::Claude => {
                let (program, system_prompt) = (self.claude.clone(), self.claude_system_prompt);
                Ok(Arc::new(claude::Claude::new(claude::Config { program, system_prompt }, programs)))
            }
            ProviderName::Codex => {
                let program = self.codex.clone();
                Ok(Arc::new(codex::Codex::new(codex::Config { program }, programs)))
            }
            ProviderName::Cursor => {
                let api_key = std::env::var("CURSOR_API_KEY").ok().filter(|key| !key.is_empty());
                let flavour = acp::Flavour::Cursor { program: self.cursor.clone(), api_key };
                Ok(Arc::new(acp::Acp::new(acp::Config { flavour }, programs)))
            }
            ProviderName::Acp(name) => {
                let command = self.acp_command(name)?;
                let flavour = acp::Flavour::Named { name: name.clone(), command };
                Ok(Arc::new(acp::Acp::new(acp::Config { flavour }, programs)))
            }
            ProviderName::Scripted => {
                self.read_script().map(|script| Arc::new(scripted::Scripted::new(script, programs)) as _)
            }
        })
    }

    /// How the agent of that name is started: as configured, or as everybody starts it.
    fn acp_command(&self, name: &str) -> Option<Vec<String>> {
        let configured = self.acp.iter().rev().find(|(known, _)| known == name);
        configured.map(|(_, command)| command.clone()).or_else(|| acp::known_command(name))
    }

    fn read_script(&self) -> Result<scripted::Script, Failure> {
        let missing = |message: String| Failure::new(FailureCode::NotInstalled, message);
        let path = self.script.as_ref().ok_or_else(|| {
            missing("there is no script to play: start the sidecar with --script FILE".to_owned())
        })?;
        let read = std::fs::read_to_string(path);
        let text = read.map_err(|error| missing(format!("cannot read {}: {error}", path.display())))?;
        scripted::Script::read(&text).map_err(|error| missing(format!("{}: {error}", path.display())))
    }
}

impl Providers {
    /// The real ones.
    #[must_use]
    pub fn real(settings: Settings) -> Self {
        Self::made_by(Box::new(move |name, programs| settings.make(name, programs.clone())))
    }

    /// Providers made by `make`, each once.
    #[must_use]
    pub fn made_by(make: Make) -> Self {
        Self { make, made: Mutex::default() }
    }

    /// The provider of that name.
    pub(super) fn get(&self, name: &ProviderName, programs: &Programs) -> Result<Arc<dyn Provider>, Missing> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = made.providers.get(name) {
            return Ok(Arc::clone(provider));
        }
        let provider = (self.make)(name, programs).ok_or(Missing::Unknown)?.map_err(Missing::Failed)?;
        if made.set != Change::default() {
            provider.configure(&made.set);
        }
        made.providers.insert(name.clone(), Arc::clone(&provider));
        Ok(provider)
    }

    /// A setting of all of them.
    pub(super) fn configure(&self, change: &Change) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let Change { model, permission_mode, cursor_api_key } = change.clone();
        let set = &mut made.set;
        set.model = model.or(set.model.take());
        set.permission_mode = permission_mode.or(set.permission_mode.take());
        set.cursor_api_key = cursor_api_key.or(set.cursor_api_key.take());
        for provider in made.providers.values() {
            provider.configure(change);
        }
    }
}

/// Why there is no provider.
pub(super) enum Missing {
    /// Nobody has that name.
    Unknown,
    /// It cannot be made.
    Failed(Failure),
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Providers").field("made", &made.providers.keys()).finish_non_exhaustive()
    }
}
