//! Connections: how many, how long their requests may take to arrive, how long their readers may sleep.
//!
//! The HTTP library below has no clock of ours, so the clocks are in the socket that it is given. A socket knows from the
//! requests that come through it ([`Handle`]) whether it is at work or waits for the headers of the next one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::ServerLimits;

/// How many connections at a time are told that there is no place; past that they are only closed.
const REFUSED_AT_ONCE: usize = 64;
/// How long somebody who is refused has to read it.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

const NO_PLACE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 92\r\n\r\n{\"error\":{\"code\":\"too_many_connections\",\"message\":\"all connections are in use; come back\"}}\n";
const HEAD_TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const HEAD_TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A listener with a limited number of places.
pub(super) struct Places {
    listener: TcpListener,
    limits: Arc<ServerLimits>,
    free: Arc<Semaphore>,
    refusing: Arc<Semaphore>,
}

/// A socket with its place and its clocks.
pub(super) struct Connection {
    stream: TcpStream,
    limits: Arc<ServerLimits>,
    turn: Arc<Turn>,
    /// The turn that `head_bytes` and `head_since` are about.
    seen: u64,
    /// When the head that is being read began; none if nothing of it is there.
    head_since: Option<Instant>,
    head_bytes: usize,
    /// When something was last read or written.
    touched: Instant,
    read_clock: Clock,
    write_clock: Clock,
    _place: OwnedSemaphorePermit,
}

/// What a request knows of the connection that it came through.
#[derive(Clone, Debug)]
pub(super) struct Handle(Arc<Turn>);

/// A request is being answered. When this goes, the connection waits for the next one.
#[derive(Debug)]
pub(super) struct Answering(Arc<Turn>);

#[derive(Debug, Default)]
struct Turn {
    /// How many requests have begun.
    begun: AtomicU64,
    /// How many are being answered.
    answering: AtomicUsize,
}

impl Places {
    pub(super) fn new(listener: TcpListener, limits: Arc<ServerLimits>) -> Self {
        let free = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        Self { listener, limits, free, refusing: Arc::new(Semaphore::new(REFUSED_AT_ONCE)) }
    }

    /// Tells somebody that there is no place, without waiting for them.
    fn refuse(&self, stream: TcpStream) {
        if let Ok(place) = Arc::clone(&self.refusing).try_acquire_owned() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(REFUSED_WITHIN, say_no_place(stream)).await;
                drop(place);
            });
        }
    }
}

async fn say_no_place(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(NO_PLACE).await?;
    stream.shutdown().await?;
    // If what they sent stayed unread, the kernel would take the answer back with a reset.
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

impl Places {
    /// The next connection that there is a place for.
    pub(super) async fn accept(&self) -> Connection {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of descriptors, most likely, or the peer is gone again; somebody else has to close some.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            // Small answers and events should leave at once; if that cannot be had it is only slower.
            let _ = stream.set_nodelay(true);
            match Arc::clone(&self.free).try_acquire_owned() {
                Ok(place) => return Connection::new(stream, Arc::clone(&self.limits), place),
                Err(_) => self.refuse(stream),
            }
        }
    }
}

impl Handle {
    /// A request begins to be answered.
    pub(super) fn begin(&self) -> Answering {
        self.0.answering.fetch_add(1, Ordering::AcqRel);
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        Answering(Arc::clone(&self.0))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connection {
    fn new(stream: TcpStream, limits: Arc<ServerLimits>, place: OwnedSemaphorePermit) -> Self {
        let now = Instant::now();
        Self {
            stream,
            limits,
            turn: Arc::default(),
            seen: 0,
            // The clock of the first request runs from the connection on.
            head_since: Some(now),
            head_bytes: 0,
            touched: now,
            read_clock: Clock::default(),
            write_clock: Clock::default(),
            _place: place,
        }
    }

    /// For the requests that come through it.
    pub(super) fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.turn))
    }

    fn is_answering(&mut self) -> bool {
        let begun = self.turn.begun.load(Ordering::Acquire);
        if begun != self.seen {
            self.seen = begun;
            self.head_since = None;
            self.head_bytes = 0;
        }
        self.turn.answering.load(Ordering::Acquire) > 0
    }

    /// Ends the connection with a last word, as far as that can be said without waiting.
    fn leave(&self, last_word: &[u8], kind: io::ErrorKind) -> Poll<io::Result<()>> {
        let _ = self.stream.try_write(last_word);
        Poll::Ready(Err(kind.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let answering = this.is_answering();
        // A request begins as soon as its head is complete, so whoever reads on is not there yet.
        if !answering && this.head_bytes > this.limits.head_bytes {
            return this.leave(HEAD_TOO_LARGE, io::ErrorKind::InvalidData);
        }
        let before = buf.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Ready(result) => {
                this.touched = Instant::now();
                this.read_clock.stop();
                if !answering {
                    this.head_since.get_or_insert(this.touched);
                    this.head_bytes += buf.filled().len() - before;
                }
                Poll::Ready(result)
            }
            Poll::Pending if answering => Poll::Pending,
            Poll::Pending => {
                let (deadline, last_word) = match this.head_since {
                    Some(since) => (since + this.limits.head_within, HEAD_TOO_SLOW),
                    // Nobody waits for an answer, so there is nothing to say.
                    None => (this.touched + this.limits.idle_within, &b""[..]),
                };
                match this.read_clock.poll(cx, deadline) {
                    Poll::Ready(()) => this.leave(last_word, io::ErrorKind::TimedOut),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

impl Connection {
    /// What came of a write; one that waits for too long fails.
    fn wrote<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(result) => {
                self.touched = Instant::now();
                self.write_clock.stop();
                Poll::Ready(result)
            }
            Poll::Pending => {
                let deadline = self.write_clock.deadline_or(Instant::now() + self.limits.stall_within);
                match self.write_clock.poll(cx, deadline) {
                    Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A deadline that wakes whoever waits for a socket.
#[derive(Default)]
struct Clock(Option<Pin<Box<Sleep>>>);

impl Clock {
    fn stop(&mut self) {
        self.0 = None;
    }

    /// The deadline that runs, or else this one.
    fn deadline_or(&self, deadline: Instant) -> Instant {
        self.0.as_ref().map_or(deadline, |sleep| sleep.deadline())
    }

    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_those_without_a_place_has_the_length_that_it_says() {
        let text = std::str::from_utf8(NO_PLACE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{} bytes", body.len());
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(json["error"]["code"], "too_many_connections");
    }
}
