//! `outrigger approvals`: what waits for a person, and the answers, from any terminal of the same user.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use outrigger_abp::govern::{ApprovalRequest, Choice, Ledger};
use outrigger_abp::protocol::Timestamp;
use serde::Serialize;

use crate::config::Config;
use crate::run;
use crate::say::{self, Format, printable};

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  outrigger approvals                     what waits for an answer
  outrigger approvals allow 4f1c-1        let it happen, once
  outrigger approvals allow 4f1c-1 --always   and every later call of the same tool in that run
  outrigger approvals deny 4f1c-1")]
pub(crate) enum ApprovalsCommand {
    /// List what waits for an answer.
    List(Place),
    /// Let it happen.
    Allow {
        /// The request, or the beginning of its id.
        id: String,
        /// And every later call of the same tool in that run.
        #[arg(long)]
        always: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Do not.
    Deny {
        /// The request, or the beginning of its id.
        id: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Args)]
pub(crate) struct Place {
    /// The folder of receipts, where runs also write down what they ask [default: as for `run`].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_RECEIPTS")]
    receipts: Option<PathBuf>,
}

#[derive(Serialize)]
struct Waiting<'a> {
    event: &'static str,
    request: &'a ApprovalRequest,
}

#[derive(Serialize)]
struct Answered<'a> {
    event: &'static str,
    id: &'a str,
    decision: &'static str,
}

/// Does what `outrigger approvals` was asked for.
pub(crate) fn run(command: ApprovalsCommand, format: Format) -> anyhow::Result<ExitCode> {
    match command {
        ApprovalsCommand::List(place) => list(&place, format)?,
        ApprovalsCommand::Allow { id, always: false, place } => answer(&place, &id, Choice::Allow, format)?,
        ApprovalsCommand::Allow { id, always: true, place } => {
            answer(&place, &id, Choice::AllowAlways, format)?
        }
        ApprovalsCommand::Deny { id, place } => answer(&place, &id, Choice::Deny, format)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(place: &Place, format: Format) -> anyhow::Result<()> {
    let waiting = waiting(place)?;
    for (_, request) in &waiting {
        match format {
            Format::Json => say::object(&Waiting { event: "waiting", request }),
            Format::Text => {
                let ApprovalRequest { id, tool_name, input, deadline, .. } = request;
                anstream::println!("{id}  until {deadline}  {}", printable(&format!("{tool_name} {input}")));
            }
        }
    }
    if waiting.is_empty() && format == Format::Text {
        anstream::eprintln!("nothing waits for an answer");
    }
    Ok(())
}

fn answer(place: &Place, beginning: &str, choice: Choice, format: Format) -> anyhow::Result<()> {
    let mut found: Vec<_> = waiting(place)?;
    found.retain(|(_, request)| request.id.as_str().starts_with(beginning));
    let (ledger, request) = match found.as_slice() {
        [one] => one,
        [] => {
            bail!("nothing that waits begins with `{beginning}`; `outrigger approvals list` shows what does")
        }
        several => bail!("{} requests begin with `{beginning}`; give more of the id", several.len()),
    };
    run::answer(ledger, request, choice).map_err(|error| anyhow::anyhow!(error))?;
    match format {
        Format::Json => {
            say::object(&Answered { event: "answered", id: request.id.as_str(), decision: choice.word() })
        }
        Format::Text => anstream::eprintln!("{}: {}", request.id, choice.word()),
    }
    Ok(())
}

/// What no one has answered and whose time is not over, with its ledger.
fn waiting(place: &Place) -> anyhow::Result<Vec<(PathBuf, ApprovalRequest)>> {
    let folder = run::receipts_folder(place.receipts.as_deref(), &Config::find(None)?)?;
    let now = Timestamp::now();
    let mut waiting = Vec::new();
    for path in ledgers(&folder)? {
        let ledger = Ledger::open_existing(&path).with_context(|| format!("{}", path.display()))?;
        let open = ledger.open_requests().filter(|request| request.deadline > now);
        waiting.extend(open.map(|request| (path.clone(), request.clone())));
    }
    waiting.sort_by_key(|(_, request)| request.asked_at);
    Ok(waiting)
}

fn ledgers(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", folder.display())),
    };
    let mut ledgers = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("{} cannot be read", folder.display()))?.path();
        if path.to_string_lossy().ends_with(".approvals.jsonl") {
            ledgers.push(path);
        }
    }
    Ok(ledgers)
}
