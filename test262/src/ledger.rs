//! The tests that are known to fail, one path a line. It may only shrink: a test that is in it and passes must be taken out.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// Known failures.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger(BTreeSet<String>);

/// How a run differs from the ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Failed and not known to.
    pub(crate) new: Vec<String>,
    /// Known to fail, and passed.
    pub(crate) mended: Vec<String>,
    /// Known to fail, and no longer a test that counts.
    pub(crate) stray: Vec<String>,
}

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        self.new.is_empty() && self.mended.is_empty() && self.stray.is_empty()
    }
}

impl Ledger {
    /// A ledger that does not exist is empty.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading the ledger {}", path.display())),
        }
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(str::to_owned).collect())
    }

    pub(crate) fn compare(&self, ran: &Ran<'_>) -> Difference {
        let stray = match ran.reach {
            Reach::Everything => self.0.iter().filter(|path| !ran.has(path)).cloned().collect(),
            Reach::Part => Vec::new(),
        };
        Difference {
            new: ran.failed.difference(&self.0).cloned().collect(),
            mended: self.0.intersection(ran.passed).cloned().collect(),
            stray,
        }
    }

    /// Writes what failed now, keeping what a partial run did not reach.
    pub(crate) fn write(&self, path: &Path, ran: &Ran<'_>) -> Result<()> {
        let text = self.rewritten(ran);
        std::fs::write(path, text).with_context(|| format!("writing the ledger {}", path.display()))
    }

    fn rewritten(&self, ran: &Ran<'_>) -> String {
        let kept = self.0.iter().filter(|path| ran.reach == Reach::Part && !ran.has(path));
        let mut text =
            String::from("# Tests of tc39/test262 that are known to fail. Written by --update-ledger.\n");
        for line in kept.chain(ran.failed).collect::<BTreeSet<_>>() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// What a run ran.
pub(crate) struct Ran<'a> {
    pub(crate) passed: &'a BTreeSet<String>,
    pub(crate) failed: &'a BTreeSet<String>,
    pub(crate) reach: Reach,
}

/// Whether a run left tests out that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Everything,
    Part,
}

impl Ran<'_> {
    fn has(&self, path: &str) -> bool {
        self.passed.contains(path) || self.failed.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_new_failure_and_a_mended_one_are_both_told() {
        let ledger = Ledger::parse("# comment\na.js\nb.js\n\nnot-run.js\n");
        let (passed, failed) = (set(&["b.js", "d.js"]), set(&["a.js", "c.js"]));
        let owned = |word: &str| vec![word.to_owned()];

        let part = Ran { passed: &passed, failed: &failed, reach: Reach::Part };
        let expected = Difference { new: owned("c.js"), mended: owned("b.js"), stray: Vec::new() };
        assert_eq!(ledger.compare(&part), expected);

        let everything = Ran { reach: Reach::Everything, ..part };
        let expected = Difference { stray: owned("not-run.js"), ..expected };
        assert_eq!(ledger.compare(&everything), expected);
        assert!(!expected.is_none());
    }

    #[test]
    fn a_partial_run_keeps_what_it_did_not_reach_and_a_full_one_does_not() {
        let ledger = Ledger::parse("a.js\nb.js\nnot-run.js\n");
        let (passed, failed) = (set(&["b.js"]), set(&["a.js", "c.js"]));
        let part = Ran { passed: &passed, failed: &failed, reach: Reach::Part };
        assert_eq!(Ledger::parse(&ledger.rewritten(&part)), Ledger(set(&["a.js", "c.js", "not-run.js"])));
        let everything = Ran { reach: Reach::Everything, ..part };
        assert_eq!(Ledger::parse(&ledger.rewritten(&everything)), Ledger(failed.clone()));
    }
}
