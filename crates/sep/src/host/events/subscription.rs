//! What one extension hears: the topics it asked for, as far as it may hear about them, in the version it speaks.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outbox::Outbox;
use super::queue::{Bounds, Event, Loss};
use super::shape::{Names, Telling, View};
use super::topic::{Topic, TopicSet};
use crate::protocol::{Limits, Permission, V1_1, Version};

/// What one extension hears, over all of its sessions.
#[derive(Debug)]
pub struct Subscription {
    /// What is heard now, so that an event that nobody wants costs one look.
    heard: AtomicU8,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limits: Bounds,
    max_frame_bytes: usize,
    /// What it asked for in this session.
    wanted: TopicSet,
    granted: Vec<Permission>,
    version: Version,
    /// The events of this session; none while there is no session.
    outbox: Option<Arc<Outbox>>,
}

impl Subscription {
    /// Hears nothing until a session [begins](Self::begin).
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let bounds = Bounds {
            events: limits.event_queue,
            bytes: limits.event_queue_bytes,
            window: limits.event_window,
        };
        let state = State {
            limits: bounds,
            max_frame_bytes: limits.max_frame_bytes,
            wanted: TopicSet::default(),
            granted: Vec::new(),
            version: V1_1,
            outbox: None,
        };
        Self { heard: AtomicU8::new(0), state: Mutex::new(state) }
    }

    /// Begins a session with an empty queue: from now on events about `topics` wait for it, as far as `granted` allows.
    pub fn begin(&self, topics: &[Topic], granted: &[Permission]) -> Arc<Outbox> {
        let mut state = self.state();
        let outbox = Arc::new(Outbox::new(state.limits));
        if let Some(old) = state.outbox.replace(Arc::clone(&outbox)) {
            old.close();
        }
        state.wanted = TopicSet::default();
        state.wanted.add(topics);
        state.granted = granted.to_vec();
        // Until it has chosen, it may speak the newest.
        state.version = V1_1;
        self.publish(&state);
        outbox
    }

    /// The session has begun and speaks `version`: what it does not know is forgotten, and the rest is delivered.
    pub fn ready(&self, version: Version) {
        let mut state = self.state();
        state.version = version;
        let heard = self.publish(&state);
        if let Some(outbox) = &state.outbox {
            outbox.restrict(|topic| heard.has(topic));
            outbox.open();
        }
    }

    /// The session is over: nothing is heard, and what waits is gone.
    pub fn end(&self) {
        let mut state = self.state();
        if let Some(outbox) = state.outbox.take() {
            outbox.close();
        }
        state.wanted = TopicSet::default();
        self.publish(&state);
    }

    /// Hears about these too. Whether it may is up to the gate; what it may not is not delivered all the same.
    pub fn add(&self, topics: &[Topic]) {
        let mut state = self.state();
        state.wanted.add(topics);
        self.publish(&state);
    }

    /// Hears no more about these, also not what waits.
    pub fn remove(&self, topics: &[Topic]) {
        let mut state = self.state();
        state.wanted.remove(topics);
        self.withdraw(&state);
    }

    /// Changes what it may do, at once: what it may no longer hear about is withdrawn even if it waits.
    pub fn permit(&self, granted: &[Permission]) {
        let mut state = self.state();
        let names = state.names();
        state.granted = granted.to_vec();
        if names == Names::Shown && state.names() == Names::Hidden {
            // What waits was written when it might still know the names.
            if let Some(outbox) = &state.outbox {
                outbox.withdraw(|topic| topic == Topic::PeerOnline);
            }
        }
        self.withdraw(&state);
    }

    /// What it hears about now, sorted by name.
    #[must_use]
    pub fn topics(&self) -> Vec<Topic> {
        TopicSet::from_bits(self.heard.load(Ordering::Acquire)).list()
    }

    /// The events of the session, if there is one.
    #[must_use]
    pub fn outbox(&self) -> Option<Arc<Outbox>> {
        self.state().outbox.clone()
    }

    /// Tells it, if it hears about that; says what it cost.
    pub(super) fn tell(&self, telling: &mut Telling<'_>) -> Option<Loss> {
        let hears = |heard: u8| TopicSet::from_bits(heard).has(telling.topic);
        if !hears(self.heard.load(Ordering::Acquire)) {
            return None;
        }
        let state = self.state();
        // Looked at again under the lock, so that nothing is told that was taken back meanwhile.
        if !hears(self.heard.load(Ordering::Relaxed)) {
            return None;
        }
        let outbox = state.outbox.as_ref()?;
        let data = telling.data(View::new(state.names(), state.max_frame_bytes))?;
        let Telling { topic, about, time_ms, .. } = *telling;
        Some(outbox.offer(Event { topic, about, time_ms, data }))
    }

    fn withdraw(&self, state: &State) {
        let heard = self.publish(state);
        if let Some(outbox) = &state.outbox {
            outbox.withdraw(|topic| !heard.has(topic));
        }
    }

    fn publish(&self, state: &State) -> TopicSet {
        let heard = match state.outbox {
            Some(_) => state.wanted.filter(|topic| state.may_hear(topic)),
            None => TopicSet::default(),
        };
        self.heard.store(heard.bits(), Ordering::Release);
        heard
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_hear(&self, topic: Topic) -> bool {
        let may = |permission: Permission| self.granted.contains(&permission);
        may(Permission::EventsSubscribe)
            && topic.permission().is_none_or(may)
            && self.version.serves(topic.since())
    }

    fn names(&self) -> Names {
        match self.granted.contains(&Permission::ContactsRead) {
            true => Names::Shown,
            false => Names::Hidden,
        }
    }
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
