//! `outrigger js`: sandboxed scripts from the command line: run, answered by hand, kept, taken up again, forgotten, measured.

pub(crate) mod args;
mod bench;
mod console;
mod forget;
mod inspect;
pub(crate) mod json;
pub(crate) mod keep;
mod launch;
mod resume;
mod run;
pub(crate) mod show;
mod step;
pub(crate) mod tool;

use std::process::ExitCode;

use anyhow::Context;

use self::args::JsCommand;
use crate::say::Format;

/// Does what `outrigger js` was asked for.
pub(crate) fn run(command: JsCommand, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(async {
        match command {
            JsCommand::Run(args) => run::run(*args, format).await,
            JsCommand::Step(args) => step::step(*args, format).await,
            JsCommand::Resume(args) => resume::go_on(*args, format).await,
            JsCommand::Inspect(args) => inspect::run(args, format).await,
            JsCommand::Forget(args) => forget::run(&args, format),
            JsCommand::Bench(args) => bench::run(*args, format).await,
        }
    })?;
    // A thread may still wait for a line that nobody types.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}
