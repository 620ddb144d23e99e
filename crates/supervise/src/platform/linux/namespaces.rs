//! The pid namespace (and the mount and user namespaces it needs), entered by stage A and furnished by the keeper.

use std::fs;

use nix::sched::CloneFlags;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::sandbox::Layer;

/// Which privilege makes the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// The host's own (CAP_SYS_ADMIN).
    Privilege,
    /// A user namespace that maps only the host's own user and group.
    UserNamespace,
}

impl Means {
    pub(super) const ALL: [Self; 2] = [Self::Privilege, Self::UserNamespace];

    /// The word for it on the launcher's command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Privilege => "privilege",
            Self::UserNamespace => "user-namespace",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.word() == word)
    }
}

/// A namespace that could not be had.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) errno: i32,
    pub(super) reason: String,
}

/// Stage A: the *next* child of this process becomes pid 1 of a new pid namespace.
pub(super) fn enter(means: Means) -> Result<(), Refused> {
    let refused = |doing: &str, errno: i32| Refused {
        errno,
        reason: format!("{doing}: {}", std::io::Error::from_raw_os_error(errno)),
    };
    let wanted = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match means {
        Means::Privilege => {
            nix::sched::unshare(wanted).map_err(|errno| refused("unshare(NEWPID|NEWNS)", errno as i32))
        }
        Means::UserNamespace => {
            let uid = rustix::process::geteuid().as_raw();
            let gid = rustix::process::getegid().as_raw();
            nix::sched::unshare(wanted | CloneFlags::CLONE_NEWUSER)
                .map_err(|errno| refused("unshare(NEWUSER|NEWPID|NEWNS)", errno as i32))?;
            let write = |path: &str, text: String| {
                fs::write(path, text)
                    .map_err(|error| refused(&format!("writing {path}"), error.raw_os_error().unwrap_or(0)))
            };
            write("/proc/self/setgroups", "deny".to_owned())?;
            write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
            write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
            // The keeper is reached through exec, which drops the capabilities of everybody but root, unless ambient.
            keep_mount_privilege().map_err(|errno| refused("keeping CAP_SYS_ADMIN", errno.raw_os_error()))
        }
    }
}

/// The keeper: no mount made here may reach the host, and `/proc` shows the new namespace. The privilege that was needed
/// for it is given up.
pub(super) fn furnish(means: Means) -> Layer {
    // Mounts that the host makes later still arrive here; nothing goes the other way.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let mounted = rustix::mount::mount_change("/", slave)
        .map_err(|errno| ("detaching the mounts", errno))
        .and_then(|()| {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            rustix::mount::mount("proc", "/proc", "proc", flags, None)
                .map_err(|errno| ("mounting /proc", errno))
        });
    if means == Means::UserNamespace {
        let none = CapabilitySet::empty();
        let _ = rustix::thread::clear_ambient_capability_set();
        let _ = rustix::thread::set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        );
    }
    match mounted {
        Ok(()) => Layer::Applied,
        Err((doing, errno)) => Layer::Missing { reason: format!("{doing}: {errno}") },
    }
}

fn keep_mount_privilege() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
}
