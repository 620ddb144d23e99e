//! What happened to a child, for anybody who listens, as fast as they like. A slow listener is told exactly how many events
//! it missed; it never makes the driver wait or grow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::report::Report;
use crate::state::Change;

/// How many events are kept for listeners that are behind.
const KEPT: usize = 128;

/// Something that happened to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// Its phase changed.
    Changed(Change),
    /// One of its processes ended.
    Ended(Arc<Report>),
}

/// What a listener gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The next event.
    Event(ChildEvent),
    /// So many events were overwritten before this listener came to them.
    Missed(u64),
}

/// A listener. It starts with the oldest event that is still kept, so whoever asks right after the start misses nothing.
#[derive(Debug)]
pub struct Events {
    log: Arc<EventLog>,
    next: u64,
    bell: watch::Receiver<()>,
}

impl Events {
    /// The next event, or how many were missed; `None` after the last event of a child that exited for good.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            self.bell.borrow_and_update();
            match self.log.read(&mut self.next) {
                Found::Heard(heard) => return Some(heard),
                Found::Closed => return None,
                // The bell only stops when the log itself is gone, and we hold the log.
                Found::NothingYet => self.bell.changed().await.ok()?,
            }
        }
    }
}

/// The last events of one child.
#[derive(Debug)]
pub(super) struct EventLog {
    ring: Mutex<Ring>,
    bell: watch::Sender<()>,
}

#[derive(Debug)]
struct Ring {
    kept: VecDeque<ChildEvent>,
    /// The number of the first kept event; events are counted from 0.
    first: u64,
    end: End,
    last_report: Option<Arc<Report>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

enum Found {
    Heard(Heard),
    NothingYet,
    Closed,
}

impl EventLog {
    pub(super) fn new() -> Self {
        let ring = Ring { kept: VecDeque::new(), first: 0, end: End::Open, last_report: None };
        Self { ring: Mutex::new(ring), bell: watch::Sender::new(()) }
    }

    pub(super) fn listen(self: &Arc<Self>) -> Events {
        Events { log: Arc::clone(self), next: 0, bell: self.bell.subscribe() }
    }

    /// The report on the last process that ended, however many events ago.
    pub(super) fn last_report(&self) -> Option<Arc<Report>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).last_report.clone()
    }

    pub(super) fn push(&self, event: ChildEvent) {
        self.change(|ring| {
            if let ChildEvent::Ended(report) = &event {
                ring.last_report = Some(Arc::clone(report));
            }
            if ring.kept.len() == KEPT {
                ring.kept.pop_front();
                ring.first += 1;
            }
            ring.kept.push_back(event);
        });
    }

    pub(super) fn close(&self) {
        self.change(|ring| ring.end = End::Closed);
    }

    fn change(&self, change: impl FnOnce(&mut Ring)) {
        change(&mut self.ring.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.send_replace(());
    }

    fn read(&self, next: &mut u64) -> Found {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if *next < ring.first {
            let missed = ring.first - *next;
            *next = ring.first;
            return Found::Heard(Heard::Missed(missed));
        }
        let index = usize::try_from(*next - ring.first).unwrap_or(usize::MAX);
        match (ring.kept.get(index), ring.end) {
            (Some(event), _) => {
                *next += 1;
                Found::Heard(Heard::Event(event.clone()))
            }
            (None, End::Open) => Found::NothingYet,
            (None, End::Closed) => Found::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Incarnation, Phase, Trigger};

    fn event(incarnation: u32) -> ChildEvent {
        ChildEvent::Changed(Change {
            incarnation: Incarnation(incarnation),
            from: Phase::Idle,
            to: Phase::Starting,
            trigger: Trigger::Started,
        })
    }

    #[tokio::test]
    async fn a_slow_listener_is_told_exactly_how_much_it_missed() {
        let log = Arc::new(EventLog::new());
        let mut events = log.listen();
        for number in 0..KEPT as u32 {
            log.push(event(number));
        }
        assert_eq!(events.next().await, Some(Heard::Event(event(0))));
        for number in 0..3 {
            log.push(event(1000 + number));
        }
        log.close();
        assert_eq!(events.next().await, Some(Heard::Missed(2)));
        assert_eq!(events.next().await, Some(Heard::Event(event(3))));
        let mut rest = 0;
        while events.next().await.is_some() {
            rest += 1;
        }
        assert_eq!(rest, KEPT - 1);
    }

    #[tokio::test]
    async fn whoever_listens_late_still_hears_the_beginning() {
        let log = Arc::new(EventLog::new());
        log.push(event(1));
        log.close();
        let mut events = log.listen();
        assert_eq!(events.next().await, Some(Heard::Event(event(1))));
        assert_eq!(events.next().await, None);
    }
}
