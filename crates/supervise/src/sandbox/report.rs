//! What this machine can do for a box, found out by doing it.

use serde::{Deserialize, Serialize};

use super::{Contained, Level};
use crate::launch::{LaunchError, Launcher};

/// Tries every layer once, with real processes, and says what came of it. Takes some ten milliseconds.
///
/// Fails only when no program can be launched at all.
pub async fn probe(launcher: &Launcher) -> Result<Capabilities, LaunchError> {
    crate::platform::probe(launcher.executable()).await
}

/// What this machine can do, for `doctor` and for people who wonder why a level was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The kernel's name and release.
    pub kernel: String,
    /// Whether this process runs as root.
    pub root: bool,
    /// A pid namespace: the kernel kills the tree with its keeper.
    pub pid_namespace: Capability,
    /// A user namespace, which is how a pid namespace is made without privilege.
    pub user_namespace: Capability,
    /// A `/proc` of its own inside the pid namespace.
    pub proc_mount: Capability,
    /// A child subreaper, which contains trees where there is no pid namespace.
    pub subreaper: Capability,
    /// Handles for processes that no recycled number can confuse. Nothing starts without them.
    pub pidfd: Capability,
    /// No new privileges through setuid programs.
    pub no_new_privs: Capability,
    /// Files, TCP, signals and abstract sockets by Landlock.
    pub landlock: Capability,
    /// The version of the kernel's Landlock interface.
    pub landlock_abi: Option<u32>,
    /// The system call filter.
    pub seccomp: Capability,
    /// Resource limits.
    pub limits: Capability,
    /// Which control groups are mounted. Not used for containment; memory of a whole tree can only be limited by them.
    pub cgroup: Cgroup,
    /// A control group of our own with `cgroup.kill` in it.
    pub cgroup_kill: Capability,
    /// What [`Level::Auto`] amounts to here.
    pub auto_level: Level,
    /// What [`Containment::Strongest`](super::Containment::Strongest) amounts to here.
    pub strongest: Contained,
}

/// One thing that works or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Whether it works.
    pub available: bool,
    /// Why not, in words.
    pub reason: Option<String>,
}

impl Capability {
    /// It works.
    pub fn yes() -> Self {
        Self { available: true, reason: None }
    }

    /// It does not, because.
    pub fn no(reason: impl Into<String>) -> Self {
        Self { available: false, reason: Some(reason.into()) }
    }
}

/// Which control groups are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cgroup {
    /// None.
    None,
    /// Only the old hierarchies.
    V1,
    /// The old hierarchies, and the new one without most controllers.
    Hybrid,
    /// Only the new one.
    V2,
}
