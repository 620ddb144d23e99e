//! Which program a sidecar is, and the box it runs in. What the conversation with it may take is in [`Terms`].

use std::ffi::OsString;
use std::path::PathBuf;

use outrigger_supervise::ready::{Before, Gate, LineMatch, Ready, StdoutGate};
use outrigger_supervise::sandbox::Request;
use outrigger_supervise::spec::{Environment, Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};

use super::terms::Terms;

/// A program that speaks helmor on its standard streams.
#[derive(Clone, Debug)]
pub struct BridgeSpec {
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

/// The longest line before `ready`. A longer one is no banner any more.
const LONGEST_BANNER: usize = 64 << 10;

impl BridgeSpec {
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

    /// Passes the whole environment of the host, because the logins of the agents are there.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.environment.pass.extend(std::env::vars_os().map(|(name, _)| name));
        self
    }

    /// The child as its supervisor sees it. It is never restarted by itself: the next request does that.
    pub(super) fn supervised(&self, terms: &Terms) -> Spec {
        let gate = StdoutGate {
            line: LineMatch::json("/type", "ready"),
            // A runtime that prints a warning first is none the worse for it; the report shows what it printed.
            before: Before::Skip,
            max_line_bytes: LONGEST_BANNER,
        };
        self.child(Ready::When { gate: Gate::Stdout(gate), within: terms.ready_within })
    }

    /// The child with nothing known about how it becomes ready.
    pub(crate) fn child(&self, ready: Ready) -> Spec {
        let rules =
            Rules { ready, heartbeat: Heartbeat::None, restart: Restart::Never, logs: self.logs.clone() };
        let sandbox = self.sandbox.clone();
        let mut spec = Spec::new(&*self.name, self.program.clone(), self.cwd.clone(), sandbox, rules)
            .args(self.args.iter().cloned())
            .spoken_to();
        spec.program.environment = self.environment.clone();
        spec
    }
}
