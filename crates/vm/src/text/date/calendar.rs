//! Day and time arithmetic, as the standard names its parts.

use super::super::number::convert::to_integer_or_infinity;

/// Milliseconds in a day.
pub const MS_PER_DAY: f64 = 86_400_000.0;

/// The largest time value, in milliseconds either side of 1970.
pub const MAX_TIME: f64 = 8.64e15;

/// `MakeTime`.
///
/// ```
/// assert_eq!(outrigger_vm::text::date::calendar::make_time(1.0, 2.0, 3.0, 4.0), 3_723_004.0);
/// ```
pub fn make_time(hour: f64, minute: f64, second: f64, millisecond: f64) -> f64 {
    if ![hour, minute, second, millisecond].iter().all(|part| part.is_finite()) {
        return f64::NAN;
    }
    let whole = to_integer_or_infinity;
    ((whole(hour) * 3_600_000.0 + whole(minute) * 60_000.0) + whole(second) * 1000.0) + whole(millisecond)
}

/// `MakeDay`: days since 1970, NaN when the year is far outside what a date can hold. `month` counts from zero.
pub fn make_day(year: f64, month: f64, date: f64) -> f64 {
    if ![year, month, date].iter().all(|part| part.is_finite()) {
        return f64::NAN;
    }
    let (year, month, date) =
        (to_integer_or_infinity(year), to_integer_or_infinity(month), to_integer_or_infinity(date));
    // Dates end at the year 275760; a month may move the year by as much as its own size.
    if year.abs() > 1e8 || month.abs() > 1e8 {
        return f64::NAN;
    }
    let months = year as i64 * 12 + month as i64;
    days_before(months.div_euclid(12), months.rem_euclid(12) as u8) as f64 + date - 1.0
}

/// `MakeDate`.
pub fn make_date(day: f64, time: f64) -> f64 {
    let value = day * MS_PER_DAY + time;
    if value.is_finite() { value } else { f64::NAN }
}

/// `TimeClip`.
pub fn time_clip(time: f64) -> f64 {
    if time.abs() <= MAX_TIME { to_integer_or_infinity(time) } else { f64::NAN }
}

/// `MakeFullYear`: 0 to 99 are in the twentieth century.
pub fn make_full_year(year: f64) -> f64 {
    if year.is_nan() {
        return f64::NAN;
    }
    let whole = to_integer_or_infinity(year);
    if (0.0..=99.0).contains(&whole) { 1900.0 + whole } else { whole }
}

/// The parts of a time value, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The astronomical year: there is a year zero.
    pub year: i32,
    /// 0 is January.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 is Sunday.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999.
    pub millisecond: u16,
}

impl Fields {
    /// `None` when `time` is NaN or outside the range of dates, give or take a day for time zones.
    pub fn of(time: f64) -> Option<Fields> {
        if time.is_nan() || time.abs() > MAX_TIME + MS_PER_DAY {
            return None;
        }
        let time = time as i64;
        let (days, rest) = (time.div_euclid(86_400_000), time.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        Some(Fields {
            year,
            month,
            day,
            weekday: (days + 4).rem_euclid(7) as u8,
            hour: (rest / 3_600_000) as u8,
            minute: (rest / 60_000 % 60) as u8,
            second: (rest / 1000 % 60) as u8,
            millisecond: (rest % 1000) as u16,
        })
    }
}

/// Days from 1970 to the first of a month; `month` counts from zero.
fn days_before(year: i64, month: u8) -> i64 {
    // Years that start in March have their leap day at the end.
    let (year, month) =
        if month < 2 { (year - 1, i64::from(month) + 10) } else { (year, i64::from(month) - 2) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 - 719_468
}

/// The date that is so many days after 1970-01-01.
fn civil(days: i64) -> (i32, u8, u8) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * month + 2) / 5 + 1) as u8;
    let year = year_of_era + era * 400;
    if month < 10 { (year as i32, month as u8 + 2, day) } else { (year as i32 + 1, month as u8 - 10, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_that_a_date_can_hold_comes_back() {
        for day in (-100_000_000i64..=100_000_000).step_by(97) {
            let fields = Fields::of(day as f64 * MS_PER_DAY).expect("in range");
            let again = make_day(f64::from(fields.year), f64::from(fields.month), f64::from(fields.day));
            assert_eq!(again, day as f64);
        }
    }

    #[test]
    fn time_values_end_at_their_limit() {
        assert_eq!(time_clip(MAX_TIME), MAX_TIME);
        assert!(time_clip(MAX_TIME + 1.0).is_nan());
        assert!(time_clip(-0.0).is_sign_positive());
        assert!(make_day(f64::INFINITY, 0.0, 1.0).is_nan());
        assert!(make_day(1e300, -1e300, 1.0).is_nan());
        assert_eq!(make_day(1970.0, 12.0, 0.0), 364.0);
        assert!(Fields::of(f64::NAN).is_none());
    }
}
