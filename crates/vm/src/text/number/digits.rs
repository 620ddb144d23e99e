//! `toFixed`, `toExponential` and `toPrecision`: exact digits, and halves always away from zero.
//!
//! Rust prints exact digits too but sends halves to even, so the only work here is to notice an exact half. A
//! double is m·2^e with m odd; cut after k decimals it is exactly half-way iff e = -(k+1), for then and only then
//! is m·2^e·10^k an odd multiple of one half. Left of the point the same question is answered by divisibility.

use std::fmt::Write as _;

use thiserror::Error;

use super::print::Buffer;

/// A count of digits that the standard refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DigitsError {
    /// `toFixed` takes 0 to 100.
    #[error("toFixed() digits argument must be between 0 and 100")]
    Fixed,
    /// `toExponential` takes 0 to 100.
    #[error("toExponential() argument must be between 0 and 100")]
    Exponential,
    /// `toPrecision` takes 1 to 100.
    #[error("toPrecision() argument must be between 1 and 100")]
    Precision,
}

/// `Number.prototype.toFixed` after its conversions.
///
/// ```
/// use outrigger_vm::text::number::digits::to_fixed;
/// assert_eq!(to_fixed(2.5, 0.0), Ok("3".to_owned()));
/// assert_eq!(to_fixed(1.005, 2.0), Ok("1.00".to_owned()));
/// ```
pub fn to_fixed(value: f64, digits: f64) -> Result<String, DigitsError> {
    let places = count(digits, 0.0).ok_or(DigitsError::Fixed)?;
    if !value.is_finite() || value.abs() >= 1e21 {
        return Ok(Buffer::new().format(value).to_owned());
    }
    let mut out = fixed(value.abs(), places);
    if value < 0.0 {
        // The sign comes from the value, not from what was left of it: (-0.1).toFixed(0) is "-0".
        out.insert(0, '-');
    }
    Ok(out)
}

/// `Number.prototype.toExponential` after its conversions; `None` asks for as many digits as needed.
pub fn to_exponential(value: f64, digits: Option<f64>) -> Result<String, DigitsError> {
    if !value.is_finite() {
        return Ok(Buffer::new().format(value).to_owned());
    }
    let places = match digits {
        Some(digits) => Some(count(digits, 0.0).ok_or(DigitsError::Exponential)?),
        None => None,
    };
    let scientific = match places {
        Some(places) => Scientific::rounded(value.abs(), places),
        None => Scientific::shortest(value.abs()),
    };
    let mut out = String::with_capacity(scientific.digits.len() + 8);
    if value < 0.0 {
        out.push('-');
    }
    scientific.write_exponential(&mut out);
    Ok(out)
}

/// `Number.prototype.toPrecision` after its conversions, with its argument present.
pub fn to_precision(value: f64, precision: f64) -> Result<String, DigitsError> {
    if !value.is_finite() {
        return Ok(Buffer::new().format(value).to_owned());
    }
    let precision = count(precision, 1.0).ok_or(DigitsError::Precision)?;
    let scientific = Scientific::rounded(value.abs(), precision - 1);
    let mut out = String::with_capacity(precision + 8);
    if value < 0.0 {
        out.push('-');
    }
    let exponent = scientific.exponent;
    if exponent < -6 || exponent >= precision as i32 {
        scientific.write_exponential(&mut out);
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-(exponent + 1)) as usize));
        out.push_str(&scientific.digits);
    } else {
        // 0 <= exponent < precision = number of digits, so the cut is inside.
        let (whole, fraction) = scientific.digits.split_at(exponent as usize + 1);
        out.push_str(whole);
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
    }
    Ok(out)
}

/// `value` (finite, not negative) with exactly `places` decimals, halves up.
pub(crate) fn fixed(value: f64, places: usize) -> String {
    if is_half_after(value, places as i32) {
        let mut exact = format!("{value:.*}", places + 1);
        exact.pop();
        if exact.ends_with('.') {
            exact.pop();
        }
        return increment(exact);
    }
    format!("{value:.places$}")
}

/// One digit, then more digits, times a power of ten.
pub(crate) struct Scientific {
    /// At least one digit, without a point.
    pub(crate) digits: String,
    /// The power of ten of the first digit.
    pub(crate) exponent: i32,
}

impl Scientific {
    /// `value` (finite, not negative) with `places` digits after the first, halves up.
    pub(crate) fn rounded(value: f64, places: usize) -> Scientific {
        if value == 0.0 {
            return Scientific { digits: "0".repeat(places + 1), exponent: 0 };
        }
        // One digit more than asked: its exponent is the value's own unless rounding carried to a power of ten,
        // and a value so close below a power of ten is no half.
        let longer = Scientific::parse(&format!("{value:.*e}", places + 1));
        let after = places as i32 - longer.exponent;
        if !is_half_after(value, after) {
            return Scientific::parse(&format!("{value:.places$e}"));
        }
        let mut digits = longer.digits;
        digits.pop();
        let rounded = increment(digits);
        match rounded.len() > places + 1 {
            true => Scientific { digits: rounded[..=places].to_owned(), exponent: longer.exponent + 1 },
            false => Scientific { digits: rounded, exponent: longer.exponent },
        }
    }

    /// The fewest digits that read back as `value` (finite, not negative).
    pub(crate) fn shortest(value: f64) -> Scientific {
        Scientific::parse(&format!("{value:e}"))
    }

    /// Reads what Rust's `{:e}` prints.
    fn parse(text: &str) -> Scientific {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        Scientific { digits, exponent: exponent.parse().unwrap_or(0) }
    }

    fn write_exponential(&self, out: &mut String) {
        let (first, rest) = self.digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        out.push('e');
        out.push(if self.exponent < 0 { '-' } else { '+' });
        // Writing to a String does not fail.
        let _ = write!(out, "{}", self.exponent.unsigned_abs());
    }
}

fn count(digits: f64, least: f64) -> Option<usize> {
    (least..=100.0).contains(&digits).then_some(digits as usize)
}

/// Whether `value`, cut after `places` decimals (negative: left of the point), leaves exactly one half.
pub(crate) fn is_half_after(value: f64, places: i32) -> bool {
    let bits = value.to_bits();
    let biased = ((bits >> 52) & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = match biased {
        0 => (fraction, -1074),
        _ => (fraction | (1 << 52), biased - 1075),
    };
    if mantissa == 0 {
        return false;
    }
    let zeros = mantissa.trailing_zeros();
    let (odd, exponent) = (mantissa >> zeros, exponent + zeros as i32);
    if places >= 0 {
        return exponent == -(places + 1);
    }
    // A mantissa below 2^53 has at most 22 factors of five.
    let left = places.unsigned_abs();
    exponent == left as i32 - 1 && left <= 22 && odd % 5u64.pow(left) == 0
}

/// Adds one in the last place of a decimal number that may have a point.
fn increment(number: String) -> String {
    let mut bytes = number.into_bytes();
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        match bytes[at] {
            b'.' => {}
            b'9' => bytes[at] = b'0',
            _ => {
                bytes[at] += 1;
                return ascii(bytes);
            }
        }
    }
    bytes.insert(0, b'1');
    ascii(bytes)
}

fn ascii(bytes: Vec<u8>) -> String {
    bytes.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_halves_go_away_from_zero() {
        let cases = [
            (0.5, 0.0, "1"),
            (1.5, 0.0, "2"),
            (2.5, 0.0, "3"),
            (0.125, 2.0, "0.13"),
            (9.5, 0.0, "10"),
            (-2.5, 0.0, "-3"),
        ];
        for (value, places, expected) in cases {
            assert_eq!(to_fixed(value, places).as_deref(), Ok(expected), "{value} {places}");
        }
        assert_eq!(to_precision(25.0, 1.0).as_deref(), Ok("3e+1"));
        assert_eq!(to_precision(9.5, 1.0).as_deref(), Ok("1e+1"));
        assert_eq!(to_exponential(12345.0, Some(3.0)).as_deref(), Ok("1.235e+4"));
    }

    #[test]
    fn digit_counts_are_refused_one_past_their_limits() {
        assert_eq!(to_fixed(1.0, 100.0).map(|text| text.len()), Ok(102));
        assert_eq!(to_fixed(1.0, 101.0), Err(DigitsError::Fixed));
        assert_eq!(to_fixed(1.0, -1.0), Err(DigitsError::Fixed));
        assert_eq!(to_exponential(1.0, Some(101.0)), Err(DigitsError::Exponential));
        assert_eq!(to_precision(1.0, 0.0), Err(DigitsError::Precision));
        assert_eq!(to_precision(1.0, 101.0), Err(DigitsError::Precision));
        assert_eq!(to_precision(f64::NAN, 1000.0).as_deref(), Ok("NaN"));
    }
}
