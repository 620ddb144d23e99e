//! The pool over children of the test: warm ones are there, nobody jumps the queue, and the end is the end.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use outrigger_mustard::host::store::Dialect;
use outrigger_mustard::host::{LendError, Pool, PoolRules, PoolStatus, Source, Terms, TopLevelReturn};

use crate::host_fake::{Fake, Mood};
use crate::host_run::pool;

async fn warmed(pool: &Pool, idle: usize) {
    while pool.status().idle < idle {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn as_many_children_wait_as_should() {
    let fake = Fake::good(Dialect::Extended);
    let pool = pool(Arc::clone(&fake) as Arc<dyn Source>, 3, 2);
    warmed(&pool, 2).await;
    assert_eq!(fake.seen(), ["1:hello", "2:hello"], "they are greeted before anybody needs them");
    let first = pool.lend().await.expect("a child");
    warmed(&pool, 2).await;
    let second = pool.lend().await.expect("a child");
    let third = pool.lend().await.expect("a child");
    assert_eq!(pool.status(), PoolStatus { idle: 0, lent: 3, warming: 0, started: 3 });
    drop((first, second, third));
    assert_eq!(pool.status(), PoolStatus { idle: 3, lent: 0, warming: 0, started: 3 });
}

#[tokio::test]
async fn whoever_came_first_gets_the_next_child() {
    let pool = pool(Fake::good(Dialect::Version2), 1, 0);
    let held = pool.lend().await.expect("a child");
    let (sender, mut order) = tokio::sync::mpsc::channel(10);
    let mut waiting = Vec::new();
    for number in 0..5 {
        let (pool, sender) = (pool.clone(), sender.clone());
        waiting.push(tokio::spawn(async move {
            let lent = pool.lend().await.expect("a child");
            sender.send(number).await.expect("somebody listens");
            drop(lent);
        }));
        // On a runtime with one thread the task runs until it waits.
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.status().lent, 1);
    drop(held);
    for number in 0..5 {
        assert_eq!(order.recv().await, Some(number));
    }
    assert_eq!(pool.status().started, 1);
}

#[tokio::test]
async fn a_child_is_replaced_when_it_was_abandoned_in_the_middle() {
    let fake = Fake::new(Dialect::Version2, |child, _| if child == 1 { Mood::Hangs } else { Mood::Good });
    let pool = pool(Arc::clone(&fake) as Arc<dyn Source>, 1, 0);
    let mut lent = pool.lend().await.expect("a child");
    let asked =
        tokio::time::timeout(Duration::from_millis(20), lent.compile("seq 1", TopLevelReturn::Refused));
    asked.await.expect_err("it hangs");
    drop(lent);
    assert_eq!(pool.status().idle, 0, "nobody could tell what its next answer belongs to");
    let mut lent = pool.lend().await.expect("another child");
    lent.compile("seq 1", TopLevelReturn::Refused).await.expect("it answers");
    assert_eq!(fake.children(), 2);
}

#[tokio::test]
async fn a_child_is_replaced_after_its_last_run() {
    let fake = Fake::good(Dialect::Version2);
    let rules = PoolRules {
        size: NonZeroUsize::MIN,
        warm: 0,
        runs_per_child: NonZeroU32::new(2).expect("not zero"),
        rss_bytes: None,
    };
    let pool = Pool::new(Arc::clone(&fake) as Arc<dyn Source>, Terms::usual(), rules);
    let key = outrigger_mustard::host::HostKey::from_bytes([5; 32]);
    let host = outrigger_mustard::host::Host::new(pool, key).expect("randomness");
    let script = host.compile("seq 0", TopLevelReturn::Refused).await.expect("it compiles");
    for children in [1, 1, 2, 2, 3] {
        host.run(&script).go().await.expect("it finishes");
        assert_eq!(fake.children(), children);
    }
}

#[tokio::test]
async fn nobody_gets_a_child_after_the_end() {
    let pool = pool(Fake::good(Dialect::Version2), 1, 0);
    let held = pool.lend().await.expect("a child");
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.lend().await.map(drop) }
    });
    tokio::task::yield_now().await;
    pool.shutdown().await;
    assert!(matches!(waiting.await.expect("no panic"), Err(LendError::Closed)));
    assert!(matches!(pool.lend().await, Err(LendError::Closed)));
    drop(held);
    assert_eq!(pool.status().idle, 0);
}
