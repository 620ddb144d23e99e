//! A network for those who only look at extensions: nobody is there, and nothing can be sent.

use std::sync::Arc;

use outrigger_wire::peer::BoxFuture;

use super::{
    Address, Contact, ContactQuery, Ear, MeshError, Message, MessageQuery, Messaging, Outgoing, Sent,
};

/// No network at all.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

fn unavailable<T: Send + 'static>() -> BoxFuture<Result<T, MeshError>> {
    Box::pin(async { Err(MeshError::Unavailable { why: "no host is up".to_owned() }) })
}

impl Messaging for Nowhere {
    fn own_address(&self) -> Address {
        Address([0; 16])
    }

    fn send(&self, _: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        unavailable()
    }

    fn messages(&self, _: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        unavailable()
    }

    fn contacts(&self, _: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        unavailable()
    }

    fn listen(&self, _: Arc<dyn Ear>) {}
}
