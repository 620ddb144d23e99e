//! Nothing outlives its owner: a host that is killed or that panics in the middle of a stream leaves nothing running.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::host::{Bridge, Nobody};
use serde_json::json;

use crate::host_kit::{fake, gone, passed, quick, supervisor, trial, turn};

/// The promise: two seconds after its owner is gone, so is everything else.
const PROMISE: Duration = Duration::from_secs(2);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_killed_host_leaves_no_sidecar_behind", || left_by("waits", End::Kill)),
        trial("a_host_that_panics_leaves_no_sidecar_behind", || left_by("panics", End::Alone)),
    ]
}

enum End {
    Kill,
    Alone,
}

#[expect(clippy::disallowed_methods, reason = "the test starts a host that then ends badly")]
async fn left_by(how: &str, end: End) {
    let mut host = std::process::Command::new(std::env::current_exe().expect("own path"))
        .args(["__host_owner", how])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a host");
    let mut heard = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut heard).expect("its output");
    match end {
        End::Kill => host.kill().expect("SIGKILL"),
        End::Alone => {}
    }
    host.wait().expect("the host");
    let pid: u32 = heard.trim().parse().expect("the process of its sidecar");
    tokio::time::timeout(PROMISE, gone(pid)).await.expect("it is gone in time");
}

/// Plays a host in the middle of a stream of a sidecar that does not leave by itself.
pub(crate) fn owner(words: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let spec = fake(&["ignores-shutdown", "ignores-term", "stays"]);
        let bridge = Bridge::new(supervisor(), spec, quick(), Arc::new(Nobody));
        let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.expect("a stream");
        passed(&mut stream).await;
        writeln!(std::io::stdout(), "{}", bridge.pid().expect("a process")).expect("stdout");
        assert!(words == ["waits"], "the host panics");
        stream.next().await;
    });
    ExitCode::FAILURE
}
