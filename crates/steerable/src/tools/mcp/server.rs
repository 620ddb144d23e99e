//! One server of one session: there or not, reached again when it is needed and went away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::link::{LinkError, Live};
use super::message::Listed;
use super::servers::Since;
use super::spec::McpSpec;
use crate::net::http::Http;
use crate::tools::tool::Mode;

/// How long to wait before a server that could not be reached is tried again: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(super) struct Server {
    spec: McpSpec,
    supervisor: Supervisor,
    http: Http,
    /// Held while the server is being reached, so that it is reached once.
    state: tokio::sync::Mutex<State>,
    /// What the last attempt or call found, for the health.
    problem: Mutex<Option<String>>,
    last_used: Mutex<Instant>,
    in_use: AtomicUsize,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    /// How often in a row it could not be reached, and when last.
    failures: u32,
    last_failure: Option<Instant>,
}

impl Server {
    pub(super) fn new(spec: McpSpec, supervisor: Supervisor, http: Http) -> Self {
        Self {
            spec,
            supervisor,
            http,
            state: tokio::sync::Mutex::new(State::default()),
            problem: Mutex::new(None),
            last_used: Mutex::new(Instant::now()),
            in_use: AtomicUsize::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn spec(&self) -> &McpSpec {
        &self.spec
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, problem: Option<&str>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem.map(str::to_owned);
    }

    /// Since when nobody has used it; `None` while somebody does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let last = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.in_use.load(Ordering::Acquire) == 0).then_some(last)
    }

    /// Its tools; it is reached first if it is not there.
    pub(super) async fn tools(&self) -> Result<(Arc<[Listed]>, Since), String> {
        let _using = Using::begin(self);
        let (live, since) = self.live().await?;
        match live.tools().await {
            Ok(tools) => Ok((tools, since)),
            Err(problem) if live.is_over() => {
                // It died between two turns, and it was not yet known.
                self.forget(&live).await;
                let (live, since) = self.live().await.map_err(|again| format!("{problem}; then {again}"))?;
                Ok((live.tools().await?, since))
            }
            Err(problem) => {
                self.note(Some(&problem));
                Err(problem)
            }
        }
    }

    /// Calls it. If it went away it is reached again, once. The request is repeated only if the server cannot have acted on
    /// it, or acts on nothing.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &RawValue,
        mode: Mode,
    ) -> Result<Box<RawValue>, String> {
        let _using = Using::begin(self);
        let (live, _) = self.live().await?;
        let error = match live.call(method, params).await {
            Ok(result) => return Ok(result),
            Err(LinkError::Refused(text)) => return Err(text),
            Err(error @ (LinkError::NotSent(_) | LinkError::Gone(_))) => error,
        };
        let told = live.last_words(error.text()).await;
        self.note(Some(&told));
        self.forget(&live).await;
        let harmless = matches!(error, LinkError::NotSent(_)) || mode == Mode::Read;
        if !harmless {
            return Err(format!(
                "{told}\nIt went away during the call, which may or may not have done something. It is started again for the next call."
            ));
        }
        let (live, _) = self.live().await.map_err(|again| format!("{told}; then {again}"))?;
        live.call(method, params).await.map_err(|error| error.text().to_owned())
    }

    /// Ends it in good order. One that is just being reached is not waited for: it ends with whoever wants to reach it.
    pub(super) async fn close(&self) {
        let live = self.state.try_lock().ok().and_then(|mut state| state.live.take());
        if let Some(live) = live {
            live.close().await;
        }
    }

    async fn live(&self) -> Result<(Arc<Live>, Since), String> {
        let mut state = self.state.lock().await;
        if let Some(live) = &state.live {
            if !live.is_over() {
                return Ok((Arc::clone(live), Since::Before));
            }
            state.live = None;
        }
        if let Some(at) = state.last_failure {
            let (first, longest) = AGAIN;
            let wait = first.saturating_mul(1 << state.failures.min(10)).min(longest);
            tokio::time::sleep_until(at + wait).await;
        }
        match Live::connect(&self.spec, &self.supervisor, &self.http).await {
            Ok(live) => {
                let live = Arc::new(live);
                *state = State { live: Some(Arc::clone(&live)), failures: 0, last_failure: None };
                self.note(None);
                Ok((live, Since::Now))
            }
            Err(problem) => {
                state.failures = state.failures.saturating_add(1);
                state.last_failure = Some(Instant::now());
                self.note(Some(&problem));
                Err(problem)
            }
        }
    }

    /// Does not use this conversation any more.
    async fn forget(&self, gone: &Arc<Live>) {
        let mut state = self.state.lock().await;
        if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, gone)) {
            state.live = None;
        }
    }
}

/// Keeps a server from being idle.
struct Using<'a>(&'a Server);

impl<'a> Using<'a> {
    fn begin(server: &'a Server) -> Self {
        server.in_use.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.in_use.fetch_sub(1, Ordering::AcqRel);
    }
}
