//! A sidecar as a whole process: says that it is ready, reads until there is nothing more to read, and ends as the contract says.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use outrigger_wire::line::{LineReader, dialect};
use outrigger_wire::standard;
use outrigger_wire::tape::{Tape, TapeSize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conversation::{Conversation, ROOM_FOR_ANSWERS};
use super::core::{Aborted, Core, Drivers};
use super::defaults::Defaults;
use super::life::{self, Exit};
use super::log::{Log, LogLevel};
use super::options::Options;
use super::replay::Replay;
use super::sessions::Sessions;
use super::{dispatch, write};
use crate::provider::process::Programs;

/// How large a recording may become.
const TAPE: TapeSize = TapeSize(1 << 30);

/// Variables whose values are secrets.
const SECRETS: [&str; 4] = ["CURSOR_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// Serves a host on standard input and output until one of them ends. The executable must call
/// [`intercept`](outrigger_supervise::launch::intercept) first, because it is also the launcher of the agents.
pub fn serve(options: Options) -> ExitCode {
    // One thread for the conversation: it only passes on, and what drivers do is done elsewhere.
    let tokio = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(tokio) => tokio,
        Err(error) => return refuse(&format!("cannot start: {error}")),
    };
    let code = tokio.block_on(async {
        let signals = Signals::new().map_err(|error| format!("cannot hear signals: {error}"))?;
        let (input, output) =
            standard::take().map_err(|error| format!("cannot take the standard streams: {error}"))?;
        converse(input, output, options, signals.next()).await
    });
    // A terminal that is being read in a thread must not keep us.
    tokio.shutdown_background();
    match code {
        Ok(exit) => exit.code(),
        Err(why) => refuse(&why),
    }
}

/// Serves a host on any two streams, until one of them ends or `killed` says with which signal.
///
/// # Errors
/// When a recording cannot be made or played; the sentence says why.
pub async fn converse(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    options: Options,
    killed: impl Future<Output = Signal> + Send,
) -> Result<Exit, String> {
    let tape = options.record.as_deref().map(record).transpose()?;
    let replay =
        options.replay.as_deref().map(Replay::load).transpose().map_err(|error| error.to_string())?;
    let conversation = Arc::new(Conversation::new(tape.clone()));
    let version = options.version.clone();
    let core = core(options, Arc::clone(&conversation), replay, tape.clone());

    conversation.say(None, "ready", &[("version", Value::from(1))]);
    let _writing = Aborted(tokio::spawn(write::write(Arc::clone(&conversation), output)));
    core.log.info(format_args!("ready, version {version}"));
    let end_of_input = CancellationToken::new();
    let _reading = Aborted(tokio::spawn(read(Arc::clone(&core), input, tape.clone(), end_of_input.clone())));

    let exit = life::until_the_end(&core, &end_of_input, killed).await;
    if let Some(tape) = tape {
        tape.summary();
    }
    Ok(exit)
}

/// What asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// Reads until there is nothing more. Nothing is waited for but input, except by a host that writes and never reads.
async fn read(
    core: Arc<Core>,
    input: impl AsyncRead + Unpin,
    tape: Option<Tape>,
    end_of_input: CancellationToken,
) {
    let _end = end_of_input.drop_guard();
    let mut reader = LineReader::new(input, dialect::HELMOR);
    if let Some(tape) = tape {
        reader = reader.taped(tape);
    }
    loop {
        match reader.next().await {
            Ok(Some(item)) => dispatch::line(&core, &item),
            Ok(None) => return,
            Err(error) => return core.log.error(error),
        }
        while let Ok(Some(item)) = reader.next_buffered() {
            dispatch::line(&core, &item);
            if core.conversation.waiting() > ROOM_FOR_ANSWERS {
                break;
            }
        }
        core.conversation.room(ROOM_FOR_ANSWERS).await;
    }
}

fn core(
    options: Options,
    conversation: Arc<Conversation>,
    replay: Option<Replay>,
    tape: Option<Tape>,
) -> Arc<Core> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let said = || variable("HELMOR_LOG").map_or(LogLevel::Info, |word| LogLevel::from_word(&word));
    let folder = options.log_dir.or_else(|| variable("HELMOR_LOG_DIR").map(Into::into));
    let log = Log::new(options.log_level.unwrap_or_else(said), folder);
    for secret in SECRETS.iter().filter_map(|name| variable(name)) {
        log.hide(&secret);
    }
    Arc::new(Core {
        conversation,
        replay,
        providers: options.providers,
        programs: Programs::taped(tape),
        sessions: Sessions::default(),
        defaults: Mutex::new(Defaults::default()),
        heartbeat: options.heartbeat,
        api_errors: options.api_errors,
        warm: options.warm,
        log,
        drivers: Drivers::default(),
        tasks: TaskTracker::new(),
        closing: CancellationToken::new(),
        shutdown: Mutex::new(None),
        shut_down: CancellationToken::new(),
        warming: Mutex::new(false),
    })
}

fn record(path: &Path) -> Result<Tape, String> {
    // Everything that is said is in it, tokens that a host passes on included.
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    // Without a buffer: what was said before a sidecar was killed is what one wants to read.
    Ok(Tape::new(file, TAPE))
}

/// Says why there is no sidecar.
fn refuse(sentence: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "helmor-sidecar: {sentence}");
    ExitCode::FAILURE
}

struct Signals {
    term: Stream,
    interrupt: Stream,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(mut self) -> Signal {
        tokio::select! {
            _ = self.term.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
        }
    }
}
