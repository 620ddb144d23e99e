//! The launcher, the keeper and the layers of the box, on Linux.
//!
//! `host`, `factory`, `containment` and `probe` run in the host; `stage`, `keeper`, `program`, `confine` and the layers
//! (`namespaces`, `landlock`, `seccomp`, `rlimits`) in the launcher; `procfs`, `sweep` and `socket` in both.

mod confine;
mod containment;
mod factory;
mod host;
mod keeper;
mod landlock;
mod message;
mod namespaces;
mod probe;
mod procfs;
mod program;
mod rlimits;
mod seccomp;
mod socket;
mod spare;
mod stage;
mod sweep;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use rustix::process::{Resource, WaitIdStatus};

pub(crate) use confine::confine_self;
pub(crate) use host::{Grip, launch};
pub(crate) use probe::probe;
pub(crate) use procfs::{identity, in_box_of, usage};
pub(crate) use sweep::{kill_individual, kill_tagged};

use crate::launch::{LaunchError, Status};
use crate::tree::Pid;

/// The first argument of a launcher.
const LAUNCH: &str = "__launch";

/// The second argument of what becomes a program that may not start others.
const ALONE: &str = "alone";

/// How much of a launcher's standard error is kept.
const MAX_COMPLAINT: u64 = 4096;

/// See [`crate::launch::intercept`].
pub(crate) fn intercept() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == LAUNCH) {
        let mut args = args.peekable();
        if args.next_if(|second| second == ALONE).is_some() {
            return Some(program::become_alone(args));
        }
        let rest: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
        return Some(stage::run(&rest));
    }
    BORN_WITH.get_or_init(|| rustix::process::getrlimit(Resource::Nofile).current);
    None
}

/// See [`crate::launch::Launcher::current_exe`].
pub(crate) fn own_executable() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The soft limit of open descriptors at the start of `main`, if [`intercept`] was there to see it.
fn born_with() -> Option<u64> {
    BORN_WITH.get().copied().flatten()
}

static BORN_WITH: OnceLock<Option<u64>> = OnceLock::new();

/// An error of the system in words, sorted into "try later" and the rest.
fn system(doing: &str, error: &io::Error) -> LaunchError {
    use rustix::io::Errno;
    let errno = error.raw_os_error().unwrap_or(0);
    let short = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOSPC,
        Errno::USERS,
        Errno::TOOMANYREFS,
    ];
    let (doing, reason) = (doing.to_owned(), error.to_string());
    if short.iter().any(|short| short.raw_os_error() == errno) {
        LaunchError::Resource { doing, errno, reason }
    } else {
        LaunchError::System { doing, errno, reason }
    }
}

fn launcher_died(status: Status, stderr: String) -> LaunchError {
    let status = match status {
        Status::Code(0) => {
            format!("{status} (does the `main` of the launcher executable call `launch::intercept`?)")
        }
        Status::Code(_) | Status::Signal(_) | Status::Unknown => status.to_string(),
    };
    LaunchError::LauncherDied { status, stderr }
}

fn status(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Unknown,
    }
}

fn raw(pid: Pid) -> io::Result<rustix::process::Pid> {
    i32::try_from(pid.get())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(|| io::Error::other(format!("{pid} is not a process id")))
}
