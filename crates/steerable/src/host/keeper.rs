//! Keeps a sidecar over all its processes: waits until each is ready, answers its supervisor, and tells everybody when it is gone.

use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, ChildEvent, Events, Heard, Request, Session, SessionHandle};
use outrigger_supervise::report::Report;
use outrigger_supervise::state::{Cause, Fault, Incarnation, PingSeq};
use outrigger_wire::peer::End;
use tokio::sync::watch;
use tokio::time::timeout;

use super::connection::Connection;
use super::end::Lost;
use super::error::{CallError, StartError, StartErrorKind};
use super::marker;
use super::reverse::Reverse;
use super::sidecar::{Hello, Standing};
use super::terms::{Pulse, ReadyBy, Terms};
use crate::protocol::Ready;

/// When a process is gone its readers get this long to take what it had said; what does not fit afterwards is counted.
const READERS: Duration = Duration::from_secs(2);

pub(super) struct Keeper {
    pub(super) child: Child,
    pub(super) terms: Terms,
    pub(super) reverse: Arc<dyn Reverse>,
    pub(super) markers: watch::Receiver<Option<(Incarnation, marker::Found)>>,
    pub(super) events: Events,
    pub(super) standing: watch::Sender<Standing>,
}

/// A process that is ready.
pub(super) struct Up {
    pub(super) connection: Arc<Connection>,
    pub(super) hello: Arc<Hello>,
    session: Session,
}

/// What came of a process.
pub(super) enum Begun {
    Up(Box<Up>),
    /// It did not become ready; another one may.
    Failed(Box<StartError>),
    /// No more will come.
    Over,
}

impl Keeper {
    /// Waits for the next process and until it is ready.
    pub(super) async fn begin(&mut self) -> Begun {
        let Some(mut session) = self.child.next_session().await else { return Begun::Over };
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return self.failed(StartErrorKind::Spawn, "was started without pipes", None);
        };
        let (incarnation, handle) = (session.incarnation, session.handle());
        let reverse = Arc::clone(&self.reverse);
        let connection = Connection::open((incarnation, session.pid), (stdin, stdout), reverse, &self.terms);
        let sign = tokio::select! {
            biased;
            sign = sign(self.terms.ready, incarnation, &mut self.markers, connection.ready.clone()) => sign,
            end = connection.peer.ended() => {
                handle.fault(fault(&end), format!("before it was ready: {end}")).await;
                let report = report_on(incarnation, &mut self.events).await;
                return self.ended_before_ready(&connection, report);
            }
            report = report_on(incarnation, &mut self.events) => return self.ended_before_ready(&connection, report),
        };
        let (kind, what) = match sign {
            Ok(hello) if hello.is_compatible() => {
                handle.attached().await;
                return Begun::Up(Box::new(Up { connection, hello: Arc::new(hello), session }));
            }
            Ok(hello) => {
                let what = format!("speaks protocol {:?}, and this host speaks 0.*", hello.protocol_version);
                (StartErrorKind::Incompatible, what)
            }
            Err(what) => (StartErrorKind::Garbled, what),
        };
        let judged = match kind {
            StartErrorKind::Incompatible => Fault::Incompatible,
            _ => Fault::ProtocolViolation,
        };
        handle.fault(judged, &*what).await;
        let report = report_on(incarnation, &mut self.events).await;
        self.failed(kind, what, report)
    }

    /// Keeps it until it is gone for good.
    pub(super) async fn keep(mut self, first: Up) {
        let mut up = first;
        loop {
            self.standing.send_replace(Standing::Ready {
                connection: up.connection.clone(),
                hello: Arc::clone(&up.hello),
            });
            let lost = self.attend(up).await;
            self.standing.send_replace(Standing::Restarting(lost.clone()));
            up = match self.next(lost).await {
                Ok(up) => *up,
                Err(lost) => {
                    self.standing.send_replace(Standing::Over(lost));
                    return;
                }
            };
        }
    }

    /// The next process that becomes ready, or how the last one ended.
    async fn next(&mut self, mut lost: Lost) -> Result<Box<Up>, Lost> {
        loop {
            match self.begin().await {
                Begun::Up(up) => return Ok(up),
                Begun::Failed(error) => {
                    lost = Lost { what: format!("`{}` {}", error.name, error.what), report: error.report };
                }
                Begun::Over => return Err(lost),
            }
        }
    }

    /// Serves the supervisor until the process is gone, and says how it went.
    async fn attend(&mut self, up: Up) -> Lost {
        let Up { connection, mut session, .. } = up;
        let (incarnation, handle) = (connection.incarnation, session.handle());
        let report = loop {
            tokio::select! {
                biased;
                request = session.requests.recv() => match request {
                    Some(Request::Ping(seq)) => self.ping(&connection, &handle, seq),
                    Some(Request::Leave { within }) => leave(&connection, &handle, within),
                    // Nobody will ask any more; what is left is to hear how it ends.
                    None => break report_on(incarnation, &mut self.events).await,
                },
                report = report_on(incarnation, &mut self.events) => break report,
                end = connection.peer.ended() => {
                    handle.fault(fault(&end), end.to_string()).await;
                    break report_on(incarnation, &mut self.events).await;
                }
            }
        };
        connection.give_up_reverse_calls();
        if timeout(READERS, connection.peer.ended()).await.is_err() {
            connection.hub.hurry_all();
            // Whoever else has its standard output is not waited for.
            let _ = timeout(READERS, connection.peer.ended()).await;
        }
        let lost = Lost { what: self.words(report.as_deref()), report };
        connection.lose(&lost);
        lost
    }

    /// Passes a ping on. Only a ping that is answered is a sign of life, except that we cannot hear the answer while one
    /// of its streams is full.
    fn ping(&self, connection: &Arc<Connection>, handle: &SessionHandle, seq: PingSeq) {
        let Pulse::Ping { every, .. } = self.terms.pulse else { return };
        let (connection, handle) = (Arc::clone(connection), handle.clone());
        tokio::spawn(async move {
            let mut held = connection.hub.held();
            let is_alive = tokio::select! {
                biased;
                answer = connection.call("system.ping", None, every) => match answer {
                    Ok(_) | Err(CallError::Remote { .. } | CallError::Unreadable { .. }) => true,
                    Err(_) => false,
                },
                _ = held.wait_for(|held| *held) => true,
            };
            if is_alive {
                handle.pong(seq).await;
            }
        });
    }

    fn ended_before_ready(&self, connection: &Connection, report: Option<Arc<Report>>) -> Begun {
        let cause = report.as_ref().map(|report| report.cause);
        let what = self.words(report.as_deref());
        connection.lose(&Lost { what, report: report.clone() });
        let late = || format!("was not ready within {:?}", self.terms.ready_within);
        match cause {
            Some(Cause::StartupTimeout) => self.failed(StartErrorKind::Late, late(), report),
            Some(Cause::ChannelLost) => {
                self.failed(StartErrorKind::Exited, "closed its standard output before it was ready", report)
            }
            _ => self.failed(StartErrorKind::Exited, "ended before it was ready", report),
        }
    }

    fn failed(&self, kind: StartErrorKind, what: impl Into<String>, report: Option<Arc<Report>>) -> Begun {
        Begun::Failed(Box::new(self.start_error(kind, what, report)))
    }

    pub(super) fn start_error(
        &self,
        kind: StartErrorKind,
        what: impl Into<String>,
        report: Option<Arc<Report>>,
    ) -> StartError {
        let stderr = match &report {
            Some(report) => report.stderr.clone(),
            None => self.child.stderr_tail(),
        };
        StartError { kind, name: self.child.name().to_owned(), what: what.into(), report, stderr }
    }

    /// How a process ended, in one sentence.
    fn words(&self, report: Option<&Report>) -> String {
        let name = self.child.name();
        let Some(report) = report else { return format!("sidecar `{name}` is gone") };
        let how = report.status.map_or_else(|| "nobody knows how".to_owned(), |status| status.to_string());
        match report.cause {
            Cause::Requested => format!("sidecar `{name}` was stopped ({how})"),
            Cause::Restarted => format!("sidecar `{name}` was restarted ({how})"),
            Cause::Unhealthy => format!("sidecar `{name}` did not answer its pings and was killed"),
            cause => format!("sidecar `{name}` is gone: {cause}, {how}"),
        }
    }
}

/// Asks it to leave, without anybody waiting for that.
fn leave(connection: &Arc<Connection>, handle: &SessionHandle, within: Duration) {
    let (connection, handle) = (Arc::clone(connection), handle.clone());
    tokio::spawn(async move {
        if !connection.say_goodbye(within).await {
            handle.cannot_ask().await;
        }
    });
}

/// Waits until the process says that it is ready; `Err` if it says so in words that are none.
async fn sign(
    by: ReadyBy,
    incarnation: Incarnation,
    markers: &mut watch::Receiver<Option<(Incarnation, marker::Found)>>,
    mut notified: watch::Receiver<Option<Result<Ready, String>>>,
) -> Result<Hello, String> {
    let marker = async {
        let found = markers.wait_for(|found| found.as_ref().is_some_and(|(of, _)| *of == incarnation)).await;
        let found = found.ok().and_then(|found| found.clone());
        match found {
            Some((_, Ok(health))) => Ok(Hello::of_health(health)),
            Some((_, Err(what))) => Err(format!("wrote a ready marker without a health: {what}")),
            // Nobody looks any more, so the process is gone, and others tell that.
            None => std::future::pending().await,
        }
    };
    let notification = async {
        let heard = notified.wait_for(Option::is_some).await.ok().and_then(|heard| heard.clone());
        match heard {
            Some(Ok(ready)) => Ok(Hello::of_ready(ready)),
            Some(Err(what)) => Err(format!("sent a lifecycle.ready that says nothing: {what}")),
            None => std::future::pending().await,
        }
    };
    match by {
        ReadyBy::Marker => marker.await,
        ReadyBy::Notification => notification.await,
        ReadyBy::Either => tokio::select! {
            biased;
            sign = marker => sign,
            sign = notification => sign,
        },
    }
}

/// Waits for the end of a process.
async fn report_on(incarnation: Incarnation, events: &mut Events) -> Option<Arc<Report>> {
    loop {
        match events.next().await {
            Some(Heard::Event(ChildEvent::Ended(report))) if report.incarnation >= incarnation => {
                return Some(report);
            }
            Some(Heard::Event(_) | Heard::Missed(_)) => {}
            None => return None,
        }
    }
}

fn fault(end: &End) -> Fault {
    match end {
        End::RemoteClosed | End::Closed | End::Dropped | End::Read { .. } | End::Write { .. } => {
            Fault::ChannelLost
        }
        End::Line(_) | End::Violation(_) => Fault::ProtocolViolation,
        End::WriteStall { .. } => Fault::WriteStall,
    }
}
