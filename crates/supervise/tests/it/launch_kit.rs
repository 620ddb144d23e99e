//! What every launch test needs: plans for the misbehaving child, waiting for events, looking into the process table.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Channels, Launched, Launcher, Plan, TREE_VARIABLE, TreeTag, Wiring};
use outrigger_supervise::sandbox::{Containment, Level, Limits, Request};
use outrigger_supervise::tree::Pid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

/// Far longer than anything here takes; only a test that fails ever waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Both ways in which a tree is held together.
pub(crate) const BOTH: [Containment; 2] = [Containment::PidNamespace, Containment::Subreaper];

/// A trial that runs an async test on a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(PATIENCE * 3, test()).await })?;
        Ok(())
    })
}

/// A trial that looks at its whole process (descriptors, children, limits) and therefore runs in one of its own.
pub(crate) fn alone<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    const ALONE: &str = "OUTRIGGER_TEST_ALONE";
    let inner = trial(name, test);
    if std::env::var_os(ALONE).is_some() {
        return inner;
    }
    let exact = name.to_owned();
    Trial::test(name, move || {
        let output = command(&std::env::current_exe()?).args(["--exact", &exact]).env(ALONE, "1").output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
            .into())
    })
}

/// A process outside of what is tested.
#[expect(clippy::disallowed_methods, reason = "the tests start hosts that are then killed")]
pub(crate) fn command(program: &std::path::Path) -> std::process::Command {
    std::process::Command::new(program)
}

/// The misbehaving child with this behaviour.
pub(crate) fn plan(behaviour: &[&str]) -> Plan {
    let args = ["__child"].iter().chain(behaviour).map(OsString::from).collect();
    Plan {
        name: "test".to_owned(),
        program: std::env::current_exe().expect("own path").into_os_string(),
        args,
        env: Vec::new(),
        cwd: PathBuf::from("/"),
        umask: None,
        sandbox: request(Level::Off, Containment::Strongest),
    }
}

/// The misbehaving child in this containment.
pub(crate) fn contained(behaviour: &[&str], containment: Containment) -> Plan {
    Plan { sandbox: request(Level::Basic, containment), ..plan(behaviour) }
}

/// A shell that runs this script.
pub(crate) fn shell(script: &str) -> Plan {
    let env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    Plan { program: "sh".into(), args: vec!["-c".into(), script.into()], env, ..plan(&[]) }
}

pub(crate) fn request(level: Level, containment: Containment) -> Request {
    Request { containment, ..Request::new(level, Limits::as_the_host()) }
}

/// Standard output through a pipe; nothing else.
pub(crate) fn listening() -> Channels {
    Channels { stdin: Wiring::Null, stdout: Wiring::Pipe, stderr: Wiring::Inherit, extra: Vec::new() }
}

pub(crate) async fn launch(plan: Plan) -> Launched {
    Launcher::current_exe().launch(plan, listening()).await.expect("a launch")
}

/// Launches, reads standard output to its end, and waits.
pub(crate) async fn output(plan: Plan) -> (String, outrigger_supervise::launch::Exit) {
    let mut launched = launch(plan).await;
    let text = read_all(launched.stdout.take()).await;
    (text, launched.control.wait().await)
}

pub(crate) async fn read_all(from: Option<pipe::Receiver>) -> String {
    let mut bytes = Vec::new();
    from.expect("a pipe").read_to_end(&mut bytes).await.expect("the child's output");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Waits until the child says a line, and hands the pipe back so that the child keeps its reader.
pub(crate) async fn hear(launched: &mut Launched, line: &str) -> BufReader<pipe::Receiver> {
    let mut reader = BufReader::new(launched.stdout.take().expect("a pipe"));
    let mut heard = String::new();
    while heard.trim_end() != line {
        heard.clear();
        let count = reader.read_line(&mut heard).await.expect("the child's output");
        assert_ne!(count, 0, "the child ended before it said {line:?}");
    }
    reader
}

/// The processes that carry the tag, zombies not counted.
pub(crate) fn tagged(tag: TreeTag) -> Vec<Pid> {
    carrying(&format!("{TREE_VARIABLE}={tag}"))
}

/// The processes with this entry in their environment, zombies not counted.
pub(crate) fn carrying(wanted: &str) -> Vec<Pid> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        })
        .map(Pid::new)
        .collect()
}

/// Polls until the condition holds; how long that took. Fails the test when `limit` passes first.
pub(crate) async fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < limit, "{what} did not happen within {limit:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    begin.elapsed()
}

/// Polls until no process carries the entry any more. A process that executes another program at this very moment has no
/// environment to look at, so only the third empty look in a row counts.
pub(crate) async fn until_gone(entry: &str, limit: Duration) -> Duration {
    let begin = Instant::now();
    let mut empty = 0;
    while empty < 3 {
        let left = carrying(entry);
        empty = if left.is_empty() { empty + 1 } else { 0 };
        assert!(begin.elapsed() < limit, "after {limit:?} there still were: {}", describe(&left));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    begin.elapsed()
}

fn describe(processes: &[Pid]) -> String {
    let line = |pid: &Pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let facts = status.lines().filter(|line| line.starts_with("State") || line.starts_with("PPid"));
        format!(
            "{pid} {} {}",
            String::from_utf8_lossy(&command).replace('\0', " "),
            facts.collect::<String>()
        )
    };
    processes.iter().map(line).collect::<Vec<_>>().join("; ")
}
