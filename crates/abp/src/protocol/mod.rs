//! The messages, as types: read leniently and without copies, written strictly.
//!
//! ```
//! use outrigger_abp::protocol::{Envelope, EventKind, read};
//!
//! let line = r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-31T12:00:00Z","type":"assistant_delta","text":"Hi"}}"#;
//! let Envelope::Event { ref_id, event } = read(line)? else { panic!("it is an event") };
//! assert_eq!((&*ref_id, event.kind), ("r", EventKind::AssistantDelta { text: "Hi".into() }));
//!
//! let error = read(r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-31T12:00:00Z","type":"warning"}}"#).unwrap_err();
//! assert_eq!(error.to_string(), "`event.warning.message` is missing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ask;
mod capability;
mod code;
mod envelope;
mod event;
pub(crate) mod fields;
mod hello;
mod id;
pub(crate) mod json;
mod negotiate;
mod order;
mod raw;
mod received;
pub mod schema;
pub(crate) mod text;
mod time;
mod usage;
mod version;
mod word;
mod write;

pub use ask::{Answer, Ask, AskAction, AskDecision, AskNeeds, EXTENSIONS, Feature, Offer, Powers, Taking};
pub use capability::{Capability, MAX_CAPABILITIES, Manifest, SupportLevel};
pub use code::ErrorCode;
pub use envelope::{Envelope, Run, read};
pub use event::{AgentEvent, EventKind};
pub use fields::{EnvelopeError, MAX_LIST};
pub use hello::{BackendIdentity, Hello, Mode};
pub use id::{MAX_ID_BYTES, OrderId, RunId};
pub use json::{JsonError, JsonFault, MAX_NESTING};
pub use negotiate::{
    EmulatedCapability, MinSupport, MissingCapability, Negotiation, Requirement, Requirements, negotiate,
};
pub use order::{Context, Lane, RuntimeConfig, Snippet, WorkOrder, Workspace, WorkspaceMode};
pub use outrigger_policy::PolicyProfile;
pub use raw::Raw;
pub use received::{Artifact, Outcome, ReceivedReceipt, Verification};
pub use time::{TimeError, Timestamp};
pub use usage::{Counts, Usage, UsageReport};
pub use version::ContractVersion;
pub(crate) use word::words;
