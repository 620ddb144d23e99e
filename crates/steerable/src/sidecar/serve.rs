//! A sidecar as a whole process: boots, says that it is ready, serves, and ends as the contract says.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    CallIds, CancelWire, Crowded, DuplicateIds, IncomingLimits, Lane, OutboxLimits, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::EnvelopePolicy;
use outrigger_wire::standard;
use serde_json::value::to_raw_value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::handler::Desk;
use super::life::{Closing, LAST_WORDS, Life};
use super::options::{Marker, Options};
use super::runtime::Runtime;
use super::withheld::Withheld;
use crate::protocol::{ListenInfo, PROTOCOL_VERSION, READY_MARKER, Ready, Settings};
use crate::store::{MemoryLimits, OpenError, Store};

/// What a storage that a newer program wrote ends with: `EX_TEMPFAIL`, try again with that program.
const TOO_NEW: u8 = 75;

/// How long everything that has no limit of its own may take. A year is for ever, and no clock overflows with it.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long streams have to end after a signal, out of [`LAST_WORDS`].
const AFTER_SIGNAL: Duration = Duration::from_millis(100);

/// After how many turns of tasks the pipes are looked at, if there is always something to do. A stream's turn takes about a
/// tenth of a millisecond, so a ping is seen within one.
const EVENT_INTERVAL: u32 = 8;

const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STEERABLE_SIDECAR,
    max_line_out: 16 * 1024 * 1024,
    max_calls: 1024,
    incoming: IncomingLimits { running: 256, waiting: 1024, notifications: 256, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 1 << 20, reply_bytes: 1 << 20, events: 1, event_bytes: 1 },
    // A host may stop reading for as long as it likes: streams wait, and nothing is lost.
    write_stall: FOR_EVER,
    // How long an end may take is for `Life` to say, because hosts can set it.
    drain: FOR_EVER,
    cancel: CancelWire::Silent,
    duplicate_ids: DuplicateIds::Serve,
};

/// Serves a host on standard input and output until one of them ends. The executable must call
/// [`intercept`](outrigger_supervise::launch::intercept) first, because it is also the launcher of what tools start.
pub fn serve(options: Options) -> ExitCode {
    let started = Instant::now();
    // One thread: everything here waits most of the time, and a second one costs more to wake than it saves.
    let tokio = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()
    {
        Ok(tokio) => tokio,
        Err(error) => return refuse(1, &format!("cannot start: {error}")),
    };
    let code = tokio.block_on(run(options, started)).unwrap_or_else(|code| code);
    // A terminal that is being read in a thread must not keep us.
    tokio.shutdown_background();
    code
}

/// `Err` is the code of a sidecar that never became ready.
async fn run(options: Options, started: Instant) -> Result<ExitCode, ExitCode> {
    let store = open(&options)?;
    let settings = kept(&store, &options).await?;
    let cannot = |what: &str, error: std::io::Error| refuse(1, &format!("cannot {what}: {error}"));
    let signals = Signals::new().map_err(|error| cannot("hear signals", error))?;
    let (input, output) = standard::take().map_err(|error| cannot("take the standard streams", error))?;

    let runtime = Arc::new(Runtime::new(options, store, settings, started));
    let life = Arc::new(Life::default());
    if runtime.options.marker == Marker::Write {
        // In one write, so that nobody reads half of it. Who does not listen to standard error hears of it from standard output.
        let marker = format!("{READY_MARKER}{}\n", runtime.health().get());
        let _ = std::io::stderr().write_all(marker.as_bytes());
    }
    let hung_up = CancellationToken::new();
    let desk = Desk { runtime: Arc::clone(&runtime), life: Arc::clone(&life) };
    let wiring = Wiring::new(Withheld::new(input, hung_up.clone()), output);
    let peer = Peer::start(wiring.call_ids(CallIds::Prefixed("srv_")), Arc::new(desk), CONFIG);
    // The peer's tasks have not run yet, so nothing is before this.
    let _ = peer.notify(Lane::Control, "lifecycle.ready", ready(&runtime).ok().as_deref()).await;
    runtime.log.info("steerable.sidecar", format_args!("ready after {:?}", started.elapsed()));

    until_the_end(&runtime, &life, &peer, signals, &hung_up).await;
    runtime.log.info("steerable.sidecar", "ended");
    runtime.log.flush(LAST_WORDS);
    Ok(ExitCode::SUCCESS)
}

async fn until_the_end(
    runtime: &Arc<Runtime>,
    life: &Arc<Life>,
    peer: &Peer,
    mut signals: Signals,
    hung_up: &CancellationToken,
) {
    let grace = || runtime.settings().grace_period.max(LAST_WORDS);
    let end_of_input = async {
        hung_up.cancelled().await;
        life.hung_up();
        life.drain(runtime, peer, runtime.settings().grace_period).await;
    };
    let closed = tokio::select! {
        biased;
        end = peer.ended() => {
            runtime.log.warning("steerable.sidecar", format_args!("the conversation is over: {end}"));
            return;
        }
        () = signals.any() => {
            let leave = async {
                life.drain(runtime, peer, AFTER_SIGNAL).await;
                peer.close().await
            };
            timeout(LAST_WORDS, leave).await
        }
        closing = life.closing() => match closing {
            Closing::InGoodOrder => timeout(grace(), peer.close()).await,
            Closing::Now => timeout(LAST_WORDS, peer.close()).await,
        },
        () = end_of_input => timeout(grace(), peer.close()).await,
    };
    if closed.is_err() {
        runtime.log.warning("steerable.sidecar", "the host did not read the last lines");
    }
}

fn open(options: &Options) -> Result<Store, ExitCode> {
    let Some(path) = &options.storage_path else { return Ok(Store::memory(MemoryLimits::STANDARD)) };
    Store::open(path).map_err(|error| {
        let code = if matches!(error, OpenError::TooNew { .. }) { TOO_NEW } else { 1 };
        refuse(code, &error.to_string())
    })
}

/// The settings that were kept, and the flags, which say it for this time.
async fn kept(store: &Store, options: &Options) -> Result<Settings, ExitCode> {
    let kept = store.settings().await.map_err(|error| refuse(1, &error.to_string()))?;
    let kept = to_raw_value(&kept).map_err(|error| refuse(1, &error.to_string()))?;
    // Settings of another version that no longer fit are not worth refusing to start.
    let usual = from_environment(|name| std::env::var(name).ok());
    let settings = usual.changed_by(Some(&kept)).unwrap_or(usual);
    Ok(Settings { log_level: options.log_level.unwrap_or(settings.log_level), ..settings })
}

/// What holds until somebody sets something: the variables of the original say it. One that does not fit says nothing.
fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Settings {
    let mut settings = Settings::STANDARD;
    for (name, member) in [
        ("STEERABLE_LLM_CONNECT_TIMEOUT_SEC", "connectTimeoutSeconds"),
        ("STEERABLE_LLM_STREAM_READ_TIMEOUT_SEC", "idleTimeoutSeconds"),
        ("STEERABLE_RETRY_MAX_ATTEMPTS", "retryMaxAttempts"),
    ] {
        let said = variable(name).and_then(|text| text.trim().parse::<serde_json::Number>().ok());
        let said = said.and_then(|number| to_raw_value(&serde_json::json!({ member: number })).ok());
        if let Some(said) = said {
            settings = settings.changed_by(Some(&said)).unwrap_or(settings);
        }
    }
    settings
}

fn ready(runtime: &Runtime) -> serde_json::Result<Box<serde_json::value::RawValue>> {
    to_raw_value(&Ready {
        version: runtime.options.version.clone(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        pid: std::process::id(),
        listen_info: ListenInfo { transport: "stdio".to_owned() },
    })
}

/// Says why there is no sidecar.
fn refuse(code: u8, sentence: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "steerable-sidecar: {sentence}");
    ExitCode::from(code)
}

/// What asks a process to end.
struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_original_are_heard_where_they_fit() {
        let settings = from_environment(|name| match name {
            "STEERABLE_LLM_CONNECT_TIMEOUT_SEC" => Some("2.5".to_owned()),
            "STEERABLE_LLM_STREAM_READ_TIMEOUT_SEC" => Some("soon".to_owned()),
            "STEERABLE_RETRY_MAX_ATTEMPTS" => Some("7".to_owned()),
            _ => None,
        });
        let expected = Settings {
            connect_timeout: std::time::Duration::from_millis(2500),
            retry_max_attempts: 7,
            ..Settings::STANDARD
        };
        assert_eq!(settings, expected);
        let too_many = |name: &str| (name == "STEERABLE_RETRY_MAX_ATTEMPTS").then(|| "999".to_owned());
        assert_eq!(from_environment(too_many), Settings::STANDARD);
    }
}
