//! What a project writes down once: its backends, where receipts go, how the daemon is. `outrigger.toml` is ours;
//! `backplane.toml` is read as other control planes left it.

mod backends;
pub(crate) mod keys;
mod nearest;
mod sections;
mod tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

pub(crate) use backends::{AGENTS, Agent, Backend, Chat, Command};
pub(crate) use nearest::nearest;
pub(crate) use sections::{AT_ONCE, ExtensionsSection, RunsSection, Server, Store};

use self::backends::{Read, What};
use self::keys::{Dialect, Wrong};
use crate::backends::tools::ToolSpec;

/// The longest configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where it was read; none if nothing is written down.
    pub(crate) source: Option<Source>,
    /// The backend that is used when none is named.
    pub(crate) default_backend: Option<String>,
    /// Where receipts go.
    pub(crate) receipts_dir: Option<PathBuf>,
    /// The policy that is used when none is named.
    pub(crate) policy: Option<PathBuf>,
    /// The backends by their names.
    pub(crate) backends: BTreeMap<String, Backend>,
    /// The backends of type `steerable`, by their names. Only the daemon runs them.
    pub(crate) talks: BTreeMap<String, Chat>,
    /// Who `outrigger chat` talks to.
    pub(crate) chat: Chat,
    /// What scripts of the daemon can call.
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) runs: RunsSection,
    pub(crate) extensions: ExtensionsSection,
    at_once: BTreeMap<String, usize>,
}

/// A file, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The file as it is written. Which members each dialect of it has is decided before ([`keys`]).
#[derive(Default, Deserialize)]
struct Written {
    default_backend: Option<String>,
    receipts_dir: Option<PathBuf>,
    policy: Option<PathBuf>,
    policy_profiles: Option<Vec<PathBuf>>,
    #[serde(default)]
    backends: BTreeMap<String, backends::Written>,
    #[serde(default)]
    chat: Chat,
    #[serde(default)]
    tools: BTreeMap<String, tools::Written>,
    #[serde(default)]
    server: sections::WrittenServer,
    #[serde(default)]
    store: sections::WrittenStore,
    #[serde(default)]
    runs: sections::WrittenRuns,
    #[serde(default)]
    extensions: sections::WrittenExtensions,
}

impl Config {
    /// The file that was named, or the one in this folder: `outrigger.toml`, else `backplane.toml`; else the user's own.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Config> {
        if let Some(path) = named {
            return Config::read(path);
        }
        let here = ["outrigger.toml", "backplane.toml"].map(PathBuf::from);
        for path in here.into_iter().chain(users_own()) {
            if path.try_exists().with_context(|| format!("{} cannot be looked at", path.display()))? {
                return Config::read(&path);
            }
        }
        Config::of(Written::default(), None, Path::new("/"))
    }

    /// The file at a path.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Config> {
        let name = path.display();
        let length = std::fs::metadata(path).with_context(|| format!("{name} cannot be read"))?.len();
        if length > MAX_BYTES {
            bail!("{name} has {length} bytes; a configuration may have {MAX_BYTES}");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
        let dialect = match path.file_name().is_some_and(|name| name == "backplane.toml") {
            true => Dialect::Backplane,
            false => Dialect::Outrigger,
        };
        Config::parse(&text, dialect, path).with_context(|| format!("{name} is not a configuration"))
    }

    fn parse(text: &str, dialect: Dialect, path: &Path) -> anyhow::Result<Config> {
        keys::check(text, dialect)?;
        let written: Written = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| keys::line(text, span.start));
            anyhow!("line {line}: {}", error.message())
        })?;
        let absolute = std::path::absolute(path).context("the current folder cannot be found")?;
        let source = Source { path: absolute.clone(), text: text.to_owned() };
        // An original control plane reads its paths from where it is started, which is where the file is.
        Config::of(written, Some(source), absolute.parent().unwrap_or(Path::new("/")))
    }

    fn of(written: Written, source: Option<Source>, folder: &Path) -> anyhow::Result<Config> {
        let text = source.as_ref().map_or("", |source| source.text.as_str());
        let said = |wrong: Wrong| wrong.say(text);
        let place = |path: PathBuf| folder.join(path);
        let profiles = written.policy_profiles.unwrap_or_default();
        if profiles.len() > 1 {
            bail!("`policy_profiles` names {} files; one policy applies to a run", profiles.len());
        }
        let (mut backends, mut talks) = (BTreeMap::new(), BTreeMap::new());
        let mut at_once = BTreeMap::new();
        for (name, backend) in written.backends {
            let read = Read::parse(&name, backend, folder).with_context(|| {
                let line = keys::find(text, &["backends".to_owned(), name.clone()]);
                format!("line {}: backend `{name}`", line.unwrap_or(1))
            })?;
            at_once.extend(read.at_once.map(|at_once| (name.clone(), at_once)));
            match read.what {
                What::Backend(backend) => _ = backends.insert(name, backend),
                What::Talk(chat) => _ = talks.insert(name, chat.or(&written.chat)),
                What::Scripts => {}
            }
        }
        let tools = written.tools.into_iter().map(|(name, tool)| tools::parse(&name, tool, folder));
        let config = Config {
            default_backend: written.default_backend,
            receipts_dir: written.receipts_dir.map(place),
            policy: written.policy.or_else(|| profiles.into_iter().next()).map(place),
            backends,
            talks,
            chat: written.chat,
            tools: tools.collect::<Result<_, _>>().map_err(said)?,
            server: Server::parse(written.server).map_err(said)?,
            store: Store::parse(written.store, folder).map_err(said)?,
            runs: RunsSection::parse(written.runs).map_err(said)?,
            extensions: ExtensionsSection::parse(written.extensions, folder),
            at_once,
            source: source.clone(),
        };
        if let Some(name) = &config.default_backend
            && !BUILT_IN.contains(&name.as_str())
            && !config.talks.contains_key(name)
        {
            config.known(name)?;
        }
        Ok(config)
    }

    /// The backend of this name; `mock` and the coding agents are always there.
    pub(crate) fn backend(&self, name: &str) -> anyhow::Result<Backend> {
        // Names of the original carry a prefix for children that speak abp.
        let plain = name.strip_prefix("sidecar:").unwrap_or(name);
        if let Some(backend) = self.backends.get(name).or_else(|| self.backends.get(plain)) {
            return Ok(backend.clone());
        }
        if let Some(agent) = Agent::named(plain) {
            return agent.map(Backend::Agent);
        }
        if self.talks.contains_key(plain) || BUILT_IN.contains(&plain) {
            bail!("the backend `{plain}` is run by the daemon: `outrigger up`, then `outrigger runs`");
        }
        self.known(plain)?;
        Ok(Backend::Mock { script: None })
    }

    /// How many runs of a backend the daemon has under way at once.
    pub(crate) fn at_once(&self, backend: &str) -> usize {
        self.at_once.get(backend).copied().unwrap_or(AT_ONCE)
    }

    /// Refuses a name that no backend has.
    fn known(&self, name: &str) -> anyhow::Result<()> {
        let backends = &self.backends;
        if name == "mock" || AGENTS.contains(&name) || name.starts_with("acp:") || backends.contains_key(name)
        {
            return Ok(());
        }
        let names =
            || backends.keys().chain(self.talks.keys()).map(String::as_str).chain(["mock"]).chain(AGENTS);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        bail!(
            "there is no backend `{name}`; {hint} A new one is a [backends.{name}] in outrigger.toml, or --sidecar 'COMMAND'"
        )
    }
}

/// What only the daemon runs, and without configuration.
const BUILT_IN: [&str; 2] = ["mustard", "steerable"];

/// `$XDG_CONFIG_HOME/outrigger/outrigger.toml`.
pub(crate) fn users_own() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("outrigger/outrigger.toml"))
}

#[cfg(test)]
mod tests;
