//! Brings events to one extension, in order, as many at a time as the window allows.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::outbox::Outbox;
use super::queue::Delivery;
use super::topic::Topic;
use crate::host::channel::{CallFailure, Conversation};
use crate::protocol::EventCall;

/// Brings events to one extension.
#[derive(Clone, Copy, Debug)]
pub struct Pump {
    /// An acknowledgement that takes longer is counted as late. The window stays shut until it comes: an extension that does
    /// not keep up gets fewer events, and is not killed for it as long as it answers for its health.
    pub ack: Duration,
}

/// Why no more events are brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Dry {
    /// The outbox was closed.
    Closed,
    /// The conversation cannot carry them any more.
    Lost(CallFailure),
}

impl Pump {
    /// Runs until the outbox is closed or the conversation ends; `delivered` is told about each that was acknowledged, and
    /// must return at once.
    pub async fn run(
        self,
        conversation: Conversation,
        outbox: Arc<Outbox>,
        delivered: impl Fn(Topic) + Clone + Send + 'static,
    ) -> Dry {
        let mut in_flight: JoinSet<Result<(), CallFailure>> = JoinSet::new();
        loop {
            let delivery = tokio::select! {
                biased;
                Some(acknowledged) = in_flight.join_next() => match acknowledged {
                    Ok(Err(failure)) => return Dry::Lost(failure),
                    // The window was opened by the task itself, also if it panicked.
                    Ok(Ok(())) | Err(_) => continue,
                },
                delivery = outbox.next() => match delivery {
                    Some(delivery) => delivery,
                    None => return Dry::Closed,
                },
            };
            let place = InWindow(Arc::clone(&outbox));
            // One after the other, so that they arrive in order; only the answers are waited for side by side.
            match send(&conversation, &delivery).await {
                Ok(Some(answer)) => {
                    let (delivered, topic, ack) = (delivered.clone(), delivery.event.topic, self.ack);
                    in_flight.spawn(async move {
                        acknowledged(answer, place, ack).await?;
                        delivered(topic);
                        Ok(())
                    });
                }
                // It does not fit into a frame, which the shape of it should have seen to; the next one may.
                Ok(None) => {}
                Err(failure) => return Dry::Lost(failure),
            }
        }
    }
}

async fn send(
    conversation: &Conversation,
    Delivery { seq, event, dropped }: &Delivery,
) -> Result<Option<impl Future<Output = Result<(), CallFailure>> + use<>>, CallFailure> {
    let call = EventCall {
        seq: *seq,
        topic: Cow::Borrowed(event.topic.as_str()),
        time_ms: event.time_ms,
        data: Cow::Borrowed(&*event.data),
        dropped: *dropped,
    };
    // Numbers, words and raw JSON always serialise.
    let Ok(params) = to_raw_value(&call) else { return Ok(None) };
    match conversation.begin_event(&params).await {
        Ok(answer) => Ok(Some(answer)),
        Err(CallFailure::TooLong { .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn acknowledged(
    answer: impl Future<Output = Result<(), CallFailure>>,
    place: InWindow,
    ack: Duration,
) -> Result<(), CallFailure> {
    tokio::pin!(answer);
    match timeout(ack, &mut answer).await {
        Ok(answer) => answer,
        Err(_) => {
            place.0.note_late();
            answer.await
        }
    }
}

/// A place in the window, given back when this is dropped.
struct InWindow(Arc<Outbox>);

impl Drop for InWindow {
    fn drop(&mut self) {
        self.0.acknowledge();
    }
}

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
