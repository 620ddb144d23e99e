//! Stage A: the launcher process that the host starts. It detaches itself from everything that is the host's, ties its
//! life to the host's, and becomes either the parent of a keeper in a new pid namespace or the keeper itself.

use std::ffi::OsString;
use std::io::{Write, stderr, stdin};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use super::containment::PID_NAMESPACE;
use super::keeper::{self, Hold};
use super::message::{self, Report};
use super::namespaces::{self, Means, Refused};
use super::{probe, socket};
use crate::launch::LaunchError;
use crate::sandbox::Layer;

/// What stage A is told to do; the words on its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Make a pid namespace by these means and put a keeper into it.
    Namespace(Means),
    /// Be the keeper, as a child subreaper; a pid namespace was not to be had for this reason.
    Subreaper(String),
    /// Be the keeper: pid 1 of the new namespace.
    Keeper(Means),
    /// Try whether a pid namespace can be made by one of these means, answer by exit code and end.
    Try(Vec<Means>),
    /// The last step of trying.
    TryFurnish(Means),
    /// Be a program in a strict box, and answer by exit code which walls are there.
    TryWalls,
}

impl Role {
    pub(super) fn args(&self) -> Vec<OsString> {
        let words: Vec<&str> = match self {
            Self::Namespace(means) => vec!["namespace", means.word()],
            Self::Subreaper(reason) => vec!["subreaper", reason],
            Self::Keeper(means) => vec!["keeper", means.word()],
            Self::Try(means) => ["try"].into_iter().chain(means.iter().map(|means| means.word())).collect(),
            Self::TryFurnish(means) => vec!["try-furnish", means.word()],
            Self::TryWalls => vec!["try-walls"],
        };
        words.into_iter().map(OsString::from).collect()
    }

    fn from_args(args: &[String]) -> Option<Self> {
        match args {
            [word, means] if word == "namespace" => Means::from_word(means).map(Self::Namespace),
            [word, reason] if word == "subreaper" => Some(Self::Subreaper(reason.clone())),
            [word, means] if word == "keeper" => Means::from_word(means).map(Self::Keeper),
            [word, means @ ..] if word == "try" => {
                means.iter().map(|means| Means::from_word(means)).collect::<Option<_>>().map(Self::Try)
            }
            [word, means] if word == "try-furnish" => Means::from_word(means).map(Self::TryFurnish),
            [word] if word == "try-walls" => Some(Self::TryWalls),
            _ => None,
        }
    }
}

/// The exit codes of [`Role::Try`].
pub(super) mod tried {
    /// A pid namespace, by the host's own privilege.
    pub(crate) const PRIVILEGE: u8 = 40;
    /// A pid namespace inside a user namespace.
    pub(crate) const USER_NAMESPACE: u8 = 41;
    /// None; the reason is on standard error.
    pub(crate) const NONE: u8 = 42;

    /// Whether a launcher that ended like this has tried something and left nothing behind.
    pub(crate) fn is_answer(status: crate::launch::Status) -> bool {
        matches!(status, crate::launch::Status::Code(code) if (PRIVILEGE.into()..=NONE.into()).contains(&code))
    }
}

/// Plays the role on the command line.
pub(super) fn run(args: &[String]) -> ExitCode {
    match Role::from_args(args) {
        Some(Role::Namespace(means)) => namespace(means),
        Some(Role::Subreaper(reason)) => subreaper(reason),
        Some(Role::Keeper(means)) => keeper(means),
        Some(Role::Try(means)) => try_namespace(&means),
        Some(Role::TryFurnish(means)) => {
            complain_if_missing(&namespaces::furnish(means));
            ExitCode::SUCCESS
        }
        Some(Role::TryWalls) => ExitCode::from(probe::walls_seen_from_inside()),
        None => {
            complain("not a launcher command line");
            ExitCode::from(64)
        }
    }
}

/// Whether the other end of the control socket is closed: the host is gone, or has given up.
pub(super) fn orphaned() -> bool {
    let stdin = stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now)).is_ok()
        && polled[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

fn namespace(means: Means) -> ExitCode {
    detach();
    if let Err(code) = tie_to_parent() {
        return code;
    }
    if let Err(Refused { errno, reason }) = namespaces::enter(means) {
        return fail(&namespace_error(errno, reason));
    }
    // Changing credentials may have cleared it.
    if let Err(code) = tie_to_parent() {
        return code;
    }
    match again(&Role::Keeper(means)).spawn().and_then(|mut keeper| keeper.wait()) {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => fail(&super::system("starting the keeper", &error)),
    }
}

fn subreaper(reason: String) -> ExitCode {
    detach();
    // No parent-death signal here: the keeper has to outlive its host by the time the sweep takes. The closed control
    // socket tells it.
    match rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        Ok(()) => keeper::run(Hold::Subreaper { reason }),
        Err(errno) => {
            fail(&LaunchError::Sandbox { missing: "subreaper".to_owned(), reason: errno.to_string() })
        }
    }
}

fn keeper(means: Means) -> ExitCode {
    if let Err(code) = tie_to_parent() {
        return code;
    }
    let proc_mounted = namespaces::furnish(means);
    // Giving up capabilities may have cleared it.
    if let Err(code) = tie_to_parent() {
        return code;
    }
    keeper::run(Hold::PidNamespace { user_namespace: means == Means::UserNamespace, proc_mounted })
}

/// Leaves the host's session and closes every descriptor the host forgot to mark close-on-exec.
fn detach() {
    // Fails only for the leader of a process group, which a freshly started child is not.
    let _ = rustix::process::setsid();
    let Ok(listing) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> =
        listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The listing is closed again by now, and nothing in this process owns a descriptor above the standard three.
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        let _ = nix::unistd::close(descriptor);
    }
}

/// From here on the kernel kills this process when its parent dies; if the host is gone already, that is the end.
fn tie_to_parent() -> Result<(), ExitCode> {
    if let Err(errno) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return Err(fail(&super::system("setting the parent-death signal", &errno.into())));
    }
    if orphaned() { Err(ExitCode::FAILURE) } else { Ok(()) }
}

fn try_namespace(means: &[Means]) -> ExitCode {
    detach();
    let mut reasons = Vec::new();
    for means in means.iter().copied() {
        match namespaces::enter(means) {
            Ok(()) => {
                return match again(&Role::TryFurnish(means)).spawn().and_then(|mut child| child.wait()) {
                    Ok(status) if status.success() => ExitCode::from(match means {
                        Means::Privilege => tried::PRIVILEGE,
                        Means::UserNamespace => tried::USER_NAMESPACE,
                    }),
                    Ok(status) => {
                        complain(&format!("the first process of a new pid namespace ended with {status}"));
                        ExitCode::from(tried::NONE)
                    }
                    Err(error) => {
                        complain(&format!("no process can be started in a new pid namespace: {error}"));
                        ExitCode::from(tried::NONE)
                    }
                };
            }
            Err(refused) => reasons.push(refused.reason),
        }
    }
    complain(&reasons.join("; "));
    ExitCode::from(tried::NONE)
}

/// This executable again, in another role, with the same control socket.
#[expect(clippy::disallowed_methods, reason = "the launcher starts itself again as pid 1 of the namespace")]
fn again(role: &Role) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("outrigger-keep").arg(super::LAUNCH).args(role.args()).stdout(Stdio::null());
    command
}

fn namespace_error(errno: i32, reason: String) -> LaunchError {
    let error = std::io::Error::from_raw_os_error(errno);
    match super::system("making a pid namespace", &error) {
        resource @ LaunchError::Resource { .. } => resource,
        _ => LaunchError::Sandbox { missing: PID_NAMESPACE.to_owned(), reason },
    }
}

/// Reports over the control socket and ends. Nothing has been started, or nothing is left: that is an orderly end.
pub(super) fn fail(error: &LaunchError) -> ExitCode {
    if let Ok(bytes) = message::encode(&Report::Failed(error.clone())) {
        // If the host is gone there is nobody to tell.
        let _ = socket::send_all(stdin().as_fd(), &bytes, &[]);
    }
    ExitCode::SUCCESS
}

fn complain_if_missing(layer: &Layer) {
    if let Layer::Missing { reason } = layer {
        complain(reason);
    }
}

/// The host reads the launcher's standard error.
fn complain(text: &str) {
    // Without a reader there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}
