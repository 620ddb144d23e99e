//! The formats of `Intl` in en-US, as recorded.

use outrigger_vm::text::Text;
use outrigger_vm::text::bigint::read_literal;
use outrigger_vm::text::intl::datetime::{
    self, DateTimeOptions, HourCycle, Length, Month, Numeric as DateNumeric, ZoneName,
};
use outrigger_vm::text::intl::decimal::{Decimal, RoundingMode};
use outrigger_vm::text::intl::list::{ListType, Width};
use outrigger_vm::text::intl::number::{
    Amount, CurrencyDisplay, CurrencySign, Grouping, Notation, NumberOptions, Precision, SignDisplay, Style,
    TrailingZeros, currency_digits, format,
};
use outrigger_vm::text::intl::relative::{Numeric, Unit};
use outrigger_vm::text::intl::{Part, join, list, plural, relative};

use super::{Row, check, spell};

#[test]
fn intl_formats_english_as_in_node() {
    check(include_str!("tables/intl.tsv"), 2500, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let argument = |index: usize| row.arguments[index];
    let text = match row.function {
        "number" => spell_parts(&format(&Amount::of_f64(row.number(1)), &number_options(argument(0))).parts),
        "bigint" => {
            join(&format(&Amount::of_bigint(&read_literal(argument(0))?), &NumberOptions::DECIMAL).parts)
        }
        "cardinal" | "ordinal" => {
            let decimal = Decimal::of_f64(row.number(0))?.rounded(3, RoundingMode::HalfExpand);
            let (integer, fraction) = (decimal.integer(), decimal.fraction(0));
            let rule = if row.function == "cardinal" { plural::cardinal } else { plural::ordinal };
            rule(&integer, &fraction).name().to_owned()
        }
        "relative" => {
            let numeric = if argument(1) == "auto" { Numeric::Auto } else { Numeric::Always };
            join(&relative::parts(row.number(3), unit(argument(2)), width(argument(0)), numeric)?)
        }
        "list" => {
            let kind = match argument(1) {
                "conjunction" => ListType::Conjunction,
                "disjunction" => ListType::Disjunction,
                _ => ListType::Unit,
            };
            spell_parts(&list::parts(
                &["A", "B", "C", "D"][..row.number(2) as usize],
                kind,
                width(argument(0)),
            ))
        }
        "date" => spell_parts(&datetime::parts(row.number(1), &date_options(argument(0)))?),
        "toLocaleString" => datetime::format(row.number(0), &DateTimeOptions::DATE_TIME)?,
        "toLocaleDateString" => datetime::format(row.number(0), &DateTimeOptions::DATE)?,
        "toLocaleTimeString" => datetime::format(row.number(0), &DateTimeOptions::TIME)?,
        _ => return None,
    };
    Some(spell(Text::of(&text).as_str()))
}

fn spell_parts(parts: &[Part]) -> String {
    parts.iter().map(|part| format!("{}={}", part.kind, part.text)).collect::<Vec<_>>().join("|")
}

fn pairs(options: &str) -> impl Iterator<Item = (&str, &str)> {
    options.split(',').filter_map(|pair| pair.split_once('='))
}

/// The standard's defaults, and then what was asked for.
fn number_options(text: &str) -> NumberOptions<'_> {
    let get = |name: &str| pairs(text).find(|(key, _)| *key == name).map(|(_, value)| value);
    let count = |name: &str| get(name).map(|value| value.parse::<u8>().expect("a count"));
    let mut options = NumberOptions::DECIMAL;
    let mut defaults = (0, 3);
    match get("style") {
        Some("percent") => {
            options.style = Style::Percent;
            defaults = (0, 0);
        }
        Some("currency") => {
            let code = get("currency").expect("a currency");
            let display = match get("currencyDisplay") {
                Some("narrowSymbol") => CurrencyDisplay::NarrowSymbol,
                Some("code") => CurrencyDisplay::Code,
                Some("name") => CurrencyDisplay::Name,
                _ => CurrencyDisplay::Symbol,
            };
            let sign = match get("currencySign") {
                Some("accounting") => CurrencySign::Accounting,
                _ => CurrencySign::Standard,
            };
            options.style = Style::Currency(code, display, sign);
            defaults = (currency_digits(code), currency_digits(code));
        }
        Some("unit") => {
            options.style =
                Style::Unit(get("unit").expect("a unit"), width(get("unitDisplay").unwrap_or("short")))
        }
        _ => {}
    }
    let is_compact = get("notation") == Some("compact");
    options.notation = match get("notation") {
        Some("scientific") => Notation::Scientific,
        Some("engineering") => Notation::Engineering,
        Some("compact") if get("compactDisplay") == Some("long") => Notation::CompactLong,
        Some("compact") => Notation::CompactShort,
        _ => Notation::Standard,
    };
    let fraction = (count("minimumFractionDigits"), count("maximumFractionDigits"));
    let significant = (count("minimumSignificantDigits"), count("maximumSignificantDigits"));
    options.precision = match (significant, fraction) {
        ((None, None), (None, None)) if is_compact => Precision::Compact,
        ((None, None), (least, most)) => {
            let defaults = if is_compact { (0, 0) } else { defaults };
            let least_or_default = least.unwrap_or(defaults.0.min(most.unwrap_or(100)));
            Precision::Fraction(least_or_default, most.unwrap_or(defaults.1.max(least_or_default)))
        }
        ((least, most), _) => Precision::Significant(least.unwrap_or(1), most.unwrap_or(21)),
    };
    options.min_integer = count("minimumIntegerDigits").unwrap_or(1);
    options.grouping = match get("useGrouping") {
        Some("min2") => Grouping::Min2,
        Some("false") => Grouping::Never,
        None if is_compact => Grouping::Min2,
        _ => Grouping::Always,
    };
    options.sign = match get("signDisplay") {
        Some("always") => SignDisplay::Always,
        Some("exceptZero") => SignDisplay::ExceptZero,
        Some("negative") => SignDisplay::Negative,
        Some("never") => SignDisplay::Never,
        _ => SignDisplay::Auto,
    };
    options.rounding = match get("roundingMode") {
        Some("ceil") => RoundingMode::Ceil,
        Some("floor") => RoundingMode::Floor,
        Some("expand") => RoundingMode::Expand,
        Some("trunc") => RoundingMode::Trunc,
        Some("halfCeil") => RoundingMode::HalfCeil,
        Some("halfFloor") => RoundingMode::HalfFloor,
        Some("halfTrunc") => RoundingMode::HalfTrunc,
        Some("halfEven") => RoundingMode::HalfEven,
        _ => RoundingMode::HalfExpand,
    };
    if get("trailingZeroDisplay") == Some("stripIfInteger") {
        options.trailing_zeros = TrailingZeros::StripIfInteger;
    }
    options
}

fn date_options(text: &str) -> DateTimeOptions {
    let get = |name: &str| pairs(text).find(|(key, _)| *key == name).map(|(_, value)| value);
    let length = |name: &str| {
        get(name).map(|value| match value {
            "full" => Length::Full,
            "long" => Length::Long,
            "medium" => Length::Medium,
            _ => Length::Short,
        })
    };
    let numeric = |value: &str| if value == "2-digit" { DateNumeric::TwoDigit } else { DateNumeric::Plain };
    let mut options = DateTimeOptions::of_lengths(length("dateStyle"), length("timeStyle"));
    for (key, value) in pairs(text) {
        match key {
            "weekday" => options.weekday = Some(width(value)),
            "era" => options.era = Some(width(value)),
            "year" => options.year = Some(numeric(value)),
            "month" if value == "numeric" || value == "2-digit" => {
                options.month = Some(Month::Number(numeric(value)))
            }
            "month" => options.month = Some(Month::Name(width(value))),
            "day" => options.day = Some(numeric(value)),
            "dayPeriod" => options.day_period = Some(width(value)),
            "hour" => options.hour = Some(numeric(value)),
            "minute" => options.minute = Some(numeric(value)),
            "second" => options.second = Some(numeric(value)),
            "fractionalSecondDigits" => options.fraction = Some(value.parse().expect("a count")),
            "timeZoneName" => {
                options.zone_name = Some(match value {
                    "long" => ZoneName::Long,
                    "shortOffset" => ZoneName::ShortOffset,
                    "longOffset" => ZoneName::LongOffset,
                    _ => ZoneName::Short,
                });
            }
            // Only `false` is recorded, and for American English V8 takes that to mean 1 to 24.
            "hour12" => options.cycle = HourCycle::H24,
            "hourCycle" => {
                options.cycle = match value {
                    "h11" => HourCycle::H11,
                    "h23" => HourCycle::H23,
                    "h24" => HourCycle::H24,
                    _ => HourCycle::H12,
                };
            }
            _ => {}
        }
    }
    options
}

fn width(name: &str) -> Width {
    match name {
        "long" => Width::Long,
        "short" => Width::Short,
        "narrow" => Width::Narrow,
        _ => panic!("{name} is no width"),
    }
}

fn unit(name: &str) -> Unit {
    match name {
        "second" => Unit::Second,
        "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "quarter" => Unit::Quarter,
        "year" => Unit::Year,
        _ => panic!("{name} is no unit"),
    }
}
