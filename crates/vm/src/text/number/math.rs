//! The arithmetic that Rust spells differently from the language: `**`, rounding, extremes, and a few of `Math`.
//!
//! Functions that are not here (`sin`, `exp`, `cbrt`, …) are Rust's own; they call the platform's mathematics
//! library, so their last bit may differ between platforms. `%` on doubles is Rust's `%`.

/// `Number::exponentiate`.
pub fn pow(base: f64, exponent: f64) -> f64 {
    // IEEE says 1 to the power of anything is 1; the language says NaN for infinities and for NaN.
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        return f64::NAN;
    }
    base.powf(exponent)
}

/// `Number::remainder`, with a fast path for integers.
pub fn remainder(dividend: f64, divisor: f64) -> f64 {
    let (left, right) = (dividend as i64, divisor as i64);
    if left > 0 && right > 0 && left as f64 == dividend && right as f64 == divisor && left < 1 << 53 {
        return (left % right) as f64;
    }
    dividend % divisor
}

/// `Math.round`: halves towards positive infinity, and -0 for what rounds to zero from below.
///
/// ```
/// assert_eq!(outrigger_vm::text::number::math::round(-2.5), -2.0);
/// ```
pub fn round(value: f64) -> f64 {
    let floor = value.floor();
    let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
    if rounded == 0.0 { rounded.copysign(value) } else { rounded }
}

/// `Math.max` of two: NaN wins, and 0 is above -0.
pub fn max(left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        return f64::NAN;
    }
    if left > right || (left == right && left.is_sign_positive()) { left } else { right }
}

/// `Math.min` of two: NaN wins, and -0 is below 0.
pub fn min(left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        return f64::NAN;
    }
    if left < right || (left == right && left.is_sign_negative()) { left } else { right }
}

/// `Math.sign`: zeros and NaN are themselves.
pub fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        value
    }
}

/// `Math.fround`.
pub fn fround(value: f64) -> f64 {
    f64::from(value as f32)
}

/// `Math.imul` after `ToInt32`.
pub fn imul(left: i32, right: i32) -> i32 {
    left.wrapping_mul(right)
}

/// `Math.clz32` after `ToUint32`.
pub fn clz32(value: u32) -> u32 {
    value.leading_zeros()
}

/// `Math.hypot` after its conversions: scaled and compensated like V8, so that squares do not overflow.
pub fn hypot(values: &[f64]) -> f64 {
    if values.iter().any(|value| value.is_infinite()) {
        return f64::INFINITY;
    }
    let largest = values.iter().fold(0.0, |largest, value| max(largest, value.abs()));
    if largest == 0.0 || largest.is_nan() {
        return largest;
    }
    let (mut sum, mut compensation) = (0.0, 0.0);
    for value in values {
        let scaled = value.abs() / largest;
        let summand = scaled * scaled - compensation;
        let preliminary = sum + summand;
        compensation = (preliminary - sum) - summand;
        sum = preliminary;
    }
    sum.sqrt() * largest
}

/// `Math.asinh`, keeping the sign of zero and the precision of small values (fdlibm's ranges).
pub fn asinh(value: f64) -> f64 {
    let magnitude = value.abs();
    if !value.is_finite() || magnitude < 3.725_290_298_461_914e-9 {
        return value;
    }
    let result = if magnitude > 268_435_456.0 {
        magnitude.ln() + std::f64::consts::LN_2
    } else if magnitude > 2.0 {
        (2.0 * magnitude + 1.0 / ((magnitude * magnitude + 1.0).sqrt() + magnitude)).ln()
    } else {
        let square = magnitude * magnitude;
        (magnitude + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(value)
}

/// `Math.acosh` (fdlibm's ranges).
pub fn acosh(value: f64) -> f64 {
    if value < 1.0 || value.is_nan() {
        f64::NAN
    } else if value > 268_435_456.0 {
        value.ln() + std::f64::consts::LN_2
    } else if value == 1.0 {
        0.0
    } else if value > 2.0 {
        (2.0 * value - 1.0 / (value + (value * value - 1.0).sqrt())).ln()
    } else {
        let above = value - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

/// `Math.atanh` (fdlibm's ranges).
pub fn atanh(value: f64) -> f64 {
    let magnitude = value.abs();
    if magnitude > 1.0 || value.is_nan() {
        return f64::NAN;
    }
    if magnitude < 3.725_290_298_461_914e-9 {
        return value;
    }
    let result = if magnitude < 0.5 {
        let doubled = magnitude + magnitude;
        0.5 * (doubled + doubled * magnitude / (1.0 - magnitude)).ln_1p()
    } else {
        0.5 * ((magnitude + magnitude) / (1.0 - magnitude)).ln_1p()
    };
    result.copysign(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: f64, right: f64) -> bool {
        left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
    }

    #[test]
    fn zeros_keep_the_sign_that_the_standard_gives_them() {
        let cases = [
            (round(-0.2), -0.0),
            (round(-0.5), -0.0),
            (round(-0.0), -0.0),
            (round(0.499_999_999_999_999_94), 0.0),
            (round(-1.5), -1.0),
            (round(4503599627370495.5), 4503599627370496.0),
            (round(9007199254740991.0), 9007199254740991.0),
            (round(f64::NEG_INFINITY), f64::NEG_INFINITY),
            (max(-0.0, 0.0), 0.0),
            (max(0.0, -0.0), 0.0),
            (min(0.0, -0.0), -0.0),
            (min(-0.0, 0.0), -0.0),
            (max(f64::NAN, 1.0), f64::NAN),
            (sign(-0.0), -0.0),
            (remainder(-4.0, 2.0), -0.0),
            (remainder(5.5, 2.0), 1.5),
            (remainder(7.0, 4.0), 3.0),
            (remainder(1.0, f64::INFINITY), 1.0),
            (remainder(1.0, 0.0), f64::NAN),
            (asinh(-0.0), -0.0),
            (atanh(1.0), f64::INFINITY),
        ];
        for (index, (actual, expected)) in cases.into_iter().enumerate() {
            assert!(same(actual, expected), "case {index}: {actual} is not {expected}");
        }
    }

    #[test]
    fn one_to_an_infinite_power_is_not_a_number() {
        assert!(pow(1.0, f64::INFINITY).is_nan());
        assert!(pow(-1.0, f64::NEG_INFINITY).is_nan());
        assert!(pow(1.0, f64::NAN).is_nan());
        assert_eq!(pow(f64::NAN, 0.0), 1.0);
        assert_eq!(pow(-2.0, 3.0), -8.0);
    }

    #[test]
    fn hypot_neither_overflows_nor_loses_infinities() {
        assert_eq!(hypot(&[]), 0.0);
        // The last digit is V8's.
        assert_eq!(hypot(&[3e200, 4e200]), 4.9999999999999995e200);
        assert_eq!(hypot(&[f64::NAN, f64::NEG_INFINITY]), f64::INFINITY);
        assert!(hypot(&[f64::NAN, 1.0]).is_nan());
    }
}
