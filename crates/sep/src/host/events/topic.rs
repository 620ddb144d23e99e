//! The catalogue: which topics there are, since when, and what one must be allowed to hear about them.

use crate::mesh::MeshEvent;
use crate::protocol::words::words;
use crate::protocol::{Permission, V1_0, V1_1, Version};

words! {
    /// Something that extensions can hear about.
    Topic ("topic") {
        /// A message came in.
        MessageReceived = "message.received",
        /// A message was taken for delivery.
        MessageSent = "message.sent",
        /// A message came further.
        MessageState = "message.state",
        /// Somebody can be reached.
        PeerOnline = "peer.online",
        /// Somebody cannot be reached any more.
        PeerOffline = "peer.offline",
        /// The list of contacts changed.
        ContactChanged = "contact.changed",
    }
}

/// Topics that make room for each other when too much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Message,
    Peer,
    Contact,
}

impl Class {
    pub(super) const COUNT: usize = 3;

    pub(super) fn index(self) -> usize {
        match self {
            Self::Message => 0,
            Self::Peer => 1,
            Self::Contact => 2,
        }
    }
}

impl Topic {
    /// What one must be allowed beside [`Permission::EventsSubscribe`].
    #[must_use]
    pub fn permission(self) -> Option<Permission> {
        match self {
            Self::MessageReceived | Self::MessageSent | Self::MessageState => Some(Permission::MessagesRead),
            Self::PeerOnline | Self::PeerOffline => None,
            Self::ContactChanged => Some(Permission::ContactsRead),
        }
    }

    /// The first version that has it.
    #[must_use]
    pub fn since(self) -> Version {
        match self {
            Self::MessageReceived | Self::MessageSent | Self::PeerOnline => V1_0,
            Self::MessageState | Self::PeerOffline | Self::ContactChanged => V1_1,
        }
    }

    /// The topics of a version, sorted by name.
    #[must_use]
    pub fn known(version: Version) -> Vec<Self> {
        let mut known: Vec<_> =
            Self::ALL.iter().copied().filter(|topic| version.serves(topic.since())).collect();
        known.sort_by_key(|topic| topic.as_str());
        known
    }

    /// What an event is about.
    #[must_use]
    pub fn of(event: &MeshEvent) -> Self {
        match event {
            MeshEvent::Received(_) => Self::MessageReceived,
            MeshEvent::Sent(_) => Self::MessageSent,
            MeshEvent::State { .. } => Self::MessageState,
            MeshEvent::Online { .. } => Self::PeerOnline,
            MeshEvent::Offline { .. } => Self::PeerOffline,
            MeshEvent::Contact { .. } => Self::ContactChanged,
        }
    }

    pub(super) fn class(self) -> Class {
        match self {
            Self::MessageReceived | Self::MessageSent | Self::MessageState => Class::Message,
            Self::PeerOnline | Self::PeerOffline => Class::Peer,
            Self::ContactChanged => Class::Contact,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::MessageReceived => 1,
            Self::MessageSent => 1 << 1,
            Self::MessageState => 1 << 2,
            Self::PeerOnline => 1 << 3,
            Self::PeerOffline => 1 << 4,
            Self::ContactChanged => 1 << 5,
        }
    }
}

/// A set of topics that can be looked at without a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TopicSet(u8);

impl TopicSet {
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    pub(super) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub(super) fn has(self, topic: Topic) -> bool {
        self.0 & topic.bit() != 0
    }

    pub(super) fn add(&mut self, topics: &[Topic]) {
        topics.iter().for_each(|topic| self.0 |= topic.bit());
    }

    pub(super) fn remove(&mut self, topics: &[Topic]) {
        topics.iter().for_each(|topic| self.0 &= !topic.bit());
    }

    pub(super) fn filter(self, keep: impl Fn(Topic) -> bool) -> Self {
        let mut kept = Self::default();
        Topic::ALL
            .iter()
            .filter(|topic| self.has(**topic) && keep(**topic))
            .for_each(|topic| kept.add(&[*topic]));
        kept
    }

    /// All of them, sorted by name.
    pub(super) fn list(self) -> Vec<Topic> {
        let mut topics: Vec<_> = Topic::ALL.iter().copied().filter(|topic| self.has(*topic)).collect();
        topics.sort_by_key(|topic| topic.as_str());
        topics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_frozen() {
        let table: Vec<String> = Topic::ALL
            .iter()
            .map(|topic| {
                let permission = topic.permission().map_or("-", Permission::as_str);
                format!("{topic} {} {permission}", topic.since())
            })
            .collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        message.received 1.0.0 messages.read
        message.sent 1.0.0 messages.read
        message.state 1.1.0 messages.read
        peer.online 1.0.0 -
        peer.offline 1.1.0 -
        contact.changed 1.1.0 contacts.read
        ");
    }

    #[test]
    fn an_older_version_knows_fewer_topics() {
        let names = |version| Topic::known(version).iter().map(|topic| topic.as_str()).collect::<Vec<_>>();
        assert_eq!(names(V1_0), ["message.received", "message.sent", "peer.online"]);
        assert_eq!(names(V1_1).len(), Topic::ALL.len());
        assert!(names(V1_1).is_sorted());
    }

    #[test]
    fn a_set_holds_what_was_added_and_not_what_was_removed() {
        let mut set = TopicSet::default();
        set.add(Topic::ALL);
        assert_eq!(set.list().len(), Topic::ALL.len());
        set.remove(&[Topic::PeerOnline]);
        assert!(!set.has(Topic::PeerOnline) && set.has(Topic::PeerOffline));
        assert_eq!(set.filter(|topic| topic.permission().is_none()).list(), [Topic::PeerOffline]);
    }
}
