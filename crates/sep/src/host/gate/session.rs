//! Where a session is: what the desk knows before it looks at a request.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::protocol::{Fault, HostMethod, State, V1_0, Version};

/// How long a request that was begun before the suspension may go on.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The host has asked it to initialize, and it has not answered.
    Attached,
    /// It has answered, and the host is looking at the answer. What it asks for meanwhile waits for a moment.
    Opening,
    /// Requests are served.
    Open,
    /// The platform does not want it to do anything, since then.
    Suspended(Instant),
    /// It was asked to leave.
    Leaving,
}

/// Where a session is, and its version once there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) phase: Phase,
    pub(super) version: Version,
}

/// The state of a session, for those who ask and for those who wait.
#[derive(Debug)]
pub(super) struct Session(watch::Sender<Standing>);

impl Session {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Standing { phase: Phase::Attached, version: V1_0 }))
    }

    pub(super) fn standing(&self) -> Standing {
        *self.0.borrow()
    }

    /// Goes on, if `next` says so. Leaving is for good.
    pub(super) fn go(&self, next: impl FnOnce(Standing) -> Option<Standing>) {
        self.0.send_if_modified(|standing| match next(*standing) {
            Some(next) if standing.phase != Phase::Leaving => {
                *standing = next;
                true
            }
            Some(_) | None => false,
        });
    }

    /// Whether a request can be looked at.
    pub(super) fn admits(&self, method: Option<HostMethod>) -> Result<(), Fault> {
        match (self.standing().phase, method) {
            (Phase::Leaving, _) => Err(Fault::ShuttingDown),
            (Phase::Suspended(_), _) => Err(Fault::Suspended { state: State::Suspended }),
            (Phase::Attached | Phase::Opening | Phase::Open, Some(HostMethod::Attach)) => {
                Err(Fault::AlreadyInitialized)
            }
            (Phase::Attached, _) => Err(Fault::NotInitialized),
            (Phase::Opening | Phase::Open, _) => Ok(()),
        }
    }

    /// Ends when the session has been suspended for so long that what was begun before must end.
    pub(super) fn patience_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut standing = self.0.subscribe();
        async move {
            loop {
                let suspended = |standing: &Standing| matches!(standing.phase, Phase::Suspended(_));
                let Ok(Standing { phase: Phase::Suspended(since), .. }) =
                    standing.wait_for(suspended).await.map(|standing| *standing)
                else {
                    // The session is gone, and with it whoever waits here.
                    return std::future::pending().await;
                };
                // A session may have resumed and be suspended anew before anybody looks; then its time begins anew too.
                let same = Phase::Suspended(since);
                tokio::select! {
                    biased;
                    _ = standing.wait_for(|standing| standing.phase != same) => {}
                    () = sleep_until(since + GRACE) => return,
                }
            }
        }
    }

    /// Ends when the host has looked at the answer to its first call.
    pub(super) fn decided(&self) -> impl Future<Output = Standing> + Send + use<> {
        let mut standing = self.0.subscribe();
        async move {
            let decided = standing.wait_for(|standing| standing.phase != Phase::Opening).await;
            decided.map_or(Standing { phase: Phase::Leaving, version: V1_0 }, |standing| *standing)
        }
    }
}
