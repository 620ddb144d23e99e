//! From start to ready: a child under the supervisor against a bare spawn of the same program.

#![expect(clippy::disallowed_methods, reason = "the baseline is a bare spawn")]

use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::ready::{Before, Gate, LineMatch, Ready, StdoutGate};
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};

use crate::Filter;
use crate::measure::medians_of;
use crate::table::{Goal, Nanos, Row};

/// What a supervised start may cost on top of a bare one.
const GOAL: Duration = Duration::from_millis(2);

pub(crate) fn bench(_: &Filter) -> Result<Vec<Row>> {
    let launcher = Launcher::at(beside_us("outrigger")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let supervisor = |launcher| Supervisor::new(Settings { launcher, starting_at_once: NonZeroUsize::MIN });
    let (cold, warm) = (supervisor(launcher.clone()), supervisor(launcher.with_spare()));
    let supervised = |supervisor, level| runtime.block_on(supervised(supervisor, level));
    // Whoever starts children back to back finds the next spare still being started; whoever does not, finds it ready.
    let rested = |level| {
        (0..4).try_for_each(|_| bare().map(drop))?;
        supervised(&warm, level)
    };
    let [basic, strict, hurried, cold, bare] = medians_of(
        101,
        [
            &mut || rested(Level::Basic),
            &mut || rested(Level::Strict),
            &mut || supervised(&warm, Level::Basic),
            &mut || supervised(&cold, Level::Basic),
            &mut bare,
        ],
    )?;
    let row = |name: &str, ours, goal| Row {
        name: name.into(),
        unit: "start",
        ours: Ok(Nanos::each(ours, 1)),
        baseline: "bare spawn",
        theirs: Nanos::each(bare, 1),
        goal,
    };
    Ok(vec![
        row("spawn/basic", basic, Goal::MoreByAtMost(GOAL)),
        row("spawn/strict", strict, Goal::Shown),
        row("spawn/basic-back-to-back", hurried, Goal::MoreByAtMost(GOAL)),
        row("spawn/basic-no-spare", cold, Goal::Shown),
    ])
}

/// The program that is released, not a smaller one that starts faster.
fn beside_us(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{} is not built: cargo build --release -p outrigger", path.display());
    Ok(path)
}

fn bare() -> Result<Duration> {
    let start = Instant::now();
    let mut child =
        Command::new("/bin/echo").arg("up").stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let elapsed = start.elapsed();
    ensure!(line == "up\n", "the bare child said {line:?}");
    child.wait()?;
    Ok(elapsed)
}

async fn supervised(supervisor: &Supervisor, level: Level) -> Result<Duration> {
    let up = StdoutGate { line: LineMatch::Exact("up".into()), before: Before::Refuse, max_line_bytes: 64 };
    let rules = Rules {
        ready: Ready::When { gate: Gate::Stdout(up), within: Duration::from_secs(10) },
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 10, tail_bytes: 4096, max_line_bytes: 1024, file: None },
    };
    let sandbox = Request::new(level, Limits::as_the_host());
    let spec = Spec::new("echo", "/bin/echo", "/", sandbox, rules).args(["up"]);
    let start = Instant::now();
    let child = supervisor.start(spec)?;
    let mut session = child.next_session().await.context("the child has a session")?;
    session.ready().await.context("the child becomes ready")?;
    let elapsed = start.elapsed();
    child.wait().await;
    Ok(elapsed)
}
