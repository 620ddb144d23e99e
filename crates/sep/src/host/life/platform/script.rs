//! Scripts of what a platform does and when: `t=0 fg; t=1.2 bg; t=1.3 fg; t=5 trim=critical; t=9 reclaim`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{PlatformSignal, TrimLevel};

/// A script has no more entries.
pub const MAX_SCRIPT_ENTRIES: usize = 10_000;
const SIGNALS: &str = "fg, bg, trim (or trim=moderate, trim=low, trim=critical), freeze, thaw, reclaim";
/// A year is as good as never, and keeps every sum within its type.
const MAX_SECONDS: u64 = 366 * 24 * 60 * 60;

/// What a platform does, and how long after its beginning. Times never go backwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    entries: Vec<(Duration, PlatformSignal)>,
}

/// Why a script cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {place} of the script, `{entry}`: {trouble}")]
pub struct ScriptError {
    /// Which entry, from 1.
    pub place: usize,
    /// Its text, cut and escaped.
    pub entry: String,
    /// What is wrong with it.
    pub trouble: ScriptTrouble,
}

/// What is wrong with an entry of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptTrouble {
    /// It does not have the right form.
    #[error("an entry is a time and a signal, as in `t=1.5 bg`")]
    Form,
    /// It does not begin with a time.
    #[error(
        "`{0}` is not a time; times are seconds after the beginning, as in `t=0` or `t=1.25`, up to a year"
    )]
    Time(String),
    /// It does not end with a signal.
    #[error("`{0}` is not a signal; there are {SIGNALS}")]
    Signal(String),
    /// Time goes backwards.
    #[error("it comes before the entry in front of it, which is at t={0}")]
    Backwards(String),
    /// There are too many.
    #[error("a script has at most {MAX_SCRIPT_ENTRIES} entries")]
    TooMany,
}

impl Script {
    /// What happens, and how long after the beginning, in order.
    #[must_use]
    pub fn entries(&self) -> &[(Duration, PlatformSignal)] {
        &self.entries
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut entries: Vec<(Duration, PlatformSignal)> = Vec::new();
        for (index, entry) in text.split([';', '\n']).map(str::trim).enumerate() {
            if entry.is_empty() {
                continue;
            }
            let wrong = |trouble| ScriptError { place: index + 1, entry: cut(entry), trouble };
            let (at, signal) = parse_entry(entry).map_err(wrong)?;
            match entries.last() {
                Some((before, _)) if at < *before => {
                    return Err(wrong(ScriptTrouble::Backwards(before.as_secs_f64().to_string())));
                }
                Some(_) if entries.len() == MAX_SCRIPT_ENTRIES => return Err(wrong(ScriptTrouble::TooMany)),
                Some(_) | None => entries.push((at, signal)),
            }
        }
        Ok(Self { entries })
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (at, signal)) in self.entries.iter().enumerate() {
            let gap = if index == 0 { "" } else { "; " };
            write!(f, "{gap}t={} {signal}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

impl fmt::Display for PlatformSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreground => f.write_str("fg"),
            Self::Background => f.write_str("bg"),
            Self::TrimMemory(level) => write!(f, "trim={level}"),
            Self::Freeze => f.write_str("freeze"),
            Self::Thaw => f.write_str("thaw"),
            Self::Reclaimed => f.write_str("reclaim"),
        }
    }
}

fn parse_entry(entry: &str) -> Result<(Duration, PlatformSignal), ScriptTrouble> {
    let mut words = entry.split_whitespace();
    let (Some(time), Some(signal), None) = (words.next(), words.next(), words.next()) else {
        return Err(ScriptTrouble::Form);
    };
    let at = time.strip_prefix("t=").and_then(seconds).ok_or_else(|| ScriptTrouble::Time(cut(time)))?;
    let signal = parse_signal(signal).ok_or_else(|| ScriptTrouble::Signal(cut(signal)))?;
    Ok((at, signal))
}

/// Decimal seconds, exact: a float would put 1.3 a little before itself.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MAX_SECONDS)?;
    let nanos: u32 = format!("{part:0<9}").parse().ok()?;
    Some(Duration::new(whole, nanos))
}

fn parse_signal(word: &str) -> Option<PlatformSignal> {
    match word {
        "fg" => Some(PlatformSignal::Foreground),
        "bg" => Some(PlatformSignal::Background),
        "freeze" => Some(PlatformSignal::Freeze),
        "thaw" => Some(PlatformSignal::Thaw),
        "reclaim" => Some(PlatformSignal::Reclaimed),
        "trim" => Some(PlatformSignal::TrimMemory(TrimLevel::Moderate)),
        _ => {
            let level = word.strip_prefix("trim=")?;
            TrimLevel::parse(level).ok().map(PlatformSignal::TrimMemory)
        }
    }
}

fn cut(text: &str) -> String {
    text.escape_debug().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_is_written() {
        let text = "t=0 fg; t=1.2 bg; t=1.25 trim=critical; t=3 freeze; t=4 thaw; t=4 reclaim";
        let script: Script = text.parse().expect("a good script");
        assert_eq!(script.to_string(), text);
        assert_eq!(script.entries()[1], (Duration::from_millis(1200), PlatformSignal::Background));
        let loose: Script =
            " t=0 fg ;\n\n t=1.20 bg;;t=1.250000000 trim=critical\nt=3 freeze; t=4 thaw; t=4 reclaim;"
                .parse()
                .expect("white space and empty entries are nothing");
        assert_eq!(loose, script);
        assert_eq!("".parse(), Ok(Script::default()));
    }

    #[test]
    fn a_wrong_entry_is_named_and_explained() {
        let wrong = |text: &str| text.parse::<Script>().expect_err(text).to_string();
        insta::assert_snapshot!(wrong("t=0 fg; t=1.2 sleep"), @"entry 2 of the script, `t=1.2 sleep`: `sleep` is not a signal; there are fg, bg, trim (or trim=moderate, trim=low, trim=critical), freeze, thaw, reclaim");
        insta::assert_snapshot!(wrong("1.2 bg"), @"entry 1 of the script, `1.2 bg`: `1.2` is not a time; times are seconds after the beginning, as in `t=0` or `t=1.25`, up to a year");
        insta::assert_snapshot!(wrong("t=5 bg; t=4.5 fg"), @"entry 2 of the script, `t=4.5 fg`: it comes before the entry in front of it, which is at t=5");
        insta::assert_snapshot!(wrong("t=5"), @"entry 1 of the script, `t=5`: an entry is a time and a signal, as in `t=1.5 bg`");
        for text in [
            "t=-1 fg",
            "t=1e3 fg",
            "t=. fg",
            "t=1. fg",
            "t=1.0000000001 fg",
            "t=99999999 fg",
            "t=1 fg bg",
            "t=1 trim=all",
            "t=1 FG",
        ] {
            assert!(text.parse::<Script>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_script_has_as_many_entries_as_it_may_and_not_one_more() {
        let script = "t=1 fg;".repeat(MAX_SCRIPT_ENTRIES);
        assert!(script.parse::<Script>().is_ok());
        let error = format!("{script}t=1 bg").parse::<Script>().expect_err("one too many");
        assert_eq!(error.trouble, ScriptTrouble::TooMany);
    }
}
