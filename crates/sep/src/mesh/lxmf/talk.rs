//! What is said between the host and the bridge, one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::mesh::{
    Address, Attachment, AttachmentKind, BadHash, DeliveryState, Direction, Message, MessageHash, Method,
    Outgoing, Refused,
};

/// What the host says.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Ask {
    #[serde(rename_all = "camelCase")]
    Send {
        id: u64,
        destination: Address,
        title: Option<String>,
        content: String,
        method: Option<Method>,
        reply_to: Option<MessageHash>,
    },
    Announce,
    Stored {
        hash: MessageHash,
    },
}

impl Ask {
    pub(super) fn send(id: u64, message: &Outgoing) -> Self {
        Self::Send {
            id,
            destination: message.destination,
            title: message.title.clone(),
            content: message.content.clone(),
            method: message.method,
            reply_to: message.reply_to,
        }
    }
}

/// What the bridge says.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Said {
    Ready {
        address: String,
        identity: String,
        rns: String,
        lxmf: String,
    },
    Fatal {
        code: String,
        message: String,
    },
    Accepted {
        id: u64,
        hash: String,
        method: String,
        timestamp_ms: u64,
    },
    Refused {
        id: u64,
        reason: String,
    },
    Trouble {
        id: u64,
        message: String,
    },
    State {
        hash: String,
        state: String,
    },
    Received(Received),
    Announce {
        address: String,
        name: Option<String>,
        hops: Option<u32>,
    },
    /// A newer bridge may say more.
    #[serde(other)]
    Other,
}

/// A message that came, as the bridge tells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    hash: String,
    source: String,
    destination: String,
    title: String,
    content: String,
    lossy: bool,
    method: String,
    timestamp_ms: u64,
    attachments: Vec<Attached>,
    reply_to: Option<String>,
    rssi: Option<f64>,
    snr: Option<f64>,
    quality: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Attached {
    kind: String,
    name: Option<String>,
    size: u64,
}

impl Received {
    pub(super) fn message(self) -> Result<Message, BadHash> {
        // A kind that we do not know is at least something with a size.
        let attachment = |Attached { kind, name, size }| Attachment {
            kind: AttachmentKind::parse(&kind).unwrap_or(AttachmentKind::File),
            name,
            size,
        };
        Ok(Message {
            hash: MessageHash::parse(&self.hash)?,
            source: Address::parse(&self.source)?,
            destination: Address::parse(&self.destination)?,
            direction: Direction::Incoming,
            state: DeliveryState::Delivered,
            method: method(&self.method),
            title: self.title,
            content: self.content,
            lossy: self.lossy,
            attachments: self.attachments.into_iter().map(attachment).collect(),
            reply_to: self.reply_to.as_deref().map(MessageHash::parse).transpose()?,
            // What does not fit the file was never a time.
            timestamp_ms: self.timestamp_ms.min(i64::MAX.unsigned_abs()),
            rssi: self.rssi,
            snr: self.snr,
            quality: self.quality,
        })
    }
}

pub(super) fn method(word: &str) -> Method {
    Method::parse(word).unwrap_or(Method::Unknown)
}

pub(super) fn state(word: &str) -> DeliveryState {
    DeliveryState::parse(word).unwrap_or(DeliveryState::Unknown)
}

pub(super) fn refused(word: &str) -> Refused {
    Refused::parse(word).unwrap_or(Refused::NoPath)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_says_is_spelled_as_the_bridge_reads_it() {
        let message = Outgoing {
            destination: Address([0xab; 16]),
            content: "a\nb".to_owned(),
            title: None,
            method: Some(Method::Opportunistic),
            reply_to: Some(MessageHash([1; 32])),
        };
        let lines = [Ask::send(7, &message), Ask::Announce, Ask::Stored { hash: MessageHash([2; 32]) }]
            .map(|ask| serde_json::to_string(&ask).unwrap());
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"do":"send","id":7,"destination":"abababababababababababababababab","title":null,"content":"a\nb","method":"opportunistic","replyTo":"0101010101010101010101010101010101010101010101010101010101010101"}
        {"do":"announce"}
        {"do":"stored","hash":"0202020202020202020202020202020202020202020202020202020202020202"}
        "#);
    }

    #[test]
    fn words_that_a_newer_bridge_may_say_are_not_fatal() {
        let said: Said = serde_json::from_str(r#"{"t":"weather","rain":true}"#).unwrap();
        assert!(matches!(said, Said::Other));
        assert_eq!((method("pigeon"), state("lost")), (Method::Unknown, DeliveryState::Unknown));
        let line = format!(
            r#"{{"t":"received","hash":"{0}{0}","source":"{0}","destination":"{0}","title":"","content":"x","lossy":false,
            "method":"direct","timestampMs":18446744073709551615,"attachments":[{{"kind":"hologram","name":null,"size":3}}],
            "replyTo":null,"rssi":-1.5,"snr":null,"quality":null,"verified":true}}"#,
            "0f".repeat(16)
        );
        let Said::Received(received) = serde_json::from_str(&line).unwrap() else { panic!("not received") };
        let message = received.message().unwrap();
        assert_eq!(message.attachments, [Attachment { kind: AttachmentKind::File, name: None, size: 3 }]);
        assert_eq!((message.timestamp_ms, message.rssi), (i64::MAX.unsigned_abs(), Some(-1.5)));
    }
}
