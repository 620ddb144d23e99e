//! Where host and extension meet: a socket that is there for one attach and then is gone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::run_dir::{RunDir, RunDirs, Unusable};
use super::token::{Bootstrap, Token};
use crate::protocol::SessionId;
use crate::protocol::words::words;

words! {
    /// What carries the conversation.
    Transport ("transport") {
        /// A socket in a directory that only we can enter. The extension connects.
        Unix = "unix",
        /// One end of a pair of sockets, which the extension has as descriptor 3: it needs no right to connect to anything.
        Fd = "fd",
        /// A port of this machine, where there is nothing better: anybody here can connect, so only the token counts.
        Tcp = "tcp",
    }
}

/// The descriptor under which an extension finds its end of a pair.
pub const CHILD_FD: u32 = 3;

/// How many connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 4;

/// A meeting place for one session, with its token. Dropping it removes everything that it made.
#[derive(Debug)]
pub struct Rendezvous {
    pub(super) session: SessionId,
    pub(super) token: Token,
    pub(super) door: Door,
    endpoint: String,
    child_end: Option<OwnedFd>,
}

/// What a connection comes through.
#[derive(Debug)]
pub(super) enum Door {
    /// A socket with a name. The directory is last, so that it goes when nobody can come any more.
    Unix {
        listener: UnixListener,
        _dir: RunDir,
    },
    /// Our end of the pair.
    Pair(UnixStream),
    Tcp(TcpListener),
}

/// Why there is no meeting place.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No directory can be used for the socket.
    #[error("no place can be used for a socket: {}", list(.tried))]
    NoPlace {
        /// What was tried, and what was wrong with it.
        tried: Vec<Unusable>,
    },
    /// The socket could not be made.
    #[error("failed to make a socket at {endpoint}: {error}")]
    Socket {
        /// Where.
        endpoint: String,
        /// What the operating system said.
        error: io::Error,
    },
    /// The system gave no random numbers.
    #[error("the system has no random numbers for a token: {error}")]
    Random {
        /// What the operating system said.
        error: io::Error,
    },
}

impl Rendezvous {
    /// Opens a meeting place with a fresh token and a fresh session. Must be called within a tokio runtime.
    pub fn open(transport: Transport, dirs: &RunDirs) -> Result<Self, OpenError> {
        let random = |error| OpenError::Random { error };
        let token = Token::new(random_bytes().map_err(random)?);
        let session = SessionId::new(now_ms(), random_bytes().map_err(random)?);
        let (endpoint, door, child_end) = match transport {
            Transport::Unix => {
                let dir = RunDir::create(dirs, random_name).map_err(|tried| OpenError::NoPlace { tried })?;
                let path = dir.socket();
                let endpoint = format!("unix:{}", path.display());
                match listen(&path) {
                    Ok(listener) => (endpoint, Door::Unix { listener, _dir: dir }, None),
                    Err(error) => return Err(OpenError::Socket { endpoint, error }),
                }
            }
            Transport::Fd => {
                let endpoint = format!("fd:{CHILD_FD}");
                match pair() {
                    Ok((ours, theirs)) => (endpoint, Door::Pair(ours), Some(theirs)),
                    Err(error) => return Err(OpenError::Socket { endpoint, error }),
                }
            }
            Transport::Tcp => {
                let (listener, address) = listen_on_loopback().map_err(|error| OpenError::Socket {
                    endpoint: format!("tcp:{}", Ipv4Addr::LOCALHOST),
                    error,
                })?;
                (format!("tcp:{address}"), Door::Tcp(listener), None)
            }
        };
        Ok(Self { session, token, door, endpoint, child_end })
    }

    /// The line that the extension must get on its standard input.
    #[must_use]
    pub fn bootstrap(&self) -> Bootstrap {
        self.token.bootstrap(&self.endpoint, &self.session)
    }

    /// The extension's end of the pair, which it must have as [descriptor 3](CHILD_FD). There is one, and it is given once;
    /// only when every copy of it is closed does the host notice that the extension hung up.
    #[must_use]
    pub fn child_end(&mut self) -> Option<OwnedFd> {
        self.child_end.take()
    }

    /// Which session this is for.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Where it is, as the extension is told: `unix:PATH`, `fd:3` or `tcp:127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

fn listen_on_loopback() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

fn random_name() -> io::Result<String> {
    Ok(format!("{:08x}", u32::from_be_bytes(random_bytes()?)))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn list(tried: &[Unusable]) -> String {
    let one = |Unusable { place, why }: &Unusable| format!("{}: {why}", place.display());
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}
