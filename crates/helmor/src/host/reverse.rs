//! What a sidecar asks of its host, and what it tells nobody in particular. The host's side is a trait.

use std::sync::Arc;

use outrigger_wire::line::Head;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::terms::ReverseLimits;
use crate::BoxFuture;
use crate::protocol::host_response_line;

/// Answers a sidecar. Questions are answered side by side; a future is dropped when its time is over or the sidecar is gone.
pub trait Reverse: Send + Sync + 'static {
    /// The sidecar asks something: `hostRequest`. `Err` is a sentence that it is told instead.
    fn call<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Result<Value, String>>;

    /// Something that belongs to no request. Called in the task that reads; it must not block.
    fn noticed(&self, notice: Notice<'_>) {
        let _ = notice;
    }
}

/// Something that belongs to no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// An `error` without an id: the sidecar did not understand a line of ours.
    Complaint {
        /// What it says.
        message: &'a str,
    },
    /// An event for a request that is over or never was.
    Stray {
        /// Its `type`.
        kind: &'a str,
    },
    /// A line on standard output that is no event.
    Noise {
        /// Its beginning.
        head: Head,
    },
}

/// A host that answers nothing and listens to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Reverse for Nobody {
    fn call<'a>(&'a self, method: &'a str, _: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        let refusal = format!("this host does not know `{method}`");
        Box::pin(async move { Err(refusal) })
    }
}

/// A question of the sidecar.
#[derive(Clone, Debug)]
pub(super) struct HostCall {
    pub(super) callback_id: String,
    pub(super) method: String,
    pub(super) params: Value,
}

/// Answers questions within their limits.
#[derive(Clone)]
pub(super) struct Answering {
    reverse: Arc<dyn Reverse>,
    limits: ReverseLimits,
    places: Arc<Semaphore>,
}

impl Answering {
    pub(super) fn new(reverse: Arc<dyn Reverse>, limits: ReverseLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.at_once.min(Semaphore::MAX_PERMITS)));
        Self { reverse, limits, places }
    }

    /// The task that answers this question, or the answer if there is no place for another one.
    pub(super) fn begin(
        &self,
        call: HostCall,
    ) -> Result<impl Future<Output = String> + Send + 'static, String> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let most = self.limits.at_once;
            return Err(host_response_line(
                &call.callback_id,
                &Err(format!("the host answers {most} questions at once")),
            ));
        };
        let (reverse, within) = (Arc::clone(&self.reverse), self.limits.within);
        Ok(async move {
            let _place = place;
            let answer = tokio::time::timeout(within, reverse.call(&call.method, &call.params)).await;
            let answer = answer.unwrap_or_else(|_| Err(format!("the host did not answer within {within:?}")));
            host_response_line(&call.callback_id, &answer)
        })
    }
}
