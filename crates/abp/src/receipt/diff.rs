//! What two receipts do not have in common.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::canonical::{self, Vendor};
use super::head::members;
use super::scan::ScanError;
use super::verify::{OpenReceipt, VerifyError};
use crate::protocol::{AgentEvent, Raw};

/// The most characters of a value that a difference shows.
pub const SHOWN: usize = 400;

/// What two receipts do not have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Members, by their paths.
    pub members: Vec<Difference>,
    /// Events, by their numbers.
    pub trace: Vec<Difference>,
    /// How many events each has.
    pub events: [u64; 2],
    /// How many events differ, also beyond those that are listed.
    pub different_events: u64,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: `meta.run_id`, `trace[3]`.
    pub path: String,
    /// What the first has; none if it has nothing there.
    pub first: Option<String>,
    /// What the second has.
    pub second: Option<String>,
}

/// How many differences are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLimit(pub usize);

impl Diff {
    /// Whether they have everything in common.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.different_events == 0
    }
}

/// Compares two receipts: members by their paths, events by their numbers, both by what they mean and not how they are
/// spelled. Of each at most `limit` are listed.
///
/// # Errors
/// When one of them cannot be read.
pub fn diff(first: &Path, second: &Path, limit: DiffLimit) -> Result<Diff, VerifyError> {
    let open =
        |path: &Path| OpenReceipt::open(path).map_err(|source| VerifyError { path: path.to_owned(), source });
    let (mut one, mut two) = (open(first)?, open(second)?);
    let mut found = Diff::default();
    let (left, right) = (flatten(&one), flatten(&two));
    let mut paths: Vec<&String> =
        left.keys().chain(right.keys().filter(|path| !left.contains_key(*path))).collect();
    paths.sort();
    for path in paths {
        let (first, second) = (left.get(path), right.get(path));
        if first != second && found.members.len() < limit.0 {
            let shown = |value: Option<&String>| value.map(|text| shorten(text));
            found.members.push(Difference { path: path.clone(), first: shown(first), second: shown(second) });
        }
    }
    let failed = |source: ScanError| VerifyError { path: first.to_owned(), source };
    compare_events(&mut one, &mut two, limit, &mut found).map_err(failed)?;
    Ok(found)
}

fn compare_events(
    one: &mut OpenReceipt,
    two: &mut OpenReceipt,
    limit: DiffLimit,
    found: &mut Diff,
) -> Result<(), ScanError> {
    let (mut left, mut right) = (one.events()?, two.events()?);
    for number in 0.. {
        let next = |list: &mut Option<super::verify::Events<'_>>| match list {
            Some(list) => list.next().map(|text| text.map(spell)),
            None => Ok(None),
        };
        let (first, second) = (next(&mut left)?, next(&mut right)?);
        if first.is_none() && second.is_none() {
            break;
        }
        found.events[0] += u64::from(first.is_some());
        found.events[1] += u64::from(second.is_some());
        if first != second {
            found.different_events += 1;
            if found.trace.len() < limit.0 {
                let shown = |text: Option<String>| text.map(|text| shorten(&text));
                let path = format!("trace[{number}]");
                found.trace.push(Difference { path, first: shown(first), second: shown(second) });
            }
        }
        // An array that has ended must not be asked again.
        if found.events[0] <= number {
            left = None;
        }
        if found.events[1] <= number {
            right = None;
        }
    }
    Ok(())
}

/// The canonical spelling of an event; of something else its own text.
fn spell(text: &str) -> String {
    let mut out = Vec::new();
    let spelled = AgentEvent::read(text)
        .is_ok_and(|event| canonical::write_event(&mut out, &event, Vendor::Canonical).is_ok());
    if spelled { String::from_utf8(out).unwrap_or_default() } else { text.to_owned() }
}

/// The members of a receipt by their paths: two levels, and three in `usage_raw.outrigger`.
fn flatten(receipt: &OpenReceipt) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Some(outer) = Raw::new(receipt.text()).ok().and_then(|raw| members(&raw)) else { return found };
    for (name, value) in outer {
        insert(&mut found, name, &value, 2);
    }
    found
}

fn insert(found: &mut BTreeMap<String, String>, path: String, value: &Raw<'_>, levels: u32) {
    match members(value).filter(|members| levels > 0 && !members.is_empty()) {
        Some(members) => {
            for (name, value) in members {
                insert(found, format!("{path}.{name}"), &value, levels - 1);
            }
        }
        None => {
            let text = canonical::canonical(value.as_str()).unwrap_or_else(|_| value.as_str().to_owned());
            // Null is the same as absent.
            if text != "null" {
                found.insert(path, text);
            }
        }
    }
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
