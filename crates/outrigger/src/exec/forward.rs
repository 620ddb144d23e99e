//! Bytes to our own standard streams: written by threads, so that a slow reader blocks no timer and no signal, and bounded,
//! so that it makes the child wait instead of us grow.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{Mutex, mpsc, watch};

use crate::say::Format;

/// Chunks that may wait for each stream.
const WAITING: usize = 16;

/// Where everything that we print goes. Clones write to the same streams.
#[derive(Clone)]
pub(super) struct Output {
    format: Format,
    stdout: Stream,
    stderr: Stream,
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        let stdout = Stream::new("stdout", Box::new(std::io::stdout()));
        let stderr = Stream::new("stderr", Box::new(anstream::stderr()));
        Self { format, stdout, stderr }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Writes what the child wrote to its standard output.
    pub(super) async fn stdout(&self, bytes: Vec<u8>) {
        self.stdout.write(bytes).await;
    }

    /// Writes what the child wrote to its standard error.
    pub(super) async fn stderr(&self, bytes: Vec<u8>) {
        self.stderr.write(bytes).await;
    }

    /// Writes JSON objects, a line each, in one go.
    pub(super) async fn events<E: Serialize>(&self, events: impl IntoIterator<Item = E>) {
        let mut lines = Vec::new();
        for event in events {
            // Our own events have string keys and no failing parts, and memory takes everything: it cannot fail.
            if serde_json::to_writer(&mut lines, &event).is_ok() {
                lines.push(b'\n');
            }
        }
        if !lines.is_empty() {
            self.stdout.write(lines).await;
        }
    }

    /// Writes something of our own for a person.
    pub(super) async fn note(&self, text: &str) {
        self.stderr.write(text.as_bytes().to_vec()).await;
    }

    /// Waits until nobody reads our standard output any more.
    pub(super) async fn closed(&self) {
        let mut broken = self.stdout.broken.clone();
        // The writer ends without breaking only when we do.
        if broken.wait_for(|broken| *broken).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until everything is written. Nothing can be written afterwards.
    pub(super) async fn flushed(&self) {
        self.stdout.flushed().await;
        self.stderr.flushed().await;
    }
}

#[derive(Clone)]
struct Stream {
    /// `None` after the last write.
    chunks: Arc<Mutex<Option<mpsc::Sender<Vec<u8>>>>>,
    broken: watch::Receiver<bool>,
    done: watch::Receiver<()>,
}

impl Stream {
    fn new(name: &str, mut to: Box<dyn Write + Send>) -> Self {
        let (sender, mut chunks) = mpsc::channel::<Vec<u8>>(WAITING);
        let (break_it, broken) = watch::channel(false);
        let (ended, done) = watch::channel(());
        let write = move || {
            // Dropped at the end of the thread, which is how everybody learns of it.
            let _ended = ended;
            while let Some(chunk) = chunks.blocking_recv() {
                if *break_it.borrow() {
                    continue;
                }
                if to.write_all(&chunk).and_then(|()| to.flush()).is_err() {
                    break_it.send_replace(true);
                }
            }
        };
        // Without a thread the stream is broken from the start: `ended` and `break_it` are gone with the closure.
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(write);
        Self { chunks: Arc::new(Mutex::new(Some(sender))), broken, done }
    }

    async fn write(&self, bytes: Vec<u8>) {
        let sender = self.chunks.lock().await.clone();
        if let Some(sender) = sender {
            // The writer is gone only when its stream is broken; then there is nobody to read this.
            let _ = sender.send(bytes).await;
        }
    }

    async fn flushed(&self) {
        drop(self.chunks.lock().await.take());
        let mut done = self.done.clone();
        while done.changed().await.is_ok() {}
    }
}
