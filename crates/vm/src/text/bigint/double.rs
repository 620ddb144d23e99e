//! BigInts and doubles: exact conversion, correct rounding, exact comparison.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// `NumberToBigInt`: `None` when the number has a fraction or is not finite.
///
/// ```
/// use outrigger_vm::text::bigint::{BigInt, double};
/// assert_eq!(double::from_f64(-9007199254740992.0), Some(BigInt::from(-9007199254740992i64)));
/// assert_eq!(double::from_f64(0.5), None);
/// ```
pub fn from_f64(value: f64) -> Option<BigInt> {
    if !value.is_finite() || value.trunc() != value {
        return None;
    }
    Some(truncated(value))
}

/// `Number(value)`: rounded half to even, infinite when it is too large.
pub fn to_f64(value: &BigInt) -> f64 {
    let mut limbs = value.iter_u64_digits().rev();
    let bits = value.bits();
    let Some(top) = limbs.next() else { return 0.0 };
    // The highest 64 bits, with everything below folded into the lowest of them.
    let next = limbs.next().unwrap_or(0);
    let shift = top.leading_zeros();
    let (mut high, mut rest) = (top, next);
    if shift > 0 {
        high = (top << shift) | (next >> (64 - shift));
        rest = next << shift;
    }
    let sticky = rest != 0 || limbs.any(|limb| limb != 0);
    let magnitude = if bits > 1024 {
        f64::INFINITY
    } else {
        // `high` stands for a number of exactly `bits` bits, so the exponent is between -63 and 960.
        (high | u64::from(sticky)) as f64 * 2f64.powi(bits as i32 - 64)
    };
    if value.sign() == Sign::Minus { -magnitude } else { magnitude }
}

/// Compares exactly; `None` when the number is NaN.
pub fn compare(value: &BigInt, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        return Some(if number > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    // A BigInt much longer than any double is decided by its sign.
    if value.bits() > 1024 {
        return Some(if value.sign() == Sign::Minus { Ordering::Less } else { Ordering::Greater });
    }
    let whole = truncated(number);
    let fraction = number - number.trunc();
    Some(value.cmp(&whole).then(match fraction.partial_cmp(&0.0) {
        Some(Ordering::Greater) => Ordering::Less,
        Some(Ordering::Less) => Ordering::Greater,
        Some(Ordering::Equal) | None => Ordering::Equal,
    }))
}

/// The integral part of a finite number.
fn truncated(value: f64) -> BigInt {
    let bits = value.abs().trunc().to_bits();
    let biased = (bits >> 52) as i32;
    if biased == 0 {
        return BigInt::ZERO;
    }
    let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let exponent = biased - 1075;
    let magnitude = if exponent >= 0 { mantissa << exponent } else { mantissa >> -exponent };
    if value < 0.0 { -magnitude } else { magnitude }
}
