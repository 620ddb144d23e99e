//! Runs over children that die, lie, hang and forget: the value is right, and no handler is called twice.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_mustard::host::store::{CallId, Capacity, Dialect, Directory, RunId, Store};
use outrigger_mustard::host::{
    Capabilities, CompileError, Ending, Fanout, Finished, Host, HostError, HostKey, Interrupted, Loss, Plain,
    Pool, PoolRules, Reply, ResumeError, Run, RunError, RunRules, Source, Terms, TopLevelReturn,
};
use tempfile::TempDir;
use tokio::sync::{Barrier, Notify};

use crate::host_fake::{Fake, Mood};

const BOTH: [Dialect; 2] = [Dialect::Version2, Dialect::Extended];

pub(crate) fn pool(source: Arc<dyn Source>, size: usize, warm: usize) -> Pool {
    let rules = PoolRules {
        size: NonZeroUsize::new(size).expect("not zero"),
        warm,
        runs_per_child: NonZeroU32::new(1000).expect("not zero"),
        rss_bytes: None,
    };
    let terms = Terms { within: Duration::from_secs(20), request_bytes: 1 << 22, response_bytes: 1 << 22 };
    Pool::new(source, terms, rules)
}

fn host(source: &Arc<Fake>) -> Host {
    let source: Arc<dyn Source> = Arc::clone(source) as Arc<dyn Source>;
    Host::new(pool(source, 2, 0), HostKey::from_bytes([5; 32])).expect("randomness")
}

fn rules() -> RunRules {
    RunRules { backoff: Duration::from_millis(1), step_within: Duration::from_secs(20), ..RunRules::usual() }
}

/// A handler that remembers every call it got, and answers ten times its argument.
#[derive(Clone, Default)]
struct Ticks(Arc<Mutex<BTreeMap<u64, u32>>>);

impl Ticks {
    fn table(&self) -> Capabilities {
        let ticks = self.clone();
        Capabilities::none().on_call("tick", move |call| {
            *ticks.0.lock().expect("no panic").entry(call.id.0).or_default() += 1;
            let Plain::Number(argument) = call.args[0] else { panic!("a number was passed") };
            async move { Plain::Number(argument * 10.0) }
        })
    }

    /// How often each call was made.
    fn counts(&self) -> Vec<(u64, u32)> {
        self.0.lock().expect("no panic").clone().into_iter().collect()
    }
}

fn once(calls: u64) -> Vec<(u64, u32)> {
    (1..=calls).map(|call| (call, 1)).collect()
}

async fn finish(run: Run) -> Finished {
    match run.go().await {
        Ok(Ending::Finished(finished)) => finished,
        other => panic!("it should have finished: {other:?}"),
    }
}

#[tokio::test]
async fn a_script_is_compiled_once_and_runs_in_any_child() {
    for dialect in BOTH {
        let fake = Fake::good(dialect);
        let host = host(&fake);
        let script = host.compile("seq 3", TopLevelReturn::Refused).await.expect("it compiles");
        let ticks = Ticks::default();
        let done = finish(host.run(&script).capabilities(ticks.table()).rules(rules())).await;
        assert_eq!(done.value, Plain::Number(30.0));
        assert_eq!((done.statistics.hops, done.statistics.calls, done.statistics.children), (3, 3, 1));
        assert_eq!(ticks.counts(), once(3));

        // Another child has never seen it; the first one needs only its id.
        let first = host.pool().lend().await.expect("the child that waits");
        finish(host.run(&script).capabilities(ticks.table()).rules(rules())).await;
        drop(first);
        let said: Vec<_> = fake.seen().into_iter().filter(|word| !word.contains("hello")).collect();
        let steps = ["1:resume"; 3];
        assert_eq!(said[..2], ["1:compile", "1:start"]);
        assert_eq!(said[2..5], steps);
        assert_eq!(said[5], "2:start+blob");
        assert_eq!(said[6..], ["2:resume"; 3]);
    }
}

#[tokio::test]
async fn a_version_2_child_is_never_greeted() {
    let fake = Fake::good(Dialect::Version2);
    let script = host(&fake).compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    drop(script);
    assert_eq!(fake.seen(), ["1:compile"]);
}

#[tokio::test]
async fn a_script_that_does_not_compile_says_why_and_the_child_lives() {
    let fake = Fake::good(Dialect::Version2);
    let host = host(&fake);
    let error = host.compile("bad", TopLevelReturn::Refused).await.expect_err("it is bad");
    let CompileError::Script(error) = error else { panic!("{error}") };
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("Parse", "this is bad"));
    host.compile("seq 1", TopLevelReturn::Refused).await.expect("a good one");
    assert_eq!(fake.children(), 1);
}

#[tokio::test]
async fn a_child_that_fails_in_any_way_is_replaced_and_no_call_is_made_twice() {
    for mood in
        [Mood::Dies, Mood::DiesHalfWay, Mood::Babbles, Mood::AnswersAnother, Mood::Forges, Mood::Hangs]
    {
        for dialect in BOTH {
            // Every child fails at its third request.
            let fake = Fake::new(dialect, move |_, request| if request == 3 { mood } else { Mood::Good });
            let host = host(&fake);
            let script = host.compile("seq 7", TopLevelReturn::Refused).await.expect("it compiles");
            let ticks = Ticks::default();
            let step_within = Duration::from_millis(if mood == Mood::Hangs { 100 } else { 20_000 });
            let rules = RunRules { step_within, ..rules() };
            let done = finish(host.run(&script).capabilities(ticks.table()).rules(rules)).await;
            assert_eq!(done.value, Plain::Number(210.0), "{mood:?}");
            assert_eq!(ticks.counts(), once(7), "{mood:?}");
            assert!(done.statistics.repeats >= 3, "{mood:?}: {:?}", done.statistics);
            assert_eq!(done.statistics.children, fake.children() as u64, "{mood:?}");
        }
    }
}

#[tokio::test]
async fn a_step_that_kills_every_child_ends_with_what_the_last_one_did() {
    let fake =
        Fake::new(
            Dialect::Extended,
            |child, request| {
                if child > 1 || request >= 3 { Mood::Babbles } else { Mood::Good }
            },
        );
    let host = host(&fake);
    let script = host.compile("seq 2", TopLevelReturn::Refused).await.expect("it compiles");
    let ticks = Ticks::default();
    let failed =
        host.run(&script).capabilities(ticks.table()).rules(rules()).go().await.expect_err("it cannot");
    let RunError::KeepsDying { step: 1, attempts: 3, last } = &failed.why else { panic!("{failed}") };
    assert_eq!(last.how, Loss::Garbage);
    assert!(failed.to_string().contains("hi there!"), "{failed}");
    assert_eq!(failed.statistics.children, 3);
    assert_eq!(ticks.counts(), once(1));
}

#[tokio::test]
async fn a_child_that_forgot_its_ids_gets_the_bytes() {
    for dialect in BOTH {
        let fake = Fake::new(dialect, |_, request| if request % 2 == 0 { Mood::Forgets } else { Mood::Good });
        let host = host(&fake);
        let script = host.compile("seq 3", TopLevelReturn::Refused).await.expect("it compiles");
        let ticks = Ticks::default();
        let done = finish(host.run(&script).capabilities(ticks.table()).rules(rules())).await;
        assert_eq!(done.value, Plain::Number(30.0));
        assert_eq!((done.statistics.repeats, done.statistics.children), (0, 1), "nothing was lost");
        let seen = fake.seen();
        assert!(seen.contains(&"1:start+blob".to_owned()), "{seen:?}");
        assert!(seen.contains(&"1:resume+blob".to_owned()), "{seen:?}");
    }
}

#[tokio::test]
async fn calls_that_wait_together_are_made_in_parallel_and_answered_in_one_step() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("fan 8", TopLevelReturn::Refused).await.expect("it compiles");
    // Nobody gets past the barrier until all eight are there.
    let barrier = Arc::new(Barrier::new(8));
    let table = Capabilities::none().on("tick", move |_| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Plain::Number(1.0)
        }
    });
    let done = finish(host.run(&script).capabilities(table).rules(rules())).await;
    assert_eq!((done.value, done.statistics.hops), (Plain::Number(8.0), 1));
}

#[tokio::test]
async fn no_more_handlers_work_at_once_than_may() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("fan 20", TopLevelReturn::Refused).await.expect("it compiles");
    let now_and_most = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&now_and_most);
    let table = Capabilities::none().on("tick", move |_| {
        let seen = Arc::clone(&seen);
        async move {
            {
                let mut seen = seen.lock().expect("no panic");
                seen.0 += 1;
                seen.1 = seen.1.max(seen.0);
            }
            tokio::task::yield_now().await;
            seen.lock().expect("no panic").0 -= 1;
            Plain::Number(1.0)
        }
    });
    let rules = RunRules { parallel_calls: NonZeroUsize::new(3).expect("not zero"), ..rules() };
    let done = finish(host.run(&script).capabilities(table).rules(rules)).await;
    assert_eq!(done.value, Plain::Number(20.0));
    assert_eq!(now_and_most.lock().expect("no panic").1, 3);
}

#[tokio::test]
async fn answers_are_sent_as_they_come_if_that_is_wanted() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("fan 2", TopLevelReturn::Refused).await.expect("it compiles");
    // The second call may only end when the first one's answer has been delivered, which is the second snapshot.
    let delivered = Arc::new(Notify::new());
    let gate = Arc::clone(&delivered);
    let table = Capabilities::none().on_call("tick", move |call| {
        let gate = Arc::clone(&gate);
        async move {
            if call.id == CallId(2) {
                gate.notified().await;
            }
            Plain::Number(1.0)
        }
    });
    let rules = RunRules { fanout: Fanout::AsTheyCome, ..rules() };
    let run = tokio::spawn(host.run(&script).capabilities(table).rules(rules).go());
    let resumed = || fake.seen().iter().filter(|word| word.contains("resume")).count();
    while resumed() == 0 {
        tokio::task::yield_now().await;
    }
    delivered.notify_one();
    let Ok(Ok(Ending::Finished(done))) = run.await else { panic!("it finishes") };
    assert_eq!((done.value, done.statistics.hops), (Plain::Number(2.0), 2));
}

#[tokio::test]
async fn a_handlers_error_and_a_handlers_panic_are_thrown_into_the_script() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    let error = HostError { name: "Denied".into(), message: "not you".into(), code: None, details: None };
    let table = Capabilities::none().on("tick", move |_| {
        let error = error.clone();
        async move { Err::<Plain, _>(error) }
    });
    let failed = host.run(&script).capabilities(table).rules(rules()).go().await.expect_err("it throws");
    assert_eq!(failed.to_string(), "Runtime: Denied: not you");
    let table = Capabilities::none().on("tick", |_| async { Reply::from(panic_now()) });
    let failed = host.run(&script).capabilities(table).rules(rules()).go().await.expect_err("it throws");
    assert_eq!(failed.to_string(), "Runtime: Error: the host's handler of this call panicked");
}

fn panic_now() -> Plain {
    panic!("as the test wants it")
}

#[tokio::test]
async fn a_request_may_be_as_large_as_the_child_takes_and_not_one_byte_larger() {
    let fake = Fake::good(Dialect::Version2);
    let host = host(&fake);
    let script = host.compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    let ticks = Ticks::default();
    let run = |size: usize| {
        let text = Plain::String("x".repeat(size));
        host.run(&script).input("text", text).capabilities(ticks.table()).rules(rules())
    };
    let failed = run(2 << 20).go().await.expect_err("too large");
    let RunError::TooLarge { step: 0, bytes, limit: 1_048_576 } = failed.why else { panic!("{failed}") };
    let overhead = usize::try_from(bytes).expect("small") - (2 << 20);
    finish(run((1 << 20) - overhead)).await;
    let failed = run((1 << 20) - overhead + 1).go().await.expect_err("one byte too much");
    assert!(matches!(failed.why, RunError::TooLarge { bytes: 1_048_577, limit: 1_048_576, .. }), "{failed}");
    assert_eq!(fake.children(), 1, "a request that is not sent costs no child");
}

#[tokio::test]
async fn a_run_that_takes_too_long_altogether_is_stopped() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    let table = Capabilities::none().on("tick", |_| std::future::pending::<Plain>());
    let within = Duration::from_millis(50);
    let rules = RunRules { total_within: within, ..rules() };
    let failed =
        host.run(&script).capabilities(table).rules(rules).go().await.expect_err("it waits for ever");
    assert!(matches!(failed.why, RunError::Deadline { .. }), "{failed}");
    assert_eq!(failed.to_string(), "the run was not done within 50 ms");
    assert_eq!(failed.statistics.hops, 1);
}

#[tokio::test]
async fn a_cancelled_run_stops_whether_it_computes_or_waits() {
    for mood in [Mood::Hangs, Mood::Good] {
        let fake =
            Fake::new(Dialect::Extended, move |_, request| if request == 2 { mood } else { Mood::Good });
        let host = host(&fake);
        let script = host.compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
        let table = Capabilities::none().on("tick", |_| std::future::pending::<Plain>());
        let run = host.run(&script).capabilities(table).rules(rules());
        let canceller = run.canceller();
        let run = tokio::spawn(run.go());
        while !fake.seen().contains(&"1:start".to_owned()) {
            tokio::task::yield_now().await;
        }
        canceller.cancel();
        let failed = run.await.expect("no panic").expect_err("it was cancelled");
        assert!(matches!(failed.why, RunError::Cancelled), "{failed}");
        // A child that computed is gone, one that waited can be used again; either way there is a seat for the next run.
        let expected = if mood == Mood::Hangs { 0 } else { 1 };
        assert_eq!(host.pool().status().lent, 0);
        assert!(host.pool().status().idle <= expected);
    }
}

fn store(at: &TempDir) -> Arc<dyn Store> {
    let capacity = Capacity { entries: 100, bytes: 1 << 24 };
    Arc::new(
        Directory::open(at.path().join("store"), HostKey::from_bytes([5; 32]), capacity).expect("it opens"),
    )
}

#[tokio::test]
async fn a_run_parks_when_only_somebody_else_can_help_and_goes_on_once_on_another_host() {
    for dialect in BOTH {
        let at = TempDir::new().expect("a directory");
        let (fake, store) = (Fake::good(dialect), store(&at));
        let first = host(&fake);
        let script = first.compile("seq 2", TopLevelReturn::Refused).await.expect("it compiles");
        let run = first.run(&script).capabilities(Capabilities::none().park("tick")).rules(rules());
        let id = run.id().clone();
        let Ok(Ending::Parked(parked)) = run.store(Arc::clone(&store)).go().await else { panic!("it parks") };
        let ticket = parked.ticket.expect("it has a store");
        assert_eq!((parked.record.run, parked.record.calls[0].call), (id.clone(), CallId(1)));
        assert_eq!(store.unfinished().expect("readable"), [], "what is parked is in its ticket alone");

        let second = host(&fake);
        let run = second.resume(Arc::clone(&store), &ticket).await.expect("it is fresh");
        assert_eq!((run.id(), run.waiting()[0].capability.as_str()), (&id, "tick"));
        let ticks = Ticks::default();
        let run = run.answer(CallId(1), Plain::Number(5.0)).capabilities(ticks.table()).rules(rules());
        assert_eq!(finish(run).await.value, Plain::Number(15.0));
        assert_eq!(ticks.counts(), [(2, 1)], "the first was answered by a person");
        assert_eq!(store.unfinished().expect("readable"), []);

        let again = second.resume(Arc::clone(&store), &ticket).await.expect_err("it is used");
        assert!(matches!(again, ResumeError::Ticket(_)), "{again}");
        let replay = second.replay(Arc::clone(&store), &ticket).await.expect("asked for");
        assert_ne!(replay.id(), &id);
        let replay = replay.answer(CallId(1), Plain::Number(1.0)).capabilities(ticks.table()).rules(rules());
        let done = finish(replay.store(Arc::clone(&store))).await;
        assert_eq!((done.value, done.statistics.remembered), (Plain::Number(11.0), 0));
        assert_eq!(store.unfinished().expect("readable"), []);
    }
}

#[tokio::test]
async fn of_two_hosts_exactly_one_continues_a_parked_run() {
    let at = TempDir::new().expect("a directory");
    let fake = Fake::good(Dialect::Extended);
    let hosts = [host(&fake), host(&fake)];
    let script = hosts[0].compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    for _ in 0..20 {
        let run = hosts[0].run(&script).capabilities(Capabilities::none().park("tick")).rules(rules());
        let Ok(Ending::Parked(parked)) = run.store(store(&at)).go().await else { panic!("it parks") };
        let ticket = parked.ticket.expect("a store");
        // Each with a store of its own on the same directory, as two processes have.
        let (one, other) =
            tokio::join!(hosts[0].resume(store(&at), &ticket), hosts[1].resume(store(&at), &ticket));
        let mut winners = 0;
        for resumed in [one, other] {
            match resumed {
                Ok(_) => winners += 1,
                Err(ResumeError::Held(_) | ResumeError::Unfinished { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn what_is_too_deep_is_refused_or_thrown_and_never_sent() {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let deep = || (0..100_000).fold(Plain::Null, |inner, _| Plain::Array(vec![inner]));
    let script = host.compile("seq 1", TopLevelReturn::Refused).await.expect("it compiles");
    let failed = host.run(&script).input("x", deep()).rules(rules()).go().await.expect_err("too deep");
    assert_eq!(failed.to_string(), "the input `x` is nested more deeply than a value may be");
    let table = Capabilities::none().on("tick", move |_| async move { deep() });
    let failed = host.run(&script).capabilities(table).rules(rules()).go().await.expect_err("too deep");
    let expected = "Runtime: TypeError: what `tick` answered is nested more than 128 levels deep";
    assert_eq!(failed.to_string(), expected);
    assert_eq!(fake.children(), 1);
}

#[tokio::test]
async fn calls_that_can_be_answered_are_before_a_run_parks() {
    let at = TempDir::new().expect("a directory");
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("fan 3", TopLevelReturn::Refused).await.expect("it compiles");
    let table = Capabilities::none().on_call("tick", |call| async move {
        if call.id == CallId(2) { Reply::Park } else { Reply::Value(Plain::Number(1.0)) }
    });
    let run = host.run(&script).capabilities(table).rules(rules()).store(store(&at));
    let Ok(Ending::Parked(parked)) = run.go().await else { panic!("it parks") };
    let waiting: Vec<_> = parked.record.calls.iter().map(|waiting| waiting.call).collect();
    assert_eq!((waiting, parked.statistics.hops), (vec![CallId(2)], 2));
}

#[tokio::test]
async fn an_answer_to_a_call_that_does_not_wait_is_refused() {
    let at = TempDir::new().expect("a directory");
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("seq 2", TopLevelReturn::Refused).await.expect("it compiles");
    let run = host.run(&script).capabilities(Capabilities::none().park("tick")).rules(rules());
    let Ok(Ending::Parked(parked)) = run.store(store(&at)).go().await else { panic!("it parks") };
    let run = host.continue_record(parked.record).expect("the same children");
    let failed =
        run.answer(CallId(9), Plain::Null).rules(rules()).go().await.expect_err("there is no such call");
    assert!(matches!(failed.why, RunError::NoSuchCall { call: CallId(9) }), "{failed}");
}

#[tokio::test]
async fn a_snapshot_of_other_children_is_refused() {
    let at = TempDir::new().expect("a directory");
    let old = host(&Fake::good(Dialect::Version2));
    let script = old.compile("seq 2", TopLevelReturn::Refused).await.expect("it compiles");
    let run = old.run(&script).capabilities(Capabilities::none().park("tick")).rules(rules());
    let Ok(Ending::Parked(parked)) = run.store(store(&at)).go().await else { panic!("it parks") };
    let ticket = parked.ticket.expect("a store");
    let new = host(&Fake::good(Dialect::Extended));
    let error = new.resume(store(&at), &ticket).await.expect_err("another engine");
    assert_eq!(
        error.to_string(),
        "its snapshot is for sidecars that speak version 2, and these speak version 2 with extensions"
    );
    old.resume(store(&at), &ticket).await.expect("a refusal uses nothing up");
}

/// Lets a run get to its `stop`th call and then drops everything, as a kill would.
async fn host_that_dies(store: &Arc<dyn Store>, stop: u64, ticks: &Ticks) -> RunId {
    let fake = Fake::good(Dialect::Extended);
    let host = host(&fake);
    let script = host.compile("seq 5", TopLevelReturn::Refused).await.expect("it compiles");
    let (reached, table) = (Arc::new(Notify::new()), ticks.table());
    let here = Arc::clone(&reached);
    let table = Capabilities::none().on_call("tick", move |call| {
        let (here, handler) = (Arc::clone(&here), table.clone());
        async move {
            if call.id.0 == stop {
                here.notify_one();
                std::future::pending::<()>().await;
            }
            handler.reply_to(call).await
        }
    });
    let run = host.run(&script).capabilities(table).rules(rules()).store(Arc::clone(store));
    let id = run.id().clone();
    tokio::select! {
        ended = run.go() => panic!("it should wait: {ended:?}"),
        () = reached.notified() => {}
    }
    id
}

/// Takes over as soon as the last task of the host that died is gone.
async fn recover(host: &Host, store: &Arc<dyn Store>, id: &RunId) -> Run {
    loop {
        match host.recover(Arc::clone(store), id).await {
            Ok(run) => return run,
            Err(ResumeError::Held(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_run_whose_host_died_goes_on_from_its_last_snapshot() {
    for interrupted in [Interrupted::CallAgain, Interrupted::Fail] {
        let at = TempDir::new().expect("a directory");
        let (store, ticks) = (store(&at), Ticks::default());
        let id = host_that_dies(&store, 3, &ticks).await;
        assert_eq!(store.unfinished().expect("readable"), std::slice::from_ref(&id));

        let second = host(&Fake::good(Dialect::Extended));
        let run = recover(&second, &store, &id).await;
        let held = second.recover(Arc::clone(&store), &id).await.expect_err("it is ours now");
        assert!(matches!(held, ResumeError::Held(_)), "{held}");
        let done = finish(run.capabilities(ticks.table()).rules(rules()).interrupted(interrupted)).await;
        assert_eq!(done.value, Plain::Number(100.0));
        assert_eq!(ticks.counts(), once(5), "1 and 2 were not made again");
        let gone = second.recover(Arc::clone(&store), &id).await.expect_err("it is done");
        assert!(matches!(gone, ResumeError::NothingToRecover { .. }), "{gone}");
        let left = std::fs::read_dir(at.path().join("store/runs")).expect("readable").count();
        assert_eq!(left, 0, "asking leaves nothing behind");
    }
}

#[tokio::test]
async fn an_answer_that_was_written_down_and_never_sent_is_used_and_not_asked_for_again() {
    let at = TempDir::new().expect("a directory");
    let (store, ticks) = (store(&at), Ticks::default());
    let id = host_that_dies(&store, 3, &ticks).await;
    // This is what is there if the host is killed after the answer to call 3 was written and before it was sent.
    let payload = r#"{"value":"{\"Number\":{\"Finite\":1000.0}}"}"#;
    store.answer(&id, CallId(3), payload).expect("written");
    let second = host(&Fake::good(Dialect::Extended));
    let run = recover(&second, &store, &id).await;
    let done = finish(run.capabilities(ticks.table()).rules(rules())).await;
    assert_eq!(done.value, Plain::Number(1080.0));
    assert_eq!(done.statistics.remembered, 1);
    assert_eq!(ticks.counts(), [(1, 1), (2, 1), (4, 1), (5, 1)]);
}

#[tokio::test]
async fn a_call_that_had_begun_when_its_host_died_is_made_again_or_fails_as_the_owner_wants() {
    for (interrupted, expected) in [
        (Interrupted::CallAgain, Ok(Plain::Number(100.0))),
        (
            Interrupted::Fail,
            Err("Runtime: Error: the host died while this call was made; whether it happened is not known"),
        ),
    ] {
        let at = TempDir::new().expect("a directory");
        let (store, ticks) = (store(&at), Ticks::default());
        let id = host_that_dies(&store, 3, &ticks).await;
        store.begin(&id, CallId(3)).expect("written");
        let second = host(&Fake::good(Dialect::Extended));
        let run = recover(&second, &store, &id).await;
        let ended = run.capabilities(ticks.table()).rules(rules()).interrupted(interrupted).go().await;
        match (ended, expected) {
            (Ok(Ending::Finished(done)), Ok(value)) => assert_eq!(done.value, value),
            (Err(failed), Err(text)) => assert_eq!(failed.to_string(), text),
            (ended, expected) => panic!("{ended:?} instead of {expected:?}"),
        }
    }
}
