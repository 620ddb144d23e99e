//! `PluralRules` for English.

/// The categories that English uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plural {
    /// 1 apple, 21st.
    One,
    /// 22nd.
    Two,
    /// 23rd.
    Few,
    /// Everything else.
    Other,
}

impl Plural {
    /// The name that the language gives it.
    pub fn name(self) -> &'static str {
        match self {
            Plural::One => "one",
            Plural::Two => "two",
            Plural::Few => "few",
            Plural::Other => "other",
        }
    }
}

/// The cardinal category of a number that prints with these digits, sign aside.
///
/// ```
/// use outrigger_vm::text::intl::plural::{Plural, cardinal};
/// assert_eq!((cardinal("1", ""), cardinal("1", "0")), (Plural::One, Plural::Other));
/// ```
pub fn cardinal(integer: &str, fraction: &str) -> Plural {
    if integer == "1" && fraction.is_empty() { Plural::One } else { Plural::Other }
}

/// The ordinal category of a number that prints with these digits, sign aside.
pub fn ordinal(integer: &str, fraction: &str) -> Plural {
    if !fraction.is_empty() {
        return Plural::Other;
    }
    let digits = integer.as_bytes();
    let tens = digits.len().checked_sub(2).and_then(|index| digits.get(index));
    match (tens, digits.last()) {
        (Some(b'1'), _) => Plural::Other,
        (_, Some(b'1')) => Plural::One,
        (_, Some(b'2')) => Plural::Two,
        (_, Some(b'3')) => Plural::Few,
        (_, _) => Plural::Other,
    }
}
