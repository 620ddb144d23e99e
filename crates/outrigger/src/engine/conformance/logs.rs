//! Promises about logs, heads, blobs and watching.

use std::sync::Arc;

use outrigger_policy::Digest;
use tokio::sync::broadcast::error::RecvError;

use super::{headed, log, queued, records};
use crate::engine::{
    Append, AppendError, Changed, Engine, EngineError, Head, HeadQuery, LogId, Millis, NewHead, ReadLimit,
    Seq,
};

const PLENTY: ReadLimit = ReadLimit { records: 1000, bytes: 1 << 20 };

/// The longest record and the longest head that every engine takes, and no engine takes more.
const LONGEST: usize = 32 << 20;

type Any = Arc<dyn Engine>;

async fn texts(engine: &Any, name: &str, after: u64, limit: ReadLimit) -> Vec<(u64, String)> {
    let stored = engine.read(&log(name), Seq(after), limit).await.unwrap();
    stored.into_iter().map(|stored| (stored.seq.0, stored.record)).collect()
}

fn numbered(texts: &[(u64, &str)]) -> Vec<(u64, String)> {
    texts.iter().map(|&(seq, text)| (seq, text.to_owned())).collect()
}

fn conflict(outcome: Result<Seq, AppendError>) -> (u64, u64) {
    match outcome {
        Err(AppendError::Conflict { expected, actual }) => (expected.0, actual.0),
        other => panic!("not a conflict: {other:?}"),
    }
}

pub(crate) async fn an_append_needs_to_know_how_long_the_log_is(engine: Any) {
    assert_eq!(conflict(engine.append_if(records("a", 1, &["x"])).await), (1, 0));
    assert_eq!(engine.append_if(records("a", 0, &["one", "two"])).await.unwrap(), Seq(2));
    for expected in [0, 1, 3, u64::MAX] {
        assert_eq!(conflict(engine.append_if(records("a", expected, &["x"])).await), (expected, 2));
    }
    assert_eq!(engine.append_if(records("a", 2, &["three"])).await.unwrap(), Seq(3));
    // Logs do not know each other.
    assert_eq!(engine.append_if(records("b", 0, &["one"])).await.unwrap(), Seq(1));
    assert_eq!(texts(&engine, "a", 0, PLENTY).await, numbered(&[(1, "one"), (2, "two"), (3, "three")]));
    assert_eq!(texts(&engine, "b", 0, PLENTY).await, numbered(&[(1, "one")]));
}

pub(crate) async fn records_are_read_in_order_from_any_place(engine: Any) {
    assert_eq!(texts(&engine, "nothing", 0, PLENTY).await, numbered(&[]));
    let odd = ["", "\u{0}zero", "ünï\ncode", "{\"a\": 1.0}"];
    engine.append_if(records("a", 0, &odd)).await.unwrap();
    assert_eq!(
        texts(&engine, "a", 0, PLENTY).await,
        numbered(&[(1, odd[0]), (2, odd[1]), (3, odd[2]), (4, odd[3])])
    );
    assert_eq!(texts(&engine, "a", 3, PLENTY).await, numbered(&[(4, odd[3])]));
    assert_eq!(texts(&engine, "a", 4, PLENTY).await, numbered(&[]));
    assert_eq!(texts(&engine, "a", u64::MAX, PLENTY).await, numbered(&[]));
}

pub(crate) async fn of_many_who_append_at_once_exactly_one_wins(engine: Any) {
    for round in 0..20 {
        let mut rivals = tokio::task::JoinSet::new();
        for rival in 0..16 {
            let engine = Arc::clone(&engine);
            rivals.spawn(async move {
                engine.append_if(records("a", round, &[&format!("{round} by {rival}")])).await
            });
        }
        let outcomes = rivals.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(won.into_iter().map(|seq| seq.unwrap().0).collect::<Vec<_>>(), [round + 1]);
        for outcome in lost {
            assert_eq!(conflict(outcome), (round, round + 1));
        }
    }
    assert_eq!(texts(&engine, "a", 0, PLENTY).await.len(), 20);
}

pub(crate) async fn a_read_takes_as_much_as_fits_and_at_least_one(engine: Any) {
    engine.append_if(records("a", 0, &["1234", "5678", "90"])).await.unwrap();
    let count = async |records, bytes| texts(&engine, "a", 0, ReadLimit { records, bytes }).await.len();
    assert_eq!(count(3, 1000).await, 3);
    assert_eq!(count(2, 1000).await, 2);
    assert_eq!(count(1000, 10).await, 3);
    assert_eq!(count(1000, 9).await, 2);
    assert_eq!(count(1000, 8).await, 2);
    assert_eq!(count(1000, 7).await, 1);
    // Whoever asks for too little still gets on.
    assert_eq!(count(1000, 0).await, 1);
    assert_eq!(count(0, 1000).await, 1);
}

pub(crate) async fn an_append_without_records_changes_the_head_under_the_same_condition(engine: Any) {
    assert_eq!(engine.head(&log("a")).await.unwrap(), None);
    engine.append_if(records("a", 0, &["one"])).await.unwrap();
    assert_eq!(engine.head(&log("a")).await.unwrap(), None);
    let seen = async || {
        let head = engine.head(&log("a")).await.unwrap().unwrap();
        (head.seq.0, head.label, head.body)
    };
    assert_eq!(engine.append_if(headed("a", 1, "new", "{}")).await.unwrap(), Seq(1));
    assert_eq!(seen().await, (1, "new".to_owned(), "{}".to_owned()));
    assert_eq!(conflict(engine.append_if(headed("a", 0, "wrong", "")).await), (0, 1));
    assert_eq!(seen().await, (1, "new".to_owned(), "{}".to_owned()));
    // A head stays as it is, and knows how long its log is.
    engine.append_if(records("a", 1, &["two"])).await.unwrap();
    assert_eq!(seen().await, (2, "new".to_owned(), "{}".to_owned()));
    // A log can have a head before it has records.
    assert_eq!(engine.append_if(headed("b", 0, "early", "")).await.unwrap(), Seq(0));
    assert_eq!(engine.append_if(records("b", 0, &["one"])).await.unwrap(), Seq(1));
    assert_eq!(engine.head(&log("b")).await.unwrap().unwrap().label, "early");
}

async fn names(engine: &Any, query: HeadQuery) -> Vec<String> {
    engine.heads(query).await.unwrap().into_iter().map(|head| head.log.0).collect()
}

pub(crate) async fn heads_come_newest_first_page_by_page(engine: Any) {
    for name in ["a", "b", "c", "d", "e"] {
        engine.append_if(headed(name, 0, "x", "first")).await.unwrap();
    }
    // What happens to a log later does not change its place, and a log without a head has none.
    engine.append_if(headed("a", 0, "y", "later")).await.unwrap();
    engine.append_if(records("headless", 0, &["one"])).await.unwrap();
    let mut query = HeadQuery { labels: Vec::new(), before: None, limit: 2 };
    let mut pages = Vec::new();
    loop {
        let page = engine.heads(query.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        query.before = Some(last.begun);
        pages.push(page.iter().map(|head: &Head| head.log.0.clone()).collect::<String>());
    }
    assert_eq!(pages, ["ed", "cb", "a"]);
    assert_eq!(names(&engine, HeadQuery { labels: vec![], before: None, limit: 0 }).await, [""; 0]);
    assert_eq!(names(&engine, HeadQuery { labels: vec![], before: None, limit: usize::MAX }).await.len(), 5);
}

pub(crate) async fn heads_can_be_narrowed_to_labels_and_are_counted(engine: Any) {
    assert_eq!(engine.labels().await.unwrap(), []);
    for (name, label) in [("a", "done"), ("b", "queued"), ("c", "done"), ("d", "failed"), ("e", "done")] {
        engine.append_if(headed(name, 0, label, "")).await.unwrap();
    }
    let narrow = async |labels: &[&str], limit| {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        names(&engine, HeadQuery { labels, before: None, limit }).await.concat()
    };
    assert_eq!(narrow(&["done"], 10).await, "eca");
    assert_eq!(narrow(&["done", "failed"], 3).await, "edc");
    assert_eq!(narrow(&["failed", "failed"], 10).await, "d");
    assert_eq!(narrow(&["unheard"], 10).await, "");
    let begun = engine.head(&log("d")).await.unwrap().unwrap().begun;
    let labels = vec!["done".to_owned(), "queued".to_owned()];
    let query = HeadQuery { labels, before: Some(begun), limit: 2 };
    assert_eq!(names(&engine, query).await.concat(), "cb");
    engine.append_if(headed("b", 0, "done", "")).await.unwrap();
    let mut labels = engine.labels().await.unwrap();
    labels.sort();
    assert_eq!(labels, [("done".to_owned(), 4), ("failed".to_owned(), 1)]);
}

pub(crate) async fn a_record_at_the_limit_is_kept_and_one_past_it_is_refused(engine: Any) {
    let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
    engine.append_if(records("a", 0, &[&longest])).await.unwrap();
    engine.append_if(headed("a", 1, "l", &longest)).await.unwrap();
    for wrong in [records("a", 1, &["small", &longer]), headed("a", 1, "m", &longer)] {
        match engine.append_if(wrong).await {
            Err(AppendError::Engine(EngineError::Failed { what, why })) => {
                assert!(what.contains(&longer.len().to_string()), "{what}: {why}");
                assert!(why.contains(&LONGEST.to_string()), "{what}: {why}");
            }
            other => panic!("{other:?}"),
        }
    }
    let head = engine.head(&log("a")).await.unwrap().unwrap();
    assert_eq!((head.seq, head.label.as_str(), head.body.len()), (Seq(1), "l", LONGEST));
}

pub(crate) async fn blobs_are_named_by_their_hash_and_belong_to_their_log(engine: Any) {
    let bytes = vec![0, 255, 1, 2];
    let digest = Digest::of(&bytes);
    assert_eq!(engine.get_blob(&log("a"), &digest).await.unwrap(), None);
    assert_eq!(engine.put_blob(&log("a"), bytes.clone()).await.unwrap(), digest);
    assert_eq!(engine.put_blob(&log("a"), bytes.clone()).await.unwrap(), digest);
    assert_eq!(engine.get_blob(&log("a"), &digest).await.unwrap(), Some(bytes.clone()));
    assert_eq!(engine.get_blob(&log("b"), &digest).await.unwrap(), None);
    engine.put_blob(&log("b"), bytes.clone()).await.unwrap();
    engine.forget(&log("a")).await.unwrap();
    assert_eq!(engine.get_blob(&log("a"), &digest).await.unwrap(), None);
    assert_eq!(engine.get_blob(&log("b"), &digest).await.unwrap(), Some(bytes));
    let nothing = engine.put_blob(&log("b"), Vec::new()).await.unwrap();
    assert_eq!(engine.get_blob(&log("b"), &nothing).await.unwrap(), Some(Vec::new()));
}

pub(crate) async fn a_forgotten_log_leaves_nothing_and_can_be_begun_again(engine: Any) {
    let whole = Append {
        head: Some(NewHead { label: "done".to_owned(), body: "{}".to_owned() }),
        ..records("a", 0, &["one", "two"])
    };
    engine.append_if(whole).await.unwrap();
    engine.append_if(headed("b", 0, "other", "")).await.unwrap();
    let begun = engine.head(&log("a")).await.unwrap().unwrap().begun;
    engine.forget(&log("a")).await.unwrap();
    engine.forget(&log("never was")).await.unwrap();
    assert_eq!(texts(&engine, "a", 0, PLENTY).await, numbered(&[]));
    assert_eq!(engine.head(&log("a")).await.unwrap(), None);
    assert_eq!(engine.labels().await.unwrap(), [("other".to_owned(), 1)]);
    assert_eq!(conflict(engine.append_if(records("a", 2, &["three"])).await), (2, 0));
    // Begun again, it is the youngest.
    engine.append_if(records("a", 0, &["anew"])).await.unwrap();
    engine.append_if(headed("a", 1, "again", "")).await.unwrap();
    assert_eq!(texts(&engine, "a", 0, PLENTY).await, numbered(&[(1, "anew")]));
    let again = engine.head(&log("a")).await.unwrap().unwrap().begun;
    assert!(again > begun && again > engine.head(&log("b")).await.unwrap().unwrap().begun);
}

pub(crate) async fn watchers_hear_what_was_appended_and_forgotten(engine: Any) {
    engine.append_if(records("before", 0, &["x"])).await.unwrap();
    let mut watch = engine.watch();
    let mut other = engine.watch();
    engine.append_if(records("a", 0, &["one", "two"])).await.unwrap();
    conflict(engine.append_if(records("a", 0, &["lost"])).await);
    engine.append_if(headed("a", 2, "x", "")).await.unwrap();
    engine.append_if(queued("a", 2, "q", "k", Millis::now())).await.unwrap();
    engine.forget(&log("a")).await.unwrap();
    engine.append_if(records("b", 0, &["one"])).await.unwrap();
    let change = |name: &str, seq| Changed { log: LogId(name.to_owned()), seq: Seq(seq) };
    for expected in [change("a", 2), change("a", 2), change("a", 2), change("a", 0), change("b", 1)] {
        assert_eq!(watch.recv().await.unwrap(), expected);
        assert_eq!(other.recv().await.unwrap(), expected);
    }
    // What is heard is there to be read.
    let reader = Arc::clone(&engine);
    let hearing = tokio::spawn(async move {
        for seq in 1..=50 {
            assert_eq!(watch.recv().await.unwrap(), change("c", seq));
            assert!(texts(&reader, "c", seq - 1, PLENTY).await[0].0 == seq);
        }
    });
    for seq in 0..50 {
        engine.append_if(records("c", seq, &["x"])).await.unwrap();
    }
    hearing.await.unwrap();
}

pub(crate) async fn a_slow_watcher_is_told_that_it_missed_something(engine: Any) {
    // More than any engine should keep for somebody who does not listen.
    const MANY: u64 = 3000;
    let mut watch = engine.watch();
    let mut appends = tokio::task::JoinSet::new();
    for number in 0..MANY {
        let engine = Arc::clone(&engine);
        appends
            .spawn(async move { engine.append_if(records(&format!("{number}"), 0, &["x"])).await.unwrap() });
    }
    appends.join_all().await;
    let missed = match watch.recv().await {
        Err(RecvError::Lagged(missed)) => missed,
        other => panic!("{other:?}"),
    };
    let mut heard = 0;
    while watch.try_recv().is_ok() {
        heard += 1;
    }
    assert_eq!(missed + heard, MANY);
    engine.append_if(records("last", 0, &["x"])).await.unwrap();
    assert_eq!(watch.recv().await.unwrap(), Changed { log: log("last"), seq: Seq(1) });
}
