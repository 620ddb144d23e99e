//! The channel: where host and extension meet, who is believed to be the extension, and what the host asks of it.
//!
//! # Theory of operation
//!
//! A [`Rendezvous`] is opened before the process is started: a socket that only we can reach, a token that is used once, and
//! the line that tells the extension about both. [`Rendezvous::attach`] then waits for the one process that may come. The
//! kernel says who connects, and a connection of another user or of a process outside the extension's family is closed before
//! a byte of it is read. The others must show the token in their first frame. Strangers are refused, told to the [`Witness`],
//! and change nothing; with the one good attach the meeting place disappears.
//!
//! What attached becomes a [`Conversation`]: both sides call each other at once, the host by the methods here, the extension
//! through the handler that the gate provides. Questions of control overtake actions, and actions overtake events. A
//! conversation that ends says [how](ChannelEnd), in the words of exit records.

mod attach;
pub(crate) mod conversation;
mod end;
mod greeting;
mod kin;
mod negotiate;
mod patience;
mod rendezvous;
mod run_dir;
mod token;

pub use attach::{
    AttachError, Attached, Expected, GREETING_TIME, MAX_GREETING_BYTES, MAX_UNDECIDED, Refusal, Why, Witness,
};
pub(crate) use conversation::now_ms;
pub use conversation::{ACTION_TIME, CallFailure, Conversation, InitializeError, TraceTap, WRITE_STALL};
pub use end::ChannelEnd;
pub use negotiate::{Disagreement, Mismatch, Offer, agree};
pub use patience::{Overdue, UNRESPONSIVE_AFTER};
pub use rendezvous::{CHILD_FD, OpenError, Rendezvous, Transport};
pub use run_dir::{RunDirs, Unusable, sweep};
pub use token::Bootstrap;

/// Limits for tests, with frames of `max_frame_bytes`.
#[cfg(test)]
pub(crate) fn test_limits(max_frame_bytes: usize) -> crate::protocol::Limits {
    use std::time::Duration;

    crate::protocol::Limits {
        max_frame_bytes,
        requests_per_second: 1000,
        concurrent_requests: 8,
        event_queue: 64,
        event_queue_bytes: 256 * 1024,
        event_window: 4,
        startup: Duration::from_secs(15),
        memory_bytes: 1 << 28,
        panels: 4,
        actions_per_panel: 8,
        toasts_per_minute: 5,
        toast_burst: 2,
        sends_per_minute: 0,
        send_burst: 0,
        log_files: 2,
        log_file_bytes: 1 << 18,
        crash_threshold: 3,
        request_timeout: Duration::from_secs(10),
        send_timeout: Duration::from_secs(15),
        event_ack: Duration::from_secs(10),
    }
}
