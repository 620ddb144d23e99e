//! Everything that can go wrong in a conversation, each with its frozen code, name and details.

use std::fmt;

use outrigger_wire::rpc::{Code, ErrorObject, code};
use serde_json::json;

use super::words::words;
use super::{DisabledReason, ExitKind, Permission, Profile, State, Version};
use crate::mesh::Refused;

/// The most mistakes in params that one answer names.
pub const MAX_BAD_PARAMS: usize = 16;

/// What went wrong. What becomes of it on the wire is frozen; the sentence for people is not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A line is not JSON of the right kind.
    #[error("the frame cannot be read: {0}")]
    Parse(ParseFault),
    /// A line is JSON and not a message.
    #[error("the frame is not a message: {0}")]
    Request(RequestFault),
    /// There is no such method.
    #[error("there is no such method")]
    UnknownMethod,
    /// The method is newer than the session.
    #[error("the method exists since {since}, and this session speaks an older version")]
    VersionGated {
        /// The first version that has it.
        since: Version,
    },
    /// The params do not fit the method.
    #[error("the params are wrong: {}", BadParam::list(.0))]
    Params(Vec<BadParam>),
    /// The host failed.
    #[error("the host failed; its log has more under {reference}")]
    Internal {
        /// Where to look.
        reference: String,
    },
    /// A frame is longer than it may be.
    #[error("the frame is longer than {limit} bytes")]
    TooLarge {
        /// How long it may be.
        limit: usize,
    },
    /// The session has not begun.
    #[error("the session is not initialized yet")]
    NotInitialized,
    /// The session has begun before.
    #[error("the session is attached already")]
    AlreadyInitialized,
    /// No common version.
    #[error("version {requested} is not supported")]
    VersionUnsupported {
        /// What was asked for.
        requested: String,
        /// What there is.
        supported: Vec<Version>,
    },
    /// The session ends.
    #[error("the session is shutting down")]
    ShuttingDown,
    /// The attach was refused.
    #[error("the attach was refused")]
    AuthFailed,
    /// The extension may not do that.
    #[error("`{method}` is not permitted: {reason}")]
    PermissionDenied {
        /// What it needs; none for a method that nobody may call.
        permission: Option<Permission>,
        /// What was called.
        method: &'static str,
        /// Why not: a reason of the gate.
        reason: &'static str,
    },
    /// There is no such capability.
    #[error("there is no capability `{name}`")]
    UnknownCapability {
        /// The name that was asked for.
        name: String,
    },
    /// Too many requests.
    #[error("more than {limit} requests a second; try again in {retry_after_ms} ms")]
    RateLimited {
        /// When it can succeed.
        retry_after_ms: u64,
        /// How many a second.
        limit: u32,
    },
    /// Too many requests at once.
    #[error("more than {limit} requests at the same time")]
    TooManyInFlight {
        /// How many at once.
        limit: usize,
    },
    /// It took too long.
    #[error("the host did not finish within {timeout_ms} ms")]
    Timeout {
        /// How long it had.
        timeout_ms: u64,
        /// Whether it may still happen.
        outcome: Outcome,
    },
    /// The caller gave it up.
    #[error("the request was cancelled")]
    Cancelled,
    /// There is no such thing.
    #[error("there is no such {0}")]
    NotFound(Thing),
    /// It exists already, or is something else.
    #[error("it conflicts with a {0} that is there")]
    Conflict(Thing),
    /// A quota is used up.
    #[error("the quota `{quota}` of {limit} is used up")]
    QuotaExceeded {
        /// Which.
        quota: Quota,
        /// How much it is.
        limit: u64,
    },
    /// A part of the host is not there.
    #[error("a part of the host cannot be used at the moment: {0}")]
    Unavailable(Component),
    /// The network does not take the message.
    #[error("the message was refused: {0}")]
    SendRejected(Refused),
    /// The platform does not have it.
    #[error("the platform profile {profile} does not have it: {reason}")]
    ProfileUnsupported {
        /// Which platform.
        profile: Profile,
        /// Why.
        reason: String,
    },
    /// The session is suspended.
    #[error("the session is suspended")]
    Suspended {
        /// Its state.
        state: State,
    },
    /// For callers on the host's side: it does not run.
    #[error("the extension does not run: it is {state}")]
    NotRunning {
        /// What it does instead.
        state: State,
    },
    /// For callers on the host's side: it crashed.
    #[error("the extension ended: {exit}")]
    Crashed {
        /// How.
        exit: ExitKind,
    },
    /// For callers on the host's side: it is switched off.
    #[error("the extension is disabled: {reason}")]
    Disabled {
        /// Why.
        reason: DisabledReason,
    },
}

/// Whether something that took too long may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may.
    Unknown,
    /// It has no effect.
    Nothing,
}

words! {
    /// Why a frame cannot be read.
    ParseFault ("reason not to read a frame") {
        /// It is not UTF-8.
        InvalidUtf8 = "invalid_utf8",
        /// It is not JSON.
        InvalidJson = "invalid_json",
        /// It nests too deeply.
        Depth = "depth",
        /// An object has a key twice.
        DuplicateKey = "duplicate_key",
    }
}

words! {
    /// Why a frame is not a message.
    RequestFault ("reason not to take a message") {
        /// It is a batch.
        BatchUnsupported = "batch_unsupported",
        /// Its id is still in use.
        DuplicateId = "duplicate_id",
        /// Its id is of the wrong kind.
        BadId = "bad_id",
        /// It is neither a request nor a response.
        BadEnvelope = "bad_envelope",
    }
}

words! {
    /// What can be missing or be there already.
    Thing ("kind of thing") {
        /// A panel.
        Panel = "panel",
        /// The slot of a panel that the manifest declares.
        Slot = "slot",
        /// An action of a panel.
        Action = "action",
        /// A message with the same key and another content.
        ClientMessageId = "client_message_id",
    }
}

words! {
    /// What can be used up.
    Quota ("quota") {
        /// Messages a minute.
        MessagesPerMinute = "messages_per_minute",
        /// Notices a minute.
        ToastsPerMinute = "toasts_per_minute",
        /// Panels.
        Panels = "panels",
        /// Actions of one panel.
        ActionsPerPanel = "actions_per_panel",
    }
}

words! {
    /// A part of the host.
    Component ("component") {
        /// The network.
        Messaging = "messaging",
        /// The contacts.
        Contacts = "contacts",
        /// The panels and notices.
        Ui = "ui",
        /// The record of decisions.
        Audit = "audit",
    }
}

/// A mistake in params.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadParam {
    /// Where: a JSON pointer into the params.
    pub path: String,
    /// What is wrong: a word, and what would be right.
    pub reason: String,
}

impl BadParam {
    fn list(all: &[Self]) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            for (i, bad) in all.iter().take(3).enumerate() {
                let comma = if i > 0 { "; " } else { "" };
                let path = if bad.path.is_empty() { "params" } else { &bad.path };
                write!(f, "{comma}{path}: {}", bad.reason)?;
            }
            Ok(())
        })
    }
}

impl Fault {
    /// The frozen number.
    #[must_use]
    pub fn code(&self) -> Code {
        use code::sep;
        match self {
            Self::Parse(_) => code::PARSE_ERROR,
            Self::Request(_) => code::INVALID_REQUEST,
            Self::UnknownMethod | Self::VersionGated { .. } => code::METHOD_NOT_FOUND,
            Self::Params(_) => code::INVALID_PARAMS,
            Self::Internal { .. } => code::INTERNAL_ERROR,
            Self::TooLarge { .. } => sep::PAYLOAD_TOO_LARGE,
            Self::NotInitialized => sep::NOT_INITIALIZED,
            Self::AlreadyInitialized => sep::ALREADY_INITIALIZED,
            Self::VersionUnsupported { .. } => sep::VERSION_UNSUPPORTED,
            Self::ShuttingDown => sep::SHUTTING_DOWN,
            Self::AuthFailed => sep::AUTH_FAILED,
            Self::PermissionDenied { .. } => sep::PERMISSION_DENIED,
            Self::UnknownCapability { .. } => sep::UNKNOWN_CAPABILITY,
            Self::RateLimited { .. } => sep::RATE_LIMITED,
            Self::TooManyInFlight { .. } => sep::TOO_MANY_INFLIGHT,
            Self::Timeout { .. } => sep::TIMEOUT,
            Self::Cancelled => sep::CANCELLED,
            Self::NotFound(_) => sep::NOT_FOUND,
            Self::Conflict(_) => sep::CONFLICT,
            Self::QuotaExceeded { .. } => sep::QUOTA_EXCEEDED,
            Self::Unavailable(_) => sep::UNAVAILABLE,
            Self::SendRejected(_) => sep::SEND_REJECTED,
            Self::ProfileUnsupported { .. } => sep::PROFILE_UNSUPPORTED,
            Self::Suspended { .. } => sep::SUSPENDED,
            Self::NotRunning { .. } => sep::EXTENSION_NOT_RUNNING,
            Self::Crashed { .. } => sep::EXTENSION_CRASHED,
            Self::Disabled { .. } => sep::EXTENSION_DISABLED,
        }
    }

    /// The frozen name, which is in `data.sep`.
    #[must_use]
    pub fn slug(&self) -> &'static str {
        let code = self.code();
        let row = code::find(code::STANDARD, code).or_else(|| code::find(code::sep::TABLE, code));
        // Every code above is in one of the two tables; a test goes through all of them.
        row.map_or("internal_error", |row| row.slug)
    }

    /// The error as it goes over the wire.
    #[must_use]
    pub fn to_error(&self) -> ErrorObject {
        let mut data = serde_json::Map::new();
        data.insert("sep".into(), self.slug().into());
        if let serde_json::Value::Object(details) = self.details() {
            data.extend(details);
        }
        // A map of strings and numbers always serialises.
        let data = serde_json::value::to_raw_value(&data).ok();
        let error = ErrorObject::new(self.code(), self.to_string());
        match data {
            Some(data) => error.with_data(data),
            None => error,
        }
    }

    fn details(&self) -> serde_json::Value {
        match self {
            Self::Parse(reason) => json!({ "reason": reason }),
            Self::Request(reason) => json!({ "reason": reason }),
            Self::UnknownMethod => json!({ "reason": "unknown" }),
            Self::VersionGated { since } => json!({ "reason": "version_gated", "since": since }),
            Self::Params(errors) => json!({ "errors": &errors[..errors.len().min(MAX_BAD_PARAMS)] }),
            Self::Internal { reference } => json!({ "ref": reference }),
            Self::TooLarge { limit } => json!({ "limit": limit }),
            Self::VersionUnsupported { requested, supported } => {
                json!({ "requested": requested, "supported": supported })
            }
            Self::PermissionDenied { permission, method, reason } => {
                json!({ "permission": permission, "method": method, "reason": reason })
            }
            Self::UnknownCapability { name } => json!({ "name": name }),
            Self::RateLimited { retry_after_ms, limit } => {
                json!({ "retryAfterMs": retry_after_ms, "limit": limit })
            }
            Self::TooManyInFlight { limit } => json!({ "limit": limit }),
            Self::Timeout { timeout_ms, outcome: Outcome::Unknown } => {
                json!({ "timeoutMs": timeout_ms, "outcome": "unknown" })
            }
            Self::Timeout { timeout_ms, outcome: Outcome::Nothing } => json!({ "timeoutMs": timeout_ms }),
            Self::NotFound(kind) | Self::Conflict(kind) => json!({ "kind": kind }),
            Self::QuotaExceeded { quota, limit } => json!({ "quota": quota, "limit": limit }),
            Self::Unavailable(component) => json!({ "component": component }),
            Self::SendRejected(reason) => json!({ "reason": reason }),
            Self::ProfileUnsupported { profile, reason } => json!({ "profile": profile, "reason": reason }),
            Self::Suspended { state } | Self::NotRunning { state } => json!({ "state": state }),
            Self::Crashed { exit } => json!({ "exit": exit }),
            Self::Disabled { reason } => json!({ "reason": reason }),
            Self::NotInitialized
            | Self::AlreadyInitialized
            | Self::ShuttingDown
            | Self::AuthFailed
            | Self::Cancelled => json!({}),
        }
    }
}

impl From<Fault> for ErrorObject {
    fn from(fault: Fault) -> Self {
        fault.to_error()
    }
}
