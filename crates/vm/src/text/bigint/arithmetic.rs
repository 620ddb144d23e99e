//! Operators on BigInts: the size of the result is bounded before anything is computed.

use num_bigint::{BigInt, Sign};
use thiserror::Error;

use super::{MAX_BITS, limbs};

/// What an operator refuses. Each is a guest's RangeError.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BigIntError {
    /// The result could be longer than [`MAX_BITS`].
    #[error("Maximum BigInt size exceeded")]
    TooBig,
    /// `**` with a negative exponent.
    #[error("Exponent must be non-negative")]
    NegativeExponent,
    /// `/` or `%` by zero.
    #[error("Division by zero")]
    DivisionByZero,
}

/// `BigInt::add`.
pub fn add(left: &BigInt, right: &BigInt) -> Result<BigInt, BigIntError> {
    checked(left + right)
}

/// `BigInt::subtract`.
pub fn subtract(left: &BigInt, right: &BigInt) -> Result<BigInt, BigIntError> {
    checked(left - right)
}

/// `BigInt::multiply`. Ask [`product_cost`] first.
pub fn multiply(left: &BigInt, right: &BigInt) -> Result<BigInt, BigIntError> {
    // A product is at most one bit shorter than the sum of the lengths.
    if left.bits() + right.bits() > MAX_BITS + 1 {
        return Err(BigIntError::TooBig);
    }
    checked(left * right)
}

/// `BigInt::divide`: towards zero. Ask [`product_cost`] first.
pub fn divide(left: &BigInt, right: &BigInt) -> Result<BigInt, BigIntError> {
    if right.sign() == Sign::NoSign {
        return Err(BigIntError::DivisionByZero);
    }
    Ok(left / right)
}

/// `BigInt::remainder`: the sign of the dividend. Ask [`product_cost`] first.
pub fn remainder(left: &BigInt, right: &BigInt) -> Result<BigInt, BigIntError> {
    if right.sign() == Sign::NoSign {
        return Err(BigIntError::DivisionByZero);
    }
    Ok(left % right)
}

/// `BigInt::exponentiate`. Ask [`pow_cost`] first.
pub fn pow(base: &BigInt, exponent: &BigInt) -> Result<BigInt, BigIntError> {
    match exponent.sign() {
        Sign::Minus => return Err(BigIntError::NegativeExponent),
        Sign::NoSign => return Ok(BigInt::from(1)),
        Sign::Plus => {}
    }
    if base.bits() <= 1 {
        // 0, 1 and -1 stay small whatever the exponent is.
        return Ok(if base.sign() == Sign::Minus && !exponent.bit(0) { -base } else { base.clone() });
    }
    let exponent = u32::try_from(exponent).map_err(|_| BigIntError::TooBig)?;
    if (base.bits() - 1) * u64::from(exponent) >= MAX_BITS {
        return Err(BigIntError::TooBig);
    }
    checked(base.pow(exponent))
}

/// `BigInt::leftShift`; a negative count shifts right, towards negative infinity.
pub fn shift_left(value: &BigInt, count: &BigInt) -> Result<BigInt, BigIntError> {
    shift(value, count.sign(), count)
}

/// `BigInt::signedRightShift`; a negative count shifts left.
pub fn shift_right(value: &BigInt, count: &BigInt) -> Result<BigInt, BigIntError> {
    shift(value, -count.sign(), count)
}

/// `BigInt.asIntN`: the value modulo 2^bits, in two's complement.
pub fn as_int_n(bits: u64, value: &BigInt) -> BigInt {
    if bits == 0 {
        return BigInt::ZERO;
    }
    if value.bits() < bits {
        return value.clone();
    }
    // From here on `bits` is at most the length of the value, which exists.
    let modulus = BigInt::from(1) << bits;
    let low = value & (&modulus - 1u32);
    if low.bit(bits - 1) { low - modulus } else { low }
}

/// `BigInt.asUintN`: the value modulo 2^bits. Ask [`as_uint_n_cost`] first.
pub fn as_uint_n(bits: u64, value: &BigInt) -> Result<BigInt, BigIntError> {
    if value.sign() != Sign::Minus && value.bits() <= bits {
        return Ok(value.clone());
    }
    // Only a negative value can become longer than it was.
    if value.sign() == Sign::Minus && bits > MAX_BITS {
        return Err(BigIntError::TooBig);
    }
    Ok(value & ((BigInt::from(1) << bits) - 1u32))
}

/// The work of a product or a quotient.
pub fn product_cost(left: &BigInt, right: &BigInt) -> u64 {
    let (left, right) = (limbs(left), limbs(right));
    1 + left + right + left.saturating_mul(right) / 8
}

/// The work of a power; zero when it will be refused or is trivial.
pub fn pow_cost(base: &BigInt, exponent: &BigInt) -> u64 {
    match u64::try_from(exponent) {
        Ok(exponent) if base.bits() > 1 && base.bits().saturating_mul(exponent) <= 2 * MAX_BITS => {
            // The squarings are a geometric series whose last member has half of the result on either side.
            let limbs = base.bits() * exponent / 64;
            1 + limbs + limbs.saturating_mul(limbs) / 24
        }
        Ok(_) | Err(_) => 0,
    }
}

/// The bits of the result of a left shift, to be charged before it.
pub fn shift_left_bits(value: &BigInt, count: &BigInt) -> u64 {
    match (value.sign(), u64::try_from(count)) {
        (Sign::NoSign, _) => 0,
        (_, Ok(count)) => value.bits().saturating_add(count).min(MAX_BITS),
        (_, Err(_)) => value.bits(),
    }
}

/// The work of [`as_uint_n`].
pub fn as_uint_n_cost(bits: u64, value: &BigInt) -> u64 {
    1 + bits.min(MAX_BITS) / 64 + limbs(value)
}

fn shift(value: &BigInt, direction: Sign, count: &BigInt) -> Result<BigInt, BigIntError> {
    if value.sign() == Sign::NoSign {
        return Ok(BigInt::ZERO);
    }
    let places = u64::try_from(count.magnitude()).ok();
    match direction {
        Sign::NoSign => Ok(value.clone()),
        Sign::Plus => match places {
            Some(places) if places.saturating_add(value.bits()) <= MAX_BITS => Ok(value << places),
            Some(_) | None => Err(BigIntError::TooBig),
        },
        Sign::Minus => match places {
            Some(places) if places <= value.bits() => Ok(value >> places),
            // Everything is shifted out; what is left is the sign.
            Some(_) | None if value.sign() == Sign::Minus => Ok(BigInt::from(-1)),
            Some(_) | None => Ok(BigInt::ZERO),
        },
    }
}

fn checked(value: BigInt) -> Result<BigInt, BigIntError> {
    if value.bits() > MAX_BITS { Err(BigIntError::TooBig) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_or_shift_past_the_limit_is_refused_before_it_is_computed() {
        let two = BigInt::from(2);
        let limit = BigInt::from(MAX_BITS);
        assert_eq!(pow(&two, &limit), Err(BigIntError::TooBig));
        assert_eq!(pow(&two, &BigInt::from(1u64 << 60)), Err(BigIntError::TooBig));
        assert_eq!(shift_left(&BigInt::from(1), &limit), Err(BigIntError::TooBig));
        assert_eq!(shift_left(&BigInt::from(1), &(limit - 1)).map(|value| value.bits()), Ok(MAX_BITS));
        assert_eq!(shift_left(&BigInt::ZERO, &BigInt::from(1u128 << 100)), Ok(BigInt::ZERO));
    }

    #[test]
    fn powers_of_one_and_zero_take_any_exponent() {
        let huge = BigInt::from(1u128 << 100);
        assert_eq!(pow(&BigInt::from(-1), &huge), Ok(BigInt::from(1)));
        assert_eq!(pow(&BigInt::from(-1), &(&huge + 1)), Ok(BigInt::from(-1)));
        assert_eq!(pow(&BigInt::ZERO, &huge), Ok(BigInt::ZERO));
        assert_eq!(pow(&BigInt::ZERO, &BigInt::ZERO), Ok(BigInt::from(1)));
        assert_eq!(pow(&BigInt::from(2), &BigInt::from(-1)), Err(BigIntError::NegativeExponent));
    }

    #[test]
    fn a_negative_value_cannot_be_unsigned_past_the_limit() {
        assert_eq!(as_uint_n(MAX_BITS + 1, &BigInt::from(-1)), Err(BigIntError::TooBig));
        assert_eq!(as_uint_n(MAX_BITS, &BigInt::from(-1)).map(|value| value.bits()), Ok(MAX_BITS));
        assert_eq!(as_uint_n(u64::MAX, &BigInt::from(7)), Ok(BigInt::from(7)));
        assert_eq!(as_int_n(u64::MAX, &BigInt::from(-7)), BigInt::from(-7));
    }

    #[test]
    fn division_by_zero_is_an_error() {
        assert_eq!(divide(&BigInt::from(1), &BigInt::ZERO), Err(BigIntError::DivisionByZero));
        assert_eq!(remainder(&BigInt::from(1), &BigInt::ZERO), Err(BigIntError::DivisionByZero));
    }
}
