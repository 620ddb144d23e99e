//! Systems for which there is no launcher yet: everything compiles, and a launch says clearly that it cannot be done.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::launch::{Ahead, Channels, Exit, LaunchError, Launched, Plan, Signal, TreeTag};
use crate::sandbox::{Capabilities, Landlock, Layer, OwnBox};
use crate::tree::{Identity, Pid, Usage};

/// Nobody can hold a grip here, because nothing can be launched.
#[derive(Debug)]
pub(crate) enum Grip {}

impl Grip {
    pub(crate) fn signal(&self, _signal: Signal) {
        match *self {}
    }

    pub(crate) fn kill(&self) {
        match *self {}
    }

    pub(crate) async fn wait(&mut self) -> Exit {
        match *self {}
    }
}

pub(crate) fn confine_self() -> OwnBox {
    let missing = || Layer::Missing { reason: "this system has no such layer".to_owned() };
    let landlock = Landlock::Missing { reason: "this system has no such layer".to_owned() };
    OwnBox { no_new_privs: missing(), landlock, seccomp: missing() }
}

pub(crate) fn intercept() -> Option<ExitCode> {
    None
}

pub(crate) fn own_executable() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

pub(crate) async fn launch(
    _executable: &Path,
    _ahead: Ahead,
    _plan: Plan,
    _channels: Channels,
) -> Result<Launched, LaunchError> {
    Err(unsupported())
}

pub(crate) async fn probe(_executable: &Path) -> Result<Capabilities, LaunchError> {
    Err(unsupported())
}

pub(crate) fn kill_individual(_identity: &Identity) -> bool {
    false
}

pub(crate) fn kill_tagged(_tags: &HashSet<TreeTag>) -> Vec<(TreeTag, Identity)> {
    Vec::new()
}

fn unsupported() -> LaunchError {
    LaunchError::Unsupported { reason: "the launcher needs Linux".to_owned() }
}

pub(crate) fn identity(_pid: Pid) -> io::Result<Identity> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn usage(_roots: &[Pid]) -> io::Result<Vec<Option<Usage>>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn in_box_of(_program: Pid) -> io::Result<Vec<Identity>> {
    Err(io::ErrorKind::Unsupported.into())
}
