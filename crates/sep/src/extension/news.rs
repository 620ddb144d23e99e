//! What happened, as it was told and as types.

use serde::Deserialize;
use serde_json::Value;

use super::client::Message;
use crate::mesh::{Address, Change, DeliveryState, MessageHash};
use crate::protocol::Dropped;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Counts every event of this session, also those that were dropped.
    pub seq: u64,
    /// What it is about.
    pub topic: String,
    /// When it happened, since the epoch.
    pub time_ms: u64,
    /// What happened.
    pub data: Value,
    /// What was dropped since the event before, because this extension was too slow.
    pub dropped: Option<Dropped>,
}

/// What happened, as types.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A message came in.
    Received(Box<Message>),
    /// A message was taken for delivery.
    Sent(Box<Message>),
    /// A message came further.
    State {
        /// Which.
        hash: MessageHash,
        /// Where it is.
        state: DeliveryState,
        /// Where it was.
        previous: DeliveryState,
    },
    /// Somebody can be reached.
    Online {
        /// Who.
        address: Address,
        /// How far away.
        hops: Option<u32>,
        /// What they are called, if contacts may be read.
        name: Option<String>,
    },
    /// Somebody cannot be reached any more.
    Offline {
        /// Who.
        address: Address,
    },
    /// The list of contacts changed.
    Contact {
        /// Which entry.
        id: u64,
        /// How.
        change: Change,
    },
    /// Something that this kit does not know.
    Other,
}

impl Event {
    /// The event as types.
    ///
    /// # Errors
    /// When the data does not fit the topic.
    pub fn news(&self) -> Result<News, serde_json::Error> {
        #[derive(Deserialize)]
        struct OfMessage {
            message: Message,
        }
        #[derive(Deserialize)]
        struct OfState {
            hash: MessageHash,
            state: DeliveryState,
            previous: DeliveryState,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct OfPeer {
            destination_hash: Address,
            hops: Option<u32>,
            display_name: Option<String>,
        }
        #[derive(Deserialize)]
        struct OfContact {
            id: u64,
            change: Change,
        }
        let data = &self.data;
        Ok(match self.topic.as_str() {
            "message.received" => News::Received(Box::new(OfMessage::deserialize(data)?.message)),
            "message.sent" => News::Sent(Box::new(OfMessage::deserialize(data)?.message)),
            "message.state" => {
                let OfState { hash, state, previous } = OfState::deserialize(data)?;
                News::State { hash, state, previous }
            }
            "peer.online" => {
                let peer = OfPeer::deserialize(data)?;
                News::Online { address: peer.destination_hash, hops: peer.hops, name: peer.display_name }
            }
            "peer.offline" => News::Offline { address: OfPeer::deserialize(data)?.destination_hash },
            "contact.changed" => {
                let OfContact { id, change } = OfContact::deserialize(data)?;
                News::Contact { id, change }
            }
            _ => News::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(topic: &str, data: Value) -> Event {
        Event { seq: 1, topic: topic.into(), time_ms: 0, data, dropped: None }
    }

    #[test]
    fn events_are_read_by_their_topic_and_newer_members_are_let_pass() {
        let hash = "00112233445566778899aabbccddeeff";
        let online = event("peer.online", json!({"destinationHash": hash, "hops": 2, "mood": "good"}));
        let address = Address::parse(hash).expect("a hash");
        assert_eq!(online.news().expect("fits"), News::Online { address, hops: Some(2), name: None });
        assert!(event("peer.online", json!({"hops": 2})).news().is_err());
        assert_eq!(event("weather.rain", json!(1)).news().expect("anything"), News::Other);
    }
}
