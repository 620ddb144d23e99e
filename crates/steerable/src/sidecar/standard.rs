//! The standard streams of a sidecar: pipes without blocking where they are pipes, nobody else's once they are taken, and an
//! end of the input that is told before it is felt.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// What lines are read from.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// What lines are written to.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Takes standard input and output for the protocol. Whatever is printed afterwards goes to standard error, also by programs
/// that inherit standard output.
pub(super) fn take() -> io::Result<(Input, Output)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok((reader(input)?, writer(output)?))
}

fn reader(stream: OwnedFd) -> io::Result<Input> {
    let file = File::from(stream);
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return Ok(Box::new(pipe::Receiver::from_file(file)?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    // A terminal or a file: there is no waiting for those without a thread.
    Ok(Box::new(tokio::io::stdin()))
}

fn writer(stream: OwnedFd) -> io::Result<Output> {
    let file = File::from(stream);
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return Ok(Box::new(pipe::Sender::from_file(file)?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    Ok(Box::new(Blocking(file)))
}

fn socket(file: File) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

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

/// A file or a terminal, which is always ready to be written.
struct Blocking(File);

impl AsyncWrite for Blocking {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(io::Write::write(&mut self.0, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
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
