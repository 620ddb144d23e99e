//! Pure text algorithms of the language: what a number, a date or a string looks like, and how it is read back.
//!
//! Nothing here knows the heap. Input is borrowed as [`Str`]; output is a `String` when it is ASCII by
//! construction and a [`Text`] (canonical Latin-1 or UTF-16) otherwise. No function recurses on its input, and
//! each one whose work is not bounded by a small constant either is linear in its input (charge one unit per code
//! unit with [`linear_cost`]) or has a `…_cost` function beside it that the interpreter asks before it calls.
//!
//! Results are compared with tables recorded from node in `tests/it/text*`; the generator sits beside them.

pub mod bigint;
pub mod date;
pub mod intl;
pub mod json;
pub mod number;
mod str;
pub mod unicode;
pub mod uri;

pub use self::str::{CodePoints, Text};
pub use crate::heap::Str;

/// The work of one pass over `len` code units, in the interpreter's units.
///
/// ```
/// assert_eq!(outrigger_vm::text::linear_cost(1600), 101);
/// ```
pub fn linear_cost(len: usize) -> u64 {
    // One instruction of the interpreter is worth about sixteen code units of a tight native loop.
    1 + (len as u64) / 16
}
