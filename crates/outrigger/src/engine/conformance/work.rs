//! Promises about work: what is queued, claimed, kept and done.

use std::sync::Arc;
use std::time::Duration;

use super::{log, put, queue, queued, records};
use crate::engine::{Append, AppendError, Claim, ClaimError, Claimed, Engine, Millis, QueueName, Work};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

/// Over before anybody asks again.
const SHORT: Duration = Duration::from_millis(30);

type Any = Arc<dyn Engine>;

async fn claim(engine: &Any, in_queue: &str, lease: Duration) -> Claim {
    match engine.claim(&queue(in_queue), lease).await.unwrap() {
        Claimed::Work(claim) => claim,
        other => panic!("nothing to claim: {other:?}"),
    }
}

/// Waits until the moment that the queue names, and claims then.
async fn claim_when_free(engine: &Any, in_queue: &str, lease: Duration) -> Claim {
    loop {
        match engine.claim(&queue(in_queue), lease).await.unwrap() {
            Claimed::Work(claim) => return claim,
            Claimed::NotBefore(moment) => tokio::time::sleep(moment.left()).await,
            Claimed::Nothing => panic!("the queue is empty"),
        }
    }
}

fn lost<T: std::fmt::Debug>(outcome: Result<T, ClaimError>) -> String {
    match outcome {
        Err(ClaimError::Lost { key }) => key,
        other => panic!("not lost: {other:?}"),
    }
}

async fn is_empty(engine: &Any, in_queue: &str) -> bool {
    engine.claim(&queue(in_queue), LONG).await.unwrap() == Claimed::Nothing
}

pub(crate) async fn work_is_queued_with_the_append_or_not_at_all(engine: Any) {
    let now = Millis::now();
    let late = Append { work: queued("", 0, "q", "k", now).work, ..records("a", 1, &["x"]) };
    assert!(matches!(engine.append_if(late).await, Err(AppendError::Conflict { .. })));
    assert!(is_empty(&engine, "q").await);
    let work = |key: &str| Work { queue: queue("q"), key: key.to_owned(), due: now };
    let right = Append { work: vec![work("k"), work("l")], ..records("a", 0, &["x"]) };
    engine.append_if(right).await.unwrap();
    assert_eq!(claim(&engine, "q", LONG).await.key, "k");
    assert_eq!(claim(&engine, "q", LONG).await.key, "l");
}

pub(crate) async fn what_has_been_due_for_longest_is_claimed_first(engine: Any) {
    let now = Millis::now();
    for (key, ago) in [("third", 100), ("first", 300), ("second", 200), ("fourth", 100)] {
        engine.append_if(queued("a", 0, "q", key, Millis(now.0 - ago))).await.unwrap();
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(claim(&engine, "q", LONG).await.key);
    }
    assert_eq!(order, ["first", "second", "third", "fourth"]);
}

pub(crate) async fn what_is_not_due_yet_is_announced(engine: Any) {
    assert_eq!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::Nothing);
    let soon = Millis::now().after(Duration::from_secs(3000));
    let later = Millis::now().after(Duration::from_secs(6000));
    engine.append_if(queued("a", 0, "q", "later", later)).await.unwrap();
    assert_eq!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(later));
    engine.append_if(queued("a", 0, "q", "soon", soon)).await.unwrap();
    assert_eq!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(soon));
    // A lease that ends earlier is the next moment.
    put(&engine, "q", "now", 0).await;
    let (before, lease) = (Millis::now(), Duration::from_secs(60));
    claim(&engine, "q", lease).await;
    let after = Millis::now();
    match engine.claim(&queue("q"), LONG).await.unwrap() {
        Claimed::NotBefore(moment) => {
            assert!(moment >= before.after(lease) && moment <= after.after(lease), "{moment:?}");
        }
        other => panic!("{other:?}"),
    }
    // What becomes due is there when it was said to be.
    let moment = Millis::now().after(SHORT);
    engine.append_if(queued("a", 0, "other", "k", moment)).await.unwrap();
    assert_eq!(claim_when_free(&engine, "other", LONG).await.key, "k");
    assert!(Millis::now() >= moment);
    // A moment that never comes is none that overflows.
    engine.append_if(queued("a", 0, "never", "k", Millis(u64::MAX))).await.unwrap();
    assert!(matches!(engine.claim(&queue("never"), LONG).await.unwrap(), Claimed::NotBefore(_)));
}

pub(crate) async fn of_many_who_claim_at_once_each_gets_something_else(engine: Any) {
    for number in 0..40 {
        put(&engine, "q", &format!("{number:02}"), 0).await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let engine = Arc::clone(&engine);
        workers.spawn(async move {
            let mut mine = Vec::new();
            while let Claimed::Work(claim) = engine.claim(&QueueName("q".to_owned()), LONG).await.unwrap() {
                mine.push(claim.key);
            }
            mine
        });
    }
    let mut all = workers.join_all().await.concat();
    all.sort();
    assert_eq!(all, (0..40).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

pub(crate) async fn a_key_that_is_queued_already_is_due_at_the_earlier_moment(engine: Any) {
    let far = Millis::now().after(LONG);
    engine.append_if(queued("a", 0, "q", "k", far)).await.unwrap();
    engine.append_if(queued("a", 0, "q", "k", far.after(LONG))).await.unwrap();
    assert_eq!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(far));
    engine.append_if(queued("a", 0, "q", "k", Millis::now())).await.unwrap();
    // It was one work and is one work.
    let one = claim(&engine, "q", LONG).await;
    engine.ack(&one).await.unwrap();
    assert!(is_empty(&engine, "q").await);
}

pub(crate) async fn a_lease_that_ran_out_makes_the_work_claimable_again(engine: Any) {
    put(&engine, "q", "k", 0).await;
    let first = claim(&engine, "q", SHORT).await;
    assert!(matches!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(_)));
    let second = claim_when_free(&engine, "q", LONG).await;
    assert_eq!((&second.queue, &second.key), (&first.queue, &first.key));
    assert_ne!(second.token, first.token);
    engine.ack(&second).await.unwrap();
    assert!(is_empty(&engine, "q").await);
}

pub(crate) async fn an_extended_lease_holds_for_longer(engine: Any) {
    put(&engine, "q", "k", 0).await;
    let held = claim(&engine, "q", LONG).await;
    let before = Millis::now();
    engine.extend(&held, LONG * 2).await.unwrap();
    match engine.claim(&queue("q"), LONG).await.unwrap() {
        Claimed::NotBefore(moment) => assert!(moment >= before.after(LONG * 2)),
        other => panic!("{other:?}"),
    }
    // It counts from now, so it can be made shorter as well: that is how work is given back.
    engine.extend(&held, Duration::ZERO).await.unwrap();
    assert_eq!(claim_when_free(&engine, "q", LONG).await.key, "k");
}

pub(crate) async fn a_lost_claim_can_neither_be_extended_nor_acknowledged(engine: Any) {
    put(&engine, "q", "k", 0).await;
    let first = claim(&engine, "q", SHORT).await;
    let second = claim_when_free(&engine, "q", SHORT).await;
    assert_eq!(lost(engine.extend(&first, LONG).await), "k");
    assert_eq!(lost(engine.ack(&first).await), "k");
    // A lease that ran out is lost even if nobody else has it yet.
    let end = Millis::now().after(SHORT);
    while Millis::now() <= end {
        tokio::time::sleep(end.left().max(Duration::from_millis(1))).await;
    }
    assert_eq!(lost(engine.extend(&second, LONG).await), "k");
    assert_eq!(lost(engine.ack(&second).await), "k");
    // A claim that was acknowledged is over, even when the same key is claimed again.
    let third = claim(&engine, "q", LONG).await;
    engine.ack(&third).await.unwrap();
    assert_eq!(lost(engine.ack(&third).await), "k");
    put(&engine, "q", "k", 0).await;
    let fourth = claim(&engine, "q", LONG).await;
    assert_eq!(lost(engine.ack(&third).await), "k");
    engine.ack(&fourth).await.unwrap();
}

pub(crate) async fn acknowledged_work_is_gone(engine: Any) {
    put(&engine, "q", "k", 10).await;
    put(&engine, "q", "l", 0).await;
    let first = claim(&engine, "q", LONG).await;
    engine.ack(&first).await.unwrap();
    let second = claim(&engine, "q", LONG).await;
    assert_eq!((first.key.as_str(), second.key.as_str()), ("k", "l"));
    engine.ack(&second).await.unwrap();
    assert!(is_empty(&engine, "q").await);
}

pub(crate) async fn work_queued_during_a_claim_stays_for_the_next(engine: Any) {
    put(&engine, "q", "k", 0).await;
    let first = claim(&engine, "q", LONG).await;
    put(&engine, "q", "k", 0).await;
    put(&engine, "q", "k", 0).await;
    // Nobody else gets it while it is claimed.
    assert!(matches!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(_)));
    engine.ack(&first).await.unwrap();
    let second = claim(&engine, "q", LONG).await;
    assert_eq!(second.key, "k");
    // Due later is due later, also when the claim before it is over.
    let later = Millis::now().after(LONG);
    engine.append_if(queued("a", 0, "q", "k", later)).await.unwrap();
    engine.ack(&second).await.unwrap();
    assert_eq!(engine.claim(&queue("q"), LONG).await.unwrap(), Claimed::NotBefore(later));
    // Queued while the claim held, and the claim ran out: who claims next has both, as far as they are due.
    put(&engine, "r", "k", 0).await;
    claim(&engine, "r", SHORT).await;
    put(&engine, "r", "k", 0).await;
    let both = claim_when_free(&engine, "r", LONG).await;
    engine.ack(&both).await.unwrap();
    assert!(is_empty(&engine, "r").await);
    put(&engine, "s", "k", 0).await;
    claim(&engine, "s", SHORT).await;
    engine.append_if(queued("a", 0, "s", "k", later)).await.unwrap();
    let one = claim_when_free(&engine, "s", LONG).await;
    engine.ack(&one).await.unwrap();
    assert_eq!(engine.claim(&queue("s"), LONG).await.unwrap(), Claimed::NotBefore(later));
}

pub(crate) async fn queues_do_not_see_each_other(engine: Any) {
    put(&engine, "q", "k", 0).await;
    put(&engine, "r", "k", 0).await;
    let (one, other) = (claim(&engine, "q", LONG).await, claim(&engine, "r", LONG).await);
    engine.ack(&one).await.unwrap();
    engine.extend(&other, LONG).await.unwrap();
    let forged = Claim { queue: queue("q"), ..other.clone() };
    assert_eq!(lost(engine.ack(&forged).await), "k");
    engine.ack(&other).await.unwrap();
    assert!(is_empty(&engine, "q").await && is_empty(&engine, "r").await);
}

pub(crate) async fn the_work_of_a_forgotten_log_is_forgotten(engine: Any) {
    engine.append_if(queued("a", 0, "q", "of a", Millis::now())).await.unwrap();
    engine.append_if(queued("b", 0, "q", "of b", Millis::now())).await.unwrap();
    let held = claim(&engine, "q", LONG).await;
    assert_eq!(held.key, "of a");
    engine.forget(&log("a")).await.unwrap();
    assert_eq!(lost(engine.extend(&held, LONG).await), "of a");
    let other = claim(&engine, "q", LONG).await;
    assert_eq!(other.key, "of b");
    engine.ack(&other).await.unwrap();
    assert!(is_empty(&engine, "q").await);
}
