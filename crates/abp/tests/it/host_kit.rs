//! What every test of the control plane needs: children as shell scripts, terms that end soon, a watcher that takes notes, and
//! a look into the process table.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_abp::host::{BackendSpec, Ended, Failure, RunControl, Sidecar, Terms, Warning, Watcher, Wish};
use outrigger_abp::protocol::{AgentEvent, Ask, EventKind, RunId, WorkOrder};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::state::Ladder;

/// Far longer than anything here takes; only a test that fails ever waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that marks all processes of one test.
const MARK: &str = "ABP_TEST_MARK";

/// Words for scripts of children: each says or hears one message.
const WORDS: &str = r#"
say() { printf '%s\n' "$*"; }
hello() { say '{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"test"},"capabilities":{"streaming":"native","tool_read":"emulated"}}'; }
run() { IFS= read -r line; id=${line#*\"id\":\"}; id=${id%%\"*}; }
event() { say '{"t":"event","ref_id":"'$id'","event":{"ts":"2026-01-01T00:00:00Z","type":"assistant_delta","text":"'$1'"}}'; }
final() { say '{"t":"final","ref_id":"'$id'","receipt":{}}'; }
fatal() { say '{"t":"fatal","ref_id":"'$id'","error":"'$1'"}'; }
park() { while :; do sleep 1000; done; }
"#;

/// A trial that runs an async test on a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(PATIENCE, test()).await })?;
        Ok(())
    })
}

/// A trial that looks at its whole process (its memory, say) and therefore runs in one of its own.
pub(crate) fn alone<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    const ALONE: &str = "ABP_TEST_ALONE";
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

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::new(Settings {
        launcher: Launcher::current_exe(),
        starting_at_once: NonZeroUsize::new(8).expect("not zero"),
    })
}

/// A shell that runs this script, with the words above. `$EXE` is this test binary, which plays `__child` too.
pub(crate) fn shell(script: &str) -> BackendSpec {
    let program =
        BackendSpec::new("child", "/bin/sh", "/", Request::new(Level::Basic, Limits::as_the_host()));
    program
        .args(["-c".to_owned(), format!("{WORDS}{script}")])
        .set_env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .set_env("EXE", std::env::current_exe().expect("own path"))
}

/// Terms under which nothing takes long.
pub(crate) fn quick() -> Terms {
    Terms {
        hello_within: Duration::from_secs(20),
        silence: Some(Duration::from_secs(20)),
        total: Some(Duration::from_secs(40)),
        cancel_grace: millis(300),
        ladder: Ladder { ask: millis(200), term: millis(200) },
        write_stall: Duration::from_secs(20),
        ..Terms::usual()
    }
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn run_id() -> RunId {
    RunId::random().expect("randomness")
}

/// A work order with a task and nothing else.
pub(crate) fn order(task: &str) -> WorkOrder {
    let text = serde_json::json!({ "task": task, "workspace": { "root": "/" } }).to_string();
    WorkOrder::read(&text).expect("a work order")
}

/// Starts a child that must start.
pub(crate) async fn start(script: &str, terms: &Terms) -> Sidecar {
    Sidecar::start(&supervisor(), &shell(script), terms).await.expect("a child")
}

/// A watcher that takes notes, and may want something when it hears a word.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) heard: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) asks: Vec<String>,
    pub(crate) wishes: Vec<(&'static str, Wish)>,
    /// Told when the question with this id has come.
    pub(crate) waiting: Option<(&'static str, tokio::sync::oneshot::Sender<()>)>,
}

impl Watcher for Notes {
    fn event(&mut self, event: &AgentEvent<'_>, _line: &str) -> Wish {
        let text = match &event.kind {
            EventKind::AssistantDelta { text } => text.clone().into_owned(),
            other => format!("{other:?}"),
        };
        let wish = self.wishes.iter().find(|(word, _)| *word == text).map(|(_, wish)| wish.clone());
        self.heard.push(text);
        wish.unwrap_or(Wish::GoOn)
    }

    fn ask(&mut self, ask: &Ask<'_>) -> Wish {
        self.asks.push(format!("{} {}", ask.id, ask.action));
        if let Some((_, asked)) = self.waiting.take_if(|(id, _)| *id == ask.id) {
            asked.send(()).expect("somebody waits");
        }
        let wish = self.wishes.iter().find(|(word, _)| *word == ask.id).map(|(_, wish)| wish.clone());
        wish.unwrap_or(Wish::GoOn)
    }

    fn warning(&mut self, warning: &Warning) {
        self.warnings.push(warning.to_string());
    }
}

/// A child from start to stop.
pub(crate) struct Played {
    pub(crate) failure: Option<Failure>,
    pub(crate) ended: Option<Ended>,
    pub(crate) notes: Notes,
    /// Processes of the child that were left when it was over.
    pub(crate) left: usize,
}

impl Played {
    /// The failure, as a person sees it; `complete` when there is none.
    pub(crate) fn told(&self) -> String {
        self.failure.as_ref().map_or_else(|| "complete".to_owned(), ToString::to_string)
    }

    pub(crate) fn code(&self) -> &'static str {
        self.failure.as_ref().map_or("complete", Failure::code)
    }
}

/// Starts a child, gives it one run, stops it.
pub(crate) async fn play(script: &str, terms: &Terms) -> Played {
    let mark = Mark::new();
    let mut notes = Notes::default();
    let started = Sidecar::start(&supervisor(), &mark.on(shell(script)), terms).await;
    let mut sidecar = match started {
        Ok(sidecar) => sidecar,
        Err(failure) => {
            let left = mark.count();
            return Played { failure: Some(failure), ended: None, notes, left };
        }
    };
    let ended = sidecar.run(&run_id(), &order("test"), &mut notes, RunControl::none()).await;
    sidecar.stop(terms.ladder).await;
    let failure = ended.how.failure().cloned();
    Played { failure, ended: Some(ended), notes, left: mark.count() }
}

/// A mark for the processes of one test.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn on(&self, spec: BackendSpec) -> BackendSpec {
        spec.set_env(MARK, &self.0)
    }

    /// How many processes carry the mark; zombies have lost it.
    pub(crate) fn count(&self) -> usize {
        carrying(&format!("{MARK}={}", self.0))
    }
}

/// How many processes have this entry in their environment.
pub(crate) fn carrying(wanted: &str) -> usize {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(|entry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        })
        .count()
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < limit, "{what} did not happen within {limit:?}");
        tokio::time::sleep(millis(2)).await;
    }
}

/// The most memory that this process ever had, in MiB.
pub(crate) fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    kib / 1024
}
