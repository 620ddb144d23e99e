//! What a host asks of the box.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The box a child is to run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How much of it.
    pub level: Level,
    /// How the process tree is held together.
    pub containment: Containment,
    /// May it open network connections? Enforced from [`Level::Strict`] upwards.
    pub network: Network,
    /// Files and directories it may read and execute, beside the system's runtime and the program's own directory.
    /// Enforced from [`Level::Strict`] upwards. A path that does not exist is skipped and reported.
    pub read: Vec<PathBuf>,
    /// Files and directories it may read and write. Enforced from [`Level::Strict`] upwards.
    pub write: Vec<PathBuf>,
    /// May it start further processes? Enforced from [`Level::Strict`] upwards.
    pub processes: Processes,
    /// Resource limits.
    pub limits: Limits,
}

impl Request {
    /// A box of this level with the strongest containment, no network, no paths beyond the runtime, and these limits.
    pub fn new(level: Level, limits: Limits) -> Self {
        Self {
            level,
            containment: Containment::Strongest,
            network: Network::Deny,
            read: Vec::new(),
            write: Vec::new(),
            processes: Processes::Many,
            limits,
        }
    }
}

/// How much of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Containment only: the tree can still be killed as a whole.
    Off,
    /// And: no new privileges, no stray descriptors, no core dumps, the requested limits.
    Basic,
    /// And: Landlock (files, TCP, signals, abstract sockets) and a seccomp filter. Refuses to start when a layer is missing.
    Strict,
    /// The strongest of the above that this machine can do; [`Enforced`](super::Enforced) says which.
    Auto,
    /// [`Level::Strict`] spelled as a policy: strict, or a refusal that names the missing layer.
    Required,
}

/// How the process tree is held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A pid namespace if the system allows one, otherwise a subreaper.
    Strongest,
    /// A pid namespace or no start: the kernel guarantees that the tree dies with its owner.
    PidNamespace,
    /// A child subreaper that sweeps. Weaker: if host *and* keeper are killed at the same instant, orphans survive until
    /// the next [`Leftovers`](crate::leftovers) sweep.
    Subreaper,
}

/// What a strict box lets through to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No sockets at all can be created, connected or bound; inherited ones keep working.
    Deny,
    /// Unix sockets only.
    UnixOnly,
    /// Everything.
    Allow,
}

/// Whether a strict box lets a program start others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Processes {
    /// As many as the limits allow.
    Many,
    /// None: it has threads and may become another program, but a second process cannot be made. A limit on their number is
    /// void for root; this is not.
    One,
}

/// Resource limits, per process. `None` keeps the host's limit; a value above the host's hard limit is cut to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// The largest file it can write.
    pub file_size_bytes: Option<u64>,
    /// Processor seconds per process; then SIGXCPU.
    pub cpu_seconds: Option<u64>,
    /// Address space. Runtimes that reserve address space up front (V8, Go, the JVM) do not start under small values.
    pub address_space_bytes: Option<u64>,
    /// Processes *of the user*, over the whole machine; void for root.
    pub processes: Option<u64>,
    /// Core dumps. `None` means none at all from [`Level::Basic`] upwards.
    pub core_bytes: Option<u64>,
}

impl Limits {
    /// No limits beyond the host's own.
    pub fn as_the_host() -> Self {
        Self {
            open_files: None,
            file_size_bytes: None,
            cpu_seconds: None,
            address_space_bytes: None,
            processes: None,
            core_bytes: None,
        }
    }
}
