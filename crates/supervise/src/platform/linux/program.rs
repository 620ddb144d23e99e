//! The last step: finding the program, confining this process and starting the program from inside the box.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fs::Access;
use rustix::io::{Errno, FdFlags};

use super::message::Order;
use super::{ALONE, LAUNCH, confine, keeper, procfs};
use crate::launch::LaunchError;
use crate::sandbox::{Contained, Enforced, Processes};
use crate::tree::Pid;

/// How often, and after which pauses, a file that is still being written is tried again.
const BUSY_PAUSES: [Duration; 3] = [Duration::from_millis(50); 3];

/// The program's descriptors as they arrived.
pub(super) struct Files {
    extra: Vec<OwnedFd>,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Files {
    /// The extra ones come first on the wire: this process has nothing open but the standard three, so the kernel gave
    /// them the numbers 3, 4, … in order, which are the numbers they must have in the program.
    pub(super) fn sort(mut descriptors: Vec<OwnedFd>, extra: usize) -> Result<Self, LaunchError> {
        let bad =
            |reason: String| LaunchError::System { doing: "receiving descriptors".into(), errno: 0, reason };
        let expected = extra + 3;
        if descriptors.len() != expected {
            return Err(bad(format!("{} of {expected} arrived", descriptors.len())));
        }
        for (index, descriptor) in descriptors.iter().take(extra).enumerate() {
            if usize::try_from(descriptor.as_raw_fd()) != Ok(3 + index) {
                return Err(bad(format!("number {} arrived as {}", 3 + index, descriptor.as_raw_fd())));
            }
        }
        let mut last = || descriptors.pop().ok_or_else(|| bad("too few".into()));
        let (stderr, stdout, stdin) = (last()?, last()?, last()?);
        Ok(Self { extra: descriptors, stdin, stdout, stderr })
    }
}

/// Starts the program of the order.
pub(super) fn start(
    order: Order,
    files: Files,
    containment: Contained,
) -> Result<(Pid, Enforced), LaunchError> {
    let cwd = PathBuf::from(&order.cwd.0);
    enter(&cwd)?;
    let path = find(&order, &cwd)?;
    if let Some(umask) = order.umask {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask.0.into()));
    }
    stop_ignoring_signals();
    if !confine::needs_own_thread(order.level) {
        let enforced = confine::apply(&order, &path, containment)?;
        return Ok((spawn(&order, &path, files)?, enforced));
    }
    // Landlock and seccomp bind the thread that asks for them and what it starts. So the program is started from a thread
    // of its own, and the keeper stays free to look at /proc, to kill and to report; it also stays outside the program's
    // Landlock domain, so that the program cannot signal it.
    let starter = move || {
        let enforced = confine::apply(&order, &path, containment)?;
        Ok((spawn(&order, &path, files)?, enforced))
    };
    let thread = std::thread::Builder::new()
        .stack_size(keeper::STACK)
        .spawn(starter)
        .map_err(|error| super::system("starting a thread", &error))?;
    thread.join().unwrap_or_else(|_| {
        Err(LaunchError::System { doing: "confining".into(), errno: 0, reason: "the thread panicked".into() })
    })
}

/// Lets the program begin with every signal at its default, however the host was started.
///
/// What a process ignores (`nohup`, or `&` in a shell without job control) its children ignore too, and so would the program
/// at the end of the chain. What it handles they do not: `execve` gives it its default. So this process handles what it
/// ignored; for itself nothing changes, since nobody looks at what the handlers note.
fn stop_ignoring_signals() {
    // Without /proc nobody can tell, and the program gets what the host was given.
    let ignored = procfs::ignored_signals().unwrap_or_default();
    // The standard library ignores SIGPIPE in every process of ours, and gives it back to those it starts.
    let inherited: Vec<i32> =
        ignored.into_iter().filter(|signal| *signal != rustix::process::Signal::PIPE.as_raw()).collect();
    if inherited.is_empty() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _inside = runtime.enter();
    for signal in inherited {
        // SIGSEGV and its like may not be handled in this way. Programs that are sent those have other worries.
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(signal));
    }
}

fn enter(cwd: &Path) -> Result<(), LaunchError> {
    let failed = |reason: String| LaunchError::Cwd { path: cwd.to_owned(), reason };
    let facts = std::fs::metadata(cwd).map_err(|error| failed(error.to_string()))?;
    if !facts.is_dir() {
        return Err(failed("it is not a directory".to_owned()));
    }
    rustix::fs::access(cwd, Access::EXEC_OK).map_err(|errno| failed(errno.to_string()))
}

/// The file to execute: the path itself, or the first hit on the child's own `PATH`.
fn find(order: &Order, cwd: &Path) -> Result<PathBuf, LaunchError> {
    let program = &order.program.0;
    let not_found =
        |searched| LaunchError::ProgramNotFound { program: program.to_string_lossy().into_owned(), searched };
    if program.is_empty() {
        return Err(LaunchError::InvalidPlan { reason: "the program's name is empty".to_owned() });
    }
    if program.as_bytes().contains(&b'/') {
        let path = cwd.join(program);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(Unfit::Absent) => Err(not_found(vec![path])),
            Err(Unfit::Present(reason)) => Err(LaunchError::NotExecutable { path, reason }),
        };
    }
    let search =
        order.env.iter().find(|(name, _)| name.0 == "PATH").map_or(OsStr::new(""), |(_, value)| &value.0);
    let mut searched = Vec::new();
    let mut unfit = None;
    // An empty entry would mean the working directory; nobody means that.
    for directory in std::env::split_paths(search).filter(|directory| !directory.as_os_str().is_empty()) {
        let path = cwd.join(&directory).join(program);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(Unfit::Absent) => {}
            Err(Unfit::Present(reason)) => {
                unfit.get_or_insert(LaunchError::NotExecutable { path, reason });
            }
        }
        searched.push(directory);
    }
    Err(unfit.unwrap_or_else(|| not_found(searched)))
}

enum Unfit {
    Absent,
    Present(String),
}

fn executable(path: &Path) -> Result<(), Unfit> {
    let facts = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unfit::Absent,
        _ => Unfit::Present(error.to_string()),
    })?;
    if facts.is_dir() {
        return Err(Unfit::Present("it is a directory".to_owned()));
    }
    if !facts.is_file() {
        return Err(Unfit::Present("it is not a regular file".to_owned()));
    }
    rustix::fs::access(path, Access::EXEC_OK).map_err(|errno| match errno {
        Errno::ACCESS => Unfit::Present(
            "it has no execute permission for this user; if it is a program, chmod +x helps".to_owned(),
        ),
        other => Unfit::Present(other.to_string()),
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the place where the program is started")]
fn spawn(order: &Order, path: &Path, files: Files) -> Result<Pid, LaunchError> {
    for descriptor in &files.extra {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())
            .map_err(|errno| super::system("passing a descriptor on", &errno.into()))?;
    }
    // A filter that forbids to start processes would forbid this very start, so it is applied one step later, by a program
    // that then becomes the one that is wanted.
    let mut command = match order.processes {
        Processes::One if confine::needs_own_thread(order.level) => {
            let mut command = Command::new(super::own_executable());
            command.arg0(LAUNCH).args([LAUNCH, ALONE]).arg(&order.program.0).arg(path);
            command
        }
        Processes::One | Processes::Many => {
            let mut command = Command::new(path);
            command.arg0(&order.program.0);
            command
        }
    };
    command
        .args(order.args.iter().map(|arg| &arg.0))
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (&name.0, &value.0)))
        .current_dir(&order.cwd.0)
        .process_group(0)
        .stdin(files.stdin)
        .stdout(files.stdout)
        .stderr(files.stderr);
    let mut pauses = BUSY_PAUSES.into_iter();
    loop {
        match command.spawn() {
            Ok(child) => return Ok(Pid::new(child.id())),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => match pauses.next() {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(LaunchError::Busy { path: path.to_owned() }),
            },
            Err(error) => return Err(explain(path, &error)),
        }
    }
}

/// Gives up starting processes and becomes the program: its own name, its path, its arguments.
#[expect(clippy::disallowed_methods, reason = "this process becomes the program, nothing is started")]
pub(super) fn become_alone(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(name), Some(path)) = (args.next(), args.next()) else { return ExitCode::from(64) };
    let complain = |why: &str| {
        let line = format!("cannot start {}: {why}\n", path.display());
        // There is nobody else to tell.
        let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
        ExitCode::from(126)
    };
    if let Err(why) = super::seccomp::stay_alone() {
        return complain(&format!("starting processes could not be forbidden ({why})"));
    }
    let error = Command::new(&path).arg0(&name).args(args).exec();
    complain(&explain(Path::new(&path), &error).to_string())
}

/// Why `execve` refused a file that exists and has its execute bit.
fn explain(path: &Path, error: &io::Error) -> LaunchError {
    let path = path.to_owned();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => LaunchError::BadInterpreter { interpreter: interpreter(&path), path },
        Some(Errno::NOEXEC) => LaunchError::NotExecutable {
            reason: "it is neither a program for this machine nor a script with a `#!` line".to_owned(),
            path,
        },
        Some(Errno::ACCESS) => LaunchError::NotExecutable {
            reason: "the system or the sandbox forbids to execute it or its interpreter".to_owned(),
            path,
        },
        Some(Errno::TOOBIG) => LaunchError::InvalidPlan {
            reason: "arguments and environment together are longer than the system allows".to_owned(),
        },
        _ => super::system("starting the program", error),
    }
}

/// The interpreter named on a script's first line, or the loader that a dynamically linked program needs.
fn interpreter(path: &Path) -> String {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
    if read.is_err() || !head.starts_with(b"#!") {
        return "its dynamic loader".to_owned();
    }
    let line = head[2..].split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).trim().split(' ').next().unwrap_or_default().to_owned()
}
