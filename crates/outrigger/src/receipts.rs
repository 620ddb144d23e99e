//! `outrigger receipts`: check what a run left behind, look at it, compare two. Needs no network and no one's word.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use outrigger_abp::receipt::{
    Break, Chain, Check, DiffLimit, Difference, Folder, HashState, ReceiptHead, SignatureState, SpoolLimit,
    diff, verify, verify_chain,
};
use serde::Serialize;
use serde_json::Value;

use crate::say::{self, Format, printable};

/// Something is not as it should be, or two receipts differ.
const FAILED: u8 = 1;

#[derive(Subcommand)]
pub(crate) enum ReceiptsCommand {
    /// Check hashes and signatures; of a folder also that one receipt follows the other and none is missing.
    #[command(after_help = "\
Exit status: 0 when everything is right, 1 when something is not, 125 when a file cannot be read.

Examples:
  outrigger receipts verify receipt.json
  outrigger receipts verify ~/.local/share/outrigger/receipts
  outrigger receipts verify receipt.json --key 3b6a…   and it must be signed with this key")]
    Verify {
        /// Receipts, or folders of receipts.
        #[arg(required = true, value_name = "FILE|DIR")]
        paths: Vec<PathBuf>,
        /// The public key, in hexadecimal digits, that every receipt must be signed with.
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Show what a receipt says, without its events.
    #[command(
        after_help = "Examples:\n  outrigger receipts show receipt.json\n  outrigger receipts show receipt.json --json"
    )]
    Show {
        /// The receipt.
        path: PathBuf,
    },
    /// Show what two receipts do not have in common, by what they mean and not how they are spelled.
    #[command(
        after_help = "Exit status: 0 when they are the same, 1 when they differ.\n\nExamples:\n  outrigger receipts diff monday.json tuesday.json"
    )]
    Diff {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// How many differences to show.
        #[arg(long, default_value_t = 50)]
        most: usize,
    },
}

#[derive(Serialize)]
struct Checked<'a> {
    event: &'static str,
    valid: bool,
    check: &'a Check,
}

#[derive(Serialize)]
struct Chained<'a> {
    event: &'static str,
    valid: bool,
    path: &'a Path,
    chain: &'a Chain,
}

#[derive(Serialize)]
struct Shown<'a> {
    event: &'static str,
    path: &'a Path,
    events: u64,
    receipt: Option<&'a ReceiptHead>,
}

#[derive(Serialize)]
struct Differs<'a> {
    event: &'static str,
    diff: &'a outrigger_abp::receipt::Diff,
}

/// Does what `outrigger receipts` was asked for.
pub(crate) fn run(command: ReceiptsCommand, format: Format) -> anyhow::Result<ExitCode> {
    let fine = match command {
        ReceiptsCommand::Verify { paths, key } => {
            let mut fine = true;
            for path in &paths {
                fine &= match path.is_dir() {
                    true => verify_folder(path, key.as_deref(), format)?,
                    false => verify_file(path, key.as_deref(), format)?,
                };
            }
            fine
        }
        ReceiptsCommand::Show { path } => show(&path, format)?,
        ReceiptsCommand::Diff { first, second, most } => compare(&first, &second, DiffLimit(most), format)?,
    };
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn verify_file(path: &Path, key: Option<&str>, format: Format) -> anyhow::Result<bool> {
    let check = verify(path)?;
    let signed = match (&check.signature, key) {
        (_, None) => true,
        (SignatureState::Valid { public_key }, Some(key)) => public_key.eq_ignore_ascii_case(key),
        (SignatureState::None | SignatureState::Invalid { .. }, Some(_)) => false,
    };
    let valid = check.is_valid() && signed;
    if format == Format::Json {
        say::object(&Checked { event: "receipt", valid, check: &check });
        return Ok(valid);
    }
    let hash = match &check.hash {
        HashState::Ok { sha256 } => format!("hash ok ({sha256})"),
        HashState::Mismatch { stored, computed } => {
            format!("HASH IS WRONG: it says {}, and is {computed}", printable(stored))
        }
        HashState::Missing { computed } => format!("no hash (it would be {computed})"),
        HashState::Unknown => "nothing to hash".to_owned(),
    };
    let signature = match &check.signature {
        SignatureState::None if key.is_some() => "NOT SIGNED".to_owned(),
        SignatureState::None => "not signed".to_owned(),
        SignatureState::Valid { public_key } if !signed => format!("SIGNED BY ANOTHER KEY ({public_key})"),
        SignatureState::Valid { public_key } => format!("signed by {public_key}"),
        SignatureState::Invalid { why } => format!("SIGNATURE IS WRONG: {why}"),
    };
    let word = if valid { "ok" } else { "FAILED" };
    anstream::println!("{word}  {}  {} events, {hash}, {signature}", path.display(), check.events);
    for problem in &check.problems {
        anstream::println!("    {}: {}", printable(&problem.path), printable(&problem.what));
    }
    Ok(valid)
}

fn verify_folder(path: &Path, key: Option<&str>, format: Format) -> anyhow::Result<bool> {
    let folder = Folder::open(path, SpoolLimit::USUAL)?;
    let chain = verify_chain(&folder)?;
    let mut valid = chain.is_whole();
    // The chain says nothing about who signed its links.
    if key.is_some() {
        for entry in std::fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))? {
            let file = entry.with_context(|| format!("{} cannot be read", path.display()))?.path();
            if file.extension().is_some_and(|ending| ending == "json") {
                valid &= verify_file(&file, key, format)?;
            }
        }
    }
    if format == Format::Json {
        say::object(&Chained { event: "chain", valid, path, chain: &chain });
        return Ok(valid);
    }
    let word = if valid { "ok" } else { "FAILED" };
    anstream::println!("{word}  {}  {} receipts in a chain", path.display(), chain.links);
    for wrong in &chain.breaks {
        let text = match wrong {
            Break::Invalid { path, why } => format!("{}: {why}", path.display()),
            Break::Missing { sha256, named_by: Some(path) } => {
                format!("{} follows {sha256}, which is not here", path.display())
            }
            Break::Missing { sha256, named_by: None } => format!("the newest, {sha256}, is not here"),
            Break::Loose { path } => format!("{} belongs to no chain that ends here", path.display()),
        };
        anstream::println!("    {}", printable(&text));
    }
    Ok(valid)
}

fn show(path: &Path, format: Format) -> anyhow::Result<bool> {
    let check = verify(path)?;
    if format == Format::Json {
        let Check { events, receipt, .. } = &check;
        say::object(&Shown { event: "receipt", path, events: *events, receipt: receipt.as_ref() });
        return Ok(true);
    }
    let Some(receipt) = &check.receipt else {
        let lacks: Vec<String> =
            check.problems.iter().map(|problem| format!("{}: {}", problem.path, problem.what)).collect();
        bail!("{} is not a whole receipt: {}", path.display(), lacks.join("; "));
    };
    let ReceiptHead { meta, backend, outcome, usage, verification, .. } = receipt;
    let row = |name: &str, text: &str| anstream::println!("{name:<10} {}", printable(text));
    row("run", meta.run_id.as_str());
    row("order", meta.work_order_id.as_str());
    row("backend", &format!("{} {}", backend.id, backend.backend_version.as_deref().unwrap_or_default()));
    row("outcome", outcome.as_str());
    row("started", &meta.started_at.to_string());
    row("took", &format!("{} ms, {} events", meta.duration_ms, check.events));
    if let Some(tokens) = usage.input_tokens.zip(usage.output_tokens) {
        row("tokens", &format!("{} in, {} out", tokens.0, tokens.1));
    }
    if let Some(money) = usage.estimated_cost_usd {
        row("cost", &format!("${money:.4}"));
    }
    if let Some(note) = receipt.outrigger() {
        for name in ["ending", "error", "previous"] {
            if let Some(text) = note.get(name).and_then(Value::as_str) {
                row(name, text);
            }
        }
        for (name, members) in [("held", "enforcement"), ("decided", "decisions")] {
            if let Some(Value::Object(members)) = note.get(members) {
                let plain = members.iter().filter(|(_, value)| value.is_string() || value.is_number());
                let words: Vec<String> =
                    plain.map(|(name, value)| format!("{name} {}", bare(value))).collect();
                row(name, &words.join(", "));
            }
        }
        for budget in note.get("budgets").and_then(Value::as_array).into_iter().flatten() {
            let member = |name: &str| budget.get(name).map(bare).unwrap_or_default();
            row("budget", &format!("{}: {} of {}", member("resource"), member("spent"), member("limit")));
        }
    }
    if let Some(status) = &verification.git_status {
        for line in status.lines() {
            row("changed", line);
        }
    }
    Ok(true)
}

/// A text without its quotes; anything else as JSON.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compare(first: &Path, second: &Path, limit: DiffLimit, format: Format) -> anyhow::Result<bool> {
    let diff = diff(first, second, limit).context("they cannot be compared")?;
    if format == Format::Json {
        say::object(&Differs { event: "diff", diff: &diff });
        return Ok(diff.is_empty());
    }
    for Difference { path, first, second } in diff.members.iter().chain(&diff.trace) {
        anstream::println!("{}", printable(path));
        let side = |sign: &str, text: &Option<String>| {
            if let Some(text) = text {
                anstream::println!("  {sign} {}", printable(text));
            }
        };
        side("-", first);
        side("+", second);
    }
    let listed = diff.trace.len() as u64;
    if diff.different_events > listed {
        anstream::println!("and {} more events", diff.different_events - listed);
    }
    Ok(diff.is_empty())
}
