//! One call of a model from request to summary: attempts until one succeeds or nothing is left to try.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::attempt;
use super::dialect;
use super::event::{Event, Sink, Summary};
use super::failure::{Failure, FailureKind, Voice};
use super::provider::Provider;
use super::request::Request;
use super::retry;
use super::scripted::Script;
use super::telling::Telling;
use crate::net::Http;

/// Calls models. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: Http,
}

impl Client {
    /// A client that uses these connections.
    #[must_use]
    pub fn new(http: Http) -> Self {
        Self { http }
    }

    /// Makes a call and tells `sink` what comes. To cancel it, drop the future.
    ///
    /// # Errors
    ///
    /// The failure of the last attempt.
    pub async fn stream(&self, request: &Request, sink: &mut dyn Sink) -> Result<Summary, Failure> {
        let voice = Voice { provider: request.provider, key: request.api_key.as_ref() };
        let total = request.patience.total;
        match timeout(total, self.attempts(request, sink, voice)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(voice.failure(FailureKind::Timeout, &format!("not done within {total:?}"))),
        }
    }

    async fn attempts(
        &self,
        request: &Request,
        sink: &mut dyn Sink,
        voice: Voice<'_>,
    ) -> Result<Summary, Failure> {
        let begun = Instant::now();
        let call = Call::new(request, voice)?;
        let mut attempt = 1;
        loop {
            let mut told = Telling::new(&mut *sink, begun, voice);
            let outcome = match &call {
                Call::Http(letter) => attempt::make(&self.http, request, letter, &mut told, voice).await,
                Call::Script(script) => script.play(request, attempt, &mut told, voice).await,
            };
            let failure = match outcome {
                Ok(()) => {
                    let end = told.end().await?;
                    return Ok(Summary {
                        usage: end.usage,
                        finish_reason: end.finish_reason,
                        attempts: attempt,
                        first_event_after: end.first_event_after,
                    });
                }
                Err(failure) => failure,
            };
            // What was heard cannot be taken back, so a second attempt would say it twice.
            if told.has_told() {
                told.flush().await?;
                return Err(failure);
            }
            let Some(delay) = retry::delay(&failure, attempt, &request.patience) else { return Err(failure) };
            if begun.elapsed() + delay >= request.patience.total {
                return Err(failure);
            }
            wait(sink, attempt, delay, &failure).await?;
            attempt += 1;
        }
    }
}

/// Where the answers come from.
enum Call {
    Http(dialect::Letter),
    Script(Script),
}

impl Call {
    fn new(request: &Request, voice: Voice<'_>) -> Result<Self, Failure> {
        if request.provider != Provider::Scripted {
            return dialect::write(request, voice).map(Self::Http);
        }
        let path = request.base_url.as_deref().unwrap_or_default();
        let script = Script::open(path.as_ref());
        script
            .map(Self::Script)
            .map_err(|error| voice.failure(FailureKind::InvalidRequest, &error.to_string()))
    }
}

/// Says that the call is made again, and waits until then.
async fn wait(sink: &mut dyn Sink, attempt: u32, delay: Duration, error: &Failure) -> Result<(), Failure> {
    sink.event(Event::Retry { attempt, delay, error });
    sink.flush().await.map_err(|gone| Failure::new(FailureKind::Cancelled, gone.to_string()))?;
    sleep(delay).await;
    Ok(())
}
