//! The writer: writes what waits in the outbox, many lines at a time, and notices when the other side stops reading.
//!
//! A line that is alone is written at once by whoever sends it, because waking another task takes longer than the write;
//! what does not fit into the pipe then is left to the writer.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;
use tokio::time::timeout;

use super::end::End;
use super::handler::Receipt;
use super::shared::{EndOnDrop, Phase, Shared};
use crate::rpc;
use crate::tape::Direction;

/// How many bytes are written at once, if that many wait. Larger writes would let answers wait behind events.
const COALESCE: usize = 64 * 1024;

/// The output, and what has been taken from the outbox but is not written yet.
pub(super) struct Pen {
    output: Box<dyn AsyncWrite + Send + Unpin>,
    taken: Vec<u8>,
    written: usize,
    /// Who is told when what was taken has been written.
    receipts: Vec<Receipt>,
}

pub(super) async fn write(shared: Arc<Shared>) {
    let _end = EndOnDrop(Arc::clone(&shared));
    let _hang_up = HangUp(&shared);
    let mut ended = shared.watch_end();
    loop {
        let next = next(&shared, &mut pen(&shared));
        match next {
            Next::Write => {}
            Next::Wait => {
                shared.wake_writer.notified().await;
                // Who woke us is rarely alone. Those who are about to send get their turn first, and share the write.
                tokio::task::yield_now().await;
                continue;
            }
            Next::SayGoodbye(end) => {
                let end = match say_goodbye(&shared, &end).await {
                    Ok(()) => end,
                    // The other side is gone already, which is no news at the end of a conversation.
                    Err(End::Write { .. }) => end,
                    Err(worse) => worse,
                };
                return shared.finish(end);
            }
            Next::Stop => return,
        }
        let put = tokio::select! {
            biased;
            _ = ended.wait_for(Option::is_some) => return,
            put = put(&shared) => put,
        };
        if let Err(end) = put {
            return shared.finish(end);
        }
    }
}

impl Shared {
    /// Writes what was just sent, if nobody else is writing and the pipe takes it; otherwise wakes the writer.
    pub(super) fn write_now(&self) {
        let done = match self.pen.try_lock() {
            Ok(mut pen) if pen.is_empty() => {
                // A waker that does nothing is enough: what is left over makes the writer ask again with its own.
                let mut context = Context::from_waker(Waker::noop());
                matches!(next(self, &mut pen), Next::Write)
                    && matches!(pen.poll_write(&mut context), Poll::Ready(Ok(())))
                    && pen.is_empty()
                    && matches!(pen.poll_flush(&mut context), Poll::Ready(Ok(())))
            }
            Ok(_) | Err(_) => false,
        };
        let more = !self.state().outbox.is_empty();
        if !done || more {
            self.wake_writer.notify_one();
        }
    }
}

/// Closes the output when the conversation is over, even if somebody still holds a handle to it.
struct HangUp<'a>(&'a Shared);

impl Drop for HangUp<'_> {
    fn drop(&mut self) {
        pen(self.0).output = Box::new(tokio::io::sink());
    }
}

enum Next {
    Write,
    Wait,
    SayGoodbye(End),
    Stop,
}

/// Takes what is to be written next, and lets those go on who waited for the room.
fn next(shared: &Shared, pen: &mut Pen) -> Next {
    if !pen.is_empty() {
        return Next::Write;
    }
    pen.renew();
    let mut state = shared.state();
    if let Phase::Ended(_) = state.phase {
        return Next::Stop;
    }
    let taken = state.outbox.take(&mut pen.taken, COALESCE, |line| {
        if let Some(tape) = &shared.tape {
            tape.line(Direction::Out, line);
        }
    });
    state.counts.lines_out += taken.lines;
    pen.receipts.extend(taken.receipts);
    let driver_waits = state.paused || state.desk.waiting() > 0;
    let next = match &state.phase {
        _ if !pen.is_empty() => Next::Write,
        Phase::Draining(end) if state.is_drained() => Next::SayGoodbye(end.clone()),
        Phase::Open | Phase::Draining(_) | Phase::Ended(_) => Next::Wait,
    };
    drop(state);
    if pen.is_empty() {
        // Nothing but marks was taken, and what was before them has been written.
        pen.give_receipts();
    }
    if taken.refund > 0 {
        shared.room.add_permits(taken.refund);
    }
    if driver_waits && taken.lines > 0 {
        shared.wake_driver.notify_one();
    }
    next
}

/// Writes everything that was taken. As long as the other side reads something now and then, it may take its time.
async fn put(shared: &Shared) -> Result<(), End> {
    while !pen(shared).is_empty() {
        patiently(shared, |pen, context| pen.poll_write(context)).await?;
    }
    patiently(shared, |pen, context| pen.poll_flush(context)).await
}

async fn say_goodbye(shared: &Shared, end: &End) -> Result<(), End> {
    if let Some(farewell) = shared.handler.farewell(end) {
        {
            let mut pen = pen(shared);
            rpc::encode_notification(&mut pen.taken, &farewell.method, farewell.params.as_deref());
            if let Some(tape) = &shared.tape {
                tape.line(Direction::Out, &pen.taken);
            }
            pen.taken.push(b'\n');
        }
        put(shared).await?;
        shared.state().counts.lines_out += 1;
    }
    patiently(shared, |pen, context| Pin::new(&mut pen.output).poll_shutdown(context)).await
}

/// Does one thing with the pen, which must not take longer than a stall may.
async fn patiently(
    shared: &Shared,
    mut poll: impl FnMut(&mut Pen, &mut Context<'_>) -> Poll<io::Result<()>>,
) -> Result<(), End> {
    let after = shared.config.write_stall;
    let done = timeout(after, std::future::poll_fn(|context| poll(&mut pen(shared), context))).await;
    match done {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(End::Write { message: error.to_string() }),
        Err(_) => {
            let queued = pen(shared).left() + shared.state().outbox.bytes();
            Err(End::WriteStall { after, queued })
        }
    }
}

/// The pen is only ever held for as long as a poll takes, and always locked before the state.
fn pen(shared: &Shared) -> MutexGuard<'_, Pen> {
    shared.pen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pen {
    pub(super) fn new(output: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        Self { output, taken: Vec::new(), written: 0, receipts: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.left() == 0
    }

    fn left(&self) -> usize {
        self.taken.len() - self.written
    }

    fn renew(&mut self) {
        self.taken.clear();
        self.taken.shrink_to(2 * COALESCE);
        self.written = 0;
    }

    /// Writes some of what is left.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(Pin::new(&mut self.output).poll_write(context, &self.taken[self.written..]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += written;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.output).poll_flush(context))?;
        if self.is_empty() {
            self.give_receipts();
        }
        Poll::Ready(Ok(()))
    }

    fn give_receipts(&mut self) {
        for receipt in self.receipts.drain(..) {
            // Who does not want to know any more has gone.
            let _ = receipt.send(());
        }
    }
}
