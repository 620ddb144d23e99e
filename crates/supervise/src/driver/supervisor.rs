//! What children share: the launcher, the limit on simultaneous starts, the numbers.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::child::{Child, ChildId, ChildStatus, Inner, SessionSlot};
use super::clock::Clock;
use super::events::EventLog;
use super::run::{Driver, Ears, Voice};
use crate::launch::Launcher;
use crate::leftovers::Leftovers;
use crate::logs::Tails;
use crate::metrics::{Metrics, Registry};
use crate::spec::{Spec, SpecError};
use crate::state::{Incarnation, Machine, Phase};

/// How many commands of owners may wait for a driver. It takes them at once, so one would do.
const COMMANDS: usize = 8;
/// How many things that sessions say may wait for a driver.
const SAID: usize = 32;

/// Starts children and knows about all of them. Cheap to clone; dropping it stops nobody.
#[derive(Clone, Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

/// What a host decides once for all its children.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The executable that plays launcher.
    pub launcher: Launcher,
    /// How many children may be starting at the same time; the others wait, and their ready deadline waits with them.
    pub starting_at_once: NonZeroUsize,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) launcher: Launcher,
    pub(super) starts: Arc<Semaphore>,
    pub(super) leftovers: Option<Arc<Leftovers>>,
    pub(super) registry: Registry,
    pub(super) clock: Clock,
    next_id: AtomicU64,
}

impl Supervisor {
    /// A supervisor without children.
    pub fn new(settings: Settings) -> Self {
        Self::make(settings, None)
    }

    /// A supervisor that writes down every tree that could outlive a host that is killed, so that the next host can sweep.
    pub fn with_leftovers(settings: Settings, leftovers: Leftovers) -> Self {
        Self::make(settings, Some(Arc::new(leftovers)))
    }

    fn make(settings: Settings, leftovers: Option<Arc<Leftovers>>) -> Self {
        let Settings { launcher, starting_at_once } = settings;
        let permits = starting_at_once.get().min(Semaphore::MAX_PERMITS);
        Self {
            shared: Arc::new(Shared {
                launcher,
                starts: Arc::new(Semaphore::new(permits)),
                leftovers,
                registry: Registry::new(),
                clock: Clock::started_now(),
                next_id: AtomicU64::new(1),
            }),
        }
    }

    /// Takes charge of a child and starts it. Whatever goes wrong from here on is told by the child itself; only a spec that
    /// could never work is refused.
    ///
    /// Must be called inside a tokio runtime with I/O and time enabled.
    pub fn start(&self, spec: Spec) -> Result<Child, SpecError> {
        spec.check()?;
        let id = ChildId(self.shared.next_id.fetch_add(1, Ordering::Relaxed));
        // The seed only has to differ between children, so that they do not come back in step.
        let mut machine = Machine::new(spec.policy(), id.0)
            .map_err(|error| SpecError::Policy { name: spec.name.clone(), error })?;
        machine.remember_crashes(spec.crash_moments(self.shared.clock.now()));

        let (command_sender, commands) = mpsc::channel(COMMANDS);
        let (said_sender, said) = mpsc::channel(SAID);
        let (owner_alive, owner) = oneshot::channel();
        let (status_sender, status) = watch::channel(ChildStatus {
            phase: Phase::Idle,
            incarnation: Incarnation(0),
            pid: None,
            running_since: None,
            ended: None,
        });
        let events = Arc::new(EventLog::new());
        let sessions = Arc::new(SessionSlot::new());
        let tails = Arc::new(Tails::new(&spec.logs));
        let child = Child::new(Inner {
            id,
            name: spec.name.clone(),
            commands: command_sender,
            status: status.clone(),
            events: Arc::clone(&events),
            sessions: Arc::clone(&sessions),
            tails: Arc::clone(&tails),
            _owner: owner_alive,
        });
        self.shared.registry.add(id, spec.name.clone(), status, child.downgrade());
        let ears = Ears { commands, owner, said, said_sender };
        let voice = Voice { status: status_sender, events, sessions, tails };
        tokio::spawn(Driver::new(id, Arc::clone(&self.shared), spec, machine, ears, voice).run());
        Ok(child)
    }

    /// The numbers of all children, as of now.
    pub fn metrics(&self) -> Metrics {
        self.shared.registry.snapshot()
    }

    /// One of the children, for whoever knows its number from the [`Metrics`]. While they hold it, it does not end with its owner.
    pub fn child(&self, id: ChildId) -> Option<Child> {
        self.shared.registry.child(id)
    }
}
