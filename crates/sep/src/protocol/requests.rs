//! What an extension asks of its host, and what it gets back. Both ends use these types.
//!
//! The host does not read params with serde but with a reader that reports everything that is wrong at once; serde reads
//! here only what a host said.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::words::words;
use super::{
    DeniedTopic, ExtensionId, LimitsJson, Permission, Profile, Program, Slot, ToastFate, ToastLevel,
    TrustLevel, Version,
};
use crate::mesh::{Address, AttachmentKind, Contact, DeliveryState, Direction, Message, MessageHash, Method};

/// The params of `host.attach`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Attach {
    /// The token of the bootstrap line. Never shown.
    pub token: String,
    /// The session of the bootstrap line.
    pub session: String,
    /// What the extension is made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<Sdk>,
}

/// What an extension is made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sdk {
    /// What it is called.
    pub name: String,
    /// Which version of it.
    pub version: String,
    /// For which language.
    pub language: String,
}

/// The result of `host.attach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachResult {
    /// The session.
    pub session: String,
}

/// The result of `host.get_capabilities`. Every array is sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The version of this session.
    pub protocol_version: Version,
    /// Who the host is.
    pub host: Program,
    /// Where it runs.
    pub platform: CapabilitiesPlatform,
    /// Who asks.
    pub extension: CapabilitiesExtension,
    /// How far it is trusted.
    pub trust_level: TrustLevel,
    /// What it may do and what not.
    pub permissions: PermissionList,
    /// What it can call now.
    pub methods: Vec<String>,
    /// What it can hear about.
    pub events: EventList,
    /// What it may use.
    pub limits: LimitsJson,
    /// Where panels can be.
    pub slots: Vec<Slot>,
    /// The box it is in.
    pub sandbox: SandboxJson,
    /// What the host can do beyond the contract.
    pub features: Vec<String>,
}

/// Where a host runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilitiesPlatform {
    /// On what kind of machine.
    pub profile: Profile,
    /// With which system.
    pub os: String,
    /// On which processor.
    pub arch: String,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilitiesExtension {
    /// Its id.
    pub id: ExtensionId,
    /// Its version.
    pub version: String,
}

/// What an extension may do and what not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionList {
    /// Granted.
    pub granted: Vec<Permission>,
    /// Not granted.
    pub denied: Vec<DeniedPermission>,
}

/// A permission that an extension does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedPermission {
    /// Which.
    pub permission: Permission,
    /// Why: a reason of the gate.
    pub reason: String,
}

/// What an extension can hear about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventList {
    /// All topics there are.
    pub known: Vec<String>,
    /// Those it hears about.
    pub subscribed: Vec<String>,
    /// Those it wants to hear about and does not.
    pub denied: Vec<DeniedTopic>,
}

/// The box an extension is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxJson {
    /// How strong it is: `off`, `basic` or `strict`.
    pub level: String,
}

/// The params of `host.messages.send`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendMessage {
    /// Whom to.
    pub destination_hash: Address,
    /// 1 to 16384 bytes.
    pub content: String,
    /// One line, up to 256 code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How it should travel: direct, opportunistic or propagated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageHash>,
    /// The same message with the same key is sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<String>,
}

/// The result of `host.messages.send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendResult {
    /// Which message it is.
    pub message_hash: MessageHash,
    /// How far it has come.
    pub state: DeliveryState,
    /// Whether it had been sent before.
    pub deduplicated: bool,
}

/// The params of `host.messages.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMessages {
    /// With whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Address>,
    /// Which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Not older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Not newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// 1 to 200; 50 if there is no wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `host.messages.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage<'a> {
    /// Newest first.
    pub messages: Vec<MessageJson<'a>>,
    /// Where the next page begins; null when there is none.
    pub next_cursor: Option<String>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageJson<'a> {
    /// Which one.
    pub hash: MessageHash,
    /// Who wrote it.
    pub source_hash: Address,
    /// Whom to.
    pub destination_hash: Address,
    /// The other side.
    pub peer_hash: Address,
    /// Whether it came to us.
    pub incoming: bool,
    /// How far it has come.
    pub state: DeliveryState,
    /// How it travels.
    pub method: Method,
    /// Its title; may be empty.
    pub title: Cow<'a, str>,
    /// Its text.
    pub content: Cow<'a, str>,
    /// Whether text was left out.
    pub content_truncated: bool,
    /// Whether bytes that were no text were replaced.
    pub content_lossy: bool,
    /// What is attached; never the content of it.
    pub attachments: Vec<AttachmentJson<'a>>,
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

impl<'a> From<&'a Message> for MessageJson<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            hash: message.hash,
            source_hash: message.source,
            destination_hash: message.destination,
            peer_hash: message.peer(),
            incoming: message.direction == Direction::Incoming,
            state: message.state,
            method: message.method,
            title: Cow::Borrowed(&message.title),
            content: Cow::Borrowed(&message.content),
            content_truncated: false,
            content_lossy: message.lossy,
            attachments: message.attachments.iter().map(AttachmentJson::from).collect(),
            reply_to: message.reply_to,
            timestamp_ms: message.timestamp_ms,
            rssi: message.rssi,
            snr: message.snr,
            quality: message.quality,
        }
    }
}

/// What is attached to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentJson<'a> {
    /// What it is.
    pub kind: AttachmentKind,
    /// What it is called.
    pub name: Option<Cow<'a, str>>,
    /// How large it is.
    pub size: u64,
}

impl<'a> From<&'a crate::mesh::Attachment> for AttachmentJson<'a> {
    fn from(attachment: &'a crate::mesh::Attachment) -> Self {
        let name = attachment.name.as_deref().map(Cow::Borrowed);
        Self { kind: attachment.kind, name, size: attachment.size }
    }
}

/// The params of `host.contacts.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListContacts {
    /// Those whose name or address contains this, up to 128 code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// 1 to 500; 100 if there is no wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `host.contacts.list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContactPage<'a> {
    /// By id.
    pub contacts: Vec<ContactJson<'a>>,
    /// Where the next page begins; null when there is none.
    pub next_cursor: Option<String>,
}

/// Somebody we know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContactJson<'a> {
    /// The number of the entry.
    pub id: u64,
    /// What we call them.
    pub name: Cow<'a, str>,
    /// Who they are.
    pub identity_hash: Address,
    /// Where they get messages.
    pub lxmf_address: Option<Address>,
    /// Where they take calls.
    pub lxst_address: Option<Address>,
    /// When we came to know them.
    pub created_at_ms: u64,
    /// When the entry changed.
    pub updated_at_ms: u64,
}

impl<'a> From<&'a Contact> for ContactJson<'a> {
    fn from(contact: &'a Contact) -> Self {
        Self {
            id: contact.id,
            name: Cow::Borrowed(&contact.name),
            identity_hash: contact.identity,
            lxmf_address: contact.lxmf,
            lxst_address: contact.lxst,
            created_at_ms: contact.created_ms,
            updated_at_ms: contact.updated_ms,
        }
    }
}

/// The result of `host.ui.register_tool_panel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelRegistered {
    /// The name of the panel in the host.
    pub panel_key: String,
}

/// The params of `host.ui.unregister_tool_panel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnregisterPanel {
    /// Which panel of the extension.
    pub id: String,
}

/// The params of `host.notifications.toast`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Toast {
    /// One line, 1 to 280 code points.
    pub message: String,
    /// How it is meant.
    pub level: ToastLevel,
    /// How long it is shown, 1000 to 15000; 5000 if there is no wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u32>,
    /// A notice with the same key replaces the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The result of `host.notifications.toast`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToastResult {
    /// Whether a person can see it.
    pub shown: bool,
    /// Why not, or how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ToastFate>,
}

/// The params of `host.events.subscribe` and `host.events.unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topics {
    /// Up to 64 topics.
    pub topics: Vec<String>,
}

/// The result of `host.events.subscribe` and `host.events.unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicsResult {
    /// All that it hears about now, sorted.
    pub subscribed: Vec<String>,
    /// Those of this call that it may not hear about, sorted.
    pub denied: Vec<DeniedTopic>,
}

words! {
    /// How much a line of a log matters.
    LogLevel ("level of a log line") {
        /// For who looks for a mistake.
        Debug = "debug",
        /// For who wants to know.
        Info = "info",
        /// For who should look at it.
        Warn = "warn",
        /// For who has to do something.
        Error = "error",
    }
}

/// The params of the notification `host.log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// Up to 4096 code points.
    pub message: String,
    /// Up to 16 further values.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub fields: serde_json::Map<String, serde_json::Value>,
}
