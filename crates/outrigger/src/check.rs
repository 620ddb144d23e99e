//! `outrigger check`: does a sidecar keep to its protocol? Every rule as a named check with its evidence, for people and for CI.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use outrigger_abp::check as abp_check;
use outrigger_abp::host::BackendSpec;
use outrigger_abp::protocol::{OrderId, WorkOrder};
use outrigger_helmor::check::{self as helmor_check, Turns};
use outrigger_helmor::host::BridgeSpec;
use outrigger_helmor::protocol::ProviderName;
use outrigger_steerable::check as steerable_check;
use outrigger_steerable::host::SidecarSpec;
use outrigger_supervise::sandbox::{self, Level, Network, Request};
use outrigger_wire::conformance::{Check, Report, Status};
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
    /// An agent runtime that speaks steerable.
    #[command(after_help = "\
It is started several times, told wrong lines in every way, and its streams are tried against a model server on the
loopback that the checks run themselves.

Exit status: 0 when no rule is broken (warnings are not), 1 when one is, 125 when it could not be tried.

Examples:
  outrigger check steerable -- steerable-sidecar
  outrigger check steerable --json -- python3 -m my_sidecar | jq 'select(.status==\"fail\")'")]
    Steerable(SteerableArgs),
    /// A bridge to coding agents that speaks helmor.
    #[command(after_help = "\
It is started several times and told wrong lines in every way. Turns are tried with its provider `scripted`, if it has one with
turns for the prompts `check-short` and `check-long`, or with a real one that --provider names, which may cost money.

Exit status: 0 when no rule is broken (warnings are not), 1 when one is, 125 when it could not be tried.

Examples:
  outrigger check helmor -- helmor-sidecar
  outrigger check helmor --provider claude -- helmor-sidecar --api-errors end
  outrigger check helmor --json -- bun run sidecar.ts | jq 'select(.status==\"fail\")'")]
    Helmor(HelmorArgs),
}

#[derive(Args)]
pub(crate) struct HelmorArgs {
    /// How long it may take to be ready.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ready_within: Option<Duration>,

    /// How long an answer may take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    answer_within: Option<Duration>,

    /// How long a turn may be silent.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stream_within: Option<Duration>,

    /// How long a heartbeat may take to come; 0 does not wait for one.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    heartbeat_within: Option<Duration>,

    /// How long it may take to leave.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    exit_within: Option<Duration>,

    /// Try turns of this provider: claude, codex, cursor or acp:NAME.
    #[arg(long, value_name = "NAME", value_parser = provider)]
    provider: Option<ProviderName>,

    /// What it is told in such a turn.
    #[arg(long, default_value = "Say hello and do nothing else.", requires = "provider")]
    prompt: String,

    /// The sidecar and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn provider(word: &str) -> Result<ProviderName, String> {
    ProviderName::from_word(word)
        .ok_or_else(|| "there are claude, codex, cursor, scripted and acp:NAME".to_owned())
}

#[derive(Args)]
pub(crate) struct SteerableArgs {
    /// How long it may take to be ready.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ready_within: Option<Duration>,

    /// How long an answer may take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    answer_within: Option<Duration>,

    /// How long a short stream may take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stream_within: Option<Duration>,

    /// How long it may take to leave.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    exit_within: Option<Duration>,

    /// The sidecar and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
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

/// How one rule was kept, whichever dialect it belongs to.
#[derive(Serialize)]
struct Found<'a> {
    event: &'static str,
    name: &'a str,
    rule: &'a str,
    status: Status,
    detail: &'a str,
    evidence: Option<&'a str>,
    mend: Option<&'a str>,
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(async {
        match command {
            CheckCommand::Abp(args) => abp(args, format).await,
            CheckCommand::Steerable(args) => steerable(args, format).await,
            CheckCommand::Helmor(args) => helmor(args, format).await,
        }
    });
    code.map(ExitCode::from)
}

async fn steerable(args: SteerableArgs, format: Format) -> anyhow::Result<u8> {
    let usual = steerable_check::Limits::usual();
    let limits = steerable_check::Limits {
        ready: args.ready_within.unwrap_or(usual.ready),
        answer: args.answer_within.unwrap_or(usual.answer),
        stream: args.stream_within.unwrap_or(usual.stream),
        exit: args.exit_within.unwrap_or(usual.exit),
        ..usual
    };
    let (program, rest) = args.command.split_first().context("no program was given")?;
    let (here, request) = surroundings()?;
    let spec = SidecarSpec::new("sidecar", program, here, request).args(rest).inherit_env();
    let supervisor = trees::supervisor();
    let mut owner = Owner::watch(StdinArg::Null)?;
    let report = tokio::select! {
        report = steerable_check::run(&supervisor, &spec, &limits) => report,
        _ = owner.next() => return Ok(INTERRUPTED),
    };
    Ok(tell(&report, format))
}

async fn helmor(args: HelmorArgs, format: Format) -> anyhow::Result<u8> {
    let usual = helmor_check::Limits::usual();
    let turns = args.provider.map(|provider| Turns { provider, short: args.prompt, long: None });
    let limits = helmor_check::Limits {
        ready: args.ready_within.unwrap_or(usual.ready),
        answer: args.answer_within.unwrap_or(usual.answer),
        stream: args.stream_within.unwrap_or(usual.stream),
        heartbeat: args.heartbeat_within.or(usual.heartbeat).filter(|within| !within.is_zero()),
        exit: args.exit_within.unwrap_or(usual.exit),
        turns,
        ..usual
    };
    let (program, rest) = args.command.split_first().context("no program was given")?;
    let (here, request) = surroundings()?;
    let spec = BridgeSpec::new("sidecar", program, here, request).args(rest).inherit_env();
    let supervisor = trees::supervisor();
    let mut owner = Owner::watch(StdinArg::Null)?;
    let report = tokio::select! {
        report = helmor_check::run(&supervisor, &spec, &limits) => report,
        _ = owner.next() => return Ok(INTERRUPTED),
    };
    Ok(tell(&report, format))
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
    let usual = abp_check::Limits::usual();
    let limits = abp_check::Limits {
        hello: args.hello_within.unwrap_or(usual.hello),
        run: args.run_within.unwrap_or(usual.run),
        cancel: args.cancel_within.unwrap_or(usual.cancel),
        ..usual
    };
    let spec = backend(args)?;
    let supervisor = trees::supervisor();
    let mut owner = Owner::watch(StdinArg::Null)?;
    let report = tokio::select! {
        report = abp_check::run(&supervisor, &spec, &order, &limits) => report,
        _ = owner.next() => return Ok(INTERRUPTED),
    };
    Ok(tell(&report, format))
}

/// Shows every rule and the sum of them; the exit code.
fn tell(report: &Report, format: Format) -> u8 {
    for check in &report.checks {
        show(check, format);
    }
    let count = |status| report.count(status);
    let (passed, failed) = (count(Status::Pass), count(Status::Fail));
    let (warned, skipped) = (count(Status::Warn), count(Status::Skipped));
    let conformant = report.is_conformant();
    match format {
        Format::Json => {
            say::object(&Summary { event: "summary", conformant, passed, failed, warned, skipped });
        }
        Format::Text => {
            anstream::println!("{passed} passed, {failed} failed, {warned} warnings, {skipped} skipped");
        }
    }
    if conformant { 0 } else { FAILED }
}

fn backend(args: &AbpArgs) -> anyhow::Result<BackendSpec> {
    // The parser refuses an empty command.
    let (program, rest) = args.command.split_first().context("no program was given")?;
    let (here, request) = surroundings()?;
    Ok(BackendSpec::new("sidecar", program, here, request).args(rest).inherit_env())
}

/// The folder that a child runs in, and its box: that of whoever tries it.
fn surroundings() -> anyhow::Result<(PathBuf, Request)> {
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let mut request = Request::new(Level::Basic, sandbox::Limits::as_the_host());
    request.network = Network::Allow;
    Ok((here, request))
}

fn show(check: &Check, format: Format) {
    let Check { name, rule, status, detail, evidence, mend } = check;
    if format == Format::Json {
        return say::object(&Found {
            event: "check",
            name,
            rule,
            status: *status,
            detail,
            evidence: evidence.as_deref(),
            mend: *mend,
        });
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
    for text in [Some(detail.as_str()), evidence.as_deref(), *mend].into_iter().flatten() {
        for line in printable(text).lines() {
            anstream::println!("        {line}");
        }
    }
}
