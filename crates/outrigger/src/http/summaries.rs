//! Runs as they are shown in lists, kept for the moment in which many listeners ask for the same one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;

use super::view;
use crate::engine::Seq;
use crate::runs::{RunId, Runs, RunsError};

/// How many are kept.
const KEPT: usize = 256;

/// The JSON of runs, each with the length of its log when it was made.
#[derive(Debug)]
pub(super) struct Summaries(Mutex<HashMap<RunId, (Seq, Bytes)>>);

impl Summaries {
    pub(super) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// A run when its log is at least so long. Listeners come one after the other for each change, so only the first one reads.
    pub(super) async fn of(&self, runs: &Runs, run: &RunId, at_least: Seq) -> Result<Bytes, RunsError> {
        if let Some((seq, json)) = self.kept().get(run)
            && *seq >= at_least
        {
            return Ok(json.clone());
        }
        let shown = view::run(runs.show(run).await?);
        // Strings, numbers, and maps whose keys are strings: JSON has them all.
        let json = Bytes::from(serde_json::to_vec(&shown).unwrap_or_default());
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(run.clone(), (at_least, json.clone()));
        Ok(json)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, (Seq, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
