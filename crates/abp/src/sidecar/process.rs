//! Any program as a sidecar: its output is what the assistant says, line by line, and its exit code is the outcome.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Settings, Supervisor};
use outrigger_supervise::launch::{Launcher, Status};
use outrigger_supervise::logs::Stream;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec, Spoken, Stdin, Stdout, Tee};
use outrigger_supervise::state::{Heartbeat, Ladder, Restart};
use outrigger_wire::line::{Item, LineReader, Splitter, dialect};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::run::{EmitError, Run};
use super::serve::{log, main};
use super::terms::{Done, Failure, Identity};
use crate::protocol::{Capability, ErrorCode, Outcome, SupportLevel};

/// A longer line of the program is cut.
const MAX_LINE_BYTES: usize = 256 * 1024;

/// How much of its output is repeated when it is done.
const PREVIEW_BYTES: usize = 2000;

/// What follows a cancel: a goodbye nobody can ask for, then SIGTERM, then SIGKILL.
const LADDER: Ladder = Ladder { ask: Duration::ZERO, term: Duration::from_secs(3) };

/// A program, and how it gets its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name on the `PATH`.
    pub program: OsString,
    /// Its arguments. `{task}` is the task of the order.
    pub args: Vec<String>,
    /// How it gets the task otherwise.
    pub task: Task,
    /// What becomes of its standard error.
    pub stderr: Stderr,
}

/// How a program gets its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// On its standard input, which then ends.
    OnStdin,
    /// Only in its arguments; its standard input is empty.
    InArguments,
}

/// What becomes of a program's standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// It goes to ours.
    Log,
    /// Its lines are warnings.
    Warnings,
}

/// Serves runs by running a program for each, as a whole process. The executable must call
/// [`intercept`](outrigger_supervise::launch::intercept) first, because it is also the launcher.
pub fn serve_command(command: Command) -> ExitCode {
    let identity = Identity {
        capabilities: [(Capability::Streaming, SupportLevel::Native)].into_iter().collect(),
        ..Identity::named("process")
    };
    main(identity, move |run| execute(run, command.clone()))
}

/// Runs the program once, in the workspace of the order, with the variables of the order.
///
/// # Errors
/// When it cannot be started.
pub async fn execute(run: Run, command: Command) -> Result<Done, Failure> {
    let order = run.order();
    let cwd = std::path::absolute(Path::new(&order.workspace.root))?;
    let args: Vec<String> = command.args.iter().map(|arg| arg.replace("{task}", &order.task)).collect();
    let (program, shown) = (command.program.to_string_lossy().into_owned(), shown(&command.program, &args));
    let (tee, spoken) = mpsc::channel(16);
    let mut spec =
        Spec::new("process", &command.program, cwd, Request::new(Level::Off, Limits::as_the_host()), rules())
            .args(args)
            .pass_env(std::env::vars_os().map(|(name, _)| name));
    spec.program
        .environment
        .set
        .extend(order.config.env.iter().map(|(name, value)| (name.into(), value.into())));
    spec.stdout = Stdout::Session;
    spec.stdin = match command.task {
        Task::OnStdin => Stdin::Session,
        Task::InArguments => Stdin::Null,
    };
    spec.tee = Some(Tee::new(tee));

    let refused = |what: String| Failure::new(format!("`{shown}` {what}"), ErrorCode::BackendUnavailable);
    let supervisor =
        Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN });
    let child = supervisor.start(spec).map_err(|error| refused(format!("cannot be started: {error}")))?;
    let Some(mut session) = child.next_session().await else {
        let why = child.last_report().and_then(|report| report.detail.clone()).unwrap_or_default();
        return Err(Failure::new(
            format!("`{shown}` could not be started: {why}"),
            ErrorCode::BackendNotFound,
        ));
    };
    run.started(&shown).await?;
    let task = order.task.clone();
    let stdin = session.stdin.take();
    let feed = async move {
        // A program that does not want its task may close its input.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(task.as_bytes()).await;
        }
    };
    let stdout = session.stdout.take();
    let speak = async {
        let ((), said, ()) =
            tokio::join!(feed, deltas(&run, stdout), complaints(&run, spoken, command.stderr));
        said
    };
    let said = watched(&run, &child, speak).await?;
    let status = child.wait().await.report.and_then(|report| report.status).unwrap_or(Status::Unknown);
    let exit_code = match status {
        Status::Code(code) => Some(code),
        Status::Signal(_) | Status::Unknown => None,
    };
    run.command_executed(&shown, exit_code, Some(&said)).await?;
    Ok(match (exit_code, run.cancel_reason()) {
        (_, Some(_)) => Done::with(Outcome::Partial),
        (Some(0), None) => Done::as_it_went(),
        (Some(_) | None, None) => {
            run.error(&last_words(&program, status, &child), None).await?;
            Done::with(Outcome::Failed)
        }
    })
}

/// How a program ended that did not end well, with the last that it said on standard error.
fn last_words(program: &str, status: Status, child: &Child) -> String {
    match child.stderr_tail().iter().rfind(|line| !line.text.trim().is_empty()) {
        Some(line) => format!("`{program}` ended with {status}: {}", line.text.trim()),
        None => format!("`{program}` ended with {status} and said nothing on standard error"),
    }
}

/// Waits until the program has nothing more to say. A cancel stops it, and then it has not.
async fn watched<T>(
    run: &Run,
    child: &Child,
    speak: impl Future<Output = Result<T, EmitError>>,
) -> Result<T, EmitError> {
    tokio::pin!(speak);
    tokio::select! {
        said = &mut speak => return said,
        _ = run.cancelled() => {}
    }
    let (said, _) = tokio::join!(speak, child.stop(LADDER));
    said
}

async fn deltas(run: &Run, stdout: Option<Output>) -> Result<String, EmitError> {
    let mut preview = String::new();
    let Some(stdout) = stdout else { return Ok(preview) };
    let mut lines = LineReader::new(stdout, dialect::logs(MAX_LINE_BYTES));
    // The policy of logs finds no fault with anything; only the pipe itself can break.
    while let Ok(Some(Item::Line(line))) = lines.next().await {
        let text = format!("{}\n", line.text_lossy());
        if preview.len() + text.len() <= PREVIEW_BYTES {
            preview.push_str(&text);
        }
        run.delta(&text).await?;
    }
    Ok(preview)
}

/// Passes on what the program says on standard error, until it ends.
async fn complaints(run: &Run, mut spoken: mpsc::Receiver<Spoken>, wanted: Stderr) {
    let mut lines = Splitter::new(dialect::logs(MAX_LINE_BYTES));
    let mut complaints = Vec::new();
    while let Some(Spoken { stream, bytes, .. }) = spoken.recv().await {
        if stream != Stream::Stderr {
            continue;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let Ok(decoded) = lines.decode(rest) else { break };
            if let Some(Item::Line(line)) = decoded.item {
                complaints.push(line.text_lossy().into_owned());
            }
            rest = &rest[decoded.consumed..];
        }
        for complaint in complaints.drain(..) {
            complain(run, wanted, &complaint).await;
        }
    }
    if let Ok(Some(Item::Line(line))) = lines.finish() {
        complain(run, wanted, &line.text_lossy()).await;
    }
}

async fn complain(run: &Run, wanted: Stderr, line: &str) {
    match wanted {
        Stderr::Log => log(line),
        // The end of the run is noticed by whoever reads the output.
        Stderr::Warnings => {
            let _ = run.warning(line).await;
        }
    }
}

fn rules() -> Rules {
    Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None },
    }
}

fn shown(program: &OsString, args: &[String]) -> String {
    std::iter::once(program.to_string_lossy().into_owned())
        .chain(args.iter().cloned())
        .collect::<Vec<_>>()
        .join(" ")
}
