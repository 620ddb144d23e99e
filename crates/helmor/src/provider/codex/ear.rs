//! The turn's ear: what the server says by itself, in order, also what it says while the turn waits for an answer.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::link::{CallError, Heard, Link};

/// How much is held while a call waits for its answer. Beyond that the server has to wait, and the call may come to its deadline.
const HELD_BYTES: usize = 16 << 20;

/// What the server says, for one turn.
#[derive(Debug)]
pub(super) struct Ear {
    heard: mpsc::Receiver<Heard>,
    held: VecDeque<Heard>,
    held_bytes: usize,
}

impl Ear {
    /// Listens from now on.
    pub(super) fn new(link: &Link) -> Self {
        Self { heard: link.listen(), held: VecDeque::new(), held_bytes: 0 }
    }

    /// The next thing; `None` when the server speaks no more. Nothing is lost if it is given up.
    pub(super) async fn next(&mut self) -> Option<Heard> {
        match self.held.pop_front() {
            Some(heard) => {
                self.held_bytes -= heard.bytes();
                Some(heard)
            }
            None => self.heard.recv().await,
        }
    }

    /// Whether nothing more is there at the moment.
    pub(super) fn is_quiet(&self) -> bool {
        self.held.is_empty() && self.heard.is_empty()
    }

    /// Calls a method. Everything that is said before the answer is held, so that the caller can put something before it.
    pub(super) async fn call(
        &mut self,
        link: &Link,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let call = link.call(method, params, within);
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                Some(heard) = self.heard.recv(), if self.held_bytes < HELD_BYTES => {
                    self.held_bytes += heard.bytes();
                    self.held.push_back(heard);
                }
            }
        }
    }
}
