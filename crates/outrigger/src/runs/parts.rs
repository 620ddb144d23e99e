//! Parts of logs that somebody has just read, for the others who follow the same run: a log only grows, so what comes after a
//! number never changes, and a hundred readers cost little more than one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use super::id::RunId;
use super::service::{Numbered, RunsError};
use crate::engine::{Engine, EngineError, ReadLimit, Seq};

/// How much is read at once. Who does not read on holds about as much.
const LIMIT: ReadLimit = ReadLimit { records: 512, bytes: 48 << 10 };

/// How much is kept as it is stored, and in how many pieces: for a moment, not for later. As it is shown it is kept as well.
const KEPT_BYTES: usize = 4 << 20;
const KEPT: usize = 64;

/// Some records of a log, at least one.
#[derive(Debug)]
pub(crate) struct Part {
    records: Vec<Numbered>,
    bytes: usize,
    shown: OnceLock<Bytes>,
}

/// The parts that were read last.
#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    run: RunId,
    after: Seq,
    part: Shared,
}

/// Filled by the first one who wants it; the others wait.
type Shared = Arc<OnceCell<Arc<Part>>>;

impl Part {
    /// None if there is nothing in it.
    fn of(records: Vec<Numbered>) -> Option<Self> {
        let bytes = records.iter().map(|record| record.record.len()).sum();
        (!records.is_empty()).then(|| Self { records, bytes, shown: OnceLock::new() })
    }

    pub(crate) fn records(&self) -> &[Numbered] {
        &self.records
    }

    /// The records as their readers are shown them. There is one way, and what it gives is made once.
    pub(crate) fn shown_by(&self, show: fn(&[Numbered]) -> String) -> Bytes {
        self.shown.get_or_init(|| Bytes::from(show(&self.records))).clone()
    }
}

impl Parts {
    /// Some of the records after a number; none if there are none yet.
    pub(super) async fn read(
        &self,
        engine: &Arc<dyn Engine>,
        run: &RunId,
        after: Seq,
    ) -> Result<Option<Arc<Part>>, RunsError> {
        let shared = self.shared(run, after);
        if let Some(part) = shared.get() {
            return Ok(Some(Arc::clone(part)));
        }
        let (engine, log) = (Arc::clone(engine), run.log());
        let read = async move {
            let stored = engine.read(&log, after, LIMIT).await.map_err(|error| Some(error.into()))?;
            // Nothing is not kept: it does not stay so.
            Part::of(stored.into_iter().map(Numbered::from).collect()).map(Arc::new).ok_or(None)
        };
        // A task of its own goes on when the reader who is first does not, and the others wait for it.
        let reading = tokio::spawn(async move { shared.get_or_try_init(|| read).await.cloned() });
        match reading.await.map_err(|_| EngineError::Closed)? {
            Ok(part) => Ok(Some(part)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Another run may have the name of one that was forgotten.
    pub(super) fn forget(&self, run: &RunId) {
        self.kept().retain(|kept| kept.run != *run);
    }

    /// The place of a part, which makes room for itself.
    fn shared(&self, run: &RunId, after: Seq) -> Shared {
        let mut kept = self.kept();
        let known = kept.iter().rev().find(|kept| kept.after == after && kept.run == *run);
        if let Some(known) = known {
            return Arc::clone(&known.part);
        }
        let bytes = |kept: &Kept| kept.part.get().map_or(0, |part| part.bytes);
        let mut held: usize = kept.iter().map(bytes).sum();
        while (held > KEPT_BYTES || kept.len() >= KEPT)
            && let Some(oldest) = kept.pop_front()
        {
            // One that was being read a moment ago was not counted.
            held = held.saturating_sub(bytes(&oldest));
        }
        let part = Shared::default();
        kept.push_back(Kept { run: run.clone(), after, part: Arc::clone(&part) });
        part
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sqlite::Sqlite;
    use crate::engine::{Append, NewHead};

    struct Store {
        engine: Arc<dyn Engine>,
        parts: Parts,
        _folder: tempfile::TempDir,
    }

    impl Store {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let engine = Sqlite::open(&folder.path().join("runs.sqlite")).unwrap();
            Self { engine: Arc::new(engine), parts: Parts::default(), _folder: folder }
        }

        async fn append(&self, run: &RunId, expected: u64, records: Vec<String>) {
            let head = Some(NewHead { label: "l".to_owned(), body: "{}".to_owned() });
            let append = Append { log: run.log(), expected: Seq(expected), records, head, work: Vec::new() };
            self.engine.append_if(append).await.unwrap();
        }

        async fn read(&self, run: &RunId, after: u64) -> Option<Arc<Part>> {
            self.parts.read(&self.engine, run, Seq(after)).await.unwrap()
        }
    }

    fn run() -> RunId {
        RunId::parse("followed").unwrap()
    }

    #[tokio::test]
    async fn readers_at_the_same_place_share_what_is_read_and_how_it_is_shown() {
        let (store, run) = (Store::new(), run());
        assert!(store.read(&run, 0).await.is_none());
        store.append(&run, 0, vec!["one".to_owned(), "two".to_owned()]).await;
        let (first, second) = tokio::join!(store.read(&run, 0), store.read(&run, 0));
        let (first, second) = (first.expect("nothing is not kept"), second.unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        let text = first.shown_by(|records| records.iter().map(|record| record.record.as_str()).collect());
        assert_eq!(text, "onetwo");
        assert_eq!(text.as_ptr(), second.shown_by(|_| panic!("it is made once")).as_ptr());
        // What comes later is in the part after it.
        store.append(&run, 2, vec!["three".to_owned()]).await;
        assert_eq!(store.read(&run, 0).await.unwrap().records().len(), 2);
        assert_eq!(store.read(&run, 2).await.unwrap().records()[0].record, "three");
    }

    #[tokio::test]
    async fn a_run_does_not_get_the_parts_of_one_that_had_its_name() {
        let (store, run) = (Store::new(), run());
        store.append(&run, 0, vec!["old".to_owned()]).await;
        store.read(&run, 0).await.unwrap();
        store.engine.forget(&run.log()).await.unwrap();
        store.parts.forget(&run);
        assert!(store.read(&run, 0).await.is_none());
        store.append(&run, 0, vec!["new".to_owned()]).await;
        assert_eq!(store.read(&run, 0).await.unwrap().records()[0].record, "new");
    }

    #[tokio::test]
    async fn what_is_kept_has_bounds() {
        let (store, run) = (Store::new(), run());
        let check = async |count: usize, bytes: usize, expected: usize| {
            let head = store.engine.head(&run.log()).await.unwrap().map_or(0, |head| head.seq.0);
            store.append(&run, head, vec!["x".repeat(bytes); count]).await;
            for after in head..head + count as u64 {
                store.read(&run, after).await.unwrap();
            }
            assert_eq!(store.parts.kept().len(), expected, "{count} times {bytes} bytes");
        };
        check(KEPT * 2, LIMIT.bytes, KEPT).await;
        check(12, KEPT_BYTES / 4, 5).await;
        check(3, KEPT_BYTES * 2, 1).await;
    }
}
