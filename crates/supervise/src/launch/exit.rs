//! How a program ended, and the signals a host may send before.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A signal that the host asks the keeper to send to the program's process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGTERM, followed by SIGCONT: a stopped process would not notice the first without the second.
    Term,
    /// SIGINT, followed by SIGCONT.
    Int,
    /// SIGHUP, followed by SIGCONT.
    Hup,
    /// SIGQUIT, followed by SIGCONT.
    Quit,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGSTOP: freeze the group.
    Stop,
    /// SIGCONT: thaw the group.
    Cont,
}

/// The program's end, reported only when every process of its tree is gone and reaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How the program itself ended. [`Status::Unknown`] when the keeper was lost.
    pub status: Status,
    /// Descendants that were still alive when the program ended; they were killed.
    pub leftovers: u32,
    /// Processor time of the program and of the descendants that were waited for.
    pub cpu: Duration,
    /// The largest resident set of any one process of the tree. Never below the launcher's own few megabytes, because
    /// the kernel also counts the image that was replaced by the program.
    pub max_rss_bytes: u64,
    /// The keeper died before it could report: somebody killed it. The tree was still taken down, but how the program
    /// ended is not known.
    pub keeper_lost: Option<String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It called `exit` with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Nobody is left who saw it.
    Unknown,
}

impl Status {
    /// Exit code zero.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
            Self::Unknown => f.write_str("an unknown status"),
        }
    }
}

/// The usual name of a signal number on Linux, such as `SIGKILL` for 9.
pub fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        16 => "SIGSTKFLT",
        17 => "SIGCHLD",
        18 => "SIGCONT",
        19 => "SIGSTOP",
        20 => "SIGTSTP",
        21 => "SIGTTIN",
        22 => "SIGTTOU",
        23 => "SIGURG",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        26 => "SIGVTALRM",
        27 => "SIGPROF",
        28 => "SIGWINCH",
        29 => "SIGIO",
        30 => "SIGPWR",
        31 => "SIGSYS",
        _ => return None,
    })
}
