//! `mustard::host` over the real sidecar: real processes that are killed, hang, lie and are cleared away.

mod chaos;
mod crash;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_mustard::host::{
    Capabilities, CompileError, Ending, Finished, Host, HostKey, Limits, Loss, Plain, Pool, PoolRules,
    ProgramSource, Run, RunError, RunRules, Script, SidecarError, Source, Terms, TopLevelReturn,
};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;

use crate::process::{PATIENCE, Tag, wait_until};

const OUTRIGGER: &str = env!("CARGO_BIN_EXE_outrigger");

fn supervisor() -> Supervisor {
    Supervisor::new(Settings {
        launcher: Launcher::at(OUTRIGGER.into()).with_spare(),
        starting_at_once: NonZeroUsize::new(4).expect("not zero"),
    })
}

fn ours() -> Arc<dyn Source> {
    Arc::new(ProgramSource::ours(supervisor(), OUTRIGGER))
}

/// Our own sidecar, spoken to as if it were the original.
fn plain() -> Arc<dyn Source> {
    Arc::new(ProgramSource::version_2(supervisor(), OUTRIGGER, ["sidecar".into(), "mustard".into()]))
}

fn shell(script: &str) -> Arc<dyn Source> {
    Arc::new(ProgramSource::version_2(supervisor(), "/bin/sh", ["-c".into(), script.into()]))
}

fn pool(source: Arc<dyn Source>, size: usize, warm: usize) -> Pool {
    let rules = PoolRules {
        size: NonZeroUsize::new(size).expect("not zero"),
        warm,
        runs_per_child: NonZeroU32::new(1000).expect("not zero"),
        rss_bytes: Some(256 << 20),
    };
    Pool::new(source, Terms { within: PATIENCE, ..Terms::usual() }, rules)
}

fn host(source: Arc<dyn Source>) -> Host {
    Host::new(pool(source, 2, 0), HostKey::from_bytes([9; 32])).expect("randomness")
}

fn rules() -> RunRules {
    RunRules { step_within: PATIENCE, backoff: Duration::from_millis(1), ..RunRules::usual() }
}

async fn compile(host: &Host, source: &str) -> Script {
    host.compile(source, TopLevelReturn::Refused).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn finish(run: Run) -> Finished {
    match run.go().await {
        Ok(Ending::Finished(finished)) => finished,
        other => panic!("it should have finished: {other:?}"),
    }
}

/// Sums its arguments.
fn add() -> Capabilities {
    Capabilities::none().on("add", |args| async move {
        Plain::Number(args.iter().map(|arg| if let Plain::Number(n) = arg { *n } else { f64::NAN }).sum())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_with_inputs_and_calls_gives_its_value_whichever_way_the_child_speaks() {
    for source in [ours(), plain()] {
        let host = host(source);
        let script = compile(&host, "let sum = add(1, 2); sum = add(sum, offset); [sum, typeof add]").await;
        for offset in [4.0, 5.0] {
            let run =
                host.run(&script).capabilities(add()).input("offset", Plain::Number(offset)).rules(rules());
            let done = finish(run).await;
            let expected = vec![Plain::Number(3.0 + offset), Plain::String("function".to_owned())];
            assert_eq!(done.value, Plain::Array(expected));
            assert_eq!((done.statistics.hops, done.statistics.children), (2, 1));
        }
        assert_eq!(host.pool().status().started, 1);
        host.pool().shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_is_one_snapshot_and_all_handlers_at_once() {
    let host = host(ours());
    let script = compile(
        &host,
        "const all = async () => { let sum = 0; for (const n of await Promise.all([1,2,3,4,5,6,7,8].map((i) => add(i, 1)))) { sum += n; } return sum; }; all()",
    )
    .await;
    let barrier = Arc::new(tokio::sync::Barrier::new(8));
    let table = Capabilities::none().on_call("add", move |call| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            add().reply_to(call).await
        }
    });
    let done = finish(host.run(&script).capabilities(table).rules(rules())).await;
    assert_eq!((done.value, done.statistics.hops), (Plain::Number(44.0), 1));
    host.pool().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_fails_says_where() {
    let host = host(ours());
    let script = compile(&host, "const f = () => {\n  throw new TypeError('boom');\n};\nf();").await;
    let failed = host.run(&script).rules(rules()).go().await.expect_err("it throws");
    let RunError::Script(error) = failed.why else { panic!("{failed}") };
    assert_eq!((error.kind.as_str(), error.code.as_deref()), ("Runtime", Some("runtime")));
    assert_eq!((error.name.as_deref(), error.line), (Some("TypeError"), Some(2)));
    assert!(error.message.contains("boom"), "{error:?}");
    let error = host.compile("let = ;", TopLevelReturn::Refused).await.expect_err("no script");
    let CompileError::Script(error) = error else { panic!("{error}") };
    assert_eq!((error.kind.as_str(), error.code.as_deref()), ("Parse", Some("parse")));
    host.pool().shutdown().await;
}

/// Far more instructions than any deadline in here allows.
fn endless() -> Limits {
    Limits { instruction_budget: Some(u64::MAX >> 1), ..Limits::DEFAULTS }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_loop_ends_at_the_deadline_and_the_child_lives() {
    let host = host(ours());
    let script = compile(&host, "while (true) {}").await;
    let rules = RunRules { limits: endless(), step_within: Duration::from_millis(200), ..rules() };
    let failed = host.run(&script).rules(rules).go().await.expect_err("it never ends");
    let RunError::Script(error) = failed.why else { panic!("{failed}") };
    assert_eq!(error.code.as_deref(), Some("limit_deadline"), "{error}");
    assert_eq!(error.message, "deadline of 200 ms exceeded");
    assert_eq!(host.pool().status().started, 1);
    host.pool().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_loop_in_a_child_without_deadlines_costs_the_child_and_is_reported() {
    let host = host(plain());
    let script = compile(&host, "while (true) {}").await;
    let rules = RunRules {
        limits: endless(),
        step_within: Duration::from_millis(200),
        attempts: NonZeroU32::new(2).expect("not zero"),
        ..rules()
    };
    let failed = host.run(&script).rules(rules).go().await.expect_err("it never ends");
    let RunError::KeepsDying { step: 0, attempts: 2, last } = &failed.why else { panic!("{failed}") };
    assert_eq!(last.how, Loss::Late);
    let text = failed.to_string();
    assert!(text.contains("it did not answer within 200 ms"), "{text}");
    assert!(text.contains("stopped answering and was killed"), "{text}");
    host.pool().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_dies_leaves_its_exit_status_and_its_last_words() {
    let error = host(shell("echo 'cannot open the pod bay doors' >&2; exit 3"))
        .compile("1", TopLevelReturn::Refused)
        .await
        .expect_err("it leaves");
    let CompileError::Sidecar(SidecarError::Lost(lost)) = &error else { panic!("{error}") };
    assert_eq!(lost.how, Loss::Died);
    let text = error.to_string();
    assert!(text.contains("exit code 3") && text.contains("cannot open the pod bay doors"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_talks_nonsense_is_killed_and_quoted() {
    let host = host(shell(r"printf '\011\000\000\000\000\000\000\000hi there!'; exec sleep 1000"));
    let error = host.compile("1", TopLevelReturn::Refused).await.expect_err("it lies");
    let CompileError::Sidecar(SidecarError::Lost(lost)) = &error else { panic!("{error}") };
    assert_eq!(lost.how, Loss::Garbage);
    let text = error.to_string();
    assert!(text.contains("hi there!") && text.contains("broke its protocol and was killed"), "{text}");
    // Text where a length should be is a frame that is far too large.
    let error = self::host(shell("echo hello, world; exec sleep 1000"))
        .compile("1", TopLevelReturn::Refused)
        .await
        .expect_err("it lies");
    assert!(error.to_string().contains("exceeds maximum size"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_not_there_is_named() {
    let source = Arc::new(ProgramSource::version_2(supervisor(), "/no/such/sidecar", []));
    let error = host(source).compile("1", TopLevelReturn::Refused).await.expect_err("there is none");
    assert!(matches!(error, CompileError::NoChild(_)), "{error}");
    assert!(error.to_string().contains("/no/such/sidecar"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_shutdown_nothing_is_running() {
    let tag = Tag::new();
    let (name, value) = tag.as_arg().split_once('=').expect("a variable");
    let source = ProgramSource::ours(supervisor(), OUTRIGGER).with(|spec| spec.set_env(name, value));
    let pool = pool(Arc::new(source), 4, 2);
    let held = pool.lend().await.expect("a child");
    let lent = pool.lend().await.expect("another");
    tag.wait_for(4);
    assert!(pool.pids().len() >= 2);
    drop(lent);
    pool.shutdown().await;
    tag.must_be_gone(Duration::ZERO, "a shutdown returns when all is gone");
    drop(held);
    assert_eq!(pool.pids(), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_died_while_it_waited_is_not_given_to_anybody() {
    let host = host(ours());
    let script = compile(&host, "add(1, 2)").await;
    let waiting = host.pool().pids();
    kill(waiting[0]);
    // Until the supervisor has seen it, a run may still get it, and then goes on with another one.
    let done = finish(host.run(&script).capabilities(add()).rules(rules())).await;
    assert_eq!(done.value, Plain::Number(3.0));
    assert_ne!(host.pool().pids(), waiting);
    host.pool().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_takes_the_child_that_computes_with_it() {
    let host = host(ours());
    let script = compile(&host, "add(1, 2); while (true) {}").await;
    let child = host.pool().pids()[0];
    let run = host.run(&script).capabilities(add()).rules(RunRules { limits: endless(), ..rules() });
    let canceller = run.canceller();
    let run = tokio::spawn(run.go());
    tokio::task::spawn_blocking(move || wait_until(PATIENCE, || has_computed(child)))
        .await
        .expect("no panic")
        .expect("it computes");
    canceller.cancel();
    let failed = run.await.expect("no panic").expect_err("it was cancelled");
    assert!(matches!(failed.why, RunError::Cancelled), "{failed}");
    let gone = tokio::task::spawn_blocking(move || wait_until(PATIENCE, || !is_sidecar(child)));
    gone.await.expect("no panic").expect("the child that computed is gone");
    let script = compile(&host, "add(20, 22)").await;
    let done = finish(host.run(&script).capabilities(add()).rules(rules())).await;
    assert_eq!(done.value, Plain::Number(42.0));
    host.pool().shutdown().await;
}

/// Whether a process has used more processor time than a start and a compile take.
fn has_computed(pid: u32) -> bool {
    const TICKS: u64 = 20;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name
        .split(' ')
        .nth(11)
        .and_then(|ticks| ticks.parse::<u64>().ok())
        .is_some_and(|ticks| ticks > TICKS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_holds_too_much_memory_is_replaced() {
    let rules_of = |rss_bytes| PoolRules { rss_bytes: Some(rss_bytes), ..PoolRules::single() };
    for (rss_bytes, children) in [(1, 3), (1 << 30, 1)] {
        let pool = Pool::new(ours(), Terms { within: PATIENCE, ..Terms::usual() }, rules_of(rss_bytes));
        let host = Host::new(pool, HostKey::from_bytes([9; 32])).expect("randomness");
        let script = compile(&host, "1").await;
        finish(host.run(&script).rules(rules())).await;
        finish(host.run(&script).rules(rules())).await;
        assert_eq!(host.pool().status().started, children);
        host.pool().shutdown().await;
    }
}

/// Whether this process is a sidecar.
fn is_sidecar(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"mustard"))
}

/// `kill -9`, of a process that is a sidecar and nothing else.
fn kill(pid: u32) {
    let is_ours = is_sidecar(pid);
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let (true, Some(pid)) = (is_ours, pid) {
        // It may have ended in this very moment, which is just as well.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Counts how often each call of each run had its effect.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<BTreeMap<(String, u64), u32>>>);

impl Effects {
    fn note(&self, run: &str, call: u64) {
        let mut effects = self.0.lock().expect("no panic");
        *effects.entry((run.to_owned(), call)).or_default() += 1;
    }

    /// Those that did not happen exactly once.
    fn wrong(&self) -> Vec<((String, u64), u32)> {
        let effects = self.0.lock().expect("no panic");
        effects.iter().filter(|(_, count)| **count != 1).map(|(key, count)| (key.clone(), *count)).collect()
    }

    fn total(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}
