//! The `outrigger` program: one executable that supervises children, and is their launcher when re-executed.

mod abp_agent;
mod abp_sidecar;
mod agents;
mod approvals;
mod args;
mod backends;
mod chat;
mod check;
mod config;
mod config_cmd;
mod daemon;
mod dashboard;
mod doctor;
mod duration;
mod engine;
mod exec;
mod ext;
mod helmor_sidecar;
mod http;
mod js;
mod receipts;
mod run;
mod runs;
mod runs_cmd;
mod say;
mod sidecar;
mod stages;
mod steerable_sidecar;
mod trace;
mod trees;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, Dialect};
use crate::say::Format;

/// Is the extension that answers messages.
fn sep_sidecar(options: &[String]) -> ExitCode {
    outrigger_sep::reference::autoreply::run(options)
}

fn main() -> ExitCode {
    // The launcher comes before everything else: it must be a small, single-threaded program.
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    // A sidecar must be ready in milliseconds, so it does not wait for the rest of the command line to be set up.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "sidecar") {
        match words.next() {
            Some(word) if word == "mustard" => return sidecar::be_mustard(words),
            Some(word) if word == "helmor" => return helmor_sidecar::be_helmor(words),
            Some(word) if word == "steerable" => return steerable_sidecar::be_steerable(words),
            Some(_) | None => {}
        }
    }
    let cli = Cli::parse();
    let format = if cli.json { Format::Json } else { Format::Text };
    let outcome = match cli.command {
        Command::Up(args) => daemon::up::up(*args, format),
        Command::Down(args) => daemon::up::down(args, format),
        Command::Config { command } => config_cmd::run(command, format),
        Command::Runs(args) => runs_cmd::run(args, format),
        Command::Exec(args) => exec::run(*args, format),
        Command::Run(args) => run::run(*args, format),
        Command::Agents(args) => agents::run(args, format),
        Command::Approvals { command } => approvals::run(command, format),
        Command::Receipts { command } => receipts::run(command, format),
        Command::Stages { command } => stages::run(command, format),
        Command::Check { command } => check::run(command, format),
        Command::Js { command } => js::run(command, format),
        Command::Sidecar { which: Dialect::Mustard { options } } => Ok(sidecar::be_mustard(options)),
        Command::Chat(args) => chat::run(*args, format),
        Command::Trace(args) => trace::run(args, format),
        Command::Sidecar { which: Dialect::Steerable { options } } => {
            Ok(steerable_sidecar::be_steerable(options))
        }
        Command::Sidecar { which: Dialect::AbpMock { script } } => abp_sidecar::be_mock(script.as_deref()),
        Command::Sidecar { which: Dialect::AbpProcess(args) } => Ok(abp_sidecar::be_process(args)),
        Command::Sidecar { which: Dialect::AbpAgent(args) } => abp_agent::be_agent(args),
        Command::Sidecar { which: Dialect::Helmor { options } } => Ok(helmor_sidecar::be_helmor(options)),
        Command::Ext { command } => ext::run(command, format),
        Command::Sidecar { which: Dialect::SepAutoreply { options } } => Ok(sep_sidecar(&options)),
        Command::Doctor => doctor::run(format),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "outrigger", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        say::failure(format, &error);
        ExitCode::from(exec::outcome::OWN_FAILURE)
    })
}
