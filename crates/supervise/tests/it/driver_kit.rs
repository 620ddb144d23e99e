//! What every driver test needs: shell children with the usual rules, and a look into the process table.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_supervise::driver::{Child, ChildEvent, Heard, Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::ready::{Before, Gate, LineMatch, Ready, StdoutGate};
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Backoff, CrashLimit, Heartbeat, Ladder, Restart, Retry};

/// A ladder that gives every rung its chance and still ends a test quickly.
pub(crate) const LADDER: Ladder = Ladder { ask: Duration::from_secs(10), term: Duration::from_millis(200) };

/// The variable that marks all processes of one test.
const MARK: &str = "SUPERVISE_TEST_MARK";

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::new(Settings {
        launcher: Launcher::current_exe(),
        starting_at_once: NonZeroUsize::new(8).expect("not zero"),
    })
}

/// A shell that runs this script: ready at once, never restarted, its stdout in the log.
pub(crate) fn shell(script: &str) -> Spec {
    let rules =
        Rules { ready: Ready::OnSpawn, heartbeat: Heartbeat::None, restart: Restart::Never, logs: logs() };
    Spec::new("test", "/bin/sh", "/", Request::new(Level::Basic, Limits::as_the_host()), rules)
        .args(["-c", script])
        .set_env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// The same, ready when it says `up` on stdout.
pub(crate) fn shell_that_says_up(script: &str) -> Spec {
    Spec { ready: when(up(), secs(20)), ..shell(script) }
}

pub(crate) fn up() -> Gate {
    Gate::Stdout(StdoutGate {
        line: LineMatch::Exact("up".into()),
        before: Before::Skip,
        max_line_bytes: 1000,
    })
}

pub(crate) fn when(gate: Gate, within: Duration) -> Ready {
    Ready::When { gate, within }
}

pub(crate) fn logs() -> Logs {
    Logs { tail_lines: 5, tail_bytes: 4096, max_line_bytes: 1000, file: None }
}

/// Quick restarts, given up at the third crash.
pub(crate) fn retry() -> Retry {
    Retry {
        backoff: Backoff {
            first: Duration::from_millis(20),
            cap: Duration::from_millis(100),
            jitter_percent: 20,
        },
        stable_after: secs(300),
        max_attempts: None,
        crash_loop: CrashLimit { crashes: NonZeroU32::new(3).expect("not zero"), within: secs(600) },
        slow_crash: None,
        permanent_codes: Vec::new(),
    }
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Everything that happened to a child that has ended: its phases and the causes of its ends, in order.
pub(crate) async fn story(child: &Child) -> String {
    let mut events = child.events();
    let mut words = Vec::new();
    while let Some(heard) = events.next().await {
        words.push(match heard {
            Heard::Event(ChildEvent::Changed(change)) => change.to.code().to_owned(),
            Heard::Event(ChildEvent::Ended(report)) => format!("({})", report.cause),
            Heard::Missed(count) => format!("[{count} missed]"),
        });
    }
    words.join(" ")
}

/// A mark for the processes of one test.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn on(&self, spec: Spec) -> Spec {
        spec.set_env(MARK, &self.0)
    }

    /// How many processes carry the mark; zombies have lost it.
    pub(crate) fn count(&self) -> usize {
        let wanted = format!("{MARK}={}", self.0);
        std::fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .filter(|entry| {
                std::fs::read(entry.path().join("environ"))
                    .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
            })
            .count()
    }
}
