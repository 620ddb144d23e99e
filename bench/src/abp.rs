//! Events of an agent from a child's standard output to a receipt on disk, against parsing the same bytes and nothing else.
//!
//! Three processes take part: this one only compares; it starts itself as a driver, whose processor time and memory are
//! nobody else's; and the driver starts this program as the child, under the supervisor and through the control plane, as
//! `outrigger run` does. The child's time is not counted.

#![expect(
    clippy::disallowed_methods,
    reason = "the driver is a process of its own so that its memory can be measured"
)]

use std::borrow::Cow;
use std::io::{BufRead, BufWriter, Write};
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outrigger_abp::host::{BackendSpec, How, RunControl, Sidecar, Terms, Watcher, Wish};
use outrigger_abp::protocol::{AgentEvent, OrderId, Raw, RunId, Usage, WorkOrder};
use outrigger_abp::receipt::{Closing, Ending, Folder, RecordError, Recorder, SpoolLimit};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use rustix::time::{ClockId, clock_gettime};

use crate::Filter;
use crate::figure::{Bytes, Figure, Measured, Target};
use crate::measure::medians_of;
use crate::table::{Goal, Nanos, Row};

/// The first argument of this program as the driver.
const DRIVER: &str = "__abp_driver";
/// The first argument of this program as the child.
const CHILD: &str = "__abp_child";

/// How many events, and four times as many to see that memory does not follow.
const EVENTS: usize = 100_000;
const MORE: usize = 400_000;
/// The bytes of an event's line, newline included.
const LINE: usize = 150;

/// 600,000 events in a second.
const EACH: Duration = Duration::from_nanos(1_666);
const MOST_MEMORY: Bytes = Bytes(32 << 20);

/// Plays the driver or the child if that is what the arguments say.
pub(crate) fn intercept() -> Option<Result<()>> {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next()?;
    let mut count =
        || arguments.next().context("how many events?")?.parse::<usize>().context("not a number of events");
    match role.as_str() {
        DRIVER => Some(count().and_then(drive)),
        CHILD => Some(count().and_then(speak)),
        _ => None,
    }
}

/// What an event takes.
pub(crate) fn bench(_: &Filter) -> Result<Vec<Row>> {
    let lines = lines(EVENTS);
    let [ours, borrowed, values] = medians_of(
        5,
        [&mut || Ok(driven(EVENTS)?.processor), &mut || timed(|| parse_borrowed(&lines)), &mut || {
            timed(|| parse_values(&lines))
        }],
    )?;
    let row = |name: &str, baseline, theirs, goal| Row {
        name: name.into(),
        unit: "event",
        ours: Ok(Nanos::each(ours, EVENTS)),
        baseline,
        theirs: Nanos::each(theirs, EVENTS),
        goal,
    };
    Ok(vec![
        row("abp/event-to-receipt", "serde_json::Value", values, Goal::Within(EACH)),
        row("abp/event-to-receipt-and-values", "serde_json::Value", values, Goal::AtMost(1.5)),
        row("abp/event-to-receipt-and-structs", "serde_json, borrowed", borrowed, Goal::Shown),
    ])
}

/// What a run takes in memory.
pub(crate) fn memory(_: &Filter) -> Result<Vec<Figure>> {
    let figure = |name, events| -> Result<Figure> {
        let driven = driven(events)?;
        Ok(Figure {
            name,
            measured: Ok(Measured::Size(driven.peak)),
            floor: None,
            goal: Target::Size(MOST_MEMORY),
            note: format!("{events} events, {:.0} k/s", events as f64 / driven.processor.as_secs_f64() / 1e3),
        })
    };
    Ok(vec![figure("abp-memory/100k-events", EVENTS)?, figure("abp-memory/400k-events", MORE)?])
}

/// What a driver says of itself.
struct Driven {
    processor: Duration,
    peak: Bytes,
}

fn driven(events: usize) -> Result<Driven> {
    let output = Command::new(std::env::current_exe()?).args([DRIVER, &events.to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the driver failed: {}", String::from_utf8_lossy(&output.stderr));
    let mut numbers = said.split_whitespace().map(str::parse::<u64>);
    let mut next =
        || numbers.next().context("the driver said too little")?.context("the driver said no number");
    Ok(Driven { processor: Duration::from_nanos(next()?), peak: Bytes(next()?) })
}

/// Keeps every event.
struct Keep {
    recorder: Recorder,
    failed: Option<RecordError>,
}

impl Watcher for Keep {
    fn event(&mut self, event: &AgentEvent<'_>, _: &str) -> Wish {
        match self.recorder.event(event) {
            Ok(()) => Wish::GoOn,
            Err(error) => {
                let why = error.to_string();
                self.failed = Some(error);
                Wish::Kill { why }
            }
        }
    }
}

/// One run from the work order to the receipt; prints processor time and the most memory that was ever in use.
fn drive(events: usize) -> Result<()> {
    let temporary = std::env::temp_dir().join(format!("outrigger-bench-abp-{}", std::process::id()));
    let driven = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(one_run(events, &Folder::open(&temporary, SpoolLimit::USUAL)?));
    let removed = std::fs::remove_dir_all(&temporary);
    let processor = driven?;
    removed.context("cannot remove what the bench wrote")?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse()?;
    writeln!(std::io::stdout(), "{} {}", processor.as_nanos(), peak * 1024)?;
    Ok(())
}

async fn one_run(events: usize, folder: &Folder) -> Result<Duration> {
    let supervisor =
        Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN });
    let request = Request::new(Level::Basic, Limits::as_the_host());
    let spec = BackendSpec::new("bench", std::env::current_exe()?, "/", request)
        .args([CHILD.to_owned(), events.to_string()]);
    let terms = Terms::usual();
    let mut sidecar = Sidecar::start(&supervisor, &spec, &terms).await?;
    let order = WorkOrder::new(OrderId::random()?, "report");
    let run = RunId::random()?;
    let begun = processor_time();
    let mut keep = Keep { recorder: Recorder::begin(folder, &run)?, failed: None };
    let ended = sidecar.run(&run, &order, &mut keep, RunControl::none()).await;
    if let How::Failed(failure) = &ended.how {
        bail!("the run failed: {failure}");
    }
    if let Some(error) = keep.failed {
        return Err(error.into());
    }
    let hello = sidecar.hello().clone();
    let sealed = keep.recorder.seal(&Closing {
        order: &order,
        backend: hello.backend,
        contract_version: hello.contract_version,
        capabilities: hello.capabilities,
        mode: hello.mode,
        started_at: ended.observed.started_at,
        duration: ended.observed.took,
        ending: Ending::Final,
        error: None,
        outcome: None,
        received: ended.receipt.as_deref(),
        usage: Usage::default(),
        artifacts: Vec::new(),
        git_diff: None,
        git_status: None,
        negotiation: ended.negotiation,
        account: Raw::of(&serde_json::json!({}))?,
        sign: None,
    })?;
    let took = processor_time() - begun;
    ensure!(sealed.events == events as u64, "{} of {events} events were recorded", sealed.events);
    sidecar.stop(terms.ladder).await;
    Ok(took)
}

/// The child: hello, the order, the events as fast as they are taken, the end.
fn speak(events: usize) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    out.write_all(b"{\"t\":\"hello\",\"contract_version\":\"abp/v0.1\",\"backend\":{\"id\":\"bench\"},\"capabilities\":{}}\n")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let run = line.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).context("no run")?;
    // Prepared before, so that the child never makes the driver wait.
    let prepared = lines(events).replace(RUN, run);
    out.write_all(prepared.as_bytes())?;
    writeln!(out, "{{\"t\":\"final\",\"ref_id\":\"{run}\",\"receipt\":{{\"outcome\":\"complete\"}}}}")?;
    out.flush()?;
    // The host closes our input when it is done with us.
    line.clear();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(())
}

/// Stands for the run, and is as long as its name.
const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

/// So many events of 150 bytes each.
fn lines(count: usize) -> String {
    let mut lines = String::with_capacity(count * LINE);
    for number in 0..count {
        let start = lines.len();
        lines.push_str("{\"t\":\"event\",\"ref_id\":\"");
        lines.push_str(RUN);
        lines.push_str("\",\"event\":{\"ts\":\"2026-01-15T10:30:00.");
        lines.push_str(&format!("{:03}Z\",\"type\":\"assistant_delta\",\"text\":\"", number % 1000));
        const END: &str = "\"}}\n";
        let text = LINE - END.len() - (lines.len() - start);
        lines.extend((0..text).map(|at| char::from(b'a' + ((number + at) % 26) as u8)));
        lines.push_str(END);
    }
    lines
}

/// The least that a program must know of an event.
#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(borrow)]
    ref_id: Cow<'a, str>,
    #[serde(borrow)]
    event: Event<'a>,
}

#[derive(serde::Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    ts: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

fn parse_borrowed(lines: &str) -> Result<usize> {
    lines.lines().try_fold(0, |sum, line| {
        let Line { t, ref_id, event: Event { ts, kind, text } } = serde_json::from_str(line)?;
        Ok(sum + t.len() + ref_id.len() + ts.len() + kind.len() + text.len())
    })
}

fn parse_values(lines: &str) -> Result<usize> {
    lines.lines().try_fold(0, |sum, line| {
        let value: serde_json::Value = serde_json::from_str(line)?;
        Ok(sum + value.as_object().map_or(0, serde_json::Map::len))
    })
}

/// The processor time that something takes; what it returns keeps it from being optimised away.
fn timed(work: impl FnOnce() -> Result<usize>) -> Result<Duration> {
    let begun = processor_time();
    std::hint::black_box(work()?);
    Ok(processor_time() - begun)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
