//! The bridge as a host sees it: how soon it is ready, what it adds to what an agent says, and how soon a warm agent answers.
//!
//! # Theory of operation
//!
//! One driver (this process) over bare pipes. The agent is this program again ([`agent`]): it speaks Claude Code's protocol and
//! has everything ready that it will say. The floor is the same agent read directly. The last row has the real Claude Code, with
//! the project's own model server behind it, and is left out where it is not installed.

pub(crate) mod agent;
mod events;
mod ready;
mod warm;

use std::ffi::OsString;

use anyhow::Result;

use crate::Filter;
use crate::child::Child;
use crate::figure::Figure;

/// Rows that are measured together, and how.
struct Group {
    rows: &'static [&'static str],
    measure: fn() -> Result<Vec<Figure>>,
}

const GROUPS: &[Group] = &[ready::GROUP, events::GROUP, warm::GROUP];

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for group in GROUPS {
        if group.rows.iter().any(|row| filter.wants(row)) {
            figures.extend((group.measure)()?.into_iter().filter(|figure| filter.wants(figure.name)));
        }
    }
    Ok(figures)
}

/// The bridge that is released.
fn sidecar(arguments: &[OsString], variables: &[(&str, OsString)]) -> Result<Child> {
    Child::released("helmor-sidecar", arguments, variables)
}

/// Is the bench's own agent, if its environment says so.
pub(crate) fn intercept() -> Option<Result<()>> {
    std::env::var_os(agent::VARIABLE).map(|_| agent::serve())
}
