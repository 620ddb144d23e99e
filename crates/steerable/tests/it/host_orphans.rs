//! Nothing outlives its owner: a host that is killed in the middle of a stream leaves nothing running.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::host::{Nobody, Sidecar};
use serde_json::json;

use crate::host_kit::{fake, gone, quick, script, supervisor, trial};

/// The promise: a second after its owner is gone, so is everything else.
const PROMISE: Duration = Duration::from_secs(1);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_killed_host_leaves_no_sidecar_behind", killed_host)]
}

#[expect(clippy::disallowed_methods, reason = "the test starts a host that is then killed")]
async fn killed_host() {
    for _ in 0..5 {
        let mut host = std::process::Command::new(std::env::current_exe().expect("own path"))
            .arg("__host")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a host");
        let mut heard = String::new();
        BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut heard).expect("its output");
        host.kill().expect("SIGKILL");
        host.wait().expect("the host");
        let pid: u32 = heard.trim().parse().expect("the process of its sidecar");
        tokio::time::timeout(PROMISE, gone(pid)).await.expect("it is gone in time");
    }
}

/// Plays a host in the middle of a stream of a sidecar that does not leave by itself.
pub(crate) fn host() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let spec = fake(&["ignores-shutdown", "ignores-term", "stays"]);
        let sidecar =
            Sidecar::start(&supervisor(), &spec, quick(), Arc::new(Nobody)).await.expect("a sidecar");
        let mut stream = sidecar.stream(&script(&json!(["a", {"hang":true}]))).await.expect("a stream");
        stream.next().await.expect("a chunk");
        writeln!(std::io::stdout(), "{}", sidecar.pid().expect("a process")).expect("stdout");
        stream.next().await;
    });
    ExitCode::FAILURE
}
