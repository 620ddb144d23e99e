//! Gives queued runs to their backends, as many at once as each may do, and writes down how they ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::approval::{Answer, Approval, Choice};
use super::backend::{Again, Attempt, Backend, COMMANDS, Concluded, Control, Ended, Order, Teller};
use super::books::Inner;
use super::cell::{Cell, Change, ChangeError};
use super::cut::{self, Cut};
use super::entry::{Answered, Attempted, Entry, Finished, OriginKind, Started};
use super::id::{Actor, RunId};
use super::scribe;
use super::state::{Moment, Phase, RunState};
use crate::engine::{Claim, ClaimError, Claimed, Millis, QueueName, Work};

/// How long a claim holds. A daemon that is killed is followed by one that ends its claims, so this is for machines that share a store.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// How often a claim is extended.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The wait before the first of several tries; it doubles.
const BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How long the dispatcher waits after the store refused.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A backend, its queue, and how many runs it may do at once.
pub(crate) struct Lane {
    pub(crate) backend: Arc<dyn Backend>,
    pub(super) queue: QueueName,
    pub(crate) at_once: usize,
    slots: Arc<Semaphore>,
    pub(super) running: AtomicUsize,
    pub(super) wake: Notify,
}

impl Lane {
    pub(crate) fn new(backend: Arc<dyn Backend>, at_once: usize) -> Self {
        let queue = queue_of(backend.name());
        let slots = Arc::new(Semaphore::new(at_once));
        Self { backend, queue, at_once, slots, running: AtomicUsize::new(0), wake: Notify::new() }
    }
}

/// The queue of a backend.
pub(super) fn queue_of(backend: &str) -> QueueName {
    QueueName(format!("backend/{backend}"))
}

/// A run in the queue of its backend.
pub(super) fn work_for(backend: &str, run: &RunId, due: Millis) -> Work {
    Work { queue: queue_of(backend), key: run.as_str().to_owned(), due }
}

/// Claims the work of one lane until the daemon leaves.
pub(super) async fn attend(inner: Arc<Inner>, lane: Arc<Lane>) {
    let mut draining = inner.draining.subscribe();
    loop {
        let Ok(permit) = Arc::clone(&lane.slots).acquire_owned().await else { return };
        // Asked for before the queue is looked at, so that what is queued in between is not slept over.
        let woken = lane.wake.notified();
        if *draining.borrow() {
            return;
        }
        let pause = match inner.engine.claim(&lane.queue, LEASE).await {
            Ok(Claimed::Work(claim)) => {
                lane.running.fetch_add(1, Ordering::Relaxed);
                inner.tasks.spawn(work(Arc::clone(&inner), Arc::clone(&lane), claim, permit));
                continue;
            }
            Ok(Claimed::NotBefore(then)) => then.left(),
            Ok(Claimed::Nothing) => Duration::MAX,
            Err(error) => {
                inner.complain(format!("the queue of `{}` cannot be read: {error}", lane.backend.name()));
                AFTER_FAILURE
            }
        };
        drop(permit);
        tokio::select! {
            () = woken => {}
            () = sleep(pause) => {}
            _ = draining.wait_for(|draining| *draining) => return,
        }
    }
}

/// A wait that may be as long as it likes.
pub(super) async fn sleep(pause: Duration) {
    tokio::time::sleep(pause.min(Duration::from_secs(3600))).await;
}

/// One claimed run.
async fn work(inner: Arc<Inner>, lane: Arc<Lane>, claim: Claim, permit: OwnedSemaphorePermit) {
    let done = match RunId::parse(&claim.key) {
        Ok(run) => {
            let attempted = attempt(&inner, &lane, &run);
            tokio::select! {
                done = attempted => done,
                () = keep(&inner, &claim) => Done::Lost,
            }
        }
        Err(_) => Done::Acknowledge,
    };
    if let Done::Acknowledge = done
        && let Err(error @ ClaimError::Engine(_)) = inner.engine.ack(&claim).await
    {
        inner.complain(format!("the run {} stays in its queue: {error}", claim.key));
    }
    lane.running.fetch_sub(1, Ordering::Relaxed);
    drop(permit);
    lane.wake.notify_one();
}

/// What becomes of a claim.
enum Done {
    /// There is nothing more to do because of it.
    Acknowledge,
    /// It stays for the next daemon.
    Leave,
    /// Somebody else has it.
    Lost,
}

/// Extends a claim for as long as it is good.
async fn keep(inner: &Inner, claim: &Claim) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match inner.engine.extend(claim, LEASE).await {
            Ok(()) => {}
            Err(ClaimError::Lost { .. }) => return,
            Err(ClaimError::Engine(error)) => inner.complain(format!("a claim cannot be extended: {error}")),
        }
    }
}

async fn attempt(inner: &Arc<Inner>, lane: &Lane, run: &RunId) -> Done {
    let cell = inner.cells.hold(run);
    // Whatever is answered from here on is also heard by the attempt itself.
    let (commands, control) = mpsc::channel(COMMANDS);
    let _live = inner.enliven(run, commands);
    let begun = begin(inner, lane, &cell).await;
    let (number, state) = match begun {
        Ok(Beginning::Attempt { number, state }) => (number, *state),
        Ok(Beginning::Nothing) => return Done::Acknowledge,
        Err(why) => {
            inner.complain(format!("the run {run} cannot be begun: {why}"));
            tokio::time::sleep(AFTER_FAILURE).await;
            return Done::Leave;
        }
    };
    let order = match inner.order(&state).await {
        Ok(order) => order,
        Err(error) => {
            let ended =
                Ended::failed("fatal", format!("what was asked for cannot be read: {error}"), Again::Nobody);
            return conclude(inner, &cell, number, ended).await;
        }
    };
    let (teller, tellings) = Teller::new(run.clone(), number, Arc::clone(&inner.engine));
    let scribe = tokio::spawn(scribe::write(Arc::clone(inner), Arc::clone(&cell), number, tellings));
    let concluded = perform(inner, lane, Job { run, number, order, state, teller, control }).await;
    // The attempt has dropped its end, so that the scribe ends when everything is written.
    let written = scribe.await.unwrap_or_else(|error| Err(format!("the scribe failed: {error}")));
    match (concluded, written) {
        (Concluded::Ended(ended), Ok(())) => conclude(inner, &cell, number, *ended).await,
        (Concluded::AtRest, Ok(())) => Done::Acknowledge,
        (Concluded::Drained, Ok(())) if !lane.backend.resumes() => {
            cut::write(inner, &cell, Cut::Drained).await;
            Done::Leave
        }
        (Concluded::Unbegun, Ok(())) => {
            cut::write(inner, &cell, Cut::Unbegun).await;
            Done::Leave
        }
        // What is not written down now the next daemon finds out.
        (Concluded::Drained | Concluded::Unbegun, _) => Done::Leave,
        (_, Err(why)) => {
            inner.complain(format!("the run {run} could not be written down: {why}"));
            tokio::time::sleep(AFTER_FAILURE).await;
            Done::Leave
        }
    }
}

/// What becomes of a claimed run.
enum Beginning {
    Attempt { number: u32, state: Box<RunState> },
    Nothing,
}

/// Decides what is to be done with a run that was claimed, and writes down that it begins.
async fn begin(inner: &Arc<Inner>, lane: &Lane, cell: &Cell) -> Result<Beginning, String> {
    let told = |error: ChangeError<std::convert::Infallible>| match error {
        ChangeError::NoSuchRun => None,
        ChangeError::Refused(never) => match never {},
        ChangeError::Engine(error) => Some(error.to_string()),
    };
    let Some((_, before)) = cell.state().await.map_err(|error| error.to_string())? else {
        return Ok(Beginning::Nothing);
    };
    let resumes = lane.backend.resumes();
    if !resumes && before.underway && !before.phase.is_over() {
        cut::interrupted(inner, cell, Cut::Killed).await?;
    }
    let changed = cell.change(|state| {
        let rests = !resumes && state.open_approvals().next().is_some();
        let elsewhere = state.backend != lane.backend.name();
        if state.phase.is_over() || rests || elsewhere {
            return Ok(Change { entries: Vec::new(), work: Vec::new(), out: None });
        }
        if !resumes && let Some(why) = &state.cancelling {
            return Ok(Change { entries: vec![cancelled(state, why)], work: Vec::new(), out: None });
        }
        let goes_on = resumes && state.underway;
        let number = if goes_on { state.attempt } else { state.attempt + 1 };
        let started = Started { attempt: number, backend: lane.backend.name().to_owned(), resumed: goes_on };
        Ok(Change { entries: vec![Entry::Started(started)], work: Vec::new(), out: Some(number) })
    });
    match changed.await {
        Ok((state, Some(number))) => Ok(Beginning::Attempt { number, state: Box::new(state) }),
        Ok((_, None)) => Ok(Beginning::Nothing),
        Err(error) => told(error).map_or(Ok(Beginning::Nothing), Err),
    }
}

struct Job<'a> {
    run: &'a RunId,
    number: u32,
    order: Order,
    state: RunState,
    teller: Teller,
    control: mpsc::Receiver<Control>,
}

/// Lets the backend do it; what it panics with is an end like any other.
async fn perform(inner: &Arc<Inner>, lane: &Lane, job: Job<'_>) -> Concluded {
    let Job { run, number, order, state, teller, control } = job;
    let cancelling = state.cancelling.clone();
    let receipts = inner.receipts.clone();
    let attempt = Attempt { run: run.clone(), number, order, state, teller, control, receipts };
    if let Some(why) = cancelling {
        inner.command(run, Control::Cancel { why });
    }
    if *inner.draining.borrow() {
        inner.command(run, Control::Drain);
    }
    let backend = Arc::clone(&lane.backend);
    let mut task = Aborted(tokio::spawn(async move { backend.attempt(attempt).await }));
    match (&mut task.0).await {
        Ok(concluded) => concluded,
        Err(error) => {
            let what = format!("the backend `{}` failed inside: {error}", lane.backend.name());
            Concluded::Ended(Box::new(Ended::failed("fatal", what, Again::Same)))
        }
    }
}

/// A task that does not outlive whoever waits for it.
struct Aborted<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes down how an attempt ended, and queues what follows.
async fn conclude(inner: &Arc<Inner>, cell: &Cell, number: u32, ended: Ended) -> Done {
    let changed = cell.change(|state| {
        if state.phase.is_over() || state.attempt != number {
            return Ok(Change { entries: Vec::new(), work: Vec::new(), out: None });
        }
        let (entry, next) = follow_up(state, &ended);
        let work = next.iter().map(|(backend, due)| work_for(backend, &state.id, *due)).collect();
        let mut entries = if next.is_some() { put_aside(state) } else { Vec::new() };
        entries.push(entry);
        Ok::<_, std::convert::Infallible>(Change { entries, work, out: next })
    });
    match changed.await {
        Ok((_, next)) => {
            if let Some((backend, _)) = next {
                inner.wake(&backend);
            }
            Done::Acknowledge
        }
        Err(ChangeError::NoSuchRun) => Done::Acknowledge,
        Err(ChangeError::Refused(never)) => match never {},
        Err(ChangeError::Engine(error)) => {
            inner.complain(format!("the end of a run cannot be written down: {error}"));
            Done::Leave
        }
    }
}

/// What nobody answered before the attempt ended that asked: the next one asks for itself.
fn put_aside(state: &RunState) -> Vec<Entry> {
    let answer = |approval: &Approval| {
        let reason = "the attempt ended before anybody answered".to_owned();
        let answer = Answer { choice: Choice::Deny, arguments: None, value: None, reason: Some(reason) };
        Entry::Answered(Answered { approval: approval.id.clone(), answer, by: Actor::new("daemon") })
    };
    state.open_approvals().map(answer).collect()
}

/// What follows the end of an attempt: the end of the run, or another attempt by somebody.
fn follow_up(state: &RunState, ended: &Ended) -> (Entry, Option<(String, Millis)>) {
    let next = match (ended.phase, ended.again) {
        (Phase::Failed, Again::Same) if state.retries_left > 0 && state.cancelling.is_none() => {
            Some(state.backend.clone())
        }
        (Phase::Failed, Again::Same | Again::Other) if state.cancelling.is_none() => {
            state.fallback.first().cloned()
        }
        _ => None,
    };
    let Some(next) = next else {
        let phase = match (&state.cancelling, ended.phase) {
            // Whoever cancelled it wants to read that it was cancelled, whatever the child made of it.
            (Some(_), Phase::Failed) => Phase::Cancelled,
            (_, phase) => phase,
        };
        let finished = Finished {
            phase,
            error: ended.error.clone(),
            ending: ended.ending.clone(),
            receipt: ended.receipt.clone(),
            spent: ended.spent.unwrap_or(state.spent),
            value: ended.value.clone(),
            patch: ended.patch.clone(),
        };
        return (Entry::Finished(finished), None);
    };
    let pause = match next == state.backend {
        true => BACKOFF.saturating_mul(1 << state.attempt.saturating_sub(1).min(6)).min(LONGEST_BACKOFF),
        false => Duration::ZERO,
    };
    let attempted = Attempted {
        attempt: state.attempt,
        error: ended.error.clone().unwrap_or_else(|| ended.ending.clone()),
        receipt: ended.receipt.clone(),
        next_backend: next.clone(),
        not_before: Moment::now().after(pause),
        interrupted: false,
    };
    (Entry::Attempted(attempted), Some((next, Millis::now().after(pause))))
}

/// The end of a run that nobody works on.
pub(super) fn cancelled(state: &RunState, why: &str) -> Entry {
    Entry::Finished(Finished {
        phase: Phase::Cancelled,
        error: Some(why.to_owned()),
        ending: "cancelled".to_owned(),
        receipt: state.earlier.last().cloned(),
        spent: state.spent,
        value: None,
        patch: None,
    })
}

/// Whether a run goes on from answers that another one got.
pub(super) fn is_replay(state: &RunState) -> bool {
    state.origin.as_ref().is_some_and(|origin| origin.how == OriginKind::Replay)
}
