//! What was not as it should be and did not end the run. Kept within bounds, because a child decides how often it happens.

use std::fmt;

use outrigger_wire::line::Head;

/// How many warnings of one run are kept; the others are counted.
pub const MOST_WARNINGS: usize = 64;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A line that is no message was skipped.
    Noise {
        /// What is wrong with it.
        why: String,
        /// Its beginning.
        head: Head,
    },
    /// A message of another run was dropped.
    Foreign {
        /// Which message.
        t: &'static str,
        /// The run it says it belongs to, cut.
        ref_id: Head,
    },
    /// A second hello was ignored.
    HelloAgain,
    /// A message that has no place after the end of a run, which it does not change.
    Late {
        /// Which message.
        t: String,
    },
    /// The child closed its standard input: it can be told nothing any more.
    Deaf,
    /// What the user said did not reach the child.
    NotSteered {
        /// Why.
        why: &'static str,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noise { why, head } => write!(f, "skipped a line that is no message ({why}): {head}"),
            Self::Foreign { t, ref_id } => write!(f, "dropped `{t}` of another run, {ref_id}"),
            Self::HelloAgain => f.write_str("ignored a second `hello`"),
            Self::Late { t } => {
                write!(f, "protocol violation: `{t}` after the run had ended; it does not change that run")
            }
            Self::NotSteered { why } => write!(f, "what you said did not reach it: {why}"),
            Self::Deaf => f.write_str("it closed its standard input and can be told nothing any more"),
        }
    }
}

/// The first warnings of a run, and how many there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warnings {
    first: Vec<Warning>,
    total: u64,
}

impl Warnings {
    pub(super) fn none() -> Self {
        Self { first: Vec::new(), total: 0 }
    }

    pub(super) fn add(&mut self, warning: Warning) {
        self.total = self.total.saturating_add(1);
        if self.first.len() < MOST_WARNINGS {
            self.first.push(warning);
        }
    }

    /// The first [`MOST_WARNINGS`].
    pub fn first(&self) -> &[Warning] {
        &self.first
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_up_to_their_limit_and_counted_beyond_it() {
        let mut warnings = Warnings::none();
        for _ in 0..MOST_WARNINGS {
            warnings.add(Warning::HelloAgain);
        }
        assert_eq!((warnings.first().len(), warnings.total()), (MOST_WARNINGS, MOST_WARNINGS as u64));
        warnings.add(Warning::Deaf);
        assert_eq!((warnings.first().len(), warnings.total()), (MOST_WARNINGS, MOST_WARNINGS as u64 + 1));
        assert_eq!(warnings.first().last(), Some(&Warning::HelloAgain));
    }
}
