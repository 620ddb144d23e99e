//! A server at an address, spoken to by streamable HTTP: every request of ours is a POST that is answered with JSON or with
//! a stream of events; what the server says by itself comes in a stream that we hold open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::link::{Changed, LinkError};
use super::message::LIST_CHANGED;
use crate::chat::Secret;
use crate::net::http::{Http, chain};
use crate::net::sse::{EventLimit, Parser};

/// The longest answer.
const MAX_ANSWER: usize = 16 << 20;

/// Characters that are shown of an answer that is an error page.
const SHOWN: usize = 300;

/// How long the farewell may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the listener waits before it opens its stream again: at first, and at most.
const LISTEN_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A server at an address.
pub(super) struct HttpLink {
    line: Arc<Line>,
    next_id: AtomicU64,
    /// Hears what the server says by itself, as long as we are here.
    listener: Option<AbortOnDropHandle<()>>,
}

/// What requests share.
struct Line {
    client: Client,
    url: Url,
    headers: HeaderMap,
    agreed: Mutex<Agreed>,
    over: AtomicBool,
    changed: Changed,
}

/// What the server and we agreed on when we met.
#[derive(Clone, Debug, Default)]
struct Agreed {
    session: Option<HeaderValue>,
    protocol: Option<HeaderValue>,
}

/// Anything that a server can send.
#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    result: Option<Box<RawValue>>,
    error: Option<ErrorMessage>,
}

#[derive(Deserialize)]
struct ErrorMessage {
    #[serde(default)]
    message: String,
}

impl HttpLink {
    pub(super) fn new(
        http: &Http,
        url: &str,
        headers: &[(String, Secret)],
        changed: Changed,
    ) -> Result<Self, String> {
        let (client, url) = http.open(url).map_err(|error| error.to_string())?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let read =
                HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value.reveal()).ok());
            let (read, mut value) = read.ok_or_else(|| format!("its header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            map.insert(read, value);
        }
        let line = Line {
            client,
            url,
            headers: map,
            agreed: Mutex::new(Agreed::default()),
            over: AtomicBool::new(false),
            changed,
        };
        Ok(Self { line: Arc::new(line), next_id: AtomicU64::new(1), listener: None })
    }

    /// The version that the server chose.
    pub(super) fn agreed(&self, protocol: &str) {
        self.line.agree(|agreed| agreed.protocol = HeaderValue::from_str(protocol).ok());
    }

    /// Begins to hear what the server says by itself.
    pub(super) fn listen(&mut self) {
        let line = Arc::clone(&self.line);
        self.listener = Some(AbortOnDropHandle::new(tokio::spawn(async move { line.listen().await })));
    }

    pub(super) async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, LinkError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut unanswered = Unanswered { line: &self.line, id, armed: method == "tools/call" };
        let answer = self.line.exchange(body, id).await;
        unanswered.armed = false;
        answer
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), LinkError> {
        self.line.post(&json!({"jsonrpc": "2.0", "method": method})).await.map(drop)
    }

    pub(super) fn is_over(&self) -> bool {
        self.line.over.load(Ordering::Acquire)
    }

    /// Tells the server that it can forget the session.
    pub(super) async fn close(&self) {
        if self.line.over.swap(true, Ordering::AcqRel) {
            return;
        }
        let has_session = self.line.now_agreed().session.is_some();
        if has_session {
            let farewell = self.line.with_headers(self.line.client.delete(self.line.url.clone())).send();
            // A server that does not allow it, or is gone, has nothing to forget.
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
    }
}

/// Tells the server that nobody waits for an answer any more, if the call is dropped.
struct Unanswered<'a> {
    line: &'a Arc<Line>,
    id: u64,
    armed: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (line, id) = (Arc::clone(self.line), self.id);
        let params = json!({"requestId": id, "reason": "cancelled"});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move {
                let _ = tokio::time::timeout(FAREWELL, line.post(&note)).await;
            }));
        }
    }
}

impl Line {
    fn now_agreed(&self) -> Agreed {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn agree(&self, change: impl FnOnce(&mut Agreed)) {
        change(&mut self.agreed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn with_headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        let Agreed { session, protocol } = self.now_agreed();
        if let Some(session) = session {
            headers.insert(SESSION, session);
        }
        if let Some(protocol) = protocol {
            headers.insert(VERSION, protocol);
        }
        request.headers(headers)
    }

    async fn post(&self, body: &Value) -> Result<Response, LinkError> {
        let request = self.with_headers(self.client.post(self.url.clone()));
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body.to_string());
        let response = request.send().await.map_err(|error| {
            let text = chain(&error);
            if error.is_connect() { LinkError::NotSent(text) } else { LinkError::Gone(text) }
        })?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.now_agreed().session.is_some() {
            self.over.store(true, Ordering::Release);
            return Err(LinkError::NotSent("it does not know the session any more".to_owned()));
        }
        if status.is_success() {
            if let Some(session) = response.headers().get(SESSION) {
                self.agree(|agreed| agreed.session = Some(session.clone()));
            }
            return Ok(response);
        }
        Err(LinkError::Refused(explain(response).await))
    }

    /// Sends a request and waits for its answer, however it comes.
    async fn exchange(&self, body: Value, id: u64) -> Result<Box<RawValue>, LinkError> {
        let response = self.post(&body).await?;
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.hear_until(response, id).await;
        }
        let body = read_all(response).await?;
        let messages: Result<Vec<Message>, _> = match body.trim_ascii_start().first() {
            Some(b'[') => serde_json::from_slice(&body),
            Some(_) | None => serde_json::from_slice(&body).map(|one| vec![one]),
        };
        let messages =
            messages.map_err(|error| LinkError::Refused(format!("its answer is no message: {error}")))?;
        for message in messages {
            if let Some(answer) = self.take(message, id).await {
                return answer;
            }
        }
        Err(LinkError::Refused("it did not answer the request".to_owned()))
    }

    async fn hear_until(&self, mut response: Response, id: u64) -> Result<Box<RawValue>, LinkError> {
        let mut parser = Parser::new(EventLimit(MAX_ANSWER));
        loop {
            let piece = response.chunk().await.map_err(|error| LinkError::Gone(chain(&error)))?;
            let ended = piece.is_none();
            parser.push(piece.as_deref().unwrap_or_default());
            while let Some(message) = next_message(&mut parser)? {
                if let Some(answer) = self.take(message, id).await {
                    return answer;
                }
            }
            if ended {
                return Err(LinkError::Gone("its stream ended without an answer".to_owned()));
            }
        }
    }

    /// Deals with a message; gives the answer if it is the one that was waited for.
    async fn take(&self, message: Message, wanted: u64) -> Option<Result<Box<RawValue>, LinkError>> {
        let Message { id, method, result, error } = message;
        match (id, method) {
            (Some(id), Some(method)) => {
                let answer = match method.as_str() {
                    "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                    _ => {
                        let error = json!({"code": -32601, "message": format!("`{method}` is not offered")});
                        json!({"jsonrpc": "2.0", "id": id, "error": error})
                    }
                };
                // A server that does not take the answer has only itself to blame.
                let _ = self.post(&answer).await;
                None
            }
            (None, Some(method)) => {
                if method == LIST_CHANGED {
                    self.changed.note();
                }
                None
            }
            (Some(id), None) if id.as_u64() == Some(wanted) => Some(match (result, error) {
                (_, Some(error)) => Err(LinkError::Refused(error.message)),
                (Some(result), None) => Ok(result),
                (None, None) => Err(LinkError::Refused("its answer has no result".to_owned())),
            }),
            (Some(_) | None, None) => None,
        }
    }

    /// Hears what the server says by itself, until there is no use in it.
    async fn listen(&self) {
        let (mut wait, longest) = LISTEN_AGAIN;
        while !self.over.load(Ordering::Acquire) {
            let request =
                self.with_headers(self.client.get(self.url.clone())).header(ACCEPT, "text/event-stream");
            match request.send().await {
                // Servers need not offer it, and those that do not will not later.
                Ok(response) if response.status().is_client_error() => return,
                Ok(response) if response.status().is_success() => {
                    wait = LISTEN_AGAIN.0;
                    // 0 is no id of ours, so that this ends with the stream.
                    let _ = self.hear_until(response, 0).await;
                }
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    }
}

fn next_message(parser: &mut Parser) -> Result<Option<Message>, LinkError> {
    while let Some(event) = parser.next() {
        let event = event.map_err(|error| LinkError::Gone(error.to_string()))?;
        // Other events are none of ours, and what is no message is not for us.
        if matches!(event.name, "" | "message")
            && let Ok(message) = serde_json::from_str(event.data)
        {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

async fn read_all(mut response: Response) -> Result<Vec<u8>, LinkError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| LinkError::Gone(chain(&error)))? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_ANSWER {
            return Err(LinkError::Refused(format!("its answer has more than {MAX_ANSWER} bytes")));
        }
    }
    Ok(body)
}

async fn explain(mut response: Response) -> String {
    let status = response.status();
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > 4 * SHOWN {
            break;
        }
    }
    let said: String = String::from_utf8_lossy(&body).trim().chars().take(SHOWN).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("it answered {status}{said}")
}
