//! The channel to the host as bytes: connected, taken over from birth, or made for a test.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};

use super::bootstrap::Endpoint;

/// One channel; its clones are the same channel.
#[derive(Debug)]
pub enum Link {
    /// A Unix socket.
    Unix(UnixStream),
    /// A socket that the process was born with.
    Inherited(Inherited),
    /// A connection on the loopback interface.
    Tcp(TcpStream),
}

/// A socket that is known by its number only. It is never closed: nobody else in the process knows of it, and it ends with the
/// process. So it needs no owner, and reading and writing by number is all that is asked of it.
///
/// Programs that the extension starts inherit it too; one that starts programs it does not trust should close it for them.
#[derive(Clone, Copy, Debug)]
pub struct Inherited(i32);

impl Link {
    /// Reaches `endpoint`.
    pub fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Endpoint::Fd(number) => Inherited::check(*number).map(Self::Inherited),
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// The same channel again.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Inherited(socket) => Ok(Self::Inherited(*socket)),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    /// Ends the channel in both directions, for all its clones.
    pub fn close(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Inherited(socket) => Ok(shutdown(socket.0, Shutdown::Both)?),
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
        }
    }
}

impl Inherited {
    /// Takes the number of a socket; anything else is refused.
    fn check(number: i32) -> io::Result<Self> {
        // Looking at nothing: fails for what is closed and for what is no socket, and takes nothing from what is one.
        match recv(number, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(_) | Err(nix::Error::EAGAIN) => Ok(Self(number)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Inherited(socket) => Ok(recv(socket.0, buffer, MsgFlags::empty())?),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Inherited(socket) => Ok(send(socket.0, bytes, MsgFlags::MSG_NOSIGNAL)?),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_is_used_by_its_number() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let mut link = Link::connect(&Endpoint::Fd(ours.as_raw_fd())).expect("a socket");
        link.write_all(b"ping").expect("room");
        let mut buffer = [0; 4];
        theirs.read_exact(&mut buffer).expect("bytes");
        theirs.write_all(b"pong").expect("room");
        link.read_exact(&mut buffer).expect("bytes");
        assert_eq!(&buffer, b"pong");
        link.close().expect("open");
        assert_eq!(theirs.read(&mut buffer).expect("the end"), 0);
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = tempfile::tempfile().expect("a file");
        assert!(Link::connect(&Endpoint::Fd(file.as_raw_fd())).is_err());
        assert!(Link::connect(&Endpoint::Fd(1_000_000)).is_err());
    }
}
