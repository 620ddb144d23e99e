//! Processes as individuals: an identity that no later process can have, and what a whole tree uses.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::platform;

/// A process id, valid only as long as nobody reaped the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(u32);

impl Pid {
    /// Wraps a number the system gave us.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pid({})", self.0)
    }
}

/// One process, for ever: the number is used again, the number with its start time and the boot is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The process id in the host's pid namespace.
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
    /// Which boot.
    pub boot_id: String,
}

impl Identity {
    /// The process that has this number now.
    pub fn of(pid: Pid) -> io::Result<Self> {
        platform::identity(pid)
    }

    /// Whether this very process still exists (a zombie does).
    pub fn exists(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

/// What a tree of processes uses at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processes in the tree, the root included; zombies are not counted.
    pub processes: u32,
    /// The sum of their resident sets. Shared pages are counted once per process.
    pub rss_bytes: u64,
}

/// What the trees under `roots` use, from one pass over the process table. `None` for a root that is gone.
pub fn usage(roots: &[Pid]) -> io::Result<Vec<Option<Usage>>> {
    platform::usage(roots)
}

/// Every living process in the box of the program with this number: itself, its descendants, and those that were left by
/// their parents and are held by its keeper. Empty when the program is gone. The processes of a box that somebody else made
/// are not known.
pub fn in_box_of(program: Pid) -> io::Result<Vec<Identity>> {
    platform::in_box_of(program)
}
