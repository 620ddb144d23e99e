//! Dates.

use super::numbers::width;
use super::{answer, small, word};
use crate::builtins::Args;
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::text::intl::datetime::{
    self, DateTimeOptions, HourCycle, Length, Month, Numeric, TimeZone, ZoneName,
};
use crate::text::intl::list::Width;

/// `%FormatDate(asParts, time, weekday, era, year, month, day, dayPeriod, hour, minute, second, fraction, timeZoneName,
/// hourCycle, offsetMinutes, dateStyle, timeStyle)`; an offset of undefined is UTC.
pub(super) fn format(st: &mut State, w: &mut Window, args: Args) -> Res {
    let time = st.primitive_to_number(args.get(w, 1))?;
    st.burn(64)?;
    let words: Vec<String> = (2..18).map(|n| word(st, w, args, n)).collect();
    let at = |n: usize| words.get(n - 2).map_or("", String::as_str);
    let styled = !at(15).is_empty() || !at(16).is_empty();
    let mut options = if styled {
        DateTimeOptions::of_lengths(length(at(15)), length(at(16)))
    } else {
        DateTimeOptions {
            weekday: width_of(at(2)),
            era: width_of(at(3)),
            year: numeric(at(4)),
            month: month(at(5)),
            day: numeric(at(6)),
            day_period: width_of(at(7)),
            hour: numeric(at(8)),
            minute: numeric(at(9)),
            second: numeric(at(10)),
            fraction: small(w, args, 11),
            zone_name: zone_name(at(12)),
            ..DateTimeOptions::NOTHING
        }
    };
    options.cycle = match at(13) {
        "h11" => HourCycle::H11,
        "h23" => HourCycle::H23,
        "h24" => HourCycle::H24,
        _ => HourCycle::H12,
    };
    if let Some(minutes) = args.get(w, 14).as_int() {
        options.zone = TimeZone::Offset(minutes as i16);
    }
    let Some(parts) = datetime::parts(time, &options) else {
        return Err(st.throw(ErrorKind::Range, "Invalid time value"));
    };
    answer(st, w, args, &parts, || datetime::format(time, &options).unwrap_or_default())
}

fn width_of(name: &str) -> Option<Width> {
    (!name.is_empty()).then(|| width(name, Width::Long))
}

fn numeric(name: &str) -> Option<Numeric> {
    match name {
        "" => None,
        "2-digit" => Some(Numeric::TwoDigit),
        _ => Some(Numeric::Plain),
    }
}

fn month(name: &str) -> Option<Month> {
    match name {
        "" => None,
        "numeric" | "2-digit" => numeric(name).map(Month::Number),
        _ => width_of(name).map(Month::Name),
    }
}

fn zone_name(name: &str) -> Option<ZoneName> {
    match name {
        "" => None,
        "long" => Some(ZoneName::Long),
        "shortOffset" | "shortGeneric" => Some(ZoneName::ShortOffset),
        "longOffset" | "longGeneric" => Some(ZoneName::LongOffset),
        _ => Some(ZoneName::Short),
    }
}

fn length(name: &str) -> Option<Length> {
    match name {
        "full" => Some(Length::Full),
        "long" => Some(Length::Long),
        "medium" => Some(Length::Medium),
        "short" => Some(Length::Short),
        _ => None,
    }
}
