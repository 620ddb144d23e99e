//! Who waits for what: one place for every request in flight, by its id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::error::Lost;
use super::event::{StreamEnd, StreamEvent};
use super::queue::{Full, Queue};
use super::read::{Meaning, meaning};
use super::sessions::{Adoption, Sessions, TurnGuard};
use crate::protocol::{Event, ProviderName, StopSession};

/// The places of one conversation.
#[derive(Debug)]
pub(super) struct Hub {
    places: Mutex<Places>,
    sessions: Sessions,
    stream_bytes: usize,
}

#[derive(Debug)]
enum Places {
    Open(HashMap<String, Place>),
    Lost(Lost),
}

#[derive(Debug)]
enum Place {
    /// The first event is the answer.
    Answer(oneshot::Sender<Answer>),
    Stream(Box<StreamPlace>),
}

/// The answer to a request: an event.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) kind: String,
    pub(super) line: String,
}

/// A stream that has not ended.
#[derive(Debug)]
struct StreamPlace {
    queue: Arc<Queue>,
    session: String,
    adoption: Adoption,
    turn: TurnGuard,
    /// The task that listens for silence, once there is one.
    watch: Option<Watch>,
}

/// A task that ends with this.
#[derive(Debug)]
struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A turn that the sidecar must be told to stop. Its session stays busy until this is dropped.
#[derive(Debug)]
pub(super) struct ToStop {
    session: String,
    provider: ProviderName,
    _turn: Option<TurnGuard>,
}

/// What became of an event.
#[derive(Debug)]
pub(super) enum Delivered {
    Taken,
    /// It was for nobody.
    Stray,
    /// Its stream was not read for too long and is over.
    Overflow(ToStop),
}

impl Hub {
    pub(super) fn new(sessions: Sessions, stream_bytes: usize) -> Self {
        Self { places: Mutex::new(Places::Open(HashMap::new())), sessions, stream_bytes }
    }

    /// A place for an answer.
    pub(super) fn expect(&self, id: &str) -> Result<oneshot::Receiver<Answer>, Lost> {
        let (sender, answer) = oneshot::channel();
        self.place(id, Place::Answer(sender))?;
        Ok(answer)
    }

    /// A place for a stream.
    pub(super) fn open(
        &self,
        id: &str,
        (provider, session): (ProviderName, String),
        turn: TurnGuard,
    ) -> Result<Arc<Queue>, Lost> {
        let queue = Arc::new(Queue::new(self.stream_bytes));
        let adoption = Adoption::new(provider, session.clone());
        let place = StreamPlace { queue: Arc::clone(&queue), session, adoption, turn, watch: None };
        self.place(id, Place::Stream(Box::new(place)))?;
        Ok(queue)
    }

    /// Somebody listens for silence on a stream as long as it is open.
    pub(super) fn watched(&self, id: &str, watch: AbortHandle) {
        let watch = Watch(watch);
        if let Places::Open(places) = &mut *self.places()
            && let Some(Place::Stream(place)) = places.get_mut(id)
        {
            place.watch = Some(watch);
        }
    }

    /// Nobody waits for this answer any more.
    pub(super) fn forget(&self, id: &str) {
        if let Places::Open(places) = &mut *self.places()
            && matches!(places.get(id), Some(Place::Answer(_)))
        {
            places.remove(id);
        }
    }

    /// Gives an event to whom it is for.
    pub(super) fn deliver(&self, id: &str, event: &Event<'_>) -> Delivered {
        let mut guard = self.places();
        let Places::Open(places) = &mut *guard else { return Delivered::Stray };
        match places.get_mut(id) {
            None => Delivered::Stray,
            Some(Place::Answer(_)) if event.kind == "heartbeat" => Delivered::Taken,
            Some(Place::Answer(_)) => {
                if let Some(Place::Answer(sender)) = places.remove(id) {
                    // Whoever asked may have gone.
                    let _ = sender
                        .send(Answer { kind: event.kind.clone().into_owned(), line: event.raw.to_owned() });
                }
                Delivered::Taken
            }
            Some(Place::Stream(place)) => match place.take(event, &self.sessions) {
                Taken::Open => Delivered::Taken,
                Taken::Over => {
                    places.remove(id);
                    Delivered::Taken
                }
                Taken::Overflow => {
                    place.queue.finish(StreamEnd::Overflow { limit: self.stream_bytes });
                    match places.remove(id) {
                        Some(Place::Stream(place)) => Delivered::Overflow(place.into_stop()),
                        Some(Place::Answer(_)) | None => Delivered::Taken,
                    }
                }
            },
        }
    }

    /// A stream that was never asked for.
    pub(super) fn withdraw(&self, id: &str) {
        if let Places::Open(places) = &mut *self.places()
            && let Some(Place::Stream(place)) = places.remove(id)
        {
            place.queue.finish(StreamEnd::Ended);
        }
    }

    /// Ends a stream for a reason of the host's own; `None` if it is over already.
    pub(super) fn end(&self, id: &str, end: StreamEnd) -> Option<ToStop> {
        let mut guard = self.places();
        let Places::Open(places) = &mut *guard else { return None };
        match places.remove(id) {
            Some(Place::Stream(place)) => {
                place.queue.finish(end);
                Some(place.into_stop())
            }
            Some(answer @ Place::Answer(_)) => {
                places.insert(id.to_owned(), answer);
                None
            }
            None => None,
        }
    }

    /// The sidecar is gone: what is open ends. Answers are told by their senders being dropped.
    pub(super) fn lose(&self, lost: &Lost) {
        let before = match &mut *self.places() {
            Places::Lost(_) => return,
            open => std::mem::replace(open, Places::Lost(lost.clone())),
        };
        let Places::Open(places) = before else { return };
        for place in places.into_values() {
            match place {
                Place::Stream(place) => {
                    place.queue.finish(StreamEnd::Lost(lost.clone()));
                }
                Place::Answer(_) => {}
            }
        }
    }

    /// Why it is gone, if it is.
    pub(super) fn lost(&self) -> Option<Lost> {
        match &*self.places() {
            Places::Open(_) => None,
            Places::Lost(lost) => Some(lost.clone()),
        }
    }

    fn place(&self, id: &str, place: Place) -> Result<(), Lost> {
        match &mut *self.places() {
            Places::Open(places) => {
                places.insert(id.to_owned(), place);
                Ok(())
            }
            Places::Lost(lost) => Err(lost.clone()),
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Taken {
    Open,
    Over,
    Overflow,
}

impl StreamPlace {
    fn take(&mut self, event: &Event<'_>, sessions: &Sessions) -> Taken {
        if let Some((provider, id)) = self.adoption.look(event) {
            sessions.remember(&self.session, provider, id);
        }
        let line = event.raw;
        let event = match meaning(event) {
            Meaning::Alive => {
                self.queue.heard();
                return Taken::Open;
            }
            Meaning::End(end) => {
                self.queue.finish(*end);
                return Taken::Over;
            }
            Meaning::Event(event) => event,
        };
        if let StreamEvent::ContextReset { .. } = &*event {
            sessions.forget_resume(&self.session);
            self.adoption.again();
        }
        match self.queue.push(*event, line.len()) {
            Ok(()) => Taken::Open,
            Err(Full) => Taken::Overflow,
        }
    }

    fn into_stop(self) -> ToStop {
        let Self { session, adoption, turn, .. } = self;
        ToStop { session, provider: adoption.provider().clone(), _turn: Some(turn) }
    }
}

impl ToStop {
    /// What `stopSession` is told.
    pub(super) fn params(&self) -> Value {
        let (session_id, provider) = (self.session.clone(), self.provider.clone());
        StopSession { session_id, provider }.to_params()
    }

    /// A turn whose stream still tells how it ends, and that keeps its session busy itself.
    pub(super) fn of(session: String, provider: ProviderName) -> Self {
        Self { session, provider, _turn: None }
    }
}
