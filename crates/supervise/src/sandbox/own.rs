//! A process that puts itself into a box: for children that need nothing but their pipes.

use super::{Landlock, Layer};

/// What a process took from itself. Read it, do not trust the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnBox {
    /// Whether setuid programs gain nothing.
    pub no_new_privs: Layer,
    /// No files, ports, abstract sockets or foreign processes.
    pub landlock: Landlock,
    /// No system calls but for computing, reading and writing what is open, and ending.
    pub seccomp: Layer,
}

/// Takes every privilege from this process that a program does not need which only computes: no file can be opened any
/// more, no socket made, no program started, and no core is dumped. What the kernel does not know is left out and named.
///
/// Must be called while there is one thread: the layers bind the calling thread and what it starts. Takes tens of
/// microseconds.
#[must_use]
pub fn confine_self() -> OwnBox {
    crate::platform::confine_self()
}
