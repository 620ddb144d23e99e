//! `Number::toString`: the shortest decimal, and what V8 prints in other radices where the standard is free.

/// Room for the longest decimal spelling; reuse it to print without allocating.
pub type Buffer = ryu_js::Buffer;

/// The decimal spelling of `value`, written into `buffer`.
///
/// ```
/// use outrigger_vm::text::number::print;
/// let mut buffer = print::Buffer::new();
/// assert_eq!(print::decimal(1e21, &mut buffer), "1e+21");
/// assert_eq!(print::decimal(-0.0, &mut buffer), "0");
/// ```
pub fn decimal(value: f64, buffer: &mut Buffer) -> &str {
    buffer.format(value)
}

/// The decimal spelling of an integer, without going through a double.
pub fn integer(value: i32, buffer: &mut [u8; 11]) -> &str {
    let mut left = value.unsigned_abs();
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    // Only ASCII digits and a sign were written, so this is valid UTF-8.
    std::str::from_utf8(&buffer[at..]).unwrap_or_default()
}

/// A radix between 2 and 36.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radix(u8);

impl Radix {
    /// Base ten.
    pub const TEN: Radix = Radix(10);

    /// `None` when `radix` is not between 2 and 36.
    pub fn new(radix: u32) -> Option<Radix> {
        u8::try_from(radix).ok().filter(|radix| (2..=36).contains(radix)).map(Radix)
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        u32::from(self.0)
    }
}

/// The spelling of `value` in `radix`, with exactly the fraction digits that V8 prints.
pub fn radix(value: f64, radix: Radix) -> String {
    if radix == Radix::TEN || !value.is_finite() {
        return Buffer::new().format(value).to_owned();
    }
    if value.trunc() == value && value.abs() < TWO_POW_53 {
        return small_integer(value, radix);
    }
    let base = f64::from(radix.0);
    let magnitude = value.abs();
    let mut integer = magnitude.floor();
    let fraction = fraction_digits(magnitude, radix);
    if fraction.carry == Carry::IntoInteger {
        integer += 1.0;
    }

    let mut reversed = Vec::with_capacity(64);
    // Digits that a double of this size cannot hold are printed as zeros.
    while integer / base >= TWO_POW_53 {
        integer /= base;
        reversed.push(b'0');
    }
    loop {
        let remainder = integer % base;
        reversed.push(digit_char(remainder as u8));
        integer = (integer - remainder) / base;
        if integer <= 0.0 {
            break;
        }
    }
    if value < 0.0 {
        reversed.push(b'-');
    }

    let mut out: String = reversed.iter().rev().map(|&byte| char::from(byte)).collect();
    if !fraction.digits.is_empty() {
        out.push('.');
        out.extend(fraction.digits.iter().map(|&digit| char::from(digit_char(digit))));
    }
    out
}

/// An integer that a double holds exactly.
fn small_integer(value: f64, radix: Radix) -> String {
    let base = u64::from(radix.0);
    let mut rest = value.abs() as u64;
    // Fifty-three binary digits and a sign.
    let mut text = [0u8; 54];
    let mut at = text.len();
    while at > 1 {
        at -= 1;
        text[at] = digit_char((rest % base) as u8);
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    if value < 0.0 {
        at -= 1;
        text[at] = b'-';
    }
    text[at..].iter().map(|&byte| char::from(byte)).collect()
}

const TWO_POW_53: f64 = 9_007_199_254_740_992.0;

struct Fraction {
    digits: Vec<u8>,
    carry: Carry,
}

#[derive(PartialEq)]
enum Carry {
    None,
    IntoInteger,
}

/// Digits until the rest is smaller than half the distance to the next double, as V8 does.
fn fraction_digits(magnitude: f64, radix: Radix) -> Fraction {
    let base = f64::from(radix.0);
    let mut fraction = magnitude - magnitude.floor();
    let mut delta = (0.5 * (magnitude.next_up() - magnitude)).max(f64::from_bits(1));
    let mut digits = Vec::new();
    if fraction < delta {
        return Fraction { digits, carry: Carry::None };
    }
    loop {
        fraction *= base;
        delta *= base;
        let digit = fraction as u8;
        digits.push(digit);
        fraction -= f64::from(digit);
        let rounds_up = fraction > 0.5 || (fraction == 0.5 && digit & 1 == 1);
        if rounds_up && fraction + delta > 1.0 {
            let carry = carry_back(&mut digits, radix);
            return Fraction { digits, carry };
        }
        if fraction < delta {
            return Fraction { digits, carry: Carry::None };
        }
    }
}

/// Adds one to the last digit; digits that overflow are dropped, for they would be trailing zeros.
fn carry_back(digits: &mut Vec<u8>, radix: Radix) -> Carry {
    while let Some(digit) = digits.pop() {
        if digit + 1 < radix.0 {
            digits.push(digit + 1);
            return Carry::None;
        }
    }
    Carry::IntoInteger
}

pub(crate) fn digit_char(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'a' + (digit - 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_print_at_both_ends_of_their_range() {
        let mut buffer = [0; 11];
        for (value, expected) in [(0, "0"), (7, "7"), (i32::MAX, "2147483647"), (i32::MIN, "-2147483648")] {
            assert_eq!(integer(value, &mut buffer), expected);
        }
    }

    #[test]
    fn a_radix_outside_2_to_36_does_not_exist() {
        assert_eq!([1, 2, 36, 37].map(|radix| Radix::new(radix).is_some()), [false, true, true, false]);
    }

    #[test]
    fn fractions_print_in_other_radices() {
        let print = |value, base| Radix::new(base).map(|base| radix(value, base)).unwrap_or_default();
        assert_eq!(print(0.5, 2), "0.1");
        assert_eq!(print(-255.5, 16), "-ff.8");
        assert_eq!(print(f64::NAN, 16), "NaN");
    }
}
