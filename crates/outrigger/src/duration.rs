//! How long something may take, as it is written on a command line.

use std::time::Duration;

/// Reads `250ms`, `5s`, `10m`, `2h`, `7d`; a bare number is refused, because nobody agrees on what it means.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" if number == "0" => 1.0,
        "" => return Err(format!("`{text}` has no unit; write 250ms, 5s, 10m, 2h or 7d")),
        _ => return Err(format!("`{unit}` is not a unit of time; write 250ms, 5s, 10m, 2h or 7d")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a time; write 250ms, 5s, 10m, 2h or 7d"))?;
    Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| format!("`{text}` is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let check = |text: &str, expected: Result<u64, &str>| match (duration(text), expected) {
            (Ok(got), Ok(millis)) => assert_eq!(got, Duration::from_millis(millis), "{text}"),
            (Err(got), Err(part)) => assert!(got.contains(part), "{text}: {got}"),
            (got, expected) => panic!("{text}: got {got:?}, expected {expected:?}"),
        };
        check("250ms", Ok(250));
        check("5s", Ok(5_000));
        check("1.5s", Ok(1_500));
        check("10m", Ok(600_000));
        check("2h", Ok(7_200_000));
        check("0", Ok(0));
        check("5", Err("has no unit"));
        check("7d", Ok(604_800_000));
        check("5y", Err("not a unit"));
        check("s", Err("not a time"));
        check("1.2.3s", Err("not a time"));
        check("99999999999999999999h", Err("too long"));
    }
}
