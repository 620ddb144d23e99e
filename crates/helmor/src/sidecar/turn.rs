//! A turn from its request to its end: the driver works in a thread of its own, and whatever it does the host hears of one end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::core::{Core, words};
use super::options::ApiErrors;
use super::reply::{Problem, Reply};
use super::sessions::{Live, Place, STEERS, Session};
use super::stream::Stream;
use crate::protocol::{AgentProxy, SendMessage, Steer};
use crate::provider::{AgentSession, Failure, FailureCode, Outcome, STOPS_WITHIN, Steering, Turn};

/// What a driver gets beyond its time to clean up, before it is dropped.
const GRACE: Duration = Duration::from_secs(1);

/// How long what a dropped driver kept may take to end.
const KILLED_WITHIN: Duration = Duration::from_secs(2);

/// How many bytes may wait when a heartbeat is due. A host that does not read has no use for one.
const WAITING: usize = 64 << 10;

/// `sendMessage`.
pub(super) fn send(core: &Arc<Core>, reply: Reply, mut send: SendMessage) {
    let provider = match core.provider(&send.provider) {
        Ok(provider) => provider,
        Err(problem) => return reply.fail(&problem),
    };
    let session = core.sessions.get_or_make((send.provider.clone(), send.session_id.clone()), &provider);
    core.defaults().fill(&mut send);
    hide(core, &send);
    let (reply, log) = (Arc::new(reply), core.log.clone());
    let stream = Arc::new(Stream { reply, session_id: send.session_id.clone(), log });
    let (stop, (steering, steers)) = (CancellationToken::new(), mpsc::channel(STEERS));
    let live = Live { stream: Arc::clone(&stream), stop: stop.clone(), steering };
    let Some(place) = session.begin(live) else {
        let message = format!("session_busy: a turn of session {} is under way", send.session_id);
        return stream.reply.fail(&Problem::Refused { code: "session_busy", message });
    };
    core.tasks.spawn(beat(Arc::clone(&stream.reply), core.heartbeat));
    let turn = Turn { send, desk: Arc::clone(&stream) as _, stop, steering: steers };
    core.tasks.spawn(run(Arc::clone(core), session, stream, turn, place));
}

/// Says a word on a stream that means nothing, as long as it lasts.
async fn beat(reply: Arc<Reply>, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = reply.over().cancelled() => return,
            _ = ticks.tick() => {}
        }
        if reply.conversation.waiting() <= WAITING {
            reply.tell("heartbeat", &[]);
        }
    }
}

async fn run(core: Arc<Core>, session: Arc<Session>, stream: Arc<Stream>, turn: Turn, place: Place) {
    place.turn().await;
    let stop = turn.stop.clone();
    // A turn that was stopped before it began has nothing to clear up.
    let ended = if stop.is_cancelled() { Ended::Told } else { work(&core, &session, turn, &stop).await };
    session.leave(&stream);
    tell(&core, &stream, ended);
    drop(place);
    super::warm::look_after(&core);
}

enum Ended {
    As(Outcome),
    Internal(String),
    /// Whoever stopped it told the host.
    Told,
}

async fn work(core: &Core, session: &Session, turn: Turn, stop: &CancellationToken) -> Ended {
    let agent = session.agent();
    let working = Arc::clone(&agent);
    let mut task: JoinHandle<Outcome> = match core.drivers.handle() {
        Ok(drivers) => drivers.spawn(async move { working.turn(turn).await }),
        Err(problem) => return Ended::Internal(problem.message()),
    };
    let joined = tokio::select! {
        joined = &mut task => Some(joined),
        () = stop.cancelled() => timeout(STOPS_WITHIN + GRACE, &mut task).await.ok(),
    };
    match joined {
        Some(Ok(outcome)) => Ended::As(outcome),
        Some(Err(error)) => {
            discard(core, session).await;
            panicked(core, error)
        }
        None => {
            core.log
                .error(format_args!("a driver of {} did not stop in time, and is dropped", session.key.0));
            task.abort();
            discard(core, session).await;
            Ended::Told
        }
    }
}

fn panicked(core: &Core, error: JoinError) -> Ended {
    let words = words(error);
    core.log.error(&words);
    Ended::Internal(words)
}

/// Ends what a driver left that did not do as it should; the session goes on with a new one.
async fn discard(core: &Core, session: &Session) {
    let renewed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.renew()));
    let Ok(old) = renewed else { return };
    close(core, old, KILLED_WITHIN).await;
}

/// Lets a driver end what it keeps, for at most so long.
pub(super) async fn close(core: &Core, agent: Arc<dyn AgentSession>, at_most: Duration) {
    let Ok(drivers) = core.drivers.handle() else { return };
    let mut closing = drivers.spawn(async move { agent.close().await });
    if timeout(at_most, &mut closing).await.is_err() {
        closing.abort();
    }
}

fn tell(core: &Core, stream: &Stream, ended: Ended) {
    let reply = &stream.reply;
    match ended {
        Ended::As(Outcome::Ended) => reply.end("end", &[]),
        Ended::As(Outcome::EndedBadly { message }) => ended_badly(reply, &message),
        Ended::As(Outcome::Failed(failure)) if core.api_errors == ApiErrors::End && is_of_api(&failure) => {
            ended_badly(reply, &failure.message)
        }
        Ended::As(Outcome::Failed(failure)) => reply.fail(&Problem::Failed(failure)),
        Ended::As(Outcome::Aborted) | Ended::Told => aborted(reply, "user_requested"),
        Ended::Internal(what) => reply.fail(&Problem::Internal(what)),
    }
}

/// Ends a stream because somebody wanted it to end.
pub(super) fn aborted(reply: &Reply, reason: &str) {
    reply.end("aborted", &[("reason", Value::from(reason))])
}

fn ended_badly(reply: &Reply, message: &str) {
    reply.end("end", &[("isError", Value::from(true)), ("message", Value::from(message))])
}

/// Whether it was the model's server that failed, and not the program.
fn is_of_api(failure: &Failure) -> bool {
    match failure.code {
        FailureCode::Auth | FailureCode::RateLimit | FailureCode::Server | FailureCode::InvalidRequest => {
            true
        }
        FailureCode::NotInstalled
        | FailureCode::AgentExited
        | FailureCode::AgentProtocol
        | FailureCode::Timeout
        | FailureCode::Unsupported
        | FailureCode::Provider => false,
    }
}

/// What a turn brings that must not be in the log.
fn hide(core: &Core, send: &SendMessage) {
    for (name, value) in &send.claude_environment {
        let name = name.to_ascii_uppercase();
        if ["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH"].iter().any(|word| name.contains(word)) {
            core.log.hide(value);
        }
    }
    if let Some(AgentProxy::Custom(url)) = &send.agent_proxy
        && url.contains('@')
    {
        core.log.hide(url);
    }
}

/// `stopSession`: the host is told at once, and the driver clears up behind its back.
pub(super) fn stop(session: &Session, reason: &str) {
    if let Some(live) = session.take_live() {
        aborted(&live.stream.reply, reason);
        live.stop.cancel();
    }
}

/// `steerSession`: it is handed over at once; the future says whether it was taken, and if not, why.
pub(super) fn steer(
    session: Option<&Session>,
    steer: Steer,
) -> impl Future<Output = Result<(), String>> + Send + 'static {
    let none = || "no_active_turn".to_owned();
    let (taken, answer) = oneshot::channel();
    let handed = match session.and_then(Session::steering) {
        None => Err(none()),
        Some((steering, over)) => match steering.try_send(Steering { steer, taken }) {
            Ok(()) => Ok(over),
            Err(mpsc::error::TrySendError::Full(_)) => Err("too many steers wait".to_owned()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(none()),
        },
    };
    async move {
        let over = handed?;
        tokio::select! {
            // A steer that was taken just before the end was taken.
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(none())),
            () = over.cancelled() => Err(none()),
        }
    }
}
