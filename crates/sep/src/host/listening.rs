//! What an extension wants to hear about, as the gate asks for it; and what becomes of events, as it is counted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::events::{Ledger, Loss, Subscription, Topic};
use super::gate::{GrantSet, Listening, Reason};
use super::record::{EventFate, MetricsBook};
use crate::protocol::{DeniedTopic, ExtensionId, Permission, Version};

/// What an extension wants to hear about, and what of it it does.
#[derive(Debug)]
pub(super) struct ListensTo {
    subscription: Arc<Subscription>,
    grants: Arc<GrantSet>,
    wanted: Mutex<BTreeSet<String>>,
    epoch: AtomicU64,
}

impl ListensTo {
    pub(super) fn new(subscription: Arc<Subscription>, grants: Arc<GrantSet>, topics: &[String]) -> Self {
        let wanted = Mutex::new(topics.iter().cloned().collect());
        Self { subscription, grants, wanted, epoch: AtomicU64::new(0) }
    }

    /// A new session begins: it wants what its manifest says.
    pub(super) fn reset(&self, topics: &[String]) {
        *self.wanted() = topics.iter().cloned().collect();
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it does not hear about a topic; none if it does.
    fn refusal(&self, version: Version, name: &str) -> Option<String> {
        let Some(topic) = Topic::parse(name).ok().filter(|topic| version.serves(topic.since())) else {
            return Some("unknown_topic".to_owned());
        };
        let needed = [Some(Permission::EventsSubscribe), topic.permission()];
        let reasons = needed.into_iter().flatten().map(|permission| self.grants.decide(permission));
        reasons.into_iter().find(|reason| *reason != Reason::Granted).map(|reason| reason.as_str().to_owned())
    }
}

impl Listening for ListensTo {
    fn known(&self, version: Version) -> Vec<String> {
        Topic::known(version).into_iter().map(|topic| topic.as_str().to_owned()).collect()
    }

    fn subscribed(&self, version: Version) -> Vec<String> {
        let wanted = self.wanted();
        wanted.iter().filter(|name| self.refusal(version, name).is_none()).cloned().collect()
    }

    fn denied(&self, version: Version) -> Vec<DeniedTopic> {
        let denied = |name: &String| {
            // What this version does not have is not a topic that is denied.
            let known = Topic::parse(name).is_ok_and(|topic| version.serves(topic.since()));
            let reason = self.refusal(version, name).filter(|_| known)?;
            Some(DeniedTopic { topic: name.clone(), reason })
        };
        self.wanted().iter().filter_map(denied).collect()
    }

    fn subscribe(&self, version: Version, topics: &[String]) -> Vec<DeniedTopic> {
        let mut denied = Vec::new();
        let mut added = Vec::new();
        for name in topics {
            match (self.refusal(version, name), Topic::parse(name)) {
                (None, Ok(topic)) => {
                    self.wanted().insert(name.clone());
                    added.push(topic);
                }
                (reason, _) => {
                    let reason = reason.unwrap_or_else(|| "unknown_topic".to_owned());
                    denied.push(DeniedTopic { topic: name.clone(), reason });
                }
            }
        }
        self.subscription.add(&added);
        self.epoch.fetch_add(1, Ordering::Release);
        denied
    }

    fn unsubscribe(&self, topics: &[String]) {
        let known: Vec<Topic> = topics.iter().filter_map(|name| Topic::parse(name).ok()).collect();
        self.wanted().retain(|name| !topics.contains(name));
        self.subscription.remove(&known);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn regrant(&self, grants: &GrantSet) {
        self.subscription.permit(&grants.granted());
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

/// What becomes of events is counted for each extension.
pub(super) struct EventsCounted(pub(super) Arc<MetricsBook>);

impl Ledger for EventsCounted {
    fn offered(&self, extension: &ExtensionId, topic: Topic, loss: Loss) {
        let metrics = self.0.of(extension);
        metrics.events(EventFate::Offered, topic.as_str(), 1);
        if loss.dropped > 0 {
            metrics.events(EventFate::Dropped, topic.as_str(), loss.dropped);
        }
        if loss.coalesced > 0 {
            metrics.events(EventFate::Coalesced, topic.as_str(), loss.coalesced);
        }
    }
}
