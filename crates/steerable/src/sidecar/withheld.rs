//! An end of the input that is told before it is felt.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use outrigger_wire::standard::Input;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// An input whose end is told to `ended` and then withheld: the conversation goes on until what is under way has been
/// told, and is closed by whoever listens. A last line without a newline gets one.
pub(super) struct Withheld {
    input: Input,
    ended: CancellationToken,
    last: u8,
}

impl Withheld {
    pub(super) fn new(input: Input, ended: CancellationToken) -> Self {
        Self { input, ended, last: b'\n' }
    }
}

impl AsyncRead for Withheld {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.is_cancelled() || buffer.remaining() == 0 {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.input).poll_read(context, buffer));
        match buffer.filled()[before..].last() {
            Some(last) => {
                self.last = *last;
                return Poll::Ready(read);
            }
            // A failure to read is an end as well: there is nobody to ask.
            None if self.last != b'\n' => {
                self.last = b'\n';
                buffer.put_slice(b"\n");
                return Poll::Ready(Ok(()));
            }
            None => {}
        }
        self.ended.cancel();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read_all(bytes: &'static [u8]) -> Vec<u8> {
        let ended = CancellationToken::new();
        let mut input = Withheld::new(Box::new(bytes), ended.clone());
        let mut seen = Vec::new();
        tokio::select! {
            biased;
            result = input.read_to_end(&mut seen) => panic!("the end is withheld: {result:?}"),
            () = ended.cancelled() => {}
        }
        seen
    }

    #[tokio::test]
    async fn the_end_is_told_and_not_felt_and_a_last_line_is_completed() {
        assert_eq!(read_all(b"").await, b"");
        assert_eq!(read_all(b"a\n").await, b"a\n");
        assert_eq!(read_all(b"a\nb").await, b"a\nb\n");
    }
}
