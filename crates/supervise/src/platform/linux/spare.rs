//! A launcher that waits for its order. Most of what a launch costs is the start of the launcher itself, which does not
//! depend on the plan; a host that starts children often has one started ahead.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::pipe::PipeFlags;

use super::factory::{Start, Started};
use super::stage::Role;
use crate::launch::TreeTag;

/// A launcher that runs and waits for its order. Dropping it closes the socket, and the launcher ends by itself.
#[derive(Debug)]
pub(super) struct Waiting {
    executable: PathBuf,
    role: Role,
    pub(super) started: Started,
    pub(super) tag: TreeTag,
    /// Our end of the control socket, not blocking.
    pub(super) socket: UnixStream,
    /// What the launcher says when something is wrong with it.
    pub(super) complaints: OwnedFd,
}

impl Waiting {
    /// Makes the socket and the pipe; `start` starts the process.
    pub(super) fn start(
        executable: &Path,
        role: &Role,
        start: impl FnOnce(Start) -> io::Result<Started>,
    ) -> io::Result<Self> {
        let tag = TreeTag::random().map_err(|error| io::Error::other(error.to_string()))?;
        let (socket, stdin) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let (complaints, stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (executable, role) = (executable.to_owned(), role.clone());
        let started = start(Start {
            executable: executable.clone(),
            args: role.args(),
            tag,
            stdin: stdin.into(),
            stderr,
        })?;
        Ok(Self { executable, role, started, tag, socket, complaints })
    }

    /// Whether it would do for this launch.
    pub(super) fn fits(&self, executable: &Path, role: &Role) -> bool {
        self.executable == executable && self.role == *role
    }
}
