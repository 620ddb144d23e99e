//! Where children come from: a program under supervision, or any pair of streams.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use outrigger_supervise::driver::{Child, SessionHandle, Supervisor};
use outrigger_supervise::ready::Ready;
use outrigger_supervise::report::Report;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec, SpecError};
use outrigger_supervise::state::{Heartbeat, Restart};

use super::conversation::{Input, Output};
use super::store::Dialect;

/// What a future is when it is in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes children. Implement it to reach a sidecar that is not a process of this machine; tests are their own child.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// What its children speak.
    fn dialect(&self) -> Dialect;

    /// One more child. Dropping the future leaves nothing behind.
    fn spawn(&self) -> BoxFuture<'_, Result<Link, SpawnError>>;
}

/// A child that nobody has spoken to yet.
pub struct Link {
    /// Its standard input.
    pub input: Input,
    /// Its standard output.
    pub output: Output,
    /// What there is to kill.
    pub process: Process,
}

/// What there is to kill.
#[derive(Clone, Debug)]
pub enum Process {
    /// A process of this host.
    Supervised {
        /// The child.
        child: Child,
        /// Where faults are told.
        handle: SessionHandle,
        /// Its process id.
        pid: u32,
    },
    /// Something that ends when its streams do.
    Elsewhere,
}

/// Why there is no child.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// It could not be started, or ended at once.
    #[error("the sidecar could not be started: {0}")]
    NotStarted(Arc<Report>),
    /// What was asked for could never work.
    #[error("the sidecar cannot be started: {0}")]
    Spec(#[from] SpecError),
    /// It is none of ours.
    #[error("the sidecar cannot be reached: {0}")]
    Elsewhere(String),
    /// The supervisor was shut down.
    #[error("the sidecar was stopped before it ran")]
    Stopped,
}

/// A program that is a sidecar, run under a supervisor.
#[derive(Clone, Debug)]
pub struct ProgramSource {
    supervisor: Supervisor,
    spec: Spec,
    dialect: Dialect,
}

impl ProgramSource {
    /// This very program as `… sidecar mustard`: right for `outrigger` itself.
    pub fn this_program(supervisor: Supervisor) -> Self {
        Self::ours(supervisor, "/proc/self/exe")
    }

    /// Another `outrigger`.
    pub fn ours(supervisor: Supervisor, outrigger: impl Into<PathBuf>) -> Self {
        let args = ["sidecar".into(), "mustard".into()];
        Self::new(supervisor, outrigger.into(), args, Dialect::Extended)
    }

    /// Any program that speaks version 2 on its standard streams, such as an original `mustard-sidecar`.
    pub fn version_2(
        supervisor: Supervisor,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = OsString>,
    ) -> Self {
        Self::new(supervisor, program.into(), args, Dialect::Version2)
    }

    /// Changes what the child is started with: its box, its environment, its log.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Spec) -> Spec) -> Self {
        self.spec = change(self.spec);
        self
    }

    fn new(
        supervisor: Supervisor,
        program: PathBuf,
        args: impl IntoIterator<Item = OsString>,
        dialect: Dialect,
    ) -> Self {
        let rules = Rules {
            ready: Ready::OnSpawn,
            heartbeat: Heartbeat::None,
            // A dead child has lost its conversation; who needs another one asks for it.
            restart: Restart::Never,
            logs: Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None },
        };
        let sandbox = Request::new(Level::Auto, Limits::as_the_host());
        let spec = Spec::new("mustard", program, "/", sandbox, rules).args(args).spoken_to();
        Self { supervisor, spec, dialect }
    }
}

impl Source for ProgramSource {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn spawn(&self) -> BoxFuture<'_, Result<Link, SpawnError>> {
        Box::pin(async move {
            let child = self.supervisor.start(self.spec.clone())?;
            let not_started = || child.last_report().map_or(SpawnError::Stopped, SpawnError::NotStarted);
            let mut session = child.next_session().await.ok_or_else(not_started)?;
            // Both pipes are there, because the spec gives both to the session.
            let (Some(input), Some(output)) = (session.stdin.take(), session.stdout.take()) else {
                return Err(SpawnError::Stopped);
            };
            let process = Process::Supervised { handle: session.handle(), pid: session.pid.get(), child };
            Ok(Link { input: Box::pin(input), output: Box::pin(output), process })
        })
    }
}
