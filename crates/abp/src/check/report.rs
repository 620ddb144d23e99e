//! What was found: one line per rule.

use std::fmt;

use outrigger_wire::line::Head;
use serde::Serialize;

/// What was found about a sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One per rule, in the order in which they were tried.
    pub checks: Vec<Check>,
}

/// What was found about one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A stable name.
    pub name: &'static str,
    /// The rule, in words.
    pub rule: &'static str,
    /// How it is kept.
    pub status: Status,
    /// What was seen.
    pub detail: String,
    /// The beginning of the line that shows it, if there is one.
    pub evidence: Option<String>,
}

/// How a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is.
    Pass,
    /// It could not be seen.
    Skipped,
    /// It is not, and the contract only advises it.
    Warn,
    /// It is not.
    Fail,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Skipped => "skipped",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

impl Report {
    /// How many checks ended so.
    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    /// Whether nothing failed.
    pub fn is_conformant(&self) -> bool {
        self.count(Status::Fail) == 0
    }

    /// The check of that name.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    pub(super) fn add(&mut self, rule: Rule, found: Found) {
        let Rule(name, rule) = rule;
        let Found { status, detail, evidence } = found;
        self.checks.push(Check { name, rule, status, detail, evidence });
    }
}

/// A rule: its name and its words.
#[derive(Clone, Copy)]
pub(super) struct Rule(pub(super) &'static str, pub(super) &'static str);

/// What was found, before it has a name.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) status: Status,
    pub(super) detail: String,
    pub(super) evidence: Option<String>,
}

impl Found {
    pub(super) fn new(status: Status, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), evidence: None }
    }

    pub(super) fn pass(detail: impl Into<String>) -> Self {
        Self::new(Status::Pass, detail)
    }

    pub(super) fn skipped(detail: impl Into<String>) -> Self {
        Self::new(Status::Skipped, detail)
    }

    pub(super) fn shown_by(mut self, line: &str) -> Self {
        self.evidence = Some(shown(line));
        self
    }
}

/// The beginning of a line of the child, bounded.
pub(super) fn shown(line: &str) -> String {
    let head = Head::of(line.as_bytes());
    let more = if head.as_str().len() < line.len() { "…" } else { "" };
    format!("{}{more}", head.as_str())
}
