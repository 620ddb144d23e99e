//! What the tests of hostile extensions share: what an extension found out, what is still alive, numbers, a network that can
//! be held back, and a whole host in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outrigger_sep::config::HostPolicy;
use outrigger_sep::host::{Begin, Fleet, FleetOptions};
use outrigger_sep::manifest::HostFacts;
use outrigger_sep::mesh::{
    Address, Contact, ContactQuery, Ear, Embedded, EmbeddedOptions, MeshError, Message, MessageQuery,
    Messaging, Nowhere, Outgoing, Sent,
};
use outrigger_sep::protocol::Profile;
use outrigger_wire::peer::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::fleet_kit::{Host, PATIENCE, Site, supervisor};

/// What the script of an extension found out, in order.
pub(crate) fn said(host: &Host, id: &str) -> Vec<Value> {
    findings(&host.log(id))
}

fn findings(log: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let printed = lines.filter(|line| line["stream"] == "stdout");
    printed.filter_map(|line| serde_json::from_str(line["msg"].as_str()?).ok()).collect()
}

/// Every process that was started from a program under this folder, by its number.
pub(crate) fn alive_in(folder: &Path) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("a process table").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_folder = |pid: &u32| {
        // A zombie has no command line.
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
        program.starts_with(folder.as_os_str().as_encoded_bytes())
    };
    numbers.filter(of_folder).collect()
}

/// That no program under this folder runs any more.
pub(crate) fn assert_nobody_in(folder: &Path) {
    let left = alive_in(folder);
    assert!(left.is_empty(), "these are left: {left:?}");
}

/// The sum of a counter over all its lines that have these labels.
pub(crate) fn counted(host: &Host, name: &str, labels: &[&str]) -> u64 {
    count_in(&host.fleet.metrics().to_text(), name, labels)
}

fn count_in(metrics: &str, name: &str, labels: &[&str]) -> u64 {
    let head = format!("{name}{{");
    let lines = metrics.lines().filter(|line| line.starts_with(&head));
    let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
    lines.map(|line| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number")).sum()
}

/// A network whose messages are listed only once it is let go, and whose events can be made up.
pub(crate) struct Held {
    inner: Arc<Embedded>,
    ear: Mutex<Option<Arc<dyn Ear>>>,
    open: watch::Sender<bool>,
}

impl Held {
    /// Lets everybody who waits for messages go on.
    pub(crate) fn release(&self) {
        self.open.send_replace(true);
    }

    /// Who hears what happens.
    pub(crate) fn ear(&self) -> Arc<dyn Ear> {
        let ear = self.ear.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ear.as_ref().expect("a host listens"))
    }
}

impl Messaging for Held {
    fn own_address(&self) -> Address {
        self.inner.own_address()
    }

    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        self.inner.send(message)
    }

    fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        let (messages, mut open) = (self.inner.messages(query), self.open.subscribe());
        Box::pin(async move {
            let _ = open.wait_for(|open| *open).await;
            messages.await
        })
    }

    fn contacts(&self, query: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        self.inner.contacts(query)
    }

    fn listen(&self, ear: Arc<dyn Ear>) {
        *self.ear.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&ear));
        self.inner.listen(ear);
    }
}

/// A host on a network that is held back.
pub(crate) async fn start_held(site: Site) -> (Host, Arc<Held>) {
    let options = site.options();
    let Site { place, policy } = site;
    let mesh = Embedded::open(place.path().join("mesh.sqlite"), EmbeddedOptions::named("host"));
    let mesh = Arc::new(mesh.expect("a mesh"));
    let held =
        Arc::new(Held { inner: Arc::clone(&mesh), ear: Mutex::new(None), open: watch::Sender::new(false) });
    let fleet = Fleet::start(FleetOptions { messaging: Arc::clone(&held) as _, ..options });
    let host = Host { fleet: fleet.await.expect("a fleet"), mesh, policy, place };
    host.fleet.rescan().await;
    (host, held)
}

/// Says that this process is a host, and in which folder.
const ROLE: &str = "OUTRIGGER_TEST_SEP_HOST";

/// Plays a host, if this process is one: until its standard input ends.
pub(crate) fn intercept() -> Option<ExitCode> {
    let place = PathBuf::from(std::env::var_os(ROLE)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut policy = HostPolicy::new(place.join("state"), vec![place.join("extensions")]);
        policy.builtin_dir = Some(place.join("builtin"));
        let fleet = Fleet::start(FleetOptions {
            policy,
            facts: HostFacts::here("0.0.0", Profile::Desktop),
            supervisor: supervisor(),
            messaging: Arc::new(Nowhere),
            auto_level: "strict",
            seed: 7,
            begin: Begin::Running,
        });
        let fleet = fleet.await.expect("a fleet");
        say(&format!("{}", peak_kib()));
        fleet.rescan().await;
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().lock().read_to_end(&mut Vec::new()));
        ended.await.expect("no panic").expect("an end");
        let dropped = count_in(&fleet.metrics().to_text(), "sep_log_dropped_total", &[]);
        fleet.shutdown().await;
        say(&format!("{} {dropped}", peak_kib()));
    });
    Some(ExitCode::SUCCESS)
}

fn say(line: &str) {
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

/// The most memory that this process ever had.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A host in a process of its own. Dropping it kills it.
pub(crate) struct Away {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
    /// What it had needed before there were any extensions.
    pub(crate) idle_kib: u64,
}

impl Away {
    #[expect(clippy::disallowed_methods, reason = "the test plays the operator who starts a host")]
    pub(crate) fn start(place: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("own path"))
            .env(ROLE, place)
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a host");
        let lines = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut away = Self { process, lines, idle_kib: 0 };
        away.idle_kib = away.line().trim().parse().expect("a number");
        away
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }

    /// Kills it without warning.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }

    /// Lets it end: how much memory it had at the most, and how many lines of logs it had dropped.
    pub(crate) fn end(mut self) -> (u64, u64) {
        drop(self.process.stdin.take());
        let line = self.line();
        assert!(self.process.wait().expect("gone").success());
        let (peak, dropped) = line.trim().split_once(' ').expect("two numbers");
        (peak.parse().expect("a number"), dropped.parse().expect("a number"))
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits, without a host to ask, until something is so; says how long that took.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "it never came to be that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}

/// The log of an extension in the state of a host.
pub(crate) fn log_in(place: &Path, id: &str) -> String {
    let path = place.join("state/logs").join(id).join("current.log");
    std::fs::read_to_string(path).unwrap_or_default()
}
