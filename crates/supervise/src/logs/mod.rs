//! What children say: the last lines in memory for the exit report, and a file that never outgrows its bounds.
//!
//! Standard error is always drained. A child that writes faster than anybody can read loses lines, never time: nothing in
//! this room waits for a disk or a reader before it reads on.

mod feed;
mod file;
mod rotate;
mod stamp;
mod tail;

pub use feed::Stream;
pub(crate) use feed::{LineFeed, Tails};
pub(crate) use file::FileSink;
pub use stamp::Stamp;
pub use tail::{LogLine, Tail};
