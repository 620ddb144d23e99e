//! `GET /v1/changes`: a line for each run that changed, for lists that are kept alive. A run that changes all the time is told
//! five times a second.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::door::Door;
use super::sse::{self, BEAT, Frame, RETRY};
use crate::engine::{Changed, Seq};
use crate::runs::{RunId, RunsError};

/// How long a run is quiet after it was told.
const QUIET: Duration = Duration::from_millis(200);
/// How many runs may wait to be told; past that the reader is told to look for itself.
const WAITING: usize = 1024;

pub(super) async fn changes(State(door): State<Arc<Door>>) -> Response {
    // Heard from before the answer begins: what changes after that is not missed.
    let changes = door.app.runs.changes();
    sse::response(listen(door, changes))
}

struct Listening {
    door: Arc<Door>,
    changes: broadcast::Receiver<Changed>,
    gathered: Gathered,
    /// Runs to be told now.
    due: VecDeque<(RunId, Seq)>,
    begun: bool,
}

fn listen(door: Arc<Door>, changes: broadcast::Receiver<Changed>) -> impl Stream<Item = Bytes> {
    let begin =
        Listening { door, changes, gathered: Gathered::default(), due: VecDeque::new(), begun: false };
    stream::unfold(begin, |mut listening| async move {
        let text = listening.step().await?;
        Some((Bytes::from(text), listening))
    })
}

impl Listening {
    async fn step(&mut self) -> Option<String> {
        if !self.begun {
            self.begun = true;
            return Some(RETRY.to_owned());
        }
        let beat = Instant::now() + self.door.limits.heartbeat;
        loop {
            if let Some((run, seq)) = self.due.pop_front() {
                return Some(self.tell(&run, seq).await);
            }
            let wake = self.gathered.next_due().map_or(beat, |due| due.min(beat));
            tokio::select! {
                heard = self.changes.recv() => match heard {
                    Ok(Changed { log, seq }) => {
                        let Some(run) = RunId::of_log(&log) else { continue };
                        if !self.gathered.note(run, seq, Instant::now()) {
                            return Some(self.lost());
                        }
                    }
                    Err(RecvError::Lagged(_)) => return Some(self.lost()),
                    Err(RecvError::Closed) => return None,
                },
                () = sleep_until(wake) => {
                    if Instant::now() >= beat {
                        return Some(BEAT.to_owned());
                    }
                }
            }
            self.due.extend(self.gathered.take_due(Instant::now()));
        }
    }

    async fn tell(&self, run: &RunId, seq: Seq) -> String {
        let mut text = String::new();
        let found = match seq {
            // A log that is forgotten has no length.
            Seq(0) => Err(RunsError::NoSuchRun(run.to_string())),
            seq => self.door.summaries.of(&self.door.app.runs, run, seq).await,
        };
        match found {
            Ok(json) => {
                let data = std::str::from_utf8(&json).unwrap_or_default();
                Frame { id: None, event: "run", data }.write(&mut text);
            }
            Err(RunsError::NoSuchRun(_)) => {
                let data = json!({ "id": run }).to_string();
                Frame { id: None, event: "gone", data: &data }.write(&mut text);
            }
            Err(_) => text = self.look_for_yourself(),
        }
        text
    }

    /// Too much happened to tell it all.
    fn lost(&mut self) -> String {
        self.gathered = Gathered::default();
        self.due.clear();
        self.look_for_yourself()
    }

    fn look_for_yourself(&self) -> String {
        let mut text = String::new();
        Frame { id: None, event: "reset", data: "{}" }.write(&mut text);
        text
    }
}

/// Changes that wait until their run may be told again.
#[derive(Debug, Default)]
struct Gathered {
    told: HashMap<RunId, Instant>,
    waiting: BTreeMap<RunId, (Instant, Seq)>,
}

impl Gathered {
    /// A run changed. False if there are too many.
    fn note(&mut self, run: RunId, seq: Seq, now: Instant) -> bool {
        let due = self.told.get(&run).map_or(now, |told| (*told + QUIET).max(now));
        if self.waiting.len() >= WAITING && !self.waiting.contains_key(&run) {
            return false;
        }
        // The latest length counts, and the earliest moment.
        self.waiting.entry(run).or_insert((due, seq)).1 = seq;
        true
    }

    fn next_due(&self) -> Option<Instant> {
        self.waiting.values().map(|(due, _)| *due).min()
    }

    /// What may be told now.
    fn take_due(&mut self, now: Instant) -> Vec<(RunId, Seq)> {
        self.told.retain(|_, told| *told + QUIET > now);
        let (due, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, (due, _))| *due <= now);
        self.waiting = waiting;
        self.told.extend(due.keys().map(|run| (run.clone(), now)));
        due.into_iter().map(|(run, (_, seq))| (run, seq)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> RunId {
        RunId::parse(name).unwrap()
    }

    #[test]
    fn a_run_that_changes_all_the_time_is_told_five_times_a_second() {
        let mut gathered = Gathered::default();
        let mut told = Vec::new();
        let began = Instant::now();
        for step in 1..=1000 {
            let now = began + Duration::from_millis(step - 1);
            assert!(gathered.note(run("busy"), Seq(step), now));
            told.extend(gathered.take_due(now));
        }
        told.extend(gathered.take_due(began + Duration::from_secs(1) + QUIET));
        // At once, then after each quiet time, and the last state in the end.
        let told: Vec<u64> = told.into_iter().map(|(_, seq)| seq.0).collect();
        assert_eq!(told, [1, 201, 401, 601, 801, 1000]);
    }

    #[test]
    fn runs_do_not_wait_for_each_other() {
        let mut gathered = Gathered::default();
        let now = Instant::now();
        gathered.note(run("a"), Seq(1), now);
        assert_eq!(gathered.take_due(now), [(run("a"), Seq(1))]);
        gathered.note(run("a"), Seq(2), now);
        gathered.note(run("b"), Seq(1), now);
        assert_eq!(gathered.take_due(now), [(run("b"), Seq(1))]);
        assert_eq!(gathered.next_due(), Some(now + QUIET));
    }

    #[test]
    fn more_runs_than_can_wait_are_refused_and_known_ones_are_not() {
        let mut gathered = Gathered::default();
        let now = Instant::now();
        for i in 0..WAITING {
            assert!(gathered.note(run(&format!("r{i}")), Seq(1), now));
        }
        assert!(gathered.note(run("r0"), Seq(2), now));
        assert!(!gathered.note(run("one-more"), Seq(1), now));
    }
}
