//! The standard streams of a child that speaks a protocol over them: pipes without blocking where they are pipes, and nobody
//! else's once they are taken.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// What lines are read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;

/// What lines are written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Takes standard input and output for the protocol. Whatever is printed afterwards goes to standard error, also by programs
/// that inherit standard output.
pub fn take() -> io::Result<(Input, Output)> {
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
