//! What the tests of this room share.

use std::time::Duration;

use crate::protocol::Limits;

pub(crate) fn limits() -> Limits {
    Limits {
        max_frame_bytes: 65_536,
        requests_per_second: 50,
        concurrent_requests: 16,
        event_queue: 64,
        event_queue_bytes: 65_536,
        event_window: 4,
        startup: Duration::from_secs(10),
        memory_bytes: 1 << 28,
        panels: 4,
        actions_per_panel: 8,
        toasts_per_minute: 5,
        toast_burst: 2,
        sends_per_minute: 30,
        send_burst: 10,
        log_files: 3,
        log_file_bytes: 1 << 20,
        crash_threshold: 5,
        request_timeout: Duration::from_secs(10),
        send_timeout: Duration::from_secs(15),
        event_ack: Duration::from_secs(10),
    }
}
