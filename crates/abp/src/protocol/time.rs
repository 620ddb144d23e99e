//! Points in time as the contract spells them: RFC 3339 with an offset, read leniently, written in one way.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// A point in time. Written in UTC with the fewest of 0, 3, 6 or 9 digits that hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Since 1970-01-01T00:00:00Z.
    seconds: i64,
    /// A thousand million and more are a leap second.
    nanos: u32,
}

/// A text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is written as 2026-01-31T12:00:00Z, with an offset")]
pub struct TimeError;

const SECOND: u32 = 1_000_000_000;

/// The longest canonical spelling, with room for years of six digits.
const LONGEST: usize = 40;

impl Timestamp {
    /// What the clock of this machine says.
    #[must_use]
    pub fn now() -> Self {
        // A clock before 1970 is wrong anyway.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
    }

    /// So many milliseconds after 1970.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        let nanos = u32::try_from(millis.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
        Self { seconds: millis.div_euclid(1000), nanos }
    }

    /// Milliseconds since 1970, rounded down.
    #[must_use]
    pub fn unix_millis(&self) -> i64 {
        self.seconds.saturating_mul(1000).saturating_add(i64::from(self.nanos / 1_000_000))
    }

    /// How long after `earlier` this is; zero if it is before.
    #[must_use]
    pub fn since(&self, earlier: Self) -> Duration {
        let nanos = |time: &Self| i128::from(time.seconds) * i128::from(SECOND) + i128::from(time.nanos);
        let between = u128::try_from(nanos(self) - nanos(&earlier)).unwrap_or(0);
        let seconds = u64::try_from(between / u128::from(SECOND)).unwrap_or(u64::MAX);
        Duration::new(seconds, (between % u128::from(SECOND)) as u32)
    }

    /// This and so much more.
    #[must_use]
    pub fn after(&self, duration: Duration) -> Self {
        let nanos = self.nanos % SECOND + duration.subsec_nanos();
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let carry = i64::from(nanos / SECOND) + i64::from(self.nanos / SECOND);
        Self { seconds: self.seconds.saturating_add(seconds).saturating_add(carry), nanos: nanos % SECOND }
    }

    /// Reads RFC 3339. A space may stand for the `T`, the colon of the offset may be missing, and digits past the ninth
    /// are dropped; an offset must be there.
    ///
    /// # Errors
    /// When it is not a time.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        Self::read(text.as_bytes()).ok_or(TimeError)
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (head, rest) = text.split_first_chunk::<19>()?;
        let at = |place: usize| match head[place] {
            digit @ b'0'..=b'9' => Some(u32::from(digit - b'0')),
            _ => None,
        };
        let two = |place: usize| Some(at(place)? * 10 + at(place + 1)?);
        let separators = (head[4], head[7], head[13], head[16]) == (b'-', b'-', b':', b':');
        if !separators || !matches!(head[10], b'T' | b't' | b' ') {
            return None;
        }
        let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
        let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (mut nanos, rest) = fraction(rest)?;
        let leap = second / 60;
        nanos += leap * SECOND;
        let of_day = i64::from(hour * 3600 + minute * 60 + second - leap);
        Some(Self { seconds: days(year, month, day) * 86_400 + of_day - offset(rest)?, nanos })
    }

    /// Writes the canonical spelling.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut text = [0; LONGEST];
        let length = self.spell(&mut text);
        out.extend_from_slice(&text[..length]);
    }

    fn spell(&self, text: &mut [u8; LONGEST]) -> usize {
        let leap = self.nanos / SECOND;
        let (year, month, day) = civil(self.seconds.div_euclid(86_400));
        let of_day = u32::try_from(self.seconds.rem_euclid(86_400)).unwrap_or(0);
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            text[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let pair = |number: u32| [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
        match u32::try_from(year) {
            Ok(year @ 0..=9999) => {
                put(&pair(year / 100));
                put(&pair(year % 100));
            }
            // Only an offset at the edge of the calendar, or a number from elsewhere, gets here.
            Ok(_) | Err(_) => {
                put(format!("{:+05}", year.clamp(-999_999_999_999, 999_999_999_999)).as_bytes())
            }
        }
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60 + leap);
        for (separator, number) in [(b'-', month), (b'-', day), (b'T', hour), (b':', minute), (b':', second)]
        {
            put(&[separator]);
            put(&pair(number));
        }
        let nanos = self.nanos % SECOND;
        if nanos > 0 {
            let digits = match nanos {
                _ if nanos.is_multiple_of(1_000_000) => 3,
                _ if nanos.is_multiple_of(1000) => 6,
                _ => 9,
            };
            let mut spelled = [b'0'; 9];
            let mut rest = nanos;
            for digit in spelled.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            put(b".");
            put(&spelled[..digits]);
        }
        put(b"Z");
        at
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; LONGEST];
        let length = self.spell(&mut text);
        text[..length].iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// The nanoseconds of `.123…`, and what follows it.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.', rest)) = text.split_first() else { return Some((0, text)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let digits = rest[..count].iter().chain(std::iter::repeat(&b'0')).take(9);
    let nanos = digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some((nanos, &rest[count..]))
}

/// The seconds of `Z`, `+02:00` or `-0330`.
fn offset(text: &[u8]) -> Option<i64> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let (sign, hour, minute) = match *text {
        [b'Z' | b'z'] => return Some(0),
        [sign, h1, h0, b':', m1, m0] | [sign, h1, h0, m1, m0] => {
            (sign, digit(h1)? * 10 + digit(h0)?, digit(m1)? * 10 + digit(m0)?)
        }
        _ => return None,
    };
    if hour > 23 || minute > 59 {
        return None;
    }
    match sign {
        b'+' => Some(hour * 3600 + minute * 60),
        b'-' => Some(-hour * 3600 - minute * 60),
        _ => None,
    }
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date (Howard Hinnant's `days_from_civil`).
fn days(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year =
        (153 * (i64::from(month) + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day after 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    // Within 0..146,097, so 32 bits hold everything below.
    let day_of_era = shifted.rem_euclid(146_097) as u32;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (i64::from(year_of_era) + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> String {
        Timestamp::parse(text).map_or_else(|error| error.to_string(), |time| time.to_string())
    }

    #[test]
    fn a_time_is_written_in_utc_with_the_fewest_digits() {
        for (text, expected) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T02:00:00.1200+02:00", "2026-01-01T00:00:00.120Z"),
            ("2026-01-01T00:00:00.1234Z", "2026-01-01T00:00:00.123400Z"),
            ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456789Z"),
            ("2026-01-01T00:00:00.1234567891Z", "2026-01-01T00:00:00.123456789Z"),
            ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01 00:00:00z", "2026-01-01T00:00:00Z"),
            ("2026-01-01t00:00:00-0330", "2026-01-01T03:30:00Z"),
            ("2024-02-29T23:59:60.5Z", "2024-02-29T23:59:60.500Z"),
            ("0000-01-01T00:00:00+00:01", "-0001-12-31T23:59:00Z"),
            ("9999-12-31T23:59:59-00:01", "+10000-01-01T00:00:59Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(again(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+0:00",
            "2026-01-01T00:00:00ZZ",
            "2026-1-1T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "+026-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), Err(TimeError), "{text}");
        }
    }

    #[test]
    fn every_day_of_six_centuries_is_read_as_it_is_written() {
        for day in (-140_000..140_000).step_by(7) {
            let time = Timestamp { seconds: day * 86_400 + 86_399, nanos: 1 };
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }

    #[test]
    fn times_are_added_and_subtracted() {
        let start = Timestamp::from_unix_millis(-1);
        assert_eq!(start.to_string(), "1969-12-31T23:59:59.999Z");
        let later = start.after(Duration::from_millis(1501));
        assert_eq!((later.unix_millis(), later.since(start)), (1500, Duration::from_millis(1501)));
        assert_eq!(start.since(later), Duration::ZERO);
    }
}
