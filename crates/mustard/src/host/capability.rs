//! What a script may call: names and the async functions behind them.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use outrigger_vm::boundary::Plain;

use super::source::BoxFuture;
use super::store::{CallId, RunId};
pub use crate::protocol::request::HostError;
use crate::protocol::value::DEEPEST;

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

/// Whether a value is nested more deeply than the protocol allows. Looked at without recursion, because it may be that deep.
pub(super) fn is_too_deep(value: &Plain) -> bool {
    let mut level = vec![value];
    for _ in 0..=DEEPEST {
        let mut below = Vec::new();
        for value in level {
            match value {
                Plain::Array(elements) => below.extend(elements),
                Plain::Object(members) => below.extend(members.iter().map(|(_, member)| member)),
                Plain::Undefined
                | Plain::Null
                | Plain::Hole
                | Plain::Bool(_)
                | Plain::Number(_)
                | Plain::String(_) => {}
            }
        }
        if below.is_empty() {
            return false;
        }
        level = below;
    }
    true
}

/// What a handler throws in the place of a value that cannot be sent.
pub(super) fn too_deep(capability: &str) -> HostError {
    HostError {
        name: "TypeError".to_owned(),
        message: format!("what `{capability}` answered is nested more than {DEEPEST} levels deep"),
        code: Some("boundary".to_owned()),
        details: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_be_as_deep_as_the_protocol_allows_and_no_deeper() {
        let nested = |levels: usize| (0..levels).fold(Plain::Null, |inner, _| Plain::Array(vec![inner]));
        assert!(!is_too_deep(&nested(0)));
        assert!(!is_too_deep(&nested(DEEPEST - 1)));
        assert!(is_too_deep(&nested(DEEPEST + 1)));
        assert!(is_too_deep(&nested(1_000_000)));
        // The deepest value that is let through is one that the other end reads.
        let deepest = (0..DEEPEST + 2).rfind(|levels| !is_too_deep(&nested(*levels))).expect("some are");
        let mut text = Vec::new();
        crate::protocol::value::write_value(&nested(deepest), &mut text);
        let text = String::from_utf8(text).expect("text");
        crate::protocol::value::parse_value(&text).expect("JSON").expect("within the limit");
        let mut text = Vec::new();
        crate::protocol::value::write_value(&nested(deepest + 1), &mut text);
        let text = String::from_utf8(text).expect("text");
        crate::protocol::value::parse_value(&text).expect("JSON").expect_err("past the limit");
    }
}
