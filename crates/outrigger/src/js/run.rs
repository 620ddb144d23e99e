//! `outrigger js run`.

use outrigger_mustard::host::{Capabilities, Ending, Failed, HostKey, Run};

use super::args::ScriptArgs;
use super::tool::{self, Tool, Tools};
use super::{console, keep, launch, show};
use crate::args::StdinArg;
use crate::exec::owner::{Owner, Wish};
use crate::say::Format;
use crate::trees;

pub(crate) async fn run(args: ScriptArgs, format: Format) -> anyhow::Result<u8> {
    let source = launch::read_source(&args.file)?;
    let supervisor = trees::supervisor();
    let tools = tool::open(&args.world.tools.allow, &args.world.tools.mcp, &supervisor).await?;
    // Only what can wait for somebody, or is asked to be kept, is written down: that costs a disk write a call.
    let keep = match args.store.store.is_some() || waits_for_somebody(&tools) {
        true => Some(keep::open(&args.store)?),
        false => None,
    };
    let key = match &keep {
        Some(keep) => keep.key.clone(),
        None => HostKey::random()?,
    };
    let host = launch::host(&supervisor, key)?;
    let script = match launch::compile(&host, &source, args.world.lenient_return).await {
        Ok(script) => script,
        Err(error) => return Ok(show::not_compiled(&error, &source.origin, format)),
    };
    let table = launch::table(&tools, console::grant(Capabilities::none(), format));
    let mut run = launch::run(&host, &script, &args.world)?.capabilities(table);
    if let Some(keep) = keep {
        run = run.store(keep.store);
    }
    let ended = match conduct(run).await? {
        Some(ended) => ended,
        None => return Ok(show::INTERRUPTED),
    };
    Ok(show::ending(ended, &source.origin, format))
}

fn waits_for_somebody(tools: &Tools) -> bool {
    tools.values().any(|tool| matches!(tool, Tool::Person))
}

/// Lets it run; the first signal cancels it, the second one (`None`) no longer waits for that.
pub(crate) async fn conduct(run: Run) -> anyhow::Result<Option<Result<Ending, Failed>>> {
    let mut owner = Owner::watch(StdinArg::Null)?;
    let canceller = run.canceller();
    let mut going = std::pin::pin!(run.go());
    loop {
        tokio::select! {
            ended = &mut going => return Ok(Some(ended)),
            wish = owner.next() => match wish {
                Wish::Stop => canceller.cancel(),
                Wish::Kill => return Ok(None),
            },
        }
    }
}
