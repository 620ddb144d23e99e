//! The sessions of the host: which are busy, in what order things happen to each, and which keep a program warm.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::options::Warm;
use super::stream::Stream;
use crate::protocol::ProviderName;
use crate::provider::{AgentSession, Provider, Steering};

/// How many sessions are remembered that neither run nor keep anything warm.
const REMEMBERED: usize = 1024;

/// How many steers may wait for a driver.
pub(super) const STEERS: usize = 64;

/// A session is one of the host's with one provider.
pub(super) type Key = (ProviderName, String);

#[derive(Default)]
pub(super) struct Sessions {
    table: Mutex<HashMap<Key, Arc<Session>>>,
}

pub(super) struct Session {
    pub(super) key: Key,
    provider: Arc<dyn Provider>,
    state: Mutex<State>,
}

struct State {
    agent: Arc<dyn AgentSession>,
    /// The turn that runs, as the host sees it: one that was stopped is not there, although it is being cleared up.
    live: Option<Live>,
    turns: Chain,
    changes: Chain,
    used: Instant,
}

/// A turn that runs.
pub(super) struct Live {
    pub(super) stream: Arc<Stream>,
    pub(super) stop: CancellationToken,
    pub(super) steering: mpsc::Sender<Steering>,
}

/// Things that happen one after the other, in the order in which they entered.
struct Chain {
    tail: CancellationToken,
}

/// A place in a chain. Who comes next waits until it is dropped.
pub(super) struct Place {
    before: Vec<CancellationToken>,
    _done: DropGuard,
}

impl Place {
    /// Waits for its turn.
    pub(super) async fn turn(&self) {
        for before in &self.before {
            before.cancelled().await;
        }
    }
}

impl Chain {
    fn new() -> Self {
        let tail = CancellationToken::new();
        tail.cancel();
        Self { tail }
    }

    fn enter(&mut self) -> Place {
        let done = CancellationToken::new();
        let before = std::mem::replace(&mut self.tail, done.clone());
        Place { before: vec![before], _done: done.drop_guard() }
    }
}

impl Sessions {
    /// The session of that name, made if there is none.
    pub(super) fn get_or_make(&self, key: Key, provider: &Arc<dyn Provider>) -> Arc<Session> {
        let mut table = self.table();
        if let Some(session) = table.get(&key) {
            return Arc::clone(session);
        }
        let session = Arc::new(Session::new(key.clone(), Arc::clone(provider)));
        table.insert(key, Arc::clone(&session));
        session
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Session>> {
        self.table().get(key).cloned()
    }

    /// The sessions that the host calls so, whoever their provider is.
    pub(super) fn called(&self, session_id: &str) -> Vec<Arc<Session>> {
        self.table().values().filter(|session| session.key.1 == session_id).cloned().collect()
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.table().values().cloned().collect()
    }

    /// The sessions whose programs are to be ended: those that have been idle for too long, and the idlest beyond the limit.
    /// Forgets the idlest sessions that have nothing.
    pub(super) fn cooling(&self, warm: Warm, now: Instant) -> Vec<Arc<Session>> {
        let mut table = self.table();
        let idle = |session: &&Arc<Session>| !session.is_busy();
        let mut warm_ones: Vec<(Instant, Arc<Session>)> = Vec::new();
        let mut cold: Vec<(Instant, Key)> = Vec::new();
        for session in table.values().filter(idle) {
            match session.agent().warm_since() {
                Some(since) => warm_ones.push((since, Arc::clone(session))),
                None => cold.push((session.state().used, session.key.clone())),
            }
        }
        if cold.len() > REMEMBERED {
            cold.sort_by_key(|(used, _)| *used);
            for (_, key) in cold.drain(..cold.len() - REMEMBERED) {
                table.remove(&key);
            }
        }
        drop(table);
        warm_ones.sort_by_key(|(since, _)| *since);
        let beyond = warm_ones.len().saturating_sub(warm.programs);
        let cools = |(at, (since, session)): (usize, (Instant, Arc<Session>))| {
            let too_long = now.saturating_duration_since(since) >= warm.at_most;
            (at < beyond || too_long).then_some(session)
        };
        warm_ones.into_iter().enumerate().filter_map(cools).collect()
    }

    /// Whether anything is kept warm.
    pub(super) fn any_warm(&self) -> bool {
        self.table().values().any(|session| session.agent().warm_since().is_some())
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn new(key: Key, provider: Arc<dyn Provider>) -> Self {
        let agent = provider.session(&key.1);
        let (turns, changes) = (Chain::new(), Chain::new());
        let state = State { agent, live: None, turns, changes, used: Instant::now() };
        Self { key, provider, state: Mutex::new(state) }
    }

    pub(super) fn agent(&self) -> Arc<dyn AgentSession> {
        Arc::clone(&self.state().agent)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.state().live.is_some()
    }

    /// Begins a turn, unless one runs. Its place comes after the clearing up of the one before and after every change that was
    /// asked for until now.
    pub(super) fn begin(&self, live: Live) -> Option<Place> {
        let mut state = self.state();
        if state.live.is_some() {
            return None;
        }
        state.live = Some(live);
        state.used = Instant::now();
        let mut place = state.turns.enter();
        place.before.push(state.changes.tail.clone());
        Some(place)
    }

    /// The turn of that stream is over for the host.
    pub(super) fn leave(&self, stream: &Arc<Stream>) {
        let mut state = self.state();
        state.used = Instant::now();
        if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.stream, stream)) {
            state.live = None;
        }
    }

    /// Takes the turn that runs, so that for the host there is none.
    pub(super) fn take_live(&self) -> Option<Live> {
        self.state().live.take()
    }

    /// Where to say something to the turn that runs.
    pub(super) fn steering(&self) -> Option<(mpsc::Sender<Steering>, CancellationToken)> {
        let state = self.state();
        state.live.as_ref().map(|live| (live.steering.clone(), live.stream.reply.over().clone()))
    }

    /// A place for a change: after the other ones, and whether or not a turn runs.
    pub(super) fn enter_change(&self) -> Place {
        self.state().changes.enter()
    }

    /// A place between turns.
    pub(super) fn enter_turn(&self) -> Place {
        self.state().turns.enter()
    }

    /// What a driver left behind cannot be trusted: the next turn gets a new one. Returns the old one.
    pub(super) fn renew(&self) -> Arc<dyn AgentSession> {
        let agent = self.provider.session(&self.key.1);
        std::mem::replace(&mut self.state().agent, agent)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
