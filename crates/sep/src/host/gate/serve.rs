//! From the method on: permission, record, params, quota, work. The only place from which anything is done for an extension.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_policy::{Bucket, Limited, Rate};
use outrigger_wire::peer::{BoxFuture, Outcome as WireOutcome};
use outrigger_wire::rpc::{ErrorObject, Id, code};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::capabilities::Told;
use super::conduct::Conduct;
use super::decide::decide;
use super::grants::Reason;
use super::owner::{Gate, GateParts};
use super::params::{Params, Text};
use super::ports::{Offence, Recorded};
use super::session::{Phase, Session, Standing};
use crate::protocol::{
    Component, Entry, Fault, Form, HostMethod, LogLevel, METHODS, Outcome, Permission, SessionId, State,
    Version,
};

/// What the desk and the requests it works on share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gate: Arc<Gate>,
    pub(super) session: SessionId,
    pub(super) state: Session,
    pub(super) told: Mutex<Option<Told>>,
    books: Mutex<Books>,
}

/// What changes with nearly every frame.
#[derive(Debug)]
pub(super) struct Books {
    rate: Bucket,
    pub(super) conduct: Conduct,
    /// Requests that came after the answer to the host's first call and before the host had looked at it, in order.
    pub(super) held: VecDeque<Held>,
    failures: u64,
}

/// A request that waits for the session to be open.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) asked: Asked,
    pub(super) answer: oneshot::Sender<Served>,
}

/// A request, without the channel it came through.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// What a method does.
pub(super) enum Work {
    /// It is done.
    Now(Box<RawValue>),
    /// It takes time.
    Later(Later),
}

/// Work that takes time.
pub(super) struct Later {
    pub(super) future: BoxFuture<Result<Box<RawValue>, Fault>>,
    /// How long it may take.
    pub(super) within: Duration,
    /// Whether it may still happen when that is over.
    pub(super) afterwards: Outcome,
}

/// How a request is answered.
pub(super) enum Served {
    /// At once.
    Now(Result<Box<RawValue>, Fault>),
    /// Later.
    Later(Later, Counted),
}

impl Shared {
    pub(super) fn new(gate: Arc<Gate>, session: SessionId) -> Self {
        let per_second = gate.parts.admission.limits.requests_per_second;
        let rate = Rate { tokens: per_second, period_millis: 1000, burst: per_second };
        let books =
            Books { rate: Bucket::new(rate), conduct: Conduct::new(), held: VecDeque::new(), failures: 0 };
        Self { gate, session, state: Session::new(), told: Mutex::new(None), books: Mutex::new(books) }
    }

    /// Decides about a request and begins it.
    pub(super) fn serve(self: &Arc<Self>, asked: &Asked) -> Served {
        let Some(method) = HostMethod::find(&asked.method) else {
            let fault = Fault::UnknownMethod;
            self.count(None, Duration::ZERO, Some(&fault));
            return Served::Now(Err(fault));
        };
        let begun = Instant::now();
        let work = self.permit(method, asked).and_then(|version| self.start(method, version, asked));
        let outcome = match work {
            Ok(Work::Later(later)) => {
                return Served::Later(later, Counted::new(Arc::clone(self), method, begun));
            }
            Ok(Work::Now(result)) => Ok(result),
            Err(fault) => Err(fault),
        };
        self.count(Some(method), begun.elapsed(), outcome.as_ref().err());
        Served::Now(outcome)
    }

    /// Decides and records.
    fn permit(&self, method: HostMethod, asked: &Asked) -> Result<Version, Fault> {
        let version = match self.state.standing() {
            Standing { phase: Phase::Leaving, .. } => return Err(Fault::ShuttingDown),
            Standing { version, .. } => version,
        };
        let GateParts { grants, services, .. } = &self.gate.parts;
        let decision = decide(METHODS, method, version, grants);
        if decision.is_privileged() {
            let recorded = services.audit.record(&Recorded {
                extension: &self.gate.parts.extension,
                session: Some(&self.session),
                method: Some(method),
                permission: decision.permission,
                reason: decision.reason,
                request: Some(&asked.id),
                params: asked.params.as_deref(),
            });
            recorded.map_err(|_| Fault::Unavailable(Component::Audit))?;
        }
        if decision.is_allowed() {
            return Ok(version);
        }
        if let Some(permission) = decision.permission.filter(|_| decision.reason != Reason::VersionGated) {
            services.metrics.denied(method.as_str(), permission);
        }
        Err(decision.fault())
    }

    /// Reads the params, looks at the quotas and begins. There is a line for every method, or this does not compile.
    fn start(self: &Arc<Self>, method: HostMethod, version: Version, asked: &Asked) -> Result<Work, Fault> {
        let params = Params::new(asked.params.as_deref())?;
        match method {
            HostMethod::Attach => Err(Fault::AlreadyInitialized),
            HostMethod::GetCapabilities => self.get_capabilities(version, params).map(Work::Now),
            HostMethod::MessagesSend => self.send(params),
            HostMethod::MessagesList => self.list_messages(params, &asked.id),
            HostMethod::ContactsList => self.list_contacts(params, &asked.id),
            HostMethod::RegisterPanel => self.register_panel(params).map(Work::Now),
            HostMethod::UpdatePanel => self.update_panel(params).map(Work::Now),
            HostMethod::UnregisterPanel => self.unregister_panel(params).map(Work::Now),
            HostMethod::Toast => self.toast(params).map(Work::Now),
            HostMethod::Subscribe => self.subscribe(version, params).map(Work::Now),
            HostMethod::Unsubscribe => self.unsubscribe(version, params).map(Work::Now),
            HostMethod::Log => self.log_line(params).map(Work::Now),
        }
    }

    /// Waits for an answer, as long as it may take.
    pub(super) async fn finish(self: Arc<Self>, served: Served) -> WireOutcome {
        let outcome = match served {
            Served::Now(outcome) => outcome,
            Served::Later(Later { future, within, afterwards }, mut counted) => {
                let outcome = tokio::select! {
                    biased;
                    outcome = future => outcome,
                    () = self.state.patience_over() => Err(Fault::Suspended { state: State::Suspended }),
                    () = sleep(within) => {
                        let timeout_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
                        Err(Fault::Timeout { timeout_ms, outcome: afterwards })
                    }
                };
                counted.code = outcome.as_ref().err().map(|fault| fault.code().0);
                outcome
            }
        };
        outcome.map_err(ErrorObject::from)
    }

    /// Begins what waited for the session to be open, in order of arrival.
    pub(super) fn release(self: &Arc<Self>, held: VecDeque<Held>) {
        for Held { asked, answer } in held {
            // Who has given up meanwhile is not served.
            if !answer.is_closed() {
                let _ = answer.send(self.serve(&asked));
            }
        }
    }

    /// Hears a notification.
    pub(super) fn hear(&self, method: &str, params: Option<&RawValue>) {
        let Some(method) = HostMethod::find(method) else { return };
        let standing = self.state.standing();
        if self.take_token().is_err() {
            return;
        }
        let row = METHODS.iter().find(|row| row.method == method);
        if row.is_none_or(|row| row.form != Form::Notification) {
            self.offence(Offence::ProtocolViolation);
            let permission = row.and_then(|row| row.permission);
            return self.record_denial(method, permission, Reason::NotificationForm, None, params);
        }
        let may_speak = matches!(standing.phase, Phase::Open | Phase::Suspended(_) | Phase::Leaving);
        let decision = decide(METHODS, method, standing.version, &self.gate.parts.grants);
        if may_speak && decision.is_allowed() {
            let heard = Params::new(params).and_then(|params| self.log_line(params));
            if let Err(fault) = heard {
                self.log(LogLevel::Warn, &format!("a line for the log was not written: {fault}"));
            }
        }
    }

    /// `host.log`: the quota is that of the log itself.
    fn log_line(&self, mut params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let levels = LogLevel::ALL.iter().map(|level| (level.as_str(), *level)).collect::<Vec<_>>();
        let level = params.word("level", &levels);
        let level = params.required("level", level);
        let message = params.text("message", Text::free(0, 4096));
        let message = params.required("message", message);
        let fields = params.raw("fields");
        let fields = fields.map(|fields| serde_json::from_str::<serde_json::Map<_, _>>(fields.get()));
        match &fields {
            Some(Ok(fields)) if fields.len() > 16 => {
                params.wrong("/fields", "must have no more than 16 members")
            }
            Some(Err(_)) => params.wrong("/fields", "must be an object"),
            Some(Ok(_)) | None => {}
        }
        let (level, mut line) = params.finish(level.zip(message))?;
        if let Some(Ok(fields)) =
            fields.filter(|fields| fields.as_ref().is_ok_and(|fields| !fields.is_empty()))
        {
            line.push(' ');
            line.push_str(&serde_json::Value::Object(fields).to_string());
        }
        self.gate.parts.services.logs.extension_says(level, &line);
        Ok(empty())
    }

    /// Every frame costs a token, whatever becomes of it.
    pub(super) fn take_token(&self) -> Result<(), Fault> {
        let limit = self.gate.parts.admission.limits.requests_per_second;
        let taken = self.books().rate.take(self.gate.now(), 1);
        taken.map_err(|limited| {
            self.offence(Offence::RateLimited);
            let retry_after_ms = match limited {
                Limited::Later { retry_after_millis } => retry_after_millis,
                Limited::Never { .. } => 1000,
            };
            Fault::RateLimited { retry_after_ms, limit }
        })
    }

    /// The host itself failed: the extension learns where to look, the log what there is to see.
    pub(super) fn failure(&self, what: &str) -> Fault {
        let number = {
            let mut books = self.books();
            books.failures += 1;
            books.failures
        };
        let reference = format!("{}-{number}", self.session);
        self.log(LogLevel::Error, &format!("failure {reference}: {what}"));
        Fault::Internal { reference }
    }

    /// A privileged request that came at the wrong time.
    pub(super) fn record_state(&self, method: Option<HostMethod>, id: &Id) {
        let row = method.and_then(|method| METHODS.iter().find(|row| row.method == method));
        // An attach needs no permission, but whoever shows a token twice is to be seen.
        let recorded = |row: &&Entry| row.permission.is_some() || row.method == HostMethod::Attach;
        if let Some(row) = row.filter(recorded) {
            self.record_denial(row.method, row.permission, Reason::SessionState, Some(id), None);
        }
    }

    /// Records that something was not done. If that fails it still is not done.
    fn record_denial(
        &self,
        method: HostMethod,
        permission: Option<Permission>,
        reason: Reason,
        id: Option<&Id>,
        params: Option<&RawValue>,
    ) {
        let _ = self.gate.parts.services.audit.record(&Recorded {
            extension: &self.gate.parts.extension,
            session: Some(&self.session),
            method: Some(method),
            permission,
            reason,
            request: id,
            params,
        });
    }

    pub(super) fn count(&self, method: Option<HostMethod>, took: Duration, fault: Option<&Fault>) {
        let name = method.map_or("unknown", HostMethod::as_str);
        self.gate.parts.services.metrics.rpc(name, took, fault.map(|fault| fault.code().0));
    }

    pub(super) fn offence(&self, offence: Offence) {
        self.gate.parts.services.metrics.offence(offence);
    }

    pub(super) fn log(&self, level: LogLevel, line: &str) {
        self.gate.parts.services.logs.host_says(level, line);
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request that is worked on, however it ends: answered, out of time, or given up by its caller.
pub(super) struct Counted {
    shared: Arc<Shared>,
    method: HostMethod,
    begun: Instant,
    code: Option<i64>,
}

impl Counted {
    fn new(shared: Arc<Shared>, method: HostMethod, begun: Instant) -> Self {
        shared.gate.parts.services.metrics.entered();
        // Until there is an outcome, this is one that its caller gave up.
        Self { shared, method, begun, code: Some(code::sep::CANCELLED.0) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let metrics = &self.shared.gate.parts.services.metrics;
        metrics.left();
        metrics.rpc(self.method.as_str(), self.begun.elapsed(), self.code);
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Now",
            Self::Later(..) => "Later",
        })
    }
}

/// The result `{}`.
pub(super) fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}
