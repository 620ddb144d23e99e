//! Talking to the daemon from the command line: its address and token are in its folder.

use std::time::Duration;

use anyhow::{Context, bail};
use outrigger_steerable::net::http::builder;
use outrigger_steerable::net::sse::{EventLimit, Parser};
use serde_json::Value;

use super::place::Place;

/// How long an answer may take. Streams take as long as they like.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that is up.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Client {
    /// The daemon of a folder.
    pub(crate) fn find(place: &Place) -> anyhow::Result<Self> {
        let down = || format!("no daemon is up in {}; `outrigger up` starts one", place.root().display());
        let note = place.read_note()?.with_context(down)?;
        let token = place.read_token()?.with_context(down)?;
        // Only ever this machine, so no certificate is needed and no proxy asked.
        let http = builder().no_proxy().tls_certs_only(std::iter::empty()).build();
        Ok(Self {
            http: http.context("no HTTP client can be made")?,
            base: format!("http://{}", note.address),
            token,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.http.get(self.url(path)), path).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(self.url(path)).header("content-type", "application/json");
        self.send(request.body(body.to_string()), path).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.http.delete(self.url(path)), path).await
    }

    /// Something that is not JSON.
    pub(crate) async fn text(&self, path: &str) -> anyhow::Result<String> {
        let request = self.http.get(self.url(path));
        let response = request
            .bearer_auth(&self.token)
            .timeout(PATIENCE)
            .send()
            .await
            .map_err(|error| self.gone(&error))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| self.gone(&error))?;
        if status.is_success() { Ok(text) } else { bail!("{}", message(&text, status.as_u16(), path)) }
    }

    /// Server-sent events, one after the other, until there are no more or `see` has seen enough.
    pub(crate) async fn stream(
        &self,
        path: &str,
        mut see: impl FnMut(&str, &str) -> Seen,
    ) -> anyhow::Result<()> {
        let request = self.http.get(self.url(path)).header("accept", "text/event-stream");
        let mut response =
            request.bearer_auth(&self.token).send().await.map_err(|error| self.gone(&error))?;
        let status = response.status();
        if !status.is_success() {
            let text = response.text().await.unwrap_or_default();
            bail!("{}", message(&text, status.as_u16(), path));
        }
        let mut parser = Parser::new(EventLimit(64 << 20));
        while let Some(bytes) = response.chunk().await.map_err(|error| self.gone(&error))? {
            parser.push(&bytes);
            while let Some(event) = parser.next() {
                let event = event.context("the daemon sent something that is no event stream")?;
                if let Seen::Enough = see(event.name, event.data) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn send(&self, request: reqwest::RequestBuilder, path: &str) -> anyhow::Result<Value> {
        // Whoever reads the log sees where it was done.
        let request = request.header("x-outrigger-actor", "cli");
        let response = request.bearer_auth(&self.token).timeout(PATIENCE).send().await;
        let response = response.map_err(|error| self.gone(&error))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| self.gone(&error))?;
        if !status.is_success() {
            bail!("{}", message(&text, status.as_u16(), path));
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("the daemon's answer to {path} is not JSON"))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn gone(&self, error: &reqwest::Error) -> anyhow::Error {
        match error.is_connect() {
            true => anyhow::anyhow!(
                "nobody answers at {}; is the daemon down? `outrigger up` starts it",
                self.base
            ),
            false => anyhow::anyhow!("the daemon at {} did not answer: {error}", self.base),
        }
    }
}

/// Whether somebody wants to see more.
pub(crate) enum Seen {
    More,
    Enough,
}

/// What an error of the API says.
fn message(text: &str, status: u16, path: &str) -> String {
    let error = serde_json::from_str::<Value>(text).ok();
    let error = error.as_ref().and_then(|body| body.get("error"));
    let member = |name| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    match (member("message"), member("hint")) {
        (Some(message), Some(hint)) => format!("{message}; {hint}"),
        (Some(message), None) => message.to_owned(),
        (None, _) => format!("the daemon answered {path} with status {status}"),
    }
}
