//! Nothing outlives its owner: stops, kills, and hosts, launchers and keepers that die at any moment.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Channels, Launched, Launcher, Plan, Signal, Status};
use outrigger_supervise::leftovers::Leftovers;
use outrigger_supervise::sandbox::{Contained, Containment, Level};
use outrigger_supervise::tree::Pid;

use crate::launch_kit::{
    BOTH, PATIENCE, alone, carrying, command, contained, hear, launch, read_all, request, shell, tagged,
    trial, until, until_gone,
};

/// The promise: a second after its owner is gone, so is everything else.
const PROMISE: Duration = Duration::from_secs(1);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("sigterm_reaches_the_whole_group", term_reaches_the_group),
        trial("a_stopped_program_still_notices_sigterm", term_wakes_the_stopped),
        trial("a_child_that_ignores_sigterm_is_killed_with_its_grandchildren", kill_gets_everybody),
        trial("a_program_that_ends_takes_what_it_left_behind_along", leftovers),
        trial("a_stopped_tree_is_killed", kill_gets_the_stopped),
        trial("a_bomb_of_two_hundred_sessions_is_killed", kill_gets_the_bomb),
        trial("dropping_the_control_kills_the_tree", drop_kills),
        alone("a_runtime_that_is_shut_down_leaves_nothing_and_no_zombie", runtime_shutdown),
        trial("dropping_a_launch_half_way_leaves_nothing", dropped_launch),
        trial("a_host_killed_at_any_moment_leaves_nothing", || killed_host(Privilege::AsWeAre)),
        trial("an_unprivileged_host_killed_at_any_moment_leaves_nothing", || killed_host(Privilege::Nobody)),
        trial("a_host_that_panics_leaves_nothing_a_hundred_times", panicking_host),
        trial("a_killed_launcher_takes_the_tree_along_and_is_reported", killed_launcher),
        trial("a_killed_keeper_takes_the_tree_along_and_is_reported", killed_keeper),
        trial("a_stopped_launcher_does_not_save_the_tree", stopped_launcher),
    ]
}

async fn term_reaches_the_group() {
    for containment in BOTH {
        // Both shells say so when they are told to go; the inner one is not a child that the outer one signals.
        let script = "trap 'echo outer; wait; exit 3' TERM; (trap 'echo inner; exit 0' TERM; echo ready; while :; do sleep 1 & wait; done) & wait";
        let mut launched =
            launch(Plan { sandbox: request(Level::Basic, containment), ..shell(script) }).await;
        let reader = hear(&mut launched, "ready").await;
        launched.control.signal(Signal::Term);
        let said = read_all(Some(reader.into_inner())).await;
        let mut said: Vec<&str> = said.lines().collect();
        said.sort_unstable();
        assert_eq!(said, ["inner", "outer"]);
        assert_eq!(launched.control.wait().await.status, Status::Code(3));
    }
}

async fn term_wakes_the_stopped() {
    for containment in BOTH {
        let mut launched = launch(contained(&["stopped"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        until("the stop", PATIENCE, || state(launched.pid) == Some('T')).await;
        launched.control.signal(Signal::Term);
        assert_eq!(launched.control.wait().await.status, Status::Signal(15));
    }
}

async fn kill_gets_everybody() {
    for containment in BOTH {
        let script = format!("trap '' TERM; {} __child escape", own_path().display());
        let mut launched =
            launch(Plan { sandbox: request(Level::Basic, containment), ..shell(&script) }).await;
        let _reader = hear(&mut launched, "ready").await;
        let keepers = 1 + usize::from(containment == Containment::PidNamespace);
        until("the escape", PATIENCE, || tagged(launched.tag).len() == keepers + 3).await;
        launched.control.signal(Signal::Term);
        launched.control.kill();
        let exit = launched.control.wait().await;
        assert_eq!((exit.status, exit.keeper_lost), (Status::Signal(9), None));
        // No patience here: the wait is over only when everything is.
        assert_eq!(tagged(launched.tag), []);
    }
}

async fn leftovers() {
    for containment in BOTH {
        let mut launched = launch(contained(&["escape-and-exit"], containment)).await;
        let exit = launched.control.wait().await;
        assert_eq!((exit.status, exit.leftovers), (Status::Code(7), 1));
        assert_eq!(tagged(launched.tag), []);
    }
}

async fn kill_gets_the_stopped() {
    for containment in BOTH {
        let mut launched = launch(contained(&["stopped"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        until("the stop", PATIENCE, || state(launched.pid) == Some('T')).await;
        launched.control.kill();
        assert_eq!(launched.control.wait().await.status, Status::Signal(9));
        assert_eq!(tagged(launched.tag), []);
    }
}

async fn kill_gets_the_bomb() {
    for containment in BOTH {
        let mut launched = launch(contained(&["bomb", "200"], containment)).await;
        // Killed while the bomb still goes off.
        until("a hundred processes", PATIENCE, || tagged(launched.tag).len() > 100).await;
        launched.control.kill();
        launched.control.wait().await;
        assert_eq!(tagged(launched.tag), []);

        let mut launched = launch(contained(&["bomb", "200"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        launched.control.kill();
        launched.control.wait().await;
        assert_eq!(tagged(launched.tag), []);
    }
}

async fn drop_kills() {
    for containment in BOTH {
        let mut launched = launch(contained(&["escape"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        let (tag, launcher) = (launched.tag, launched.launcher.clone());
        drop(launched);
        until("the end of the tree", PROMISE, || tagged(tag).is_empty()).await;
        until("the reaping of the launcher", PROMISE, || !launcher.exists()).await;
    }
}

async fn runtime_shutdown() {
    let (send, receive) = std::sync::mpsc::sync_channel(2);
    let on_its_own = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.spawn(async move {
            for containment in BOTH {
                let mut launched = launch(contained(&["escape"], containment)).await;
                let reader = hear(&mut launched, "ready").await;
                send.send((launched.tag, launched.launcher.clone())).expect("a receiver");
                tokio::spawn(async move {
                    let _reader = reader;
                    launched.control.wait().await;
                });
            }
            std::future::pending::<()>().await;
        });
        // Runs until both are up, and then goes away in the middle of two waits.
        let both = runtime.block_on(async {
            tokio::task::spawn_blocking(move || [receive.recv().expect("one"), receive.recv().expect("two")])
                .await
        });
        drop(runtime);
        both.expect("both")
    });
    let both = on_its_own.join().expect("the thread");
    for (tag, launcher) in both {
        until("the end of the tree", PROMISE, || tagged(tag).is_empty()).await;
        until("the reaping of the launcher", PROMISE, || !launcher.exists()).await;
    }
}

async fn dropped_launch() {
    for containment in BOTH {
        for step in 0..30 {
            let mark = format!("OUTRIGGER_TEST_MARK=drop-{}-{containment:?}-{step}", std::process::id());
            let (name, value) = mark.split_once('=').expect("an entry");
            let plan = Plan { env: vec![(name.into(), value.into())], ..contained(&["escape"], containment) };
            let launcher = Launcher::current_exe();
            let launching = launcher.launch(plan, Channels::piped());
            let _ = tokio::time::timeout(Duration::from_micros(step * 200), launching).await;
            until_gone(&mark, PROMISE).await;
        }
    }
}

/// As which user a host runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Privilege {
    AsWeAre,
    Nobody,
}

async fn killed_host(privilege: Privilege) {
    let place = tempfile::tempdir().expect("a directory");
    let mut slowest = Duration::ZERO;
    for containment in BOTH {
        for round in 0..20_u64 {
            let mut host = Host::start(place.path(), privilege, containment, round, None);
            match round % 2 {
                0 => {
                    host.hear("up");
                    // The host, the launcher, the program and the escapee.
                    until("four processes", PATIENCE, || carrying(&host.mark).len() >= 4).await;
                }
                // In the middle of whatever it is doing.
                _ => tokio::time::sleep(Duration::from_micros(round * 700)).await,
            }
            host.child.kill().expect("SIGKILL");
            slowest = slowest
                .max(until("the end of everything", PROMISE, || carrying(&host.mark).is_empty()).await);
            host.child.wait().expect("the host");
        }
    }
    writeln!(std::io::stderr(), "{privilege:?}: the slowest of 40 killed hosts was clean after {slowest:?}")
        .expect("stderr");
}

async fn panicking_host() {
    for round in 0..100 {
        let (name, value) = ("OUTRIGGER_TEST_MARK", format!("{}-panic-{round}", std::process::id()));
        let output = command(&own_path())
            .args(["__host", "panic", "PidNamespace"])
            .env(name, &value)
            .stdin(Stdio::null())
            .output()
            .expect("a host");
        assert_eq!(output.status.code(), Some(101), "a panic ends the host");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "up\n");
        let mark = format!("{name}={value}");
        until("the end of everything", PROMISE, || carrying(&mark).is_empty()).await;
    }
}

/// A host process of its own.
pub(crate) struct Host {
    pub(crate) child: Child,
    pub(crate) mark: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Host {
    pub(crate) fn start(
        place: &Path,
        privilege: Privilege,
        containment: Containment,
        round: u64,
        registry: Option<&Path>,
    ) -> Self {
        let (name, value) =
            ("OUTRIGGER_TEST_MARK", format!("{}-{privilege:?}-{containment:?}-{round}", std::process::id()));
        let mut host = match privilege {
            Privilege::AsWeAre => command(&own_path()),
            Privilege::Nobody => as_nobody(place),
        };
        host.args(["__host", "escape", &format!("{containment:?}")]).args(registry).env(name, &value);
        let mut child =
            host.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a host");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, mark: format!("{name}={value}"), stdout }
    }

    pub(crate) fn hear(&mut self, line: &str) {
        let mut heard = String::new();
        while heard.trim_end() != line {
            heard.clear();
            assert_ne!(self.stdout.read_line(&mut heard).expect("the host's output"), 0, "the host ended");
        }
    }
}

impl Drop for Host {
    /// A test that fails must not leave its host behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This test binary as the user nobody. It is copied to where nobody may execute it.
pub(crate) fn as_nobody(place: &Path) -> std::process::Command {
    if !rustix::process::geteuid().is_root() {
        return command(&own_path());
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place, PermissionsExt::from_mode(0o755)).expect("a mode");
    let copy = place.join("it");
    if !copy.exists() {
        std::fs::copy(own_path(), &copy).expect("a copy");
    }
    let mut host = command(Path::new("setpriv"));
    host.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
    host
}

async fn killed_launcher() {
    for containment in BOTH {
        let mut launched = launch(contained(&["escape"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        kill(launched.launcher.pid, rustix::process::Signal::KILL);
        let exit = launched.control.wait().await;
        assert_eq!(exit.status, Status::Unknown);
        let lost = exit.keeper_lost.expect("a lost keeper");
        assert_eq!(lost, "the launcher ended with signal 9 (SIGKILL) and without a report");
        assert_eq!(tagged(launched.tag), []);
    }
}

async fn killed_keeper() {
    let mut launched = launch(contained(&["escape"], Containment::PidNamespace)).await;
    let _reader = hear(&mut launched, "ready").await;
    assert!(matches!(launched.enforced.containment, Contained::PidNamespace { .. }));
    kill(keeper(&launched), rustix::process::Signal::KILL);
    let exit = launched.control.wait().await;
    assert_eq!(exit.status, Status::Unknown);
    assert_eq!(exit.keeper_lost.as_deref(), Some("the launcher ended with exit code 1 and without a report"));
    assert_eq!(tagged(launched.tag), []);
}

async fn stopped_launcher() {
    for containment in BOTH {
        let mut launched = launch(contained(&["escape"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        let stopped = match containment {
            Containment::PidNamespace => keeper(&launched),
            Containment::Subreaper | Containment::Strongest => launched.launcher.pid,
        };
        kill(stopped, rustix::process::Signal::STOP);
        until("the stop", PATIENCE, || state(stopped) == Some('T')).await;
        launched.control.kill();
        let exit = launched.control.wait().await;
        assert!(exit.keeper_lost.is_some());
        assert_eq!(tagged(launched.tag), []);
    }
}

/// Plays one host: launches a child with an escaped grandchild, says so, and sleeps, or panics.
pub(crate) fn host(args: &[String]) -> ExitCode {
    let containment = match args.get(1).map(String::as_str) {
        Some("PidNamespace") => Containment::PidNamespace,
        Some("Subreaper") => Containment::Subreaper,
        _ => return ExitCode::from(64),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mark = "OUTRIGGER_TEST_MARK";
        let env = vec![(mark.into(), std::env::var_os(mark).expect("a mark"))];
        let mut launched = launch(Plan { env, ..contained(&["escape"], containment) }).await;
        let _reader = hear(&mut launched, "ready").await;
        let registry = args.get(2).map(|path| Leftovers::open(Path::new(path)).expect("a registry"));
        let _note = registry.as_ref().map(|registry| registry.note(&launched).expect("a note"));
        writeln!(std::io::stdout(), "up").expect("stdout");
        assert_ne!(args[0], "panic", "as the test wants it");
        launched.control.wait().await;
    });
    ExitCode::FAILURE
}

/// The child of stage A.
fn keeper(launched: &Launched) -> Pid {
    let parent = format!(" {} ", launched.launcher.pid);
    let mut children = tagged(launched.tag).into_iter().filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest[2..].starts_with(&parent)))
    });
    children.next().expect("a keeper")
}

/// The letter for the state of a process.
fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn kill(pid: Pid, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.get().cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("a signal");
}

fn own_path() -> PathBuf {
    std::env::current_exe().expect("own path")
}
