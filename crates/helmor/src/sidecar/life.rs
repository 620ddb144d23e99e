//! How a sidecar ends: the host is told at once, the agents are ended, and nobody is waited for longer than the contract says.

use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::core::Core;
use super::serve::Signal;
use super::turn;
use crate::provider::STOPS_WITHIN;

/// How long a shutdown may take that nobody hurries.
const IN_GOOD_ORDER: Duration = Duration::from_secs(8);

/// How long everything may take when the host is gone, or wants us to be. Drivers get this to end what they started; what is
/// left after it ends with us, because the kernel sees to that. The contract says 2 s for all of it.
const AT_ONCE: Duration = Duration::from_millis(1200);

/// How long a host that reads slowly has for the last lines.
const LAST_WORDS: Duration = Duration::from_millis(250);

const _: () = assert!(STOPS_WITHIN.as_millis() < IN_GOOD_ORDER.as_millis(), "a stop fits into a shutdown");

/// How a sidecar ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As it should: a shutdown, the end of input, or nobody reads.
    InGoodOrder,
    /// By a signal.
    Killed(Signal),
}

impl Exit {
    /// What the process says to its parent.
    #[must_use]
    pub fn code(self) -> ExitCode {
        match self {
            Self::InGoodOrder => ExitCode::SUCCESS,
            Self::Killed(Signal::Terminate) => ExitCode::from(143),
            Self::Killed(Signal::Interrupt) => ExitCode::from(130),
        }
    }
}

/// Waits for what ends a sidecar, and ends it.
pub(super) async fn until_the_end(
    core: &Arc<Core>,
    end_of_input: &CancellationToken,
    killed: impl Future<Output = Signal> + Send,
) -> Exit {
    tokio::pin!(killed);
    let exit = tokio::select! {
        biased;
        () = core.conversation.gone() => {
            stop_all(core, "stdin_closed");
            clear(core, AT_ONCE).await;
            Exit::InGoodOrder
        }
        signal = &mut killed => {
            stop_all(core, "terminated");
            clear(core, AT_ONCE).await;
            Exit::Killed(signal)
        }
        // A shutdown that is the last line is a shutdown.
        () = core.shut_down.cancelled() => shut_down(core, end_of_input, killed).await,
        () = end_of_input.cancelled() => {
            stop_all(core, "stdin_closed");
            clear(core, AT_ONCE).await;
            Exit::InGoodOrder
        }
    };
    // What the host does not read in time is lost.
    let _ = timeout(LAST_WORDS, core.conversation.room(0)).await;
    core.log.info("ended");
    core.log.flush(LAST_WORDS);
    exit
}

async fn shut_down(
    core: &Arc<Core>,
    end_of_input: &CancellationToken,
    killed: impl Future<Output = Signal> + Send,
) -> Exit {
    stop_all(core, "shutdown");
    let latest = Instant::now() + IN_GOOD_ORDER;
    let hurried = async {
        let by = tokio::select! {
            signal = killed => Exit::Killed(signal),
            () = end_of_input.cancelled() => Exit::InGoodOrder,
            () = core.conversation.gone() => Exit::InGoodOrder,
        };
        sleep_until(latest.min(Instant::now() + AT_ONCE)).await;
        by
    };
    let exit = tokio::select! {
        () = clear(core, IN_GOOD_ORDER) => Exit::InGoodOrder,
        exit = hurried => exit,
    };
    let asked = core.shutdown.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply) = asked {
        reply.end("pong", &[]);
    }
    exit
}

/// Nothing new begins, and everything that runs is over for the host.
fn stop_all(core: &Core, reason: &str) {
    core.conversation.close();
    for session in core.sessions.all() {
        turn::stop(&session, reason);
    }
    core.closing.cancel();
}

/// Waits until the drivers have ended what they started, but not longer than this.
async fn clear(core: &Arc<Core>, at_most: Duration) {
    let latest = Instant::now() + at_most;
    core.tasks.close();
    // What is idle ends while what was busy is cleared up.
    let idle = core.sessions.all().into_iter().filter(|session| session.agent().warm_since().is_some());
    let ends: Vec<_> = idle
        .map(|session| {
            let (core, place) = (Arc::clone(core), session.enter_turn());
            tokio::spawn(async move {
                place.turn().await;
                turn::close(&core, session.agent(), at_most).await;
            })
        })
        .collect();
    let all = async {
        core.tasks.wait().await;
        for end in ends {
            let _ = end.await;
        }
        // What a turn kept that has only now been cleared up.
        let late = core.sessions.all().into_iter().filter(|session| session.agent().warm_since().is_some());
        for session in late {
            turn::close(core, session.agent(), at_most).await;
        }
    };
    tokio::select! {
        () = all => {}
        () = sleep_until(latest) => core.log.error("what is left ends with us"),
    }
}
