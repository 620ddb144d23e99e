//! Messages, contacts and presence as values.

use std::fmt;

use crate::protocol::words::words;

/// A text that is not a hash of the right length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {digits} lower-case hexadecimal digits")]
pub struct BadHash {
    /// The text, cut and escaped.
    pub text: String,
    /// How many digits are needed.
    pub digits: usize,
}

macro_rules! hash {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// Reads lower-case hexadecimal digits.
            pub fn parse(text: &str) -> Result<Self, BadHash> {
                let bad = || BadHash { text: text.escape_debug().take(80).collect(), digits: 2 * $bytes };
                let digits = text.as_bytes();
                if digits.len() != 2 * $bytes {
                    return Err(bad());
                }
                let mut bytes = [0; $bytes];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                    let nibble = |digit: u8| match digit {
                        b'0'..=b'9' => Some(digit - b'0'),
                        b'a'..=b'f' => Some(digit - b'a' + 10),
                        _ => None,
                    };
                    *byte = nibble(pair[0]).zip(nibble(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(bad)?;
                }
                Ok(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

hash! {
    /// Where messages go: 16 bytes, written as 32 hexadecimal digits.
    Address, 16
}

hash! {
    /// Which message: 32 bytes, written as 64 hexadecimal digits.
    MessageHash, 32
}

words! {
    /// How far a message has come.
    DeliveryState ("delivery state") {
        /// It is being made.
        Generating = "generating",
        /// It waits to be sent.
        Outbound = "outbound",
        /// It is on its way.
        Sending = "sending",
        /// It has left.
        Sent = "sent",
        /// It has arrived.
        Delivered = "delivered",
        /// The other side refused it.
        Rejected = "rejected",
        /// It was taken back.
        Cancelled = "cancelled",
        /// It could not be sent.
        Failed = "failed",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

words! {
    /// How a message travels.
    Method ("delivery method") {
        /// In one packet, if there is a path.
        Opportunistic = "opportunistic",
        /// Over a link to the other side.
        Direct = "direct",
        /// Through a node that keeps it.
        Propagated = "propagated",
        /// On paper.
        Paper = "paper",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

words! {
    /// Which way a message went.
    Direction ("direction") {
        /// To us.
        Incoming = "incoming",
        /// From us.
        Outgoing = "outgoing",
    }
}

words! {
    /// What is attached to a message.
    AttachmentKind ("kind of attachment") {
        /// A file.
        File = "file",
        /// A picture.
        Image = "image",
        /// A sound.
        Audio = "audio",
        /// A position and such.
        Telemetry = "telemetry",
    }
}

words! {
    /// What happened to a contact.
    Change ("change") {
        /// It is new.
        Added = "added",
        /// It is different.
        Updated = "updated",
        /// It is gone.
        Removed = "removed",
    }
}

words! {
    /// Why the network does not take a message.
    Refused ("reason to refuse a message") {
        /// The operator blocked the destination.
        BlockedDestination = "blocked_destination",
        /// There is no way to the destination.
        NoPath = "no_path",
        /// Too many messages wait.
        QueueFull = "queue_full",
        /// It is no destination.
        InvalidDestination = "invalid_destination",
    }
}

/// A message, incoming or outgoing.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Which one.
    pub hash: MessageHash,
    /// Who wrote it.
    pub source: Address,
    /// Whom to.
    pub destination: Address,
    /// Which way.
    pub direction: Direction,
    /// How far it has come.
    pub state: DeliveryState,
    /// How it travels.
    pub method: Method,
    /// Its title; may be empty.
    pub title: String,
    /// Its text. What was not UTF-8 has been replaced.
    pub content: String,
    /// Whether something was replaced.
    pub lossy: bool,
    /// What is attached; never the content of it.
    pub attachments: Vec<Attachment>,
    /// The message that this one answers.
    pub reply_to: Option<MessageHash>,
    /// When it was made, since the epoch.
    pub timestamp_ms: u64,
    /// The strength of the signal.
    pub rssi: Option<f64>,
    /// Signal to noise.
    pub snr: Option<f64>,
    /// The quality of the link.
    pub quality: Option<f64>,
}

impl Message {
    /// The other side.
    #[must_use]
    pub fn peer(&self) -> Address {
        match self.direction {
            Direction::Incoming => self.source,
            Direction::Outgoing => self.destination,
        }
    }
}

/// What is attached to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What it is.
    pub kind: AttachmentKind,
    /// What it is called.
    pub name: Option<String>,
    /// How large it is.
    pub size: u64,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Whom to.
    pub destination: Address,
    /// Its text.
    pub content: String,
    /// Its title.
    pub title: Option<String>,
    /// How it should travel; the network chooses when there is no wish.
    pub method: Option<Method>,
    /// The message that it answers.
    pub reply_to: Option<MessageHash>,
}

/// What became of a message that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which one it is.
    pub hash: MessageHash,
    /// How far it has come.
    pub state: DeliveryState,
}

/// A place in the order of messages: newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The time of the message at this place.
    pub timestamp_ms: u64,
    /// The message at this place.
    pub hash: MessageHash,
}

/// Which messages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageQuery {
    /// With whom.
    pub peer: Option<Address>,
    /// Which way.
    pub direction: Option<Direction>,
    /// Not older.
    pub since_ms: Option<u64>,
    /// Not newer.
    pub until_ms: Option<u64>,
    /// Only those that come after this place.
    pub after: Option<Position>,
    /// No more than this.
    pub limit: usize,
}

impl MessageQuery {
    /// The newest messages, with whomever and whichever way.
    #[must_use]
    pub fn newest(limit: usize) -> Self {
        Self { peer: None, direction: None, since_ms: None, until_ms: None, after: None, limit }
    }
}

/// Somebody we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Its number.
    pub id: u64,
    /// What we call them.
    pub name: String,
    /// Who they are.
    pub identity: Address,
    /// Where they get messages.
    pub lxmf: Option<Address>,
    /// Where they take calls.
    pub lxst: Option<Address>,
    /// When we came to know them.
    pub created_ms: u64,
    /// When this entry changed.
    pub updated_ms: u64,
}

/// Which contacts are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactQuery {
    /// Those whose name or address contains this, whatever the case.
    pub text: Option<String>,
    /// Only those with a larger id.
    pub after: Option<u64>,
    /// No more than this.
    pub limit: usize,
}

/// Something that happened in the network.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshEvent {
    /// A message came in.
    Received(Message),
    /// A message was taken for delivery.
    Sent(Message),
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
        /// What we call them.
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
}

/// Why the network did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// It does not take this message.
    #[error("the message was refused: {0}")]
    Refused(Refused),
    /// It cannot do anything at the moment.
    #[error("the network cannot be used: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
}
