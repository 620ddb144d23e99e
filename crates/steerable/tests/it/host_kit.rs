//! What every test of the host needs: the fake sidecar, terms that end soon, and the streams of a test read to their ends.

use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::host::{Nobody, Pulse, Sidecar, SidecarSpec, Stream, StreamEnd, StreamEvent, Terms};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::state::{Backoff, CrashLimit, Ladder, Restart, Retry};
use serde_json::{Value, json};

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
pub(crate) fn fake(quirks: &[&str]) -> SidecarSpec {
    own_child("__fake_sidecar").args(quirks)
}

/// This binary as a child.
pub(crate) fn own_child(role: &str) -> SidecarSpec {
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    SidecarSpec::new("child", std::env::current_exe().expect("own path"), "/", sandbox).args([role])
}

/// Terms under which nothing takes long, and nothing is pinged or restarted.
pub(crate) fn quick() -> Terms {
    Terms {
        ready_within: Duration::from_secs(20),
        pulse: Pulse::None,
        restart: Restart::Never,
        call_within: Duration::from_secs(20),
        stream_within: Duration::from_secs(20),
        control_within: Duration::from_secs(20),
        ladder: Ladder { ask: millis(2000), term: millis(2000) },
        ..Terms::usual()
    }
}

/// Restarts at once.
pub(crate) fn again() -> Restart {
    Restart::OnFailure(Retry {
        backoff: Backoff { first: millis(1), cap: millis(1), jitter_percent: 0 },
        stable_after: Duration::from_secs(60),
        max_attempts: None,
        crash_loop: CrashLimit {
            crashes: NonZeroU32::new(4).expect("not zero"),
            within: Duration::from_secs(600),
        },
        slow_crash: None,
        permanent_codes: Vec::new(),
    })
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn start(quirks: &[&str], terms: Terms) -> Sidecar {
    Sidecar::start(&supervisor(), &fake(quirks), terms, Arc::new(Nobody)).await.expect("a sidecar")
}

/// The params of a stream that plays a script.
pub(crate) fn script(steps: &Value) -> Value {
    json!({"provider":"script","model":"m","messages":[{"role":"user","content":"x"}],"script":steps})
}

/// Everything that a stream says: the deltas, how many chunks were missed, and its one end.
pub(crate) async fn read(mut stream: Stream) -> (Vec<String>, u64, StreamEnd) {
    let (mut deltas, mut missed) = (Vec::new(), 0);
    loop {
        match stream.next().await.expect("an end") {
            StreamEvent::Chunk(chunk) => deltas.push(chunk.delta.unwrap_or_default()),
            StreamEvent::Missed(count) => missed += count,
            StreamEvent::End(end) => {
                assert!(stream.next().await.is_none(), "something follows the end");
                return (deltas, missed, end);
            }
        }
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
