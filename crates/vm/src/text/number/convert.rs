//! `ToInt32` and its family, and `ToIntegerOrInfinity`.

/// `ToInt32`: the value modulo 2^32, as a signed number.
///
/// ```
/// assert_eq!(outrigger_vm::text::number::convert::to_int32(4294967297.5), 1);
/// ```
pub fn to_int32(value: f64) -> i32 {
    let small = value as i32;
    if f64::from(small) == value {
        return small;
    }
    to_uint64_wrapping(value) as u32 as i32
}

/// `ToUint32`.
pub fn to_uint32(value: f64) -> u32 {
    to_int32(value) as u32
}

/// `ToInt16`.
pub fn to_int16(value: f64) -> i16 {
    to_int32(value) as i16
}

/// `ToUint16`.
pub fn to_uint16(value: f64) -> u16 {
    to_int32(value) as u16
}

/// `ToInt8`.
pub fn to_int8(value: f64) -> i8 {
    to_int32(value) as i8
}

/// `ToUint8`.
pub fn to_uint8(value: f64) -> u8 {
    to_int32(value) as u8
}

/// `ToUint8Clamp`: halves go to even.
pub fn to_uint8_clamp(value: f64) -> u8 {
    // `as` clamps, and sends NaN to zero.
    value.round_ties_even() as u8
}

/// `ToIntegerOrInfinity`: NaN and -0 become 0.
pub fn to_integer_or_infinity(value: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    // Adding zero turns -0 into 0 and changes nothing else.
    value.trunc() + 0.0
}

/// `ToLength`: between 0 and 2^53 - 1.
pub fn to_length(value: f64) -> u64 {
    // `as` clamps below at zero and sends NaN to zero.
    (value as u64).min((1 << 53) - 1)
}

/// `ToIndex` after `ToIntegerOrInfinity`: `None` when the value is negative or above 2^53 - 1.
pub fn to_index(value: f64) -> Option<u64> {
    let integer = to_integer_or_infinity(value);
    (0.0..=9_007_199_254_740_991.0).contains(&integer).then_some(integer as u64)
}

/// The value as an `i32` when it is one exactly, and not -0.
pub fn exact_int32(value: f64) -> Option<i32> {
    let small = value as i32;
    (f64::from(small) == value && (small != 0 || value.is_sign_positive())).then_some(small)
}

/// The integral part modulo 2^64.
fn to_uint64_wrapping(value: f64) -> u64 {
    let bits = value.to_bits();
    let biased = ((bits >> 52) & 0x7FF) as i32;
    if biased == 0x7FF {
        return 0;
    }
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let shift = biased - 1075;
    let magnitude = match shift {
        0..=63 => mantissa << shift,
        -52..=-1 => mantissa >> -shift,
        _ => 0,
    };
    if value < 0.0 { magnitude.wrapping_neg() } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_int32_wraps_at_every_power_of_two() {
        let cases = [
            (2147483647.0, i32::MAX),
            (2147483648.0, i32::MIN),
            (-2147483649.0, i32::MAX),
            (4294967295.0, -1),
            (-1.9, -1),
            (1e300, 0),
            (f64::NAN, 0),
            (f64::NEG_INFINITY, 0),
            (9007199254740993.0, 0),
            (-9007199254740994.0, -2),
            (36893488147419103232.0, 0),
            (0.9999, 0),
        ];
        for (value, expected) in cases {
            assert_eq!(to_int32(value), expected, "{value}");
        }
        assert_eq!(
            (to_uint8(-1.0), to_int8(255.0), to_uint16(65537.0), to_int16(32768.0)),
            (255, -1, 1, i16::MIN)
        );
    }

    #[test]
    fn clamping_sends_halves_to_even() {
        assert_eq!(
            [0.5, 1.5, 2.5, -1.0, 255.5, 300.0, f64::NAN].map(to_uint8_clamp),
            [0, 2, 2, 0, 255, 255, 0]
        );
    }

    #[test]
    fn lengths_and_indices_stop_at_their_limits() {
        assert_eq!(to_length(f64::INFINITY), 9007199254740991);
        assert_eq!(to_length(-5.0), 0);
        assert_eq!(to_index(9007199254740991.0), Some(9007199254740991));
        assert_eq!(to_index(9007199254740992.0), None);
        assert_eq!(to_index(-0.5), Some(0));
        assert_eq!(to_index(-1.0), None);
        assert_eq!(exact_int32(-0.0), None);
        assert_eq!(exact_int32(7.0), Some(7));
    }
}
