//! From the network to the extensions. What happens is told to everybody who hears about it, and nobody is waited for.

use std::sync::{Arc, PoisonError, RwLock};

use super::queue::Loss;
use super::shape::Telling;
use super::subscription::Subscription;
use super::topic::Topic;
use crate::host::channel::now_ms;
use crate::mesh::{Ear, MeshEvent};
use crate::protocol::ExtensionId;

/// Tells events to extensions.
pub struct Bus {
    members: RwLock<Vec<Member>>,
    ledger: Arc<dyn Ledger>,
}

struct Member {
    extension: ExtensionId,
    subscription: Arc<Subscription>,
}

/// Counts what becomes of events. Called in the midst of telling them: it must return at once.
pub trait Ledger: Send + Sync + 'static {
    /// An event was offered to an extension, at this cost.
    fn offered(&self, extension: &ExtensionId, topic: Topic, loss: Loss);
}

/// A ledger for those who do not count.
#[derive(Clone, Copy, Debug)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn offered(&self, _: &ExtensionId, _: Topic, _: Loss) {}
}

impl Bus {
    /// Tells nobody yet.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { members: RwLock::new(Vec::new()), ledger }
    }

    /// Tells this extension too; a subscription that it had before is forgotten.
    pub fn join(&self, extension: ExtensionId, subscription: Arc<Subscription>) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| member.extension != extension);
        members.push(Member { extension, subscription });
    }

    /// Tells this extension no more.
    pub fn leave(&self, extension: &ExtensionId) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| member.extension != *extension);
    }

    /// Tells an event to everybody who hears about it. It is written once for all who see the same of it, takes constant time
    /// for each of them, and never waits for any.
    pub fn offer(&self, event: &MeshEvent) {
        let mut telling = Telling::new(event, now_ms());
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        for Member { extension, subscription } in &*members {
            if let Some(loss) = subscription.tell(&mut telling) {
                self.ledger.offered(extension, telling.topic, loss);
            }
        }
    }
}

impl Ear for Bus {
    fn hear(&self, event: &MeshEvent) {
        self.offer(event);
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Bus").field("members", &members.len()).finish_non_exhaustive()
    }
}
