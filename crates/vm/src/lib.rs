//! The JavaScript engine that `mustard` runs: parse, compile, execute, snapshot.
//!
//! # Theory of operation
//!
//! The crate is pure: no clock, no I/O, no threads. Time, randomness and the world arrive as answers to host calls. The
//! machine's stack is data: a guest call pushes a frame into a table and never recurses in Rust, so a run can stop at any
//! host call, wherever that happens, and everything it consists of is index-linked tables.
//!
//! * [`ast`] and [`parse`]: the whole of ECMAScript 2024 script grammar, always strict, into flat tables; early errors; every
//!   name resolved. Depth is counted, so no source is too deep, only refused.
//! * [`code`] and [`compile`]: register instructions of eight bytes, and the way from the tree to them.
//! * [`exec`]: the interpreter. What an instruction cannot do by itself (a getter, `valueOf`, an iterator) is a frame of a
//!   helper written in JavaScript, which suspends like any other.
//! * [`heap`] and [`value`]: NaN-boxed values, shapes, strings, arrays, ordered tables, an exact collector. Memory is charged
//!   before it is taken.
//! * [`boundary`]: plain data in and out, outstanding host calls, capabilities and limits asserted anew.
//! * [`snapshot`]: programs and whole machines as bytes, checked in full when they come back.
//! * [`regex`]: patterns on fuel.
//! * [`text`]: numbers, BigInt, dates, JSON text, URIs, Unicode and American English formatting as pure functions.
//!
//! [`exec`] has an example that runs, stops at a host call and goes on.

pub mod ast;
pub mod boundary;
mod builtins;
pub mod code;
pub mod compile;
pub mod exec;
pub mod heap;
pub mod parse;
pub mod regex;
pub mod snapshot;
pub mod text;
pub mod value;
