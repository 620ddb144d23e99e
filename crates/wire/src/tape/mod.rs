//! A tape recorder for conversations, and the replay of tapes in tests.
//!
//! A tape is JSON lines: `{"dir":"in","t_us":1234,"line":"…"}`, or `"bytes"` in base64 where it was not a line of text.
//! `t_us` is monotonic, from the start of the tape. Where one tape holds several conversations, `"with"` says whose an entry
//! is. A tape that reached its size limit ends with `{"full":true}`.

mod base64;
mod record;
mod replay;

pub use record::{Direction, Listener, Tape, TapeSize, TapeSummary};
pub use replay::{Entry, Said, SplitError, TapeError, every_split, read_tape, stream};
