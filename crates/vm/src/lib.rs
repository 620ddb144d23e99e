//! The JavaScript engine that `mustard` runs: parse, compile, execute, snapshot.
//!
//! Nothing is here yet. The crate will be pure: no clock, no I/O, no threads; time, randomness and the
//! world arrive as results of host calls, and the whole machine state is data that can be saved at any of them.

pub mod code;
pub mod text;
pub mod ast;
pub mod parse;
pub mod compile;
pub mod exec;
pub mod heap;
pub mod value;
pub mod regex;
