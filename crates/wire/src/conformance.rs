//! What a check of somebody's sidecar finds: one line for each rule, with its evidence and what to do about it. The rules are the
//! dialects' own.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::line::Head;

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
    /// What to do about it, if it is not kept.
    pub mend: Option<&'static str>,
}

/// How a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is.
    Pass,
    /// It could not be seen.
    Skipped,
    /// It is not, and hosts can live with that.
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
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_conformant(&self) -> bool {
        self.count(Status::Fail) == 0
    }

    /// The check of that name.
    #[must_use]
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts = [Status::Pass, Status::Fail, Status::Warn, Status::Skipped]
            .map(|status| (status.to_string(), Value::from(self.count(status))));
        let checks = serde_json::to_value(&self.checks).unwrap_or_default();
        serde_json::json!({
            "conformant": self.is_conformant(),
            "counts": counts.into_iter().collect::<serde_json::Map<_, _>>(),
            "checks": checks,
        })
    }

    /// Writes down what was seen of a rule.
    pub fn judged(&mut self, rule: &Rule, verdict: Verdict) {
        let Rule { name, words, mend, weight } = *rule;
        let broken = match weight {
            Weight::Must => Status::Fail,
            Weight::Should => Status::Warn,
        };
        let (status, detail, evidence) = match verdict {
            Ok(detail) => (Status::Pass, detail, None),
            Err(Trouble::Unseen(why)) => (Status::Skipped, why, None),
            Err(Trouble::Broken { detail, evidence }) => (broken, detail, evidence),
        };
        let mend = matches!(status, Status::Fail | Status::Warn).then_some(mend);
        self.checks.push(Check { name, rule: words, status, detail, evidence, mend });
    }
}

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A stable name.
    pub name: &'static str,
    /// The rule, in words.
    pub words: &'static str,
    /// What to do about it, if it is not kept.
    pub mend: &'static str,
    /// What a breach of it is.
    pub weight: Weight,
}

/// Whether hosts depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// They do: a breach is a failure.
    Must,
    /// They can live without it: a breach is a warning.
    Should,
}

/// What was seen of a rule that is kept, or what is the trouble.
pub type Verdict = Result<String, Trouble>;

/// Why a rule does not pass.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// It is not kept.
    Broken {
        /// What was seen instead.
        detail: String,
        /// The beginning of the line that shows it.
        evidence: Option<String>,
    },
    /// It could not be seen.
    Unseen(String),
}

impl Trouble {
    /// It is not kept.
    pub fn broken(detail: impl Into<String>) -> Self {
        Self::Broken { detail: detail.into(), evidence: None }
    }

    /// It is not kept, as this shows.
    pub fn shown(detail: impl Into<String>, evidence: &Value) -> Self {
        Self::Broken { detail: detail.into(), evidence: Some(shown(&evidence.to_string())) }
    }
}

/// Passes if it is so.
///
/// # Errors
/// When it is not, with what was seen.
pub fn demand(is_so: bool, otherwise: &str, evidence: &Value) -> Result<(), Trouble> {
    if is_so { Ok(()) } else { Err(Trouble::shown(otherwise, evidence)) }
}

/// The beginning of a line of the child, bounded.
#[must_use]
pub fn shown(line: &str) -> String {
    let head = Head::of(line.as_bytes());
    let more = if head.as_str().len() < line.len() { "…" } else { "" };
    format!("{}{more}", head.as_str())
}
