//! From the name of a backend, or a command line, to a program that can be started in its box.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use outrigger_abp::conduct::Confinement;
use outrigger_abp::govern::{COMMAND_TOOL, Extras, default_profile};
use outrigger_abp::host::BackendSpec;
use outrigger_abp::protocol::{PolicyProfile, WorkOrder};
use outrigger_supervise::sandbox::{Limits, Network, Request};

use super::args::RunArgs;
use crate::args::SandboxArg;
use crate::config::{Backend, Command, Config};
use crate::words::words;

/// The backend that is used when nobody names one.
const FALLBACK: &str = "mock";

/// A backend, ready to be started.
pub(crate) struct Chosen {
    pub(crate) spec: BackendSpec,
    pub(crate) confinement: Confinement,
    /// The longest it may take, as the configuration says.
    pub(crate) timeout: Option<Duration>,
}

/// What whoever starts a backend says beside its configuration.
pub(crate) struct Around<'a> {
    /// How strict its box is, whatever the configuration says.
    pub(crate) sandbox: Option<SandboxArg>,
    /// What it may read beside its workspace.
    pub(crate) read: Vec<PathBuf>,
    /// Variables of the order.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Where it starts, unless the configuration says where.
    pub(crate) here: PathBuf,
}

/// The backend that the command line, the environment or the configuration names.
pub(super) fn named(args: &RunArgs, config: &Config) -> anyhow::Result<(String, Backend)> {
    if let Some(text) = &args.sidecar {
        let mut words = words(text).context("--sidecar")?.into_iter();
        // The parser refuses an empty command.
        let program = words.next().context("--sidecar is empty")?;
        let name = PathBuf::from(&program)
            .file_name()
            .map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
        return Ok((name, Backend::Sidecar(Command::plain(program, words.collect()))));
    }
    let name = args.backend.as_deref().or(config.default_backend.as_deref()).unwrap_or(FALLBACK);
    Ok((name.to_owned(), config.backend(name)?))
}

/// The backend for an order.
pub(super) fn choose(
    args: &RunArgs,
    name: &str,
    backend: Backend,
    order: &WorkOrder,
) -> anyhow::Result<Chosen> {
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let read = args.read.iter().map(|path| here.join(path)).collect();
    ready(name, backend, Around { sandbox: args.sandbox, read, env: &order.config.env, here })
}

/// The policy of an order that brings none: it keeps secrets and asks before it acts. Nobody is asked whether a program may run that
/// the configuration names as the one that runs; it has by the time that it is heard of.
pub(crate) fn usual_policy(backend: &Backend) -> PolicyProfile {
    let mut policy = default_profile();
    match backend {
        Backend::Process(_) => policy.require_approval_for.retain(|tool| tool != COMMAND_TOOL),
        Backend::Mock { .. } | Backend::Sidecar(_) | Backend::Agent(_) => {}
    }
    policy
}

/// A configured backend as a program that can be started in its box.
pub(crate) fn ready(name: &str, backend: Backend, around: Around<'_>) -> anyhow::Result<Chosen> {
    match backend {
        Backend::Sidecar(command) => Ok(start(name, &command, around)),
        Backend::Mock { script } => {
            let mut words = vec!["sidecar".to_owned(), "abp-mock".to_owned()];
            if let Some(script) = script {
                let Some(script) = script.to_str() else {
                    bail!("the script of `{name}` has a name that is not UTF-8")
                };
                words.extend(["--script".to_owned(), script.to_owned()]);
            }
            Ok(start(name, &Command::plain(ourselves()?, words), around))
        }
        Backend::Agent(agent) => {
            let mut words = vec!["sidecar".to_owned(), "abp-agent".to_owned(), agent.provider];
            if !agent.command.is_empty() {
                words.push("--".to_owned());
                words.extend(agent.command);
            }
            let command = Command::plain(ourselves()?, words);
            let command = Command { env: agent.env, timeout: agent.timeout, ..command };
            Ok(start(name, &command, around))
        }
        Backend::Process(command) => {
            let mut words = vec![
                "sidecar".to_owned(),
                "abp-process".to_owned(),
                "--".to_owned(),
                command.program.clone(),
            ];
            words.extend(command.args.iter().cloned());
            let wrapped = Command { program: ourselves()?, args: words, ..command };
            Ok(start(name, &wrapped, around))
        }
    }
}

/// This very program, which is also its ready-made children.
fn ourselves() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("our own program cannot be found")?;
    path.into_os_string().into_string().ok().context("our own program has a path that is not UTF-8")
}

fn start(name: &str, command: &Command, around: Around<'_>) -> Chosen {
    let Around { sandbox, mut read, env, here } = around;
    let level = sandbox.or(command.sandbox).unwrap_or(SandboxArg::Basic);
    let mut request = Request::new(level.level(), Limits::as_the_host());
    request.network = Network::Allow;
    let confinement = match level {
        SandboxArg::Off | SandboxArg::Basic => Confinement::AsGiven,
        SandboxArg::Strict | SandboxArg::Auto | SandboxArg::Required => {
            read.extend(command.read.iter().cloned());
            let extras = Extras { read, write: Vec::new(), limits: Limits::as_the_host() };
            Confinement::ByPolicy { level: level.level(), extras }
        }
    };
    let cwd = command.cwd.clone().unwrap_or(here);
    let mut spec = BackendSpec::new(name, command.program.clone(), cwd, request)
        .args(command.args.iter().cloned())
        .inherit_env();
    for (variable, value) in command.env.iter().chain(env) {
        spec = spec.set_env(variable, value);
    }
    Chosen { spec, confinement, timeout: command.timeout }
}
