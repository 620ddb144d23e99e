//! The keeper: starts the program, passes signals on, reaps orphans, and takes the tree down with it.
//!
//! Two threads. The main one waits for children; the other one reads commands. The program itself is never reaped before
//! the very end, so its number stays its own and a signal can never hit a stranger.

use std::io::stdin;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid as RawPid;
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitOptions};

use super::message::{self, Command, Inbox, Order, Report};
use super::{program, socket, stage, sweep};
use crate::launch::{LaunchError, Signal, Status};
use crate::sandbox::{Contained, Layer};
use crate::tree::Pid;

/// How this keeper holds its tree.
#[derive(Clone, Debug)]
pub(super) enum Hold {
    /// It is pid 1: when it ends, the kernel ends the others.
    PidNamespace { user_namespace: bool, proc_mounted: Layer },
    /// Orphans come to it; it has to kill them itself.
    Subreaper { reason: String },
}

/// Runs one program to its end.
pub(super) fn run(hold: Hold) -> ExitCode {
    match keep(hold) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => stage::fail(&error),
    }
}

fn keep(hold: Hold) -> Result<(), LaunchError> {
    let mut inbox = Inbox::default();
    let (order, descriptors) = receive_order(&mut inbox)?;
    let files = program::Files::sort(descriptors, order.extra)?;
    let containment = match hold.clone() {
        Hold::PidNamespace { user_namespace, proc_mounted } => {
            Contained::PidNamespace { user_namespace, proc_mounted }
        }
        Hold::Subreaper { reason } => Contained::Subreaper { reason },
    };
    let shared = Arc::new(Shared { hold, watched: Mutex::new(Watched::Nothing), changed: Condvar::new() });
    listen(Arc::clone(&shared), inbox)?;

    let (pid, enforced) = {
        // Under the lock, so that a host that goes away now finds either no program or one that can be swept.
        let mut watched = shared.lock();
        let (pid, enforced) = program::start(order, files, containment)?;
        *watched = Watched::Program { pid, known: false };
        (pid, enforced)
    };
    let handles = pidfd(pid).and_then(|program| Ok((program, pidfd(own())?)));
    let (program, keeper) = handles.map_err(|error| {
        shared.kill_all();
        shared.reap_all();
        super::system("opening a pidfd", &error)
    })?;
    report(&Report::Spawned(enforced), &[program.as_fd(), keeper.as_fd()]);
    drop((program, keeper));

    let status = shared.wait_for_program(pid);
    report(&shared.take_down(status), &[]);
    Ok(())
}

struct Shared {
    hold: Hold,
    watched: Mutex<Watched>,
    changed: Condvar,
}

/// What there is to signal.
#[derive(Clone, Copy)]
enum Watched {
    Nothing,
    Program { pid: Pid, known: bool },
    Ending,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reaps orphans until the program has ended, and leaves the program itself unreaped.
    fn wait_for_program(&self, program: Pid) -> Status {
        let Ok(raw) = super::raw(program) else { return Status::Unknown };
        loop {
            let ended = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
            // One reaper at a time: a sweep that is going on (see `end`) must itself see every death, because each one may
            // have left a child that its last pass did not know.
            let _alone = self.lock();
            if let Ok(Some(status)) =
                rustix::process::waitid(WaitId::Pid(raw), PEEK.union(WaitIdOptions::NOHANG))
            {
                return super::status(&status);
            }
            match ended.map(|orphan| orphan.pid()) {
                Ok(Some(orphan)) => drop(waitid(Id::Pid(orphan), WaitPidFlag::WEXITED)),
                Err(Errno::EINTR) => {}
                // No child although the program was not reaped: somebody set SIGCHLD to be ignored.
                Err(Errno::ECHILD) => return Status::Unknown,
                // An orphan that was ended by a real-time signal, for which `nix` has no name and hence no answer. If the
                // program ends at this very moment it may be reaped here too early, but never unnoticed.
                Ok(None) | Err(_) => match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some((pid, status))) if pid == raw => return early(status),
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }

    /// The program has ended: kill what is left, reap everything, add up.
    fn take_down(&self, status: Status) -> Report {
        {
            // Until the host has looked at the program its number must stay taken, or the host would write down somebody
            // else's. If the host goes away instead, the other thread ends this process.
            let watched = self.lock();
            let unknown = |watched: &mut Watched| matches!(watched, Watched::Program { known: false, .. });
            let mut watched =
                self.changed.wait_while(watched, unknown).unwrap_or_else(PoisonError::into_inner);
            *watched = Watched::Ending;
        }
        // Everybody the program left behind is a child of ours by now or below one. So when the dead are reaped (the
        // program too: nobody signals its number any more) and no child is left, the process table need not be read.
        let leftovers = if reap_the_dead() == Children::None { 0 } else { sweep::count().unwrap_or(0) };
        if leftovers > 0 {
            self.kill_all();
        }
        self.reap_all();
        let (cpu_micros, max_rss_bytes) = getrusage(UsageWho::RUSAGE_CHILDREN).map_or((0, 0), |usage| {
            let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            (cpu.unsigned_abs(), usage.max_rss().unsigned_abs() * 1024)
        });
        Report::Exited { status, leftovers, cpu_micros, max_rss_bytes }
    }

    /// SIGKILL for every process of the tree, atomically in a pid namespace, in one pass otherwise.
    fn kill_all(&self) {
        match self.hold {
            Hold::PidNamespace { .. } => {
                // From pid 1 this reaches all others of the namespace and nobody else.
                let _ = nix::sys::signal::kill(RawPid::from_raw(-1), nix::sys::signal::Signal::SIGKILL);
            }
            Hold::Subreaper { .. } => {
                let _ = sweep::descendants();
            }
        }
    }

    /// Reaps until there is no child, killing what the first pass did not see.
    fn reap_all(&self) {
        loop {
            match reap_the_dead() {
                Children::None => return,
                Children::Living => {
                    self.kill_all();
                    // Somebody is still dying; their end wakes this call, whoever they are.
                    let _ = rustix::process::waitid(WaitId::All, PEEK);
                }
            }
        }
    }

    fn obey(&self, command: Command) {
        let mut watched = self.lock();
        match (command, *watched) {
            (Command::Known, Watched::Program { pid, .. }) => {
                *watched = Watched::Program { pid, known: true };
                self.changed.notify_all();
            }
            (Command::Signal(signal), Watched::Program { pid, .. }) => signal_group(pid, signal),
            (Command::Kill, _) => self.kill_all(),
            (Command::Known | Command::Signal(_), Watched::Nothing | Watched::Ending) => {}
        }
    }

    /// The host is gone or has let go. Nobody is left to report to.
    fn end(&self) -> ! {
        if matches!(self.hold, Hold::Subreaper { .. }) {
            // The lock is never given back: no program starts and none is reported after the sweep.
            let _watched = self.lock();
            self.kill_all();
            self.reap_all();
            std::process::exit(0)
        }
        std::process::exit(0)
    }
}

fn receive_order(inbox: &mut Inbox) -> Result<(Order, Vec<OwnedFd>), LaunchError> {
    let mut buffer = vec![0; 64 * 1024];
    let mut descriptors = Vec::new();
    loop {
        match socket::receive(stdin().as_fd(), &mut buffer, &mut descriptors) {
            // The host gave up before it said anything; ending without a report is the right answer to nobody.
            Ok(0) => std::process::exit(1),
            Ok(count) => inbox.push(&buffer[..count]),
            Err(errno) => return Err(super::system("receiving the plan", &errno.into())),
        }
        match inbox.next() {
            Ok(Some(order)) => return Ok((order, descriptors)),
            Ok(None) => {}
            Err(bad) => return Err(LaunchError::InvalidPlan { reason: bad.to_string() }),
        }
    }
}

/// Starts the thread that reads commands.
fn listen(shared: Arc<Shared>, mut inbox: Inbox) -> Result<(), LaunchError> {
    let listener = move || {
        let mut buffer = [0; 4096];
        loop {
            match inbox.next() {
                Ok(Some(command)) => {
                    shared.obey(command);
                    continue;
                }
                Ok(None) => {}
                // The host never sends nonsense; whoever does has no business here.
                Err(_) => shared.end(),
            }
            match socket::receive(stdin().as_fd(), &mut buffer, &mut Vec::new()) {
                Ok(count) if count > 0 => inbox.push(&buffer[..count]),
                Ok(_) | Err(_) => shared.end(),
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(listener)
        .map(drop)
        .map_err(|error| super::system("starting the control thread", &error))
}

/// Look at who has ended without reaping them.
const PEEK: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT);

/// Small, because the keeper may have to live under an address space limit that is meant for the program.
pub(super) const STACK: usize = 256 * 1024;

fn report(report: &Report, descriptors: &[std::os::fd::BorrowedFd<'_>]) {
    if let Ok(bytes) = message::encode(report) {
        // If the host is gone, the other thread notices on its own.
        let _ = socket::send_all(stdin().as_fd(), &bytes, descriptors);
    }
}

fn signal_group(program: Pid, signal: Signal) {
    use rustix::process::Signal as Raw;
    let Ok(group) = super::raw(program) else { return };
    let (raw, wake) = match signal {
        Signal::Term => (Raw::TERM, true),
        Signal::Int => (Raw::INT, true),
        Signal::Hup => (Raw::HUP, true),
        Signal::Quit => (Raw::QUIT, true),
        Signal::Usr1 => (Raw::USR1, false),
        Signal::Usr2 => (Raw::USR2, false),
        Signal::Stop => (Raw::STOP, false),
        Signal::Cont => (Raw::CONT, false),
    };
    let _ = rustix::process::kill_process_group(group, raw);
    if wake {
        let _ = rustix::process::kill_process_group(group, Raw::CONT);
    }
}

#[derive(PartialEq, Eq)]
enum Children {
    Living,
    None,
}

fn reap_the_dead() -> Children {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Children::Living,
            Err(_) => return Children::None,
        }
    }
}

fn early(status: rustix::process::WaitStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Unknown,
    }
}

fn pidfd(pid: Pid) -> std::io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(super::raw(pid)?, PidfdFlags::empty())?)
}

fn own() -> Pid {
    Pid::new(std::process::id())
}
