//! JSON text: quoting for `JSON.stringify`, and the events that a heap-building `JSON.parse` is driven by.
//!
//! [`Reader`] is an iterator of events with an explicit stack of one bit per open container, so that depth costs no
//! recursion; the depth that it accepts is the caller's. Ask [`read_cost`] and [`quote_cost`] before the work.

mod error;
mod open;
mod quote;
mod read;
mod string;

pub use error::{JsonError, JsonProblem};
pub use quote::quote;
pub use read::{Event, Reader};
pub use string::{Spelling, StringToken, Unit};

/// The work of reading a text of `len` code units.
pub fn read_cost(len: usize) -> u64 {
    1 + len as u64
}

/// The work of quoting a text of `len` code units, of which each may become six.
pub fn quote_cost(len: usize) -> u64 {
    1 + len as u64
}
