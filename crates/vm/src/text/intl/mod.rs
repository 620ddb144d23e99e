//! `Intl` for en-US, as pure functions over option structs.
//!
//! - [`number`] is `NumberFormat`
//! - [`datetime`] is `DateTimeFormat` and the `toLocale…String` family of dates
//! - [`plural`], [`relative`] and [`list`] are what they say
//!
//! Reading options objects and filling in defaults is the caller's; every function here is bounded by the digits or
//! the items that it prints. Other locales fall back to en-US. Missing: `formatRange`, `roundingIncrement`,
//! `roundingPriority` other than automatic, compound units beyond those in `units.tsv`, named time zones.

pub mod datetime;
pub mod decimal;
pub mod list;
pub mod number;
pub mod plural;
pub mod relative;

/// A stretch of formatted text, as `formatToParts` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The `type` that the language gives it.
    pub kind: &'static str,
    /// The `value`.
    pub text: String,
}

impl Part {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> Part {
        Part { kind, text: text.into() }
    }

    pub(crate) fn literal(text: &str) -> Part {
        Part::new("literal", text)
    }
}

/// The whole text of its parts.
///
/// ```
/// use outrigger_vm::text::intl::{join, list};
/// let parts = list::parts(&["a", "b"], list::ListType::Conjunction, list::Width::Long);
/// assert_eq!(join(&parts), "a and b");
/// ```
pub fn join(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}
