//! A network that is a file: every node of it, in whatever process, has the same SQLite database open, and that is all there
//! is between them.
//!
//! A message is written into the file by its sender and taken from there by its receiver, in one transaction that also says so
//! to the sender. So it arrives once, whoever is killed when. What a node has to be told waits in the file as well, until it
//! has been. A node that is woken is woken through a named pipe beside the file; nobody polls.

mod deliver;
mod presence;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::peer::BoxFuture;

use self::deliver::Post;
use super::store::{self, Bounds, Store, Trouble, Who};
use super::{
    Address, Contact, ContactError, ContactQuery, Ear, Entry, MeshError, Message, MessageHash, MessageQuery,
    Messaging, OpenError, Outgoing, Sent,
};

/// One node of a mesh that is a file. When it is dropped the node is offline.
///
/// Whoever listens is also told of messages that arrived, and came further, before: everything that nobody was told yet. A
/// process that is killed while it is told of a message is told of that one again.
#[derive(Debug)]
pub struct Embedded {
    store: Store,
    bounds: EmbeddedBounds,
}

/// Which node, and within what bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedOptions {
    /// The name of the node. It gets an identity and an address when it is new, and has the same ones ever after.
    pub node: String,
    /// How long the others believe that a node lives that gives no sign. It gives three in this time.
    pub lease: Duration,
    /// How much is kept.
    pub bounds: EmbeddedBounds,
}

/// How much a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedBounds {
    /// How many messages may wait for one destination.
    pub waiting: u64,
    /// How many messages are kept; the oldest go. Those that wait are not counted out.
    pub messages: u64,
    /// How many contacts there may be.
    pub contacts: u64,
}

impl EmbeddedOptions {
    /// A node with this name, a lease of 6 s, and room for 1,000 waiting messages a destination, 100,000 messages and 10,000
    /// contacts.
    #[must_use]
    pub fn named(node: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            lease: Duration::from_secs(6),
            bounds: EmbeddedBounds { waiting: 1_000, messages: 100_000, contacts: 10_000 },
        }
    }
}

/// A node of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it gets messages.
    pub address: Address,
    /// Who it is.
    pub identity: Address,
    /// What it is called.
    pub name: String,
    /// Whether it can be reached.
    pub standing: Standing,
}

/// Whether a node can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It runs.
    Online,
    /// It does not run; messages wait for it.
    Offline,
    /// Nobody runs it: it was made by [`Embedded::incoming`], and takes everything.
    Puppet,
}

/// What somebody is made to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The title of the message; may be empty.
    pub title: String,
    /// Its text.
    pub content: String,
    /// The message that it answers.
    pub reply_to: Option<MessageHash>,
}

/// Why nobody can be made to say something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeakError {
    /// Not a name for a node.
    #[error(
        "`{name}` is not a name for a node: it must have 1 to {} bytes and no control characters",
        store::MAX_NODE_NAME_BYTES
    )]
    Name {
        /// The name, cut and escaped.
        name: String,
    },
    /// A real node has this name, and speaks for itself.
    #[error("`{name}` is a real node of this mesh and speaks for itself")]
    Real {
        /// The name.
        name: String,
    },
    /// The database cannot be used.
    #[error("the network cannot be used: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
}

impl From<Trouble> for SpeakError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable { why: trouble.0 }
    }
}

impl Embedded {
    /// Opens a mesh, makes it if there is none, and goes online in it as one of its nodes. What came for the node while it was
    /// away is taken at once. Reads and writes the file, which takes a few milliseconds.
    pub fn open(path: impl AsRef<Path>, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let EmbeddedOptions { node, lease, bounds } = options;
        let kept = Bounds { messages: bounds.messages, contacts: bounds.contacts };
        let store = Store::open(path.as_ref(), &Who::Named(node), kept, |belfry, _| {
            Box::new(Post::new(belfry.clone(), lease))
        })?;
        Ok(Self { store, bounds })
    }

    /// The database.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
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

    /// From now on nothing is sent to this address, and what comes from there is rejected.
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

    /// All nodes of the mesh by name, this one too.
    pub fn nodes(&self) -> BoxFuture<Result<Vec<Node>, MeshError>> {
        self.store.read(deliver::nodes)
    }

    /// Makes somebody of this name send a message to this node, for trying things out. Who that is exists from then on, is
    /// always online and takes every answer.
    pub fn incoming(&self, from: impl Into<String>, line: Line) -> BoxFuture<Result<Sent, SpeakError>> {
        let (from, bounds) = (from.into(), self.bounds);
        self.store.write(move |turn| deliver::speak(turn, &from, line, &bounds))
    }
}

impl Messaging for Embedded {
    fn own_address(&self) -> Address {
        self.store.me()
    }

    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        let bounds = self.bounds;
        self.store.write(move |turn| deliver::send(turn, message, &bounds))
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
