//! `NumberFormat` for en-US.

use num_bigint::BigInt;

use super::Part;
use super::decimal::{Decimal, RoundingMode};
use super::list::Width;
use super::plural::{self, Plural};

/// What is to be formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A finite number.
    Finite(Decimal),
    /// An infinity.
    Infinite(Sign),
    /// Not a number.
    NaN,
}

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Above zero.
    Plus,
    /// Below zero.
    Minus,
}

impl Amount {
    /// From a Number.
    pub fn of_f64(value: f64) -> Amount {
        match Decimal::of_f64(value) {
            Some(decimal) => Amount::Finite(decimal),
            None if value.is_nan() => Amount::NaN,
            None => Amount::Infinite(if value < 0.0 { Sign::Minus } else { Sign::Plus }),
        }
    }

    /// From a BigInt.
    pub fn of_bigint(value: &BigInt) -> Amount {
        Amount::Finite(Decimal::of_bigint(value))
    }
}

/// What surrounds the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style<'a> {
    /// Nothing.
    Decimal,
    /// A percent sign; the number is multiplied by a hundred.
    Percent,
    /// An amount of money: the ISO code in capitals, its display, and how negative amounts look.
    Currency(&'a str, CurrencyDisplay, CurrencySign),
    /// A unit, by its identifier in `units.tsv`.
    Unit(&'a str, Width),
}

/// How a currency is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrencyDisplay {
    /// US$ or $ or €.
    Symbol,
    /// $ for every dollar.
    NarrowSymbol,
    /// USD
    Code,
    /// US dollars
    Name,
}

/// How a negative amount of money is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrencySign {
    /// -$1
    Standard,
    /// ($1)
    Accounting,
}

/// How large and small numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// 12,345
    Standard,
    /// 1.234E4
    Scientific,
    /// 12.345E3
    Engineering,
    /// 12K
    CompactShort,
    /// 12 thousand
    CompactLong,
}

/// How many digits are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// At least and at most so many after the point.
    Fraction(u8, u8),
    /// At least and at most so many significant ones.
    Significant(u8, u8),
    /// Integers, but two digits when there is only one before the point: the default of compact notation.
    Compact,
}

/// Whether digits are grouped by thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// 1,000 (`"auto"`, `"always"` and `true`: the same in English)
    Always,
    /// 1000 but 10,000
    Min2,
    /// 10000
    Never,
}

/// When a sign is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignDisplay {
    /// Before negative numbers, and before minus zero.
    Auto,
    /// Before every number.
    Always,
    /// Before every number that does not print as zero.
    ExceptZero,
    /// Before negative numbers that do not print as zero.
    Negative,
    /// Never.
    Never,
}

/// Whether an integer shows its zeros after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingZeros {
    /// $1.00
    Auto,
    /// $1
    StripIfInteger,
}

/// The options of a number format, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberOptions<'a> {
    /// What surrounds the digits.
    pub style: Style<'a>,
    /// How large and small numbers are shown.
    pub notation: Notation,
    /// How many digits are shown.
    pub precision: Precision,
    /// At least so many digits before the point.
    pub min_integer: u8,
    /// Whether digits are grouped.
    pub grouping: Grouping,
    /// When a sign is shown.
    pub sign: SignDisplay,
    /// How to round.
    pub rounding: RoundingMode,
    /// Whether an integer shows its zeros after the point.
    pub trailing_zeros: TrailingZeros,
}

impl NumberOptions<'static> {
    /// What `toLocaleString` uses when it is told nothing.
    pub const DECIMAL: NumberOptions<'static> = NumberOptions {
        style: Style::Decimal,
        notation: Notation::Standard,
        precision: Precision::Fraction(0, 3),
        min_integer: 1,
        grouping: Grouping::Always,
        sign: SignDisplay::Auto,
        rounding: RoundingMode::HalfExpand,
        trailing_zeros: TrailingZeros::Auto,
    };
}

/// A formatted number, and the plural category that its digits have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// The cardinal category of what was printed.
    pub plural: Plural,
}

/// The decimals that a currency usually has; two when it is unknown.
pub fn currency_digits(code: &str) -> u8 {
    currency(code).and_then(|fields| fields.get(1)?.parse().ok()).unwrap_or(2)
}

/// Whether a unit is one that can be formatted.
pub fn is_known_unit(unit: &str) -> bool {
    row(UNITS, unit).is_some()
}

/// Formats a number.
///
/// ```
/// use outrigger_vm::text::intl::{join, number::{Amount, NumberOptions, format}};
/// assert_eq!(join(&format(&Amount::of_f64(-1234.5678), &NumberOptions::DECIMAL).parts), "-1,234.568");
/// ```
pub fn format(amount: &Amount, options: &NumberOptions<'_>) -> Formatted {
    let (body, negative, is_zero, plural) = match amount {
        Amount::NaN => (vec![Part::new("nan", "NaN")], false, false, Plural::Other),
        Amount::Infinite(sign) => {
            (vec![Part::new("infinity", "∞")], *sign == Sign::Minus, false, Plural::Other)
        }
        Amount::Finite(decimal) => {
            let (body, is_zero, plural) = digits(decimal, options);
            (body, decimal.negative, is_zero, plural)
        }
    };
    let sign = match options.sign {
        SignDisplay::Auto => negative.then_some(Sign::Minus),
        SignDisplay::Always => Some(if negative { Sign::Minus } else { Sign::Plus }),
        SignDisplay::ExceptZero if is_zero || *amount == Amount::NaN => None,
        SignDisplay::ExceptZero => Some(if negative { Sign::Minus } else { Sign::Plus }),
        SignDisplay::Negative => (negative && !is_zero).then_some(Sign::Minus),
        SignDisplay::Never => None,
    };
    Formatted { parts: surround(body, sign, options.style, plural), plural }
}

/// The digits with their exponent or abbreviation; whether they are all zero; their plural category.
fn digits(decimal: &Decimal, options: &NumberOptions<'_>) -> (Vec<Part>, bool, Plural) {
    let decimal = match options.style {
        Style::Percent => decimal.shifted(2),
        Style::Decimal | Style::Currency(..) | Style::Unit(..) => decimal.clone(),
    };
    let (mut rounded, mut power) = scale(&decimal, decimal.magnitude(), options);
    // Rounding may have carried into the next power: 999,999 is 1M and not 1000K.
    if !rounded.is_zero() {
        let carried = decimal.magnitude().max(rounded.magnitude() + power);
        (rounded, power) = scale(&decimal, carried, options);
    }

    let mut integer = rounded.integer();
    if integer.len() < usize::from(options.min_integer) {
        integer.insert_str(0, &"0".repeat(usize::from(options.min_integer) - integer.len()));
    }
    let least = match options.precision {
        Precision::Fraction(least, _) => usize::from(least),
        Precision::Significant(least, _) => (i32::from(least) - 1 - rounded.magnitude()).max(0) as usize,
        Precision::Compact => 0,
    };
    let mut fraction = rounded.fraction(least);
    if options.trailing_zeros == TrailingZeros::StripIfInteger && fraction.bytes().all(|digit| digit == b'0')
    {
        fraction.clear();
    }

    let mut plural = plural::cardinal(&integer, &fraction);
    let mut parts = Vec::with_capacity(8);
    group(&integer, options.grouping, &mut parts);
    if !fraction.is_empty() {
        parts.push(Part::new("decimal", "."));
        parts.push(Part::new("fraction", fraction));
    }
    match options.notation {
        Notation::Standard => {}
        Notation::Scientific | Notation::Engineering => {
            parts.push(Part::new("exponentSeparator", "E"));
            if power < 0 {
                parts.push(Part::new("exponentMinusSign", "-"));
            }
            parts.push(Part::new("exponentInteger", power.unsigned_abs().to_string()));
        }
        Notation::CompactShort | Notation::CompactLong => {
            if power > 0 {
                plural = Plural::Other;
            }
            compact(power, options, &mut parts);
        }
    }
    (parts, rounded.is_zero(), plural)
}

/// The number divided by the power of ten that its notation takes out at this magnitude, rounded; and that power.
fn scale(decimal: &Decimal, magnitude: i32, options: &NumberOptions<'_>) -> (Decimal, i32) {
    let power = match options.notation {
        Notation::Standard => 0,
        Notation::Scientific => magnitude,
        Notation::Engineering => magnitude.div_euclid(3) * 3,
        Notation::CompactShort | Notation::CompactLong => magnitude.div_euclid(3).clamp(0, 4) * 3,
    };
    let scaled = decimal.shifted(-power);
    let places = match options.precision {
        Precision::Fraction(_, most) => i32::from(most),
        Precision::Significant(_, most) => i32::from(most) - 1 - scaled.magnitude(),
        Precision::Compact => (1 - scaled.magnitude()).max(0),
    };
    (scaled.rounded(places, options.rounding), power)
}

fn compact(power: i32, options: &NumberOptions<'_>, parts: &mut Vec<Part>) {
    let (short, long) = match power {
        3 => ("K", "thousand"),
        6 => ("M", "million"),
        9 => ("B", "billion"),
        12 => ("T", "trillion"),
        _ => return,
    };
    // English has no long forms for money.
    let is_money = matches!(options.style, Style::Currency(..));
    if options.notation == Notation::CompactLong && !is_money {
        parts.push(Part::literal(" "));
        parts.push(Part::new("compact", long));
    } else {
        parts.push(Part::new("compact", short));
    }
}

fn group(integer: &str, grouping: Grouping, parts: &mut Vec<Part>) {
    let groups = match grouping {
        Grouping::Always => integer.len() > 3,
        Grouping::Min2 => integer.len() > 4,
        Grouping::Never => false,
    };
    if !groups {
        return parts.push(Part::new("integer", integer));
    }
    let first = match integer.len() % 3 {
        0 => 3,
        rest => rest,
    };
    // Digits are ASCII, so every index is a boundary.
    parts.push(Part::new("integer", &integer[..first]));
    for start in (first..integer.len()).step_by(3) {
        parts.push(Part::new("group", ","));
        parts.push(Part::new("integer", &integer[start..start + 3]));
    }
}

/// Puts sign, currency, percent sign or unit around the digits.
fn surround(body: Vec<Part>, sign: Option<Sign>, style: Style<'_>, plural: Plural) -> Vec<Part> {
    let mut parts = Vec::with_capacity(body.len() + 5);
    let accounting = sign == Some(Sign::Minus)
        && matches!(style, Style::Currency(_, display, CurrencySign::Accounting) if display != CurrencyDisplay::Name);
    match sign {
        Some(Sign::Minus) if accounting => parts.push(Part::literal("(")),
        Some(Sign::Minus) => parts.push(Part::new("minusSign", "-")),
        Some(Sign::Plus) => parts.push(Part::new("plusSign", "+")),
        None => {}
    }
    match style {
        Style::Decimal => parts.extend(body),
        Style::Percent => {
            parts.extend(body);
            parts.push(Part::new("percentSign", "%"));
        }
        Style::Currency(code, CurrencyDisplay::Name, _) => {
            let index = if plural == Plural::One { 4 } else { 5 };
            let name = currency(code).and_then(|fields| fields.get(index).copied()).unwrap_or(code);
            parts.extend(body);
            parts.push(Part::literal(" "));
            parts.push(Part::new("currency", name));
        }
        Style::Currency(code, display, _) => {
            let index = match display {
                CurrencyDisplay::Symbol => 2,
                CurrencyDisplay::NarrowSymbol => 3,
                CurrencyDisplay::Code | CurrencyDisplay::Name => 0,
            };
            let symbol = currency(code).and_then(|fields| fields.get(index).copied()).unwrap_or(code);
            parts.push(Part::new("currency", symbol));
            // Letters would run into the digits, when there are any.
            let has_digits = body.first().is_some_and(|part| part.kind == "integer");
            if has_digits && symbol.ends_with(char::is_alphanumeric) {
                parts.push(Part::literal("\u{A0}"));
            }
            parts.extend(body);
        }
        Style::Unit(unit, width) => {
            let first = match width {
                Width::Short => 1,
                Width::Narrow => 3,
                Width::Long => 5,
            };
            let pattern = row(UNITS, unit)
                .and_then(|fields| fields.get(first + usize::from(plural != Plural::One)).copied());
            let suffix = pattern.and_then(|pattern| pattern.strip_prefix("{}")).unwrap_or_default();
            parts.extend(body);
            let name = suffix.trim_start_matches(' ');
            if name.len() < suffix.len() {
                parts.push(Part::literal(" "));
            }
            parts.push(Part::new(if unit == "percent" { "percentSign" } else { "unit" }, name));
        }
    }
    if accounting {
        parts.push(Part::literal(")"));
    }
    parts
}

const CURRENCIES: &str = include_str!("currencies.tsv");
const UNITS: &str = include_str!("units.tsv");

fn currency(code: &str) -> Option<Vec<&'static str>> {
    row(CURRENCIES, code)
}

/// The fields of the line that starts with `key`.
fn row(table: &'static str, key: &str) -> Option<Vec<&'static str>> {
    let has_key = |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with('\t'));
    table.lines().find(has_key).map(|line| line.split('\t').collect())
}
