//! One attempt of a call over HTTP: send, wait for headers, read events until the answer is complete.
//!
//! The provider's bytes are read as long as there are any; only when it is silent, or after 32 KiB, does the listener
//! get to write. So a fast provider costs few writes, a slow one none of its pace, and a slow listener makes it wait.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::Response;
use tokio::time::timeout;

use super::dialect::{BareEnd, Decoder, Flow, Letter};
use super::failure::{Failure, FailureKind, Voice};
use super::json::Piece;
use super::request::{Patience, Request};
use super::retry;
use super::telling::Telling;
use crate::net::Http;
use crate::net::http::chain;
use crate::net::sse::{EventLimit, Parser};

/// How much of the provider's answer is read before the listener must have taken what came of it.
const BETWEEN_FLUSHES: usize = 32 << 10;
/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;
/// How long a provider has to send that body; the status is known already.
const ERROR_PATIENCE: Duration = Duration::from_secs(5);
/// How long the rest of a complete answer is waited for, so that the connection can be used again.
const REST_PATIENCE: Duration = Duration::from_millis(500);

/// Makes the attempt.
pub(super) async fn make(
    http: &Http,
    request: &Request,
    letter: &Letter,
    told: &mut Telling<'_>,
    voice: Voice<'_>,
) -> Result<(), Failure> {
    let patience = &request.patience;
    let refused = |error: crate::net::HttpError| {
        voice.failure(FailureKind::InvalidRequest, &voice.shown(&error.to_string()))
    };
    let (client, url) = http.open(&letter.address).map_err(refused)?;
    let sending = client.post(url).headers(letter.headers.clone()).body(letter.body.clone()).send();
    let response = match timeout(patience.connect, sending).await {
        Err(_) => {
            let words = format!("no answer within {:?}", patience.connect);
            return Err(voice.failure(FailureKind::Timeout, &words));
        }
        Ok(Err(error)) => return Err(broken(voice, error)),
        Ok(Ok(response)) => response,
    };
    if !response.status().is_success() {
        return Err(refusal(response, patience, voice).await);
    }
    Reading { response, voice, patience, mode: Mode::Unknown, since_flush: 0 }.run(request, told).await
}

/// What a status that is no success says.
async fn refusal(mut response: Response, patience: &Patience, voice: Voice<'_>) -> Failure {
    let status = response.status().as_u16();
    let retry_after = retry::wish(response.headers(), SystemTime::now());
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY - body.len())]);
            if body.len() == ERROR_BODY {
                return;
            }
        }
    };
    // What was read until then is shown.
    let _ = timeout(ERROR_PATIENCE.min(patience.idle), reading).await;
    Failure { retry_after, ..voice.status(status, &String::from_utf8_lossy(&body)) }
}

/// A connection that could not be made, or broke.
fn broken(voice: Voice<'_>, error: reqwest::Error) -> Failure {
    // The address may have a password in it; where it leads to is no secret, and what one wants to know.
    let place = error.url().and_then(|url| {
        let host = url.host_str()?;
        Some(url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    let words = chain(&error.without_url());
    let words = place.map_or_else(|| words.clone(), |place| format!("{place}: {words}"));
    voice.failure(FailureKind::Transport, &voice.shown(&words))
}

/// What the body turned out to be.
enum Mode {
    /// Nothing but blanks came so far.
    Unknown,
    Events,
    /// A JSON document, although a stream was asked for.
    Document(Vec<u8>),
}

struct Reading<'r> {
    response: Response,
    voice: Voice<'r>,
    patience: &'r Patience,
    mode: Mode,
    since_flush: usize,
}

impl Reading<'_> {
    async fn run(mut self, request: &Request, told: &mut Telling<'_>) -> Result<(), Failure> {
        let mut parser = Parser::new(EventLimit::STANDARD);
        let mut decoder = Decoder::new(request.provider);
        let mut has_events = false;
        while let Some(bytes) = self.next(told).await? {
            // A frame may be large; the listener's share is not.
            for slice in bytes.chunks(BETWEEN_FLUSHES) {
                if self.take_document(slice)? {
                    continue;
                }
                parser.push(slice);
                while let Some(event) = parser.next() {
                    let event = event.map_err(|error| self.too_large(&error.to_string()))?;
                    has_events = true;
                    if !is_blank(event.data) && decoder.event(event.data, told, self.voice)? == Flow::Done {
                        recycle(self.response).await;
                        return Ok(());
                    }
                }
                self.since_flush += slice.len();
                if self.since_flush >= BETWEEN_FLUSHES {
                    self.flush(told).await?;
                }
            }
        }
        if let Mode::Document(document) = self.mode {
            return read_document(&document, &mut decoder, told, self.voice);
        }
        if let Some(Ok(event)) = parser.finish() {
            has_events = true;
            // What is cut off is no JSON. That is not the provider's spelling but a broken answer.
            let flow = match decoder.event(event.data, told, self.voice) {
                Err(_) if !is_json(event.data) => return Err(cut(self.voice)),
                outcome => outcome?,
            };
            if flow == Flow::Done {
                return Ok(());
            }
        }
        match (has_events, decoder.bare_end()) {
            (true, BareEnd::Complete) => Ok(()),
            (true, BareEnd::Broken) => Err(cut(self.voice)),
            (false, _) => Err(self.voice.failure(FailureKind::Transport, "the answer has no events in it")),
        }
    }

    /// The next bytes of the body. While there are none the listener catches up.
    async fn next(&mut self, told: &mut Telling<'_>) -> Result<Option<Bytes>, Failure> {
        let ready = match now(self.response.chunk()).await {
            Some(ready) => Some(ready),
            None => {
                // The connection is a task of its own. It may have more in its hands and only waits for its turn.
                tokio::task::yield_now().await;
                now(self.response.chunk()).await
            }
        };
        let read = match ready {
            Some(read) => read,
            None => {
                self.flush(told).await?;
                match timeout(self.patience.idle, self.response.chunk()).await {
                    Ok(read) => read,
                    Err(_) => {
                        let words = format!("silent for {:?}", self.patience.idle);
                        return Err(self.voice.failure(FailureKind::Timeout, &words));
                    }
                }
            }
        };
        read.map_err(|error| broken(self.voice, error))
    }

    async fn flush(&mut self, told: &mut Telling<'_>) -> Result<(), Failure> {
        self.since_flush = 0;
        told.flush().await
    }

    /// Whether these bytes belong to a document and were kept.
    fn take_document(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        if let Mode::Unknown = self.mode {
            match bytes.trim_ascii_start().first() {
                None => return Ok(false),
                // No line of an event stream begins like this.
                Some(b'{' | b'[') => self.mode = Mode::Document(Vec::new()),
                Some(_) => self.mode = Mode::Events,
            }
        }
        let Mode::Document(document) = &mut self.mode else { return Ok(false) };
        if document.len() + bytes.len() > EventLimit::STANDARD.0 {
            let words = format!("the answer is larger than {} bytes", EventLimit::STANDARD.0);
            return Err(self.too_large(&words));
        }
        document.extend_from_slice(bytes);
        Ok(true)
    }

    fn too_large(&self, words: &str) -> Failure {
        self.voice.failure(FailureKind::Server, words)
    }
}

fn read_document(
    document: &[u8],
    decoder: &mut Decoder,
    told: &mut Telling<'_>,
    voice: Voice<'_>,
) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(document);
    let body = Piece::read(&text).map_err(|error| voice.no_json(&text, &error))?;
    decoder.whole(body, told, voice)
}

fn cut(voice: Voice<'_>) -> Failure {
    voice.failure(FailureKind::Transport, "the answer ended in the middle")
}

fn is_blank(data: &str) -> bool {
    data.bytes().all(|byte| byte.is_ascii_whitespace())
}

fn is_json(data: &str) -> bool {
    Piece::read(data).is_ok()
}

/// What a future has ready, if it has.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Reads what follows a complete answer, which is nothing but the end of its body: a connection whose body was not read to
/// the end is closed instead of used again.
async fn recycle(mut response: Response) {
    tokio::task::yield_now().await;
    if let Some(Ok(None) | Err(_)) = now(response.chunk()).await {
        return;
    }
    tokio::spawn(timeout(REST_PATIENCE, async move {
        let mut rest = ERROR_BODY;
        while let Ok(Some(bytes)) = response.chunk().await {
            rest = rest.saturating_sub(bytes.len());
            if rest == 0 {
                return;
            }
        }
    }));
}
