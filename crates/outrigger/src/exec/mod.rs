//! `outrigger exec`: any program under supervision, from the command line.

mod forward;
pub(crate) mod outcome;
pub(crate) mod owner;
mod plan;
mod watch;

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use outrigger_supervise::driver::{Child, ChildEvent, Events, Heard, Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::report::Report;
use outrigger_supervise::spec::Tee;
use outrigger_supervise::state::{Incarnation, Ladder};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::forward::Output;
use self::owner::{Owner, Wish};
use self::watch::Watcher;
use crate::args::ExecArgs;
use crate::say::{self, Format};
use crate::trees;

/// Chunks of output that may wait for a slow reader. Then the child waits.
const CHUNKS: usize = 16;

/// How long a stop waits for whoever reads our output, beyond the ladder.
const READER_GRACE: Duration = Duration::from_secs(2);

/// Runs the program and returns its exit code, or ours.
pub(crate) fn run(args: ExecArgs, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(supervise(args, format))?;
    // A thread may still wait for a terminal or a pipe that never moves; the exit must not wait for it.
    runtime.shutdown_background();
    Ok(code)
}

async fn supervise(args: ExecArgs, format: Format) -> anyhow::Result<ExitCode> {
    let mut owner = Owner::watch(args.stdin)?;
    let ladder = Ladder { ask: args.ask_within, term: args.term_within };
    let (timeout, sandbox) = (args.timeout, args.sandbox);
    let (tee, spoken) = mpsc::channel(CHUNKS);
    let mut spec = plan::spec(&args)?;
    spec.tee = Some(Tee::new(tee));

    let output = Output::new(format);
    let (supervisor, unwritten) = supervisor(&output, format).await;
    let child = supervisor.start(spec)?;
    let watcher = Watcher::new(&args, output.clone(), unwritten);
    let mut watching = tokio::spawn(watcher.watch(child.clone(), spoken));

    let mut telling = std::pin::pin!(tell(child.events(), &output, format));
    let mut deadline = std::pin::pin!(at(timeout.and_then(after)));
    let mut why = Ended::ByItself;
    // Once a stop has begun, this is when even a reader of our output is no longer waited for.
    let mut patience = None;
    let stopped_by = || after(ladder.ask.saturating_add(ladder.term).saturating_add(READER_GRACE));
    loop {
        tokio::select! {
            () = &mut telling => break,
            wish = owner.next() => {
                why = Ended::ByRequest;
                match wish {
                    Wish::Stop => {
                        patience = stopped_by();
                        stop(&child, ladder);
                        if format == Format::Text && std::io::stderr().is_terminal() {
                            let name = child.name();
                            let text = format!("{}: `{name}` was asked to stop; once more kills it\n", say::label());
                            output.note(&text).await;
                        }
                    }
                    Wish::Kill => {
                        patience = after(READER_GRACE);
                        watching.abort();
                        kill(&child);
                    }
                }
            }
            () = output.closed(), if why == Ended::ByItself => {
                (why, patience) = (Ended::ReaderGone, stopped_by());
                stop(&child, ladder);
            }
            () = &mut deadline, if why == Ended::ByItself => {
                (why, patience) = (Ended::TimedOut, stopped_by());
                stop(&child, ladder);
            }
            () = at(patience) => {
                // The processes are gone by now; only what they said is stuck.
                watching.abort();
                kill(&child);
                break;
            }
        }
    }
    let outcome = child.wait().await;
    drop(child);
    let code = outcome::exit_code(&outcome, why);
    let conclude = async {
        // The last words of the child are still on their way to us, and from us to our reader.
        let _ = (&mut watching).await;
        match format {
            Format::Json => {
                output.events([Told::Done { reason: outcome::reason(&outcome, why), exit_code: code }]).await;
            }
            Format::Text => {
                if let Some(text) = outcome::conclusion(&outcome, why, sandbox) {
                    output.note(&format!("{}: {text}\n", say::label())).await;
                }
            }
        }
        output.flushed().await;
    };
    tokio::select! {
        () = conclude => {}
        // Whoever asks now does not want to wait for a slow reader either.
        _ = owner.next() => {}
        () = at(patience.and_then(|_| after(READER_GRACE))) => {}
    }
    Ok(ExitCode::from(code))
}

/// The moment so far from now; none, if the clock does not reach that far.
fn after(wait: Duration) -> Option<Instant> {
    Instant::now().checked_add(wait)
}

/// Waits for a moment that may never come.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A supervisor that has cleared up after hosts that crashed, and why nothing can be written down, if that is so. Only a
/// machine without pid namespaces has anything to write down, so it goes on without.
async fn supervisor(output: &Output, format: Format) -> (Supervisor, Option<String>) {
    let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
    let (leftovers, swept) = match trees::open() {
        Ok(opened) => opened,
        Err(error) => return (Supervisor::new(settings), Some(crate::say::whole(&error))),
    };
    if !swept.killed.is_empty() {
        let count = swept.killed.len();
        match format {
            Format::Json => output.events([Told::Swept { killed: count }]).await,
            Format::Text => {
                let text =
                    format!("{}: {count} processes that a crashed host had left were killed\n", say::label());
                output.note(&text).await;
            }
        }
    }
    (Supervisor::with_leftovers(settings, leftovers), None)
}

/// Why the run came to its end, beyond what the child's own report says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    ByItself,
    ByRequest,
    ReaderGone,
    TimedOut,
}

fn kill(child: &Child) {
    let child = child.clone();
    tokio::spawn(async move { child.kill().await });
}

/// Begins to stop; the end of the child's events says when that is done.
fn stop(child: &Child, ladder: Ladder) {
    let child = child.clone();
    tokio::spawn(async move { child.stop(ladder).await });
}

/// Says what happens to the child, until nothing more will.
async fn tell(mut events: Events, output: &Output, format: Format) {
    while let Some(heard) = events.next().await {
        match (format, heard) {
            (Format::Json, heard) => output.events([told(&heard)]).await,
            // The last report is for the conclusion; those before it announce a restart.
            (Format::Text, Heard::Event(ChildEvent::Ended(report))) if report.next.is_restart() => {
                output.note(&format!("{}: {}\n", say::label(), outcome::brief(&report))).await;
            }
            (Format::Text, Heard::Event(_) | Heard::Missed(_)) => {}
        }
    }
}

/// What programs see of it. The kind of event always comes first.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'a> {
    State { incarnation: Incarnation, from: &'a str, to: &'a str, because: &'a str },
    Exit(&'a Report),
    Missed { count: u64 },
    Swept { killed: usize },
    Done { reason: &'a str, exit_code: u8 },
}

fn told(heard: &Heard) -> Told<'_> {
    match heard {
        Heard::Event(ChildEvent::Changed(change)) => Told::State {
            incarnation: change.incarnation,
            from: change.from.code(),
            to: change.to.code(),
            because: change.trigger.code(),
        },
        Heard::Event(ChildEvent::Ended(report)) => Told::Exit(report),
        Heard::Missed(count) => Told::Missed { count: *count },
    }
}
