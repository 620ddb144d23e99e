//! From the name of a backend, or a command line, to a program that can be started in its box.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use outrigger_abp::conduct::Confinement;
use outrigger_abp::govern::Extras;
use outrigger_abp::host::BackendSpec;
use outrigger_abp::protocol::WorkOrder;
use outrigger_supervise::sandbox::{Limits, Network, Request};

use super::args::RunArgs;
use crate::args::SandboxArg;
use crate::config::{Backend, Command, Config};
use crate::words::words;

/// The backend that is used when nobody names one.
const FALLBACK: &str = "mock";

/// A backend, ready to be started.
pub(super) struct Chosen {
    pub(super) spec: BackendSpec,
    pub(super) confinement: Confinement,
    /// The longest it may take, as the configuration says.
    pub(super) timeout: Option<Duration>,
}

/// The backend that the command line, the environment or the configuration names.
pub(super) fn choose(args: &RunArgs, config: &Config, order: &WorkOrder) -> anyhow::Result<Chosen> {
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    if let Some(text) = &args.sidecar {
        let mut words = words(text).context("--sidecar")?.into_iter();
        // The parser refuses an empty command.
        let program = words.next().context("--sidecar is empty")?;
        let name = PathBuf::from(&program)
            .file_name()
            .map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
        return Ok(start(&name, &Command::plain(program, words.collect()), args, order, here));
    }
    let name = args.backend.as_deref().or(config.default_backend.as_deref()).unwrap_or(FALLBACK);
    match config.backend(name)? {
        Backend::Sidecar(command) => Ok(start(name, &command, args, order, here)),
        Backend::Mock { script } => {
            let mut words = vec!["sidecar".to_owned(), "abp-mock".to_owned()];
            if let Some(script) = script {
                let Some(script) = script.to_str() else {
                    bail!("the script of `{name}` has a name that is not UTF-8")
                };
                words.extend(["--script".to_owned(), script.to_owned()]);
            }
            Ok(start(name, &Command::plain(ourselves()?, words), args, order, here))
        }
        Backend::Agent(agent) => {
            let mut words = vec!["sidecar".to_owned(), "abp-agent".to_owned(), agent.provider];
            if !agent.command.is_empty() {
                words.push("--".to_owned());
                words.extend(agent.command);
            }
            let command = Command::plain(ourselves()?, words);
            let command = Command { env: agent.env, timeout: agent.timeout, ..command };
            Ok(start(name, &command, args, order, here))
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
            Ok(start(name, &wrapped, args, order, here))
        }
    }
}

/// This very program, which is also its ready-made children.
fn ourselves() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("our own program cannot be found")?;
    path.into_os_string().into_string().ok().context("our own program has a path that is not UTF-8")
}

fn start(name: &str, command: &Command, args: &RunArgs, order: &WorkOrder, here: PathBuf) -> Chosen {
    let level = args.sandbox.or(command.sandbox).unwrap_or(SandboxArg::Basic);
    let mut request = Request::new(level.level(), Limits::as_the_host());
    request.network = Network::Allow;
    let confinement = match level {
        SandboxArg::Off | SandboxArg::Basic => Confinement::AsGiven,
        SandboxArg::Strict | SandboxArg::Auto | SandboxArg::Required => Confinement::ByPolicy {
            level: level.level(),
            extras: Extras {
                read: args.read.iter().map(|path| here.join(path)).chain(command.read.clone()).collect(),
                write: Vec::new(),
                limits: Limits::as_the_host(),
            },
        },
    };
    let cwd = command.cwd.clone().unwrap_or(here);
    let mut spec = BackendSpec::new(name, command.program.clone(), cwd, request)
        .args(command.args.iter().cloned())
        .inherit_env();
    for (variable, value) in command.env.iter().chain(&order.config.env) {
        spec = spec.set_env(variable, value);
    }
    Chosen { spec, confinement, timeout: command.timeout }
}
