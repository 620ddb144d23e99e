//! Which tests of a checkout are run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::meta::Meta;
use crate::scope::{self, LeftOut};

/// The tests that count, and the rest.
pub(crate) struct Selection {
    /// Paths below `test/`, sorted.
    pub(crate) tests: Vec<String>,
    /// How many do not count, by reason.
    pub(crate) left_out: BTreeMap<LeftOut, usize>,
}

/// The tests below `checkout/test` whose path contains one of `filters` (all, if there is none), thinned by `sample`.
pub(crate) fn select(checkout: &Path, filters: &[String], sample: Sample) -> Result<Selection> {
    let root = checkout.join("test");
    let mut tests = Vec::new();
    let mut left_out = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let listing = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in listing {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            let wanted = filters.is_empty() || filters.iter().any(|filter| relative.contains(filter));
            if !wanted || !relative.ends_with(".js") || relative.contains("_FIXTURE") {
                continue;
            }
            let source = std::fs::read_to_string(&path).with_context(|| format!("reading {relative}"))?;
            let Some(meta) = Meta::read(&source) else { continue };
            match scope::judge(&relative, &meta, &source) {
                Ok(()) => tests.push(relative),
                Err(why) => *left_out.entry(why).or_insert(0) += 1,
            }
        }
    }
    tests.sort();
    let tests = tests.into_iter().enumerate().filter(|(n, _)| sample.keeps(*n)).map(|(_, test)| test);
    Ok(Selection { tests: tests.collect(), left_out })
}

/// What part of the tests is run; always the same ones, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    /// One in so many.
    OneIn(usize),
    /// So many in a hundred.
    Percent(f64),
}

impl Sample {
    pub(crate) const ALL: Self = Self::OneIn(1);

    /// Reads `N` or `N%`.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let Some(share) = text.strip_suffix('%') else {
            let every =
                text.parse().with_context(|| format!("`{text}` is neither a number nor a percentage"))?;
            ensure!(every > 0, "one test in none cannot be run");
            return Ok(Self::OneIn(every));
        };
        let share = share.trim().parse().with_context(|| format!("`{text}` is not a percentage"))?;
        ensure!(share > 0.0 && share <= 100.0, "{share} % is not between 0 and 100");
        Ok(Self::Percent(share))
    }

    fn keeps(self, n: usize) -> bool {
        match self {
            Self::OneIn(every) => n.is_multiple_of(every),
            // The n-th is kept when it carries the running total over the next whole number.
            Self::Percent(share) => {
                let kept = |tests: usize| (tests as f64 * share / 100.0).ceil();
                kept(n + 1) > kept(n)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(sample: &str, of: usize) -> Vec<usize> {
        let sample = Sample::read(sample).expect("a sample");
        (0..of).filter(|&n| sample.keeps(n)).collect()
    }

    #[test]
    fn a_sample_is_spread_evenly_and_always_the_same() {
        assert_eq!(kept("1", 3), [0, 1, 2]);
        assert_eq!(kept("4", 10), [0, 4, 8]);
        assert_eq!(kept("25%", 10), [0, 4, 8]);
        assert_eq!(kept("40%", 10), [0, 2, 5, 7]);
        assert_eq!(kept("100%", 3), [0, 1, 2]);
        assert_eq!(kept("0.5%", 36_000).len(), 180);
    }

    #[test]
    fn a_sample_that_is_none_is_refused() {
        for text in ["0", "-1", "x", "", "%", "0%", "100.1%", "NaN%", "1/2"] {
            assert!(Sample::read(text).is_err(), "{text}");
        }
    }
}
