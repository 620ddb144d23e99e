//! Where a stream speaks to: its events become lines, many at a time, and none of them arrives before the answer that opened
//! the stream.

use std::time::Duration;

use outrigger_wire::peer::{Lane, NotifyError, Peer};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::streams::Live;
use crate::agent::{Notice, Output};
use crate::chat::{BoxFuture, ToolCall, ToolResult};
use crate::model::{Event, Failure, FailureKind, Gone, Sink};
use crate::protocol::{ChunkPen, Terminal, write_terminal};

/// The longest text of one chunk, in bytes. Longer ones are several.
const LONGEST_DELTA: usize = 1 << 20;

/// How long the first notification waits after the answer, if the host does not know the stream's name before it reads
/// the answer: some listen for a stream only then, and would lose what arrives in the same read.
const PAUSE: Duration = Duration::from_millis(2);

/// Who chose the name of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    ByHost,
    ByUs,
}

/// The way of a stream to its host.
pub(super) struct Outlet {
    peer: Peer,
    pen: ChunkPen,
    buffer: Vec<u8>,
    gate: Gate,
    problem: Option<Failure>,
}

/// What the first notification of a stream waits for.
enum Gate {
    Answer(oneshot::Receiver<()>, Named),
    Pause(Instant),
    Open,
    /// The answer was never written.
    Shut,
}

impl Outlet {
    pub(super) fn new(peer: Peer, stream_id: &str, answered: oneshot::Receiver<()>, named: Named) -> Self {
        let gate = Gate::Answer(answered, named);
        Self { peer, pen: ChunkPen::new(stream_id), buffer: Vec::new(), gate, problem: None }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Tells the end of the stream, unless somebody has.
    pub(super) async fn end(&mut self, live: &Live, terminal: &Terminal<'_>) {
        if live.may_tell_end() {
            write_terminal(&mut self.buffer, &live.id, terminal);
            // Without a conversation there is nobody to tell.
            let _ = self.hand_over().await;
        }
    }

    /// Why the stream cannot go on although somebody listens.
    pub(super) fn take_problem(&mut self) -> Option<Failure> {
        self.problem.take()
    }

    fn text(&mut self, text: &str, write: fn(&ChunkPen, &mut Vec<u8>, &str)) {
        let mut rest = text;
        while rest.len() > LONGEST_DELTA {
            let at = rest.floor_char_boundary(LONGEST_DELTA);
            write(&self.pen, &mut self.buffer, &rest[..at]);
            rest = &rest[at..];
        }
        write(&self.pen, &mut self.buffer, rest);
    }

    /// Hands over what is in the buffer, and gives way: a provider that always has more must not keep pings, or other
    /// streams, from their turn.
    async fn send(&mut self) -> Result<(), Gone> {
        self.hand_over().await?;
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Hands over what is in the buffer, and waits while the host reads too slowly. Nothing is lost if it is dropped.
    async fn hand_over(&mut self) -> Result<(), Gone> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.gate.pass().await?;
        match self.peer.notify_lines(Lane::Action, "stream.chunk", &mut self.buffer).await {
            Ok(()) => Ok(()),
            Err(NotifyError::Ended { .. }) => Err(Gone),
            // Only a call whose arguments alone fill a line can be too long. The host cannot be given it.
            Err(NotifyError::TooLong { length, limit, .. }) => {
                self.buffer.clear();
                let message = format!("a chunk of {length} bytes does not fit into a line of {limit} bytes");
                self.problem = Some(Failure::new(FailureKind::InvalidRequest, message));
                Err(Gone)
            }
        }
    }
}

impl Gate {
    async fn pass(&mut self) -> Result<(), Gone> {
        if let Self::Answer(answered, named) = self {
            let named = *named;
            *self = match (answered.await, named) {
                (Ok(()), Named::ByHost) => Self::Open,
                (Ok(()), Named::ByUs) => Self::Pause(Instant::now() + PAUSE),
                (Err(_), _) => Self::Shut,
            };
        }
        if let Self::Pause(until) = self {
            tokio::time::sleep_until(*until).await;
            *self = Self::Open;
        }
        match self {
            Self::Open => Ok(()),
            Self::Shut | Self::Answer(..) | Self::Pause(_) => Err(Gone),
        }
    }
}

/// A plain stream: everything that the model says.
impl Sink for Outlet {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Delta(text) => self.text(&text, ChunkPen::delta),
            Event::Reasoning(text) => self.text(&text, ChunkPen::reasoning),
            Event::ToolCall { call, unread } => {
                self.pen.tool_call(&mut self.buffer, &call, unread.as_deref());
            }
            Event::Usage(usage) => self.pen.usage(&mut self.buffer, usage),
            Event::Finish(reason) => self.pen.finish(&mut self.buffer, &reason),
            // The provider's own record of its thoughts is for transcripts, and a retry is for the trace.
            Event::Details(_) | Event::Retry { .. } => {}
        }
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.send())
    }
}

/// A turn: what the model says, what came of its calls, and notices. What it cost is in the terminal.
impl Output for Outlet {
    fn model(&mut self, event: Event<'_>) {
        match event {
            Event::Usage(_) | Event::Finish(_) => {}
            Event::Delta(_)
            | Event::Reasoning(_)
            | Event::ToolCall { .. }
            | Event::Details(_)
            | Event::Retry { .. } => Sink::event(self, event),
        }
    }

    fn tool_result(&mut self, call: &ToolCall, result: &ToolResult, took: Duration) {
        self.pen.tool_result(&mut self.buffer, call, result, took);
    }

    fn notice(&mut self, notice: Notice<'_>) {
        self.pen.notice(&mut self.buffer, &noticed(notice));
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.send())
    }
}

fn noticed(notice: Notice<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("kind".into(), notice.kind().into());
    let more = match notice {
        Notice::RoundEnd { round } => json!({"round": round}),
        Notice::SoftTimeout => json!({}),
        Notice::BudgetExhausted(used) => {
            json!({"budget": used.budget.word(), "limit": used.limit, "used": used.used})
        }
        Notice::Steer { content } => json!({"content": content}),
        Notice::Compaction { before, after } => json!({"before": before, "after": after}),
        Notice::Retry { attempt, delay, error } => {
            let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            json!({"attempt": attempt, "delayMs": delay, "error": error.message})
        }
        Notice::Approval { tool, decision } => json!({"toolName": tool, "decision": decision}),
        Notice::McpUnreachable { server, error } => json!({"server": server, "error": error}),
    };
    if let Value::Object(more) = more {
        members.extend(more);
    }
    members
}
