//! `outrigger js inspect`: what is kept, and what one of them waits for.

use outrigger_mustard::host::store::Record;
use outrigger_mustard::host::store::{Listed, Usage};
use outrigger_mustard::protocol::response::Inspection;
use serde::Serialize;

use super::args::InspectArgs;
use super::keep::{Keep, Kept};
use super::show::{self, CallEvent, FrameEvent, call_event, call_text};
use super::{keep, launch};
use crate::say::{self, Format, printable};
use crate::trees;

pub(crate) async fn run(args: InspectArgs, format: Format) -> anyhow::Result<u8> {
    let keep = keep::open(&args.store)?;
    match &args.ticket {
        None => list(&keep, format)?,
        Some(beginning) => one(&keep, beginning, format).await?,
    }
    Ok(show::DONE)
}

#[derive(Serialize)]
struct KeptEvent<'a> {
    event: &'static str,
    ticket: Option<&'a str>,
    run: Option<&'a str>,
    used_at_ms: Option<u64>,
    stored_at_ms: Option<u64>,
    bytes: Option<u64>,
    calls: Vec<CallEvent<'a>>,
    error: Option<String>,
}

fn list(keep: &Keep, format: Format) -> anyhow::Result<()> {
    let (listed, unfinished) = (keep.list()?, keep.store.unfinished()?);
    if format == Format::Json {
        listed.iter().for_each(|listed| say::object(&kept_event(listed)));
        for run in &unfinished {
            say::line(&serde_json::json!({ "event": "unfinished", "run": run.as_str() }));
        }
        return Ok(());
    }
    if listed.is_empty() && unfinished.is_empty() {
        anstream::eprintln!("{}: nothing is kept in {}", say::label(), keep.path.display());
    }
    for listed in &listed {
        let state = match listed.usage {
            Usage::Fresh => "waits",
            Usage::Used(_) => "used ",
        };
        match &listed.record {
            Ok(record) => {
                let calls: Vec<String> = record.calls.iter().map(call_text).collect();
                anstream::println!(
                    "{}  {state}  {:>9} bytes  {}",
                    listed.ticket,
                    listed.bytes,
                    calls.join(" · ")
                );
            }
            Err(error) => anstream::println!("{}  {state}  {}", listed.ticket, printable(&error.to_string())),
        }
    }
    for run in &unfinished {
        anstream::println!("{run}  left by a host that ended; `outrigger js resume {run}` goes on");
    }
    Ok(())
}

fn kept_event(listed: &Listed) -> KeptEvent<'_> {
    let record = listed.record.as_ref();
    KeptEvent {
        event: "kept",
        ticket: Some(listed.ticket.as_str()),
        run: record.ok().map(|record| record.run.as_str()),
        used_at_ms: match listed.usage {
            Usage::Fresh => None,
            Usage::Used(when) => Some(when.0),
        },
        stored_at_ms: record.ok().map(|record| record.stored_at.0),
        bytes: Some(listed.bytes),
        calls: record.map_or(Vec::new(), |record| record.calls.iter().map(call_event).collect()),
        error: record.err().map(ToString::to_string),
    }
}

#[derive(Serialize)]
struct InspectionEvent<'a> {
    event: &'static str,
    run: &'a str,
    step: u64,
    snapshot_id: String,
    bytes: u64,
    calls: Vec<CallEvent<'a>>,
    granted: &'a [String],
    held: &'a [String],
    instructions_used: u64,
    heap_bytes: u64,
    heap_records: u64,
    frames: Vec<FrameEvent<'a>>,
}

async fn one(keep: &Keep, beginning: &str, format: Format) -> anyhow::Result<()> {
    let record = match keep.find(beginning)? {
        Kept::Ticket(ticket) => keep.store.peek(&ticket)?.0,
        Kept::Run(run) => match keep.store.latest(&run)? {
            Some(record) => record,
            None => anyhow::bail!("there is nothing kept of run {run}"),
        },
    };
    let supervisor = trees::supervisor();
    let host = launch::host(&supervisor, keep.key.clone())?;
    let seen = host.inspect(&record).await?;
    match format {
        Format::Json => say::object(&event(&record, &seen)),
        Format::Text => print(&record, &seen),
    }
    Ok(())
}

fn event<'a>(record: &'a Record, seen: &'a Inspection) -> InspectionEvent<'a> {
    InspectionEvent {
        event: "inspection",
        run: record.run.as_str(),
        step: record.step,
        snapshot_id: seen.snapshot_id.to_string(),
        bytes: seen.bytes,
        calls: record.calls.iter().map(call_event).collect(),
        granted: &record.capabilities,
        held: &seen.capabilities,
        instructions_used: seen.instructions_used,
        heap_bytes: seen.heap_bytes,
        heap_records: seen.heap_records,
        frames: show::frames(&seen.frames),
    }
}

fn print(record: &Record, seen: &Inspection) {
    anstream::println!("run        {} (step {})", record.run, record.step);
    for (at, waiting) in record.calls.iter().enumerate() {
        let label = if at == 0 { "waits for" } else { "" };
        anstream::println!("{label:<10} #{} {}", waiting.call, call_text(waiting));
    }
    for (at, place) in seen.frames.iter().enumerate() {
        let label = if at == 0 { "stands in" } else { "" };
        anstream::println!("{label:<10} {} ({}:{})", printable(&place.function), place.line, place.column);
    }
    anstream::println!("may call   {}", printable(&record.capabilities.join(", ")));
    anstream::println!("holds      {}", printable(&seen.capabilities.join(", ")));
    anstream::println!("snapshot   {} bytes, {}", seen.bytes, seen.snapshot_id);
    anstream::println!("heap       {} bytes, {} objects", seen.heap_bytes, seen.heap_records);
    anstream::println!("used       {} instructions", seen.instructions_used);
}
