//! The one thread that starts launchers and reaps them.
//!
//! It never ends: the parent-death signal of a child fires when the *thread* that forked it ends, so a launcher must not
//! be started from a pool thread. It also reaps, so that a tree whose owner is gone (a dropped future, a runtime that was
//! shut down) leaves no zombie, and it kills what does not go by itself in time.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use super::spare::Waiting;
use super::stage::{Role, tried};
use super::{procfs, sweep};
use crate::launch::{Ahead, LaunchError, Status, TREE_VARIABLE, TreeTag};
use crate::tree::{Identity, Pid};

/// A launcher to be started.
pub(super) struct Start {
    pub(super) executable: PathBuf,
    /// What follows `__launch`.
    pub(super) args: Vec<OsString>,
    pub(super) tag: TreeTag,
    pub(super) stdin: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// A launcher that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) job: Job,
    pub(super) identity: Identity,
    /// Resolves when the launcher is reaped.
    pub(super) ended: oneshot::Receiver<Status>,
}

/// Names one launcher towards the factory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job(u64);

/// Starts a launcher. If the future is dropped, the launcher is started and reaped all the same; it ends by itself,
/// because the other end of its socket is gone.
pub(super) async fn start(start: Start) -> Result<Started, LaunchError> {
    let (reply, answer) = oneshot::channel();
    factory()?.push(Task::Start(start, reply));
    let started = answer.await.map_err(|_| io::Error::other("the launching thread is gone"));
    started.and_then(|started| started).map_err(|error| super::system("starting the launcher", &error))
}

/// A launcher that waits for its order: the spare, if it may be used and fits, otherwise a new one.
pub(super) async fn ready(executable: &Path, role: &Role, ahead: Ahead) -> Result<Waiting, LaunchError> {
    let (reply, answer) = oneshot::channel();
    factory()?.push(Task::Ready { executable: executable.to_owned(), role: role.clone(), ahead, reply });
    let waiting = answer.await.map_err(|_| io::Error::other("the launching thread is gone"));
    waiting.and_then(|waiting| waiting).map_err(|error| super::system("starting the launcher", &error))
}

/// Starts a spare launcher unless there is one. If that fails, the next child starts its own and says what is wrong.
pub(super) fn refill(executable: &Path, role: &Role) {
    if let Ok(factory) = factory() {
        factory.push(Task::Refill { executable: executable.to_owned(), role: role.clone() });
    }
}

/// Kills the launcher if it has not ended by then; `None` calls that off.
pub(super) fn kill_at(job: Job, at: Option<Instant>) {
    // A job exists, so the factory does.
    if let Ok(factory) = factory() {
        factory.push(Task::KillAt(job, at));
    }
}

/// Resolves when the process behind the pidfd has ended; it need not be a child.
pub(super) async fn gone(pidfd: OwnedFd) {
    let (notify, gone) = oneshot::channel();
    if let Ok(factory) = factory() {
        factory.push(Task::Watch(pidfd, notify));
    }
    // An error means that the factory could not watch it, and nobody else could either.
    let _ = gone.await;
}

enum Task {
    Start(Start, oneshot::Sender<io::Result<Started>>),
    Ready { executable: PathBuf, role: Role, ahead: Ahead, reply: oneshot::Sender<io::Result<Waiting>> },
    Refill { executable: PathBuf, role: Role },
    Watch(OwnedFd, oneshot::Sender<()>),
    KillAt(Job, Option<Instant>),
}

/// The door to the thread. The list holds at most a few entries for every child that lives: each caller waits for the
/// answer to its `Start`, and asks for a kill at most twice.
struct Factory {
    tasks: Mutex<Vec<Task>>,
    bell: OwnedFd,
}

impl Factory {
    fn push(&self, task: Task) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        // The counter cannot overflow, so the only possible failure is a bell that already rings.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

fn factory() -> Result<&'static Factory, LaunchError> {
    static FACTORY: OnceLock<Factory> = OnceLock::new();
    static FOUNDING: Mutex<()> = Mutex::new(());
    let _alone = FOUNDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(factory) = FACTORY.get() {
        return Ok(factory);
    }
    let failed = |error: io::Error| super::system("starting the launching thread", &error);
    let bell =
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    epoll::add(&poll, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)
        .map_err(|error| failed(error.into()))?;
    let factory = FACTORY.get_or_init(|| Factory { tasks: Mutex::new(Vec::new()), bell });
    let floor = Floor {
        factory,
        poll,
        next: BELL + 1,
        spare: None,
        running: HashMap::new(),
        watched: HashMap::new(),
    };
    std::thread::Builder::new()
        .name("outrigger-launch".to_owned())
        .spawn(move || floor.run())
        .map_err(failed)?;
    Ok(factory)
}

/// The event number of the bell; jobs count from the next one.
const BELL: u64 = 0;

/// What the thread owns.
struct Floor {
    factory: &'static Factory,
    poll: OwnedFd,
    next: u64,
    /// A launcher that was started ahead.
    spare: Option<Waiting>,
    running: HashMap<Job, Running>,
    watched: HashMap<Job, (OwnedFd, oneshot::Sender<()>)>,
}

struct Running {
    pidfd: OwnedFd,
    tag: TreeTag,
    kill_at: Option<Instant>,
    ended: oneshot::Sender<Status>,
}

impl Floor {
    fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        loop {
            let timeout = self.until_next_kill().map(|left| Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            });
            events.clear();
            // Interruption is the only failure an epoll of our own can have; the loop simply goes round.
            let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref());
            for event in events.drain(..) {
                match event.data.u64() {
                    BELL => self.answer_the_bell(),
                    job => self.reap(Job(job)),
                }
            }
            self.kill_the_late();
        }
    }

    fn answer_the_bell(&mut self) {
        let _ = rustix::io::read(&self.factory.bell, &mut [0_u8; 8]);
        let tasks = std::mem::take(&mut *self.factory.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            match task {
                // Nobody waits any more: dropping a `Started` is harmless, its job is reaped like any other.
                Task::Start(start, reply) => drop(reply.send(self.start(start))),
                Task::Ready { executable, role, ahead, reply } => {
                    let waiting = match self.take_spare(&executable, &role, ahead) {
                        Some(spare) => Ok(spare),
                        None => Waiting::start(&executable, &role, |start| self.start(start)),
                    };
                    drop(reply.send(waiting));
                }
                Task::Refill { executable, role } => {
                    if self.spare.is_none() {
                        self.spare = Waiting::start(&executable, &role, |start| self.start(start)).ok();
                    }
                }
                Task::Watch(pidfd, notify) => {
                    if let Ok(job) = self.admit(&pidfd) {
                        self.watched.insert(job, (pidfd, notify));
                    }
                }
                Task::KillAt(job, at) => {
                    if let Some(running) = self.running.get_mut(&job) {
                        running.kill_at = at;
                    }
                }
            }
        }
    }

    fn take_spare(&mut self, executable: &Path, role: &Role, ahead: Ahead) -> Option<Waiting> {
        // Somebody may have killed it; its death is no fault of the next child.
        if self.spare.as_ref().is_some_and(|spare| !self.running.contains_key(&spare.started.job)) {
            self.spare = None;
        }
        match ahead {
            Ahead::One => self.spare.take_if(|spare| spare.fits(executable, role)),
            Ahead::None => None,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place where the host starts processes")]
    fn start(&mut self, start: Start) -> io::Result<Started> {
        let child = Command::new(&start.executable)
            .arg0("outrigger-launch")
            .arg(super::LAUNCH)
            .args(&start.args)
            .env(TREE_VARIABLE, start.tag.to_string())
            // The keeper has two or three threads and may have to live under an address space limit: without this, the
            // C library reserves 64 MiB for each of them.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(start.stdin)
            .stdout(Stdio::null())
            .stderr(start.stderr)
            .spawn()?;
        let pid = Pid::new(child.id());
        // Until it is reaped, which only this thread does, the number belongs to this child.
        let watched = watch(pid).and_then(|(pidfd, identity)| Ok((self.admit(&pidfd)?, pidfd, identity)));
        let (job, pidfd, identity) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let mut child = child;
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let (notify, ended) = oneshot::channel();
        self.running.insert(job, Running { pidfd, tag: start.tag, kill_at: None, ended: notify });
        Ok(Started { job, identity, ended })
    }

    fn admit(&mut self, pidfd: &OwnedFd) -> io::Result<Job> {
        let job = Job(self.next);
        self.next += 1;
        epoll::add(&self.poll, pidfd, epoll::EventData::new_u64(job.0), epoll::EventFlags::IN)?;
        Ok(job)
    }

    fn reap(&mut self, job: Job) {
        if let Some((pidfd, notify)) = self.watched.remove(&job) {
            let _ = epoll::delete(&self.poll, &pidfd);
            let _ = notify.send(());
            return;
        }
        let Some(running) = self.running.remove(&job) else { return };
        let _ = epoll::delete(&self.poll, &running.pidfd);
        let status =
            match rustix::process::waitid(WaitId::PidFd(running.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => super::status(&status),
                // The host ignores SIGCHLD, or waits for children that are not its own.
                Ok(None) | Err(_) => Status::Unknown,
            };
        if status != Status::Code(0) && !tried::is_answer(status) {
            // It did not end by itself, so perhaps it did not clean up.
            sweep::kill_tagged(&HashSet::from([running.tag]));
        }
        let _ = running.ended.send(status);
    }

    fn until_next_kill(&self) -> Option<Duration> {
        let next = self.running.values().filter_map(|running| running.kill_at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn kill_the_late(&mut self) {
        let now = Instant::now();
        for running in self.running.values_mut() {
            if running.kill_at.is_some_and(|at| at <= now) {
                running.kill_at = None;
                let _ = rustix::process::pidfd_send_signal(&running.pidfd, Signal::KILL);
            }
        }
    }
}

fn watch(pid: Pid) -> io::Result<(OwnedFd, Identity)> {
    let pidfd = rustix::process::pidfd_open(super::raw(pid)?, PidfdFlags::empty())?;
    Ok((pidfd, procfs::identity(pid)?))
}
