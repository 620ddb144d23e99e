//! A network that is Reticulum: a node of it runs as a child, in Python with the packages `rns` and `lxmf`, and what it sends and
//! receives is kept in the same kind of file as that of [`Embedded`](super::Embedded).

mod converse;
mod line;
mod node;
mod talk;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_supervise::state::Ladder;
use outrigger_wire::peer::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

pub use self::node::Interface;

use self::converse::{Conversation, Wish};
use super::store::{Bounds, Idle, Store, Who};
use super::{
    Address, Contact, ContactError, ContactQuery, Ear, Entry, MeshError, Message, MessageQuery, Messaging,
    OpenError, Outgoing, Sent,
};

/// How many sends may wait for the node.
const WISHES: usize = 256;

/// A node of Reticulum. Dropping it ends the child.
#[derive(Debug)]
pub struct Lxmf {
    store: Arc<Store>,
    child: Child,
    wishes: mpsc::Sender<Wish>,
    versions: Versions,
    _conversation: AbortOnDropHandle<()>,
}

/// How a node of Reticulum is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LxmfOptions {
    /// The interpreter; `python3` on the `PATH` when there is no wish.
    pub python: Option<PathBuf>,
    /// The folder with `RNS` and `LXMF`; the interpreter's own when there is none.
    pub packages: Option<PathBuf>,
    /// Where everything is kept: the identity, what Reticulum remembers, messages and contacts.
    pub folder: PathBuf,
    /// By what the node is reached.
    pub interfaces: Vec<Interface>,
    /// What the node calls itself.
    pub display_name: String,
    /// How often it says that it is there.
    pub announce_every: Duration,
    /// After this much silence somebody counts as gone.
    pub silent_after: Duration,
    /// How many messages are kept; the oldest go.
    pub messages: u64,
    /// How many contacts there may be.
    pub contacts: u64,
}

impl LxmfOptions {
    /// A node that keeps everything in `folder` and is reached by nobody yet: `python3` with its own packages, an announcement
    /// every ten minutes, half an hour of silence, 100,000 messages and 10,000 contacts.
    #[must_use]
    pub fn usual(folder: impl Into<PathBuf>, display_name: impl Into<String>) -> Self {
        Self {
            python: None,
            packages: None,
            folder: folder.into(),
            interfaces: Vec::new(),
            display_name: display_name.into(),
            announce_every: Duration::from_secs(600),
            silent_after: Duration::from_secs(1800),
            messages: 100_000,
            contacts: 10_000,
        }
    }
}

/// The packages that are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of `rns`.
    pub rns: String,
    /// Of `lxmf`.
    pub lxmf: String,
}

/// Why there is no node of Reticulum.
#[derive(Debug, thiserror::Error)]
pub enum LxmfError {
    /// There is no Python.
    #[error("there is no `{wanted}` to run Reticulum with; install Python 3.9 or newer")]
    NoPython {
        /// What was looked for.
        wanted: String,
    },
    /// There is Python, and not the packages.
    #[error("Python has no packages for Reticulum: {detail}")]
    NoPackages {
        /// Which is missing, and how to install it.
        detail: String,
    },
    /// The packages, or Python itself, are of a version that we do not know.
    #[error("{detail}")]
    Unsupported {
        /// Which, and what is supported.
        detail: String,
    },
    /// It could not be started.
    #[error("the Reticulum node could not be started: {why}")]
    NotStarted {
        /// Why.
        why: String,
    },
    /// Its folder cannot be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What it keeps cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Lxmf {
    /// Starts a node and waits until it is there. Must be called inside a tokio runtime.
    pub async fn start(supervisor: &Supervisor, options: LxmfOptions) -> Result<Self, LxmfError> {
        let child = node::start(supervisor, &options)?;
        let (first, hello) = line::first(&child).await?;
        let bounds = Bounds { messages: options.messages, contacts: options.contacts };
        // The name in the file only has to be unique; people see the display name.
        let who =
            Who::Given { address: hello.address, identity: hello.identity, name: hello.address.to_string() };
        let path = options.folder.join("messages.db");
        let store = Arc::new(Store::open(&path, &who, bounds, |_, _| Box::new(Idle))?);
        let (wishes, asked) = mpsc::channel(WISHES);
        let conversation = Conversation::new(Arc::clone(&store), asked, options.silent_after);
        let task = tokio::spawn(conversation.run(child.clone(), first));
        Ok(Self {
            store,
            child,
            wishes,
            versions: hello.versions,
            _conversation: AbortOnDropHandle::new(task),
        })
    }

    /// The packages that are in use.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The database with messages and contacts.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Says that the node is there, now.
    pub async fn announce(&self) -> Result<(), MeshError> {
        self.wishes.send(Wish::Announce).await.map_err(|_| gone())
    }

    /// Ends the node, and returns when it has ended.
    pub async fn stop(&self, ladder: Ladder) {
        self.child.stop(ladder).await;
    }

    /// Adds a contact, and returns its number.
    pub fn contact_add(&self, entry: Entry) -> BoxFuture<Result<u64, ContactError>> {
        self.store.contact_add(entry)
    }

    /// Replaces what is known about a contact.
    pub fn contact_update(&self, id: u64, entry: Entry) -> BoxFuture<Result<(), ContactError>> {
        self.store.contact_update(id, entry)
    }

    /// Removes a contact.
    pub fn contact_remove(&self, id: u64) -> BoxFuture<Result<(), ContactError>> {
        self.store.contact_remove(id)
    }

    /// From now on nothing is sent to this address, and what comes from there is thrown away.
    pub fn block(&self, address: Address) -> BoxFuture<Result<(), MeshError>> {
        self.store.block(address)
    }

    /// Takes a block back.
    pub fn unblock(&self, address: Address) -> BoxFuture<Result<(), MeshError>> {
        self.store.unblock(address)
    }

    /// The addresses that are blocked.
    pub fn blocked(&self) -> BoxFuture<Result<Vec<Address>, MeshError>> {
        self.store.blocked()
    }
}

impl Messaging for Lxmf {
    fn own_address(&self) -> Address {
        self.store.me()
    }

    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        let (answer, answered) = oneshot::channel();
        let wishes = self.wishes.clone();
        let checked = self.store.read::<_, MeshError>({
            let (me, to) = (self.store.me(), message.destination);
            move |on| super::store::is_blocked(on, me, to)
        });
        let me = self.store.me();
        Box::pin(async move {
            use super::Refused;
            if message.destination == me {
                return Err(MeshError::Refused(Refused::InvalidDestination));
            }
            if checked.await? {
                return Err(MeshError::Refused(Refused::BlockedDestination));
            }
            wishes.send(Wish::Send { message, answer }).await.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        self.store.messages(query)
    }

    fn contacts(&self, query: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        self.store.contacts(query)
    }

    fn listen(&self, ear: Arc<dyn Ear>) {
        self.store.listen(ear);
    }
}

fn gone() -> MeshError {
    MeshError::Unavailable { why: "the Reticulum node has ended".to_owned() }
}
