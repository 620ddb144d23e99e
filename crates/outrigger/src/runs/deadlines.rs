//! Approvals that nobody answered in time.

use std::sync::Arc;
use std::time::Duration;

use super::approval::{Answer, ApprovalId, Choice, DefaultAnswer};
use super::books::Inner;
use super::dispatch::{AFTER_FAILURE, LEASE, sleep};
use super::id::{Actor, RunId};
use super::scribe::DEADLINES;
use super::service::RunsError;
use crate::engine::{ClaimError, Claimed, QueueName};

/// Takes the default of approvals whose time is over, until the daemon leaves.
pub(super) async fn keep(inner: Arc<Inner>) {
    let queue = QueueName(DEADLINES.to_owned());
    let mut draining = inner.draining.subscribe();
    loop {
        let woken = inner.deadlines.notified();
        let pause = match inner.engine.claim(&queue, LEASE).await {
            Ok(Claimed::Work(claim)) => {
                expire(&inner, &claim.key).await;
                if let Err(error @ ClaimError::Engine(_)) = inner.engine.ack(&claim).await {
                    inner.complain(format!("a deadline stays in its queue: {error}"));
                }
                continue;
            }
            Ok(Claimed::NotBefore(then)) => then.left(),
            Ok(Claimed::Nothing) => Duration::MAX,
            Err(error) => {
                inner.complain(format!("the deadlines cannot be read: {error}"));
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = woken => {}
            () = sleep(pause) => {}
            _ = draining.wait_for(|draining| *draining) => return,
        }
    }
}

async fn expire(inner: &Arc<Inner>, key: &str) {
    let Some((run, approval)) = key.split_once('/') else { return };
    let Ok(run) = RunId::parse(run) else { return };
    let Ok(Some((_, state))) = inner.cells.hold(&run).state().await else { return };
    let approval = ApprovalId(approval.to_owned());
    let Some(asked) = state.approvals.iter().find(|asked| asked.id == approval) else { return };
    let choice = match asked.default {
        DefaultAnswer::Approve if asked.choices.contains(&Choice::Approve) => Choice::Approve,
        DefaultAnswer::Approve | DefaultAnswer::Deny => Choice::Deny,
    };
    let answer = Answer { reason: Some("nobody answered in time".to_owned()), ..Answer::plain(choice) };
    // Whoever answered in this very moment was first, or the run is over: both are fine.
    match inner.answer(&run, &approval, answer, Actor::new("deadline")).await {
        Ok(_) | Err(RunsError::Answered { .. } | RunsError::Phase { .. } | RunsError::NoSuchRun(_)) => {}
        Err(error) => inner.complain(format!("the deadline of {key} was not kept: {error}")),
    }
}
