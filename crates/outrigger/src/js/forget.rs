//! `outrigger js forget`: removes runs that are kept. One that somebody runs at this moment stays.

use anyhow::{Context, bail};
use outrigger_mustard::host::store::{HoldError, Lease, PeekError, RunId, Ticket};
use serde::Serialize;

use super::args::ForgetArgs;
use super::keep::{self, Keep, Kept};
use super::show;
use crate::say::{self, Format};

pub(crate) fn run(args: &ForgetArgs, format: Format) -> anyhow::Result<u8> {
    let keep = keep::open(&args.store)?;
    // All are found and held before the first one goes: a mistake in the last name costs nothing.
    let held = if args.all { all(&keep, format)? } else { named(&keep, &args.runs)? };
    if held.is_empty() && format == Format::Text {
        anstream::eprintln!("{}: nothing to forget in {}", say::label(), keep.path.display());
    }
    for held in held {
        forget(&keep, &held)?;
        match format {
            Format::Text => anstream::println!("forgot {}", held.kept.name()),
            Format::Json => say::object(&ForgottenEvent {
                event: "forgotten",
                ticket: held.kept.ticket().map(Ticket::as_str),
                run: held.run.as_ref().map(RunId::as_str),
            }),
        }
    }
    Ok(show::DONE)
}

#[derive(Serialize)]
struct ForgottenEvent<'a> {
    event: &'static str,
    ticket: Option<&'a str>,
    run: Option<&'a str>,
}

/// Something kept that nobody else can take up now.
struct Held {
    kept: Kept,
    /// The run it is of, unless it cannot be read.
    run: Option<RunId>,
    _lease: Option<Lease>,
}

/// What the user names; all of it, or nothing.
fn named(keep: &Keep, beginnings: &[String]) -> anyhow::Result<Vec<Held>> {
    let mut found: Vec<Kept> = Vec::new();
    for beginning in beginnings {
        let kept = keep.find(beginning)?;
        if found.iter().all(|other| other.name() != kept.name()) {
            found.push(kept);
        }
    }
    let mut held: Vec<Held> = Vec::new();
    for kept in found {
        let name = kept.name().to_owned();
        match hold(keep, kept, &held)? {
            Ok(one) => held.push(one),
            Err(Busy) => bail!("{name} is being run at this moment; nothing was forgotten"),
        }
    }
    Ok(held)
}

/// Everything but what is being run.
fn all(keep: &Keep, format: Format) -> anyhow::Result<Vec<Held>> {
    let tickets = keep.list()?.into_iter().map(|listed| Kept::Ticket(listed.ticket));
    let runs = keep.store.unfinished()?.into_iter().map(Kept::Run);
    let mut held: Vec<Held> = Vec::new();
    for kept in tickets.chain(runs) {
        let name = kept.name().to_owned();
        match hold(keep, kept, &held)? {
            Ok(one) => held.push(one),
            Err(Busy) if format == Format::Text => {
                anstream::eprintln!("{}: {name} is being run at this moment and stays", say::label());
            }
            Err(Busy) => {
                say::line(&serde_json::json!({ "event": "stays", "name": name, "reason": "running" }))
            }
        }
    }
    Ok(held)
}

/// Somebody runs it.
struct Busy;

fn hold(keep: &Keep, kept: Kept, others: &[Held]) -> anyhow::Result<Result<Held, Busy>> {
    let run = match &kept {
        Kept::Run(run) => Some(run.clone()),
        Kept::Ticket(ticket) => match keep.store.peek(ticket) {
            Ok((record, _)) => Some(record.run),
            // What was changed on disk can never be run, and may go.
            Err(PeekError::Store(_)) => None,
            Err(error @ PeekError::Unknown { .. }) => return Err(error.into()),
        },
    };
    let Some(run) = run else { return Ok(Ok(Held { kept, run: None, _lease: None })) };
    if others.iter().any(|other| other.run.as_ref() == Some(&run)) {
        // Several tickets can be of one run, which we hold already.
        return Ok(Ok(Held { kept, run: Some(run), _lease: None }));
    }
    match keep.store.hold(&run) {
        Ok(lease) => Ok(Ok(Held { kept, run: Some(run), _lease: Some(lease) })),
        Err(HoldError::Held { .. }) => Ok(Err(Busy)),
        Err(HoldError::Store(error)) => Err(error.into()),
    }
}

fn forget(keep: &Keep, held: &Held) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be forgotten", held.kept.name());
    match &held.kept {
        Kept::Run(run) => keep.store.forget(run).with_context(failed),
        Kept::Ticket(ticket) => {
            keep.store.remove(ticket).with_context(failed)?;
            // What was cut off later in the same run is kept for itself; without such a rest, not even our lock stays.
            match &held.run {
                Some(run) if !keep.store.unfinished()?.contains(run) => {
                    keep.store.forget(run).with_context(failed)
                }
                Some(_) | None => Ok(()),
            }
        }
    }
}
