//! Every error code of every JSON-RPC dialect, in one file, because the dialects reuse each other's numbers.

use std::fmt;

/// A JSON-RPC error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub i64);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One row of a dialect's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number on the wire.
    pub code: Code,
    /// The stable name on the wire: steerable's `kind`, SEP's `data.sep`.
    pub slug: &'static str,
    /// Whether the same call may succeed later.
    pub retry: Retry,
}

/// Whether the same call may succeed if it is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No: the call itself is wrong.
    Never,
    /// Perhaps; nobody can tell.
    Maybe,
    /// Yes, after waiting.
    Later,
}

/// Finds the row of a code in a dialect's table.
#[must_use]
pub fn find(table: &[Entry], code: Code) -> Option<&Entry> {
    table.iter().find(|entry| entry.code == code)
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident: $($(#[$row:meta])* $name:ident = $code:literal, $slug:literal, $retry:ident;)*) => {
        $($(#[$row])* pub const $name: Code = Code($code);)*
        $(#[$doc])*
        pub const $table: &[Entry] = &[$(Entry { code: $name, slug: $slug, retry: Retry::$retry }),*];
    };
}

table! {
    /// The codes that JSON-RPC 2.0 itself defines. Every dialect has them.
    STANDARD:
    /// The line is not JSON.
    PARSE_ERROR = -32700, "parse_error", Never;
    /// The line is JSON but not a request.
    INVALID_REQUEST = -32600, "invalid_request", Never;
    /// There is no such method.
    METHOD_NOT_FOUND = -32601, "method_not_found", Never;
    /// The params do not fit the method.
    INVALID_PARAMS = -32602, "invalid_params", Never;
    /// The callee failed.
    INTERNAL_ERROR = -32603, "internal_error", Maybe;
}

/// Steerable's own codes. The slug is the error's `kind`.
pub mod steerable {
    use super::{Code, Entry, Retry};

    table! {
        /// The table of the seed; several situations share a number and are told apart by `kind`.
        TABLE:
        /// A budget of the run is used up.
        BUDGET_EXHAUSTED = -32001, "budget_exhausted", Never;
        /// The tool needs a consent that was not given.
        POLICY_DENIED = -32002, "policy_denied", Never;
        /// The tool failed.
        TOOL_FAILED = -32003, "tool_failed", Maybe;
        /// No such session or trace. Released runtimes call it `invalid_request`.
        NOT_FOUND = -32004, "invalid_request", Never;
        /// The transport to somebody else closed.
        TRANSPORT_CLOSED = -32005, "transport_closed", Later;
    }
}

/// SEP's own codes. The slug is the error's `data.sep`.
pub mod sep {
    use super::{Code, Entry, Retry};

    table! {
        /// The frozen table. Numbers from -32060 to -32099 are reserved.
        TABLE:
        /// The frame is longer than the channel allows.
        PAYLOAD_TOO_LARGE = -32001, "payload_too_large", Never;
        /// The session is not initialized yet.
        NOT_INITIALIZED = -32002, "not_initialized", Later;
        /// The session is initialized already.
        ALREADY_INITIALIZED = -32003, "already_initialized", Never;
        /// No common protocol version.
        VERSION_UNSUPPORTED = -32004, "version_unsupported", Never;
        /// The session is shutting down.
        SHUTTING_DOWN = -32005, "shutting_down", Never;
        /// The attach was refused; the connection closes.
        AUTH_FAILED = -32006, "auth_failed", Never;
        /// The permission is not granted.
        PERMISSION_DENIED = -32010, "permission_denied", Never;
        /// There is no such capability.
        UNKNOWN_CAPABILITY = -32011, "unknown_capability", Never;
        /// Too many requests a second.
        RATE_LIMITED = -32020, "rate_limited", Later;
        /// Too many requests at once.
        TOO_MANY_INFLIGHT = -32021, "too_many_inflight", Later;
        /// The handler did not answer in time.
        TIMEOUT = -32022, "timeout", Maybe;
        /// The caller cancelled the request.
        CANCELLED = -32023, "cancelled", Never;
        /// There is no such thing.
        NOT_FOUND = -32030, "not_found", Never;
        /// It exists already, or changed meanwhile.
        CONFLICT = -32031, "conflict", Never;
        /// A quota is used up.
        QUOTA_EXCEEDED = -32032, "quota_exceeded", Later;
        /// A component of the host is not there at the moment.
        UNAVAILABLE = -32033, "unavailable", Later;
        /// The message was not sent.
        SEND_REJECTED = -32035, "send_rejected", Never;
        /// The profile does not allow it.
        PROFILE_UNSUPPORTED = -32040, "profile_unsupported", Never;
        /// The session is suspended.
        SUSPENDED = -32041, "suspended", Later;
        /// The extension is not running (told to callers on the host's side).
        EXTENSION_NOT_RUNNING = -32050, "extension_not_running", Maybe;
        /// The extension crashed (told to callers on the host's side).
        EXTENSION_CRASHED = -32051, "extension_crashed", Maybe;
        /// The extension is disabled (told to callers on the host's side).
        EXTENSION_DISABLED = -32052, "extension_disabled", Never;
    }
}

/// The codes that [`crate::peer`] uses when the dialect does not choose its own.
pub mod peer {
    use super::{Code, Entry, Retry};

    table! {
        /// Codes outside the range that JSON-RPC reserves and away from the dialects' own; -32800 is what LSP uses.
        TABLE:
        /// The request was cancelled by its caller.
        CANCELLED = -32800, "cancelled", Never;
        /// The peer has too many requests at work.
        BUSY = -32801, "busy", Later;
        /// The line was longer than the limit.
        TOO_LARGE = -32802, "too_large", Never;
    }
}
