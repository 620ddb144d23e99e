//! Numbers and plurals.

use super::{answer, small, word};
use crate::builtins::Args;
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::text::intl::decimal::RoundingMode;
use crate::text::intl::join;
use crate::text::intl::list::Width;
use crate::text::intl::number::{
    self, Amount, CurrencyDisplay, CurrencySign, Grouping, Notation, NumberOptions, Precision, SignDisplay,
    Style, TrailingZeros,
};
use crate::text::intl::plural;
use crate::value::{Unpacked, Value};

/// `%FormatNumber(asParts, x, style, currencyOrUnit, display, currencySign, notation, compactDisplay, minimumIntegerDigits,
/// precision, least, most, useGrouping, signDisplay, roundingMode, trailingZeroDisplay)`.
pub(super) fn format(st: &mut State, w: &mut Window, args: Args) -> Res {
    let amount = amount(st, args.get(w, 1))?;
    let words: Vec<String> = (2..8).map(|n| word(st, w, args, n)).collect();
    let [style, of, display, currency_sign, notation, compact] = words.as_slice() else {
        return Ok(Value::UNDEFINED);
    };
    let precision = word(st, w, args, 9);
    let (least, most) = (small(w, args, 10).unwrap_or(0), small(w, args, 11).unwrap_or(3));
    let (grouping, sign) = (word(st, w, args, 12), word(st, w, args, 13));
    let (rounding, zeros) = (word(st, w, args, 14), word(st, w, args, 15));
    let options = NumberOptions {
        style: style_of(style, of, display, currency_sign),
        notation: match (notation.as_str(), compact.as_str()) {
            ("scientific", _) => Notation::Scientific,
            ("engineering", _) => Notation::Engineering,
            ("compact", "long") => Notation::CompactLong,
            ("compact", _) => Notation::CompactShort,
            _ => Notation::Standard,
        },
        precision: match precision.as_str() {
            "significant" => Precision::Significant(least, most),
            "compact" => Precision::Compact,
            _ => Precision::Fraction(least, most),
        },
        min_integer: small(w, args, 8).unwrap_or(1),
        grouping: match grouping.as_str() {
            "min2" => Grouping::Min2,
            "never" => Grouping::Never,
            _ => Grouping::Always,
        },
        sign: match sign.as_str() {
            "always" => SignDisplay::Always,
            "exceptZero" => SignDisplay::ExceptZero,
            "negative" => SignDisplay::Negative,
            "never" => SignDisplay::Never,
            _ => SignDisplay::Auto,
        },
        rounding: rounding_of(&rounding),
        trailing_zeros: if zeros == "stripIfInteger" {
            TrailingZeros::StripIfInteger
        } else {
            TrailingZeros::Auto
        },
    };
    let formatted = number::format(&amount, &options);
    answer(st, w, args, &formatted.parts, || join(&formatted.parts))
}

fn style_of<'a>(style: &str, of: &'a str, display: &str, sign: &str) -> Style<'a> {
    match style {
        "percent" => Style::Percent,
        "currency" => {
            let display = match display {
                "narrowSymbol" => CurrencyDisplay::NarrowSymbol,
                "code" => CurrencyDisplay::Code,
                "name" => CurrencyDisplay::Name,
                _ => CurrencyDisplay::Symbol,
            };
            let sign = if sign == "accounting" { CurrencySign::Accounting } else { CurrencySign::Standard };
            Style::Currency(of, display, sign)
        }
        "unit" => Style::Unit(of, width(display, Width::Short)),
        _ => Style::Decimal,
    }
}

pub(super) fn width(name: &str, otherwise: Width) -> Width {
    match name {
        "long" => Width::Long,
        "short" => Width::Short,
        "narrow" => Width::Narrow,
        _ => otherwise,
    }
}

fn rounding_of(name: &str) -> RoundingMode {
    match name {
        "ceil" => RoundingMode::Ceil,
        "floor" => RoundingMode::Floor,
        "expand" => RoundingMode::Expand,
        "trunc" => RoundingMode::Trunc,
        "halfCeil" => RoundingMode::HalfCeil,
        "halfFloor" => RoundingMode::HalfFloor,
        "halfTrunc" => RoundingMode::HalfTrunc,
        "halfEven" => RoundingMode::HalfEven,
        _ => RoundingMode::HalfExpand,
    }
}

/// A number or a BigInt; its digits are paid for.
fn amount(st: &mut State, v: Value) -> Result<Amount, crate::exec::state::Exit> {
    match v.unpack() {
        Unpacked::BigInt(id) => {
            st.burn(crate::text::bigint::print_cost(st.heap.bigint(id)))?;
            Ok(Amount::of_bigint(st.heap.bigint(id)))
        }
        _ => {
            let x = st.primitive_to_number(v)?;
            st.burn(64)?;
            Ok(Amount::of_f64(x))
        }
    }
}

/// `%CurrencyDigits("USD")`.
pub(super) fn currency_digits(st: &mut State, w: &mut Window, args: Args) -> Res {
    let code = word(st, w, args, 0);
    Ok(Value::int(i32::from(number::currency_digits(&code))))
}

/// `%IsKnownUnit("meter")`.
pub(super) fn is_known_unit(st: &mut State, w: &mut Window, args: Args) -> Res {
    let unit = word(st, w, args, 0);
    Ok(Value::bool(number::is_known_unit(&unit)))
}

/// `%SelectPlural(formatted, "ordinal")`: the category of digits that were formatted without grouping.
pub(super) fn select_plural(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (digits, kind) = (word(st, w, args, 0), word(st, w, args, 1));
    let digits = digits.trim_start_matches('-');
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let category = if kind == "ordinal" {
        plural::ordinal(integer, fraction)
    } else {
        plural::cardinal(integer, fraction)
    };
    Ok(Value::string(st.heap.new_string(category.name())?))
}
