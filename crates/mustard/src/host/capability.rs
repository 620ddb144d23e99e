//! What a script may call: names and the async functions behind them.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use outrigger_vm::boundary::Plain;

use super::source::BoxFuture;
use super::store::{CallId, RunId};
pub use crate::protocol::request::HostError;

/// A call of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Which run.
    pub run: RunId,
    /// Which call of it. Run and number together are the same however often the host is restarted, so they make a good
    /// idempotency key for whatever the handler asks of the world.
    pub id: CallId,
    /// What is called.
    pub capability: String,
    /// With what.
    pub args: Vec<Plain>,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It returns this.
    Value(Plain),
    /// It throws this.
    Error(HostError),
    /// Nothing yet: when nothing else can go on, the run is parked.
    Park,
}

impl From<Plain> for Reply {
    fn from(value: Plain) -> Self {
        Self::Value(value)
    }
}

impl From<Result<Plain, HostError>> for Reply {
    fn from(result: Result<Plain, HostError>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Error(error),
        }
    }
}

type Handler = Arc<dyn Fn(Call) -> BoxFuture<'static, Reply> + Send + Sync>;

/// A table of names and handlers. Cheap to clone.
///
/// ```
/// use outrigger_mustard::host::{Capabilities, Plain};
///
/// let table = Capabilities::none()
///     .on("add", |args| async move {
///         let sum = args.iter().map(|arg| if let Plain::Number(n) = arg { *n } else { f64::NAN }).sum();
///         Plain::Number(sum)
///     })
///     .park("approve");
/// assert_eq!(table.names(), ["add", "approve"]);
/// ```
#[derive(Clone)]
pub struct Capabilities {
    table: BTreeMap<String, Handler>,
}

impl Capabilities {
    /// A script that can compute and nothing else.
    pub fn none() -> Self {
        Self { table: BTreeMap::new() }
    }

    /// Adds a function of the arguments; its future gives a [`Plain`], a `Result<Plain, HostError>` or a [`Reply`].
    #[must_use]
    pub fn on<F, R>(self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Vec<Plain>) -> R + Send + Sync + 'static,
        R: Future<Output: Into<Reply>> + Send + 'static,
    {
        self.on_call(name, move |call| handler(call.args))
    }

    /// Adds a function that also sees which call it is.
    #[must_use]
    pub fn on_call<F, R>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output: Into<Reply>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |call| {
            let reply = handler(call);
            Box::pin(async move { reply.await.into() })
        });
        self.table.insert(name.into(), handler);
        self
    }

    /// Adds a name that nobody answers here: whoever calls it is parked.
    #[must_use]
    pub fn park(self, name: impl Into<String>) -> Self {
        self.on_call(name, |_| async { Reply::Park })
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.table.keys().cloned().collect()
    }

    /// The answer to a call, for tables that stand before others; a name that is not in the table parks.
    pub fn reply_to(&self, call: Call) -> BoxFuture<'static, Reply> {
        match self.table.get(&call.capability) {
            Some(handler) => handler(call),
            None => Box::pin(async { Reply::Park }),
        }
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.table.keys()).finish()
    }
}
