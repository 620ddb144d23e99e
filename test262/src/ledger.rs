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

    pub(crate) fn compare(&self, passed: &BTreeSet<String>, failed: &BTreeSet<String>) -> Difference {
        Difference {
            new: failed.difference(&self.0).cloned().collect(),
            mended: self.0.intersection(passed).cloned().collect(),
        }
    }

    /// Writes what failed now, keeping what was not run.
    pub(crate) fn write(
        &self,
        path: &Path,
        passed: &BTreeSet<String>,
        failed: &BTreeSet<String>,
    ) -> Result<()> {
        let kept = self.0.difference(passed).chain(failed).collect::<BTreeSet<_>>();
        let mut text =
            String::from("# Tests of tc39/test262 that are known to fail. Written by --update-ledger.\n");
        for line in kept {
            text.push_str(line);
            text.push('\n');
        }
        std::fs::write(path, text).with_context(|| format!("writing the ledger {}", path.display()))
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
        let difference = ledger.compare(&set(&["b.js", "d.js"]), &set(&["a.js", "c.js"]));
        let owned = |word: &str| vec![word.to_owned()];
        assert_eq!(difference, Difference { new: owned("c.js"), mended: owned("b.js") });
    }
}
