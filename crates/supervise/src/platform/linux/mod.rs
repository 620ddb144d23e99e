//! The launcher, the keeper and the layers of the box, on Linux.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::launch::{Channels, Exit, LaunchError, Launched, Plan, Signal};
use crate::tree::{Identity, Pid, Usage};

/// The host's end of one control socket.
#[derive(Debug)]
pub(crate) struct Grip;

impl Grip {
    pub(crate) fn signal(&self, _signal: Signal) {}

    pub(crate) fn kill(&self) {}

    pub(crate) async fn wait(&mut self) -> Exit {
        std::future::pending().await
    }
}

pub(crate) fn intercept() -> Option<ExitCode> {
    None
}

pub(crate) fn own_executable() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

pub(crate) async fn launch(
    _executable: &Path,
    _plan: Plan,
    _channels: Channels,
) -> Result<Launched, LaunchError> {
    Err(LaunchError::Unsupported { reason: "the launcher is not written yet".to_owned() })
}

pub(crate) fn identity(_pid: Pid) -> io::Result<Identity> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn usage(_roots: &[Pid]) -> io::Result<Vec<Option<Usage>>> {
    Err(io::ErrorKind::Unsupported.into())
}
