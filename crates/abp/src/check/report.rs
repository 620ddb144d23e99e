//! What was found of a rule, before it has a name.

use outrigger_wire::conformance::{Check, Report, Status, shown};

/// Writes down what was found.
pub(super) trait Add {
    fn add(&mut self, rule: Rule, found: Found);
}

impl Add for Report {
    fn add(&mut self, rule: Rule, found: Found) {
        let Rule(name, rule) = rule;
        let Found { status, detail, evidence } = found;
        self.checks.push(Check { name, rule, status, detail, evidence, mend: None });
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
