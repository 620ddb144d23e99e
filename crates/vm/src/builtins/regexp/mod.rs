//! `RegExp`: matching and the plain cases of its protocols; `regexp.js` does what can run guest code.
//!
//! A RegExp object has the fields source, flags, flags as bits, and the generation it paid in (`cache`). Its `lastIndex`
//! is the first property of [`crate::exec::Realm`]'s `regexp_shape`; an object that still has this shape, while
//! nobody has changed `RegExp.prototype`, is *plain*: then the natives may skip every step that guest code could see.
//!
//! * here: the table, making objects, getters · `cache` programs · `exec` one match and its result
//! * `protocol`, `replace` the protocols for plain objects · `spell` `source` and `escape`

mod cache;
mod exec;
mod protocol;
mod replace;
mod spell;

pub(crate) use cache::RegExps;
pub(super) use protocol::{string_match, string_match_all, string_search, string_split};
pub(super) use replace::string_replace;

use super::original::native_number;
use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Proto, Window};
use crate::heap::{Attrs, Class, Key, ObjId, Own, Payload, StrId, SymId, atoms, symbols};
use crate::regex::Flags;
use crate::value::Value;
use cache::{BITS, FLAGS, SOURCE};
use std::sync::LazyLock;

pub(super) const ROWS: &[Row] = &[
    ("new RegExp", new_regexp),
    ("get RegExp[Symbol.species]", |_, _, a| Ok(a.this)),
    ("RegExp.escape", spell::escape),
    ("RegExp.prototype.exec", exec::exec),
    ("RegExp.prototype.test", exec::test),
    ("RegExp.prototype[Symbol.match]", protocol::find_all),
    ("RegExp.prototype[Symbol.matchAll]", protocol::match_all),
    ("RegExpStringIterator.prototype.next", protocol::next_match),
    ("RegExp.prototype[Symbol.replace]", replace::replace),
    ("RegExp.prototype[Symbol.search]", protocol::search),
    ("RegExp.prototype[Symbol.split]", protocol::split),
    ("get RegExp.prototype.flags", flags),
    ("get RegExp.prototype.source", spell::source),
    ("get RegExp.prototype.hasIndices", |st, _, a| flag(st, a, Flags::INDICES)),
    ("get RegExp.prototype.global", |st, _, a| flag(st, a, Flags::GLOBAL)),
    ("get RegExp.prototype.ignoreCase", |st, _, a| flag(st, a, Flags::IGNORE_CASE)),
    ("get RegExp.prototype.multiline", |st, _, a| flag(st, a, Flags::MULTILINE)),
    ("get RegExp.prototype.dotAll", |st, _, a| flag(st, a, Flags::DOT_ALL)),
    ("get RegExp.prototype.unicode", |st, _, a| flag(st, a, Flags::UNICODE)),
    ("get RegExp.prototype.unicodeSets", |st, _, a| flag(st, a, Flags::UNICODE_SETS)),
    ("get RegExp.prototype.sticky", |st, _, a| flag(st, a, Flags::STICKY)),
    ("NewRegExp", create),
    ("RegExpBits", |st, w, a| {
        Ok(Value::int(regexp(st, a.get(w, 0)).map_or(0, |r| i32::from(st.regexp_bits(r)))))
    }),
    ("RegExpMatch", exec::match_at),
    ("RegExpPlain", |st, w, a| Ok(Value::bool(plain(st, a.get(w, 0)).is_some()))),
    ("RegExpArguments", replace::arguments),
    ("RegExpAssemble", replace::assemble),
    ("RegExpGroups", replace::group_count),
    ("RegExpAdvance", protocol::advance_index),
];

/// The object, if it is a RegExp.
fn regexp(st: &State, v: Value) -> Option<ObjId> {
    v.as_object().filter(|&o| st.heap.class(o) == Class::RegExp)
}

/// `RegExp(pattern, flags)` and `new RegExp(…)` with strings, or nothing, as arguments.
fn new_regexp(st: &mut State, w: &mut Window, a: Args) -> Res {
    let target = a.calling.new_target;
    if !(target.is_undefined() || target == a.callee) {
        return slow();
    }
    let text = |v: Value| if v.is_undefined() { Some(atoms::EMPTY) } else { v.as_string() };
    let (Some(source), Some(flags)) = (text(a.get(w, 0)), text(a.get(w, 1))) else { return slow() };
    let prototype = st.realm.proto(Proto::RegExp);
    st.new_regexp(prototype, source, flags)
}

/// `%NewRegExp(prototype, source, flags)`.
fn create(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (Some(prototype), Some(source), Some(flags)) =
        (a.get(w, 0).as_object(), a.get(w, 1).as_string(), a.get(w, 2).as_string())
    else {
        return slow();
    };
    st.new_regexp(prototype, source, flags)
}

impl State {
    /// A regular expression literal: its two constants are neighbours.
    pub(crate) fn regexp_literal(&mut self, k: u32) -> Res {
        let text = |st: &State, k: u32| st.constants.get(k as usize).and_then(|v| v.as_string());
        let (Some(source), Some(flags)) = (text(self, k), text(self, k + 1)) else {
            return Err(self.type_error("a regular expression without a pattern"));
        };
        let prototype = self.realm.proto(Proto::RegExp);
        self.new_regexp(prototype, source, flags)
    }

    fn new_regexp(&mut self, prototype: ObjId, source: StrId, flags: StrId) -> Res {
        self.heap.flatten(flags)?;
        let Some(bits) = Flags::parse(self.heap.str(flags).units().take(16)) else {
            let flags: String = self.string_text(flags).chars().take(100).collect();
            let message = format!("Invalid flags supplied to RegExp constructor '{flags}'");
            return Err(self.throw(ErrorKind::Syntax, &message));
        };
        // One string for the same pattern, so that its program is found again.
        let source = self.heap.intern(source)?;
        let shape = if prototype == self.realm.proto(Proto::RegExp) {
            self.realm.regexp_shape
        } else {
            let root = self.heap.root_shape(Some(prototype))?;
            self.heap.transition(root, Key::atom(atoms::LAST_INDEX), Attrs::WRITABLE)?.unwrap_or(root)
        };
        let mut fields = [Value::UNDEFINED; 4];
        fields[SOURCE] = Value::string(source);
        fields[FLAGS] = Value::string(flags);
        fields[BITS] = Value::int(i32::from(bits.bits()));
        debug_assert!(Class::RegExp.payload() == Payload::Slots);
        let object =
            self.heap.new_object_with_slots(shape, Class::RegExp, crate::heap::Flags::NONE, &fields)?;
        self.heap.set_slot(object, 0, Value::ZERO);
        self.register_regexp(object)?;
        Ok(Value::object(object))
    }
}

/// Every flag of the object, in the order of the alphabet, when its getters are the original ones.
fn flags(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let Some(regexp) = regexp(st, a.this).filter(|&r| st.heap.shape(r) == st.realm.regexp_shape) else {
        return slow();
    };
    if !getters_intact(st) {
        return slow();
    }
    let bits = Flags::from_bits(st.regexp_bits(regexp));
    let mut text = [0u8; 8];
    let mut len = 0;
    for (flag, letter) in [
        (Flags::INDICES, b'd'),
        (Flags::GLOBAL, b'g'),
        (Flags::IGNORE_CASE, b'i'),
        (Flags::MULTILINE, b'm'),
        (Flags::DOT_ALL, b's'),
        (Flags::UNICODE, b'u'),
        (Flags::UNICODE_SETS, b'v'),
        (Flags::STICKY, b'y'),
    ] {
        if bits.has(flag) {
            text[len] = letter;
            len += 1;
        }
    }
    Ok(Value::string(st.heap.new_latin1(&text[..len])?))
}

/// One flag; `RegExp.prototype` itself has none, anything else is an error.
fn flag(st: &State, a: Args, flag: Flags) -> Res {
    match regexp(st, a.this) {
        Some(regexp) => Ok(Value::bool(Flags::from_bits(st.regexp_bits(regexp)).has(flag))),
        None if a.this.as_object() == Some(st.realm.proto(Proto::RegExp)) => Ok(Value::UNDEFINED),
        None => slow(),
    }
}

/// The object, if nothing between it and the natives can be seen by guest code: it has no properties of its own beside a
/// `lastIndex` that is a small number and can be written, and `RegExp.prototype` has its `exec` and its getters.
fn plain(st: &mut State, v: Value) -> Option<ObjId> {
    static EXEC: LazyLock<i32> = LazyLock::new(|| native_number("RegExp.prototype.exec"));
    let object = regexp(st, v).filter(|&o| st.heap.shape(o) == st.realm.regexp_shape)?;
    st.heap.slot(object, 0).as_int().filter(|&i| i >= 0)?;
    let prototype = st.realm.proto(Proto::RegExp);
    let plain = getters_intact(st) && st.has_original(prototype, Key::atom(atoms::EXEC), *EXEC);
    plain.then_some(object)
}

/// Whether every getter of `RegExp.prototype` that the protocols read is the original one. What is found holds for as
/// long as no prototype gets, loses or changes an accessor; a method's value can change without that, so methods are
/// looked at each time.
fn getters_intact(st: &mut State) -> bool {
    let epoch = st.heap.prototype_epoch();
    if st.regexps.intact == Some(epoch) {
        return true;
    }
    let prototype = st.realm.proto(Proto::RegExp);
    for &(name, native) in GETTERS.iter() {
        let Ok(atom) = st.heap.intern_str(name) else { return false };
        if !st.has_original(prototype, Key::atom(atom), native) {
            return false;
        }
    }
    st.regexps.intact = Some(epoch);
    true
}

/// The getters of the prototype, with the numbers of their natives.
static GETTERS: LazyLock<[(&str, i32); 9]> = LazyLock::new(|| {
    ["flags", "hasIndices", "global", "ignoreCase", "multiline", "dotAll", "unicode", "unicodeSets", "sticky"]
        .map(|name| (name, native_number(&format!("get RegExp.prototype.{name}"))))
});

/// Whether a string's method may go straight to the native behind this symbol.
fn hands_over(st: &State, symbol: SymId) -> bool {
    static METHODS: LazyLock<[(SymId, i32); 5]> = LazyLock::new(|| {
        [
            (symbols::MATCH, "match"),
            (symbols::MATCH_ALL, "matchAll"),
            (symbols::REPLACE, "replace"),
            (symbols::SEARCH, "search"),
            (symbols::SPLIT, "split"),
        ]
        .map(|(symbol, name)| (symbol, native_number(&format!("RegExp.prototype[Symbol.{name}]"))))
    });
    let method = METHODS.iter().find(|(own, _)| *own == symbol);
    let prototype = st.realm.proto(Proto::RegExp);
    method.is_some_and(|&(symbol, native)| st.has_original(prototype, Key::symbol(symbol), native))
}

/// Whether `new RegExp` of a plain object's species is the original constructor's.
fn species_intact(st: &State) -> bool {
    static ORIGINALS: LazyLock<(i32, i32)> =
        LazyLock::new(|| (native_number("new RegExp"), native_number("get RegExp[Symbol.species]")));
    let (constructor, species) = *ORIGINALS;
    let prototype = st.realm.proto(Proto::RegExp);
    let Own::Data { value, .. } = st.heap.get_own(prototype, Key::atom(atoms::CONSTRUCTOR)) else {
        return false;
    };
    st.is_original(value, constructor)
        && value.as_object().is_some_and(|c| st.has_original(c, Key::symbol(symbols::SPECIES), species))
}

/// A string argument, flat; anything else is a case for the JavaScript version.
fn subject(st: &mut State, v: Value) -> Result<StrId, Exit> {
    let s = v.as_string().ok_or(Exit::Slow)?;
    st.heap.flatten(s)?;
    Ok(s)
}
