//! The real programs as children: each in a box that holds its whole tree, tools in sessions of their own included.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Ladder, Restart};
use outrigger_wire::tape::Tape;
use tokio::net::unix::pipe;

use super::{Failure, FailureCode};

/// How many programs may be starting at once.
const STARTING: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not 0");

/// How long we wait to hear why a program ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Starts programs. Nothing is made before the first one; clones share it. The executable of this process must call
/// [`intercept`](outrigger_supervise::launch::intercept) first, because it is also their launcher.
#[derive(Clone, Default)]
pub struct Programs {
    supervisor: Arc<OnceLock<Supervisor>>,
    tape: Option<Tape>,
}

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Command {
    /// What it is called in errors and on tapes, for example `claude:SESSION`.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The folder it works in; ours if absent.
    pub cwd: Option<PathBuf>,
    /// Variables that it gets beside all of ours; the last of a name counts.
    pub set: Vec<(OsString, OsString)>,
    /// Ours that it does not get.
    pub unset: Vec<&'static str>,
}

/// A program that runs. Dropping every clone of it kills its tree.
#[derive(Clone, Debug)]
pub struct Agent {
    child: Child,
    name: String,
}

/// The pipes of a program that has just been started.
#[derive(Debug)]
pub struct Pipes {
    /// Its standard input. Dropping it is the end of it.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: Output,
    /// Where the conversation is recorded, if it is: every driver records its lines.
    pub tape: Option<Tape>,
}

impl Programs {
    /// Starts programs whose conversations are recorded on `tape`.
    #[must_use]
    pub fn taped(tape: Option<Tape>) -> Self {
        Self { supervisor: Arc::default(), tape }
    }

    /// Starts a program. It inherits our environment, because its login is there; a program that cannot be started is a
    /// failure at once.
    pub async fn start(&self, command: Command) -> Result<(Agent, Pipes), Failure> {
        let name = command.name.clone();
        let cannot = |why: String| {
            let program = command.program.display();
            Failure::new(FailureCode::AgentExited, format!("{program} could not be started: {why}"))
        };
        let child = self.supervisor().start(spec(&command)).map_err(|error| cannot(error.to_string()))?;
        let Some(mut session) = child.next_session().await else {
            let report = child.wait().await.report;
            let why = report.map_or_else(|| "it was stopped".to_owned(), |report| report.to_string());
            return Err(cannot(why));
        };
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err(cannot("it has no pipes".to_owned()));
        };
        let tape = self.tape.as_ref().map(|tape| tape.with(&name));
        Ok((Agent { child, name }, Pipes { stdin, stdout, tape }))
    }

    fn supervisor(&self) -> &Supervisor {
        self.supervisor.get_or_init(|| {
            let launcher = Launcher::current_exe();
            Supervisor::new(Settings { launcher, starting_at_once: STARTING })
        })
    }
}

/// The program as its supervisor sees it. Its user trusts it, so the box is only there to hold its processes together.
fn spec(command: &Command) -> Spec {
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 16 << 10, max_line_bytes: 4096, file: None },
    };
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    let here = || std::env::current_dir().unwrap_or_else(|_| "/".into());
    let cwd = command.cwd.clone().unwrap_or_else(here);
    let passed = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| !command.unset.iter().any(|unset| name == unset));
    let spec = Spec::new(&*command.name, command.program.clone(), cwd, sandbox, rules)
        .args(command.args.iter().cloned())
        .pass_env(passed)
        .spoken_to();
    command.set.iter().fold(spec, |spec, (name, value)| spec.set_env(name, value))
}

impl Agent {
    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.child.status().ended.is_some()
    }

    /// What its supervisor knows about it.
    #[must_use]
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Why it is of no use, with how it ended and what it said on standard error.
    pub async fn last_words(&self, problem: &str) -> Failure {
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        let said = match ended.ok().and_then(|outcome| outcome.report) {
            Some(report) => report.to_string(),
            None => {
                let lines = self.child.stderr_tail().into_iter().map(|line| line.text);
                lines.collect::<Vec<String>>().join("\n")
            }
        };
        let message = if said.is_empty() { problem.to_owned() } else { format!("{problem}\n{said}") };
        Failure::new(FailureCode::AgentExited, message)
    }

    /// SIGTERM, and SIGKILL for the whole tree after `grace`. Returns when nothing is left.
    pub async fn stop(&self, grace: Duration) {
        self.child.stop(Ladder { ask: Duration::ZERO, term: grace }).await;
    }

    /// SIGKILL for the whole tree. Returns when nothing is left.
    pub async fn kill(&self) {
        self.child.kill().await;
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
