//! Pure text algorithms of the language: what a number, a date or a string looks like, and how it is read back.
//!
//! Nothing here knows the heap. Input is borrowed as [`Str`]; output is a `String` when it is ASCII by
//! construction and a [`Text`] (canonical Latin-1 or UTF-16) otherwise. No function recurses on its input, and each
//! one whose work grows with its input either has a `…_cost` function beside it that the interpreter asks before it
//! calls, or is a plain pass: then charge [`linear_cost`].
//!
//! Not here yet: `sin`, `exp` and their like are Rust's own, which call the platform's library, so the last bit may
//! differ from V8 and between platforms; collation knows few scripts (see [`unicode::collate`]); `Intl` lacks ranges,
//! rounding increments and named time zones (see [`intl`]).
//!
//! Results are compared with tables recorded from node in `tests/it/text*`; the generator sits beside them.

pub mod bigint;
pub mod date;
pub mod intl;
pub mod json;
pub mod number;
pub mod search;
mod str;
pub mod substitute;
pub mod unicode;
pub mod uri;

pub use self::str::{CodePoints, Text};
pub use crate::heap::Str;

/// The work of one plain pass over `len` code units, in the interpreter's units of about five nanoseconds.
///
/// ```
/// assert_eq!(outrigger_vm::text::linear_cost(1600), 101);
/// ```
pub fn linear_cost(len: usize) -> u64 {
    // Copying, comparing or scanning takes about a third of a nanosecond for each unit.
    1 + (len as u64) / 16
}
