//! The operator's door: a socket in the state of the host, where the command line and other programs of the same user ask for
//! things. JSON-RPC, a line a message; who connects is known by the kernel's word.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CancelWire, Crowded, DuplicateIds, Handler, IncomingLimits, Lane, Note,
    OutboxLimits, Outcome, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::{Code, EnvelopePolicy, ErrorObject, code};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;

use super::fleet::Fleet;
use super::invoke::CallError;
use super::refusal::AskError;
use crate::mesh::{Address, ContactQuery, MessageQuery, Outgoing};
use crate::protocol::{ContactJson, MessageJson, Permission};

/// The name of the socket in the state of the host.
pub const SOCKET: &str = "control.sock";
/// The notification that tells a watcher what happened.
pub const HAPPENED: &str = "happened";
/// The notification that tells a watcher that it was too slow.
pub const MISSED: &str = "missed";

/// Conversations with operators at the same time; whoever comes then waits at the door.
const CONVERSATIONS: usize = 64;

/// How a conversation with the operator goes, at both ends.
pub const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STANDARD,
    max_line_out: 16 << 20,
    max_calls: 64,
    incoming: IncomingLimits { running: 16, waiting: 64, notifications: 64, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 1 << 20, reply_bytes: 16 << 20, events: 1024, event_bytes: 1 << 20 },
    write_stall: Duration::from_secs(10),
    drain: Duration::from_secs(5),
    cancel: CancelWire::Notify("$/cancel"),
    duplicate_ids: DuplicateIds::Refuse,
};

/// The people that a node knows, to be changed by its operator.
pub trait AddressBook: Send + Sync + 'static {
    /// Knows somebody by a name; their number.
    fn add(&self, name: String, address: Address) -> BoxFuture<Result<u64, String>>;
    /// Forgets somebody.
    fn remove(&self, number: u64) -> BoxFuture<Result<(), String>>;
}

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
#[error("the socket {} cannot be made: {source}", .path.display())]
pub struct DoorError {
    /// Where.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// An open door. Dropping it removes the socket.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens the door of a host. Only one host has a state at a time, so a socket that is there was left by one that died.
    /// Must be called within a tokio runtime.
    pub fn open(fleet: &Fleet) -> Result<Self, DoorError> {
        let path = fleet.state_dir().join(SOCKET);
        let failed = |source| DoorError { path: path.clone(), source };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        // The folder is private already; this is for those who moved it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves whoever comes, until the future is dropped.
    pub async fn serve(&self, fleet: Fleet, book: Arc<dyn AddressBook>, stop: Arc<tokio::sync::Notify>) {
        let own = rustix::process::getuid().as_raw();
        let places = Arc::new(Semaphore::new(CONVERSATIONS));
        loop {
            // It is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of descriptors, most likely; somebody else has to close some.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let is_ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0);
            if is_ours {
                let clerk = Clerk {
                    fleet: fleet.clone(),
                    book: Arc::clone(&book),
                    stop: Arc::clone(&stop),
                    watching: AtomicBool::new(false),
                };
                tokio::spawn(async move {
                    converse(stream, clerk).await;
                    drop(place);
                });
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // If it is gone already, all the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn converse(stream: UnixStream, clerk: Clerk) {
    let (input, output) = stream.into_split();
    let peer = Peer::start(Wiring::new(input, output), Arc::new(clerk), CONFIG);
    peer.ended().await;
}

struct Clerk {
    fleet: Fleet,
    book: Arc<dyn AddressBook>,
    stop: Arc<tokio::sync::Notify>,
    /// Whether it is being told what happens; telling it twice would only double it.
    watching: AtomicBool,
}

impl Handler for Clerk {
    fn request(&self, call: Call) -> Answer {
        let Call { peer, method, params, .. } = call;
        let (fleet, book) = (self.fleet.clone(), Arc::clone(&self.book));
        if method == "watch" {
            if !self.watching.swap(true, Ordering::AcqRel) {
                tokio::spawn(tell(fleet, peer));
            }
            return Answer::Now(answer(&()));
        }
        if method == "shutdown" {
            self.stop.notify_one();
            return Answer::Now(answer(&()));
        }
        Answer::Later(Box::pin(async move { serve(&fleet, &*book, &method, params.as_deref()).await }))
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

/// Tells a watcher what happens until it goes.
async fn tell(fleet: Fleet, peer: Peer) {
    let mut happenings = fleet.listen();
    drop(fleet);
    loop {
        let heard = tokio::select! {
            heard = happenings.recv() => heard,
            // Nothing may happen for a long time, and nobody would notice that the watcher has gone.
            _ = peer.ended() => return,
        };
        let told = match heard {
            Ok(happening) => match to_raw_value(&*happening) {
                Ok(params) => peer.notify(Lane::Action, HAPPENED, Some(&params)).await,
                Err(_) => continue,
            },
            Err(RecvError::Lagged(count)) => match to_raw_value(&serde_json::json!({ "count": count })) {
                Ok(params) => peer.notify(Lane::Action, MISSED, Some(&params)).await,
                Err(_) => continue,
            },
            Err(RecvError::Closed) => return,
        };
        if told.is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    id: String,
    #[serde(default)]
    permissions: Vec<Permission>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invoke {
    panel: String,
    action: String,
    #[serde(default)]
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    to: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Person {
    name: String,
    address: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    number: u64,
}

/// Answers one question of the operator, whichever way it came.
///
/// # Errors
/// The error is the answer.
pub async fn serve(
    fleet: &Fleet,
    book: &dyn AddressBook,
    method: &str,
    params: Option<&RawValue>,
) -> Outcome {
    match method {
        "list" => answer(&fleet.list().await),
        "show" => asked(fleet.show(&read::<One>(params)?.id).await),
        "start" => state(fleet.start_one(&read::<One>(params)?.id).await),
        "stop" => state(fleet.stop_one(&read::<One>(params)?.id).await),
        "restart" => state(fleet.restart_one(&read::<One>(params)?.id).await),
        "enable" => state(fleet.enable(&read::<One>(params)?.id).await),
        "disable" => state(fleet.disable(&read::<One>(params)?.id).await),
        "reset" => state(fleet.reset(&read::<One>(params)?.id).await),
        "grant" => {
            let Wanted { id, permissions } = read(params)?;
            asked(fleet.grant(&id, &permissions).await)
        }
        "revoke" => {
            let Wanted { id, permissions } = read(params)?;
            asked(fleet.revoke(&id, &permissions).await)
        }
        "call" => {
            let Invoke { panel, action, input } = read(params)?;
            match fleet.call(&panel, &action, input.as_deref()).await {
                Ok(invoked) => answer(&invoked),
                Err(error) => Err(called(&error)),
            }
        }
        "ui" => answer(&*fleet.panels().snapshot()),
        "notices" => answer(&fleet.notices().after(0)),
        "metrics" => answer(&fleet.metrics().to_text()),
        "trace" => asked(fleet.trace(&read::<One>(params)?.id).await),
        "rescan" => answer(&fleet.rescan().await),
        "message.send" => {
            let Letter { to, text } = read(params)?;
            let destination = Address::parse(&to).map_err(|error| refused(&error))?;
            let message = Outgoing { destination, content: text, title: None, method: None, reply_to: None };
            let sent = fleet.messaging().send(message).await.map_err(|error| refused(&error))?;
            answer(&serde_json::json!({ "messageHash": sent.hash, "state": sent.state }))
        }
        "message.list" => {
            let Page { limit } = read(params)?;
            let query = MessageQuery::newest(limit.min(1000));
            let messages = fleet.messaging().messages(query).await.map_err(|error| refused(&error))?;
            answer(&messages.iter().map(MessageJson::from).collect::<Vec<_>>())
        }
        "node" => answer(&serde_json::json!({ "address": fleet.messaging().own_address() })),
        "contacts.list" => {
            let query = ContactQuery { text: None, after: None, limit: 1000 };
            let contacts = fleet.messaging().contacts(query).await.map_err(|error| refused(&error))?;
            answer(&contacts.iter().map(ContactJson::from).collect::<Vec<_>>())
        }
        "contacts.add" => {
            let Person { name, address } = read(params)?;
            let address = Address::parse(&address).map_err(|error| refused(&error))?;
            let number = book.add(name, address).await.map_err(|why| refused(&why))?;
            answer(&serde_json::json!({ "number": number }))
        }
        "contacts.remove" => {
            let Number { number } = read(params)?;
            book.remove(number).await.map_err(|why| refused(&why))?;
            answer(&())
        }
        unknown => Err(ErrorObject::new(code::METHOD_NOT_FOUND, format!("unknown method '{unknown}'"))),
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorObject::new(code::INVALID_PARAMS, error.to_string()))
}

fn answer(value: &impl Serialize) -> Outcome {
    to_raw_value(value).map_err(|error| ErrorObject::new(code::INTERNAL_ERROR, error.to_string()))
}

fn asked(result: Result<impl Serialize, AskError>) -> Outcome {
    result.map_err(|error| of_ask(&error)).and_then(|value| answer(&value))
}

fn state(result: Result<super::life::View, AskError>) -> Outcome {
    let view = result.map_err(|error| of_ask(&error))?;
    answer(&serde_json::json!({
        "state": view.state,
        "disabled": view.disabled,
        "failed": view.failed,
        "detail": view.detail,
    }))
}

fn of_ask(error: &AskError) -> ErrorObject {
    let code = match error {
        AskError::Unknown { .. } => code::sep::NOT_FOUND,
        AskError::State { .. } | AskError::NotUp => code::sep::EXTENSION_NOT_RUNNING,
        AskError::Permission { .. } => code::sep::PERMISSION_DENIED,
        AskError::NotRecorded { .. } | AskError::Leaving => code::sep::UNAVAILABLE,
    };
    ErrorObject::new(code, error.to_string())
}

fn called(error: &CallError) -> ErrorObject {
    let code = match error {
        CallError::Key(_) => code::INVALID_PARAMS,
        CallError::Refused(_) => code::sep::NOT_FOUND,
        CallError::Asleep { .. } | CallError::Gone { .. } => code::sep::EXTENSION_NOT_RUNNING,
        CallError::Failed(super::channel::CallFailure::Late { .. }) => code::sep::TIMEOUT,
        CallError::Failed(super::channel::CallFailure::Ended { .. }) => code::sep::EXTENSION_CRASHED,
        CallError::Failed(_) | CallError::Unfit { .. } => code::INTERNAL_ERROR,
    };
    ErrorObject::new(code, error.to_string())
}

fn refused(why: &dyn std::fmt::Display) -> ErrorObject {
    ErrorObject::new(Code(code::sep::SEND_REJECTED.0), why.to_string())
}
