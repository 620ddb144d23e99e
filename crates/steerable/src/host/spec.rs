//! Which program a sidecar is, and the box it runs in. What the conversation with it may take is in [`Terms`].

use std::ffi::OsString;
use std::path::PathBuf;

use outrigger_supervise::ready::{Gate, Ready};
use outrigger_supervise::sandbox::Request;
use outrigger_supervise::spec::{Environment, Logs, Rules, Spec, Spoken, Tee};
use outrigger_supervise::state::Heartbeat;
use tokio::sync::mpsc;

use super::terms::{Pulse, Terms};

/// A program that speaks steerable on its standard streams.
#[derive(Clone, Debug)]
pub struct SidecarSpec {
    /// What it is called in errors, logs and metrics.
    pub name: String,
    /// A path, or a bare name that is looked up on the `PATH` of the child's own environment.
    pub program: OsString,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The environment: empty but for what is said here.
    pub environment: Environment,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The box.
    pub sandbox: Request,
    /// How much of its standard error is kept.
    pub logs: Logs,
}

impl SidecarSpec {
    /// A sidecar without arguments and with an empty environment, of whose standard error the last lines are kept.
    pub fn new(
        name: impl Into<String>,
        program: impl Into<OsString>,
        cwd: impl Into<PathBuf>,
        sandbox: Request,
    ) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            environment: Environment { pass: Vec::new(), set: Vec::new() },
            cwd: cwd.into(),
            sandbox,
            logs: Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None },
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn set_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.set.push((name.into(), value.into()));
        self
    }

    /// Passes the whole environment of the host, as other hosts do. A sidecar that needs its keys and proxies from there can
    /// also read everything else that is there.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.environment.pass.extend(std::env::vars_os().map(|(name, _)| name));
        self
    }

    /// The child as its supervisor sees it. It is ready when the conversation says so, because the marker and the
    /// notification come on different streams; `stderr` gets a copy of what it logs, where the marker is looked for.
    pub(super) fn supervised(&self, terms: &Terms, stderr: Option<mpsc::Sender<Spoken>>) -> Spec {
        let heartbeat = match terms.pulse {
            Pulse::None => Heartbeat::None,
            Pulse::Ping { every, missed } => Heartbeat::WePing { every, missed },
        };
        let rules = Rules {
            ready: Ready::When { gate: Gate::Attach, within: terms.ready_within },
            heartbeat,
            restart: terms.restart.clone(),
            logs: self.logs.clone(),
        };
        let sandbox = self.sandbox.clone();
        let mut spec = Spec::new(&*self.name, self.program.clone(), self.cwd.clone(), sandbox, rules)
            .args(self.args.iter().cloned())
            .spoken_to();
        spec.program.environment = self.environment.clone();
        spec.tee = stderr.map(Tee::new);
        spec
    }
}
