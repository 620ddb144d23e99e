//! Everything a host decides about a child before it is started. Nothing has a default that could surprise: what is
//! passed through, what is limited and what happens on failure is written down by the caller.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::launch::{Channels, Umask};
pub use crate::logs::Stream;
use crate::ready::{Gate, Ready, StdoutGate};
use crate::sandbox;
use crate::state::{Ask, Heartbeat, Incarnation, Moment, Policy, PolicyError, Restart};

/// A child, as its owner wants it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is called in reports, logs and metrics.
    pub name: String,
    /// What is run.
    pub program: Program,
    /// The box it runs in.
    pub sandbox: sandbox::Request,
    /// Where its standard input comes from.
    pub stdin: Stdin,
    /// Where its standard output goes. Standard error always goes to the log.
    pub stdout: Stdout,
    /// Descriptors 3, 4, … of every process, made afresh for each.
    pub extra: Option<Extra>,
    /// When it counts as ready.
    pub ready: Ready,
    /// How we notice that it hangs.
    pub heartbeat: Heartbeat,
    /// What happens when it ends without being asked to.
    pub restart: Restart,
    /// Whether its session can ask it to leave.
    pub ask: Ask,
    /// How much of what it says is kept.
    pub logs: Logs,
    /// Who else gets what goes to the log, as it comes.
    pub tee: Option<Tee>,
    /// How long ago it crashed in earlier runs of the host, oldest first; they count towards the crash limits.
    pub earlier_crashes: Vec<Duration>,
}

/// The decisions that have no sensible default; the rest of a [`Spec`] starts empty and is filled by its methods.
#[derive(Clone, Debug)]
pub struct Rules {
    /// When it counts as ready.
    pub ready: Ready,
    /// How we notice that it hangs.
    pub heartbeat: Heartbeat,
    /// What happens when it ends without being asked to.
    pub restart: Restart,
    /// How much of what it says is kept.
    pub logs: Logs,
}

/// A program with everything it gets to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// A path, or a bare name that is looked up on the `PATH` of the child's own environment.
    pub path: OsString,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The environment: empty but for what is said here.
    pub environment: Environment,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The file mode creation mask; `None` keeps the host's.
    pub umask: Option<Umask>,
}

/// The environment of a child: nothing is inherited unless its name is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Names that are passed from the host's environment, if they are set there when the child starts.
    pub pass: Vec<OsString>,
    /// Variables that are set; they win over passed ones, and a later one over an earlier one.
    pub set: Vec<(OsString, OsString)>,
}

/// Where a child's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// From the session.
    Session,
    /// It is empty.
    Null,
    /// From wherever the host's own comes.
    Inherit,
}

/// Where a child's standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdout {
    /// To the session, which speaks a protocol over it.
    Session,
    /// To the log, line by line, like standard error.
    Log,
    /// Nowhere.
    Null,
    /// To wherever the host's own goes.
    Inherit,
}

/// Makes the extra descriptors of each new process (one end of a socket pair, say).
#[derive(Clone)]
pub struct Extra(Arc<MakeExtra>);

type MakeExtra = dyn Fn(Incarnation) -> io::Result<Vec<OwnedFd>> + Send + Sync;

/// A copy of what goes to the log, for whoever wants to show it while it happens. A slow reader makes the child wait;
/// one that goes away is forgotten.
#[derive(Clone, Debug)]
pub struct Tee(pub(crate) mpsc::Sender<Spoken>);

impl Tee {
    /// Copies to this channel.
    pub fn new(to: mpsc::Sender<Spoken>) -> Self {
        Self(to)
    }
}

/// Something that a child wrote, as it came: not a line, not necessarily text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Which process of the child.
    pub incarnation: Incarnation,
    /// Which of its streams.
    pub stream: Stream,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// How much of what a child says is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// The last lines kept in memory, per stream, for the exit report.
    pub tail_lines: usize,
    /// The bytes that those may take together.
    pub tail_bytes: usize,
    /// A longer line is cut, and marked.
    pub max_line_bytes: usize,
    /// A file that gets everything, within its own bounds.
    pub file: Option<LogFile>,
}

/// A log file that is rotated before it grows too large: `path`, `path.1`, `path.2`, …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// The current file.
    pub path: PathBuf,
    /// No file is ever larger.
    pub max_bytes: u64,
    /// How many files there are at most, the current one included.
    pub max_files: u32,
    /// What is said faster than this is dropped, and the file says how much was.
    pub bytes_per_second: u64,
}

/// Why a spec was refused. Nothing has been started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The name is empty, too long, or would break the line it is printed on.
    #[error(
        "`{name}` is not a name for a child: it must have 1 to {MAX_NAME_BYTES} bytes and no control characters"
    )]
    Name {
        /// The name as it was given, escaped.
        name: String,
    },
    /// The working directory depends on where the host happens to be.
    #[error("the working directory `{}` of `{name}` is not absolute", cwd.display())]
    RelativeCwd {
        /// The child.
        name: String,
        /// The directory.
        cwd: PathBuf,
    },
    /// A variable name that no environment can hold.
    #[error("`{variable}` cannot be the name of an environment variable of `{name}`")]
    Variable {
        /// The child.
        name: String,
        /// The variable, escaped.
        variable: String,
    },
    /// The gate looks at a stream that nobody reads.
    #[error(
        "`{name}` is to be ready with {gate}, but its stdout is not read; send it to the session or to the log"
    )]
    GateWithoutStdout {
        /// The child.
        name: String,
        /// The gate.
        gate: String,
    },
    /// A limit is zero or contradicts another.
    #[error("`{name}`: {what}")]
    Limit {
        /// The child.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The rules could never work.
    #[error("the rules of `{name}` cannot work: {error}")]
    Policy {
        /// The child.
        name: String,
        /// Why.
        #[source]
        error: PolicyError,
    },
}

/// What a log file adds to a line: the time, the process, the stream, the mark of a cut.
const LOG_ENTRY_OVERHEAD: u64 = 128;

/// The longest name of a child.
pub const MAX_NAME_BYTES: usize = 256;

impl Spec {
    /// A child that runs `path` in `cwd` under `rules`, with no arguments and an empty environment, no standard input, its
    /// standard output in the log, and nobody to ask it to leave. The methods below say otherwise.
    pub fn new(
        name: impl Into<String>,
        path: impl Into<OsString>,
        cwd: impl Into<PathBuf>,
        sandbox: sandbox::Request,
        rules: Rules,
    ) -> Self {
        let Rules { ready, heartbeat, restart, logs } = rules;
        Self {
            name: name.into(),
            program: Program {
                path: path.into(),
                args: Vec::new(),
                environment: Environment { pass: Vec::new(), set: Vec::new() },
                cwd: cwd.into(),
                umask: None,
            },
            sandbox,
            stdin: Stdin::Null,
            stdout: Stdout::Log,
            extra: None,
            ready,
            heartbeat,
            restart,
            ask: Ask::Skip,
            logs,
            tee: None,
            earlier_crashes: Vec::new(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn set_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.program.environment.set.push((name.into(), value.into()));
        self
    }

    /// Passes variables from the host's environment, by name.
    #[must_use]
    pub fn pass_env(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program.environment.pass.extend(names.into_iter().map(Into::into));
        self
    }

    /// Gives standard input and output to the session, which can also ask the child to leave: the shape of a dialect.
    #[must_use]
    pub fn spoken_to(mut self) -> Self {
        self.stdin = Stdin::Session;
        self.stdout = Stdout::Session;
        self.ask = Ask::Session;
        self
    }

    /// Gives every process extra descriptors, from 3 upwards.
    #[must_use]
    pub fn extra(
        mut self,
        make: impl Fn(Incarnation) -> io::Result<Vec<OwnedFd>> + Send + Sync + 'static,
    ) -> Self {
        self.extra = Some(Extra(Arc::new(make)));
        self
    }

    /// Refuses what could never work, before anything is started.
    pub fn check(&self) -> Result<(), SpecError> {
        let name = || self.name.clone();
        if self.name.is_empty() || self.name.len() > MAX_NAME_BYTES || self.name.contains(char::is_control) {
            let shown: String = self.name.escape_debug().take(MAX_NAME_BYTES).collect();
            return Err(SpecError::Name { name: shown });
        }
        if !self.program.cwd.is_absolute() {
            return Err(SpecError::RelativeCwd { name: name(), cwd: self.program.cwd.clone() });
        }
        if let Some(variable) = self.program.environment.names().find(|variable| !is_variable_name(variable))
        {
            return Err(SpecError::Variable { name: name(), variable: format!("{variable:?}") });
        }
        if let (Some(_), Stdout::Null | Stdout::Inherit, Ready::When { gate, .. }) =
            (self.stdout_gate(), self.stdout, &self.ready)
        {
            return Err(SpecError::GateWithoutStdout { name: name(), gate: gate.to_string() });
        }
        if self.stdout_gate().is_some_and(|gate| gate.max_line_bytes == 0) {
            return Err(SpecError::Limit {
                name: name(),
                what: "a ready line of at most 0 bytes can never come",
            });
        }
        if let Some(what) = self.logs.complaint() {
            return Err(SpecError::Limit { name: name(), what });
        }
        self.policy().check().map_err(|error| SpecError::Policy { name: name(), error })
    }

    /// The rules that the state machine needs.
    pub(crate) fn policy(&self) -> Policy {
        let ready_within = match &self.ready {
            Ready::OnSpawn => None,
            Ready::When { gate: _, within } => Some(*within),
        };
        Policy { ready_within, heartbeat: self.heartbeat, restart: self.restart.clone(), ask: self.ask }
    }

    /// The crashes of earlier runs, as moments before `now`.
    pub(crate) fn crash_moments(&self, now: Moment) -> impl Iterator<Item = Moment> {
        self.earlier_crashes.iter().map(move |ago| now.before(*ago))
    }

    pub(crate) fn stdout_gate(&self) -> Option<&StdoutGate> {
        match &self.ready {
            Ready::When { gate: Gate::Stdout(gate), .. } => Some(gate),
            Ready::When { gate: Gate::Stderr(_) | Gate::Attach, .. } | Ready::OnSpawn => None,
        }
    }
}

impl Environment {
    /// The complete environment of a child that starts now, sorted by name.
    pub(crate) fn resolve(&self, host: impl Fn(&OsStr) -> Option<OsString>) -> Vec<(OsString, OsString)> {
        let passed = self.pass.iter().filter_map(|name| host(name).map(|value| (name.clone(), value)));
        let all: std::collections::BTreeMap<_, _> = passed.chain(self.set.iter().cloned()).collect();
        all.into_iter().collect()
    }

    fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.pass.iter().chain(self.set.iter().map(|(name, _)| name)).map(OsString::as_os_str)
    }
}

impl Extra {
    pub(crate) fn make(&self, incarnation: Incarnation) -> io::Result<Vec<OwnedFd>> {
        let made = (self.0)(incarnation)?;
        if made.len() > Channels::MAX_EXTRA {
            return Err(io::Error::other("more extra descriptors than a child can be given"));
        }
        Ok(made)
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extra(…)")
    }
}

impl Logs {
    fn complaint(&self) -> Option<&'static str> {
        if self.max_line_bytes == 0 {
            return Some("a log line of at most 0 bytes says nothing; use a larger `max_line_bytes`");
        }
        let file = self.file.as_ref()?;
        if file.max_files == 0 || file.max_bytes == 0 || file.bytes_per_second == 0 {
            return Some("a log file needs at least one file, one byte and one byte per second");
        }
        if file.max_bytes < (self.max_line_bytes as u64).saturating_add(LOG_ENTRY_OVERHEAD) {
            return Some(
                "a log file must be able to hold one line: `max_bytes` is less than `max_line_bytes` and its time stamp",
            );
        }
        if !file.path.is_absolute() {
            return Some("the path of the log file is not absolute");
        }
        None
    }
}

fn is_variable_name(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.is_empty() && !bytes.contains(&b'=') && !bytes.contains(&0)
}
