//! What a host writes down: who was allowed what, what extensions say, how often what happened, and, when somebody asks for it,
//! the very frames. Every record is bounded, and none of them can be made to grow by an extension.

pub mod audit;
pub mod log;
pub mod metrics;
mod ports;
mod stamp;
#[cfg(test)]
pub(crate) mod tests;
mod trace;

pub use audit::{Audit, AuditDown, AuditError, AuditKind, AuditLimits, Entry, Ruling};
pub use log::{ExtensionLog, Follow, Followed, Level, LogError, LogLine, Stream};
pub use metrics::{EventFate, Incident, Metrics, MetricsBook};
pub use stamp::{Clock, Now, Stamp, system_clock, wall_clock};
pub use trace::{MAX_FRAME_BYTES, MAX_FRAMES, Trace, TraceMode, TracedFrame, Way};
