//! Trying every layer once: each answer comes from a process that stood inside the box and pushed against its walls.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketType};

use super::containment::{self, Tried};
use super::host;
use super::namespaces::Means;
use super::stage::Role;
use crate::launch::{Ahead, Channels, LaunchError, Plan, Status, Wiring};
use crate::sandbox::{
    Capabilities, Capability, Cgroup, Containment, Enforced, Landlock, Layer, Level, Limits, Request,
};

/// See [`crate::sandbox::probe`].
pub(crate) async fn probe(executable: &Path) -> Result<Capabilities, LaunchError> {
    let strongest = containment::try_now(executable, &Means::ALL).await?;
    let user_namespace = containment::try_now(executable, &[Means::UserNamespace]).await?;
    let (pid_namespace, proc_mount) = match strongest {
        Tried::Namespace { complaint, .. } if complaint.is_empty() => (Capability::yes(), Capability::yes()),
        Tried::Namespace { complaint, .. } => (Capability::yes(), Capability::no(complaint)),
        Tried::None { reason } => (Capability::no(&reason), Capability::no(reason)),
    };
    let (strongest, walls) = stand_inside(executable, Containment::Strongest).await?;
    let subreaper = stand_inside(executable, Containment::Subreaper).await;
    let name = rustix::system::uname();
    let (landlock, landlock_abi) = match &strongest.landlock {
        Landlock::Applied { abi, .. } => {
            (believe(walls.files, "Landlock is applied and lets everything through"), Some(*abi))
        }
        Landlock::Missing { reason } => (Capability::no(reason), None),
        Landlock::NotRequested => (Capability::no("it was not tried"), None),
    };
    let (cgroup, cgroup_kill) = control_groups();
    Ok(Capabilities {
        kernel: format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
        root: rustix::process::geteuid().is_root(),
        pid_namespace,
        user_namespace: match user_namespace {
            Tried::Namespace { .. } => Capability::yes(),
            Tried::None { reason } => Capability::no(reason),
        },
        proc_mount,
        subreaper: subreaper.map_or_else(|error| Capability::no(error.to_string()), |_| Capability::yes()),
        // A program ran, and the host was handed its pidfd.
        pidfd: Capability::yes(),
        no_new_privs: layer(
            &strongest.no_new_privs,
            walls.privileges,
            "no_new_privs is set and not in force",
        ),
        landlock,
        landlock_abi,
        seccomp: layer(
            &strongest.seccomp,
            walls.sockets,
            "the filter is installed and lets everything through",
        ),
        limits: believe(walls.core, "limits are set and not in force"),
        cgroup,
        cgroup_kill,
        auto_level: strongest.level,
        strongest: strongest.containment,
    })
}

/// Which walls the probing program felt.
#[derive(Clone, Copy)]
struct Walls {
    files: bool,
    sockets: bool,
    privileges: bool,
    core: bool,
}

/// The exit code of the probing program is this and one bit for every wall.
const INSIDE: u8 = 0x40;
const FILES: u8 = 1;
const SOCKETS: u8 = 2;
const PRIVILEGES: u8 = 4;
const CORE: u8 = 8;

/// The probing program itself; see [`Role::TryWalls`].
pub(super) fn walls_seen_from_inside() -> u8 {
    // Nothing grants the root directory, and everybody may list it without a box.
    let files = fs::read_dir("/").is_err();
    let sockets = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).is_err();
    let privileges = rustix::thread::no_new_privs().unwrap_or(false);
    let core = rustix::process::getrlimit(rustix::process::Resource::Core).maximum == Some(0);
    let walls = [(files, FILES), (sockets, SOCKETS), (privileges, PRIVILEGES), (core, CORE)];
    walls.into_iter().filter(|(felt, _)| *felt).fold(INSIDE, |code, (_, bit)| code | bit)
}

async fn stand_inside(executable: &Path, containment: Containment) -> Result<(Enforced, Walls), LaunchError> {
    let program = executable.as_os_str().to_owned();
    let args = [super::LAUNCH.into()].into_iter().chain(Role::TryWalls.args()).collect();
    let sandbox = Request { containment, ..Request::new(Level::Auto, Limits::as_the_host()) };
    let plan = Plan {
        name: "probe".to_owned(),
        program,
        args,
        env: Vec::new(),
        cwd: PathBuf::from("/"),
        umask: None,
        sandbox,
    };
    let silent = || Wiring::Null;
    let channels = Channels { stdin: silent(), stdout: silent(), stderr: silent(), extra: Vec::new() };
    let mut launched = host::launch(executable, Ahead::None, plan, channels).await?;
    match launched.control.wait().await.status {
        Status::Code(code) if code & i32::from(INSIDE) != 0 => {
            let felt = |bit: u8| code & i32::from(bit) != 0;
            let walls = Walls {
                files: felt(FILES),
                sockets: felt(SOCKETS),
                privileges: felt(PRIVILEGES),
                core: felt(CORE),
            };
            Ok((launched.enforced, walls))
        }
        status => Err(LaunchError::System {
            doing: "standing inside the box".to_owned(),
            errno: 0,
            reason: format!("the probing program ended with {status}"),
        }),
    }
}

fn layer(layer: &Layer, felt: bool, otherwise: &str) -> Capability {
    match layer {
        Layer::Applied => believe(felt, otherwise),
        Layer::NotRequested => Capability::no("it was not tried"),
        Layer::Missing { reason } => Capability::no(reason),
    }
}

fn believe(felt: bool, otherwise: &str) -> Capability {
    if felt { Capability::yes() } else { Capability::no(otherwise) }
}

/// Makes a control group below our own and looks whether it can be killed as a whole.
fn control_groups() -> (Cgroup, Capability) {
    let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = |kind: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            fields.next().filter(|_| fields.next() == Some(kind)).map(PathBuf::from)
        })
    };
    let (old, new) = (mounted("cgroup"), mounted("cgroup2"));
    let version = match (&old, &new) {
        (None, None) => Cgroup::None,
        (Some(_), None) => Cgroup::V1,
        (Some(_), Some(_)) => Cgroup::Hybrid,
        (None, Some(_)) => Cgroup::V2,
    };
    let own = memberships.lines().find_map(|line| line.strip_prefix("0::/"));
    let kill = match (new, own) {
        (Some(root), Some(own)) => try_group(&root.join(own)),
        _ => Capability::no("the new hierarchy is not mounted"),
    };
    (version, kill)
}

fn try_group(own: &Path) -> Capability {
    let group = own.join(format!("outrigger-probe-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&group) {
        return Capability::no(format!("no group can be made below `{}`: {error}", own.display()));
    }
    let kill = fs::OpenOptions::new().write(true).open(group.join("cgroup.kill"));
    let _ = fs::remove_dir(&group);
    match kill {
        Ok(_) => Capability::yes(),
        Err(error) => Capability::no(format!("cgroup.kill: {error}")),
    }
}
