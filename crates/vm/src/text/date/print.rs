//! How a date prints outside of `Intl`. Each function takes the fields of a valid date.

use super::calendar::Fields;

/// Short names of the days, Sunday first.
pub const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Short names of the months.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `toISOString`.
///
/// ```
/// use outrigger_vm::text::date::{Fields, print};
/// let fields = Fields::of(-62198755200000.0).unwrap();
/// assert_eq!(print::iso(&fields), "-000001-01-01T00:00:00.000Z");
/// ```
pub fn iso(date: &Fields) -> String {
    let year = match date.year {
        0..=9999 => format!("{:04}", date.year),
        _ => format!("{}{:06}", if date.year < 0 { '-' } else { '+' }, date.year.unsigned_abs()),
    };
    let Fields { day, hour, minute, second, millisecond, .. } = date;
    format!("{year}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z", date.month + 1)
}

/// `toString`.
pub fn full(date: &Fields) -> String {
    format!("{} {}", day(date), time(date))
}

/// `toDateString`.
pub fn day(date: &Fields) -> String {
    format!("{} {} {:02} {}", weekday(date), month(date), date.day, year(date))
}

/// `toTimeString`.
pub fn time(date: &Fields) -> String {
    let Fields { hour, minute, second, .. } = date;
    format!("{hour:02}:{minute:02}:{second:02} GMT+0000 (Coordinated Universal Time)")
}

/// `toUTCString`.
pub fn utc(date: &Fields) -> String {
    let Fields { day, hour, minute, second, .. } = date;
    format!(
        "{}, {day:02} {} {} {hour:02}:{minute:02}:{second:02} GMT",
        weekday(date),
        month(date),
        year(date)
    )
}

fn weekday(date: &Fields) -> &'static str {
    WEEKDAYS[usize::from(date.weekday % 7)]
}

fn month(date: &Fields) -> &'static str {
    MONTHS[usize::from(date.month % 12)]
}

fn year(date: &Fields) -> String {
    // Unlike in `iso`, the sign is in front of four digits.
    format!("{}{:04}", if date.year < 0 { "-" } else { "" }, date.year.unsigned_abs())
}
