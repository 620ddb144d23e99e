//! The streams that are live: their names, how they are stopped and steered, and who tells their end, exactly once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::Steer;

/// How many streams may be live at once.
pub(super) const MAX_LIVE: usize = 1024;

/// How many steering messages may wait for a stream's next boundary.
const MAX_STEERS: usize = 64;

/// All live streams.
#[derive(Debug)]
pub(super) struct Streams {
    table: Mutex<Table>,
    /// How many there are, for those who wait until there is none.
    count: watch::Sender<usize>,
}

#[derive(Debug)]
struct Table {
    live: HashMap<String, Arc<Live>>,
    /// The transcripts that turns write to. Two turns at once would mix their words.
    records: HashSet<String>,
    closed: bool,
}

/// A live stream.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: String,
    /// Ends it: the stream tells its own end.
    pub(super) cancel: CancellationToken,
    /// A turn's trace and transcript.
    pub(super) turn: Option<TurnNames>,
    steering: Option<mpsc::Sender<Steer>>,
    told: AtomicBool,
    /// Whether its transcript is no longer its own.
    left: AtomicBool,
}

/// What the terminal of a turn names.
#[derive(Clone, Debug)]
pub(super) struct TurnNames {
    pub(super) trace_id: String,
    pub(super) record_id: String,
}

/// Why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Taken,
    RecordTaken,
    TooMany,
    ShuttingDown,
}

/// What became of a steering message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steered {
    Heard,
    NotActive,
    TooMany,
}

/// A place among the live streams, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    streams: Arc<Streams>,
    pub(super) live: Arc<Live>,
}

impl Streams {
    pub(super) fn new() -> Arc<Self> {
        let table = Table { live: HashMap::new(), records: HashSet::new(), closed: false };
        Arc::new(Self { table: Mutex::new(table), count: watch::Sender::new(0) })
    }

    /// Opens a plain stream.
    pub(super) fn open(self: &Arc<Self>, id: String, cancel: CancellationToken) -> Result<Place, Refused> {
        let told = AtomicBool::new(false);
        let left = AtomicBool::new(true);
        self.enter(Live { id, cancel, turn: None, steering: None, told, left })
    }

    /// Opens a turn, which can be steered.
    pub(super) fn open_turn(
        self: &Arc<Self>,
        id: String,
        cancel: CancellationToken,
        names: TurnNames,
    ) -> Result<(Place, mpsc::Receiver<Steer>), Refused> {
        let (steering, heard) = mpsc::channel(MAX_STEERS);
        let told = AtomicBool::new(false);
        let left = AtomicBool::new(false);
        let live = Live { id, cancel, turn: Some(names), steering: Some(steering), told, left };
        Ok((self.enter(live)?, heard))
    }

    fn enter(self: &Arc<Self>, live: Live) -> Result<Place, Refused> {
        let mut table = self.table();
        if table.closed {
            return Err(Refused::ShuttingDown);
        }
        if table.live.contains_key(&live.id) {
            return Err(Refused::Taken);
        }
        if table.live.len() >= MAX_LIVE {
            return Err(Refused::TooMany);
        }
        if let Some(names) = &live.turn
            && !table.records.insert(names.record_id.clone())
        {
            return Err(Refused::RecordTaken);
        }
        let live = Arc::new(live);
        table.live.insert(live.id.clone(), Arc::clone(&live));
        self.count.send_replace(table.live.len());
        drop(table);
        Ok(Place { streams: Arc::clone(self), live })
    }

    /// Whether a stream of this name is live.
    pub(super) fn is_live(&self, id: &str) -> bool {
        self.table().live.contains_key(id)
    }

    /// Whether a turn writes to this transcript.
    pub(super) fn is_written(&self, record: &str) -> bool {
        self.table().records.contains(record)
    }

    /// Whether no more streams are opened.
    pub(super) fn is_closed(&self) -> bool {
        self.table().closed
    }

    /// Stops a stream, if it is live.
    pub(super) fn cancel(&self, id: &str) {
        let live = self.table().live.get(id).cloned();
        if let Some(live) = live {
            live.cancel.cancel();
        }
    }

    /// Says something to a stream.
    pub(super) fn steer(&self, id: &str, steer: Steer) -> Steered {
        let live = self.table().live.get(id).cloned();
        let Some(steering) = live.as_ref().and_then(|live| live.steering.as_ref()) else {
            return Steered::NotActive;
        };
        match steering.try_send(steer) {
            Ok(()) => Steered::Heard,
            Err(mpsc::error::TrySendError::Full(_)) => Steered::TooMany,
            Err(mpsc::error::TrySendError::Closed(_)) => Steered::NotActive,
        }
    }

    /// No more streams, and those that are live are stopped. Who is still live is returned.
    pub(super) fn close(&self) -> Vec<Arc<Live>> {
        let live = {
            let mut table = self.table();
            table.closed = true;
            table.live.values().cloned().collect::<Vec<_>>()
        };
        for live in &live {
            live.cancel.cancel();
        }
        live
    }

    /// Waits until no stream is live.
    pub(super) async fn none_live(&self) {
        let mut count = self.count.subscribe();
        // The sender is in `self`, so this ends only when there is none.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// Takes the right to tell the stream's end. Only the first one gets it.
    pub(super) fn may_tell_end(&self) -> bool {
        !self.told.swap(true, Ordering::AcqRel)
    }
}

impl Place {
    /// Gives the transcript free: the next turn may begin as soon as the end of this one is told.
    pub(super) fn leave_record(&self) {
        self.streams.table().leave_record(&self.live);
    }
}

impl Table {
    fn leave_record(&mut self, live: &Live) {
        if let Some(names) = &live.turn
            && !live.left.swap(true, Ordering::AcqRel)
        {
            self.records.remove(&names.record_id);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        table.leave_record(&self.live);
        table.live.remove(&self.live.id);
        self.streams.count.send_replace(table.live.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(streams: &Arc<Streams>, id: &str) -> Result<Place, Refused> {
        streams.open(id.to_owned(), CancellationToken::new())
    }

    #[test]
    fn a_name_is_taken_while_its_stream_lives() {
        let streams = Streams::new();
        let first = open(&streams, "a").unwrap();
        assert_eq!(open(&streams, "a").unwrap_err(), Refused::Taken);
        drop(first);
        assert!(open(&streams, "a").is_ok());
    }

    #[test]
    fn a_transcript_has_one_turn_at_a_time_and_is_free_before_the_end_is_told() {
        let streams = Streams::new();
        let turn = |id: &str| {
            let names = TurnNames { trace_id: "t".into(), record_id: "r".into() };
            streams.open_turn(id.to_owned(), CancellationToken::new(), names)
        };
        let (first, _heard) = turn("a").unwrap();
        assert_eq!(turn("b").unwrap_err(), Refused::RecordTaken);
        first.leave_record();
        let (second, _heard) = turn("b").unwrap();
        // The first one is gone for good later, and takes nothing from the second one with it.
        drop(first);
        assert!(streams.is_written("r"));
        drop(second);
        assert!(!streams.is_written("r"));
    }

    #[test]
    fn there_are_at_most_so_many_streams() {
        let streams = Streams::new();
        let places: Vec<_> = (0..MAX_LIVE).map(|id| open(&streams, &id.to_string()).unwrap()).collect();
        assert_eq!(open(&streams, "one more").unwrap_err(), Refused::TooMany);
        drop(places);
        assert!(open(&streams, "one more").is_ok());
    }

    #[test]
    fn the_end_of_a_stream_is_told_once() {
        let streams = Streams::new();
        let place = open(&streams, "a").unwrap();
        let others = streams.close();
        assert!(place.live.cancel.is_cancelled());
        assert_eq!(open(&streams, "b").unwrap_err(), Refused::ShuttingDown);
        assert!(others[0].may_tell_end());
        assert!(!place.live.may_tell_end());
    }

    #[tokio::test]
    async fn steering_reaches_turns_only_and_not_without_bound() {
        let streams = Streams::new();
        let _plain = open(&streams, "plain").unwrap();
        let names = TurnNames { trace_id: "t".into(), record_id: "r".into() };
        let (_turn, mut heard) = streams.open_turn("turn".into(), CancellationToken::new(), names).unwrap();
        assert_eq!(streams.steer("plain", Steer::Compact), Steered::NotActive);
        assert_eq!(streams.steer("none", Steer::Compact), Steered::NotActive);
        for _ in 0..MAX_STEERS {
            assert_eq!(streams.steer("turn", Steer::Compact), Steered::Heard);
        }
        assert_eq!(streams.steer("turn", Steer::Compact), Steered::TooMany);
        assert_eq!(heard.recv().await, Some(Steer::Compact));
        drop(heard);
        assert_eq!(streams.steer("turn", Steer::Compact), Steered::NotActive);
    }
}
