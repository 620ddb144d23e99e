//! Compiled patterns, kept outside of the heap and made again when they are missing.
//!
//! A RegExp object holds its pattern and flags; the program is looked up here. What a script pays must not depend on what
//! happens to be in the table (a machine that was restored begins with an empty one), so the rules of payment are
//! kept in the heap, in a record that the prelude shares as `regExpCache`: a *generation* and the bytes compiled in
//! it. Making an object pays for compilation and notes the generation in the object. When a generation has compiled
//! [`MOST`] bytes, the table is emptied and the next one begins; an object of an older generation pays again when it
//! is next used. So the table never holds more than [`MOST`] bytes and one program, and what is compiled without
//! payment is at most that much after each restoration.

use crate::builtins::shared;
use crate::code::ErrorKind;
use crate::exec::state::{Exit, State};
use crate::heap::{ObjId, SlotsId, StrId};
use crate::regex::{self, Flags, Program, Scratch, StackBytes};
use crate::text::Text;
use crate::value::Value;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The fields of a RegExp object.
pub(super) const SOURCE: usize = 0;
pub(super) const FLAGS: usize = 1;
pub(super) const BITS: usize = 2;
const GENERATION: usize = 3;

/// How many bytes of programs one generation may make.
const MOST: usize = 4 << 20;
/// Stacks above this size are given back after a match.
const KEPT_STACK: usize = 1 << 20;

/// The table of programs, and what matches use.
#[derive(Debug, Default)]
pub(crate) struct RegExps {
    programs: FxHashMap<Pattern, Entry>,
    scratch: Option<Scratch>,
    /// The places of the groups of the last match; [`NOWHERE`] for those that took no part.
    pub(super) places: Vec<u32>,
    /// The epoch in which the prototype was last seen to be as it was made.
    pub(super) intact: Option<u32>,
}

/// No place in a text.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a program is looked up by: the string's number and the flags. Numbers are used again after a collection, so the
/// text is compared too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    source: u32,
    flags: u8,
}

#[derive(Debug)]
struct Entry {
    text: Text,
    program: Program,
}

impl State {
    /// The internal fields of a RegExp object.
    fn regexp_fields(&self, regexp: ObjId) -> Option<(SlotsId, StrId, u8)> {
        let id = self.heap.slots_of(regexp)?;
        let fields = self.heap.slots(id);
        let bits = fields.get(BITS)?.as_int()? as u8;
        Some((id, fields.get(SOURCE)?.as_string()?, bits))
    }

    pub(super) fn regexp_bits(&self, regexp: ObjId) -> u8 {
        self.regexp_fields(regexp).map_or(0, |(_, _, bits)| bits)
    }

    /// Pays for a new object's pattern and compiles it. A pattern that is none is a SyntaxError.
    pub(super) fn register_regexp(&mut self, regexp: ObjId) -> Result<(), Exit> {
        let Some((id, source, bits)) = self.regexp_fields(regexp) else { return Ok(()) };
        self.heap.flatten(source)?;
        self.burn(16 * (1 + u64::from(self.heap.string_length(source))))?;
        let size = match self.compiled(source, bits) {
            Ok(size) => size,
            Err(error) => {
                let flags = self.heap.slots(id).get(FLAGS).and_then(|v| v.as_string());
                let flags = flags.map(|f| self.string_text(f)).unwrap_or_default();
                let source: String = self.string_text(source).chars().take(200).collect();
                let message = format!("Invalid regular expression: /{source}/{flags}: {}", error.message);
                return Err(self.throw(ErrorKind::Syntax, &message));
            }
        };
        self.burn(size as u64 / 16)?;
        let Some(ledger) = self.regexp_ledger() else { return Ok(()) };
        let (mut generation, spent) = self.generation(ledger);
        let mut spent = spent as usize + size;
        if spent > MOST {
            generation = generation.wrapping_add(1);
            spent = size;
            let pattern = Pattern { source: source.raw(), flags: bits };
            self.regexps.programs.retain(|&key, _| key == pattern);
        }
        let fields = self.heap.slots_mut(ledger);
        if let [first, second, ..] = fields {
            *first = Value::int(generation);
            *second = Value::number(spent as f64);
        }
        if let Some(own) = self.heap.slots_mut(id).get_mut(GENERATION) {
            *own = Value::int(generation);
        }
        Ok(())
    }

    /// The record that payments are kept in.
    fn regexp_ledger(&self) -> Option<SlotsId> {
        static PLACE: LazyLock<Option<u32>> = LazyLock::new(|| shared("regExpCache"));
        let place = (*PLACE)? as usize;
        self.heap.slots_of(self.helpers.get(place)?.as_object()?)
    }

    fn generation(&self, ledger: SlotsId) -> (i32, f64) {
        let fields = self.heap.slots(ledger);
        let generation = fields.first().and_then(|v| v.as_int()).unwrap_or(0);
        (generation, fields.get(1).and_then(|v| v.as_number()).unwrap_or(0.0))
    }

    /// Makes sure that the program is in the table; answers its size.
    fn compiled(&mut self, source: StrId, bits: u8) -> Result<usize, regex::SyntaxError> {
        let pattern = Pattern { source: source.raw(), flags: bits };
        let text = self.heap.str(source);
        if let Some(entry) = self.regexps.programs.get(&pattern)
            && entry.text.as_str() == text
        {
            return Ok(entry.program.size_in_bytes() + text.len());
        }
        let program = regex::compile(text, Flags::from_bits(bits))?;
        let mut own = Text::with_capacity(text.len());
        own.push_text(text);
        let size = program.size_in_bytes() + text.len();
        self.regexps.programs.insert(pattern, Entry { text: own, program });
        Ok(size)
    }

    /// What is needed to run an object's pattern: its program is in the table afterwards.
    pub(super) fn ready_regexp(&mut self, regexp: ObjId) -> Result<Pattern, Exit> {
        let Some((id, source, bits)) = self.regexp_fields(regexp) else { return Err(Exit::Slow) };
        let own = self.heap.slots(id).get(GENERATION).and_then(|v| v.as_int());
        let current = self.regexp_ledger().map(|ledger| self.generation(ledger).0);
        if own != current {
            self.register_regexp(regexp)?;
        } else {
            self.heap.flatten(source)?;
            // It compiled when the object was made.
            let _ = self.compiled(source, bits);
        }
        Ok(Pattern { source: source.raw(), flags: bits })
    }

    /// The program of a pattern that is ready.
    pub(super) fn regexp_program(&self, pattern: Pattern) -> Option<&Program> {
        self.regexps.programs.get(&pattern).map(|entry| &entry.program)
    }

    /// Looks for a match in a flat string; the places of its groups are then in `regexps.places`.
    pub(super) fn match_regexp(&mut self, pattern: Pattern, s: StrId, from: usize) -> Result<bool, Exit> {
        self.burn(1)?;
        let stack = StackBytes((self.limits.heap.bytes / 2).clamp(1 << 20, 64 << 20));
        let State { heap, regexps, fuel, reserve, .. } = self;
        let RegExps { programs, scratch, places, .. } = regexps;
        let Some(entry) = programs.get(&pattern) else { return Err(Exit::Slow) };
        let mut left = regex::Fuel(fuel.saturating_add(*reserve));
        let tools = scratch.get_or_insert_with(|| Scratch::new(stack));
        let found = regex::exec(&entry.program, heap.str(s), from, &mut left, tools);
        *fuel = left.0.saturating_sub(*reserve);
        *reserve = left.0 - *fuel;
        places.clear();
        let result = found.map(|captures| {
            let Some(captures) = captures else { return false };
            places.extend((0..captures.len()).flat_map(|n| match captures.get(n) {
                Some(range) => [range.start as u32, range.end as u32],
                None => [NOWHERE; 2],
            }));
            true
        });
        tools.shrink_to(KEPT_STACK);
        match result {
            Ok(found) => Ok(found),
            Err(regex::ExecError::OutOfFuel) => Err(Exit::Limit(crate::exec::Limit::Instructions)),
            Err(error @ (regex::ExecError::StackLimit | regex::ExecError::TextTooLong)) => {
                Err(self.throw(ErrorKind::Range, &error.to_string()))
            }
        }
    }
}
