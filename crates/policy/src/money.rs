//! Money as an integer number of millionths. Floats stop here.

use serde::Serialize;
use std::fmt;

/// An amount of money in millionths of a unit (for dollars: a hundredth of a hundredth of a cent).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Micros(pub u64);

/// Which way an amount goes that has more than six decimals. A limit goes down and a cost goes up, so rounding
/// never lets more be spent than was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To the next smaller millionth: for limits.
    Down,
    /// To the next greater millionth: for costs.
    Up,
}

/// Why something is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// NaN or an infinity.
    #[error("the amount is not a finite number")]
    NotFinite,
    /// Below zero.
    #[error("the amount is negative")]
    Negative,
    /// More than 2⁶⁴−1 millionths.
    #[error("the amount is too large")]
    TooLarge,
    /// Not digits with at most one dot.
    #[error("the amount is not a decimal number")]
    NotDecimal,
}

impl Micros {
    /// Reads a plain decimal number: `12`, `0.25`, `.5`.
    pub fn parse(text: &str, round: Round) -> Result<Micros, MoneyError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return Err(MoneyError::NotDecimal);
        }
        let whole = whole.trim_start_matches('0');
        // Six digits of the fraction are millionths; whatever follows them only says which way to round.
        let (kept, rest) = fraction.split_at(fraction.len().min(6));
        let number = format!("{whole}{kept:0<6}");
        let floor: u64 = number.parse().map_err(|_| MoneyError::TooLarge)?;
        let has_rest = rest.bytes().any(|b| b != b'0');
        match round {
            Round::Up if has_rest => floor.checked_add(1).map(Micros).ok_or(MoneyError::TooLarge),
            Round::Up | Round::Down => Ok(Micros(floor)),
        }
    }

    /// Reads a float as the decimal number it is the shortest spelling of: `0.1` is 100,000 millionths.
    pub fn from_float(amount: f64, round: Round) -> Result<Micros, MoneyError> {
        if !amount.is_finite() {
            return Err(MoneyError::NotFinite);
        }
        if amount < 0.0 {
            return Err(MoneyError::Negative);
        }
        // `Display` writes floats without an exponent. The sign of a negative zero would stay.
        Micros::parse(&format!("{}", amount.abs()), round)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let fraction = format!("{fraction:06}");
        let fraction = fraction.trim_end_matches('0');
        write!(f, "{whole}.{fraction:0<2}")
    }
}
