//! Which containment a launch gets: asked for by the plan, and tried for real once per host.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::sync::OnceCell;

use super::factory::{self, Start};
use super::namespaces::Means;
use super::stage::{Role, tried};
use crate::launch::{LaunchError, Status, TreeTag};
use crate::sandbox::Containment;

/// The role for stage A.
pub(super) async fn choose(executable: &Path, wanted: Containment) -> Result<Role, LaunchError> {
    if wanted == Containment::Subreaper {
        return Ok(Role::Subreaper("the plan asks for a subreaper".to_owned()));
    }
    match (try_once(executable).await?, wanted) {
        (Tried::Namespace { means, .. }, _) => Ok(Role::Namespace(means)),
        (Tried::None { reason }, Containment::Strongest) => Ok(Role::Subreaper(reason)),
        (Tried::None { reason }, Containment::PidNamespace | Containment::Subreaper) => {
            Err(LaunchError::Sandbox { missing: PID_NAMESPACE.to_owned(), reason })
        }
    }
}

/// What is probably right, before anybody has tried: the first launch finds out, and costs half as much that way.
pub(super) fn guess(wanted: Containment) -> Option<Role> {
    if wanted == Containment::Subreaper || TRIED.initialized() {
        return None;
    }
    let root = rustix::process::geteuid().is_root();
    Some(Role::Namespace(if root { Means::Privilege } else { Means::UserNamespace }))
}

/// Whether this may have gone wrong because the guess was wrong.
pub(super) fn is_doubtful(error: &LaunchError) -> bool {
    match error {
        LaunchError::Sandbox { missing, .. } => missing == PID_NAMESPACE,
        LaunchError::LauncherDied { .. } => true,
        _ => false,
    }
}

/// The guess was right.
pub(super) fn learn(role: &Role) {
    if let Role::Namespace(means) = role {
        // Somebody else may have learnt the same at the same time.
        let _ = TRIED.set(Tried::Namespace { means: *means, complaint: String::new() });
    }
}

/// The layer, as errors name it.
pub(super) const PID_NAMESPACE: &str = "pid_namespace";

/// What came of trying, once per host.
static TRIED: OnceCell<Tried> = OnceCell::const_new();

/// What came of trying.
#[derive(Clone, Debug)]
pub(super) enum Tried {
    /// It works; `complaint` says why `/proc` could not be mounted inside, or nothing.
    Namespace { means: Means, complaint: String },
    /// It does not.
    None { reason: String },
}

/// Tries to make a pid namespace, in a process of its own, the first time anybody asks.
async fn try_once(executable: &Path) -> Result<Tried, LaunchError> {
    TRIED.get_or_try_init(|| try_now(executable, &Means::ALL)).await.cloned()
}

/// Tries these means, one after the other.
pub(super) async fn try_now(executable: &Path, means: &[Means]) -> Result<Tried, LaunchError> {
    let pair = || UnixStream::pair().map_err(|error| super::system("making a socket pair", &error));
    // A socket and not a pipe, so that the end of the launcher is also the end of the file that tells about it.
    let (mut complaints, stderr) = pair()?;
    let (_lifeline, stdin) = pair()?;
    let started = factory::start(Start {
        executable: executable.to_owned(),
        args: Role::Try(means.to_vec()).args(),
        tag: tag()?,
        stdin: stdin.into(),
        stderr: stderr.into(),
    })
    .await?;
    let status = started.ended.await.unwrap_or(Status::Unknown);
    let mut complaint = String::new();
    // The launcher is gone and so is its child, so this reads what they wrote and the end of the file.
    let _ = complaints.set_nonblocking(true);
    let _ = complaints.by_ref().take(super::MAX_COMPLAINT).read_to_string(&mut complaint);
    let complaint = complaint.trim().to_owned();
    const PRIVILEGE: i32 = tried::PRIVILEGE as i32;
    const USER_NAMESPACE: i32 = tried::USER_NAMESPACE as i32;
    const NONE: i32 = tried::NONE as i32;
    match status {
        Status::Code(PRIVILEGE) => Ok(Tried::Namespace { means: Means::Privilege, complaint }),
        Status::Code(USER_NAMESPACE) => Ok(Tried::Namespace { means: Means::UserNamespace, complaint }),
        Status::Code(NONE) => Ok(Tried::None { reason: complaint }),
        other => Err(super::launcher_died(other, complaint)),
    }
}

/// A tag for a launch.
pub(super) fn tag() -> Result<TreeTag, LaunchError> {
    TreeTag::random().map_err(|error| LaunchError::System {
        doing: "asking for randomness".to_owned(),
        errno: 0,
        reason: error.to_string(),
    })
}
