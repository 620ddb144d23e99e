//! Dates: the proleptic Gregorian calendar, reading and printing. Local time is UTC, for determinism.
//!
//! - [`calendar`]: `MakeDay`, `MakeTime`, `TimeClip` and the fields of a time value
//! - [`parse()`]: `Date.parse`, the standard's format and what V8 accepts besides
//! - [`mod@print`]: the `to…String` family

pub mod calendar;
mod parse;
pub mod print;

pub use calendar::Fields;
pub use parse::{parse, parse_cost};
