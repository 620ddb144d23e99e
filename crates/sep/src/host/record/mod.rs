//! What a host writes down: who was allowed what, what extensions say, how often what happened, and, when somebody asks for it,
//! the very frames. Every record is bounded, and none of them can be made to grow by an extension.

pub mod audit;
pub mod metrics;
mod stamp;

pub use audit::{Audit, AuditDown, AuditError, AuditKind, AuditLimits, Entry, Ruling};
pub use metrics::{EventFate, Incident, Metrics, MetricsBook};
pub use stamp::{Stamp, wall_clock};
