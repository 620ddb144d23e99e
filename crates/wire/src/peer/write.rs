//! The writer: writes what waits in the outbox, many lines at a time, and notices when the other side stops reading.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use super::end::End;
use super::shared::{EndOnDrop, Phase, Shared};
use crate::rpc;
use crate::tape::Direction;

/// How many bytes are written at once, if that many wait. Larger writes would let answers wait behind events.
const COALESCE: usize = 64 * 1024;

pub(super) async fn write(shared: Arc<Shared>, output: Box<dyn AsyncWrite + Send + Unpin>) {
    let _end = EndOnDrop(Arc::clone(&shared));
    let mut pen = Pen { ended: shared.watch_end(), shared: &shared, output };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        buffer.shrink_to(2 * COALESCE);
        match next(&shared, &mut buffer) {
            Next::Write => {
                if let Err(end) = pen.put(&buffer).await {
                    return shared.finish(end);
                }
            }
            Next::Wait => shared.wake_writer.notified().await,
            Next::SayGoodbye(end) => {
                let end = match pen.say_goodbye(&end).await {
                    Ok(()) => end,
                    // The other side is gone already, which is no news at the end of a conversation.
                    Err(End::Write { .. }) => end,
                    Err(worse) => worse,
                };
                return shared.finish(end);
            }
            Next::Stop => return,
        }
    }
}

enum Next {
    Write,
    Wait,
    SayGoodbye(End),
    Stop,
}

/// Takes what is to be written next, and lets those go on who waited for the room.
fn next(shared: &Shared, buffer: &mut Vec<u8>) -> Next {
    let mut state = shared.state();
    if let Phase::Ended(_) = state.phase {
        return Next::Stop;
    }
    let taken = state.outbox.take(buffer, COALESCE, |line| {
        if let Some(tape) = &shared.tape {
            tape.line(Direction::Out, line);
        }
    });
    state.counts.lines_out += taken.lines;
    let driver_waits = state.paused || state.desk.waiting() > 0;
    let next = match &state.phase {
        _ if !buffer.is_empty() => Next::Write,
        Phase::Draining(end) if state.is_drained() => Next::SayGoodbye(end.clone()),
        Phase::Open | Phase::Draining(_) | Phase::Ended(_) => Next::Wait,
    };
    drop(state);
    if taken.refund > 0 {
        shared.room.add_permits(taken.refund);
    }
    if driver_waits && taken.lines > 0 {
        shared.wake_driver.notify_one();
    }
    next
}

struct Pen<'a> {
    shared: &'a Shared,
    output: Box<dyn AsyncWrite + Send + Unpin>,
    ended: watch::Receiver<Option<End>>,
}

impl Pen<'_> {
    /// Writes everything. As long as the other side reads something now and then, it may take its time.
    async fn put(&mut self, bytes: &[u8]) -> Result<(), End> {
        let stall = self.shared.config.write_stall;
        let mut rest = bytes;
        while !rest.is_empty() {
            let progress = tokio::select! {
                biased;
                _ = self.ended.wait_for(Option::is_some) => return Ok(()),
                progress = timeout(stall, self.output.write(rest)) => progress,
            };
            match progress {
                Ok(Ok(0)) => return Err(broken(&io::ErrorKind::WriteZero.into())),
                Ok(Ok(written)) => rest = &rest[written..],
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(self.stalled(rest.len())),
            }
        }
        match timeout(stall, self.output.flush()).await {
            Ok(flushed) => flushed.map_err(|error| broken(&error)),
            Err(_) => Err(self.stalled(0)),
        }
    }

    async fn say_goodbye(&mut self, end: &End) -> Result<(), End> {
        if let Some(farewell) = self.shared.handler.farewell(end) {
            let mut line = Vec::new();
            rpc::encode_notification(&mut line, &farewell.method, farewell.params.as_deref());
            if let Some(tape) = &self.shared.tape {
                tape.line(Direction::Out, &line);
            }
            line.push(b'\n');
            self.put(&line).await?;
            self.shared.state().counts.lines_out += 1;
        }
        match timeout(self.shared.config.write_stall, self.output.shutdown()).await {
            Ok(closed) => closed.map_err(|error| broken(&error)),
            Err(_) => Err(self.stalled(0)),
        }
    }

    fn stalled(&self, rest: usize) -> End {
        let queued = rest + self.shared.state().outbox.bytes();
        End::WriteStall { after: self.shared.config.write_stall, queued }
    }
}

fn broken(error: &io::Error) -> End {
    End::Write { message: error.to_string() }
}
