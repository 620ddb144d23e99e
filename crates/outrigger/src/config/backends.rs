//! The backends of a configuration: what each is, and what the names mean that need none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::nearest;
use crate::args::SandboxArg;

/// The longest time that a backend may be given, in seconds.
const MAX_TIMEOUT_SECS: u64 = 86_400;

/// The most runs of one backend at once.
const MAX_AT_ONCE: usize = 10_000;

/// One backend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Backend {
    /// The scripted one.
    Mock {
        /// Its script; none is the one that only says hello.
        script: Option<PathBuf>,
    },
    /// A child that speaks abp.
    Sidecar(Command),
    /// Any program: its lines become events.
    Process(Command),
    /// A coding agent, through the bridge.
    Agent(Agent),
}

/// Who is talked to through the steerable runtime, as far as it is written down.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(expecting = "a table")]
pub(crate) struct Chat {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) api_key_env: Option<String>,
}

impl Chat {
    /// With what it does not say taken from another. Whoever names a provider says everything: a model of another provider
    /// is no help.
    pub(super) fn or(self, other: &Chat) -> Self {
        if self.provider.is_some() {
            return self;
        }
        Self {
            provider: other.provider.clone(),
            model: self.model.or_else(|| other.model.clone()),
            base_url: self.base_url.or_else(|| other.base_url.clone()),
            api_key_env: self.api_key_env.or_else(|| other.api_key_env.clone()),
        }
    }
}

/// A coding agent, and what it gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Agent {
    /// `claude`, `codex`, `cursor`, `scripted` or `acp:NAME`.
    pub(crate) provider: String,
    /// The program, with its arguments; none is wherever it is found.
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) timeout: Option<Duration>,
}

/// The coding agents that need no configuration, as far as they are installed.
pub(crate) const AGENTS: [&str; 3] = ["claude", "codex", "cursor"];

/// The agents over ACP whose commands the bridge knows.
const ACP: [&str; 4] = ["gemini", "opencode", "claude-agent-acp", "codex-acp"];

/// The types that can be written.
const TYPES: [&str; 5] = ["mock", "sidecar", "process", "agent", "steerable"];

/// The type that a name has by itself, so that `[backends.claude]` can say what is special about it and nothing else.
pub(super) fn implied(name: &str) -> Option<&'static str> {
    match name {
        "mock" => Some("mock"),
        "steerable" => Some("steerable"),
        "mustard" => Some("mustard"),
        name if AGENTS.contains(&name) => Some("agent"),
        _ => None,
    }
}

/// A command and what it gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Command {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) sandbox: Option<SandboxArg>,
    pub(crate) read: Vec<PathBuf>,
}

impl Command {
    /// A command that gets nothing special.
    pub(crate) fn plain(program: String, args: Vec<String>) -> Self {
        Self {
            program,
            args,
            env: BTreeMap::new(),
            cwd: None,
            timeout: None,
            sandbox: None,
            read: Vec::new(),
        }
    }
}

impl Agent {
    /// The agent that a name stands for by itself: `claude`, `codex`, `cursor`, or `acp:COMMAND`.
    pub(super) fn named(name: &str) -> Option<anyhow::Result<Self>> {
        let plain = |provider: &str, command| Self {
            provider: provider.to_owned(),
            command,
            env: BTreeMap::new(),
            timeout: None,
        };
        if AGENTS.contains(&name) {
            return Some(Ok(plain(name, Vec::new())));
        }
        let command = name.strip_prefix("acp:")?;
        Some(crate::words::words(command).with_context(|| format!("--backend {name}")).map(|words| {
            match words.as_slice() {
                // One that the bridge knows how to start.
                [known] if ACP.contains(&known.as_str()) => plain(name, Vec::new()),
                _ => plain("acp:agent", words),
            }
        }))
    }
}

/// A backend as it is written. Which members its type has is decided before ([`super::keys`]).
#[derive(Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct Written {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    timeout_secs: Option<u64>,
    sandbox: Option<String>,
    #[serde(default)]
    read: Vec<PathBuf>,
    script: Option<PathBuf>,
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    at_once: Option<usize>,
}

/// What is behind a name.
pub(super) struct Read {
    pub(super) at_once: Option<usize>,
    pub(super) what: What,
}

pub(super) enum What {
    /// Something that takes work orders.
    Backend(Backend),
    /// An agent of the steerable runtime.
    Talk(Chat),
    /// Scripts; there is nothing to say about them but how many.
    Scripts,
}

impl Read {
    pub(super) fn parse(name: &str, written: Written, folder: &Path) -> anyhow::Result<Read> {
        let at_once = match written.at_once {
            None => None,
            Some(some @ 1..=MAX_AT_ONCE) => Some(some),
            Some(other) => bail!("`at_once` is {other}; it may be 1 to {MAX_AT_ONCE}"),
        };
        let what = What::parse(name, written, folder)?;
        Ok(Read { at_once, what })
    }
}

impl What {
    fn parse(name: &str, written: Written, folder: &Path) -> anyhow::Result<What> {
        let timeout = timeout(written.timeout_secs)?;
        let r#type = written.r#type.as_deref().or(implied(name));
        let r#type = r#type.with_context(|| format!("`type` is missing: {}", TYPES.join(", ")))?;
        match r#type {
            "mock" => {
                Ok(What::Backend(Backend::Mock { script: written.script.map(|script| folder.join(script)) }))
            }
            "sidecar" => command(written, timeout, folder).map(|it| What::Backend(Backend::Sidecar(it))),
            "process" => command(written, timeout, folder).map(|it| What::Backend(Backend::Process(it))),
            "agent" => agent(name, written, timeout).map(|it| What::Backend(Backend::Agent(it))),
            "steerable" => {
                let Written { provider, model, base_url, api_key_env, .. } = written;
                Ok(What::Talk(Chat { provider, model, base_url, api_key_env }))
            }
            "mustard" if name == "mustard" => Ok(What::Scripts),
            other => {
                let near = nearest(other, TYPES);
                let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                bail!("`type` is \"{other}\"; it may be \"{}\"{hint}", TYPES.join("\", \""))
            }
        }
    }
}

fn command(written: Written, timeout: Option<Duration>, folder: &Path) -> anyhow::Result<Command> {
    let Written { command, args, env, cwd, sandbox, read, .. } = written;
    let program = command.context("`command` is missing; this type starts a program")?;
    if program.is_empty() {
        bail!("`command` is empty");
    }
    let sandbox = sandbox.as_deref().map(level).transpose()?;
    let cwd = cwd.map(|cwd| folder.join(cwd));
    let read = read.into_iter().map(|path| folder.join(path)).collect();
    Ok(Command { program, args, env, cwd, timeout, sandbox, read })
}

fn agent(name: &str, written: Written, timeout: Option<Duration>) -> anyhow::Result<Agent> {
    let Written { provider, command, args, env, .. } = written;
    let itself = AGENTS.contains(&name).then(|| name.to_owned());
    let provider = provider.or(itself).context("`provider` is missing: claude, codex, cursor or acp")?;
    let command: Vec<String> = command.into_iter().chain(args).collect();
    let provider = match (provider.as_str(), command.is_empty()) {
        ("acp", true) => bail!("`command` is missing; provider \"acp\" starts a program that speaks ACP"),
        ("acp", false) => "acp:agent".to_owned(),
        (known, _) if AGENTS.contains(&known) => provider,
        (known, true) if known.strip_prefix("acp:").is_some_and(|name| ACP.contains(&name)) => provider,
        (other, _) => bail!(
            "`provider` is \"{other}\"; it may be claude, codex, cursor, acp or one of acp:{}",
            ACP.join(", acp:")
        ),
    };
    Ok(Agent { provider, command, env, timeout })
}

fn timeout(seconds: Option<u64>) -> anyhow::Result<Option<Duration>> {
    match seconds {
        Some(seconds @ 1..=MAX_TIMEOUT_SECS) => Ok(Some(Duration::from_secs(seconds))),
        Some(seconds) => bail!("`timeout_secs` is {seconds}; it may be 1 to {MAX_TIMEOUT_SECS}"),
        None => Ok(None),
    }
}

fn level(word: &str) -> anyhow::Result<SandboxArg> {
    use clap::ValueEnum;
    SandboxArg::from_str(word, false).map_err(|_| {
        anyhow::anyhow!("`sandbox` is \"{word}\"; it may be off, basic, strict, auto or required")
    })
}
