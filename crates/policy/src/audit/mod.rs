//! An audit trail that cannot be altered without a trace: one canonical JSON object a line, each naming the hash
//! of the line before it.
//!
//! `sha256sum` of a line (without its newline) is the `prev` of the next one, so a stranger can check a trail with
//! tools that are already there. What the trail cannot show by itself is that its end was cut off; for that, keep
//! the [`Head`] somewhere else.

mod chain;
mod coalesce;
mod verify;

pub use chain::{AppendError, Chain, Head, Line, MAX_LINE_BYTES, Scalar};
pub use coalesce::{Coalescer, Denial, MAX_HELD_DENIALS, Offer, Repeated, Threshold};
pub use verify::{Broken, Fault, Record, Verified, read, verify};
