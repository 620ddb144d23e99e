//! What a run tells people: totals, shares by folder, and the commonest reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::pool::Verdict;
use crate::scope::LeftOut;

/// Everything that came of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    /// Failures by reason; the reason with its particulars left out.
    reasons: BTreeMap<String, Vec<String>>,
    times: Vec<(Duration, String)>,
    pub(crate) crashes: usize,
}

impl Outcome {
    /// Keeps a verdict; answers what is to be said about a test that did not pass.
    pub(crate) fn note(&mut self, test: &str, verdict: Verdict, took: Duration) -> Option<String> {
        self.times.push((took, test.to_owned()));
        let reason = match verdict {
            Verdict::Pass => {
                self.passed.insert(test.to_owned());
                return None;
            }
            Verdict::Fail(reason) => reason,
            Verdict::Crash(reason) => {
                self.crashes += 1;
                format!("CRASH: {reason}")
            }
        };
        self.failed.insert(test.to_owned());
        self.reasons.entry(general(&reason)).or_default().push(test.to_owned());
        Some(reason)
    }

    pub(crate) fn totals(&self, left_out: &BTreeMap<LeftOut, usize>) -> String {
        let (passed, failed) = (self.passed.len(), self.failed.len());
        let share = share(passed, passed + failed);
        let left_out: Vec<_> = left_out.iter().map(|(why, count)| format!("{why:?} {count}")).collect();
        let crashes = self.crashes;
        let left_out = left_out.join(", ");
        format!("{passed} passed, {failed} failed\n{share:.2} %, {crashes} crashes; left out: {left_out}")
    }

    /// A line for each folder two levels deep.
    pub(crate) fn by_folder(&self) -> String {
        let mut folders: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for path in &self.passed {
            folders.entry(folder(path)).or_default().0 += 1;
        }
        for path in &self.failed {
            folders.entry(folder(path)).or_default().1 += 1;
        }
        let line = |(folder, (passed, failed)): (&String, &(usize, usize))| {
            let share = share(*passed, passed + failed);
            format!("{share:6.2} %  {passed:6} passed {failed:6} failed  {folder}")
        };
        folders.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The commonest reasons, each with one test that shows it.
    pub(crate) fn by_reason(&self, most: usize) -> String {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
        let line = |(reason, tests): &(&String, &Vec<String>)| {
            let example = tests.iter().min().map_or("", String::as_str);
            format!("{:6}  {reason}\n        {example}", tests.len())
        };
        let mut lines: Vec<String> = reasons.iter().take(most).map(line).collect();
        if let Some(rest) = reasons.get(most..).filter(|rest| !rest.is_empty()) {
            let tests: usize = rest.iter().map(|(_, tests)| tests.len()).sum();
            lines.push(format!("{tests:6}  for {} other reasons", rest.len()));
        }
        lines.join("\n")
    }

    /// The tests that took longest.
    pub(crate) fn slowest(&self, most: usize) -> String {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|a, b| b.cmp(a));
        let line = |(took, test): &&(Duration, String)| format!("{:8.3} s  {test}", took.as_secs_f64());
        times.iter().take(most).map(line).collect::<Vec<_>>().join("\n")
    }
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The first two folders of a path.
fn folder(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let folders = parts.len().saturating_sub(1).min(2);
    parts[..folders].join("/")
}

/// A reason without what differs from test to test: numbers that stand alone, and quoted values.
fn general(reason: &str) -> String {
    let mut text = String::new();
    let mut rest = reason.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        match c {
            '«' => {
                rest.by_ref().find(|&c| c == '»');
                text.push_str("«…»");
            }
            c if c.is_ascii_digit() && !before.is_alphanumeric() => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                text.push('#');
            }
            c => text.push(c),
        }
        before = c;
    }
    text.chars().take(140).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_particulars_are_one() {
        let mut outcome = Outcome::default();
        let second = Duration::from_secs(1);
        let fail = |reason: &str| Verdict::Fail(reason.to_owned());
        outcome.note(
            "a/b/c/2.js",
            fail("threw Test262Error: Expected SameValue(«1», «x») after 10 steps"),
            second,
        );
        outcome.note(
            "a/b/c/1.js",
            fail("threw Test262Error: Expected SameValue(«'2», «») after 7 steps"),
            second,
        );
        outcome.note("a/b/3.js", fail("refused"), second);
        outcome.note("a/4.js", Verdict::Crash("gone".to_owned()), second);
        outcome.note("a/b/5.js", Verdict::Pass, 2 * second);
        let common =
            "     2  threw Test262Error: Expected SameValue(«…», «…») after # steps\n        a/b/c/1.js";
        assert_eq!(outcome.by_reason(1), format!("{common}\n     2  for 2 other reasons"));
        let folders = "  0.00 %       0 passed      1 failed  a\n 25.00 %       1 passed      3 failed  a/b";
        assert_eq!(outcome.by_folder(), folders);
        assert_eq!(outcome.slowest(1), "   2.000 s  a/b/5.js");
    }
}
