//! The small notations of the command line: `5s`, `64M`, `line:ready`, `silence:45s`, `5/10m`, `NAME=VALUE`.
//!
//! Each error names what was read, what is understood, and shows an example.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::duration;

/// `--ready`: what on the child's streams means that it is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReadyArg {
    None,
    Line(String),
    Json { pointer: String, value: String },
    Stderr(String),
}

/// `--heartbeat`: how we know that it is alive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HeartbeatArg {
    None,
    Silence(Duration),
    Beat { text: String, within: Duration },
    Ping { every: Duration, misses: u32 },
}

/// `--crash-limit`: how many crashes in which time are a crash loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CrashLimit {
    pub(crate) count: u32,
    pub(crate) window: Duration,
}

/// A number of bytes, as `512`, `64K`, `64M` or `2G`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

/// `--env`: pass one of our variables on, or set one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum EnvArg {
    Pass(String),
    Set(String, OsString),
}

impl FromStr for ReadyArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HELP: &str = "use none, line:TEXT, json:/FIELD=VALUE or stderr:PREFIX";
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            Some(("line", rest)) if !rest.is_empty() => Ok(Self::Line(rest.to_owned())),
            Some(("stderr", rest)) if !rest.is_empty() => Ok(Self::Stderr(rest.to_owned())),
            Some(("json", rest)) => match rest.split_once('=') {
                Some((pointer, value)) if pointer.starts_with('/') => {
                    Ok(Self::Json { pointer: pointer.to_owned(), value: value.to_owned() })
                }
                _ => Err(format!("`{rest}` is not /FIELD=VALUE; for example json:/type=ready")),
            },
            _ => Err(format!("`{text}` is not a ready gate; {HELP}")),
        }
    }
}

impl FromStr for HeartbeatArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HELP: &str = "use none, silence:45s, beat:TEXT:15s, ping:5s or ping:5s:3";
        let rest = |prefix: &str| text.strip_prefix(prefix);
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(limit) = rest("silence:") {
            return Ok(Self::Silence(positive(limit)?));
        }
        if let Some((words, limit)) = rest("beat:").and_then(|rest| rest.rsplit_once(':')) {
            return Ok(Self::Beat { text: words.to_owned(), within: positive(limit)? });
        }
        if let Some(rest) = rest("ping:") {
            let (every, misses) = rest.split_once(':').unwrap_or((rest, "3"));
            let misses = misses.parse().ok().filter(|misses| *misses > 0);
            let misses =
                misses.ok_or_else(|| format!("`{rest}` does not end in a count of misses; {HELP}"))?;
            return Ok(Self::Ping { every: positive(every)?, misses });
        }
        Err(format!("`{text}` is not a heartbeat rule; {HELP}"))
    }
}

impl FromStr for CrashLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not COUNT/TIME; for example 5/10m");
        let (count, window) = text.split_once('/').ok_or_else(wrong)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
        Ok(Self { count, window: positive(window)? })
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a size; write 512, 64K, 64M or 2G");
        let (number, factor) = match text.as_bytes().last() {
            Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
            Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
            Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
            _ => (text, 1u64),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

impl FromStr for EnvArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("", _)) => Err(format!("`{text}` has no name before `=`")),
            Some((name, value)) => Ok(Self::Set(name.to_owned(), value.into())),
            None if text.is_empty() => Err("an empty name; write NAME or NAME=VALUE".to_owned()),
            None => Ok(Self::Pass(text.to_owned())),
        }
    }
}

fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("`{text}` must be more than nothing")),
        some => Ok(some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_gates_are_read_and_mistakes_are_explained() {
        let check = |text: &str, expected: ReadyArg| assert_eq!(text.parse(), Ok(expected));
        check("none", ReadyArg::None);
        check("line:listening on :80", ReadyArg::Line("listening on :80".to_owned()));
        check("stderr:__READY__:", ReadyArg::Stderr("__READY__:".to_owned()));
        check("json:/type=ready", ReadyArg::Json { pointer: "/type".to_owned(), value: "ready".to_owned() });
        for wrong in ["", "line", "line:", "json:type=ready", "json:/type", "socket:/x"] {
            let error = wrong.parse::<ReadyArg>().expect_err(wrong);
            assert!(error.contains("json:/"), "{wrong}: {error}");
        }
    }

    #[test]
    fn heartbeats_crash_limits_sizes_and_variables_are_read() {
        let secs = Duration::from_secs;
        assert_eq!("silence:45s".parse(), Ok(HeartbeatArg::Silence(secs(45))));
        assert_eq!(
            "beat:a:b:15s".parse(),
            Ok(HeartbeatArg::Beat { text: "a:b".to_owned(), within: secs(15) })
        );
        assert_eq!("ping:5s".parse(), Ok(HeartbeatArg::Ping { every: secs(5), misses: 3 }));
        assert_eq!("ping:5s:2".parse(), Ok(HeartbeatArg::Ping { every: secs(5), misses: 2 }));
        assert!("ping:5s:0".parse::<HeartbeatArg>().is_err());
        assert!("silence:0s".parse::<HeartbeatArg>().is_err());
        assert_eq!("5/10m".parse(), Ok(CrashLimit { count: 5, window: secs(600) }));
        assert!("0/10m".parse::<CrashLimit>().is_err());
        assert_eq!("64M".parse(), Ok(Bytes(64 << 20)));
        assert!("99999999999G".parse::<Bytes>().is_err());
        assert_eq!("A=b=c".parse(), Ok(EnvArg::Set("A".to_owned(), "b=c".into())));
        assert_eq!("A".parse(), Ok(EnvArg::Pass("A".to_owned())));
        assert!("=x".parse::<EnvArg>().is_err());
    }
}
