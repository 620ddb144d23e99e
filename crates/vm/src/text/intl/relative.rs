//! `RelativeTimeFormat` for English.

use super::list::Width;
use super::number::{Amount, NumberOptions};
use super::plural::Plural;
use super::{Part, number};

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// second
    Second,
    /// minute
    Minute,
    /// hour
    Hour,
    /// day
    Day,
    /// week
    Week,
    /// month
    Month,
    /// quarter
    Quarter,
    /// year
    Year,
}

/// Whether there may be words in the place of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    /// "1 day ago"
    Always,
    /// "yesterday"
    Auto,
}

/// The parts of a difference in time; `None` when `value` is not finite.
///
/// ```
/// use outrigger_vm::text::intl::{join, list::Width, relative::{Numeric, Unit, parts}};
/// assert_eq!(join(&parts(-2.0, Unit::Day, Width::Long, Numeric::Auto).unwrap()), "2 days ago");
/// ```
pub fn parts(value: f64, unit: Unit, width: Width, numeric: Numeric) -> Option<Vec<Part>> {
    if !value.is_finite() {
        return None;
    }
    if numeric == Numeric::Auto
        && let Some(words) = words(value, unit, width)
    {
        return Some(vec![Part::literal(&words)]);
    }
    let number = number::format(&Amount::of_f64(value.abs()), &NumberOptions::DECIMAL);
    let name = name(unit, width, number.plural);
    let is_past = value.is_sign_negative();
    let mut out = Vec::with_capacity(number.parts.len() + 2);
    if !is_past {
        out.push(Part::literal("in "));
    }
    out.extend(number.parts);
    let space = if width == Width::Narrow { "" } else { " " };
    out.push(Part::literal(&format!("{space}{name}{}", if is_past { " ago" } else { "" })));
    Some(out)
}

fn name(unit: Unit, width: Width, plural: Plural) -> String {
    let (long, short, narrow) = names(unit);
    let one = match width {
        Width::Long => long,
        Width::Short => short,
        Width::Narrow => narrow,
    };
    match (width, plural) {
        (Width::Long, Plural::Other) => format!("{one}s"),
        (Width::Short, Plural::Other) if unit == Unit::Day => "days".to_owned(),
        (Width::Short, Plural::Other) if unit == Unit::Quarter => "qtrs.".to_owned(),
        (_, _) => one.to_owned(),
    }
}

fn names(unit: Unit) -> (&'static str, &'static str, &'static str) {
    match unit {
        Unit::Second => ("second", "sec.", "s"),
        Unit::Minute => ("minute", "min.", "m"),
        Unit::Hour => ("hour", "hr.", "h"),
        Unit::Day => ("day", "day", "d"),
        Unit::Week => ("week", "wk.", "w"),
        Unit::Month => ("month", "mo.", "mo"),
        Unit::Quarter => ("quarter", "qtr.", "q"),
        Unit::Year => ("year", "yr.", "y"),
    }
}

/// What is said without a number, if anything is.
fn words(value: f64, unit: Unit, width: Width) -> Option<String> {
    if ![-1.0, 0.0, 1.0].contains(&value) {
        return None;
    }
    let (long, short, _) = names(unit);
    let said = match unit {
        Unit::Second if value == 0.0 => return Some("now".to_owned()),
        Unit::Minute | Unit::Hour if value == 0.0 => return Some(format!("this {long}")),
        Unit::Second | Unit::Minute | Unit::Hour => return None,
        Unit::Day if value == 0.0 => return Some("today".to_owned()),
        Unit::Day => return Some(if value < 0.0 { "yesterday" } else { "tomorrow" }.to_owned()),
        Unit::Week | Unit::Month | Unit::Quarter | Unit::Year if width == Width::Long => long,
        Unit::Week | Unit::Month | Unit::Quarter | Unit::Year => short,
    };
    let which = if value < 0.0 {
        "last"
    } else if value > 0.0 {
        "next"
    } else {
        "this"
    };
    Some(format!("{which} {said}"))
}
