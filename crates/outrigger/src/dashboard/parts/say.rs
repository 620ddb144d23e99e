//! Numbers as people say them.

use std::time::Duration;

/// How long: `820 ms`, `1.2 s`, `3m 05s`, `2h 10m`, `3d 4h`.
pub(in super::super) fn span(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 if length.as_millis() < 1000 => format!("{} ms", length.as_millis()),
        0..10 => format!("{:.1} s", length.as_millis() as f64 / 1000.0),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// How much: `512 B`, `3.4 KB`, `1.2 MB`.
pub(in super::super) fn bytes(number: u64) -> String {
    let of = |unit: u64| number as f64 / unit as f64;
    match number {
        0..1000 => format!("{number} B"),
        1000..1_000_000 => format!("{:.1} KB", of(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", of(1_000_000)),
        _ => format!("{:.1} GB", of(1_000_000_000)),
    }
}

/// How many: `987`, `12.3k`, `4.5M`.
pub(in super::super) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// What it cost, or a dash when it cost nothing that anybody counted.
pub(in super::super) fn money(usd: f64) -> String {
    match usd {
        usd if !usd.is_finite() || usd <= 0.0 => "–".to_owned(),
        usd if usd < 0.01 => format!("${usd:.4}"),
        usd => format!("${usd:.2}"),
    }
}

/// The beginning of a text that may be long, and whether that is all of it.
pub(in super::super) fn beginning(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_do() {
        let of = |ms: u64| span(Duration::from_millis(ms));
        assert_eq!([of(0), of(999), of(1000), of(9999)], ["0 ms", "999 ms", "1.0 s", "10.0 s"]);
        assert_eq!(
            [of(59_000), of(60_000), of(3_600_000), of(90_000_000)],
            ["59 s", "1m 00s", "1h 00m", "1d 1h"]
        );
        assert_eq!([bytes(999), bytes(1000), bytes(2_500_000)], ["999 B", "1.0 KB", "2.5 MB"]);
        assert_eq!([count(9_999), count(10_000), count(1_000_000)], ["9999", "10.0k", "1.0M"]);
        assert_eq!([money(0.0), money(f64::NAN), money(0.0031), money(1.5)], ["–", "–", "$0.0031", "$1.50"]);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(beginning("aü", 3), ("aü", false));
        assert_eq!(beginning("aüb", 2), ("a", true));
    }
}
