//! A thousand runs with five host calls each, and a `kill -9` at a random point of every one of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outrigger_mustard::host::store::{Capacity, Directory, Store};
use outrigger_mustard::host::{Capabilities, Host, HostKey, Plain, RunRules, Script};
use tempfile::TempDir;

use super::{Effects, compile, finish, kill, ours, pool, rules};

const RUNS: u64 = 1000;
const CALLS: u64 = 5;
const WORKERS: u64 = 4;

/// Every run in so many is also written down.
const WRITTEN: u64 = 5;

/// Computes between its calls, so that a kill can hit it there.
const SCRIPT: &str = "
    let total = 0;
    for (let i = 1; i <= 5; i += 1) {
        let spin = 0;
        for (let j = 0; j < 2000; j += 1) { spin += j; }
        total += effect(i, spin);
    }
    total
";

/// Where a run is hit.
#[derive(Clone, Copy, Debug)]
enum Hit {
    /// While the host makes this call.
    InCall(u64),
    /// So long after its begin, whatever it does then.
    After(Duration),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_runs_survive_a_kill_9_each_and_every_effect_happens_once() {
    let at = TempDir::new().expect("a directory");
    let key = HostKey::from_bytes([9; 32]);
    let capacity = Capacity { entries: 1000, bytes: 1 << 24 };
    let store: Arc<dyn Store> = Arc::new(Directory::open(at.path(), key, capacity).expect("it opens"));
    let (effects, counters) = (Effects::default(), Arc::new(Counters::default()));
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (store, effects, counters) = (Arc::clone(&store), effects.clone(), Arc::clone(&counters));
            tokio::spawn(work(worker, store, effects, counters))
        })
        .collect();
    for worker in workers {
        worker.await.expect("no worker panics");
    }
    assert_eq!(effects.wrong(), [], "every effect exactly once");
    assert_eq!(effects.total() as u64, RUNS * CALLS);
    assert_eq!(store.unfinished().expect("readable"), [], "every journal is closed");
    // The chaos must be real: some runs end before they are hit, but most are, and those go on in another child.
    let (repeats, children) =
        (counters.repeats.load(Ordering::SeqCst), counters.children.load(Ordering::SeqCst));
    assert!(repeats > RUNS / 2, "only {repeats} steps were hit");
    assert!(children > RUNS + RUNS / 2, "only {children} children were used");
}

#[derive(Default)]
struct Counters {
    repeats: AtomicU64,
    children: AtomicU64,
}

async fn work(worker: u64, store: Arc<dyn Store>, effects: Effects, counters: Arc<Counters>) {
    // A pool of its own, so that its children are those of the one run that goes on.
    let host = Host::new(pool(ours(), 2, 1), HostKey::from_bytes([9; 32])).expect("randomness");
    let script = compile(&host, SCRIPT).await;
    let mut random = Random(worker + 1);
    let mut typical = Duration::from_millis(5);
    for number in (0..RUNS).filter(|number| number % WORKERS == worker) {
        let hit = match random.below(2) {
            0 => Hit::InCall(random.below(CALLS) + 1),
            _ => Hit::After(typical.mul_f64(random.below(1000) as f64 / 1000.0)),
        };
        let began = Instant::now();
        let durable = (number % WRITTEN == 0).then(|| Arc::clone(&store));
        let statistics = one_run(&host, &script, number, hit, durable, &effects).await;
        typical = (typical * 3 + began.elapsed().min(Duration::from_millis(50))) / 4;
        counters.repeats.fetch_add(statistics.repeats, Ordering::SeqCst);
        counters.children.fetch_add(statistics.children, Ordering::SeqCst);
    }
    host.pool().shutdown().await;
}

async fn one_run(
    host: &Host,
    script: &Script,
    number: u64,
    hit: Hit,
    durable: Option<Arc<dyn Store>>,
    effects: &Effects,
) -> outrigger_mustard::host::Statistics {
    let (pool, effects) = (host.pool().clone(), effects.clone());
    let table = Capabilities::none().on_call("effect", move |call| {
        effects.note(&format!("run {number}"), call.id.0);
        if let Hit::InCall(victim) = hit
            && victim == call.id.0
        {
            pool.pids().into_iter().for_each(kill);
        }
        let Plain::Number(argument) = call.args[0] else { panic!("a number was passed") };
        async move { Plain::Number(argument * 100.0 + number as f64) }
    });
    let mut run = host
        .run(script)
        .capabilities(table)
        .rules(RunRules { attempts: std::num::NonZeroU32::new(10).expect("not zero"), ..rules() });
    if let Some(store) = durable {
        run = run.store(store);
    }
    let killer = match hit {
        Hit::InCall(_) => None,
        Hit::After(wait) => {
            let pool = host.pool().clone();
            Some(tokio::task::spawn_blocking(move || {
                std::thread::sleep(wait);
                pool.pids().into_iter().for_each(kill);
            }))
        }
    };
    let done = finish(run).await;
    assert_eq!(done.value, Plain::Number(1500.0 + 5.0 * number as f64), "run {number} with {hit:?}");
    assert_eq!(done.statistics.calls, CALLS, "run {number} with {hit:?}");
    if let Some(killer) = killer {
        killer.await.expect("the killer does its work");
    }
    done.statistics
}

/// xorshift64: the same sequence for the same worker, every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        for _ in 0..3 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
        }
        self.0 % limit
    }
}
