//! The host's side of a launch: wiring, the control socket, the wait.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::pipe::PipeFlags;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::factory::{self, Job};
use super::message::{self, BadMessage, Command, Inbox, Order, Report};
use super::spare::Waiting;
use super::stage::Role;
use super::{containment, procfs, socket, system};
use crate::launch::{Ahead, Channels, Control, Exit, LaunchError, Launched, Plan, Signal, Status, Wiring};

/// How long a launcher may take until the program runs. Far above anything but a file system that hangs.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long the keeper may take to take its tree down before it is killed itself.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// See [`crate::launch::Launcher::launch`].
pub(crate) async fn launch(
    executable: &Path,
    ahead: Ahead,
    plan: Plan,
    channels: Channels,
) -> Result<Launched, LaunchError> {
    validate(&plan, &channels)?;
    let wanted = plan.sandbox.containment;
    let mut wired = Wired::new(channels).map_err(|error| system("wiring the child", &error))?;
    if let Some(guess) = containment::guess(wanted) {
        match attempt(executable, ahead, &guess, plan.clone(), &mut wired).await {
            Err(error) if containment::is_doubtful(&error) => {}
            launched => {
                if launched.is_ok() {
                    containment::learn(&guess);
                }
                return launched;
            }
        }
    }
    let role = containment::choose(executable, wanted).await?;
    attempt(executable, ahead, &role, plan, &mut wired).await
}

/// Launches with this role. The wiring is taken only if that works.
async fn attempt(
    executable: &Path,
    ahead: Ahead,
    role: &Role,
    plan: Plan,
    wired: &mut Wired,
) -> Result<Launched, LaunchError> {
    let Waiting { tag, socket, complaints, started, .. } = factory::ready(executable, role, ahead).await?;
    let order = Order::new(plan, tag, super::born_with(), wired.extra.len());
    let order = message::encode(&order)
        .map_err(|_| invalid(format!("it is longer than {} bytes", message::MAX_MESSAGE)))?;
    let socket = UnixStream::from_std(socket).map_err(|error| system("using the control socket", &error))?;
    factory::kill_at(started.job, Some(Instant::now() + START_PATIENCE));
    let mut grip = Grip {
        socket,
        inbox: Inbox::default(),
        descriptors: Vec::new(),
        job: started.job,
        ended: Ended::Waiting(started.ended),
        keeper: None,
        report: None,
        exit: None,
        killed: AtomicBool::new(false),
    };
    // If the launcher died already, the reason comes with the report or the lack of it.
    let _ = grip.send_order(&order, &wired.theirs()).await;
    let enforced = match grip.next_report().await {
        Ok(Some(Report::Spawned(enforced))) => enforced,
        Ok(Some(Report::Failed(error))) => {
            grip.ended().await;
            return Err(error);
        }
        Ok(Some(Report::Exited { .. }) | None) | Err(_) => {
            grip.kill();
            let status = grip.ended().await;
            return Err(super::launcher_died(status, read_complaints(complaints)));
        }
    };
    let identity = grip.meet_program()?;
    factory::kill_at(grip.job, None);
    if ahead == Ahead::One {
        factory::refill(executable, role);
    }
    Ok(Launched {
        pid: identity.pid,
        identity,
        launcher: started.identity,
        tag,
        stdin: wired.stdin.take(),
        stdout: wired.stdout.take(),
        stderr: wired.stderr.take(),
        enforced,
        control: Control { grip },
    })
}

/// The host's end of one control socket. Dropping it closes the socket, which the keeper answers by taking the tree down.
#[derive(Debug)]
pub(crate) struct Grip {
    socket: UnixStream,
    inbox: Inbox,
    descriptors: Vec<OwnedFd>,
    job: Job,
    ended: Ended,
    /// The keeper's pidfd: when the keeper is pid 1 of a namespace, its end is the end of everything inside.
    keeper: Option<OwnedFd>,
    report: Option<Exit>,
    exit: Option<Exit>,
    killed: AtomicBool,
}

#[derive(Debug)]
enum Ended {
    Waiting(oneshot::Receiver<Status>),
    With(Status),
}

impl Grip {
    pub(crate) fn signal(&self, signal: Signal) {
        self.command(&Command::Signal(signal));
    }

    pub(crate) fn kill(&self) {
        self.command(&Command::Kill);
        if !self.killed.swap(true, Ordering::Relaxed) {
            factory::kill_at(self.job, Some(Instant::now() + KILL_PATIENCE));
        }
    }

    pub(crate) async fn wait(&mut self) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        while self.report.is_none() {
            match self.next_report().await {
                Ok(Some(Report::Exited { status, leftovers, cpu_micros, max_rss_bytes })) => {
                    let cpu = Duration::from_micros(cpu_micros);
                    self.report = Some(Exit { status, leftovers, cpu, max_rss_bytes, keeper_lost: None });
                }
                Ok(Some(Report::Spawned(_) | Report::Failed(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        let status = self.ended().await;
        let exit = match &self.report {
            Some(exit) => exit.clone(),
            None => {
                self.keeper_ended().await;
                Exit {
                    status: Status::Unknown,
                    leftovers: 0,
                    cpu: Duration::ZERO,
                    max_rss_bytes: 0,
                    keeper_lost: Some(format!("the launcher ended with {status} and without a report")),
                }
            }
        };
        self.exit.insert(exit).clone()
    }

    /// Commands are a few bytes and the keeper reads them at once, so they fit into the socket's buffer or the keeper is
    /// beyond listening.
    fn command(&self, command: &Command) {
        if let Ok(bytes) = message::encode(command) {
            let _ = self.socket.try_io(Interest::WRITABLE, || Ok(socket::send(&self.socket, &bytes, &[])?));
        }
    }

    async fn send_order(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let with = if sent == 0 { descriptors } else { &[] };
            let send = || Ok(socket::send(&self.socket, &bytes[sent..], with)?);
            sent += self.socket.async_io(Interest::WRITABLE, send).await?;
        }
        Ok(())
    }

    /// The next report, or `None` when the other end is closed. Can be dropped and called anew.
    async fn next_report(&mut self) -> Result<Option<Report>, BadMessage> {
        loop {
            if let Some(report) = self.inbox.next()? {
                return Ok(Some(report));
            }
            let mut buffer = [0; 4096];
            let Self { socket: ours, descriptors, inbox, .. } = self;
            let receive = || Ok(socket::receive(&*ours, &mut buffer, descriptors)?);
            match ours.async_io(Interest::READABLE, receive).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(count) => inbox.push(&buffer[..count]),
            }
        }
    }

    /// Takes the two pidfds that came with the first report, writes down who the program is, and lets the keeper go on.
    fn meet_program(&mut self) -> Result<crate::tree::Identity, LaunchError> {
        let failed = |error: &io::Error| system("identifying the program", error);
        let mut arrived = std::mem::take(&mut self.descriptors).into_iter();
        let (Some(program), Some(keeper)) = (arrived.next(), arrived.next()) else {
            return Err(failed(&io::Error::other("no pidfd came with the report")));
        };
        self.keeper = Some(keeper);
        let pid = procfs::pid_of(&program).map_err(|error| failed(&error))?;
        // The keeper does not reap the program before it reads `known`, so the number is still the program's.
        let identity = procfs::identity(pid).map_err(|error| failed(&error))?;
        self.command(&Command::Known);
        Ok(identity)
    }

    async fn ended(&mut self) -> Status {
        let status = match &mut self.ended {
            Ended::Waiting(receiver) => receiver.await.unwrap_or(Status::Unknown),
            Ended::With(status) => *status,
        };
        self.ended = Ended::With(status);
        status
    }

    async fn keeper_ended(&self) {
        if let Some(keeper) = &self.keeper
            && let Ok(keeper) = keeper.try_clone()
        {
            factory::gone(keeper).await;
        }
    }
}

impl Drop for Grip {
    fn drop(&mut self) {
        if matches!(self.ended, Ended::Waiting(_)) {
            factory::kill_at(self.job, Some(Instant::now() + KILL_PATIENCE));
        }
    }
}

fn validate(plan: &Plan, channels: &Channels) -> Result<(), LaunchError> {
    if channels.extra.len() > Channels::MAX_EXTRA {
        return Err(invalid(format!("more than {} extra descriptors", Channels::MAX_EXTRA)));
    }
    if !plan.cwd.is_absolute() {
        return Err(invalid(format!("the working directory `{}` is not absolute", plan.cwd.display())));
    }
    let texts = plan
        .args
        .iter()
        .chain([&plan.program])
        .chain(plan.env.iter().flat_map(|(name, value)| [name, value]));
    if texts.chain([&plan.cwd.clone().into_os_string()]).any(|text| text.as_bytes().contains(&0)) {
        return Err(invalid(
            "a NUL byte in the program, an argument, the environment or the working directory".into(),
        ));
    }
    let bad_name = |name: &std::ffi::OsString| name.is_empty() || name.as_bytes().contains(&b'=');
    if let Some((name, _)) = plan.env.iter().find(|(name, _)| bad_name(name)) {
        return Err(invalid(format!("`{}` cannot be the name of a variable", name.to_string_lossy())));
    }
    Ok(())
}

fn invalid(reason: String) -> LaunchError {
    LaunchError::InvalidPlan { reason }
}

/// Both ends of the child's descriptors.
struct Wired {
    extra: Vec<OwnedFd>,
    standard: [OwnedFd; 3],
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

impl Wired {
    fn new(channels: Channels) -> io::Result<Self> {
        let Channels { stdin, stdout, stderr, extra } = channels;
        let null = || std::fs::File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        let (stdin, to_child) = match stdin {
            Wiring::Null => (null()?, None),
            Wiring::Inherit => (io::stdin().as_fd().try_clone_to_owned()?, None),
            Wiring::Fd(descriptor) => (descriptor, None),
            Wiring::Pipe => {
                let (read, write) = pipe(PipeFlags::CLOEXEC)?;
                (read, Some(pipe::Sender::from_owned_fd(write)?))
            }
        };
        let out = |wiring: Wiring, own: BorrowedFd<'_>| -> io::Result<(OwnedFd, Option<pipe::Receiver>)> {
            Ok(match wiring {
                Wiring::Null => (null()?, None),
                Wiring::Inherit => (own.try_clone_to_owned()?, None),
                Wiring::Fd(descriptor) => (descriptor, None),
                Wiring::Pipe => {
                    let (read, write) = pipe(PipeFlags::CLOEXEC)?;
                    (write, Some(pipe::Receiver::from_owned_fd(read)?))
                }
            })
        };
        let (stdout, from_stdout) = out(stdout, io::stdout().as_fd())?;
        let (stderr, from_stderr) = out(stderr, io::stderr().as_fd())?;
        Ok(Self {
            extra,
            standard: [stdin, stdout, stderr],
            stdin: to_child,
            stdout: from_stdout,
            stderr: from_stderr,
        })
    }

    /// The child's ends, in the order in which the keeper expects them.
    fn theirs(&self) -> Vec<BorrowedFd<'_>> {
        self.extra.iter().chain(&self.standard).map(AsFd::as_fd).collect()
    }
}

fn pipe(flags: PipeFlags) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(flags)?)
}

/// What a launcher that is gone wrote to its standard error.
fn read_complaints(complaints: OwnedFd) -> String {
    let mut text = Vec::new();
    let _ = std::fs::File::from(complaints).take(super::MAX_COMPLAINT).read_to_end(&mut text);
    String::from_utf8_lossy(&text).trim().to_owned()
}
