//! One call of a model from request to summary.

use super::event::{Sink, Summary};
use super::failure::{Failure, FailureKind};
use super::request::Request;
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
        sink.flush().await.map_err(|gone| Failure::new(FailureKind::Cancelled, gone.to_string()))?;
        let address = request.base_url.as_deref().unwrap_or_else(|| request.provider.home());
        self.http
            .open(address)
            .map_err(|error| Failure::new(FailureKind::InvalidRequest, error.to_string()))?;
        Err(Failure::new(FailureKind::Unknown, format!("{}: no dialect yet", request.provider.word())))
    }
}
