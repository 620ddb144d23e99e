//! What one extension may use, after manifest, trust and platform have all had their say.

use std::time::Duration;

/// The effective limits of one extension: the smallest of what it asks for, what its trust allows, and what the platform has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame, in bytes before the newline, in both directions.
    pub max_frame_bytes: usize,
    /// Requests of the extension a second.
    pub requests_per_second: u32,
    /// Requests of the extension at the same time.
    pub concurrent_requests: usize,
    /// Events that may wait.
    pub event_queue: usize,
    /// Bytes of events that may wait.
    pub event_queue_bytes: usize,
    /// Events that may be on their way without being acknowledged.
    pub event_window: usize,
    /// From the start of the process to its being ready.
    pub startup: Duration,
    /// Memory of the whole tree of processes.
    pub memory_bytes: u64,
    /// Panels.
    pub panels: usize,
    /// Actions of one panel.
    pub actions_per_panel: usize,
    /// Notices a minute.
    pub toasts_per_minute: u32,
    /// Notices at once.
    pub toast_burst: u32,
    /// Messages a minute; zero means none.
    pub sends_per_minute: u32,
    /// Messages at once.
    pub send_burst: u32,
    /// Log files that are kept, the current one included.
    pub log_files: u32,
    /// No log file is larger.
    pub log_file_bytes: u64,
    /// Crashes within the window that disable it.
    pub crash_threshold: u32,
    /// How long the host may take for a request.
    pub request_timeout: Duration,
    /// How long the host may take to send a message.
    pub send_timeout: Duration,
    /// How long the extension may take to acknowledge an event.
    pub event_ack: Duration,
}
