//! Regular expressions: ECMAScript 2024 patterns over Latin-1 or UTF-16 text, with a bound on every cost.
//!
//! `parse` reads a pattern into a tree of indices (`ast`), `analyse` and `compile` turn it into a flat
//! [`Program`], and [`exec`](exec()) runs that over a text with an explicit stack, [`Fuel`] and a reusable [`Scratch`].
//! A match never calls guest code, so it needs no suspension; a program is plain data and the same pattern
//! always compiles to the same program, so a snapshot needs to keep only the pattern and its flags.
//!
//! Complete: all flags, captures and names (a name may be shared by alternatives that exclude each other, as in
//! ES2025, and `(?i-ms:…)` works too), lookarounds in both directions, back references, annex B syntax without
//! `u` and `v`, `\p{…}` with Unicode 17, and the set notation of `v`.
//!
//! ```
//! use outrigger_vm::heap::Str;
//! use outrigger_vm::regex::{Flags, Fuel, Scratch, StackBytes, compile, exec};
//!
//! let program = compile(Str::Latin1(br"(?<year>\d{4})-(\d\d)"), Flags::NONE)?;
//! let mut scratch = Scratch::new(StackBytes(1 << 20));
//! let mut fuel = Fuel(10_000);
//! let found = exec(&program, Str::Latin1(b"on 2024-06-26"), 0, &mut fuel, &mut scratch)?;
//! assert_eq!(found.and_then(|captures| captures.get(1)), Some(3..7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analyse;
mod ast;
mod compile;
mod exec;
mod flags;
mod parse;
mod program;
mod search;
mod set;
mod tables;
mod text;

pub use compile::MAX_INSTRUCTIONS;
pub use exec::{Captures, ExecError, Fuel, Scratch, StackBytes, exec};
pub use flags::Flags;
pub use parse::{MAX_NESTING, MAX_NODES, MAX_PATTERN, SyntaxError};
pub use program::Program;

use crate::heap::Str;
use std::borrow::Cow;

/// Compiles a pattern, given without its slashes.
///
/// # Errors
/// If it is not a pattern under these flags, or is larger than the limits of this room allow.
pub fn compile(pattern: Str<'_>, flags: Flags) -> Result<Program, SyntaxError> {
    let ast = parse::parse(&units_of(pattern), flags)?;
    compile::compile(&ast, flags)
}

/// Checks pattern and flags without compiling them, as the parser of scripts must for every literal.
///
/// # Errors
/// As [`compile()`]; the position of a problem with the flags is the end of the pattern.
pub fn check(pattern: Str<'_>, flags: Str<'_>) -> Result<(), SyntaxError> {
    let Some(flags) = Flags::parse(flags.units()) else {
        return Err(SyntaxError { message: "invalid flags", position: pattern.len() });
    };
    parse::parse(&units_of(pattern), flags).map(|_| ())
}

fn units_of(text: Str<'_>) -> Cow<'_, [u16]> {
    match text {
        Str::Latin1(bytes) => bytes.iter().map(|&byte| u16::from(byte)).collect(),
        Str::Wide(units) => Cow::Borrowed(units),
    }
}
