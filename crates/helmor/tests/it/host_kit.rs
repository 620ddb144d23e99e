//! What every test of the host needs: the fake sidecar, terms that end soon, and the streams of a test read to their ends.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::host::{Bridge, BridgeSpec, Nobody, Passed, Stream, StreamEnd, StreamEvent, Terms};
use outrigger_helmor::protocol::{ProviderName, SendMessage};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::state::{Backoff, Ladder};
use serde_json::Value;

/// Far longer than anything here takes; only a test that fails ever waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A trial that runs an async test on a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(PATIENCE, test()).await })?;
        Ok(())
    })
}

pub(crate) fn supervisor() -> Supervisor {
    let starting_at_once = NonZeroUsize::new(8).expect("not zero");
    Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once })
}

/// This binary as a child that is the fake sidecar with these quirks.
pub(crate) fn fake(quirks: &[&str]) -> BridgeSpec {
    own_child("__host_child").args(quirks)
}

/// This binary as a child.
pub(crate) fn own_child(role: &str) -> BridgeSpec {
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    BridgeSpec::new("fake", std::env::current_exe().expect("own path"), "/", sandbox).args([role])
}

/// Terms under which nothing takes long.
pub(crate) fn quick() -> Terms {
    Terms {
        ready_within: Duration::from_secs(20),
        silence: Duration::from_secs(40),
        ladder: Ladder { ask: Duration::from_secs(5), term: Duration::from_secs(5) },
        backoff: Backoff { first: millis(1), cap: millis(1), jitter_percent: 0 },
        ..Terms::usual()
    }
}

pub(crate) fn bridge(quirks: &[&str], terms: Terms) -> Bridge {
    Bridge::new(supervisor(), fake(quirks), terms, Arc::new(Nobody))
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A turn of Claude with this prompt; the fake plays it if it is JSON.
pub(crate) fn turn(session: &str, prompt: &Value) -> SendMessage {
    of(ProviderName::Claude, session, prompt)
}

pub(crate) fn of(provider: ProviderName, session: &str, prompt: &Value) -> SendMessage {
    SendMessage {
        session_id: session.to_owned(),
        prompt: prompt.to_string(),
        provider,
        model: None,
        cwd: None,
        resume: None,
        permission_mode: None,
        effort: None,
        fast_mode: false,
        ask_every_tool: false,
        thinking_display: None,
        claude_environment: Vec::new(),
        agent_proxy: None,
        additional_directories: Vec::new(),
        source_repo: None,
        images: Vec::new(),
    }
}

/// Everything that a stream passes on, and its one end.
pub(crate) async fn read(mut stream: Stream) -> (Vec<Value>, StreamEnd) {
    let mut said = Vec::new();
    loop {
        match stream.next().await.expect("an end") {
            StreamEvent::End(end) => {
                assert!(stream.next().await.is_none(), "something follows the end");
                return (said, end);
            }
            StreamEvent::Passed(passed) => said.push(passed.value()),
            other => panic!("not expected: {other:?}"),
        }
    }
}

/// The next line that is passed on.
pub(crate) async fn passed(stream: &mut Stream) -> Passed {
    match stream.next().await {
        Some(StreamEvent::Passed(passed)) => passed,
        other => panic!("not passed on: {other:?}"),
    }
}

/// Whether a process is there.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a process is gone.
pub(crate) async fn gone(pid: u32) {
    while is_alive(pid) {
        tokio::time::sleep(millis(5)).await;
    }
}

/// Whether any process has this argument.
pub(crate) fn is_there(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes()))
}
