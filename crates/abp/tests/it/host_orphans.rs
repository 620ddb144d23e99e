//! Nothing outlives its owner: a control plane that is killed in the middle of a run leaves nothing running.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::host::{RunControl, Sidecar, Watcher, Wish};
use outrigger_abp::protocol::AgentEvent;

use crate::host_kit::{carrying, command, order, quick, run_id, shell, supervisor, trial, until};

/// The promise: a second after its owner is gone, so is everything else.
const PROMISE: Duration = Duration::from_secs(1);

const MARK: &str = "ABP_TEST_ORPHAN";

/// A child with a grandchild in a session of its own, both deaf to SIGTERM.
const CHILD: &str = "trap '' TERM; setsid sh -c 'sleep 1000' & hello; run; event up; park";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_killed_control_plane_leaves_neither_child_nor_grandchild", killed_host)]
}

async fn killed_host() {
    for round in 0..10 {
        let mark = format!("{}-{round}", std::process::id());
        let mut host = command(&std::env::current_exe().expect("own path"))
            .arg("__host")
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a host");
        let entry = format!("{MARK}={mark}");
        let mut heard = String::new();
        let stdout = host.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut heard).expect("the host's output");
        let there = carrying(&entry);
        host.kill().expect("SIGKILL");
        host.wait().expect("the host");
        assert_eq!(heard, "up\n");
        // The host, the launcher, the shell and its grandchild.
        assert!(there >= 4, "{there}");
        until("the end of everything", PROMISE, || carrying(&entry) == 0).await;
    }
}

/// Plays a control plane in the middle of a run.
pub(crate) fn host() -> ExitCode {
    struct SaysUp;
    impl Watcher for SaysUp {
        fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
            writeln!(std::io::stdout(), "up").expect("stdout");
            Wish::GoOn
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let spec = shell(CHILD).set_env(MARK, std::env::var_os(MARK).expect("a mark"));
        let mut sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("a child");
        sidecar.run(&run_id(), &order("test"), &mut SaysUp, RunControl::none()).await;
    });
    ExitCode::FAILURE
}
