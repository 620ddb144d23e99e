//! What methods answer with.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use outrigger_wire::peer::{Answer, BoxFuture, Outcome};
use outrigger_wire::rpc::ErrorObject;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::protocol::{Kind, not_found, storage_failed};
use crate::store::StoreError;

/// `null`: it is done.
#[expect(clippy::unnecessary_wraps, reason = "every method has an outcome")]
pub(super) fn done() -> Outcome {
    Ok(RawValue::NULL.to_owned())
}

/// A value.
pub(super) fn shown(value: &(impl Serialize + ?Sized)) -> Outcome {
    to_raw_value(value).map_err(|error| Kind::Internal.error(format!("cannot write the answer: {error}")))
}

/// What comes of a future. If it has nothing to wait for, it is answered at once and so in its order.
pub(super) fn soon(future: impl Future<Output = Outcome> + Send + 'static) -> Answer {
    let mut future: BoxFuture<Outcome> = Box::pin(future);
    // Whoever polls it again brings a waker that wakes.
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Answer::Now(outcome),
        Poll::Pending => Answer::Later(future),
    }
}

/// The runtime takes no new work.
pub(super) fn shutting_down() -> ErrorObject {
    Kind::TransportClosed.error("the runtime is shutting down")
}

/// What the store says, in the dialect's words.
pub(super) fn stored(error: &StoreError) -> ErrorObject {
    if error.is_unknown() { not_found(error.to_string()) } else { storage_failed(error.to_string()) }
}
