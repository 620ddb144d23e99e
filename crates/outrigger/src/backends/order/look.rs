//! What a backend can do and how it is: its program is looked for, started, heard and stopped, at most once a minute.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outrigger_abp::host::{Sidecar, Terms};
use outrigger_abp::protocol::Hello;
use outrigger_helmor::provider::locate::{self, Known};
use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Ladder, Restart};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::ending::sentence;
use crate::config::{Agent, Backend, Command};
use crate::run::{Around, Chosen, ready};
use crate::runs::Health;

/// How long what was seen is good.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The same for what was not well: it may be well in a moment, on a machine that has much to do.
const BAD_FOR: Duration = Duration::from_secs(5);

/// The longest look.
pub(in crate::backends) const WITHIN: Duration = Duration::from_secs(2);

/// How a child that was only looked at is stopped.
const LADDER: Ladder = Ladder { ask: Duration::from_millis(300), term: Duration::from_millis(300) };

/// What was seen of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backends) struct Seen {
    pub(in crate::backends) about: String,
    pub(in crate::backends) health: Health,
    pub(in crate::backends) capabilities: BTreeMap<String, String>,
}

/// The last look at a backend. Whoever looks meanwhile waits for the same one.
pub(in crate::backends) struct Looks {
    last: Mutex<Option<(Instant, Seen)>>,
}

impl Seen {
    fn good_for(&self) -> Duration {
        match self.health {
            Health::Ready | Health::Missing { .. } => GOOD_FOR,
            Health::Failing { .. } => BAD_FOR,
        }
    }
}

impl Looks {
    pub(in crate::backends) fn none() -> Self {
        Self { last: Mutex::new(None) }
    }

    /// What was seen last, or what is seen now.
    pub(in crate::backends) async fn last_or(&self, look: impl Future<Output = Seen>) -> Seen {
        let mut last = self.last.lock().await;
        if let Some((at, seen)) = &*last
            && at.elapsed() < seen.good_for()
        {
            return seen.clone();
        }
        let seen = look.await;
        *last = Some((Instant::now(), seen.clone()));
        seen
    }
}

/// The dialect that the work is done in.
pub(super) fn dialect(backend: &Backend) -> &'static str {
    match backend {
        Backend::Agent(_) => "helmor",
        Backend::Mock { .. } | Backend::Sidecar(_) | Backend::Process(_) => "abp",
    }
}

/// Looks at a backend.
pub(super) async fn look(supervisor: &Supervisor, name: &str, backend: &Backend, here: &Path) -> Seen {
    let about = about(backend);
    let unwell = |health| Seen { about: about.clone(), health, capabilities: BTreeMap::new() };
    let program = match find(backend, here) {
        Ok(program) => program,
        Err(why) => return unwell(Health::Missing { why }),
    };
    let greeted = greet(supervisor, name, backend, here);
    let said = async {
        match program {
            Some(program) => version(supervisor, program, here).await,
            None => None,
        }
    };
    let (greeted, version) = tokio::join!(timeout(WITHIN, greeted), timeout(WITHIN, said));
    let hello = match greeted {
        Ok(Ok(hello)) => hello,
        Ok(Err(why)) => return unwell(Health::Failing { why }),
        Err(_) => {
            let why = format!("`{name}` did not say hello within {} s", WITHIN.as_secs());
            return unwell(Health::Failing { why });
        }
    };
    // A program that does not say its version in time may still be fine.
    let version = version.ok().flatten().or_else(|| hello.backend.backend_version.clone());
    let about = match version {
        Some(version) => format!("{about}, {version}"),
        None => about,
    };
    Seen { about, health: Health::Ready, capabilities: capabilities(&hello) }
}

/// What it says that it can do: names of the contract, and how well.
pub(super) fn capabilities(hello: &Hello) -> BTreeMap<String, String> {
    let entries = hello.capabilities.0.iter();
    entries.map(|(capability, level)| (capability.as_str().to_owned(), level.word().to_owned())).collect()
}

/// In a sentence.
pub(super) fn about(backend: &Backend) -> String {
    match backend {
        Backend::Mock { script: None } => "plays a script; needs no model and no key".to_owned(),
        Backend::Mock { script: Some(script) } => format!("plays the script {}", script.display()),
        Backend::Sidecar(command) => format!("`{}` over abp", command_line(command)),
        Backend::Process(command) => format!("runs `{}` for each order", command_line(command)),
        Backend::Agent(agent) => format!("{} through the bridge", title(agent)),
    }
}

fn command_line(command: &Command) -> String {
    let words: Vec<&str> =
        [command.program.as_str()].into_iter().chain(command.args.iter().map(String::as_str)).collect();
    let line = words.join(" ");
    crate::say::short(&line)
}

fn title(agent: &Agent) -> String {
    match known(&agent.provider) {
        Some(known) => known.title.to_owned(),
        None => match agent.command.first() {
            Some(program) => format!("`{program}` over ACP"),
            None => agent.provider.clone(),
        },
    }
}

/// The program of an agent that the bridge knows how to find.
fn known(provider: &str) -> Option<Known> {
    let acp = |title, names, install| Some(Known { title, variable: None, names, packages: &[], install });
    match provider {
        "claude" => Some(locate::CLAUDE),
        "codex" => Some(locate::CODEX),
        "cursor" => Some(locate::CURSOR),
        "acp:gemini" => acp("Gemini CLI", &["gemini"], "npm install -g @google/gemini-cli"),
        "acp:opencode" => acp("OpenCode", &["opencode"], "npm install -g opencode-ai"),
        "acp:claude-agent-acp" => acp(
            "Claude Code over ACP",
            &["claude-agent-acp"],
            "npm install -g @agentclientprotocol/claude-agent-acp",
        ),
        "acp:codex-acp" => acp("Codex over ACP", &["codex-acp"], "npm install -g @zed-industries/codex-acp"),
        _ => None,
    }
}

/// Whether the program behind a backend is here. The program of a coding agent is given, because it can be asked for its version;
/// `Err` says what is missing and what to do.
pub(super) fn find(backend: &Backend, here: &Path) -> Result<Option<PathBuf>, String> {
    match backend {
        Backend::Mock { script: Some(script) } if !script.is_file() => {
            Err(format!("the script {} is not there; `script` of the backend names it", script.display()))
        }
        Backend::Mock { .. } => Ok(None),
        Backend::Sidecar(command) | Backend::Process(command) => {
            let search = command.env.get("PATH").map(OsString::from);
            program(&command.program, search).map(|_| None)
        }
        Backend::Agent(agent) => match known(&agent.provider) {
            Some(known) => {
                let configured = agent.command.first().map(Path::new);
                let found =
                    locate::find(&known, configured, Some(here)).map_err(|failure| failure.message)?;
                Ok(Some(found.path))
            }
            None => match agent.command.first() {
                Some(first) => program(first, agent.env.get("PATH").map(OsString::from)).map(|_| None),
                None => Ok(None),
            },
        },
    }
}

/// A program by its path or by its name on `PATH`. One whose path is relative is only found when it is started.
fn program(program: &str, search: Option<OsString>) -> Result<(), String> {
    let path = Path::new(program);
    let there = if path.is_absolute() {
        path.is_file()
    } else if path.components().count() == 1 {
        let search = search.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        locate::on_path(&search, path).is_some()
    } else {
        true
    };
    match there {
        true => Ok(()),
        false if path.is_absolute() => {
            Err(format!("there is no program {program}; `command` of the backend names it"))
        }
        false => Err(format!(
            "there is no `{program}` on PATH; install it, or give its path as `command` of the backend"
        )),
    }
}

/// Starts the child, hears its hello, and lets it go.
async fn greet(supervisor: &Supervisor, name: &str, backend: &Backend, here: &Path) -> Result<Hello, String> {
    let none = BTreeMap::new();
    let around = Around { sandbox: None, read: Vec::new(), env: &none, here: here.to_owned() };
    let Chosen { spec, .. } = ready(name, backend.clone(), around).map_err(|error| format!("{error:#}"))?;
    let terms = Terms { hello_within: WITHIN, ..Terms::usual() };
    let sidecar = Sidecar::start(supervisor, &spec, &terms).await.map_err(|failure| sentence(&failure))?;
    let hello = sidecar.hello().clone();
    // How long it takes to leave says nothing about how it is.
    tokio::spawn(sidecar.stop(LADDER));
    Ok(hello)
}

/// What a program says to `--version`: its first line.
async fn version(supervisor: &Supervisor, program: PathBuf, here: &Path) -> Option<String> {
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 4096, max_line_bytes: 1024, file: None },
    };
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    let spec = Spec::new("version", program, here, sandbox, rules)
        .args(["--version"])
        .pass_env(std::env::vars_os().map(|(name, _)| name));
    let child = supervisor.start(spec).ok()?;
    child.wait().await;
    let said = child.stdout_tail().into_iter().map(|line| line.text).find(|line| !line.trim().is_empty())?;
    Some(crate::say::short(said.trim()))
}
