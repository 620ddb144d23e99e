//! What is kept of runs that are over, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use outrigger_abp::receipt::{Check, verify};

use super::id::RunId;
use super::service::{ListQuery, MAX_PAGE, Runs, RunsError};
use super::state::{Moment, Phase};

impl Runs {
    /// The receipt of a run, and whether it holds.
    pub(crate) async fn receipt(&self, run: &RunId) -> Result<Option<(PathBuf, Check)>, RunsError> {
        let Some(receipt) = self.show(run).await?.receipt else { return Ok(None) };
        let path = self.inner.receipts.folder.path().join(&receipt.file);
        let checked = tokio::task::spawn_blocking(move || verify(&path).map(|check| (path, check))).await;
        match checked {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(error)) => Err(unreadable("receipt", &error)),
            Err(error) => Err(unreadable("receipt", &error)),
        }
    }

    /// What changed in the workspace, as a patch.
    pub(crate) async fn patch(&self, run: &RunId) -> Result<Option<Vec<u8>>, RunsError> {
        let Some(patch) = self.show(run).await?.patch else { return Ok(None) };
        let path = self.inner.receipts.folder.path().join(patch);
        match tokio::task::spawn_blocking(move || std::fs::read(path)).await {
            Ok(Ok(bytes)) => Ok(Some(bytes)),
            Ok(Err(error)) => Err(unreadable("patch", &error)),
            Err(error) => Err(unreadable("patch", &error)),
        }
    }

    /// Forgets a run that is over. Its receipt stays.
    pub(crate) async fn forget(&self, run: &RunId) -> Result<(), RunsError> {
        let state = self.show(run).await?;
        if !state.phase.is_over() {
            let what = "it can be forgotten when it is over; cancel it first".to_owned();
            return Err(RunsError::Phase { phase: state.phase, what });
        }
        self.erase(run).await
    }

    async fn erase(&self, run: &RunId) -> Result<(), RunsError> {
        self.inner.engine.forget(&run.log()).await?;
        self.inner.parts.forget(run);
        Ok(())
    }

    /// Forgets runs that have been over for longer than they are kept, or are more than are kept. Says how many.
    pub(crate) async fn tidy(&self) -> Result<usize, RunsError> {
        let over = vec![Phase::Completed, Phase::Failed, Phase::Cancelled];
        let (mut kept, mut forgotten, mut before) = (0, 0, None);
        let now = Moment::now();
        loop {
            let page = self.list(ListQuery { phases: over.clone(), before, limit: MAX_PAGE }).await?;
            for run in &page.runs {
                let age = run.finished_at.map_or(Duration::ZERO, |at| now.since(at));
                if kept >= self.inner.rules.keep_at_most || age > self.inner.rules.keep_for {
                    self.erase(&run.id).await?;
                    forgotten += 1;
                } else {
                    kept += 1;
                }
            }
            before = page.next;
            if before.is_none() {
                return Ok(forgotten);
            }
        }
    }
}

fn unreadable(what: &'static str, why: &dyn std::fmt::Display) -> RunsError {
    RunsError::Unreadable { what, why: why.to_string() }
}
