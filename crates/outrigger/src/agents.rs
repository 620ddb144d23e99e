//! `outrigger agents`: which coding agents are here, their versions, whether somebody is logged in, and their models.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::Args;
use outrigger_helmor::host::{Bridge, BridgeSpec, Nobody, Terms};
use outrigger_helmor::protocol::{ListModels, ProviderName};
use outrigger_helmor::provider::locate::{self, Found, FoundBy, Known};
use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};
use serde::Serialize;

use crate::say::{self, Format, printable, short};
use crate::trees;

/// How long a program may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

/// How many models are shown to people.
const SHOWN_MODELS: usize = 8;

#[derive(Args)]
#[command(after_help = "\
Nothing is sent to a model. To list its models a program is started and asked; --offline looks only at what is on disk.

Exit status: 0 when at least one agent is installed, 1 when there is none.

Examples:
  outrigger agents
  outrigger agents --json | jq -r 'select(.installed) | .provider'
  outrigger agents --claude /opt/claude/claude")]
pub(crate) struct AgentsArgs {
    /// Start no program: no versions, no models.
    #[arg(long)]
    offline: bool,

    /// Claude Code's program [default: wherever it is found].
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Codex's program [default: wherever it is found].
    #[arg(long, value_name = "PATH")]
    codex: Option<PathBuf>,

    /// The program of Cursor's agent [default: wherever it is found].
    #[arg(long, value_name = "PATH")]
    cursor: Option<PathBuf>,
}

/// What is known about one agent.
#[derive(Serialize)]
struct Agent {
    event: &'static str,
    provider: String,
    title: &'static str,
    installed: bool,
    path: Option<PathBuf>,
    found_by: Option<&'static str>,
    version: Option<String>,
    login: Option<&'static str>,
    models: Option<Vec<ModelLine>>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct ModelLine {
    id: String,
    label: String,
    effort_levels: Vec<String>,
    fast: bool,
}

/// An agent that we look for.
struct Sought<'a> {
    provider: ProviderName,
    known: Known,
    configured: Option<&'a Path>,
    /// The flag of the bridge that names it.
    flag: Option<&'static str>,
}

/// Does what `outrigger agents` was asked for.
pub(crate) fn run(args: AgentsArgs, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let agents = runtime.block_on(look(&args))?;
    match format {
        Format::Json => agents.iter().for_each(say::object),
        Format::Text => agents.iter().for_each(Agent::show),
    }
    let any = agents.iter().any(|agent| agent.installed);
    if !any && format == Format::Text {
        anstream::eprintln!(
            "no coding agent is installed; `outrigger run … --backend mock` works without one"
        );
    }
    Ok(ExitCode::from(u8::from(!any)))
}

async fn look(args: &AgentsArgs) -> anyhow::Result<Vec<Agent>> {
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let acp = |name: &str, title, names, install| Sought {
        provider: ProviderName::Acp(name.to_owned()),
        known: Known { title, variable: None, names, packages: &[], install },
        configured: None,
        flag: None,
    };
    let of = |provider, known, configured, flag| Sought { provider, known, configured, flag: Some(flag) };
    let sought = [
        of(ProviderName::Claude, locate::CLAUDE, args.claude.as_deref(), "--claude"),
        of(ProviderName::Codex, locate::CODEX, args.codex.as_deref(), "--codex"),
        of(ProviderName::Cursor, locate::CURSOR, args.cursor.as_deref(), "--cursor"),
        acp("gemini", "Gemini CLI", &["gemini"], "npm install -g @google/gemini-cli"),
        acp("opencode", "OpenCode", &["opencode"], "npm install -g opencode-ai"),
    ];
    let supervisor = trees::supervisor();
    let mut looking = Vec::new();
    for sought in &sought {
        looking.push(inspect(sought, &here, &supervisor, args.offline));
    }
    let mut agents = Vec::new();
    for one in looking {
        agents.push(one.await);
    }
    Ok(agents)
}

async fn inspect(sought: &Sought<'_>, here: &Path, supervisor: &Supervisor, offline: bool) -> Agent {
    let Sought { provider, known, configured, .. } = sought;
    let mut agent = Agent {
        event: "agent",
        provider: provider.to_string(),
        title: known.title,
        installed: false,
        path: None,
        found_by: None,
        version: None,
        login: None,
        models: None,
        problem: None,
    };
    let found = match locate::find(known, *configured, Some(here)) {
        Ok(found) => found,
        Err(failure) => {
            agent.problem = Some(failure.message);
            return agent;
        }
    };
    agent.installed = true;
    agent.found_by = Some(match found.by {
        FoundBy::Configuration => "flag",
        FoundBy::Variable => "variable",
        FoundBy::Path => "PATH",
        FoundBy::Npm => "npm",
    });
    agent.login = login(provider);
    if !offline {
        match version(supervisor, &found, here).await {
            Ok(version) => agent.version = version,
            Err(problem) => agent.problem = Some(problem),
        }
        // An agent over ACP is only known once a session is begun, which may want a login.
        if !matches!(provider, ProviderName::Acp(_)) {
            match models(sought, supervisor, here).await {
                Ok(models) => agent.models = Some(models),
                Err(problem) => agent.problem = Some(problem),
            }
        }
    }
    agent.path = Some(found.path);
    agent
}

/// What a program says to `--version`: its first line.
async fn version(supervisor: &Supervisor, found: &Found, here: &Path) -> Result<Option<String>, String> {
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 4096, max_line_bytes: 1024, file: None },
    };
    let spec = Spec::new("version", found.path.clone(), here, open_box(), rules)
        .args(["--version"])
        .pass_env(std::env::vars_os().map(|(name, _)| name));
    let child = supervisor.start(spec).map_err(|error| error.to_string())?;
    if tokio::time::timeout(VERSION_WITHIN, child.wait()).await.is_err() {
        child.kill().await;
        return Err(format!("it did not say its version within {VERSION_WITHIN:?}"));
    }
    Ok(child.stdout_tail().into_iter().map(|line| line.text).find(|line| !line.trim().is_empty()))
}

/// Its models, by the bridge.
async fn models(sought: &Sought<'_>, supervisor: &Supervisor, here: &Path) -> Result<Vec<ModelLine>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut words: Vec<OsString> = ["sidecar", "helmor"].map(OsString::from).to_vec();
    if let (Some(flag), Some(path)) = (sought.flag, sought.configured) {
        words.extend([flag.into(), path.as_os_str().to_owned()]);
    }
    let spec = BridgeSpec::new("bridge", program, here, open_box()).args(words).inherit_env();
    let bridge = Bridge::new(supervisor.clone(), spec, Terms::usual(), Arc::new(Nobody));
    let query = ListModels { provider: sought.provider.clone(), api_key: None };
    let listed = bridge.models(&query).await.map_err(|error| error.to_string());
    bridge.shutdown().await;
    let line = |model: outrigger_helmor::host::ModelChoice| ModelLine {
        id: model.cli_model,
        label: model.label,
        effort_levels: model.effort_levels,
        fast: model.supports_fast_mode,
    };
    Ok(listed?.into_iter().map(line).collect())
}

/// A box that only holds the processes together.
fn open_box() -> Request {
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    sandbox
}

/// Where a login is found. Its worth is not tried, and nothing of it is read.
fn login(provider: &ProviderName) -> Option<&'static str> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let home = |variable: &str, folder: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(folder)))
    };
    let file = |folder: Option<PathBuf>, name: &str| folder.is_some_and(|folder| folder.join(name).is_file());
    match provider {
        ProviderName::Claude if set("ANTHROPIC_API_KEY") => Some("ANTHROPIC_API_KEY"),
        ProviderName::Claude if set("ANTHROPIC_AUTH_TOKEN") => Some("ANTHROPIC_AUTH_TOKEN"),
        ProviderName::Claude if set("CLAUDE_CODE_OAUTH_TOKEN") => Some("CLAUDE_CODE_OAUTH_TOKEN"),
        ProviderName::Claude if file(home("CLAUDE_CONFIG_DIR", ".claude"), ".credentials.json") => {
            Some("its own login")
        }
        ProviderName::Codex if set("OPENAI_API_KEY") => Some("OPENAI_API_KEY"),
        ProviderName::Codex if file(home("CODEX_HOME", ".codex"), "auth.json") => Some("its own login"),
        ProviderName::Cursor if set("CURSOR_API_KEY") => Some("CURSOR_API_KEY"),
        ProviderName::Acp(name) if name == "gemini" && set("GEMINI_API_KEY") => Some("GEMINI_API_KEY"),
        _ => None,
    }
}

impl Agent {
    fn show(&self) {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let good = Style::new().fg_color(Some(AnsiColor::Green.into()));
        let warn = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
        let mark = if self.installed { format!("{good}✔{good:#}") } else { format!("{dim}–{dim:#}") };
        let version = self.version.as_deref().map(|text| format!("  {}", short(text))).unwrap_or_default();
        anstream::println!("{mark} {bold}{}{bold:#}  {dim}{}{dim:#}{version}", self.title, self.provider);
        if let Some(path) = &self.path {
            let by = self.found_by.unwrap_or_default();
            anstream::println!(
                "    {dim}program{dim:#}  {} {dim}({by}){dim:#}",
                printable(&path.to_string_lossy())
            );
            let login = self.login.unwrap_or("none found; the program may have its own way");
            anstream::println!("    {dim}login{dim:#}    {login}");
        }
        if let Some(models) = &self.models {
            let names: Vec<&str> = models.iter().take(SHOWN_MODELS).map(|model| model.id.as_str()).collect();
            let more = models.len().saturating_sub(SHOWN_MODELS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            anstream::println!("    {dim}models{dim:#}   {}{more}", printable(&names.join(", ")));
        }
        if let Some(problem) = &self.problem {
            let style = if self.installed { warn } else { dim };
            for line in problem.lines() {
                anstream::println!("    {style}{}{style:#}", printable(line));
            }
        }
    }
}
