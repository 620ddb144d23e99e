//! What a project writes down once: its backends, where receipts go. `outrigger.toml` is ours; `backplane.toml` is read as
//! other control planes left it.

mod keys;
mod nearest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

pub(crate) use nearest::nearest;

use self::keys::Dialect;
use crate::args::SandboxArg;

/// The longest configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// The longest time that a backend may be given, in seconds.
const MAX_TIMEOUT_SECS: u64 = 86_400;

/// A configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// The backend that is used when none is named.
    pub(crate) default_backend: Option<String>,
    /// Where receipts go.
    pub(crate) receipts_dir: Option<PathBuf>,
    /// The policy that is used when none is named.
    pub(crate) policy: Option<PathBuf>,
    /// The backends by their names.
    pub(crate) backends: BTreeMap<String, Backend>,
    /// Who `outrigger chat` talks to.
    pub(crate) chat: Chat,
}

/// Who `outrigger chat` talks to, as far as it is written down.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Chat {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) api_key_env: Option<String>,
}

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

impl Agent {
    /// The agent that a name stands for by itself: `claude`, `codex`, `cursor`, or `acp:COMMAND`.
    fn named(name: &str) -> Option<anyhow::Result<Self>> {
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

/// The agents over ACP whose commands the bridge knows.
const ACP: [&str; 4] = ["gemini", "opencode", "claude-agent-acp", "codex-acp"];

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

/// The file as it is written. Which members each dialect of it has is decided before ([`keys`]).
#[derive(Deserialize)]
struct Written {
    default_backend: Option<String>,
    receipts_dir: Option<PathBuf>,
    policy: Option<PathBuf>,
    policy_profiles: Option<Vec<PathBuf>>,
    #[serde(default)]
    backends: BTreeMap<String, WrittenBackend>,
    #[serde(default)]
    chat: Chat,
}

#[derive(Deserialize)]
struct WrittenBackend {
    r#type: String,
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
}

impl Config {
    /// No configuration at all.
    fn none() -> Self {
        Self {
            default_backend: None,
            receipts_dir: None,
            policy: None,
            backends: BTreeMap::new(),
            chat: Chat::default(),
        }
    }

    /// The file that was named, or the one in this folder: `outrigger.toml`, else `backplane.toml`.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Config> {
        if let Some(path) = named {
            return Config::read(path);
        }
        for name in ["outrigger.toml", "backplane.toml"] {
            let path = Path::new(name);
            if path.try_exists().with_context(|| format!("{name} cannot be looked at"))? {
                return Config::read(path);
            }
        }
        Ok(Config::none())
    }

    fn read(path: &Path) -> anyhow::Result<Config> {
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
        let written: Written = toml::from_str(text)?;
        let absolute = std::path::absolute(path).context("the current folder cannot be found")?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        // An original control plane reads its paths from where it is started, which is where the file is.
        let place = |path: PathBuf| folder.join(path);
        let profiles = written.policy_profiles.unwrap_or_default();
        if profiles.len() > 1 {
            bail!("`policy_profiles` names {} files; one policy applies to a run", profiles.len());
        }
        let mut backends = BTreeMap::new();
        for (name, backend) in written.backends {
            let read = Backend::parse(backend, folder).with_context(|| format!("backend `{name}`"))?;
            backends.insert(name, read);
        }
        if let Some(name) = &written.default_backend {
            known_backend(name, &backends)?;
        }
        Ok(Config {
            default_backend: written.default_backend,
            receipts_dir: written.receipts_dir.map(place),
            policy: written.policy.or_else(|| profiles.into_iter().next()).map(place),
            backends,
            chat: written.chat,
        })
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
        known_backend(plain, &self.backends)?;
        Ok(Backend::Mock { script: None })
    }
}

/// Refuses a name that no backend has.
fn known_backend(name: &str, backends: &BTreeMap<String, Backend>) -> anyhow::Result<()> {
    if name == "mock" || AGENTS.contains(&name) || name.starts_with("acp:") || backends.contains_key(name) {
        return Ok(());
    }
    let names = || backends.keys().map(String::as_str).chain(["mock"]).chain(AGENTS);
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
    };
    bail!(
        "there is no backend `{name}`; {hint} A new one is a [backends.{name}] in outrigger.toml, or --sidecar 'COMMAND'"
    )
}

impl Backend {
    fn parse(written: WrittenBackend, folder: &Path) -> anyhow::Result<Backend> {
        let WrittenBackend { r#type, command, args, env, cwd, timeout_secs, sandbox, read, script, provider } =
            written;
        if r#type == "agent" {
            let provider = provider.context("`provider` is missing: claude, codex, cursor or acp")?;
            let command: Vec<String> = command.into_iter().chain(args).collect();
            let provider = match (provider.as_str(), command.is_empty()) {
                ("acp", true) => {
                    bail!("`command` is missing; provider \"acp\" starts a program that speaks ACP")
                }
                ("acp", false) => "acp:agent".to_owned(),
                (known, _) if AGENTS.contains(&known) => provider,
                (known, true) if known.strip_prefix("acp:").is_some_and(|name| ACP.contains(&name)) => {
                    provider
                }
                (other, _) => bail!(
                    "`provider` is \"{other}\"; it may be claude, codex, cursor, acp or one of acp:{}",
                    ACP.join(", acp:")
                ),
            };
            let timeout = timeout(timeout_secs)?;
            return Ok(Backend::Agent(Agent { provider, command, env, timeout }));
        }
        let command = |kind: &str| {
            let program =
                command.context(format!("`command` is missing; type \"{kind}\" starts a program"))?;
            if program.is_empty() {
                bail!("`command` is empty");
            }
            let timeout = timeout(timeout_secs)?;
            let sandbox = sandbox.as_deref().map(level).transpose()?;
            let cwd = cwd.map(|cwd| folder.join(cwd));
            let read = read.into_iter().map(|path| folder.join(path)).collect();
            anyhow::Ok(Command { program, args, env, cwd, timeout, sandbox, read })
        };
        match r#type.as_str() {
            "mock" => Ok(Backend::Mock { script: script.map(|script| folder.join(script)) }),
            "sidecar" => command("sidecar").map(Backend::Sidecar),
            "process" => command("process").map(Backend::Process),
            other => {
                let near = nearest(other, ["mock", "sidecar", "process", "agent"]);
                let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                bail!(
                    "`type` is \"{other}\"; it may be \"mock\", \"sidecar\", \"process\" or \"agent\"{hint}"
                )
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, dialect: Dialect) -> Result<Config, String> {
        Config::parse(text, dialect, Path::new("/etc/project/x.toml")).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_configuration_of_the_original_is_read_as_it_is() {
        let text = r#"
default_backend = "agent"
workspace_dir = "/tmp/ws"
log_level = "debug"
receipts_dir = "receipts"
bind_address = "127.0.0.1"
port = 8088
policy_profiles = ["policy.json"]

[backends.agent]
type = "sidecar"
command = "node"
args = ["host.js", "--fast"]
timeout_secs = 60

[backends.fake]
type = "mock"
"#;
        let config = parse(text, Dialect::Backplane).unwrap();
        assert_eq!(config.default_backend.as_deref(), Some("agent"));
        assert_eq!(config.receipts_dir, Some("/etc/project/receipts".into()));
        assert_eq!(config.policy, Some("/etc/project/policy.json".into()));
        assert_eq!(config.backend("fake").unwrap(), Backend::Mock { script: None });
        let Backend::Sidecar(agent) = config.backend("sidecar:agent").unwrap() else { panic!() };
        assert_eq!((agent.program.as_str(), agent.args.len()), ("node", 2));
        assert_eq!(agent.timeout, Some(Duration::from_secs(60)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_the_likely_meaning() {
        let cases = [
            (
                "default_backed = 'mock'",
                "line 1: unknown key `default_backed`; did you mean `default_backend`?",
            ),
            (
                "[backends.a]\ntype = 'mock'\ncomand = 'x'",
                "line 3: unknown key `backends.a.comand`; did you mean `command`?",
            ),
            ("[backends.a]\ntype = 'sidecar'", "backend `a`: `command` is missing"),
            ("[backends.a]\ntype = 'sidcar'", "did you mean \"sidecar\"?"),
            ("[backends.a]\ncommand = 'x'", "missing field `type`"),
            (
                "[backends.a]\ntype = 'sidecar'\ncommand = 'x'\ntimeout_secs = 0",
                "`timeout_secs` is 0; it may be 1 to 86400",
            ),
            ("[backends.a]\ntype = 'sidecar'\ncommand = 'x'\ntimeout_secs = 86401", "it may be 1 to 86400"),
            ("default_backend = 'mok'", "did you mean `mock`?"),
            ("default_backend = ", "line 1"),
            ("port = 80", "unknown key `port`"),
        ];
        for (text, expected) in cases {
            let error = parse(text, Dialect::Outrigger).unwrap_err();
            assert!(error.contains(expected), "{text:?} gave {error:?}");
        }
        let error = parse("[backends.a]\ntype='mock'\nsandbox='off'", Dialect::Backplane).unwrap_err();
        assert!(error.contains("unknown key `backends.a.sandbox`"), "{error}");
    }

    #[test]
    fn coding_agents_need_no_configuration_and_can_have_one() {
        let none = Config::none();
        let agent = |backend| match backend {
            Backend::Agent(agent) => (agent.provider, agent.command),
            other => panic!("{other:?}"),
        };
        assert_eq!(agent(none.backend("claude").unwrap()), ("claude".to_owned(), vec![]));
        assert_eq!(agent(none.backend("acp:gemini").unwrap()), ("acp:gemini".to_owned(), vec![]));
        let words = vec!["node".to_owned(), "my agent.js".to_owned()];
        assert_eq!(agent(none.backend("acp:node 'my agent.js'").unwrap()), ("acp:agent".to_owned(), words));
        assert!(none.backend("acp:").is_err());
        assert!(none.backend("clade").unwrap_err().to_string().contains("did you mean `claude`?"));
        let text = "[backends.mine]\ntype = 'agent'\nprovider = 'codex'\ncommand = '/opt/codex'";
        let config = parse(text, Dialect::Outrigger).unwrap();
        assert_eq!(
            agent(config.backend("mine").unwrap()),
            ("codex".to_owned(), vec!["/opt/codex".to_owned()])
        );
        let wrong = parse("[backends.a]\ntype = 'agent'\nprovider = 'acp'", Dialect::Outrigger).unwrap_err();
        assert!(wrong.contains("`command` is missing"), "{wrong}");
        let wrong = parse("[backends.a]\ntype = 'agent'\nprovider = 'gpt'", Dialect::Outrigger).unwrap_err();
        assert!(wrong.contains("it may be claude, codex"), "{wrong}");
    }

    #[test]
    fn a_longest_timeout_is_still_accepted() {
        let text = "[backends.a]\ntype = 'process'\ncommand = 'x'\ntimeout_secs = 86400\nsandbox = 'strict'";
        let config = parse(text, Dialect::Outrigger).unwrap();
        let Backend::Process(command) = config.backend("a").unwrap() else { panic!() };
        assert_eq!(command.timeout, Some(Duration::from_secs(86_400)));
        assert_eq!(command.sandbox, Some(SandboxArg::Strict));
    }
}
