//! `DateTimeFormat` for en-US: UTC and fixed offsets.

use super::super::date::calendar::Fields;
use super::Part;
use super::list::Width;

/// Digits as they are, or at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    /// 7
    Plain,
    /// 07
    TwoDigit,
}

/// A month as number or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Month {
    /// 1 or 01
    Number(Numeric),
    /// January, Jan or J
    Name(Width),
}

/// How the hours of a day are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HourCycle {
    /// 0 to 11, with AM and PM.
    H11,
    /// 1 to 12, with AM and PM.
    H12,
    /// 0 to 23.
    H23,
    /// 1 to 24.
    H24,
}

/// How the time zone is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneName {
    /// UTC, GMT+5:30
    Short,
    /// Coordinated Universal Time, GMT+05:30
    Long,
    /// GMT+5:30; `shortGeneric` too
    ShortOffset,
    /// GMT+05:30; `longGeneric` too
    LongOffset,
}

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// Coordinated Universal Time.
    Utc,
    /// So many minutes ahead of it.
    Offset(i16),
}

/// How long a date or a time is, when its components are not chosen one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Everything.
    Full,
    /// Long names.
    Long,
    /// Short names.
    Medium,
    /// Digits.
    Short,
}

/// The options of a date format, resolved: what is shown, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTimeOptions {
    /// Thursday
    pub weekday: Option<Width>,
    /// Anno Domini
    pub era: Option<Width>,
    /// 2020
    pub year: Option<Numeric>,
    /// January
    pub month: Option<Month>,
    /// 2
    pub day: Option<Numeric>,
    /// in the morning
    pub day_period: Option<Width>,
    /// 3
    pub hour: Option<Numeric>,
    /// 04; alone it is not padded
    pub minute: Option<Numeric>,
    /// 05; alone it is not padded
    pub second: Option<Numeric>,
    /// One to three digits of a second.
    pub fraction: Option<u8>,
    /// UTC
    pub zone_name: Option<ZoneName>,
    /// How hours are counted.
    pub cycle: HourCycle,
    /// The time zone.
    pub zone: TimeZone,
}

impl DateTimeOptions {
    /// Nothing shown, twelve hours, UTC: the start for a caller that fills in what was asked for.
    pub const NOTHING: DateTimeOptions = DateTimeOptions {
        weekday: None,
        era: None,
        year: None,
        month: None,
        day: None,
        day_period: None,
        hour: None,
        minute: None,
        second: None,
        fraction: None,
        zone_name: None,
        cycle: HourCycle::H12,
        zone: TimeZone::Utc,
    };

    /// 1/2/2020: `toLocaleDateString` when it is told nothing.
    pub const DATE: DateTimeOptions = DateTimeOptions {
        year: Some(Numeric::Plain),
        month: Some(Month::Number(Numeric::Plain)),
        day: Some(Numeric::Plain),
        ..DateTimeOptions::NOTHING
    };

    /// 3:04:05 AM: `toLocaleTimeString` when it is told nothing.
    pub const TIME: DateTimeOptions = DateTimeOptions {
        hour: Some(Numeric::Plain),
        minute: Some(Numeric::Plain),
        second: Some(Numeric::Plain),
        ..DateTimeOptions::NOTHING
    };

    /// 1/2/2020, 3:04:05 AM: `toLocaleString` when it is told nothing.
    pub const DATE_TIME: DateTimeOptions = DateTimeOptions {
        hour: Some(Numeric::Plain),
        minute: Some(Numeric::Plain),
        second: Some(Numeric::Plain),
        ..DateTimeOptions::DATE
    };

    /// The components that `dateStyle` and `timeStyle` stand for.
    pub fn of_lengths(date: Option<Length>, time: Option<Length>) -> DateTimeOptions {
        let mut options = match date {
            None => DateTimeOptions::NOTHING,
            Some(Length::Short) => DateTimeOptions { year: Some(Numeric::TwoDigit), ..DateTimeOptions::DATE },
            Some(Length::Medium) => {
                DateTimeOptions { month: Some(Month::Name(Width::Short)), ..DateTimeOptions::DATE }
            }
            Some(Length::Long | Length::Full) => {
                DateTimeOptions { month: Some(Month::Name(Width::Long)), ..DateTimeOptions::DATE }
            }
        };
        if date == Some(Length::Full) {
            options.weekday = Some(Width::Long);
        }
        if let Some(time) = time {
            (options.hour, options.minute) = (Some(Numeric::Plain), Some(Numeric::Plain));
            options.second = (time != Length::Short).then_some(Numeric::Plain);
            options.zone_name = match time {
                Length::Full => Some(ZoneName::Long),
                Length::Long => Some(ZoneName::Short),
                Length::Medium | Length::Short => None,
            };
        }
        options
    }
}

/// The parts of a formatted date; `None` when `time` is NaN or out of range.
///
/// ```
/// use outrigger_vm::text::intl::{datetime::{DateTimeOptions, Length, parts}, join};
/// let options = DateTimeOptions::of_lengths(Some(Length::Long), None);
/// assert_eq!(join(&parts(0.0, &options).unwrap()), "January 1, 1970");
/// ```
pub fn parts(time: f64, options: &DateTimeOptions) -> Option<Vec<Part>> {
    let offset = match options.zone {
        TimeZone::Utc => 0,
        TimeZone::Offset(minutes) => minutes,
    };
    let fields = Fields::of(time + f64::from(offset) * 60_000.0)?;
    let mut date = date_parts(&fields, options);
    let time = time_parts(&fields, options);
    if !date.is_empty() && !time.is_empty() {
        let only_weekday = options.weekday.is_some() && date.len() == 1 && options.hour.is_some();
        date.push(Part::literal(match options.month {
            Some(Month::Name(Width::Long)) => " at ",
            _ if only_weekday => " ",
            _ => ", ",
        }));
    }
    date.extend(time);
    Some(date)
}

/// The formatted date as one text; `None` as for [`parts`].
///
/// V8 replaces the narrow space before AM and PM by a plain one here, because programs split at it, and keeps it in
/// the parts.
pub fn format(time: f64, options: &DateTimeOptions) -> Option<String> {
    parts(time, options).map(|parts| super::join(&parts).replace(HALF_DAY_SPACE, " "))
}

fn date_parts(fields: &Fields, options: &DateTimeOptions) -> Vec<Part> {
    let weekday = options
        .weekday
        .map(|width| Part::new("weekday", cut(WEEKDAYS[usize::from(fields.weekday % 7)], width)));
    let day = options.day.map(|numeric| Part::new("day", padded(u32::from(fields.day), numeric)));
    let year = options.year.map(|numeric| {
        // There is no year zero before Christ: it is the year one, counted backwards.
        let year = if fields.year > 0 { fields.year.unsigned_abs() } else { fields.year.unsigned_abs() + 1 };
        let text = match numeric {
            Numeric::Plain => year.to_string(),
            Numeric::TwoDigit => format!("{:02}", year % 100),
        };
        Part::new("year", text)
    });
    let month = options.month.map(|month| {
        let text = match month {
            Month::Number(numeric) => padded(u32::from(fields.month) + 1, numeric),
            Month::Name(width) => cut(MONTHS[usize::from(fields.month % 12)], width).to_owned(),
        };
        Part::new("month", text)
    });

    let has_day = day.is_some();
    let mut out: Vec<Part> = Vec::with_capacity(9);
    match (month, day, year) {
        (Some(month), day, year) if matches!(options.month, Some(Month::Name(_))) => {
            out.push(month);
            follow(&mut out, " ", day);
            follow(&mut out, if has_day { ", " } else { " " }, year);
        }
        (None, Some(day), Some(year)) => {
            out.extend([year, Part::literal(" (day: "), day, Part::literal(")")]);
        }
        (month, day, year) => {
            for part in [month, day, year] {
                follow(&mut out, "/", part);
            }
        }
    }
    if let Some(width) = options.era {
        let names = if fields.year > 0 { ["Anno Domini", "AD", "A"] } else { ["Before Christ", "BC", "B"] };
        let [long, short, narrow] = names;
        let name = match width {
            Width::Long => long,
            Width::Short => short,
            Width::Narrow => narrow,
        };
        follow(&mut out, " ", Some(Part::new("era", name)));
    }
    match weekday {
        Some(weekday) if has_day && options.month.is_some() => {
            out.insert(0, weekday);
            out.insert(1, Part::literal(", "));
        }
        weekday => follow(&mut out, " ", weekday),
    }
    out
}

fn time_parts(fields: &Fields, options: &DateTimeOptions) -> Vec<Part> {
    let halves = matches!(options.cycle, HourCycle::H11 | HourCycle::H12);
    let mut out = Vec::with_capacity(12);
    if let Some(numeric) = options.hour {
        let hour = match options.cycle {
            HourCycle::H11 => fields.hour % 12,
            HourCycle::H12 => (fields.hour + 11) % 12 + 1,
            HourCycle::H23 => fields.hour,
            HourCycle::H24 => (fields.hour + 23) % 24 + 1,
        };
        let numeric = if halves { numeric } else { Numeric::TwoDigit };
        out.push(Part::new("hour", padded(u32::from(hour), numeric)));
    }
    // Minutes and seconds are padded as soon as there is more than one of them.
    let in_company = |other: bool| if other { Numeric::TwoDigit } else { Numeric::Plain };
    if options.minute.is_some() {
        let numeric = in_company(options.hour.is_some() || options.second.is_some());
        follow(&mut out, ":", Some(Part::new("minute", padded(u32::from(fields.minute), numeric))));
    }
    if options.second.is_some() {
        let numeric = in_company(options.hour.is_some() || options.minute.is_some());
        follow(&mut out, ":", Some(Part::new("second", padded(u32::from(fields.second), numeric))));
    }
    if let Some(digits) = options.fraction {
        let text = format!("{:03}", fields.millisecond);
        // Three ASCII digits, cut to at most three.
        let text = &text[..usize::from(digits.clamp(1, 3))];
        follow(&mut out, ".", Some(Part::new("fractionalSecond", text)));
    }
    if let Some(width) = options.day_period
        && (options.hour.is_none() || halves)
    {
        follow(&mut out, " ", Some(Part::new("dayPeriod", day_period(fields, options, width))));
    } else if options.hour.is_some() && halves {
        let half = if fields.hour < 12 { "AM" } else { "PM" };
        follow(&mut out, HALF_DAY_SPACE, Some(Part::new("dayPeriod", half)));
    }
    if let Some(name) = options.zone_name {
        follow(&mut out, " ", Some(Part::new("timeZoneName", zone_name(options.zone, name))));
    }
    out
}

/// Narrow and not to be broken; see [`format`].
const HALF_DAY_SPACE: &str = "\u{202F}";

fn day_period(fields: &Fields, options: &DateTimeOptions, width: Width) -> &'static str {
    let on_the_hour = options.minute.is_none() || fields.minute == 0;
    match fields.hour {
        12 if on_the_hour && width == Width::Narrow => "n",
        12 if on_the_hour => "noon",
        0..12 => "in the morning",
        12..18 => "in the afternoon",
        18..21 => "in the evening",
        21.. => "at night",
    }
}

fn zone_name(zone: TimeZone, name: ZoneName) -> String {
    let minutes = match (zone, name) {
        (TimeZone::Utc, ZoneName::Short) => return "UTC".to_owned(),
        (TimeZone::Utc, ZoneName::Long) => return "Coordinated Universal Time".to_owned(),
        (TimeZone::Utc, ZoneName::ShortOffset | ZoneName::LongOffset) => 0,
        (TimeZone::Offset(minutes), _) => minutes,
    };
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.unsigned_abs() / 60, minutes.unsigned_abs() % 60);
    match name {
        ZoneName::Long | ZoneName::LongOffset => format!("GMT{sign}{hours:02}:{minutes:02}"),
        ZoneName::Short | ZoneName::ShortOffset if minutes == 0 => format!("GMT{sign}{hours}"),
        ZoneName::Short | ZoneName::ShortOffset => format!("GMT{sign}{hours}:{minutes:02}"),
    }
}

/// Appends a part, if there is one, after a literal, if there is something before.
fn follow(out: &mut Vec<Part>, literal: &str, part: Option<Part>) {
    let Some(part) = part else { return };
    if !out.is_empty() {
        out.push(Part::literal(literal));
    }
    out.push(part);
}

fn padded(value: u32, numeric: Numeric) -> String {
    match numeric {
        Numeric::Plain => value.to_string(),
        Numeric::TwoDigit => format!("{value:02}"),
    }
}

/// A name, its first three letters or its first letter. The names are ASCII.
fn cut(name: &'static str, width: Width) -> &'static str {
    match width {
        Width::Long => name,
        Width::Short => name.get(..3).unwrap_or(name),
        Width::Narrow => name.get(..1).unwrap_or(name),
    }
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
