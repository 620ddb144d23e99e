//! One sidecar over all its processes: started, called, restarted, stopped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_supervise::logs::LogLine;
use outrigger_supervise::report::Report;
use outrigger_supervise::state::Ladder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::connection::{Connection, Goodbye, raw};
use super::end::Lost;
use super::error::{CallError, StartError, StartErrorKind};
use super::hub::NotOpened;
use super::keeper::{Begun, Keeper};
use super::marker;
use super::members::members;
use super::reverse::Reverse;
use super::spec::SidecarSpec;
use super::stream::{Stream, StreamId};
use super::terms::{ReadyBy, Terms};
use crate::protocol::{Health, Ready};

/// A sidecar. Clones are the same sidecar; dropping the last one kills it with everything it started, and ends its streams.
#[derive(Clone)]
pub struct Sidecar {
    inner: Arc<Inner>,
}

struct Inner {
    child: Child,
    terms: Terms,
    standing: watch::Receiver<Standing>,
    keeper: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.keeper.abort();
        if let Standing::Ready { connection, .. } = &*self.standing.borrow() {
            connection.lose(&Lost { what: "the host let go of the sidecar".to_owned(), report: None });
        }
    }
}

/// Where a sidecar is right now.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    Ready { connection: Arc<Connection>, hello: Arc<Hello> },
    Restarting(Lost),
    Over(Lost),
}

/// What a sidecar said of itself when it became ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The program's version.
    pub version: String,
    /// The protocol's version; empty if it did not say.
    pub protocol_version: String,
    /// Its health, if it was the marker that made it ready.
    pub health: Option<Health>,
}

impl Hello {
    pub(super) fn of_health(health: Health) -> Self {
        let (version, protocol_version) = (health.version.clone(), health.protocol_version.clone());
        Self { version, protocol_version, health: Some(health) }
    }

    pub(super) fn of_ready(ready: Ready) -> Self {
        Self { version: ready.version, protocol_version: ready.protocol_version, health: None }
    }

    /// Every release so far says 0.1.0; another major is another protocol.
    pub(super) fn is_compatible(&self) -> bool {
        self.protocol_version.is_empty() || self.protocol_version.split('.').next() == Some("0")
    }
}

/// What was irregular about a process so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular {
    /// Lines on its standard output that were no messages.
    pub noise: u64,
    /// Notifications of streams that nobody had asked for or that were over.
    pub strays: u64,
}

impl Sidecar {
    /// Starts a sidecar and waits until it is ready. One that fails here is dead when this returns; one that fails later
    /// is treated as [`Terms::restart`] says.
    ///
    /// # Errors
    /// When it cannot be started, ends or takes too long, or says that it is ready in a way that is not understood.
    pub async fn start(
        supervisor: &Supervisor,
        spec: &SidecarSpec,
        terms: Terms,
        reverse: Arc<dyn Reverse>,
    ) -> Result<Self, StartError> {
        let (found, markers) = watch::channel(None);
        let stderr = match terms.ready {
            ReadyBy::Marker | ReadyBy::Either => {
                let (copy, heard) = mpsc::channel(16);
                // Ends with the child, which has the other end.
                tokio::spawn(marker::look(heard, found));
                Some(copy)
            }
            ReadyBy::Notification => None,
        };
        let child = supervisor.start(spec.supervised(&terms, stderr)).map_err(|error| StartError {
            kind: StartErrorKind::Spawn,
            name: spec.name.clone(),
            what: format!("cannot be started: {error}"),
            report: None,
            stderr: Vec::new(),
        })?;
        let events = child.events();
        // The keeper replaces this as soon as there is something to say.
        let (standing, seen) =
            watch::channel(Standing::Restarting(Lost { what: "not yet started".to_owned(), report: None }));
        let mut keeper =
            Keeper { child: child.clone(), terms: terms.clone(), reverse, markers, events, standing };
        let up = match keeper.begin().await {
            Begun::Up(up) => *up,
            Begun::Failed(error) => {
                child.kill().await;
                return Err(*error);
            }
            Begun::Over => {
                let report = child.last_report();
                return Err(keeper.start_error(StartErrorKind::Spawn, "could not be started", report));
            }
        };
        let mut ready = seen.clone();
        let keeper = tokio::spawn(keeper.keep(up)).abort_handle();
        let sidecar = Self { inner: Arc::new(Inner { child, terms, standing: seen, keeper }) };
        // The keeper's first act; it cannot end before that.
        let _ = ready.wait_for(|standing| matches!(standing, Standing::Ready { .. })).await;
        Ok(sidecar)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.child.name()
    }

    /// Its process, while there is one that is ready.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.inner.standing.borrow() {
            Standing::Ready { connection, .. } => Some(connection.pid.get()),
            Standing::Restarting(_) | Standing::Over(_) => None,
        }
    }

    /// What its process said of itself, while there is one that is ready.
    #[must_use]
    pub fn hello(&self) -> Option<Hello> {
        match &*self.inner.standing.borrow() {
            Standing::Ready { hello, .. } => Some(Hello::clone(hello)),
            Standing::Restarting(_) | Standing::Over(_) => None,
        }
    }

    /// Waits until it is ready: at once if it is, after a restart if one is under way.
    ///
    /// # Errors
    /// When it is gone for good.
    pub async fn ready(&self) -> Result<Hello, Lost> {
        let mut standing = self.inner.standing.clone();
        loop {
            match standing.borrow_and_update().clone() {
                Standing::Ready { hello, .. } => return Ok(Hello::clone(&hello)),
                Standing::Over(lost) => return Err(lost),
                Standing::Restarting(_) => {}
            }
            if standing.changed().await.is_err() {
                return Err(Lost { what: "the host let go of the sidecar".to_owned(), report: None });
            }
        }
    }

    /// Waits until its current process is gone, and says how. Returns at once if there is none.
    pub async fn lost(&self) -> Lost {
        let mut standing = self.inner.standing.clone();
        let gone = standing.wait_for(|standing| !matches!(standing, Standing::Ready { .. })).await;
        match gone.as_deref() {
            Ok(Standing::Restarting(lost) | Standing::Over(lost)) => lost.clone(),
            Ok(Standing::Ready { .. }) | Err(_) => Lost {
                what: "the host let go of the sidecar".to_owned(),
                report: self.inner.child.last_report(),
            },
        }
    }

    /// Its last lines on standard error.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<LogLine> {
        self.inner.child.stderr_tail()
    }

    /// What was irregular about its current process so far.
    #[must_use]
    pub fn irregular(&self) -> Irregular {
        match &*self.inner.standing.borrow() {
            Standing::Ready { connection, .. } => {
                Irregular { noise: connection.noise(), strays: connection.hub.strays() }
            }
            Standing::Restarting(_) | Standing::Over(_) => Irregular { noise: 0, strays: 0 },
        }
    }

    /// Replaces its process by a fresh one and waits until that is ready. Streams are lost; sessions can be resumed.
    ///
    /// # Errors
    /// When it does not come back.
    pub async fn restart(&self) -> Result<Hello, Lost> {
        let mut standing = self.inner.standing.clone();
        let before = match &*standing.borrow_and_update() {
            Standing::Ready { connection, .. } => Some(connection.incarnation),
            Standing::Restarting(_) => None,
            Standing::Over(lost) => return Err(lost.clone()),
        };
        if let Some(before) = before {
            self.inner.child.restart(self.inner.terms.ladder).await;
            let replaced = standing.wait_for(|standing| match standing {
                Standing::Ready { connection, .. } => connection.incarnation != before,
                Standing::Restarting(_) | Standing::Over(_) => true,
            });
            let _ = replaced.await;
        }
        self.ready().await
    }

    /// Stops it: `system.shutdown`, SIGTERM, SIGKILL, each with its time ([`Terms::ladder`]). Its streams end as it ends them,
    /// or lost. Returns when everything is reaped.
    pub async fn shutdown(&self) -> Option<Arc<Report>> {
        self.stop(Goodbye::Drain, self.inner.terms.ladder).await
    }

    /// The same with `system.shutdown_now`: nothing is waited for.
    pub async fn shutdown_now(&self) -> Option<Arc<Report>> {
        self.stop(Goodbye::Now, self.inner.terms.ladder).await
    }

    /// Kills it with everything it started. Returns when everything is reaped.
    pub async fn kill(&self) -> Option<Arc<Report>> {
        let outcome = self.inner.child.kill().await;
        self.ended().await;
        outcome.report
    }

    async fn stop(&self, goodbye: Goodbye, ladder: Ladder) -> Option<Arc<Report>> {
        if let Standing::Ready { connection, .. } = &*self.inner.standing.borrow() {
            connection.set_goodbye(goodbye);
        }
        let outcome = self.inner.child.stop(ladder).await;
        self.ended().await;
        outcome.report
    }

    /// Waits until the keeper has told everybody.
    async fn ended(&self) {
        let mut standing = self.inner.standing.clone();
        // An error means that the keeper is gone, and then everybody was told as well.
        let _ = standing.wait_for(|standing| matches!(standing, Standing::Over(_))).await;
    }

    /// Calls any method, with params as they are given, and gives the answer as it came; an absent result is `null`.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        within: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        self.connection(method)?.call(method, params, within).await
    }

    /// Calls a method in the usual time and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<T, CallError> {
        let answer = self.call(method, Some(&raw(params)), self.inner.terms.call_within).await?;
        read(method, &answer)
    }

    /// Opens a stream: `agent.chat.stream` with these params, which must be a JSON object. A `streamId` in them is kept; without
    /// one the stream gets one of ours. Its place is made before it is asked for, so nothing of it can be missed.
    ///
    /// # Errors
    /// The sidecar's own, or why there is no answer.
    pub async fn stream(&self, params: &(impl Serialize + Sync + ?Sized)) -> Result<Stream, CallError> {
        const METHOD: &str = "agent.chat.stream";
        let not_sent = |what: String| CallError::NotSent { method: METHOD.to_owned(), what };
        let params = serde_json::value::to_raw_value(params).map_err(|error| not_sent(error.to_string()))?;
        let (id, params) = with_stream_id(params).map_err(|what| not_sent(what.to_owned()))?;
        let connection = self.connection(METHOD)?;
        let queue = connection.hub.open(&id).map_err(|error| match error {
            NotOpened::Taken => CallError::StreamExists(id.clone()),
            NotOpened::Lost(lost) => CallError::Lost { method: METHOD.to_owned(), lost },
        })?;
        // From here on dropping this future drops the stream, which cancels it.
        let stream = Stream::new(id, queue, Arc::downgrade(&connection));
        match connection.call(METHOD, Some(&params), self.inner.terms.stream_within).await {
            Ok(_) => Ok(stream),
            Err(error) => {
                // A stream that was refused never was; one that may still come is cancelled and what it says is dropped.
                if !matches!(error, CallError::Late { .. }) {
                    connection.hub.forget(stream.id());
                    stream.never_was();
                }
                Err(error)
            }
        }
    }

    /// Cancels a stream, which then ends with `cancelled`. Fine for streams that are over or never were.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn cancel(&self, stream: &StreamId) -> Result<(), CallError> {
        self.connection("agent.chat.cancel")?.cancel(stream).await
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.inner.terms
    }

    fn connection(&self, method: &str) -> Result<Arc<Connection>, CallError> {
        match &*self.inner.standing.borrow() {
            Standing::Ready { connection, .. } => Ok(Arc::clone(connection)),
            Standing::Restarting(_) => Err(CallError::Down { method: method.to_owned() }),
            Standing::Over(lost) => Err(CallError::Lost { method: method.to_owned(), lost: lost.clone() }),
        }
    }
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("name", &self.name())
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

pub(super) fn read<T: DeserializeOwned>(method: &str, answer: &RawValue) -> Result<T, CallError> {
    let what = |error: serde_json::Error| {
        let head = outrigger_wire::line::Head::of(answer.get().as_bytes());
        CallError::Unreadable { method: method.to_owned(), what: format!("{error}: {head}") }
    };
    serde_json::from_str(answer.get()).map_err(what)
}

/// The id in the params, or one of ours put into them; nothing else is spelled anew.
fn with_stream_id(params: Box<RawValue>) -> Result<(StreamId, Box<RawValue>), &'static str> {
    let all = members(&params).ok_or("the params must be an object")?;
    let given = all.iter().rfind(|(name, _)| name == "streamId").filter(|(_, raw)| raw.get() != "null");
    if let Some((_, raw)) = given {
        let id: String = serde_json::from_str(raw.get()).map_err(|_| "streamId must be a string")?;
        return Ok((StreamId::new(id), params));
    }
    let id = StreamId::random().ok_or("the system has no randomness to give")?;
    let comma = if all.is_empty() { "" } else { "," };
    let rest = params.get().trim_start().strip_prefix('{').unwrap_or_default();
    // The last of two members counts, so a `null` that is there stays where it is and is overruled.
    let body = rest.trim_end().strip_suffix('}').unwrap_or_default();
    let text = format!(r#"{{{body}{comma}"streamId":"{id}"}}"#);
    RawValue::from_string(text).map(|params| (id, params)).map_err(|_| "the params must be an object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_id(json: &str) -> Result<(String, String), &'static str> {
        let (id, params) = with_stream_id(RawValue::from_string(json.to_owned()).unwrap())?;
        Ok((id.to_string(), params.get().replace(id.as_str(), "ID")))
    }

    #[test]
    fn a_stream_gets_an_id_and_nothing_else_is_spelled_anew() {
        let (id, params) = with_id(r#"{ "b" : 1.0e0, "a":"}" } "#).unwrap();
        assert!(id.starts_with("str_") && id.len() == 36, "{id}");
        assert_eq!(params, r#"{ "b" : 1.0e0, "a":"}" ,"streamId":"ID"}"#);
        assert_eq!(with_id("{}").unwrap().1, r#"{"streamId":"ID"}"#);
        assert_eq!(with_id(r#"{"streamId":null}"#).unwrap().1, r#"{"streamId":null,"streamId":"ID"}"#);
    }

    #[test]
    fn an_id_of_the_callers_own_is_kept() {
        assert_eq!(
            with_id(r#"{"streamId":"mine"}"#).unwrap(),
            ("mine".to_owned(), r#"{"streamId":"ID"}"#.to_owned())
        );
        assert_eq!(with_id(r#"{"streamId":7}"#).unwrap_err(), "streamId must be a string");
        assert_eq!(with_id("[]").unwrap_err(), "the params must be an object");
    }
}
