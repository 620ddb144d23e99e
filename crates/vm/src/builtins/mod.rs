//! The standard library: JavaScript that our own compiler compiles, with native functions where speed or access needs them.
//!
//! # How a built-in is made
//!
//! Everything that may run guest code (a getter, `valueOf`, an iterator, a callback) is written in the `.js` files here:
//! so it can suspend, throw, run out of budget and be snapshotted in the middle, like any guest function. Each file is a
//! script of its own; [`SOURCES`] lists them in order. They must not read globals, which guests can replace: they
//! capture what they need in constants, and reach each other with `%name(…)` (see below).
//!
//! * `%Install(target, { methods… }, "Array.prototype")` copies methods and accessors to the target, not enumerable. If a
//!   row of a native table has the qualified name (`"Array.prototype.push"`, `"get Map.prototype.size"`,
//!   `"Array.prototype[Symbol.iterator]"`), the property becomes a native function that tries the row first; when it
//!   answers [`Exit::Slow`], nothing has happened yet and the JavaScript version runs.
//! * `%Constructor(function Map(iterable) {…}, proto)` makes a constructor, links it with its prototype, defines the global
//!   of its name and answers it. Its body must not use `this`: it returns the object it makes. `%Class` is the same without a
//!   global. A row named `"new Map"` is its fast path, for calls with and without `new`.
//! * `%Const(target, key, value)` is neither writable nor enumerable nor configurable; `%Tag(target, "Map")` is its `@@toStringTag`;
//!   `%Hidden(target, key, value)` is an ordinary hidden property.
//! * `%Proto("Map")` is a prototype of the realm (`Proto` in `exec/realm.rs`).
//! * `%Share("toLength", f)` makes a function callable as `%toLength(…)` from every file and usable from Rust as a helper.
//!   Its name must be in [`SHARED`]. `%Shared("name")` is the value itself.
//! * `%Call(f, this, …)`, `%Apply(f, this, list)`, `%Construct(f, list, newTarget)` call; `%Arguments()` is a fresh array of all
//!   arguments, `%ArgCount()` their number. `%Is("Map", x)` asks for the class of an object ([`crate::heap::Class`]).
//!
//! `math.js` and `math.rs` are the model to follow.
//!
//! # Natives and intrinsics
//!
//! A [`Row`] is a name and a function. A row whose name is a plain identifier with a capital first letter is an intrinsic: `%Name(…)`.
//! A native charges with `st.burn` before work that grows with its input, and allocates before its first side effect: after
//! `Exit::Alloc` the whole instruction is executed again.

mod array;
mod array_text;
mod bigint;
mod clone;
mod console;
mod date;
mod define;
mod error;
mod function;
mod global;
mod internal;
mod intl;
mod iterator;
mod json;
mod map;
mod math;
mod number;
mod object;
mod ops;
pub(crate) mod original;
mod promise;
mod proxy;
mod regexp;
mod string;
mod suspend;
mod symbol;
mod typed;
mod uri;
mod weak;

pub(crate) use map::step as table_step;
pub(crate) use regexp::RegExps;
pub(crate) use string::iterates_plainly;

use crate::exec::state::{Exit, Res, State};
use crate::exec::{Calling, Helper, Window};
use crate::value::Value;

/// The prelude, in the order in which it is run.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("core.js", include_str!("core.js")),
    ("proxy.js", include_str!("proxy.js")),
    ("object.js", include_str!("object.js")),
    ("reflect.js", include_str!("reflect.js")),
    ("function.js", include_str!("function.js")),
    ("error.js", include_str!("error.js")),
    ("symbol.js", include_str!("symbol.js")),
    ("array.js", include_str!("array.js")),
    ("array_iterate.js", include_str!("array_iterate.js")),
    ("array_sort.js", include_str!("array_sort.js")),
    ("typed_buffer.js", include_str!("typed_buffer.js")),
    ("typed_array.js", include_str!("typed_array.js")),
    ("typed_methods.js", include_str!("typed_methods.js")),
    ("math.js", include_str!("math.js")),
    ("string.js", include_str!("string.js")),
    ("number.js", include_str!("number.js")),
    ("bigint.js", include_str!("bigint.js")),
    ("regexp.js", include_str!("regexp.js")),
    ("uri.js", include_str!("uri.js")),
    ("date.js", include_str!("date.js")),
    ("intl.js", include_str!("intl.js")),
    ("map.js", include_str!("map.js")),
    ("set.js", include_str!("set.js")),
    ("weak.js", include_str!("weak.js")),
    ("promise.js", include_str!("promise.js")),
    ("suspend.js", include_str!("suspend.js")),
    ("json.js", include_str!("json.js")),
    ("iterator.js", include_str!("iterator.js")),
    ("global.js", include_str!("global.js")),
    ("clone.js", include_str!("clone.js")),
];

/// The native tables, one per area. A number is a table and a row.
const TABLES: &[&[Row]] = &[
    define::ROWS,
    ops::ROWS,
    internal::ROWS,
    proxy::ROWS,
    object::ROWS,
    function::ROWS,
    error::ROWS,
    symbol::ROWS,
    array::ROWS,
    array_text::ROWS,
    typed::ROWS,
    math::ROWS,
    string::METHODS,
    string::FUNCTIONS,
    number::ROWS,
    bigint::ROWS,
    regexp::ROWS,
    uri::ROWS,
    date::ROWS,
    intl::ROWS,
    global::ROWS,
    map::ROWS,
    weak::ROWS,
    promise::ROWS,
    suspend::ROWS,
    json::ROWS,
    iterator::ROWS,
    clone::ROWS,
];

/// Names that prelude files share beside the helpers of [`Helper`].
pub(crate) const SHARED: &[&str] = &[
    // core.js
    "toPrimitive",
    "toNumeric",
    "toIntegerOrInfinity",
    "toLength",
    "toIndex",
    "lengthOf",
    "getMethod",
    "protoFrom",
    "speciesConstructor",
    "listFrom",
    // array.js
    "arraySpecies",
    "arrayCreate",
    "arrayPlace",
    "notCallable",
    "mergeSort",
    "joinElements",
    // typed_buffer.js, typed_array.js
    "indexOr",
    "typedValidate",
    "typedPut",
    "typedConvert",
    "typedSpeciesCreate",
    "typedSame",
    "typedSubarray",
    // object.js, function.js
    "toDescriptor",
    "ordinaryHasInstance",
    "classHeritage",
    // string.js, regexp.js, bigint.js
    "isRegExp",
    "regExpCreate",
    "regExpCache",
    "toBigInt",
    // promise.js
    // date.js
    "timeOf",
    // intl.js
    "numberToLocale",
    "compareLocale",
];

/// A native function: its name (see the module documentation) and what it does.
pub(crate) type Row = (&'static str, NativeFn);

/// What a native does: answers a value, or an [`Exit`] (a throw, a frame it entered, [`Exit::Slow`]).
pub(crate) type NativeFn = fn(&mut State, &mut Window, Args) -> Res;

/// A call of a native.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args {
    /// The function object; undefined for an intrinsic.
    pub(crate) callee: Value,
    pub(crate) this: Value,
    /// The register of the first argument.
    pub(crate) first: u8,
    pub(crate) argc: u32,
    pub(crate) calling: Calling,
}

impl Args {
    /// Argument number `n`, or undefined.
    #[inline]
    pub(crate) fn get(&self, w: &Window, n: u32) -> Value {
        if n < self.argc {
            w.get(self.first as usize + n as usize).copied().unwrap_or(Value::UNDEFINED)
        } else {
            Value::UNDEFINED
        }
    }

    /// All arguments.
    pub(crate) fn all<'w>(&self, w: &'w Window) -> &'w [Value] {
        let first = self.first as usize;
        w.get(first..first + self.argc as usize).unwrap_or_default()
    }
}

/// The number of a row: where it is in [`TABLES`].
fn number(wanted: impl Fn(&str) -> bool) -> Option<u32> {
    for (t, table) in TABLES.iter().enumerate() {
        if let Some(r) = table.iter().position(|(name, _)| wanted(name)) {
            return Some((t as u32) << 16 | r as u32);
        }
    }
    None
}

/// The native behind a number.
#[inline]
pub(crate) fn native(number: u32) -> Option<NativeFn> {
    let row = TABLES.get((number >> 16) as usize)?.get((number & 0xFFFF) as usize)?;
    Some(row.1)
}

/// The names of all natives, in the order of their numbers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name).chain(["|"]))
}

/// What `%Name(…)` in the prelude stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Percent {
    /// A native with this number.
    Intrinsic(u32),
    /// A shared prelude function: its place in the helper table.
    Shared(u32),
}

/// Looks up `%Name`.
pub(crate) fn percent(name: &str) -> Option<Percent> {
    number(|row| row == name).map(Percent::Intrinsic).or_else(|| shared(name).map(Percent::Shared))
}

/// The place of a shared prelude function in the helper table.
pub(crate) fn shared(name: &str) -> Option<u32> {
    let helper = Helper::ALL.iter().position(|h| h.text() == name);
    let place = helper.or_else(|| SHARED.iter().position(|&s| s == name).map(|i| Helper::ALL.len() + i));
    place.map(|p| p as u32)
}

/// How many places the helper table has.
pub(crate) const HELPERS: usize = Helper::ALL.len() + SHARED.len();

/// An [`Exit::Slow`]: the case belongs to the JavaScript version.
pub(crate) fn slow() -> Res {
    Err(Exit::Slow)
}
