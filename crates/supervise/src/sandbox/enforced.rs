//! What the box is really made of, layer by layer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Level, Limits, Network, Processes};
use crate::launch::exact::exact_paths;

/// What was applied to a child. Read it, do not trust the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// The level that was reached: off, basic or strict.
    pub level: Level,
    /// How the tree is held together.
    pub containment: Contained,
    /// Whether setuid programs gain nothing.
    pub no_new_privs: Layer,
    /// The file system, TCP and scope layer.
    pub landlock: Landlock,
    /// The system call filter.
    pub seccomp: Layer,
    /// The network choice that is in force; [`Network::Allow`] below strict.
    pub network: Network,
    /// The choice about further processes that is in force; [`Processes::Many`] below strict.
    pub processes: Processes,
    /// The limits in force after cutting to the host's hard limits; `None` means untouched.
    pub limits: Limits,
    /// Paths of the request that do not exist and therefore grant nothing.
    #[serde(with = "exact_paths")]
    pub skipped_paths: Vec<PathBuf>,
}

/// How the tree is held together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contained {
    /// A pid namespace: the kernel kills the tree with its keeper.
    PidNamespace {
        /// A user namespace was needed, because the host is not privileged. Setuid programs and foreign user ids do not
        /// work inside.
        user_namespace: bool,
        /// `/proc` inside shows the child's own processes.
        proc_mounted: Layer,
    },
    /// A child subreaper.
    Subreaper {
        /// Why not a pid namespace.
        reason: String,
    },
}

/// One layer of the box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// In force.
    Applied,
    /// Not part of the level.
    NotRequested,
    /// Wanted, but not to be had.
    Missing {
        /// Why not, in words.
        reason: String,
    },
}

/// The Landlock layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landlock {
    /// In force.
    Applied {
        /// The version of the kernel's interface.
        abi: u32,
        /// Whether the kernel knows everything that was asked.
        status: LandlockStatus,
    },
    /// Not part of the level.
    NotRequested,
    /// Wanted, but not to be had.
    Missing {
        /// Why not, in words.
        reason: String,
    },
}

/// How completely Landlock is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandlockStatus {
    /// Everything that was asked.
    Full,
    /// An older kernel: files are restricted, some of the newer rights (TCP, scopes, …) are not known to it.
    Partial,
}
