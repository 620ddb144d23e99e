//! The standard streams of a sidecar: pipes without blocking where they are pipes, and nobody else's once they are taken.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

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

/// A file or a terminal, which is always ready to be written.
struct Blocking(File);

impl AsyncWrite for Blocking {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::task::Poll::Ready(io::Write::write(&mut self.0, bytes))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
