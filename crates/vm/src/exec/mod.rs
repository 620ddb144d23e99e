//! The interpreter.
mod helper;
pub use helper::{Helper, Intrinsic};
pub(crate) use helper::intrinsic_number;
