//! Decimal numbers that are rounded as `Intl` rounds: from the shortest spelling of a double, not from its bits.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::super::number::digits::Scientific;

/// How to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundingMode {
    /// Towards positive infinity.
    Ceil,
    /// Towards negative infinity.
    Floor,
    /// Away from zero.
    Expand,
    /// Towards zero.
    Trunc,
    /// To the nearest, halves towards positive infinity.
    HalfCeil,
    /// To the nearest, halves towards negative infinity.
    HalfFloor,
    /// To the nearest, halves away from zero.
    HalfExpand,
    /// To the nearest, halves towards zero.
    HalfTrunc,
    /// To the nearest, halves to the even digit.
    HalfEven,
}

/// A finite decimal number: 0.d₁d₂d₃… times ten to the power of `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Whether it is below zero, or minus zero.
    pub negative: bool,
    /// Digits from 0 to 9, neither the first nor the last of them zero; none for zero.
    digits: Vec<u8>,
    point: i32,
}

impl Decimal {
    /// The shortest decimal that reads back as `value`; `None` when that is not finite.
    pub fn of_f64(value: f64) -> Option<Decimal> {
        if !value.is_finite() {
            return None;
        }
        let Scientific { digits, exponent } = Scientific::shortest(value.abs());
        let digits = digits.bytes().map(|byte| byte - b'0').collect();
        Some(Decimal { negative: value.is_sign_negative(), digits, point: exponent + 1 }.normal())
    }

    /// The exact value of a BigInt. Its digits cost what printing it costs.
    pub fn of_bigint(value: &BigInt) -> Decimal {
        let digits = value.magnitude().to_radix_be(10);
        let point = i32::try_from(digits.len()).unwrap_or(i32::MAX);
        Decimal { negative: value.sign() == Sign::Minus, digits, point }.normal()
    }

    /// Whether nothing is left.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of the first digit; zero for zero.
    pub fn magnitude(&self) -> i32 {
        if self.is_zero() { 0 } else { self.point - 1 }
    }

    /// The number times a power of ten.
    pub fn shifted(&self, places: i32) -> Decimal {
        let point = if self.is_zero() { 0 } else { self.point.saturating_add(places) };
        Decimal { point, ..self.clone() }
    }

    /// Rounded to so many fraction digits; a negative number of them rounds left of the point.
    pub fn rounded(&self, places: i32, mode: RoundingMode) -> Decimal {
        let keep = i64::from(self.point) + i64::from(places);
        let kept = usize::try_from(keep).unwrap_or(0);
        if self.is_zero() || (keep >= 0 && kept >= self.digits.len()) {
            return self.clone();
        }
        let rest = self.digits.get(kept..).unwrap_or_default();
        let half = match rest.first() {
            // Something is cut further left than the first digit, so it is less than a tenth.
            _ if keep < 0 => Ordering::Less,
            Some(5) if rest.len() == 1 => Ordering::Equal,
            Some(5..) => Ordering::Greater,
            Some(_) | None => Ordering::Less,
        };
        let last_is_odd = kept > 0 && self.digits[kept - 1] % 2 == 1;
        let up = match mode {
            RoundingMode::Ceil => !self.negative,
            RoundingMode::Floor => self.negative,
            RoundingMode::Expand => true,
            RoundingMode::Trunc => false,
            RoundingMode::HalfCeil => half.is_gt() || (half.is_eq() && !self.negative),
            RoundingMode::HalfFloor => half.is_gt() || (half.is_eq() && self.negative),
            RoundingMode::HalfExpand => half.is_ge(),
            RoundingMode::HalfTrunc => half.is_gt(),
            RoundingMode::HalfEven => half.is_gt() || (half.is_eq() && last_is_odd),
        };
        let mut digits = self.digits[..kept].to_vec();
        let mut point = self.point;
        if up {
            while digits.last() == Some(&9) {
                digits.pop();
            }
            match digits.last_mut() {
                Some(digit) => *digit += 1,
                None => {
                    // Every kept digit was a nine, or none was kept: one in the place before them.
                    digits.push(1);
                    point = if keep <= 0 { 1 - places } else { self.point + 1 };
                }
            }
        }
        Decimal { negative: self.negative, digits, point }.normal()
    }

    /// The digits left of the point, at least one.
    pub fn integer(&self) -> String {
        if self.point <= 0 {
            return "0".to_owned();
        }
        self.places(0, self.point)
    }

    /// The digits right of the point: at least `least`, and all that there are.
    pub fn fraction(&self, least: usize) -> String {
        let there = i32::try_from(self.digits.len()).unwrap_or(i32::MAX).saturating_sub(self.point);
        let len = if self.is_zero() { 0 } else { there.max(0) };
        self.places(self.point, self.point.saturating_add(len.max(least as i32)))
    }

    /// Digits from one index to another; outside of what there is they are zeros.
    fn places(&self, from: i32, to: i32) -> String {
        let digit =
            |index: i32| usize::try_from(index).ok().and_then(|index| self.digits.get(index)).copied();
        (from..to).map(|index| char::from(b'0' + digit(index).unwrap_or(0))).collect()
    }

    fn normal(mut self) -> Decimal {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..zeros);
        self.point = if self.digits.is_empty() { 0 } else { self.point - zeros as i32 };
        self
    }
}
