//! JSON text: quoting for `JSON.stringify`, and the events that a heap-building `JSON.parse` is driven by.
//!
//! [`Reader`] is an iterator of events with an explicit stack of one bit per open container, so that depth costs no
//! recursion; the depth that it accepts is the caller's. Work is linear: charge `linear_cost` of the source before.

mod error;
mod open;
mod quote;
mod read;
mod string;

pub use error::{JsonError, JsonProblem};
pub use quote::quote;
pub use read::{Event, Reader};
pub use string::{Spelling, StringToken, Unit};
