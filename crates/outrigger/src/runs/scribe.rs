//! Writes down what an attempt tells, in order, as much at once as has come.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::approval::{Approval, ApprovalId};
use super::backend::{NewApproval, Telling, told};
use super::books::Inner;
use super::cell::{Cell, Change, ChangeError};
use super::entry::Entry;
use super::state::{Moment, RunState};
use crate::engine::{Millis, QueueName, Work};

/// How much is written at once.
const BATCH: usize = 128;

/// The most that one run may ask people.
const MAX_APPROVALS: usize = 512;

/// Where deadlines wait.
pub(super) const DEADLINES: &str = "deadlines";

/// Writes until the attempt has nothing more to say. Ends early when the run cannot be written, which closes the channel and so
/// ends the attempt.
pub(super) async fn write(
    inner: Arc<Inner>,
    cell: Arc<Cell>,
    attempt: u32,
    mut tellings: mpsc::Receiver<Telling>,
) -> Result<(), String> {
    let mut batch = Vec::with_capacity(BATCH);
    while tellings.recv_many(&mut batch, BATCH).await > 0 {
        write_batch(&cell, attempt, std::mem::take(&mut batch)).await?;
        // There may be a deadline among it.
        inner.deadlines.notify_one();
    }
    Ok(())
}

async fn write_batch(cell: &Cell, attempt: u32, batch: Vec<Telling>) -> Result<(), String> {
    let changed = cell.change(|state| {
        if state.phase.is_over() || state.attempt != attempt {
            return Err("the run has gone on without this attempt".to_owned());
        }
        Ok(entries(state, attempt, &batch))
    });
    let (_, asked) = changed.await.map_err(|error| match error {
        ChangeError::NoSuchRun => "the run was forgotten".to_owned(),
        ChangeError::Refused(why) => why,
        ChangeError::Engine(error) => error.to_string(),
    })?;
    let mut asked = asked.into_iter();
    for telling in batch {
        match telling {
            Telling::Event(_) | Telling::Entry(_) => {}
            Telling::Ask(_, written) => answer(written, asked.next().flatten()),
            // Whoever waited for it may have left.
            Telling::Flush(written) => drop(written.send(())),
        }
    }
    Ok(())
}

fn answer(written: oneshot::Sender<Approval>, asked: Option<Approval>) {
    if let Some(asked) = asked {
        // Whoever asked may have left; it is asked all the same.
        drop(written.send(asked));
    }
}

/// What a batch means for a run that stands like this: its entries, and for each thing that was asked what was written, unless too
/// much was asked already.
fn entries(state: &RunState, attempt: u32, batch: &[Telling]) -> Change<Vec<Option<Approval>>> {
    let mut number = state.attempt_events;
    let mut approvals = state.approvals.len();
    let mut change = Change { entries: Vec::new(), work: Vec::new(), out: Vec::new() };
    for telling in batch {
        match telling {
            Telling::Event(event) => {
                number += 1;
                change.entries.push(told(attempt, number, event.clone()));
            }
            Telling::Entry(entry) => change.entries.push((**entry).clone()),
            Telling::Flush(_) => {}
            Telling::Ask(new, _) => {
                // A script that was taken up again may ask what it has asked before.
                let same = |old: &&Approval| old.attempt == attempt && old.key == new.key && old.is_open();
                if let Some(old) = state.approvals.iter().find(same) {
                    change.out.push(Some(old.clone()));
                    continue;
                }
                if approvals >= MAX_APPROVALS {
                    change.out.push(None);
                    continue;
                }
                approvals += 1;
                let approval = approval(new, attempt, approvals);
                if let Some(deadline) = approval.deadline {
                    change.work.push(deadline_work(state, &approval, deadline));
                }
                change.entries.push(Entry::Asked(approval.clone()));
                change.out.push(Some(approval));
            }
        }
    }
    change
}

fn approval(new: &NewApproval, attempt: u32, number: usize) -> Approval {
    let NewApproval { key, tool, input, input_sha256, reason, choices, deadline, default } = new.clone();
    Approval {
        id: ApprovalId(format!("a{number}")),
        attempt,
        key,
        tool,
        input,
        input_sha256,
        reason,
        choices,
        asked_at: Moment::now(),
        deadline,
        default,
        given: None,
    }
}

fn deadline_work(state: &RunState, approval: &Approval, deadline: Moment) -> Work {
    Work {
        queue: QueueName(DEADLINES.to_owned()),
        key: format!("{}/{}", state.id, approval.id.0),
        due: Millis(u64::try_from(deadline.0.unix_millis()).unwrap_or(0)),
    }
}
