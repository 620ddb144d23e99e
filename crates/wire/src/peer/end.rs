//! How a conversation ends, and how a call fails: each with its reason, because "channel closed" helps nobody.

use std::time::Duration;

use crate::line::LineError;
use crate::rpc::{Defect, ErrorObject};

/// Why a conversation is over.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum End {
    /// The other side closed its end between two lines.
    #[error("the other side closed the connection")]
    RemoteClosed,
    /// This side closed it.
    #[error("this side closed the connection")]
    Closed,
    /// The last handle was dropped.
    #[error("the connection was dropped by its owner")]
    Dropped,
    /// What arrived breaks the line policy.
    #[error("the other side broke the protocol: {0}")]
    Line(#[from] LineError),
    /// The handler had enough of the other side's violations.
    #[error("the connection was closed because of {0}")]
    Violation(String),
    /// Reading failed.
    #[error("failed to read from the other side: {message}")]
    Read {
        /// What the operating system said.
        message: String,
    },
    /// Writing failed.
    #[error("failed to write to the other side: {message}")]
    Write {
        /// What the operating system said.
        message: String,
    },
    /// The other side stopped reading.
    #[error("write stall: the other side read nothing for {after:?}, {queued} bytes were waiting")]
    WriteStall {
        /// How long nothing could be written.
        after: Duration,
        /// How many bytes were waiting for it.
        queued: usize,
    },
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The other side answered with an error.
    #[error("`{method}` failed: {error}")]
    Remote {
        /// What was called.
        method: String,
        /// What it answered.
        error: ErrorObject,
    },
    /// The other side answered with something that is not a response.
    #[error("`{method}` was answered with a malformed response: {defect}")]
    Malformed {
        /// What was called.
        method: String,
        /// What is wrong with the answer.
        defect: Defect,
    },
    /// No answer came in time.
    #[error("`{method}` was not answered within {after:?}")]
    Deadline {
        /// What was called.
        method: String,
        /// How long was waited.
        after: Duration,
    },
    /// The conversation is over.
    #[error("`{method}` cannot be answered: {end}")]
    Ended {
        /// What was called.
        method: String,
        /// Why it is over.
        end: End,
    },
    /// The request is longer than the other side accepts. It was not sent.
    #[error("request `{method}` of {length} bytes exceeds maximum size of {limit} bytes")]
    TooLong {
        /// What was called.
        method: String,
        /// The length of the request.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why a notification was not sent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotifyError {
    /// The conversation is over.
    #[error("`{method}` cannot be sent: {end}")]
    Ended {
        /// What was to be sent.
        method: String,
        /// Why it is over.
        end: End,
    },
    /// The notification is longer than the other side accepts.
    #[error("notification `{method}` of {length} bytes exceeds maximum size of {limit} bytes")]
    TooLong {
        /// What was to be sent.
        method: String,
        /// The length of the notification.
        length: usize,
        /// The limit.
        limit: usize,
    },
}
