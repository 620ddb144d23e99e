//! The Landlock layer: files by path, TCP, and (from ABI 6) signals and abstract sockets.
//!
//! What it does not stop, and who does: UDP and other families (seccomp); `connect` to a Unix socket by path (only
//! [`Network::Deny`] does); `stat` and other metadata (nobody); descriptors that were open before (they are passed on
//! purpose or closed).

use std::path::{Path, PathBuf};

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus as KernelStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope,
};

use super::message::Order;
use crate::sandbox::{Landlock, LandlockStatus, Network, Processes};

/// The newest interface whose every right has been tried with this code. Older kernels enforce what they know.
const TRIED: ABI = ABI::V7;

/// What programs need to start at all: code, libraries, interpreters, and facts about the machine.
const RUNTIME: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Of `/etc` only what runtimes read, because the rest holds secrets of the machine that root could read.
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// Devices without content of their own.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Restricts the calling thread and everything it starts.
pub(super) fn apply(order: &Order, program: &Path, skipped: &mut Vec<PathBuf>) -> Landlock {
    match restrict(order, program, skipped) {
        Ok(status) => judge(&status),
        Err(error) => Landlock::Missing { reason: error.to_string() },
    }
}

fn restrict(
    order: &Order,
    program: &Path,
    skipped: &mut Vec<PathBuf>,
) -> Result<RestrictionStatus, RulesetError> {
    let read = AccessFs::from_read(TRIED);
    // Device nodes would be a way out for root.
    let write = AccessFs::from_all(TRIED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;

    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    match order.network {
        Network::Deny | Network::UnixOnly => {
            ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
        }
        Network::Allow => {}
    }
    let mut rules = Rules { ruleset: ruleset.create()?, skipped: Vec::new() };
    for path in RUNTIME {
        rules.grant(Path::new(path), read)?;
    }
    for name in ETC {
        rules.grant(&Path::new("/etc").join(name), read)?;
    }
    for path in DEVICES {
        rules.grant(Path::new(path), device)?;
    }
    for path in [Some(program.to_owned()), program.canonicalize().ok()].into_iter().flatten() {
        rules.grant(&path, read)?;
        if let Some(directory) = own_directory(&path) {
            rules.grant(directory, read)?;
        }
    }
    if order.processes == Processes::One {
        // What gives up starting processes before it becomes the program.
        rules.grant(&super::own_executable(), read)?;
    }
    // Until here a path that does not exist is nobody's fault.
    rules.skipped.clear();
    for path in &order.read {
        rules.grant(Path::new(&path.0), read)?;
    }
    for path in &order.write {
        rules.grant(Path::new(&path.0), write)?;
    }
    *skipped = rules.skipped;
    rules.ruleset.restrict_self()
}

/// Takes every file, TCP port, abstract socket and foreign process from the calling thread.
pub(super) fn take_everything() -> Landlock {
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(TRIED)))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(|rules| rules.create())
        .and_then(RulesetCreated::restrict_self);
    match restricted {
        Ok(status) => judge(&status),
        Err(error) => Landlock::Missing { reason: error.to_string() },
    }
}

struct Rules {
    ruleset: RulesetCreated,
    skipped: Vec<PathBuf>,
}

impl Rules {
    fn grant(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let (Ok(opened), Ok(facts)) = (PathFd::new(path), path.metadata()) else {
            self.skipped.push(path.to_owned());
            return Ok(());
        };
        // The kernel refuses the rights of a directory on anything else.
        let access = if facts.is_dir() { access } else { access & AccessFs::from_file(TRIED) };
        (&mut self.ruleset).add_rule(PathBeneath::new(opened, access)).map(drop)
    }
}

/// The directory of the program, where its libraries and resources are; but never a whole top-level directory because
/// somebody put a script into it.
fn own_directory(program: &Path) -> Option<&Path> {
    program.parent().filter(|directory| directory.components().count() > 2)
}

fn judge(status: &RestrictionStatus) -> Landlock {
    let abi = match status.landlock {
        KernelStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs)
        }
        KernelStatus::NotEnabled => {
            return not("it is switched off at boot (lsm= on the kernel command line)");
        }
        KernelStatus::NotImplemented => return not("the kernel does not have it, or a container forbids it"),
    };
    match status.ruleset {
        RulesetStatus::FullyEnforced => Landlock::Applied { abi, status: LandlockStatus::Full },
        RulesetStatus::PartiallyEnforced => Landlock::Applied { abi, status: LandlockStatus::Partial },
        RulesetStatus::NotEnforced => not("the kernel enforces nothing of it"),
    }
}

fn not(reason: &str) -> Landlock {
    Landlock::Missing { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_top_level_directory_does_not_open_that_directory() {
        for (program, granted) in [
            ("/tool", None),
            ("/tmp/tool", None),
            ("/opt/tool/run", Some("/opt/tool")),
            ("/home/me/bin/run", Some("/home/me/bin")),
        ] {
            assert_eq!(own_directory(Path::new(program)), granted.map(Path::new), "{program}");
        }
    }
}
