//! What the caller decides about a parse.

use crate::ast::Text;

/// Everything a parse depends on beside the source.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether `await` may stand outside async functions. If it may, `await` is reserved everywhere, as in modules.
    pub top_level_await: Permission,
    /// Whether `return` may stand outside functions.
    pub top_level_return: Permission,
    /// Whether `%Name(args)` is an expression: for our own prelude, never for guests.
    pub intrinsics: Permission,
    /// Who sees the script's own top-level names.
    pub top_level: TopLevel,
    /// Free names that are refused before anything runs.
    pub free_names: FreeNames,
    /// How deep the source may nest.
    pub nesting: NestingLimit,
    /// How long the source may be, in bytes (never more than [`Options::MAX_SOURCE`]).
    pub source_bytes: u32,
    /// Checks the pattern of each regular expression literal.
    pub check_regex: fn(pattern: Text<'_>, flags: Text<'_>) -> Result<(), RegexProblem>,
}

impl Options {
    /// Spans are 32 bits wide and tables hold a few entries a byte; 256 MiB keeps all of them in range.
    pub const MAX_SOURCE: u32 = 256 << 20;
}

/// Yes or no, readable at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Permission {
    Allowed,
    Refused,
}

/// Who sees the names that a script declares at top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopLevel {
    /// All scripts of the realm: uses resolve to [`crate::ast::Target::Global`].
    Shared,
    /// Only the script itself: they are local bindings like those of a function.
    Private,
}

/// What happens to names that nothing in the source binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeNames {
    /// They are looked up when the script runs.
    Allowed,
    /// Those of [`REFUSED_NAMES`] are validation errors, as is `eval`.
    RefuseAmbient,
}

/// Names that other hosts provide and that this one never will.
pub const REFUSED_NAMES: &[&str] = &[
    "eval",
    "process",
    "module",
    "exports",
    "global",
    "require",
    "Function",
    "setTimeout",
    "setInterval",
    "queueMicrotask",
    "fetch",
];

/// How many levels of brackets, statements, functions and operators may be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestingLimit(pub u16);

impl NestingLimit {
    /// Parses on a 2 MiB stack even in a build without any optimisation (measured: 500 does, 700 does not; with the
    /// workspace's own debug profile 1,400 does).
    pub const SAFE_ON_2_MIB: Self = Self(400);
}

/// Why a regular expression literal is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RegexProblem {
    /// What is wrong, for people.
    pub message: String,
}
