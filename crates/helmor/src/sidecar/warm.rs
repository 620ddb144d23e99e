//! What is kept warm does not stay for ever, and not in any number.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::core::Core;
use super::sessions::{Place, Session};

/// How often somebody looks.
const LOOKS_EVERY: Duration = Duration::from_secs(15);

/// How long a program may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Ends what is too much, now and as long as there is something warm.
pub(super) fn look_after(core: &Arc<Core>) {
    cool(core);
    let mut warming = core.warming.lock().unwrap_or_else(PoisonError::into_inner);
    if !*warming && core.sessions.any_warm() {
        *warming = true;
        tokio::spawn(look(Arc::clone(core)));
    }
}

async fn look(core: Arc<Core>) {
    let every = LOOKS_EVERY.min(core.warm.at_most.max(Duration::from_millis(10)));
    loop {
        tokio::select! {
            () = sleep(every) => {}
            () = core.closing.cancelled() => return,
        }
        cool(&core);
        let mut warming = core.warming.lock().unwrap_or_else(PoisonError::into_inner);
        if !core.sessions.any_warm() {
            *warming = false;
            return;
        }
    }
}

fn cool(core: &Arc<Core>) {
    for session in core.sessions.cooling(core.warm, Instant::now()) {
        // Taken before anything else can happen to the session: a turn that comes from here on waits for the end.
        let place = session.enter_turn();
        core.tasks.spawn(end(Arc::clone(core), session, place));
    }
}

async fn end(core: Arc<Core>, session: Arc<Session>, place: Place) {
    place.turn().await;
    core.log.debug(format_args!("the program of a session with {} is no longer kept", session.key.0));
    super::turn::close(&core, session.agent(), ENDS_WITHIN).await;
}
