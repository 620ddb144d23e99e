//! The thread that writes: takes what is asked for, does it in one transaction, answers, and tells the ear.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::bell::{Ring, Woken};
use super::news::{self, NewsId};
use super::{Bounds, Shared, Trouble, explain, rows};
use crate::mesh::{Address, MeshEvent, Message};

/// How many requests share a transaction.
const BATCH: usize = 64;

/// How many things are taken from the file at once to be told.
const TELL: usize = 256;

/// How much is kept for an ear that does not come.
const UNTOLD: u64 = 100_000;

/// How many events that are not kept in the file wait for an ear.
const ASIDE: usize = 1024;

/// How long a file that cannot be written is left alone.
const PAUSE: Duration = Duration::from_millis(200);

/// A request: does its work, and says whether that is to be kept and how to answer when it is known whether it was. Without a
/// turn it only answers.
pub(super) type Job = Box<dyn FnOnce(Result<&mut Turn<'_>, Trouble>) -> (Keep, Reply) + Send>;
pub(super) type Reply = Box<dyn FnOnce(Result<(), Trouble>) + Send>;

/// Whether what a request has written stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

/// One transaction, for whoever works in it.
pub(in crate::mesh) struct Turn<'t> {
    pub(in crate::mesh) on: &'t Connection,
    pub(in crate::mesh) me: Address,
    /// Never less than the last time.
    pub(in crate::mesh) now_ms: u64,
    rings: &'t mut Vec<(Address, Ring)>,
    aside: &'t mut VecDeque<MeshEvent>,
    added: u64,
}

impl Turn<'_> {
    /// Wakes another node when this is in the file.
    pub(in crate::mesh) fn ring(&mut self, node: Address, why: Ring) {
        if node != self.me && !self.rings.contains(&(node, why)) {
            self.rings.push((node, why));
        }
    }

    /// Tells something that is not worth keeping over a restart.
    pub(in crate::mesh) fn tell(&mut self, event: MeshEvent) {
        if self.aside.len() == ASIDE {
            self.aside.pop_front();
        }
        self.aside.push_back(event);
    }

    /// Puts a message into our own list; `false` if it is there already.
    pub(in crate::mesh) fn keep(&mut self, message: &Message, place: rows::Place) -> rusqlite::Result<bool> {
        let is_new = rows::insert(self.on, self.me, message, place)?;
        self.added += u64::from(is_new);
        Ok(is_new)
    }
}

/// Why a round is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mesh) struct Occasion {
    /// What the bell was rung for.
    pub(in crate::mesh) woken: Woken,
    /// Whether it is time for what is done regularly.
    pub(in crate::mesh) is_due: bool,
}

/// Whether a round has left something undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mesh) enum More {
    Yes,
    No,
}

/// What a network does beyond keeping things.
pub(in crate::mesh) trait Rounds: Send {
    /// How often there is something to do although nothing happens.
    fn pace(&self) -> Duration;
    /// Does what there is to do.
    fn round(&mut self, turn: &mut Turn<'_>, occasion: Occasion) -> rusqlite::Result<More>;
    /// Says goodbye.
    fn leave(&mut self, turn: &mut Turn<'_>) -> rusqlite::Result<()>;
}

/// A network that only keeps things.
pub(in crate::mesh) struct Idle;

impl Rounds for Idle {
    fn pace(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn round(&mut self, _: &mut Turn<'_>, _: Occasion) -> rusqlite::Result<More> {
        Ok(More::No)
    }

    fn leave(&mut self, _: &mut Turn<'_>) -> rusqlite::Result<()> {
        Ok(())
    }
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    connection: Connection,
    jobs: mpsc::Receiver<Job>,
    bounds: Bounds,
    /// How many messages we keep.
    messages: u64,
    rounds: Box<dyn Rounds>,
    last_ms: u64,
    next_due: Instant,
    /// Taken from the file to be told, in order.
    untold: VecDeque<(NewsId, Option<MeshEvent>)>,
    /// Told, and to be removed from the file.
    told: Vec<NewsId>,
    aside: VecDeque<MeshEvent>,
    /// What remains of a round that failed or was too long.
    pending: Woken,
    /// Whether there may be news in the file that `untold` has not.
    may_have_news: bool,
}

/// How a transaction went.
enum Turned {
    /// Everything is done.
    All,
    /// There is more to do.
    Partly,
    /// Nothing is done.
    Failed,
}

/// What a transaction leaves to be done after it.
struct Done {
    replies: Vec<Reply>,
    rings: Vec<(Address, Ring)>,
    more: More,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        jobs: mpsc::Receiver<Job>,
        bounds: Bounds,
        messages: u64,
        rounds: Box<dyn Rounds>,
    ) -> Self {
        Self {
            shared,
            connection,
            jobs,
            bounds,
            messages,
            rounds,
            last_ms: 0,
            next_due: Instant::now(),
            untold: VecDeque::new(),
            told: Vec::new(),
            aside: VecDeque::new(),
            pending: Woken { mail: true, presence: true },
            may_have_news: true,
        }
    }

    pub(super) fn run(mut self) {
        let mut is_busy = true;
        loop {
            let wait = if is_busy {
                Duration::ZERO
            } else {
                self.next_due.saturating_duration_since(Instant::now())
            };
            let woken = self.shared.bell.wait(wait);
            self.pending.mail |= woken.mail;
            self.pending.presence |= woken.presence;
            self.may_have_news |= woken.mail;
            let is_closing = self.shared.closing.load(Ordering::Acquire);
            let mut batch = VecDeque::new();
            while batch.len() < BATCH
                && let Ok(job) = self.jobs.try_recv()
            {
                batch.push_back(job);
            }
            let is_last = is_closing && batch.is_empty();
            let is_full = batch.len() == BATCH;
            let turned = self.turn(batch, is_last);
            if is_last {
                return;
            }
            is_busy = match turned {
                Turned::All => self.tell() || is_full || is_closing,
                Turned::Partly => {
                    self.tell();
                    true
                }
                // Whoever asks for something wakes us before the pause is over.
                Turned::Failed => is_closing,
            };
        }
    }

    /// One transaction, if there is anything to do in it.
    fn turn(&mut self, mut jobs: VecDeque<Job>, is_last: bool) -> Turned {
        let now = Instant::now();
        let occasion = Occasion { woken: self.pending, is_due: now >= self.next_due };
        let wants_news = self.untold.is_empty() && self.may_have_news && self.has_ear();
        let is_idle = occasion == Occasion { woken: Woken::default(), is_due: false };
        if jobs.is_empty() && is_idle && self.told.is_empty() && !wants_news && !is_last {
            return Turned::All;
        }
        self.may_have_news |= !jobs.is_empty() || !is_idle;
        match self.transact(&mut jobs, occasion, is_last) {
            Ok(Done { replies, rings, more }) => {
                self.pending = Woken { mail: more == More::Yes, presence: false };
                if occasion.is_due {
                    self.next_due = now + self.rounds.pace();
                }
                self.told.clear();
                replies.into_iter().for_each(|reply| reply(Ok(())));
                for (node, why) in rings {
                    self.shared.belfry.ring(node, why);
                }
                if more == More::Yes { Turned::Partly } else { Turned::All }
            }
            Err((error, mut replies)) => {
                let trouble = explain(&self.shared.path, &error);
                replies.extend(jobs.into_iter().map(|job| job(Err(trouble.clone())).1));
                replies.into_iter().for_each(|reply| reply(Err(trouble.clone())));
                self.next_due = now + PAUSE.min(self.rounds.pace());
                Turned::Failed
            }
        }
    }

    fn transact(
        &mut self,
        jobs: &mut VecDeque<Job>,
        occasion: Occasion,
        is_last: bool,
    ) -> Result<Done, (rusqlite::Error, Vec<Reply>)> {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.last_ms = self.last_ms.max(u64::try_from(wall).unwrap_or(u64::MAX >> 1));
        let mut replies = Vec::with_capacity(jobs.len());
        let mut rings = Vec::new();
        let begun = match self.connection.transaction_with_behavior(TransactionBehavior::Immediate) {
            Ok(begun) => begun,
            Err(error) => return Err((error, replies)),
        };
        let mut turn = Turn {
            on: &begun,
            me: self.shared.me,
            now_ms: self.last_ms,
            rings: &mut rings,
            aside: &mut self.aside,
            added: 0,
        };
        let mut refill = None;
        let mut step = || -> rusqlite::Result<(More, u64)> {
            news::remove(turn.on, &self.told)?;
            while let Some(job) = jobs.pop_front() {
                turn.on.prepare_cached("SAVEPOINT request")?.execute([])?;
                let before = turn.added;
                let (keep, reply) = job(Ok(&mut turn));
                replies.push(reply);
                if keep == Keep::No {
                    turn.added = before;
                    turn.on.prepare_cached("ROLLBACK TO request")?.execute([])?;
                }
                turn.on.prepare_cached("RELEASE request")?.execute([])?;
            }
            let more = if is_last {
                self.rounds.leave(&mut turn)?;
                More::No
            } else {
                self.rounds.round(&mut turn, occasion)?
            };
            let messages = self.messages + turn.added;
            let excess = messages.saturating_sub(self.bounds.messages);
            let pruned = if excess > 0 { rows::prune(turn.on, turn.me, excess)? } else { 0 };
            if occasion.is_due {
                news::bound(turn.on, turn.me, UNTOLD)?;
            }
            if self.untold.is_empty() && self.may_have_news && has_ear(&self.shared) {
                refill = Some(news::next(turn.on, turn.me, TELL)?);
            }
            Ok((more, messages - pruned))
        };
        let stepped = step();
        match stepped.and_then(|(more, messages)| begun.commit().map(|()| (more, messages))) {
            Ok((more, messages)) => {
                self.messages = messages;
                if let Some(found) = refill {
                    self.may_have_news = found.len() == TELL;
                    self.untold.extend(found);
                }
                Ok(Done { replies, rings, more })
            }
            Err(error) => Err((error, replies)),
        }
    }

    /// Tells what there is to tell, up to the first message that came in: that one is written down as told before the next.
    /// A process that is killed in between is told of that one message again, and never misses one.
    fn tell(&mut self) -> bool {
        let ear = self.shared.ear.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ear) = ear else { return false };
        for event in self.aside.drain(..) {
            ear.hear(&event);
        }
        while let Some((id, event)) = self.untold.pop_front() {
            self.told.push(id);
            if let Some(event) = event {
                ear.hear(&event);
                if matches!(event, MeshEvent::Received(_)) {
                    break;
                }
            }
        }
        !self.told.is_empty() || self.may_have_news
    }

    fn has_ear(&self) -> bool {
        has_ear(&self.shared)
    }
}

fn has_ear(shared: &Shared) -> bool {
    shared.ear.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}
