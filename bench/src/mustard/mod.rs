//! The mustard sidecar as a host sees it: how soon it is ready, what a hop costs, and that it does not grow.
//!
//! # Theory of operation
//!
//! One driver (this process), blocking pipes, raw frames spelled by hand: no library of ours stands between the clock and
//! the child, and what a host does for every hop (read the snapshot's id, sign it, write the request) is inside the time.
//! Contestants run in turns within each round. The floor of every conversation is an [`echo`] child, which is this program
//! again: it gets and gives frames of the same sizes and does nothing else.

mod child;
mod compile;
pub(crate) mod echo;
mod fan_out;
mod hop;
mod ready;
mod samples;
mod steady;
mod talk;

use anyhow::Result;

use crate::Filter;
use crate::figure::Figure;

/// Rows that are measured together, and how.
struct Group {
    rows: &'static [&'static str],
    measure: fn() -> Result<Vec<Figure>>,
}

const GROUPS: &[Group] = &[ready::GROUP, compile::GROUP, hop::GROUP, fan_out::GROUP, steady::GROUP];

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for group in GROUPS {
        if group.rows.iter().any(|row| filter.wants(row)) {
            figures.extend((group.measure)()?.into_iter().filter(|figure| filter.wants(figure.name)));
        }
    }
    Ok(figures)
}
