//! Requests and responses over one pair of streams, strictly one after the other. Knows nothing of processes, so that tests
//! can be the child.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use outrigger_wire::frame::{FrameLimit, FrameReadError, FrameReader};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::protocol::feature::Framing;
use crate::protocol::request::{Method, Request};
use crate::protocol::response::{Failure, Reply, Response};

/// The child's standard input.
pub type Input = Pin<Box<dyn AsyncWrite + Send + Sync>>;
/// The child's standard output.
pub type Output = Pin<Box<dyn AsyncRead + Send + Sync>>;

/// A buffer that grew for one large message is given back.
const KEEP_CAPACITY: usize = 256 * 1024;

/// One conversation. After any error but [`ExchangeError::TooLarge`] it is over.
pub(super) struct Conversation {
    input: Input,
    output: FrameReader<Output>,
    request_limit: u64,
    next_id: u64,
    encoded: Vec<u8>,
    state: State,
}

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Every request has its response.
    Idle,
    /// A request is on its way, or its response was given up: what comes next belongs to nobody.
    Open,
}

/// A response and its blob.
pub(super) struct Answered {
    pub(super) outcome: Result<Reply, Failure>,
    pub(super) blob: Vec<u8>,
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    /// Nothing was sent.
    #[error("the request has {bytes} bytes, and this sidecar takes {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    /// It is gone.
    #[error("it closed its streams")]
    Closed,
    /// The pipe broke.
    #[error("its pipe failed: {0}")]
    Pipe(io::Error),
    /// What it says is not a response, or not to this request.
    #[error("{0}")]
    Garbage(String),
    /// It took too long.
    #[error("it did not answer within {} ms", within.as_millis())]
    Late { within: Duration },
}

impl Conversation {
    pub(super) fn new(input: Input, output: Output, request_limit: u64, response_limit: FrameLimit) -> Self {
        let output = FrameReader::new(output, response_limit);
        Self { input, output, request_limit, next_id: 1, encoded: Vec::new(), state: State::Idle }
    }

    /// Whether the next request would be understood.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whatever comes from here on is not worth reading.
    pub(super) fn give_up(&mut self) {
        self.state = State::Open;
    }

    /// What the child agreed to.
    pub(super) fn set_request_limit(&mut self, limit: u64) {
        self.request_limit = limit;
    }

    /// Sends a request and waits for its response. When this is dropped half-way the conversation is over.
    pub(super) async fn exchange(
        &mut self,
        method: Method<'_>,
        blob: &[u8],
        within: Duration,
    ) -> Result<Answered, ExchangeError> {
        if !self.is_idle() {
            return Err(ExchangeError::Closed);
        }
        let id = self.next_id;
        self.encoded.clear();
        self.encoded.shrink_to(KEEP_CAPACITY);
        Request { id, method, blob: Cow::Borrowed(blob) }.encode(Framing::Binary, &mut self.encoded);
        // The two lengths do not count.
        let bytes = self.encoded.len() as u64 - 8;
        if bytes > self.request_limit {
            return Err(ExchangeError::TooLarge { bytes, limit: self.request_limit });
        }
        self.next_id += 1;
        self.state = State::Open;
        let answered = match tokio::time::timeout(within, self.send_and_receive(id)).await {
            Ok(answered) => answered?,
            Err(_) => return Err(ExchangeError::Late { within }),
        };
        self.state = State::Idle;
        Ok(answered)
    }

    async fn send_and_receive(&mut self, id: u64) -> Result<Answered, ExchangeError> {
        let sent = async {
            self.input.write_all(&self.encoded).await?;
            self.input.flush().await
        };
        match sent.await {
            // Why it closed its input may be said on its output; if not, that is closed as well.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(ExchangeError::Closed),
            Err(error) => return Err(ExchangeError::Pipe(error)),
        }
        let frame = match self.output.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err(ExchangeError::Closed),
            Err(FrameReadError::Io(error)) => return Err(ExchangeError::Pipe(error)),
            Err(FrameReadError::Frame(error)) => return Err(ExchangeError::Garbage(error.to_string())),
        };
        let header = std::str::from_utf8(frame.header).map_err(|_| {
            ExchangeError::Garbage(format!("its response is not text: {}", shown(frame.header)))
        })?;
        let response = Response::decode(header)
            .map_err(|error| ExchangeError::Garbage(format!("{error}: {}", shown(frame.header))))?;
        if response.id != id {
            let got = response.id;
            return Err(ExchangeError::Garbage(format!("it answered request {got} when {id} was asked")));
        }
        Ok(Answered { outcome: response.outcome, blob: frame.blob.to_vec() })
    }
}

/// The beginning of a stranger's bytes, fit for a message.
fn shown(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let start = &bytes[..bytes.len().min(SHOWN)];
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", start.escape_ascii())
}
