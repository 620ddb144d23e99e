//! The attach: who connects is looked at before any byte is trusted, and only the one who shows the token stays.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::tree::Pid;
use outrigger_wire::rpc::{self, Id};
use serde_json::value::to_raw_value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::greeting::{self, Greeting};
use super::kin;
use super::rendezvous::{Door, Rendezvous};
use super::run_dir::RunDir;
use super::token::{Token, wipe};
use crate::protocol::words::words;
use crate::protocol::{AttachResult, Fault, Sdk, SessionId};

/// How many connections may be undecided at the same time.
pub const MAX_UNDECIDED: usize = 8;
/// How much is read from a connection that is undecided.
pub const MAX_GREETING_BYTES: usize = 4096;
/// How long a connection may take to say who it is.
pub const GREETING_TIME: Duration = Duration::from_secs(2);

/// The process that is to attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The program that was started, as the host knows it.
    pub pid: Pid,
    /// Its user.
    pub uid: u32,
}

/// Hears about connections that were refused. Called on the host's tasks: it must return at once.
pub trait Witness: Send + Sync + 'static {
    /// A connection was refused.
    fn refused(&self, refusal: Refusal);
}

/// A connection that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub why: Why,
    /// Who it was, where the kernel says that.
    pub pid: Option<Pid>,
}

words! {
    /// Why a connection was refused.
    Why ("reason to refuse a connection") {
        /// It is another user.
        Uid = "uid",
        /// It is a process that does not belong to the extension.
        Pid = "pid",
        /// Too many others had not yet said who they are.
        Crowded = "crowded",
        /// It did not say in time who it is.
        Late = "late",
        /// Its first frame is too long.
        TooLong = "too_long",
        /// It hung up without a word.
        HungUp = "hung_up",
        /// Its first frame is something else.
        NotAttach = "not_attach",
        /// Its first frame is an attach that nobody could mean.
        BadParams = "bad_params",
        /// It has another token.
        WrongToken = "wrong_token",
        /// It has the token and another session.
        WrongSession = "wrong_session",
        /// It has the token, after somebody else had it.
        UsedToken = "used_token",
    }
}

/// The one connection that showed the token.
pub struct Attached {
    /// Which session this is.
    pub session: SessionId,
    /// What the extension is made with.
    pub sdk: Option<Sdk>,
    /// The process that attached, where the kernel says that.
    pub pid: Option<Pid>,
    pub(super) input: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) output: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Why nobody will attach any more.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is only one connection, and it was refused.
    #[error("the extension did not attach: {why}")]
    Refused {
        /// Why.
        why: Why,
    },
    /// No connection can be accepted.
    #[error("failed to accept a connection: {0}")]
    Accept(io::Error),
    /// The one with the token was gone before it could be told so.
    #[error("the extension hung up in the midst of its attach")]
    Lost,
}

impl Rendezvous {
    /// Waits for the one who shows the token. Strangers are refused and never end the waiting; the caller ends it by dropping
    /// the future. When it returns, the meeting place is gone.
    ///
    /// # Errors
    /// When nobody can attach any more.
    pub async fn attach(
        self,
        expected: Expected,
        witness: Arc<dyn Witness>,
    ) -> Result<Attached, AttachError> {
        let Self { session, token, door, .. } = self;
        let secret = Secret { token, session };
        match door {
            Door::Pair(stream) => attach_pair(stream, secret, &*witness).await,
            Door::Unix { listener, _dir } => {
                let door = UnixDoor { listener, expected, _dir };
                attach_by_door(door, secret, witness).await
            }
            Door::Tcp(listener) => attach_by_door(TcpDoor { listener }, secret, witness).await,
        }
    }
}

struct Secret {
    token: Token,
    session: SessionId,
}

/// A connection that was accepted and not yet believed.
struct Visitor {
    stream: Box<dyn Stream>,
    pid: Option<Pid>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    fn split(self: Box<Self>) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);
}

impl Stream for UnixStream {
    fn split(self: Box<Self>) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        let (input, output) = self.into_split();
        (Box::new(input), Box::new(output))
    }
}

impl Stream for tokio::net::TcpStream {
    fn split(self: Box<Self>) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        let (input, output) = self.into_split();
        (Box::new(input), Box::new(output))
    }
}

/// Where visitors come from.
trait Entrance {
    /// The next visitor, or why the next one is refused at the door.
    async fn accept(&self) -> io::Result<Result<Visitor, Refusal>>;
}

struct UnixDoor {
    listener: UnixListener,
    expected: Expected,
    /// Goes with the door, before the one who attached is welcomed: it never sees a trace of the place.
    _dir: RunDir,
}

impl Entrance for UnixDoor {
    async fn accept(&self) -> io::Result<Result<Visitor, Refusal>> {
        let (stream, _) = self.listener.accept().await?;
        // What the kernel noted when it connected.
        let Ok(credentials) = stream.peer_cred() else {
            return Ok(Err(Refusal { why: Why::Pid, pid: None }));
        };
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).map(Pid::new);
        if credentials.uid() != self.expected.uid {
            return Ok(Err(Refusal { why: Why::Uid, pid }));
        }
        Ok(match pid {
            Some(number) if kin::is_kin(number, self.expected.pid) => {
                Ok(Visitor { stream: Box::new(stream), pid })
            }
            Some(_) | None => Err(Refusal { why: Why::Pid, pid }),
        })
    }
}

struct TcpDoor {
    listener: TcpListener,
}

impl Entrance for TcpDoor {
    async fn accept(&self) -> io::Result<Result<Visitor, Refusal>> {
        let (stream, _) = self.listener.accept().await?;
        // Answers are small and wanted at once. If that cannot be had, they are only slower.
        let _ = stream.set_nodelay(true);
        Ok(Ok(Visitor { stream: Box::new(stream), pid: None }))
    }
}

async fn attach_by_door(
    door: impl Entrance,
    secret: Secret,
    witness: Arc<dyn Witness>,
) -> Result<Attached, AttachError> {
    let mut undecided: JoinSet<(Visitor, Result<Heard, Why>)> = JoinSet::new();
    let (visitor, said) = loop {
        tokio::select! {
            // Those who are here are decided before others are let in.
            biased;
            Some(heard) = undecided.join_next() => {
                // A task that panicked has dropped its connection, and there is nobody to name.
                let Ok((visitor, heard)) = heard else { continue };
                match judge(heard, &secret) {
                    Ok(said) => break (visitor, said),
                    Err((why, id)) => {
                        witness.refused(Refusal { why, pid: visitor.pid });
                        tokio::spawn(send_off(visitor, id));
                    }
                }
            }
            visitor = door.accept() => match visitor {
                Ok(Ok(visitor)) if undecided.len() < MAX_UNDECIDED => {
                    undecided.spawn(hear(visitor));
                }
                Ok(Ok(visitor)) => witness.refused(Refusal { why: Why::Crowded, pid: visitor.pid }),
                Ok(Err(refusal)) => witness.refused(refusal),
                Err(error) if is_passing(&error) => tokio::task::yield_now().await,
                Err(error) => return Err(AttachError::Accept(error)),
            },
        }
    };
    // Nobody else can come from here on, and whoever is still undecided is too late.
    drop(door);
    let session = secret.session.clone();
    tokio::spawn(turn_away(undecided, secret, witness));
    welcome(visitor, said, session).await
}

/// A pair has one connection, whose other end only the extension has. It may take its time until it speaks.
async fn attach_pair(
    stream: UnixStream,
    secret: Secret,
    witness: &dyn Witness,
) -> Result<Attached, AttachError> {
    let mut visitor = Visitor { stream: Box::new(stream), pid: None };
    let mut first = [0];
    let heard = match visitor.stream.read(&mut first).await {
        Ok(1) => {
            let heard = timeout(GREETING_TIME, read_line(&mut visitor, first.to_vec())).await;
            heard.unwrap_or(Err(Why::Late))
        }
        Ok(_) | Err(_) => Err(Why::HungUp),
    };
    match judge(heard, &secret) {
        Ok(said) => welcome(visitor, said, secret.session).await,
        Err((why, id)) => {
            witness.refused(Refusal { why, pid: None });
            send_off(visitor, id).await;
            Err(AttachError::Refused { why })
        }
    }
}

/// What a visitor sent: its first line, and what came with it.
struct Heard {
    line: Vec<u8>,
    rest: Vec<u8>,
}

impl Drop for Heard {
    fn drop(&mut self) {
        // It may hold the token.
        wipe(&mut self.line);
    }
}

/// A greeting that was believed.
struct Said {
    id: Id,
    sdk: Option<Sdk>,
    rest: Vec<u8>,
}

async fn hear(mut visitor: Visitor) -> (Visitor, Result<Heard, Why>) {
    let heard = timeout(GREETING_TIME, read_line(&mut visitor, Vec::new())).await;
    (visitor, heard.unwrap_or(Err(Why::Late)))
}

async fn read_line(visitor: &mut Visitor, mut bytes: Vec<u8>) -> Result<Heard, Why> {
    // All of it at once, so that no copy of a token is left behind when the buffer grows.
    bytes.reserve_exact(MAX_GREETING_BYTES);
    let mut looked = 0;
    loop {
        if let Some(at) = bytes[looked..].iter().position(|byte| *byte == b'\n') {
            let rest = bytes.split_off(looked + at + 1);
            return Ok(Heard { line: bytes, rest });
        }
        looked = bytes.len();
        let room = MAX_GREETING_BYTES - looked;
        if room == 0 {
            wipe(&mut bytes);
            return Err(Why::TooLong);
        }
        match (&mut visitor.stream).take(room as u64).read_buf(&mut bytes).await {
            Ok(0) | Err(_) => {
                wipe(&mut bytes);
                return Err(Why::HungUp);
            }
            Ok(_) => {}
        }
    }
}

fn judge(heard: Result<Heard, Why>, secret: &Secret) -> Result<Said, (Why, Option<Id>)> {
    let mut heard = heard.map_err(|why| (why, None))?;
    let Greeting { id, attach } = greeting::read(&heard.line).map_err(|refused| (refused.why, refused.id))?;
    if !secret.token.is(&attach.token) {
        return Err((Why::WrongToken, Some(id)));
    }
    if attach.session != secret.session.as_str() {
        return Err((Why::WrongSession, Some(id)));
    }
    Ok(Said { id, sdk: attach.sdk.clone(), rest: std::mem::take(&mut heard.rest) })
}

async fn welcome(mut visitor: Visitor, said: Said, session: SessionId) -> Result<Attached, AttachError> {
    let result = AttachResult { session: session.to_string() };
    let result = to_raw_value(&result).map_err(|_| AttachError::Lost)?;
    let mut line = Vec::new();
    rpc::encode_result(&mut line, &said.id, &result);
    line.push(b'\n');
    match timeout(GREETING_TIME, visitor.stream.write_all(&line)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => return Err(AttachError::Lost),
    }
    let (input, output) = visitor.stream.split();
    // What the extension sent right behind its attach is read first.
    let input = Box::new(io::Cursor::new(said.rest).chain(input));
    Ok(Attached { session, sdk: said.sdk, pid: visitor.pid, input, output })
}

/// Says that the attach was refused, and hangs up.
async fn send_off(mut visitor: Visitor, id: Option<Id>) {
    let mut line = Vec::new();
    rpc::encode_error(&mut line, &id.unwrap_or_else(Id::null), &Fault::AuthFailed.to_error());
    line.push(b'\n');
    // Who does not listen is not waited for.
    let _ = timeout(GREETING_TIME, async {
        visitor.stream.write_all(&line).await?;
        visitor.stream.shutdown().await
    })
    .await;
}

/// Refuses those who were undecided when somebody else attached. They have as long as they ever had.
async fn turn_away(
    mut undecided: JoinSet<(Visitor, Result<Heard, Why>)>,
    secret: Secret,
    witness: Arc<dyn Witness>,
) {
    while let Some(heard) = undecided.join_next().await {
        let Ok((visitor, heard)) = heard else { continue };
        let (why, id) = match judge(heard, &secret) {
            Ok(said) => (Why::UsedToken, Some(said.id)),
            Err(refused) => refused,
        };
        witness.refused(Refusal { why, pid: visitor.pid });
        send_off(visitor, id).await;
    }
}

/// Errors of `accept` that are about one connection, not about the listener.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
