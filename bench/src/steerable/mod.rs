//! The steerable sidecar as a host sees it: how soon it is ready, how fast it answers, and how fast it hands streams on.
//!
//! # Theory of operation
//!
//! One driver (this process) over bare pipes. The model's server is this program again ([`server`]): it has every answer
//! ready before it is asked and only writes. The floor of the streams is a relay ([`relay`]), this program once more: it makes
//! the same requests to the same server and copies the bytes to its standard output without looking at them.

mod pings;
mod ready;
pub(crate) mod relay;
pub(crate) mod server;
mod streams;

use anyhow::Result;

use crate::Filter;
use crate::child::Child;
use crate::figure::Figure;

/// Rows that are measured together, and how.
struct Group {
    rows: &'static [&'static str],
    measure: fn() -> Result<Vec<Figure>>,
}

const GROUPS: &[Group] = &[ready::GROUP, pings::GROUP, streams::GROUP];

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for group in GROUPS {
        if group.rows.iter().any(|row| filter.wants(row)) {
            figures.extend((group.measure)()?.into_iter().filter(|figure| filter.wants(figure.name)));
        }
    }
    Ok(figures)
}

/// The sidecar that is released.
fn sidecar() -> Result<Child> {
    Child::released("steerable-sidecar", &[], &[])
}

/// Is one of the bench's own children, if the arguments say so.
pub(crate) fn intercept() -> Option<Result<()>> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(server::ARGUMENT) => Some(server::serve()),
        Some(relay::ARGUMENT) => Some(relay::serve(&arguments[2..])),
        Some(_) | None => None,
    }
}
