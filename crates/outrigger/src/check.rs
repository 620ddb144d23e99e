//! `outrigger check`: does a sidecar keep to its protocol? Every rule as a named check with its evidence, for people and for CI.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use outrigger_abp::check::{self, Check, Limits, Status};
use outrigger_abp::host::BackendSpec;
use outrigger_abp::protocol::{OrderId, WorkOrder};
use outrigger_supervise::sandbox::{self, Level, Network, Request};
use serde::Serialize;

use crate::args::{StdinArg, duration};
use crate::exec::owner::Owner;
use crate::say::{self, Format, printable};
use crate::trees;

/// A rule is broken.
const FAILED: u8 = 1;
/// Its user ended it.
const INTERRUPTED: u8 = 130;

#[derive(Subcommand)]
pub(crate) enum CheckCommand {
    /// An agent backend that speaks abp.
    #[command(after_help = "\
Exit status: 0 when no rule is broken (warnings are not), 1 when one is, 125 when it could not be tried.

Examples:
  outrigger check abp -- node my-sidecar.js
  outrigger check abp --task 'say hello' --json -- python3 sidecar.py | jq 'select(.status==\"fail\")'")]
    Abp(AbpArgs),
}

#[derive(Args)]
pub(crate) struct AbpArgs {
    /// What it is given to do, several times over.
    #[arg(long, default_value = "Say hello and do nothing else.")]
    task: String,

    /// A work order to give it instead.
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    order: Option<PathBuf>,

    /// How long it may take to say hello.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    hello_within: Option<Duration>,

    /// How long a run may take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    run_within: Option<Duration>,

    /// How long it may take to honour a cancel.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    cancel_within: Option<Duration>,

    /// The sidecar and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Serialize)]
struct Found<'a> {
    event: &'static str,
    name: &'a str,
    rule: &'a str,
    status: Status,
    detail: &'a str,
    evidence: Option<&'a str>,
}

#[derive(Serialize)]
struct Summary {
    event: &'static str,
    conformant: bool,
    passed: usize,
    failed: usize,
    warned: usize,
    skipped: usize,
}

/// Does what `outrigger check` was asked for.
pub(crate) fn run(command: CheckCommand, format: Format) -> anyhow::Result<ExitCode> {
    let CheckCommand::Abp(args) = command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    runtime.block_on(abp(args, format)).map(ExitCode::from)
}

async fn abp(args: AbpArgs, format: Format) -> anyhow::Result<u8> {
    // It works in a folder of its own, so that nothing is lost if it does more than it is told.
    let folder = std::env::temp_dir().join(format!("outrigger-check-{}", std::process::id()));
    // Never one that was already there: somebody else may have put it there.
    let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    made.with_context(|| format!("{} cannot be made", folder.display()))?;
    let checked = try_it(&args, &folder, format).await;
    // What it left there is of no use to anybody.
    let _ = std::fs::remove_dir_all(&folder);
    checked
}

async fn try_it(args: &AbpArgs, folder: &std::path::Path, format: Format) -> anyhow::Result<u8> {
    let mut order = match &args.order {
        Some(path) => {
            let name = format!("the order {}", path.display());
            let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
            WorkOrder::read(&text).with_context(|| name)?
        }
        None => {
            WorkOrder::new(OrderId::random().context("the system has no randomness to give")?, &args.task)
        }
    };
    order.workspace.root = folder.to_string_lossy().into_owned();
    let usual = Limits::usual();
    let limits = Limits {
        hello: args.hello_within.unwrap_or(usual.hello),
        run: args.run_within.unwrap_or(usual.run),
        cancel: args.cancel_within.unwrap_or(usual.cancel),
        ..usual
    };
    let spec = backend(args)?;
    let supervisor = trees::supervisor();
    let mut owner = Owner::watch(StdinArg::Null)?;
    let report = tokio::select! {
        report = check::run(&supervisor, &spec, &order, &limits) => report,
        _ = owner.next() => return Ok(INTERRUPTED),
    };
    for check in &report.checks {
        show(check, format);
    }
    let count = |status| report.count(status);
    let summary = Summary {
        event: "summary",
        conformant: report.is_conformant(),
        passed: count(Status::Pass),
        failed: count(Status::Fail),
        warned: count(Status::Warn),
        skipped: count(Status::Skipped),
    };
    match format {
        Format::Json => say::object(&summary),
        Format::Text => {
            let Summary { passed, failed, warned, skipped, .. } = summary;
            anstream::println!("{passed} passed, {failed} failed, {warned} warnings, {skipped} skipped");
        }
    }
    Ok(if report.is_conformant() { 0 } else { FAILED })
}

fn backend(args: &AbpArgs) -> anyhow::Result<BackendSpec> {
    // The parser refuses an empty command.
    let (program, rest) = args.command.split_first().context("no program was given")?;
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let mut request = Request::new(Level::Basic, sandbox::Limits::as_the_host());
    request.network = Network::Allow;
    Ok(BackendSpec::new("sidecar", program, here, request).args(rest).inherit_env())
}

fn show(check: &Check, format: Format) {
    let Check { name, rule, status, detail, evidence } = check;
    if format == Format::Json {
        let evidence = evidence.as_deref();
        return say::object(&Found { event: "check", name, rule, status: *status, detail, evidence });
    }
    use anstyle::{AnsiColor, Style};
    let (word, colour) = match status {
        Status::Pass => ("pass", AnsiColor::Green),
        Status::Fail => ("FAIL", AnsiColor::Red),
        Status::Warn => ("warn", AnsiColor::Yellow),
        Status::Skipped => ("skip", AnsiColor::White),
    };
    let style = Style::new().fg_color(Some(colour.into()));
    anstream::println!("{style}{word}{style:#}  {name}: {rule}");
    if *status == Status::Pass {
        return;
    }
    for line in printable(detail)
        .lines()
        .chain(evidence.as_deref().map(printable).as_deref().unwrap_or_default().lines())
    {
        anstream::println!("        {line}");
    }
}
