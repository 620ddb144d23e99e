//! The way to the host: one lock, whole lines, every one on its way when its sender goes on.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::protocol::Envelope;

/// A buffer that grew beyond this for one long line is given back after it.
const KEEP_CAPACITY: usize = 64 * 1024;

/// Where lines go.
pub(super) struct Output {
    sink: Mutex<Sink>,
    /// True once the host is gone.
    gone: watch::Sender<bool>,
}

pub(super) struct Sink {
    out: Pin<Box<dyn AsyncWrite + Send>>,
    /// Lines, of which `sent` bytes have left. A sender that is dropped half-way leaves the rest to the next one, so that no
    /// line is ever cut.
    lines: Vec<u8>,
    sent: usize,
}

/// The host has closed its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostGone;

impl Output {
    pub(super) fn new(out: impl AsyncWrite + Send + 'static) -> Self {
        let sink = Sink { out: Box::pin(out), lines: Vec::new(), sent: 0 };
        Self { sink: Mutex::new(sink), gone: watch::Sender::new(false) }
    }

    /// Sends one message.
    pub(super) async fn send(&self, message: &Envelope<'_>) -> Result<(), HostGone> {
        let mut sink = self.begin().await?;
        sink.push(|lines| message.write(lines));
        self.finish(sink).await
    }

    /// The sink, with nothing waiting in it. Whoever needs to know something that only holds under the lock asks now.
    pub(super) async fn begin(&self) -> Result<MutexGuard<'_, Sink>, HostGone> {
        let mut sink = self.sink.lock().await;
        if sink.sent < sink.lines.len() {
            self.checked(sink.flush().await)?;
        }
        Ok(sink)
    }

    /// Lets everything that was pushed leave.
    pub(super) async fn finish(&self, mut sink: MutexGuard<'_, Sink>) -> Result<(), HostGone> {
        self.checked(sink.flush().await)
    }

    /// Waits until the host is gone.
    pub(super) async fn until_gone(&self) {
        // The sender is in `self`, so waiting ends only when it is so.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }

    fn checked(&self, written: io::Result<()>) -> Result<(), HostGone> {
        written.map_err(|_| {
            // Whatever the pipe says, there is nobody left to tell.
            self.gone.send_replace(true);
            HostGone
        })
    }
}

impl Sink {
    /// Adds a line. A line break between two tokens of passed-on JSON would end it, and means nothing there.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.lines.len();
        write(&mut self.lines);
        let line = &mut self.lines[start..];
        if memchr::memchr2(b'\n', b'\r', line).is_some() {
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
        self.lines.push(b'\n');
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.lines.len() - self.sent
    }

    /// Lets everything leave. What is dropped half-way is taken up by the next flush.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.lines.len() {
            let wrote = self.out.write(&self.lines[self.sent..]).await?;
            if wrote == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += wrote;
        }
        self.lines.clear();
        self.lines.shrink_to(KEEP_CAPACITY);
        self.sent = 0;
        self.out.flush().await
    }
}
