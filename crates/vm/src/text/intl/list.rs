//! `ListFormat` for English.

use super::Part;

/// What joins the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// and
    Conjunction,
    /// or
    Disjunction,
    /// Nothing, as in "5 pounds, 12 ounces".
    Unit,
}

/// How long words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Whole words.
    Long,
    /// Abbreviations.
    Short,
    /// The shortest.
    Narrow,
}

/// The items, with literals between them.
pub fn parts(items: &[&str], kind: ListType, width: Width) -> Vec<Part> {
    let (pair, between, last) = match (kind, width) {
        (ListType::Conjunction, Width::Long) => (" and ", ", ", ", and "),
        (ListType::Conjunction, Width::Short) => (" & ", ", ", ", & "),
        (ListType::Disjunction, _) => (" or ", ", ", ", or "),
        (ListType::Unit, Width::Narrow) => (" ", " ", " "),
        (ListType::Conjunction, Width::Narrow) | (ListType::Unit, Width::Long | Width::Short) => {
            (", ", ", ", ", ")
        }
    };
    let mut out = Vec::with_capacity(items.len() * 2);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            let is_last = index + 1 == items.len();
            out.push(Part::literal(match is_last {
                true if items.len() == 2 => pair,
                true => last,
                false => between,
            }));
        }
        out.push(Part::new("element", *item));
    }
    out
}
