//! Stories of the runs that somebody looks at, so that a page that looks again reads only what is new.

use std::sync::{Arc, Mutex, PoisonError};

use super::story::Story;
use crate::engine::Seq;
use crate::runs::{Line, RunId, RunState, Runs, RunsError};

/// How many are kept. Each is bounded by a few megabytes.
const KEPT: usize = 8;
/// Records that are read at once.
const AT_ONCE: usize = 500;

/// The stories that are kept. Clones are the same.
#[derive(Clone, Default)]
pub(in super::super) struct Stories {
    kept: Arc<Mutex<Vec<Kept>>>,
}

struct Kept {
    run: RunId,
    story: Arc<Story>,
}

impl Stories {
    pub(in super::super) fn new() -> Self {
        Self::default()
    }

    /// The story of a run up to now.
    pub(in super::super) async fn of(&self, runs: &Runs, state: &RunState) -> Result<Arc<Story>, RunsError> {
        let run = &state.id;
        // A run that was forgotten may have left its name to another one.
        let same = |story: &Arc<Story>| story.begun == Some(state.created_at);
        let mut story = self.take(run).filter(same).unwrap_or_default();
        loop {
            let records = runs.events(run, story.seq, AT_ONCE).await?;
            let Some(last) = records.last().map(|numbered| numbered.seq) else { break };
            let whole = Arc::make_mut(&mut story);
            for record in &records {
                // A record that cannot be read was written by another version; the log page has it.
                if let Ok(line) = Line::read(&record.record) {
                    whole.fold(record.seq, &line);
                }
            }
            whole.seq = last.max(Seq(whole.seq.0));
        }
        self.keep(run, &story);
        Ok(story)
    }

    fn take(&self, run: &RunId) -> Option<Arc<Story>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.run == *run).map(|kept| Arc::clone(&kept.story))
    }

    fn keep(&self, run: &RunId, story: &Arc<Story>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Two pages may have read at the same time; the one that came further wins.
        let further = kept.iter().any(|known| {
            known.run == *run && known.story.begun == story.begun && known.story.seq > story.seq
        });
        if !further {
            kept.retain(|known| known.run != *run);
            kept.push(Kept { run: run.clone(), story: Arc::clone(story) });
            let old = kept.len().saturating_sub(KEPT);
            kept.drain(..old);
        }
    }
}
