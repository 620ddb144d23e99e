//! The exit report: what ended, why, what it said last, and what happens now. One text for a tired person, one object for
//! a program.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::launch::{Status, signal_name};
use crate::logs::LogLine;
use crate::state::{Cause, Final, Incarnation, Next, Phase};
use crate::tree::Pid;

/// Everything worth knowing about the end of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The child.
    pub name: String,
    /// Which of its processes.
    pub incarnation: Incarnation,
    /// Its process id; `None` if it never ran.
    pub pid: Option<Pid>,
    /// The phase it was in when its end was decided.
    pub died_in: Phase,
    /// Why it ended.
    pub cause: Cause,
    /// How it ended; `None` if it never ran.
    pub status: Option<Status>,
    /// The stable code of the launch error, if it never ran.
    pub launch_error: Option<&'static str>,
    /// What else is known: the spawn error, the protocol violation, the gate that never opened.
    pub detail: Option<String>,
    /// From spawn to reap.
    pub runtime: Duration,
    /// Its last lines on standard error.
    pub stderr: Vec<LogLine>,
    /// Its last lines on standard output, if that goes to the log or came before the ready line; or the last frames that
    /// the session kept.
    pub stdout: Vec<LogLine>,
    /// Processes that it left behind; they were killed.
    pub leftovers: u32,
    /// Processor time of its whole tree.
    pub cpu: Duration,
    /// The largest resident set of any one process of its tree.
    pub max_rss_bytes: u64,
    /// What happens now.
    pub next: Next,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, incarnation, .. } = self;
        writeln!(f, "`{name}` {incarnation} {}", Headline(self))?;
        if let Some(detail) = &self.detail {
            writeln!(f, "  why: {}", Plain(detail))?;
        }
        if let Some(pid) = self.pid {
            writeln!(f, "  ran: {} as process {pid}", Span(self.runtime))?;
        }
        match self.leftovers {
            0 => {}
            1 => writeln!(f, "  left behind: 1 process, killed")?,
            several => writeln!(f, "  left behind: {several} processes, killed")?,
        }
        write_lines(f, "stdout", &self.stdout)?;
        write_lines(f, "stderr", &self.stderr)?;
        write!(f, "  next: {}", NextText(self))
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, stream: &str, lines: &[LogLine]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "  last lines on {stream}:")?;
    for LogLine { text, cut_bytes } in lines {
        match cut_bytes {
            0 => writeln!(f, "    | {}", Plain(text))?,
            cut => writeln!(f, "    | {} … ({cut} more bytes)", Plain(text))?,
        }
    }
    Ok(())
}

/// Text of a stranger: nothing in it may move the cursor, change colours or turn the reading direction.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\t' => write!(f, "\t")?,
                '\n' => write!(f, "\n       ")?,
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", character.escape_unicode())?
                }
                control if control.is_control() => write!(f, "{}", control.escape_default())?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// The first line after the name: what happened, in the past tense.
struct Headline<'a>(&'a Report);

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = self.0.status.map_or_else(|| "without a process".to_owned(), |status| status.to_string());
        match self.0.cause {
            Cause::Requested => write!(f, "was stopped as requested ({ended})"),
            Cause::Restarted => write!(f, "was stopped for a restart ({ended})"),
            Cause::Voluntary => write!(f, "finished ({ended})"),
            // Many programs say with their exit code that they could not do what was asked; that is no crash to a person.
            Cause::Crash => match self.0.status {
                Some(Status::Code(_)) => write!(f, "failed with {ended}"),
                Some(Status::Signal(_) | Status::Unknown) | None => write!(f, "crashed with {ended}"),
            },
            Cause::StartupTimeout => f.write_str("was not ready in time and was killed"),
            Cause::ExitBeforeReady => write!(f, "ended before it was ready, with {ended}"),
            Cause::Unhealthy => f.write_str("stopped answering and was killed"),
            Cause::WriteStall => f.write_str("stopped reading its input and was killed"),
            Cause::ChannelLost => f.write_str("closed its channel but kept running, and was killed"),
            Cause::ProtocolViolation => f.write_str("broke its protocol and was killed"),
            Cause::Incompatible => f.write_str("speaks a version that this host does not, and was killed"),
            Cause::SpawnFailed | Cause::LaunchFailed => f.write_str("could not be started"),
            Cause::HostResource => f.write_str("could not be started: the host is short of resources"),
            Cause::Sandbox => f.write_str("was not started: its sandbox cannot be built here"),
        }
    }
}

/// What happens now, in one sentence.
struct NextText<'a>(&'a Report);

impl fmt::Display for NextText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.next {
            Next::Restart { after, attempt } => write!(f, "restart in {} (attempt {attempt})", Span(after)),
            Next::Respawn => f.write_str("a fresh process, now"),
            Next::Final(Final::Requested) => f.write_str("nothing, it was asked to stop"),
            Next::Final(Final::Voluntary) => f.write_str("nothing, it is done"),
            Next::Final(Final::NotRestarted(_)) => f.write_str("nothing, it is not to be restarted"),
            Next::Final(Final::Failed(_)) => f.write_str("gave up, because trying again cannot help"),
            Next::Final(Final::AttemptsExhausted(_)) => {
                f.write_str("gave up, because it was restarted as often as allowed and never became stable")
            }
            Next::Final(Final::CrashLoop(_)) => f.write_str("gave up, because it crashes in a loop"),
            Next::Final(Final::SlowCrash(_)) => {
                f.write_str("gave up, because it crashed too often over a long time")
            }
        }
    }
}

/// A duration for people: `3 ms`, `1.2 s`, `4 min 10 s`, `2 h 5 min`.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded first, so that 59.96 s becomes neither "60.0 s" nor "0 min 59 s".
        let millis = self.0.as_millis();
        let (tenths, seconds) = ((millis + 50) / 100, (millis + 500) / 1000);
        match seconds {
            _ if millis < 1000 => write!(f, "{millis} ms"),
            _ if tenths < 600 => write!(f, "{}.{} s", tenths / 10, tenths % 10),
            0..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600.. => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
        }
    }
}

/// The report as programs see it. Every name and every code in it is stable.
#[derive(Serialize)]
struct ReportJson<'a> {
    name: &'a str,
    incarnation: Incarnation,
    pid: Option<Pid>,
    died_in: &'static str,
    cause: &'static str,
    code: Option<i32>,
    signal: Option<i32>,
    signal_name: Option<&'static str>,
    launch_error: Option<&'static str>,
    detail: Option<&'a str>,
    runtime_ms: u64,
    stderr: &'a [LogLine],
    stdout: &'a [LogLine],
    leftovers: u32,
    cpu_ms: u64,
    max_rss_bytes: u64,
    next: NextJson,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum NextJson {
    Restart { after_ms: u64, attempt: u32 },
    Respawn,
    Final { reason: &'static str, clean: bool },
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (code, signal) = match self.status {
            Some(Status::Code(code)) => (Some(code), None),
            Some(Status::Signal(signal)) => (None, Some(signal)),
            Some(Status::Unknown) | None => (None, None),
        };
        let next = match self.next {
            Next::Restart { after, attempt } => NextJson::Restart { after_ms: whole_millis(after), attempt },
            Next::Respawn => NextJson::Respawn,
            Next::Final(why) => NextJson::Final { reason: why.code(), clean: why.is_clean() },
        };
        ReportJson {
            name: &self.name,
            incarnation: self.incarnation,
            pid: self.pid,
            died_in: self.died_in.code(),
            cause: self.cause.code(),
            code,
            signal,
            signal_name: signal.and_then(signal_name),
            launch_error: self.launch_error,
            detail: self.detail.as_deref(),
            runtime_ms: whole_millis(self.runtime),
            stderr: &self.stderr,
            stdout: &self.stdout,
            leftovers: self.leftovers,
            cpu_ms: whole_millis(self.cpu),
            max_rss_bytes: self.max_rss_bytes,
            next,
        }
        .serialize(serializer)
    }
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash() -> Report {
        let line = |text: &str, cut_bytes| LogLine { text: text.into(), cut_bytes };
        Report {
            name: "indexer".into(),
            incarnation: Incarnation(3),
            pid: Some(Pid::new(4711)),
            died_in: Phase::Ready,
            cause: Cause::Crash,
            status: Some(Status::Signal(11)),
            launch_error: None,
            detail: None,
            runtime: Duration::from_millis(250_400),
            stderr: vec![line("loading \u{1b}[31mmodel\u{1b}[0m", 0), line("{\"huge\":\"", 104_857)],
            stdout: Vec::new(),
            leftovers: 2,
            cpu: Duration::from_millis(1234),
            max_rss_bytes: 52_428_800,
            next: Next::Restart { after: Duration::from_millis(1187), attempt: 2 },
        }
    }

    #[test]
    fn a_crash_is_told_in_a_few_short_lines() {
        insta::assert_snapshot!(crash(), @r#"
        `indexer` #3 crashed with signal 11 (SIGSEGV)
          ran: 4 min 10 s as process 4711
          left behind: 2 processes, killed
          last lines on stderr:
            | loading \u{1b}[31mmodel\u{1b}[0m
            | {"huge":" … (104857 more bytes)
          next: restart in 1.2 s (attempt 2)
        "#);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_in_three_lines() {
        let report = Report {
            incarnation: Incarnation(1),
            pid: None,
            died_in: Phase::Starting,
            cause: Cause::SpawnFailed,
            status: None,
            launch_error: Some("program_not_found"),
            detail: Some("program `indexr` was not found; looked in /usr/bin".into()),
            runtime: Duration::ZERO,
            stderr: Vec::new(),
            leftovers: 0,
            next: Next::Final(Final::Failed(Cause::SpawnFailed)),
            ..crash()
        };
        insta::assert_snapshot!(report, @"
        `indexer` #1 could not be started
          why: program `indexr` was not found; looked in /usr/bin
          next: gave up, because trying again cannot help
        ");
    }

    #[test]
    fn every_cause_and_every_future_has_its_sentence() {
        let futures = [
            Next::Restart { after: Duration::from_millis(500), attempt: 1 },
            Next::Respawn,
            Next::Final(Final::Requested),
            Next::Final(Final::Voluntary),
            Next::Final(Final::NotRestarted(Cause::Crash)),
            Next::Final(Final::Failed(Cause::Sandbox)),
            Next::Final(Final::AttemptsExhausted(Cause::Crash)),
            Next::Final(Final::CrashLoop(Cause::Crash)),
            Next::Final(Final::SlowCrash(Cause::Crash)),
        ];
        let causes = Cause::ALL.map(|cause| format!("{cause}: {}", Headline(&Report { cause, ..crash() })));
        let futures = futures.map(|next| format!("next: {}", NextText(&Report { next, ..crash() })));
        insta::assert_snapshot!(causes.into_iter().chain(futures).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn programs_get_stable_names_and_codes() {
        insta::assert_json_snapshot!(crash());
        let last = Report {
            status: Some(Status::Code(3)),
            next: Next::Final(Final::CrashLoop(Cause::Crash)),
            ..crash()
        };
        let json = serde_json::to_value(&last).unwrap();
        assert_eq!((&json["code"], &json["signal"]), (&3.into(), &serde_json::Value::Null));
        assert_eq!(
            json["next"],
            serde_json::json!({"kind": "final", "reason": "crash_loop", "clean": false})
        );
    }

    #[test]
    fn spans_are_rounded_for_people() {
        let span = |millis| Span(Duration::from_millis(millis)).to_string();
        assert_eq!([span(0), span(999), span(1000), span(1187)], ["0 ms", "999 ms", "1.0 s", "1.2 s"]);
        assert_eq!([span(59_949), span(59_950), span(60_000)], ["59.9 s", "1 min 0 s", "1 min 0 s"]);
        assert_eq!(
            [span(3_599_499), span(3_599_500), span(7_500_000)],
            ["59 min 59 s", "1 h 0 min", "2 h 5 min"]
        );
    }

    #[test]
    fn text_of_a_stranger_cannot_play_tricks_on_a_terminal() {
        assert_eq!(Plain("a\u{7}\u{202e}b\tc\r").to_string(), "a\\u{7}\\u{202e}b\tc\\r");
    }
}
