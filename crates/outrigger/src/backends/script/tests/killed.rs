//! A daemon that dies at every single write of a run, before it and after it: whoever comes next ends the run, and nothing was done twice
//! that a person did not want twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{broadcast, watch};

use super::*;
use crate::engine::{
    Append, AppendError, BoxFuture as Boxed, Changed, Claim, ClaimError, Claimed, EngineError, Head,
    HeadQuery, LogId, QueueName, ReadLimit, Stored,
};
use crate::runs::Phase;

/// A script with everything in it: tools that may be repeated and tools that may not, one at a time and together, approved and not, words,
/// a person.
const STORY: &str = "const a = await safe('one');
    const both = await Promise.all([safe('two'), risky('three')]);
    const d = await checked('four');
    await print('d is ' + d);
    const e = await ask('five?');
    [a, ...both, d, e].join()";

/// On which side of a write the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// A store whose user dies at a certain write: from then on nothing that it asks for ever comes.
#[derive(Debug)]
struct Fuse {
    store: Sqlite,
    left: AtomicUsize,
    side: Side,
    dead: watch::Sender<bool>,
}

impl Fuse {
    fn new(store: Sqlite, writes: usize, side: Side) -> Arc<Self> {
        Arc::new(Self { store, left: AtomicUsize::new(writes), side, dead: watch::Sender::new(false) })
    }

    async fn write<T>(&self, work: impl Future<Output = T>) -> T {
        self.read(async {}).await;
        let last =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err();
        match (last, self.side) {
            (false, _) => work.await,
            (true, Side::Before) => self.die().await,
            (true, Side::After) => {
                work.await;
                self.die().await
            }
        }
    }

    async fn die<T>(&self) -> T {
        self.dead.send_replace(true);
        std::future::pending().await
    }

    async fn read<T>(&self, work: impl Future<Output = T>) -> T {
        if *self.dead.borrow() {
            return std::future::pending().await;
        }
        work.await
    }
}

impl Engine for Fuse {
    fn append_if(&self, append: Append) -> Boxed<'_, Result<Seq, AppendError>> {
        Box::pin(self.write(self.store.append_if(append)))
    }

    fn read(&self, log: &LogId, after: Seq, limit: ReadLimit) -> Boxed<'_, Result<Vec<Stored>, EngineError>> {
        Box::pin(self.read(self.store.read(log, after, limit)))
    }

    fn head(&self, log: &LogId) -> Boxed<'_, Result<Option<Head>, EngineError>> {
        Box::pin(self.read(self.store.head(log)))
    }

    fn heads(&self, which: HeadQuery) -> Boxed<'_, Result<Vec<Head>, EngineError>> {
        Box::pin(self.read(self.store.heads(which)))
    }

    fn labels(&self) -> Boxed<'_, Result<Vec<(String, u64)>, EngineError>> {
        Box::pin(self.read(self.store.labels()))
    }

    fn claim(&self, queue: &QueueName, lease: Duration) -> Boxed<'_, Result<Claimed, EngineError>> {
        Box::pin(self.read(self.store.claim(queue, lease)))
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Boxed<'_, Result<(), ClaimError>> {
        Box::pin(self.read(self.store.extend(claim, lease)))
    }

    fn ack(&self, claim: &Claim) -> Boxed<'_, Result<(), ClaimError>> {
        Box::pin(self.write(self.store.ack(claim)))
    }

    fn put_blob(
        &self,
        log: &LogId,
        bytes: Vec<u8>,
    ) -> Boxed<'_, Result<outrigger_policy::Digest, EngineError>> {
        Box::pin(self.write(self.store.put_blob(log, bytes)))
    }

    fn get_blob(
        &self,
        log: &LogId,
        digest: &outrigger_policy::Digest,
    ) -> Boxed<'_, Result<Option<Vec<u8>>, EngineError>> {
        Box::pin(self.read(self.store.get_blob(log, digest)))
    }

    fn forget(&self, log: &LogId) -> Boxed<'_, Result<(), EngineError>> {
        Box::pin(self.write(self.store.forget(log)))
    }

    fn watch(&self) -> broadcast::Receiver<Changed> {
        self.store.watch()
    }
}

/// Somebody who approves, answers `yes`, and counts how often they let a call be made again.
async fn attend(runs: &Runs, run: &RunId) -> RunState {
    loop {
        let ready = |state: &RunState| state.phase.is_over() || state.open_approvals().next().is_some();
        let state = until(runs, run, ready).await;
        if state.phase.is_over() {
            return state;
        }
        let asked = state.open_approvals().next().unwrap().clone();
        let answer = match asked.tool.as_str() {
            "ask" => value(json!("yes")),
            _ => plainly(Choice::Approve),
        };
        runs.answer(run, &asked.id, answer, me()).await.unwrap();
    }
}

/// A life of a daemon: until the run is over, or the fuse has blown. Whether it blew.
fn live(bench: &Bench, run: &RunId, writes: usize, side: Side) -> bool {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let fuse = Fuse::new(bench.store(), writes, side);
        let mut dead = fuse.dead.subscribe();
        let runs = bench.daemon(fuse);
        let story = script(STORY, json!({"id": run.as_str()}));
        tokio::select! {
            _ = dead.wait_for(|dead| *dead) => true,
            () = async {
                runs.submit(story, me()).await.unwrap();
                attend(&runs, run).await;
            } => false,
        }
    })
}

#[test]
fn a_daemon_that_is_killed_at_any_write_is_followed_by_one_that_does_nothing_twice() {
    let run = RunId::parse("story").unwrap();
    for side in [Side::Before, Side::After] {
        let mut writes = 0;
        // The first write is that the run is accepted; before it there is nothing that could be lost.
        while live_and_live_again(&run, writes + usize::from(side == Side::Before), side) {
            writes += 1;
        }
        assert!(writes > 20, "only {writes} writes were tried");
    }
}

/// Whether the first life ended too early.
fn live_and_live_again(run: &RunId, writes: usize, side: Side) -> bool {
    let what = format!("killed {side:?} write {writes}");
    let bench = Bench::new();
    let killed = live(&bench, run, writes, side);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let runs = bench.daemon(Arc::new(bench.store()));
        let state = attend(&runs, run).await;
        assert_eq!(state.phase, Phase::Completed, "{what}: {:?}", state.error);
        assert_eq!(state.result.as_deref(), Some("\"ONE,TWO,THREE,FOUR,yes\""), "{what}");
        assert_eq!(state.attempt, 1, "{what}");

        let lines = lines(&runs, run).await;
        let numbers: Vec<u64> = lines
            .iter()
            .filter_map(|line| if let Entry::Event(told) = &line.entry { Some(told.number) } else { None })
            .collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{what}");
        assert_eq!(lines.iter().filter(|line| line.entry.kind() == "finished").count(), 1, "{what}");

        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for word in events(&runs, run).await {
            let mut words = word.split(' ');
            let first_two = [words.next(), words.next()].map(Option::unwrap_or_default).join(" ");
            *counts.entry(first_two).or_default() += 1;
        }
        counts.remove("again ");
        let once: Vec<String> =
            (1..=6).flat_map(|n| [format!("call c{n}"), format!("result c{n}")]).collect();
        let once = once.into_iter().chain(["started ".into(), "completed ".into(), "says d".into()]);
        assert_eq!(counts, once.map(|word| (word, 1)).collect(), "{what}");

        // Whoever may not be repeated was called once, and once more for each time that a person wanted it again.
        for (call, word) in [("3", "three"), ("4", "four")] {
            let asked = |again: bool| {
                let about = state.approvals.iter().filter(|asked| asked.key == call);
                about.filter(|asked| asked.reason.starts_with("may have happened") == again).count()
            };
            let called = bench.called().iter().filter(|called| *called == word).count();
            assert!((1..=1 + asked(true)).contains(&called), "{what}: {word} was called {called} times");
            assert_eq!(asked(false), usize::from(call == "4"), "{what}: nobody is asked twice");
        }
        assert_receipt(&bench, &runs, &state).await;
        let receipts = std::fs::read_dir(bench.receipts().path()).unwrap();
        let files: Vec<String> =
            receipts.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        let of_runs: Vec<&String> = files.iter().filter(|name| name.starts_with("story")).collect();
        assert_eq!(of_runs, ["story.json"], "{what}: {files:?}");
    });
    killed
}
