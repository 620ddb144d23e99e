//! Bounded lines: the splitter, its policies, and the readers and writers over it.

pub mod dialect;
mod item;
mod policy;
mod read;
mod split;
mod write;

pub use item::{Defect, Defective, Ending, Head, Item, Line, TooLong};
pub use policy::{Blank, Bom, CarriageReturn, Fault, LastLine, LineLimit, LinePolicy, Overlong, Patience};
pub use read::{BlockingLineReader, LineReadError, LineReader};
pub use split::{Decoded, LineError, Splitter};
pub use write::{BlockingLineWriter, LineWriteError, LineWriter};
