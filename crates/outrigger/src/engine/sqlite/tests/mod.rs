//! What is particular to the engine in a file, and that it keeps every promise of the trait.

mod killed;
mod model;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::fault::Fault;
use super::{Sqlite, logs};
use crate::engine::{
    Append, Claimed, Engine, EngineError, HeadQuery, LogId, Millis, NewHead, QueueName, ReadLimit, Seq, Work,
};

mod promises {
    use super::*;

    crate::engine::conformance::promises!({
        let folder = TempDir::new().unwrap();
        let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(&folder.path().join("store.db")).unwrap());
        (engine, folder)
    });
}

const LONG: Duration = Duration::from_secs(3600);

fn append(log: &str, expected: u64, records: &[&str]) -> Append {
    Append {
        log: LogId(log.to_owned()),
        expected: Seq(expected),
        records: records.iter().map(|&record| record.to_owned()).collect(),
        head: Some(NewHead { label: "l".to_owned(), body: "{}".to_owned() }),
        work: vec![Work { queue: QueueName("q".to_owned()), key: log.to_owned(), due: Millis(1) }],
    }
}

async fn count(engine: &Sqlite, log: &str) -> usize {
    let limit = ReadLimit { records: usize::MAX, bytes: usize::MAX };
    engine.read(&LogId(log.to_owned()), Seq(0), limit).await.unwrap().len()
}

fn refused(outcome: Result<Sqlite, EngineError>) -> String {
    outcome
        .map(|engine| panic!("{engine:?} was opened"))
        .unwrap_or_else(|error: EngineError| error.to_string())
}

fn expect(outcome: Result<Sqlite, EngineError>, path: &Path, words: &str) {
    let said = refused(outcome);
    assert!(said.contains(words) && said.contains(&path.display().to_string()), "{said}");
}

#[tokio::test]
async fn what_was_stored_is_there_after_it_was_closed_and_leases_are_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let engine = Sqlite::open(&path).unwrap();
    engine.append_if(append("a", 0, &["one", "two"])).await.unwrap();
    let digest = engine.put_blob(&LogId("a".to_owned()), vec![1, 2, 3]).await.unwrap();
    let queue = QueueName("q".to_owned());
    let Claimed::Work(held) = engine.claim(&queue, LONG).await.unwrap() else { panic!() };
    drop(engine);
    assert!(!folder.path().join("store.db-wal").exists(), "the journal was left behind");
    let engine = Sqlite::open(&path).unwrap();
    assert_eq!(count(&engine, "a").await, 2);
    assert_eq!(engine.get_blob(&LogId("a".to_owned()), &digest).await.unwrap(), Some(vec![1, 2, 3]));
    assert!(engine.ack(&held).await.is_err());
    let Claimed::Work(again) = engine.claim(&queue, LONG).await.unwrap() else { panic!() };
    assert_eq!(again.key, held.key);
    assert!(again.token > held.token);
}

#[tokio::test]
async fn what_waits_when_the_last_handle_goes_is_still_done() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let engine = Sqlite::open(&path).unwrap();
    for number in 0..50 {
        let mut call = engine.append_if(append(&number.to_string(), 0, &["x"]));
        // Sent, and then nobody waits for the answer.
        let waker = std::task::Waker::noop();
        assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    drop(engine);
    let engine = Sqlite::open(&path).unwrap();
    let all = HeadQuery { labels: Vec::new(), before: None, limit: 1000 };
    assert_eq!(engine.heads(all).await.unwrap().len(), 50);
}

#[test]
fn a_second_process_is_told_who_has_the_store() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let engine = Sqlite::open(&path).unwrap();
    let other = engine.clone();
    let pid = std::process::id();
    expect(Sqlite::open(&path), &path, &format!("process {pid} has it open"));
    drop(engine);
    expect(Sqlite::open(&path), &path, &format!("process {pid} has it open"));
    drop(other);
    Sqlite::open(&path).unwrap();
}

#[test]
fn a_lock_that_names_a_process_that_is_gone_is_nobodys() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(folder.path().join("store.db.lock"), "999999999\n").unwrap();
    drop(Sqlite::open(&path).unwrap());
    std::fs::write(folder.path().join("store.db.lock"), "what?").unwrap();
    drop(Sqlite::open(&path).unwrap());
    let holder = std::fs::read_to_string(folder.path().join("store.db.lock")).unwrap();
    assert_eq!(holder, format!("{}\n", std::process::id()));
}

#[test]
fn a_file_that_cannot_be_a_store_is_refused_with_a_sentence() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("text"), "this is not a database, and it is long enough to be asked".repeat(100))
        .unwrap();
    expect(Sqlite::open(&at("text")), &at("text"), "it is not a SQLite database");
    std::fs::create_dir(at("folder")).unwrap();
    expect(Sqlite::open(&at("folder")), &at("folder"), "the file cannot be made or opened");
    expect(Sqlite::open(&at("no/where")), &at("no/where"), "cannot be locked");
    Connection::open(at("other")).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    expect(Sqlite::open(&at("other")), &at("other"), "the database of another program");
    drop(Sqlite::open(&at("later")).unwrap());
    Connection::open(at("later")).unwrap().pragma_update(None, "user_version", 2).unwrap();
    expect(
        Sqlite::open(&at("later")),
        &at("later"),
        "it has version 2, and this program knows versions up to 1",
    );
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_not_believed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let engine = Sqlite::open(&path).unwrap();
    let long = "x".repeat(100_000);
    engine.append_if(append("a", 0, &[&long, &long])).await.unwrap();
    drop(engine);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let said = match Sqlite::open(&path) {
        Err(error) => error.to_string(),
        Ok(engine) => {
            let limit = ReadLimit { records: 10, bytes: 1 << 20 };
            engine.read(&LogId("a".to_owned()), Seq(0), limit).await.unwrap_err().to_string()
        }
    };
    assert!(said.contains("the file is damaged"), "{said}");
}

/// The same that a full disk does, without one.
#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_keeps_what_did() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let (connection, tokens) = super::schema::open(&path).unwrap();
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update(None, "max_page_count", pages + 60).unwrap();
    let (changes, mut watch) = tokio::sync::broadcast::channel(64);
    let writer = super::writer::Writer::start((connection, tokens), changes).unwrap();
    let put = async |log: &str, record: &str| {
        let append = append(log, 0, &[record]);
        writer.call(0, move |batch| logs::append(batch, &append)).await
    };
    put("a", "fits").await.unwrap().unwrap();
    let error = put("b", &"x".repeat(1 << 20)).await.unwrap_err().to_string();
    assert!(error.contains("the disk is full"), "{error}");
    // It goes on, and nothing of what failed is there.
    put("c", "fits").await.unwrap().unwrap();
    drop(writer);
    let told: Vec<_> = std::iter::from_fn(|| watch.try_recv().ok()).map(|change| change.log.0).collect();
    assert_eq!(told, ["a", "c"]);
    let engine = Sqlite::open(&path).unwrap();
    assert_eq!((count(&engine, "a").await, count(&engine, "b").await, count(&engine, "c").await), (1, 0, 1));
    assert_eq!(engine.claim(&QueueName("q".to_owned()), LONG).await.unwrap(), {
        let queue = QueueName("q".to_owned());
        Claimed::Work(crate::engine::Claim { queue, key: "a".to_owned(), token: (2 << 32) + 1 })
    });
}

#[tokio::test]
async fn forgetting_gives_the_room_back() {
    let folder = TempDir::new().unwrap();
    let engine = Sqlite::open(&folder.path().join("store.db")).unwrap();
    let log = LogId("a".to_owned());
    engine.append_if(append("a", 0, &[&"x".repeat(4 << 20)])).await.unwrap();
    for number in 0..4u8 {
        engine.put_blob(&log, vec![number; 1 << 20]).await.unwrap();
    }
    engine.forget(&log).await.unwrap();
    let path = folder.path().join("store.db");
    // Closing moves the journal into the file, which is then as small as what is in it.
    assert!(engine.size() > 8 << 20);
    drop(engine);
    let engine = Sqlite::open(&path).unwrap();
    assert!(engine.size() < 1 << 20, "{} bytes for nothing", engine.size());
}

#[tokio::test]
async fn what_fails_inside_a_shared_transaction_undoes_only_itself() {
    let folder = TempDir::new().unwrap();
    let engine = Sqlite::open(&folder.path().join("store.db")).unwrap();
    let mut watch = engine.watch();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    // The thread is kept busy until everything else waits, so that all of it is one transaction.
    let hold = engine.inner.writer.call(0, move |_| Ok(wait.recv()));
    let before = engine.append_if(append("before", 0, &["x"]));
    let half = append("half", 0, &["x"]);
    let fails = engine.inner.writer.call(0, move |batch| {
        let _ = logs::append(batch, &half)?;
        Err::<(), _>(Fault::Refused("on purpose".to_owned()))
    });
    let late = engine.append_if(append("before", 0, &["too late"]));
    let after = engine.append_if(append("after", 0, &["x"]));
    let release = async { go.send(()).unwrap() };
    // Polled in this order, and the last lets the thread go.
    let (held, before, fails, late, after, ()) =
        tokio::join!(biased; hold, before, fails, late, after, release);
    assert_eq!((held.unwrap(), before.unwrap(), after.unwrap()), (Ok(()), Seq(1), Seq(1)));
    assert_eq!(fails.unwrap_err().to_string(), "the store could not write: on purpose");
    assert_eq!(late.unwrap_err().to_string(), "the log has 1 records, not 0");
    assert_eq!((count(&engine, "before").await, count(&engine, "half").await), (1, 0));
    let told: Vec<_> = std::iter::from_fn(|| watch.try_recv().ok()).map(|change| change.log.0).collect();
    assert_eq!(told, ["before", "after"]);
}
