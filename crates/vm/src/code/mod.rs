//! What the compiler makes and the interpreter runs: instructions, functions, and the tables beside them.
//!
//! A [`Program`] is immutable plain data. Ids inside it (functions, constants, sites) are absolute: a program is
//! compiled on top of a [`Base`] that says how many of each are taken (by the prelude), so nothing is relocated
//! at load and instructions never add a base.

mod disassemble;
mod op;
mod operands;
mod pack;
mod program;
mod source;

pub use disassemble::disassemble;
pub use op::{Declare, ErrorKind, K, Member, Op, R, S, T};
pub(crate) use operands::{LAYOUT, Operands};
pub use pack::{packed_length, unpack};
pub use program::{Base, Capture, Constant, Function, FunctionKind, Handler, Program, Template, WINDOW};
pub use source::SourceText;
