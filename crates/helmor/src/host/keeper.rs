//! Keeps one process: passes on that it is to leave, and tells everybody when it is gone and how.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::{ChildEvent, Events, Heard, Request, Session, SessionHandle};
use outrigger_supervise::report::Report;
use outrigger_supervise::state::{Cause, Fault, Incarnation};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::connection::Connection;
use super::error::{BridgeError, Lost};
use super::starts::Deaths;

/// Between the end of its output and the report on its process is only the kernel, unless it has closed its output on purpose.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// When it is gone, what it had said is in the pipe already.
const LAST_LINES: Duration = Duration::from_secs(2);

pub(super) struct Keeper {
    pub(super) name: String,
    pub(super) connection: Arc<Connection>,
    pub(super) session: Session,
    pub(super) events: Events,
    pub(super) reader: JoinHandle<()>,
    pub(super) deaths: Arc<Mutex<Deaths>>,
}

impl Keeper {
    /// Keeps it until it is gone.
    pub(super) async fn keep(mut self) {
        let (incarnation, handle) = (self.session.incarnation, self.session.handle());
        let report = loop {
            tokio::select! {
                biased;
                request = self.session.requests.recv() => match request {
                    Some(Request::Leave { within }) => leave(&self.connection, &handle, within),
                    // It is never pinged.
                    Some(Request::Ping(_)) => {}
                    None => break report_on(incarnation, &mut self.events).await,
                },
                report = report_on(incarnation, &mut self.events) => break report,
                _ = &mut self.reader => {
                    let report = timeout(LAST_WORDS, report_on(incarnation, &mut self.events)).await;
                    break match report {
                        Ok(report) => report,
                        Err(_) => {
                            handle.fault(Fault::ChannelLost, "it closed its standard output").await;
                            report_on(incarnation, &mut self.events).await
                        }
                    };
                }
            }
        };
        if !self.reader.is_finished() && timeout(LAST_LINES, &mut self.reader).await.is_err() {
            // Whoever else has its standard output is not waited for.
            self.reader.abort();
        }
        let lost = Lost { what: words(&self.name, report.as_deref()), report };
        let cause = lost.report.as_ref().map(|report| report.cause);
        if !matches!(cause, Some(Cause::Requested | Cause::Restarted)) {
            let mut deaths = self.deaths.lock().unwrap_or_else(PoisonError::into_inner);
            deaths.died(Instant::now(), lost.clone());
        }
        self.connection.lose(&lost);
    }
}

/// Asks it to leave, without anybody waiting for that.
fn leave(connection: &Arc<Connection>, handle: &SessionHandle, within: Duration) {
    let (connection, handle) = (Arc::clone(connection), handle.clone());
    tokio::spawn(async move {
        match connection.ask("shutdown", &json!({}), within).await {
            // One that takes its time gets its time, and one that is gone already is fine.
            Ok(_) | Err(BridgeError::Late { .. } | BridgeError::Lost { .. }) => {}
            Err(_) => handle.cannot_ask().await,
        }
    });
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

/// How a process ended, in one sentence.
fn words(name: &str, report: Option<&Report>) -> String {
    let Some(report) = report else { return format!("sidecar `{name}` is gone") };
    let how = report.status.map_or_else(|| "nobody knows how".to_owned(), |status| status.to_string());
    match report.cause {
        Cause::Requested | Cause::Restarted => format!("sidecar `{name}` was stopped ({how})"),
        Cause::Unhealthy => format!("sidecar `{name}` did not answer and was killed"),
        Cause::WriteStall => format!("sidecar `{name}` did not read its input and was killed"),
        _ => format!("sidecar `{name}` exited unexpectedly ({how})"),
    }
}
