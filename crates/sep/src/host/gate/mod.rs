//! The gate: the one place where it is decided what an extension may do, and the only caller of what does it.
//!
//! ```text
//! frame ─► size, UTF-8, JSON, envelope, id          (the channel)
//!       ─► state of the session ─► rate              Desk::admit
//!       ─► id in use, too many at once               (the channel)
//!       ─► method ─► version ─► permission ─► record  decide
//!       ─► params ─► quotas ─► work, with a deadline  one file per topic
//! ```
//!
//! The order decides which error wins, and it never changes. Nothing before the permission touches anything of the host.
//! A decision about something privileged is recorded before it takes effect; what cannot be recorded does not happen.
//!
//! A [`Gate`] belongs to an extension and outlives its processes; a [`Desk`] belongs to one session and is the handler of its
//! channel.

mod capabilities;
mod conduct;
mod cursor;
mod decide;
mod desk;
mod grants;
mod interface;
mod memory;
mod messages;
mod owner;
mod page;
mod params;
mod ports;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod trial;

pub use cursor::CursorKey;
pub use decide::{Decision, decide};
pub use desk::Desk;
pub use grants::{GrantLayers, GrantSet, OperatorGrant, Reason};
pub use memory::{MAX_KEYS, REMEMBERED, SendMemory};
pub use owner::{About, Gate, GateParts};
pub use ports::{Listening, Log, Meter, NotRecorded, Offence, Recorded, Recorder, Services};
pub use trial::fuzz;
