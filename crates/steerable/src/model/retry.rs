//! When a call is made again, and how long a provider wants us to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::failure::Failure;
use super::request::Patience;

/// How long to wait after the attempt with this number failed; `None` if it is not made again.
pub(super) fn delay(failure: &Failure, attempt: u32, patience: &Patience) -> Option<Duration> {
    if !failure.is_retryable() || attempt >= patience.attempts {
        return None;
    }
    let own = jittered(backoff(attempt, patience), random());
    match failure.retry_after {
        Some(wish) if wish > patience.longest_retry_after => None,
        Some(wish) => Some(wish.max(own)),
        None => Some(own),
    }
}

/// The wait after an attempt: the base, doubled with every further one, up to the longest.
fn backoff(attempt: u32, patience: &Patience) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    patience.base_delay.saturating_mul(doubled).min(patience.max_delay)
}

/// A wait, up to a fifth shorter or longer, so that many clients do not come back at once.
fn jittered(delay: Duration, random: u32) -> Duration {
    let share = f64::from(random) / f64::from(u32::MAX);
    delay.mul_f64(0.8 + 0.4 * share)
}

fn random() -> u32 {
    // Without randomness there is no jitter, which only matters to the provider.
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

/// How long the headers of an answer ask us to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date.
pub(super) fn wish(headers: &reqwest::header::HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    let milliseconds = text("retry-after-ms").and_then(seconds).map(|wait| wait / 1000);
    milliseconds.or_else(|| {
        let wish = text("retry-after")?;
        seconds(wish).or_else(|| Some(date(wish)?.duration_since(now).unwrap_or_default()))
    })
}

/// A date as HTTP writes it, `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    let mut number = |most: u64| words.next()?.parse::<u64>().ok().filter(|number| *number <= most);
    let day = number(31).filter(|day| *day > 0)?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
    let mut number = |most: u64| words.next()?.parse::<u64>().ok().filter(|number| *number <= most);
    let year = number(9999).filter(|year| *year >= 1970)?;
    let (hour, minute, second) = (number(23)?, number(59)?, number(60)?);
    if words.next() != Some("GMT") || words.next().is_some() {
        return None;
    }
    // Years begin in March here, so that the day that leap years add is the last.
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let days = shifted_year * 365 + leap_days + (shifted_month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(UNIX_EPOCH + Duration::from_secs(((days * 24 + hour) * 60 + minute) * 60 + second))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;

    use super::*;
    use crate::model::FailureKind;

    fn failed(kind: FailureKind, retry_after: Option<u64>) -> Failure {
        Failure { retry_after: retry_after.map(Duration::from_secs), ..Failure::new(kind, "no") }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<u128> = (1..8).map(|n| backoff(n, &Patience::STANDARD).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff(u32::MAX, &Patience::STANDARD), Duration::from_secs(5));
    }

    #[test]
    fn a_wait_is_at_most_a_fifth_shorter_or_longer() {
        let wait = Duration::from_millis(1000);
        assert_eq!(jittered(wait, 0), Duration::from_millis(800));
        assert_eq!(jittered(wait, u32::MAX), Duration::from_millis(1200));
    }

    #[test]
    fn the_provider_may_ask_for_more_but_not_for_too_much() {
        let asked =
            |seconds: u64| delay(&failed(FailureKind::RateLimit, Some(seconds)), 1, &Patience::STANDARD);
        assert_eq!(asked(180), Some(Duration::from_secs(180)));
        assert_eq!(asked(181), None);
        assert!(asked(0).unwrap() >= Duration::from_millis(160));
    }

    #[test]
    fn the_last_attempt_and_what_cannot_succeed_are_not_made_again() {
        let of = |kind, attempt| delay(&failed(kind, None), attempt, &Patience::STANDARD).is_some();
        assert!(of(FailureKind::Transport, 2));
        assert!(!of(FailureKind::Transport, 3));
        assert!(!of(FailureKind::Auth, 1));
        assert!(!of(FailureKind::InvalidRequest, 1));
        assert!(!of(FailureKind::ContextOverflow, 1));
    }

    #[test]
    fn a_wish_is_seconds_milliseconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let wished = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            wish(&headers, now)
        };
        assert_eq!(wished("retry-after", " 7 "), Some(Duration::from_secs(7)));
        assert_eq!(wished("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wished("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(wished("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(wished("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wished("retry-after", "-1"), None);
        assert_eq!(wished("retry-after", "soon"), None);
        assert_eq!(wished("retry-after", "1e400"), None);
        assert_eq!(wished("x", "1"), None);
    }

    #[test]
    fn dates_are_days_since_the_epoch() {
        let seconds = |text| date(text).map(|at| at.duration_since(UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(seconds("Sat, 32 Jan 2000 00:00:00 GMT"), None);
        assert_eq!(seconds("Sat, 01 Foo 2000 00:00:00 GMT"), None);
    }
}
