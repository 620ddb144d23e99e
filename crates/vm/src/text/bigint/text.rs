//! BigInt and text: `StringToBigInt`, literals and `BigInt::toString`.

use num_bigint::{BigInt, BigUint, Sign};

use super::super::number::print::Radix;
use super::super::number::read::digit;
use super::super::{Str, unicode};

/// `StringToBigInt`: `None` when the text is no integer. Ask [`read_cost`] first.
///
/// ```
/// use outrigger_vm::text::{Str, bigint};
/// assert_eq!(bigint::read(Str::Latin1(b" -12 ")), Some(bigint::BigInt::from(-12)));
/// assert_eq!(bigint::read(Str::Latin1(b"-0x1")), None);
/// ```
pub fn read(text: Str<'_>) -> Option<BigInt> {
    let text = unicode::trim(text);
    let is = |index: usize, bytes: &[u8]| {
        text.get(index).is_some_and(|unit| bytes.iter().any(|&byte| u16::from(byte) == unit))
    };
    if text.is_empty() {
        return Some(BigInt::ZERO);
    }
    if is(0, b"0") && text.len() > 1 && !is(1, b"0123456789") {
        let radix = match () {
            () if is(1, b"xX") => Radix::new(16)?,
            () if is(1, b"oO") => Radix::new(8)?,
            () if is(1, b"bB") => Radix::new(2)?,
            () => return None,
        };
        return magnitude(text.slice(2, text.len()), radix).map(BigInt::from);
    }
    let sign = if is(0, b"-") { Sign::Minus } else { Sign::Plus };
    let start = usize::from(is(0, b"+-"));
    let magnitude = magnitude(text.slice(start, text.len()), Radix::TEN)?;
    Some(BigInt::from_biguint(sign, magnitude))
}

/// The value of a BigInt literal that the lexer has accepted, with or without its `n`; separators may be in it.
pub fn read_literal(source: &str) -> Option<BigInt> {
    let digits: Vec<u8> = source.bytes().filter(|&byte| byte != b'_').collect();
    read(Str::Latin1(digits.strip_suffix(b"n").unwrap_or(&digits)))
}

/// The work of reading `len` digits.
pub fn read_cost(len: usize) -> u64 {
    quadratic(len as u64 / 19)
}

/// `BigInt::toString`. Ask [`print_cost`] first.
pub fn print(value: &BigInt, radix: Radix) -> String {
    value.to_str_radix(radix.get())
}

/// The work of printing a value.
pub fn print_cost(value: &BigInt) -> u64 {
    quadratic(super::limbs(value))
}

fn quadratic(limbs: u64) -> u64 {
    1 + 20 * limbs + limbs.saturating_mul(limbs) / 8
}

/// `None` when there is no digit or something that is not a digit.
fn magnitude(digits: Str<'_>, radix: Radix) -> Option<BigUint> {
    if digits.is_empty() {
        return None;
    }
    let values: Option<Vec<u8>> =
        digits.units().map(|unit| digit(unit, radix).map(|digit| digit as u8)).collect();
    BigUint::from_radix_be(&values?, radix.get())
}
