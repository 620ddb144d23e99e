//! `run_command`: a program in the supervisor's strict box. It reads the granted folders and the system, writes what may be
//! written, has no network, and ends with everything that it started.

mod output;
mod scratch;

use std::path::PathBuf;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Outcome, Supervisor};
use outrigger_supervise::launch::{Status, signal_name};
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec, Spoken, Stdin, Tee};
use outrigger_supervise::state::{Heartbeat, Restart};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::output::Output;
use self::scratch::Scratch;
use super::arguments::Arguments;
use super::files::{Need, Trouble, locate, real_path};
use super::grants::{Commands, Grants};
use super::outcome::text;
use super::tool::{Mode, Place, Tool, Turns};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};

/// How long a command may take, unless the call says otherwise.
const USUAL_MS: u64 = 120_000;

/// How long a command may take at most.
const MAX_MS: u64 = 3_600_000;

/// Bytes of standard input.
const MAX_STDIN: usize = 1 << 20;

/// The largest file that a command may write.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Pieces of output that may wait for us.
const WAITING: usize = 16;

/// Variables that a command gets, if we have them. Keys are not among them.
const PASSED: [&str; 7] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME"];

/// The tool.
pub(super) struct CommandTool {
    spec: ToolSpec,
    supervisor: Supervisor,
}

impl CommandTool {
    pub(super) fn new(supervisor: Supervisor) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "Without `args`: a line for /bin/sh. With `args`: the program."},
                "args": {"type": "array", "items": {"type": "string"}, "maxItems": 4096, "description": "The arguments of the program, which then runs without a shell."},
                "cwd": {"type": "string", "minLength": 1, "description": "The folder it runs in. Default: the first root."},
                "stdin": {"type": "string", "maxLength": MAX_STDIN, "description": "What it reads from standard input. Default: nothing."},
                "timeoutMs": {"type": "integer", "minimum": 1, "maximum": MAX_MS, "description": "After this it is killed. Default: 120000."},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        let description = "Runs a command and waits for its end. It runs in a sandbox: it can read the granted folders and the \
                           system, write only where files may be written, and has no network. Answers with its output (the \
                           beginning and the end of it, if it is long) and how it ended.";
        Self { spec: super::toolbox::spec("run_command", description, &parameters), supervisor }
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::Destructive
    }

    fn turns(&self) -> Turns {
        Turns::Alone
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            let done = run(&self.supervisor, &arguments, &at.grants).await;
            done.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::Destructive))
        })
    }
}

async fn run(supervisor: &Supervisor, arguments: &Arguments, grants: &Grants) -> Result<ToolResult, Trouble> {
    if grants.commands == Commands::Deny {
        let reason = "no command may be run; --commands ask|allow or the member commands would grant it";
        return Err(Trouble::Denied(reason.to_owned()));
    }
    // Lives as long as the command: it is removed whatever happens, also if this future is dropped.
    let scratch = Scratch::make()
        .map_err(|error| Trouble::Failed(format!("no folder for temporary files could be made: {error}")))?;
    let cwd = folder(arguments.optional_string("cwd"), grants, &scratch)?;
    let within = Duration::from_millis(arguments.number("timeoutMs", USUAL_MS).min(MAX_MS));
    let (sender, mut pieces) = mpsc::channel(WAITING);
    let stdin = arguments.optional_string("stdin").map(str::to_owned);
    let mut spec = spec(arguments, grants, cwd, &scratch);
    spec.tee = Some(Tee::new(sender));
    if stdin.is_some() {
        spec.stdin = Stdin::Session;
    }
    let started = Instant::now();
    let child = supervisor.start(spec).map_err(|error| Trouble::Failed(error.to_string()))?;
    let mut output = Output::new();
    let watching = async {
        let (outcome, ()) = tokio::join!(listen(&child, &mut pieces, &mut output), feed(&child, stdin));
        outcome
    };
    let (outcome, how) = match tokio::time::timeout(within, watching).await {
        Ok(outcome) => (outcome, How::ByItself),
        Err(_) => (listen_while_killing(&child, &mut pieces, &mut output).await, How::OutOfTime(within)),
    };
    Ok(tell(&outcome, how, output, started.elapsed()))
}

/// How a command came to its end.
#[derive(Clone, Copy, Debug)]
enum How {
    ByItself,
    OutOfTime(Duration),
}

/// The folder that a command runs in.
fn folder(cwd: Option<&str>, grants: &Grants, scratch: &Scratch) -> Result<PathBuf, Trouble> {
    let wanted = match (cwd, grants.base()) {
        (Some(cwd), _) => cwd,
        (None, Some(_)) => ".",
        (None, None) => return Ok(scratch.path().to_owned()),
    };
    let spot = locate(grants, Need::Read, wanted)?;
    let opened = spot.open_folder()?;
    Ok(real_path(&opened).unwrap_or(spot.path))
}

fn spec(arguments: &Arguments, grants: &Grants, cwd: PathBuf, scratch: &Scratch) -> Spec {
    let command = arguments.string("command");
    let args = arguments.strings("args");
    let limits = Limits { file_size_bytes: Some(MAX_FILE_BYTES), ..Limits::as_the_host() };
    let mut sandbox = Request::new(Level::Required, limits);
    sandbox.read.clone_from(&grants.read_roots);
    sandbox.write.clone_from(&grants.write_roots);
    sandbox.write.push(scratch.path().to_owned());
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 1, tail_bytes: 1024, max_line_bytes: 1024, file: None },
    };
    let (program, args) = match arguments.has("args") {
        true => (command, args),
        // Two pipes would mix up what was said in which order; one keeps it.
        false => ("/bin/sh", vec!["-c".to_owned(), format!("exec 2>&1; {command}")]),
    };
    Spec::new("run_command", program, cwd, sandbox, rules)
        .args(args)
        .pass_env(PASSED)
        .set_env("HOME", scratch.path())
        .set_env("TMPDIR", scratch.path())
        .set_env("TERM", "dumb")
        .set_env("SHELL", "/bin/sh")
}

/// Writes the input, and ends it.
async fn feed(child: &Child, stdin: Option<String>) {
    let Some(text) = stdin else { return };
    let Some(mut session) = child.next_session().await else { return };
    if let Some(mut pipe) = session.stdin.take() {
        // A command that does not care for its input may close it.
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

/// Takes in what the command says until it has ended.
async fn listen(child: &Child, pieces: &mut mpsc::Receiver<Spoken>, output: &mut Output) -> Outcome {
    let outcome = loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => output.push(&piece.bytes),
            outcome = child.wait() => break outcome,
        }
    };
    while let Ok(piece) = pieces.try_recv() {
        output.push(&piece.bytes);
    }
    outcome
}

async fn listen_while_killing(
    child: &Child,
    pieces: &mut mpsc::Receiver<Spoken>,
    output: &mut Output,
) -> Outcome {
    let (outcome, _) = tokio::join!(listen(child, pieces, output), child.kill());
    outcome
}

fn tell(outcome: &Outcome, how: How, output: Output, took: Duration) -> ToolResult {
    let (said, cut) = output.finish();
    let status = outcome.report.as_ref().and_then(|report| report.status);
    let mut result = text(said).with("runMs", u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    if cut > 0 {
        result = result.with("cutBytes", cut);
    }
    let error = match (how, status) {
        (How::OutOfTime(within), _) => {
            Some(format!("it was stopped, because it took longer than {} ms", within.as_millis()))
        }
        (How::ByItself, Some(Status::Code(code))) => {
            result = result.with("exitCode", code);
            (code != 0).then(|| format!("exit code {code}"))
        }
        (How::ByItself, Some(Status::Signal(signal))) => {
            let name = signal_name(signal).map_or_else(|| signal.to_string(), ToString::to_string);
            result = result.with("signal", name.as_str());
            Some(format!("it was ended by signal {name}"))
        }
        (How::ByItself, Some(Status::Unknown)) => Some("nobody saw how it ended".to_owned()),
        (How::ByItself, None) => {
            let detail = outcome.report.as_ref().and_then(|report| report.detail.clone());
            Some(format!(
                "it could not be started: {}",
                detail.unwrap_or_else(|| "no reason was given".into())
            ))
        }
    };
    match error {
        None => result,
        Some(error) => ToolResult { data: result.data, ..ToolResult::failure(error) },
    }
}
