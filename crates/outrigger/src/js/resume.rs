//! `outrigger js resume`: goes on with a run that was kept, with answers from the command line.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use outrigger_mustard::host::store::{CallId, TakeError, UnixMillis};
use outrigger_mustard::host::{Capabilities, Host, HostError, Limits, ResumeError, Run};

use super::args::{LimitArgs, ResumeArgs};
use super::keep::{Keep, Kept};
use super::show::Origin;
use super::{console, keep, launch, run, show, tool};
use crate::say::Format;
use crate::trees;

pub(crate) async fn go_on(args: ResumeArgs, format: Format) -> anyhow::Result<u8> {
    let keep = keep::open(&args.store)?;
    let kept = keep.find(&args.ticket)?;
    let supervisor = trees::supervisor();
    // Before the ticket is used: what cannot be started must not cost the run.
    let tools = tool::open(&args.tools.allow, &args.tools.mcp, &supervisor).await?;
    let host = launch::host(&supervisor, keep.key.clone())?;
    check_answers(&keep, &kept, &args)?;
    let resumed = open(&host, &keep, &kept, &args).await?;
    let table = launch::table(&tools, console::grant(Capabilities::none(), format));
    let resumed = answered(resumed, &args)?.capabilities(table);
    let ended = match run::conduct(resumed).await? {
        Some(ended) => ended,
        None => return Ok(show::INTERRUPTED),
    };
    Ok(show::ending(ended, &Origin { name: "script".to_owned() }, format))
}

async fn open(host: &Host, keep: &Keep, kept: &Kept, args: &ResumeArgs) -> anyhow::Result<Run> {
    let store = || Arc::clone(&keep.store);
    let (resumed, before) = match kept {
        Kept::Ticket(ticket) => {
            let (record, _) = keep.store.peek(ticket)?;
            let resumed = match args.replay {
                true => host.replay(store(), ticket).await?.store(store()),
                false => host.resume(store(), ticket).await.map_err(explained)?,
            };
            (resumed, record.limits)
        }
        Kept::Run(run) => {
            let resumed = host.recover(store(), run).await?;
            let record = keep.store.latest(run)?;
            (resumed, record.map_or(Limits::DEFAULTS, |record| record.limits))
        }
    };
    Ok(resumed.rules(launch::rules(&args.limits, merged(&args.limits, before))))
}

/// Why it cannot go on, and what to do about it.
fn explained(error: ResumeError) -> anyhow::Error {
    match error {
        ResumeError::Ticket(TakeError::AlreadyUsed { when, .. }) => {
            anyhow!("this run was resumed {} ago; --replay runs it again, with all its effects", age(when))
        }
        ResumeError::Unfinished { run } => {
            anyhow!(
                "this run was resumed and cut off in the middle; `outrigger js resume {run}` goes on there"
            )
        }
        other => other.into(),
    }
}

/// How long ago that was, in the unit a person would use.
fn age(then: UnixMillis) -> String {
    let seconds = UnixMillis::now().0.saturating_sub(then.0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The limits of the command line, and for the rest those that the run had.
fn merged(args: &LimitArgs, before: Limits) -> Limits {
    let given = launch::limits(args);
    Limits {
        instruction_budget: given.instruction_budget.or(before.instruction_budget),
        heap_limit_bytes: given.heap_limit_bytes.or(before.heap_limit_bytes),
        allocation_budget: given.allocation_budget.or(before.allocation_budget),
        call_depth_limit: given.call_depth_limit.or(before.call_depth_limit),
        max_outstanding_host_calls: given.max_outstanding_host_calls.or(before.max_outstanding_host_calls),
    }
}

/// Refuses answers to calls that do not wait, while the ticket is still good.
fn check_answers(keep: &Keep, kept: &Kept, args: &ResumeArgs) -> anyhow::Result<()> {
    let Kept::Ticket(ticket) = kept else { return Ok(()) };
    let (record, _) = keep.store.peek(ticket)?;
    let waiting: Vec<u64> = record.calls.iter().map(|waiting| waiting.call.0).collect();
    for given in &args.answers {
        if let Some(call) = given.call
            && !waiting.contains(&call)
        {
            bail!("call {call} does not wait for an answer; these do: {waiting:?}");
        }
    }
    Ok(())
}

fn answered(resumed: Run, args: &ResumeArgs) -> anyhow::Result<Run> {
    let waiting: Vec<CallId> = resumed.waiting().iter().map(|waiting| waiting.call).collect();
    let first = || waiting.first().copied().context("the run waits for nothing");
    let mut resumed = resumed;
    if let Some(message) = &args.error {
        let error =
            HostError { name: "Error".to_owned(), message: message.clone(), code: None, details: None };
        resumed = resumed.answer(first()?, Err(error));
    }
    for given in &args.answers {
        let call = match given.call {
            Some(call) => CallId(call),
            None => first()?,
        };
        resumed = resumed.answer(call, given.value.clone());
    }
    Ok(resumed)
}
