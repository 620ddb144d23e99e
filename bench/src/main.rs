//! `cargo run --release -p outrigger-bench -- [FILTER] [--json] [--check]`: every number we promise, in one table.
//!
//! # Theory of operation
//!
//! A bench is a file here and a line in [`BENCHES`]. It returns rows; a row is our time, the times of its baselines
//! measured in the same run, in turns, and the goal that the ratio must keep. Machines are noisy, so where we can only
//! ratios are promised, and medians are compared. Where a number itself is promised, a bench returns figures: each is
//! shown with the floor that the machine had in the same run, and missed only when it is missed by a margin.

mod abp;
mod child;
mod daemon;
mod figure;
mod helmor;
mod lines;
mod measure;
mod mustard;
mod peer;
mod sep;
mod spawn;
mod steerable;
mod table;
mod vm;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::figure::Figure;
use crate::table::Row;

/// What a bench returns.
#[derive(Clone, Copy)]
enum Bench {
    /// Ratios to a baseline.
    Rows(fn(&Filter) -> Result<Vec<Row>>),
    /// Numbers as they are.
    Figures(fn(&Filter) -> Result<Vec<Figure>>),
}

/// Every bench, by the name that a filter matches. A new one is a file beside this and a line here.
const BENCHES: &[(&str, Bench)] = &[
    ("lines", Bench::Rows(lines::bench)),
    ("peer", Bench::Rows(peer::bench)),
    ("spawn", Bench::Rows(spawn::bench)),
    ("vm", Bench::Rows(vm::bench)),
    ("vm-snapshots", Bench::Figures(vm::snapshots::bench)),
    ("mustard", Bench::Figures(mustard::bench)),
    ("abp", Bench::Rows(abp::bench)),
    ("abp-memory", Bench::Figures(abp::memory)),
    ("steerable", Bench::Figures(steerable::bench)),
    ("helmor", Bench::Figures(helmor::bench)),
    ("sep", Bench::Figures(sep::bench)),
    ("daemon", Bench::Figures(daemon::bench)),
];

fn main() -> Result<ExitCode> {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return Ok(code);
    }
    if let Some(played) = abp::intercept() {
        return played.map(|()| ExitCode::SUCCESS);
    }
    if let Some(played) = sep::intercept() {
        return played.map(|()| ExitCode::SUCCESS);
    }
    if let Some(played) = helmor::intercept() {
        return played.map(|()| ExitCode::SUCCESS);
    }
    if let Some(played) = steerable::intercept() {
        return played.map(|()| ExitCode::SUCCESS);
    }
    if std::env::args().nth(1).as_deref() == Some(mustard::echo::ARGUMENT) {
        mustard::echo::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (name, bench) in BENCHES {
        if arguments.filter.may_want(name) {
            match bench {
                Bench::Rows(bench) => rows.extend(bench(&arguments.filter)?),
                Bench::Figures(bench) => figures.extend(bench(&arguments.filter)?),
            }
        }
    }
    if rows.is_empty() && figures.is_empty() {
        let names: Vec<_> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("no bench matches the filter; there are: {}", names.join(", "));
    }
    let tables = match arguments.format {
        Format::Table => [
            (!rows.is_empty()).then(|| table::render(&rows)),
            (!figures.is_empty()).then(|| figure::render(&figures)),
        ],
        Format::Json => [Some(table::render_json(&rows)?), Some(figure::render_json(&figures)?)],
    };
    let text = tables.into_iter().flatten().collect::<Vec<_>>().join(match arguments.format {
        Format::Table => "\n",
        Format::Json => "",
    });
    #[expect(
        clippy::print_stdout,
        reason = "a bench is a program for people and scripts: the table is its output"
    )]
    {
        print!("{text}");
    }
    let missed = rows.iter().any(|row| !row.is_met())
        || figures.iter().any(|figure| figure.verdict() == figure::Verdict::Missed);
    Ok(match arguments.verdict {
        Verdict::FailWhenMissed if missed => ExitCode::FAILURE,
        Verdict::FailWhenMissed | Verdict::OnlyShow => ExitCode::SUCCESS,
    })
}

/// Which rows are wanted: those whose name contains a text. A bench of many slow rows asks before it measures one.
struct Filter(Option<String>);

impl Filter {
    fn wants(&self, row: &str) -> bool {
        self.0.as_ref().is_none_or(|text| row.contains(text.as_str()))
    }

    /// Whether rows of this bench, whose names begin with its own, can match.
    fn may_want(&self, bench: &str) -> bool {
        self.wants(bench) || self.0.as_ref().is_some_and(|text| text.starts_with(&format!("{bench}/")))
    }
}

struct Arguments {
    filter: Filter,
    format: Format,
    verdict: Verdict,
}

enum Format {
    Table,
    Json,
}

enum Verdict {
    OnlyShow,
    FailWhenMissed,
}

impl Arguments {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = Self { filter: Filter(None), format: Format::Table, verdict: Verdict::OnlyShow };
        for word in words {
            match word.as_str() {
                "--json" => arguments.format = Format::Json,
                "--check" => arguments.verdict = Verdict::FailWhenMissed,
                flag if flag.starts_with('-') => {
                    bail!("unknown flag {flag}; usage: [FILTER] [--json] [--check]")
                }
                filter if arguments.filter.0.is_none() => arguments.filter.0 = Some(filter.to_owned()),
                extra => bail!("one filter at most, but got {extra} too"),
            }
        }
        Ok(arguments)
    }
}
