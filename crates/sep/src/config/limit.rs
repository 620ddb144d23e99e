//! Other ceilings than the usual ones. For untrusted extensions they can only be lower.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::protocol::words::words;
use crate::protocol::{Limits, TrustLevel};

words! {
    /// A ceiling that the operator may move.
    LimitKey ("limit") {
        /// The longest frame.
        MaxRequestBytes = "max_request_bytes",
        /// Requests a second.
        RequestsPerSecond = "requests_per_second",
        /// Requests at the same time.
        ConcurrentRequests = "concurrent_requests",
        /// Events that may wait.
        EventQueue = "event_queue",
        /// Bytes of events that may wait.
        EventQueueBytes = "event_queue_bytes",
        /// Events that may be unacknowledged.
        EventWindow = "event_window",
        /// From the start to ready.
        StartupMs = "startup_ms",
        /// Memory of all its processes.
        MemoryBytes = "memory_bytes",
        /// Panels.
        Panels = "panels",
        /// Actions of one panel.
        ActionsPerPanel = "actions_per_panel",
        /// Notices a minute.
        ToastsPerMinute = "toasts_per_minute",
        /// Notices at once.
        ToastBurst = "toast_burst",
        /// Messages a minute.
        SendsPerMinute = "sends_per_minute",
        /// Messages at once.
        SendBurst = "send_burst",
        /// Log files that are kept.
        LogFiles = "log_files",
        /// The size of a log file.
        LogFileBytes = "log_file_bytes",
        /// Crashes that disable it.
        CrashThreshold = "crash_threshold",
        /// How long the host may take for a request.
        RequestTimeoutMs = "request_timeout_ms",
        /// How long the host may take to send a message.
        SendTimeoutMs = "send_timeout_ms",
        /// How long the extension may take for an event.
        EventAckMs = "event_ack_ms",
    }
}

/// Other ceilings for one level of trust.
pub type LimitOverrides = BTreeMap<LimitKey, u64>;

impl LimitKey {
    /// The least and the most that an operator may choose, whatever the trust.
    #[must_use]
    pub fn range(self) -> (u64, u64) {
        const MIB: u64 = 1 << 20;
        match self {
            Self::MaxRequestBytes => (1024, 4 * MIB),
            Self::RequestsPerSecond => (1, 10_000),
            Self::ConcurrentRequests => (1, 1024),
            Self::EventQueue => (1, 65_536),
            Self::EventQueueBytes => (1024, 64 * MIB),
            Self::EventWindow => (1, 1024),
            Self::StartupMs => (1000, 120_000),
            Self::MemoryBytes => (16 * MIB, 64 * 1024 * MIB),
            Self::Panels | Self::ActionsPerPanel => (0, 32),
            Self::ToastsPerMinute | Self::ToastBurst | Self::SendsPerMinute | Self::SendBurst => (0, 6000),
            Self::LogFiles => (1, 100),
            Self::LogFileBytes => (64 * 1024, 1024 * MIB),
            Self::CrashThreshold => (1, 20),
            Self::RequestTimeoutMs | Self::SendTimeoutMs | Self::EventAckMs => (1000, 60_000),
        }
    }

    /// What it is in `limits`.
    #[must_use]
    pub fn of(self, limits: &Limits) -> u64 {
        match self {
            Self::MaxRequestBytes => limits.max_frame_bytes as u64,
            Self::RequestsPerSecond => limits.requests_per_second.into(),
            Self::ConcurrentRequests => limits.concurrent_requests as u64,
            Self::EventQueue => limits.event_queue as u64,
            Self::EventQueueBytes => limits.event_queue_bytes as u64,
            Self::EventWindow => limits.event_window as u64,
            Self::StartupMs => millis(limits.startup),
            Self::MemoryBytes => limits.memory_bytes,
            Self::Panels => limits.panels as u64,
            Self::ActionsPerPanel => limits.actions_per_panel as u64,
            Self::ToastsPerMinute => limits.toasts_per_minute.into(),
            Self::ToastBurst => limits.toast_burst.into(),
            Self::SendsPerMinute => limits.sends_per_minute.into(),
            Self::SendBurst => limits.send_burst.into(),
            Self::LogFiles => limits.log_files.into(),
            Self::LogFileBytes => limits.log_file_bytes,
            Self::CrashThreshold => limits.crash_threshold.into(),
            Self::RequestTimeoutMs => millis(limits.request_timeout),
            Self::SendTimeoutMs => millis(limits.send_timeout),
            Self::EventAckMs => millis(limits.event_ack),
        }
    }

    /// Makes it `value` in `limits`.
    pub fn set(self, limits: &mut Limits, value: u64) {
        let small = u32::try_from(value).unwrap_or(u32::MAX);
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match self {
            Self::MaxRequestBytes => limits.max_frame_bytes = size,
            Self::RequestsPerSecond => limits.requests_per_second = small,
            Self::ConcurrentRequests => limits.concurrent_requests = size,
            Self::EventQueue => limits.event_queue = size,
            Self::EventQueueBytes => limits.event_queue_bytes = size,
            Self::EventWindow => limits.event_window = size,
            Self::StartupMs => limits.startup = Duration::from_millis(value),
            Self::MemoryBytes => limits.memory_bytes = value,
            Self::Panels => limits.panels = size,
            Self::ActionsPerPanel => limits.actions_per_panel = size,
            Self::ToastsPerMinute => limits.toasts_per_minute = small,
            Self::ToastBurst => limits.toast_burst = small,
            Self::SendsPerMinute => limits.sends_per_minute = small,
            Self::SendBurst => limits.send_burst = small,
            Self::LogFiles => limits.log_files = small,
            Self::LogFileBytes => limits.log_file_bytes = value,
            Self::CrashThreshold => limits.crash_threshold = small,
            Self::RequestTimeoutMs => limits.request_timeout = Duration::from_millis(value),
            Self::SendTimeoutMs => limits.send_timeout = Duration::from_millis(value),
            Self::EventAckMs => limits.event_ack = Duration::from_millis(value),
        }
    }

    /// Whether an operator may choose `value` for extensions of this trust, and if not, why.
    ///
    /// # Errors
    /// When it is out of range, or higher than the usual ceiling of untrusted extensions.
    pub fn check(self, trust: TrustLevel, value: u64) -> Result<(), String> {
        let (least, most) = self.range();
        if !(least..=most).contains(&value) {
            return Err(format!("`{self}` must be from {least} to {most}, and is {value}"));
        }
        let usual = self.of(&crate::manifest::ceilings(trust));
        if trust == TrustLevel::UntrustedLocal && value > usual {
            return Err(format!(
                "`{self}` of untrusted extensions can only be lowered: at most {usual}, and is {value}"
            ));
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
