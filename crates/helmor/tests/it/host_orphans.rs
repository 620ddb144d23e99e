//! Nothing outlives its owner: a host that is killed or that panics in the middle of a stream leaves nothing running.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::host::{Bridge, Nobody};
use outrigger_helmor::protocol::ProviderName;
use serde_json::json;

use crate::host_kit::{fake, gone, is_there, millis, of, own_child, passed, quick, supervisor, trial, turn};

/// The promise: two seconds after its owner is gone, so is everything else.
const PROMISE: Duration = Duration::from_secs(2);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_killed_host_leaves_no_sidecar_behind", || left_by("waits", End::Kill)),
        trial("a_host_that_panics_leaves_no_sidecar_behind", || left_by("panics", End::Alone)),
        trial("a_killed_host_leaves_no_agent_of_our_sidecar_behind", agent_left),
    ]
}

enum End {
    Kill,
    Alone,
}

/// A host that plays its part, and the first line that it writes.
#[expect(clippy::disallowed_methods, reason = "the test starts a host that then ends badly")]
fn host(words: &[&str]) -> (std::process::Child, String) {
    let mut host = std::process::Command::new(std::env::current_exe().expect("own path"))
        .arg("__host_owner")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a host");
    let mut heard = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut heard).expect("its output");
    (host, heard)
}

async fn left_by(how: &str, end: End) {
    let (mut host, heard) = host(&[how]);
    match end {
        End::Kill => host.kill().expect("SIGKILL"),
        End::Alone => {}
    }
    host.wait().expect("the host");
    let pid: u32 = heard.trim().parse().expect("the process of its sidecar");
    tokio::time::timeout(PROMISE, gone(pid)).await.expect("it is gone in time");
}

async fn agent_left() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("{}-agent", folder.path().file_name().unwrap().to_str().unwrap());
    // A tool in a session of its own, as the real agents start theirs.
    let tool = json!(["setsid", "-w", "sh", "-c", "sleep 100; true", mark]);
    let script = json!({"turns":[{"steps":[{"say":"hi"}, {"run":tool}]}]});
    let path = folder.path().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    let (mut host, heard) = host(&["script", path.to_str().unwrap()]);
    let pid: u32 = heard.trim().parse().expect("the process of its sidecar");
    while !is_there(&mark) {
        tokio::time::sleep(millis(5)).await;
    }
    host.kill().expect("SIGKILL");
    host.wait().expect("the host");
    let all = async {
        gone(pid).await;
        while is_there(&mark) {
            tokio::time::sleep(millis(5)).await;
        }
    };
    tokio::time::timeout(PROMISE, all).await.expect("they are gone in time");
}

/// Plays a host in the middle of a stream of a sidecar that does not leave by itself, or of ours with a script.
pub(crate) fn owner(words: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (spec, turn) = match words {
            [how, script] if how == "script" => {
                let spec = own_child("__sidecar").args(["--script", script.as_str()]).inherit_env();
                (spec, of(ProviderName::Scripted, "s", &json!("go")))
            }
            _ => {
                let spec = fake(&["ignores-shutdown", "ignores-term", "stays"]);
                (spec, turn("s", &json!(["a", {"hang":true}])))
            }
        };
        let bridge = Bridge::new(supervisor(), spec, quick(), Arc::new(Nobody));
        let mut stream = bridge.send(turn).await.expect("a stream");
        passed(&mut stream).await;
        writeln!(std::io::stdout(), "{}", bridge.pid().expect("a process")).expect("stdout");
        assert!(words[0] != "panics", "the host panics");
        while stream.next().await.is_some() {}
    });
    ExitCode::FAILURE
}
