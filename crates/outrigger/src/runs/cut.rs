//! Attempts that ended with their daemon: what they left is read, and they count as ended.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::backend::told;
use super::books::Inner;
use super::cell::{Cell, Change, ChangeError};
use super::entry::{Attempted, Entry, Finished, Note};
use super::state::{Moment, Phase, Receipt};

/// How often an attempt may die with its daemon before the run is given up.
const INTERRUPTIONS: u32 = 5;

/// How the end of a daemon met an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Killed,
    Drained,
    Unbegun,
}

impl Cut {
    fn words(self) -> &'static str {
        match self {
            Self::Killed => "the daemon was killed during the attempt",
            Self::Drained => "the daemon went down during the attempt",
            Self::Unbegun => "the daemon went down before the attempt began",
        }
    }
}

/// The same as [`interrupted`], for whoever can do nothing about it.
pub(super) async fn write(inner: &Arc<Inner>, cell: &Cell, cut: Cut) {
    if let Err(why) = interrupted(inner, cell, cut).await {
        inner.complain(format!("the end of an attempt cannot be written down: {why}"));
    }
}

/// An attempt ended with its daemon: it counts as ended, with the receipt that was made of what it left.
pub(super) async fn interrupted(inner: &Arc<Inner>, cell: &Cell, cut: Cut) -> Result<(), String> {
    let standing = cell.state().await.map_err(|error| error.to_string())?;
    let left = match standing {
        None => None,
        Some((_, state)) => {
            let inner = Arc::clone(inner);
            let looking = tokio::task::spawn_blocking(move || inner.left_by(&state));
            looking.await.map_err(|error| error.to_string())?
        }
    };
    let changed = cell.change(|state| {
        if !state.underway || state.phase.is_over() {
            return Ok(Change { entries: Vec::new(), work: Vec::new(), out: () });
        }
        let entry = match &left {
            // It had ended; only nobody had said so yet.
            Some(LeftBehind { ended: Some(ended), receipt, .. }) => Entry::Finished(Finished {
                phase: ended.phase,
                error: ended.error.clone(),
                ending: ended.ending.clone(),
                receipt: Some(receipt.clone()),
                spent: state.spent,
                value: None,
                patch: ended.patch.clone(),
            }),
            left => {
                let error = cut.words();
                let receipt = left.as_ref().map(|left| left.receipt.clone());
                let in_place = state.in_place && cut != Cut::Unbegun;
                if state.attempt >= INTERRUPTIONS || in_place {
                    let why = match in_place {
                        true => format!(
                            "{error}, which worked in place; look at what it did before you run it again"
                        ),
                        false => {
                            format!("{error}; that was attempt {}, and there are no more", state.attempt)
                        }
                    };
                    Entry::Finished(Finished {
                        phase: Phase::Failed,
                        error: Some(why),
                        ending: "exited".to_owned(),
                        receipt,
                        spent: state.spent,
                        value: None,
                        patch: None,
                    })
                } else {
                    Entry::Attempted(Attempted {
                        attempt: state.attempt,
                        error: error.to_owned(),
                        receipt,
                        next_backend: state.backend.clone(),
                        not_before: Moment::now(),
                        interrupted: true,
                    })
                }
            }
        };
        let mut entries = match left.as_ref().map(|left| &left.events) {
            None => Vec::new(),
            Some(Ok(events)) => {
                let known = usize::try_from(state.attempt_events).unwrap_or(usize::MAX);
                let missing = (state.attempt_events + 1..).zip(events.iter().skip(known));
                missing.map(|(number, event)| told(state.attempt, number, event.clone())).collect()
            }
            Some(Err(why)) => {
                let text = format!("the last words of the attempt may be in its receipt only: {why}");
                vec![Entry::Note(Note { text })]
            }
        };
        entries.push(entry);
        Ok::<_, std::convert::Infallible>(Change { entries, work: Vec::new(), out: () })
    });
    match changed.await {
        Ok(_) | Err(ChangeError::NoSuchRun) => Ok(()),
        Err(ChangeError::Engine(error)) => Err(error.to_string()),
        Err(ChangeError::Refused(never)) => match never {},
    }
}

/// What an attempt that died with its daemon left in the folder of receipts.
pub(crate) struct LeftBehind {
    pub(crate) receipt: Receipt,
    /// How it ended, if it had ended before the daemon died.
    pub(crate) ended: Option<LeftEnd>,
    /// Its events, or why they cannot be had. The log may lack the last of them: they were on their way.
    pub(crate) events: Result<Vec<Box<RawValue>>, String>,
}

/// How an attempt had ended.
pub(crate) struct LeftEnd {
    pub(crate) phase: Phase,
    pub(crate) error: Option<String>,
    pub(crate) ending: String,
    pub(crate) patch: Option<String>,
}
