//! The engine beside a model of it that is too simple to be wrong: whatever is done to both, both say the same.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_policy::Digest;
use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;

use super::super::Sqlite;
use crate::engine::{
    Append, AppendError, Begun, Claim, Claimed, Engine, Head, HeadQuery, LogId, Millis, NewHead, QueueName,
    ReadLimit, Seq, Work,
};

/// A lease that no test outlives.
const LONG: Duration = Duration::from_secs(36_000);

/// Moments from here on do not come during a test; the small ones have passed.
const NEVER: u64 = 1 << 50;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_the_engine_and_a_plain_model_of_it_agree(
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut both = Both::new();
            for op in ops {
                both.perform(op).await;
                both.compare().await;
            }
        });
    }
}

#[derive(Clone, Debug)]
enum Op {
    Append { log: u8, off: u64, records: u64, label: Option<u8>, work: Vec<(u8, u8, u64)> },
    Claim { queue: u8 },
    Ack(Index),
    GiveBack(Index),
    PutBlob { log: u8, byte: u8 },
    Forget { log: u8 },
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let due = prop_oneof![3 => 1..5u64, 1 => NEVER..NEVER + 5];
    let work = prop::collection::vec((0..2u8, 0..4u8, due), 0..3);
    // Mostly the caller knows how long the log is.
    let off = prop_oneof![6 => Just(0u64), 1 => 1..3u64];
    let append = (0..3u8, off, 0..3u64, prop::option::of(0..3u8), work)
        .prop_map(|(log, off, records, label, work)| Op::Append { log, off, records, label, work });
    prop_oneof![
        8 => append,
        5 => (0..2u8).prop_map(|queue| Op::Claim { queue }),
        3 => any::<Index>().prop_map(Op::Ack),
        2 => any::<Index>().prop_map(Op::GiveBack),
        1 => (0..3u8, 0..3u8).prop_map(|(log, byte)| Op::PutBlob { log, byte }),
        1 => (0..3u8).prop_map(|log| Op::Forget { log }),
        1 => Just(Op::Reopen),
    ]
}

#[derive(Default)]
struct Model {
    begun: u64,
    logs: BTreeMap<LogId, Log>,
    blobs: BTreeMap<(LogId, u8), Digest>,
    /// In the order in which they were queued.
    work: Vec<Row>,
}

#[derive(Default)]
struct Log {
    begun: u64,
    records: Vec<String>,
    head: Option<NewHead>,
}

struct Row {
    queue: QueueName,
    key: String,
    log: LogId,
    due: u64,
    /// Whose it is, and what was queued since.
    token: Option<u64>,
    again: Option<u64>,
}

impl Model {
    fn length(&self, log: &LogId) -> u64 {
        self.logs.get(log).map_or(0, |log| log.records.len() as u64)
    }

    fn append(&mut self, append: Append) -> Result<u64, u64> {
        let Append { log, expected, records, head, work } = append;
        let actual = self.length(&log);
        if actual != expected.0 {
            return Err(actual);
        }
        if !records.is_empty() || head.is_some() {
            if !self.logs.contains_key(&log) {
                self.begun += 1;
            }
            let begun = self.begun;
            let known = self.logs.entry(log.clone()).or_insert(Log { begun, ..Log::default() });
            known.records.extend(records);
            known.head = head.or(known.head.take());
        }
        for work in work {
            self.put(&log, work);
        }
        Ok(self.length(&log))
    }

    fn put(&mut self, log: &LogId, Work { queue, key, due: Millis(due) }: Work) {
        let known = self.work.iter_mut().find(|row| row.queue == queue && row.key == key);
        let Some(row) = known else {
            self.work.push(Row { queue, key, log: log.clone(), due, token: None, again: None });
            return;
        };
        row.log = log.clone();
        match row.token {
            Some(_) => row.again = Some(row.again.unwrap_or(due).min(due)),
            None => row.due = row.due.min(due),
        }
    }

    /// What is to be claimed, and has not been yet.
    fn next(&mut self, queue: &QueueName) -> Option<&mut Row> {
        let free = |row: &&mut Row| row.queue == *queue && row.token.is_none() && row.due < NEVER;
        self.work.iter_mut().filter(free).min_by_key(|row| row.due)
    }

    fn held(&mut self, claim: &Claim) -> Option<usize> {
        let mine = |row: &Row| row.queue == claim.queue && row.key == claim.key;
        self.work.iter().position(|row| mine(row) && row.token == Some(claim.token))
    }

    fn heads(&self) -> Vec<Head> {
        let head = |(name, log): (&LogId, &Log)| {
            let NewHead { label, body } = log.head.clone()?;
            let seq = Seq(log.records.len() as u64);
            Some(Head { log: name.clone(), seq, begun: Begun(log.begun), label, body })
        };
        let mut heads: Vec<_> = self.logs.iter().filter_map(head).collect();
        heads.sort_by_key(|head| std::cmp::Reverse(head.begun));
        heads
    }
}

/// The engine, the model, and every claim that was ever given.
struct Both {
    // Before the folder that it is in.
    engine: Option<Sqlite>,
    folder: TempDir,
    model: Model,
    given: Vec<Claim>,
}

fn log(number: u8) -> LogId {
    LogId(format!("log {number}"))
}

fn queue(number: u8) -> QueueName {
    QueueName(format!("queue {number}"))
}

impl Both {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let engine = Some(Sqlite::open(&folder.path().join("store.db")).unwrap());
        Self { engine, folder, model: Model::default(), given: Vec::new() }
    }

    async fn perform(&mut self, op: Op) {
        let engine = self.engine.as_ref().unwrap();
        let model = &mut self.model;
        match op {
            Op::Append { log: number, off, records, label, work } => {
                let log = log(number);
                let length = model.length(&log);
                let put = |(queue_number, key, due): (u8, u8, u64)| Work {
                    queue: queue(queue_number),
                    key: key.to_string(),
                    due: Millis(due),
                };
                let append = Append {
                    expected: Seq(length + off),
                    records: (1..=records).map(|number| format!("{log} {}", length + number)).collect(),
                    head: label.map(|label| NewHead { label: label.to_string(), body: length.to_string() }),
                    work: work.into_iter().map(put).collect(),
                    log,
                };
                let said = match engine.append_if(append.clone()).await {
                    Ok(seq) => Ok(seq.0),
                    Err(AppendError::Conflict { actual, .. }) => Err(actual.0),
                    Err(AppendError::Engine(error)) => panic!("{error}"),
                };
                assert_eq!(said, model.append(append));
            }
            Op::Claim { queue: number } => {
                let queue = queue(number);
                let said = engine.claim(&queue, LONG).await.unwrap();
                match (said, model.next(&queue)) {
                    (Claimed::Work(claim), Some(row)) => {
                        assert_eq!((&claim.queue, &claim.key), (&row.queue, &row.key));
                        row.token = Some(claim.token);
                        row.again = row.again.filter(|again| *again >= NEVER);
                        self.given.push(claim);
                    }
                    (Claimed::NotBefore(Millis(moment)), None) => {
                        let rows = || model.work.iter().filter(|row| row.queue == queue);
                        match rows().any(|row| row.token.is_some()) {
                            // The end of a lease, and so nobody knows exactly when.
                            true => assert!(moment < NEVER),
                            false => assert_eq!(Some(moment), rows().map(|row| row.due).min()),
                        }
                    }
                    (Claimed::Nothing, None) => assert!(model.work.iter().all(|row| row.queue != queue)),
                    (said, _) => panic!("{said:?}"),
                }
            }
            Op::Ack(_) | Op::GiveBack(_) if self.given.is_empty() => {}
            Op::Ack(which) => {
                let claim = which.get(&self.given);
                let held = model.held(claim);
                assert_eq!(engine.ack(claim).await.is_ok(), held.is_some());
                let Some(at) = held else { return };
                match model.work[at].again.take() {
                    None => drop(model.work.remove(at)),
                    Some(again) => (model.work[at].due, model.work[at].token) = (again, None),
                }
            }
            Op::GiveBack(which) => {
                let claim = which.get(&self.given);
                let held = model.held(claim);
                assert_eq!(engine.extend(claim, Duration::ZERO).await.is_ok(), held.is_some());
                held.into_iter().for_each(|at| model.work[at].token = None);
            }
            Op::PutBlob { log: number, byte } => {
                let digest = engine.put_blob(&log(number), vec![byte; 10]).await.unwrap();
                model.blobs.insert((log(number), byte), digest);
            }
            Op::Forget { log: number } => {
                let name = log(number);
                engine.forget(&name).await.unwrap();
                model.logs.remove(&name);
                model.blobs.retain(|(log, _), _| *log != name);
                model.work.retain(|row| row.log != name);
            }
            Op::Reopen => {
                self.engine = None;
                self.engine = Some(Sqlite::open(&self.folder.path().join("store.db")).unwrap());
                model.work.iter_mut().for_each(|row| row.token = None);
            }
        }
    }

    async fn compare(&self) {
        let engine = self.engine.as_ref().unwrap();
        let all = HeadQuery { labels: Vec::new(), before: None, limit: 100 };
        let heads = self.model.heads();
        assert_eq!(engine.heads(all).await.unwrap(), heads);
        let some = HeadQuery { labels: vec!["0".to_owned(), "2".to_owned()], before: None, limit: 2 };
        let expected: Vec<_> = heads.iter().filter(|head| head.label != "1").take(2).cloned().collect();
        assert_eq!(engine.heads(some).await.unwrap(), expected);
        let count = |label: &str| heads.iter().filter(|head| head.label == label).count() as u64;
        let counted = ["0", "1", "2"].map(|label| (label.to_owned(), count(label)));
        let counted: Vec<_> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(engine.labels().await.unwrap(), counted);
        for number in 0..3 {
            let log = log(number);
            let limit = ReadLimit { records: 1000, bytes: 1 << 20 };
            let stored = engine.read(&log, Seq(0), limit).await.unwrap();
            let numbers: Vec<_> = stored.iter().map(|stored| stored.seq.0).collect();
            assert_eq!(numbers, (1..=self.model.length(&log)).collect::<Vec<_>>());
            let records: Vec<_> = stored.into_iter().map(|stored| stored.record).collect();
            assert_eq!(Some(records).filter(|some| !some.is_empty()), {
                self.model.logs.get(&log).map(|log| log.records.clone()).filter(|some| !some.is_empty())
            });
            for byte in 0..3 {
                let bytes = engine.get_blob(&log, &Digest::of(&[byte; 10])).await.unwrap();
                let kept = self.model.blobs.contains_key(&(log.clone(), byte));
                assert_eq!(bytes, kept.then(|| vec![byte; 10]));
            }
        }
    }
}
