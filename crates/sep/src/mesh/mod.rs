//! What extensions talk about: messages, contacts and presence, behind one trait, so that the host does not care which network
//! is below.

pub mod embedded;
pub mod lxmf;
mod model;
mod nowhere;
mod store;

pub use model::{
    Address, Attachment, AttachmentKind, BadHash, Change, Contact, ContactQuery, DeliveryState, Direction,
    MeshError, MeshEvent, Message, MessageHash, MessageQuery, Method, Outgoing, Position, Refused, Sent,
};

pub use embedded::{Embedded, EmbeddedBounds, EmbeddedOptions};
pub use nowhere::Nowhere;
pub use store::{ContactError, Entry, MAX_CONTACT_NAME_BYTES, MAX_NODE_NAME_BYTES, OpenError};

use std::sync::Arc;

use outrigger_wire::peer::BoxFuture;

/// A network that carries messages. All methods return at once; the futures do the work.
pub trait Messaging: Send + Sync + 'static {
    /// The address that messages are sent from.
    fn own_address(&self) -> Address;

    /// Takes a message for delivery. It has a hash and a state from then on, and goes on to change its state.
    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>>;

    /// Messages, newest first, `(timestamp_ms, hash)` descending.
    fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>>;

    /// Contacts, by id ascending.
    fn contacts(&self, query: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>>;

    /// Tells `ear` everything that happens from now on, in order. There is one ear; a second one replaces it.
    fn listen(&self, ear: Arc<dyn Ear>);
}

/// Hears what happens in the network. Called on the network's own threads: it must return at once and never block.
pub trait Ear: Send + Sync + 'static {
    /// Something happened.
    fn hear(&self, event: &MeshEvent);
}
