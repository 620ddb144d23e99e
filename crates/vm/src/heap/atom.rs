//! The interner: equal names are one string, so that property keys compare by id. Plus symbols.
//!
//! Atoms that nothing refers to any more are collected like other strings, so a guest that makes up keys pays only
//! for those it keeps. The well-known names have fixed ids and are never collected.

use super::arena::Record;
use super::string::{Repr, Role, StringRecord};
use super::{AllocError, Heap, Key, KeyKind, Str, StrId, SymId, atoms, symbols};
use crate::value::Value;

const EMPTY: u32 = u32::MAX;
/// What an entry of the `Symbol.for` registry costs.
pub(super) const REGISTRY_ENTRY: usize = 24;

/// The interner's table: open addressing over string ids, at most half full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    pub(super) table: Vec<u32>,
    pub(super) used: usize,
}

impl Interner {
    pub(crate) fn bytes(&self) -> usize {
        self.table.len() * 4
    }

    /// Becomes the image's again, whose strings end at `line`: its names were there before all others, so that without those
    /// every name is where it was.
    pub(super) fn forget_own(&mut self, line: u32, image: &Interner) {
        let mut left = 0u32;
        if self.table.len() == image.table.len() {
            for entry in &mut self.table {
                let theirs = *entry < line;
                left += u32::from(theirs);
                *entry = if theirs { *entry } else { EMPTY };
            }
        }
        if left as usize != image.used {
            self.table.clone_from(&image.table);
        }
        self.used = image.used;
    }

    fn growth(&self) -> usize {
        if self.used * 2 < self.table.len() { 0 } else { (self.table.len() * 2).max(1024) }
    }
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Made by `Symbol()`.
    Unique,
    /// Made by `Symbol.for()`.
    Registered,
    /// One of the specification's own, like `Symbol.iterator`.
    WellKnown,
    /// A private name (`#x`): invisible to reflection.
    Private,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolRecord {
    pub(crate) description: Option<StrId>,
    /// `None` for a free entry.
    pub(crate) kind: Option<SymbolKind>,
}

impl Record for SymbolRecord {
    fn vacant() -> Self {
        SymbolRecord { description: None, kind: None }
    }
    fn is_vacant(&self) -> bool {
        self.kind.is_none()
    }
    fn bytes(&self) -> usize {
        size_of::<SymbolRecord>()
    }
}

impl Heap {
    /// The atom that says the same as this string.
    pub fn intern(&mut self, id: StrId) -> Result<StrId, AllocError> {
        if self.strings[id].role != Role::Plain {
            return Ok(id);
        }
        self.flatten(id)?;
        let hash = self.string_hash(id);
        if let Some(atom) = self.find_atom(hash, self.str(id)) {
            return Ok(atom);
        }
        self.add_atom(hash, id)?;
        Ok(id)
    }

    /// The atom of a text.
    pub fn intern_text(&mut self, text: Str<'_>) -> Result<StrId, AllocError> {
        let hash = self.seed.text(text);
        if let Some(atom) = self.find_atom(hash, text) {
            return Ok(atom);
        }
        self.reserve_atom()?;
        let id = self.new_str(text)?;
        self.strings[id].hash = hash;
        self.add_atom(hash, id)?;
        Ok(id)
    }

    /// The atom of a Rust text.
    pub fn intern_str(&mut self, text: &str) -> Result<StrId, AllocError> {
        if text.is_ascii() {
            return self.intern_text(Str::Latin1(text.as_bytes()));
        }
        let id = self.new_string(text)?;
        self.intern(id)
    }

    /// The property key that a string spells: a small array index becomes an index key, anything else an atom.
    pub fn key_of_string(&mut self, id: StrId) -> Result<Key, AllocError> {
        match self.strings[id].role {
            Role::Atom | Role::BigIndex => {
                // Digits are atoms too (one-character strings are made at start), so an index may hide behind one.
                if let Some(key) = self.str(id).array_index().and_then(Key::index) {
                    return Ok(key);
                }
                Ok(Key::atom(id))
            }
            Role::Plain => {
                self.flatten(id)?;
                if let Some(key) = self.str(id).array_index().and_then(Key::index) {
                    return Ok(key);
                }
                Ok(Key::atom(self.intern(id)?))
            }
        }
    }

    /// The property key of a text.
    pub fn key_of_text(&mut self, text: Str<'_>) -> Result<Key, AllocError> {
        if let Some(key) = text.array_index().and_then(Key::index) {
            return Ok(key);
        }
        Ok(Key::atom(self.intern_text(text)?))
    }

    /// The property key of an ASCII name, if anything in this heap has that name.
    pub(crate) fn known_key(&self, name: &str) -> Option<Key> {
        let text = Str::Latin1(name.as_bytes());
        self.find_atom(self.seed.text(text), text).map(Key::atom)
    }

    /// The property key of a value that is already a primitive key: a string, a symbol or a non-negative int.
    /// `None` means the caller must convert the value first (ToPropertyKey).
    #[inline]
    pub fn key_of_value(&mut self, value: Value) -> Result<Option<Key>, AllocError> {
        if let Some(i) = value.as_int() {
            return Ok(u32::try_from(i).ok().and_then(Key::index));
        }
        if let Some(id) = value.as_string() {
            return self.key_of_string(id).map(Some);
        }
        Ok(value.as_symbol().map(Key::symbol))
    }

    /// The key as a guest value: a string or a symbol. Index keys make a new string.
    pub fn key_to_value(&mut self, key: Key) -> Result<Value, AllocError> {
        match key.kind() {
            KeyKind::Atom(id) => Ok(Value::string(id)),
            KeyKind::Symbol(id) => Ok(Value::symbol(id)),
            KeyKind::Index(index) => {
                let mut digits = [0; 10];
                let mut at = digits.len();
                let mut rest = index;
                loop {
                    at -= 1;
                    digits[at] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                    if rest == 0 {
                        break;
                    }
                }
                self.new_latin1(&digits[at..]).map(Value::string)
            }
        }
    }

    /// The array index a key stands for, the large ones that are atoms included.
    #[inline]
    pub fn array_index(&self, key: Key) -> Option<u32> {
        match key.kind() {
            KeyKind::Index(index) => Some(index),
            KeyKind::Atom(id) if self.strings[id].role == Role::BigIndex => self.str(id).array_index(),
            KeyKind::Atom(_) | KeyKind::Symbol(_) => None,
        }
    }

    /// The key of any array index.
    pub fn key_of_index(&mut self, index: u32) -> Result<Key, AllocError> {
        if let Some(key) = Key::index(index) {
            return Ok(key);
        }
        let text = index.to_string();
        self.intern_text(Str::Latin1(text.as_bytes())).map(Key::atom)
    }

    /// A new symbol.
    pub fn new_symbol(&mut self, kind: SymbolKind, description: Option<StrId>) -> Result<SymId, AllocError> {
        self.account.charge(size_of::<SymbolRecord>())?;
        Ok(self.symbols.insert(SymbolRecord { description, kind: Some(kind) }))
    }

    /// The symbol's description.
    pub fn symbol_description(&self, id: SymId) -> Option<StrId> {
        self.symbols[id].description
    }

    /// What kind of symbol it is.
    #[inline]
    pub fn symbol_kind(&self, id: SymId) -> SymbolKind {
        self.symbols[id].kind.unwrap_or(SymbolKind::Unique)
    }

    /// Is the key a private name?
    #[inline]
    pub fn is_private(&self, key: Key) -> bool {
        key.as_symbol().is_some_and(|id| self.symbol_kind(id) == SymbolKind::Private)
    }

    /// `Symbol.for(key)`: the registered symbol of a string. Registered symbols are never collected.
    pub fn symbol_for(&mut self, key: StrId) -> Result<SymId, AllocError> {
        let atom = self.intern(key)?;
        if let Some(&symbol) = self.registry.get(&atom) {
            return Ok(symbol);
        }
        self.account.grow_outside(REGISTRY_ENTRY)?;
        let symbol = self.new_symbol(SymbolKind::Registered, Some(atom));
        match symbol {
            Ok(symbol) => {
                self.registry.insert(atom, symbol);
            }
            Err(_) => self.account.shrink_outside(REGISTRY_ENTRY),
        }
        symbol
    }

    /// The engine's own names and symbols, with the fixed ids of [`atoms`] and [`symbols`]. Not charged here.
    pub(crate) fn add_well_known(&mut self) {
        self.add_fixed_atom(&[]);
        for byte in 0..=u8::MAX {
            self.add_fixed_atom(&[byte]);
        }
        for text in atoms::TEXTS {
            self.add_fixed_atom(text.as_bytes());
        }
        for text in symbols::TEXTS {
            let description = Some(self.add_fixed_atom(text.as_bytes()));
            self.symbols.insert(SymbolRecord { description, kind: Some(SymbolKind::WellKnown) });
        }
        self.rebuild_interner(1024);
    }

    fn add_fixed_atom(&mut self, text: &[u8]) -> StrId {
        let hash = self.seed.text(Str::Latin1(text));
        self.strings.insert(StringRecord { repr: Repr::of_latin1(text), hash, role: Role::Atom })
    }

    pub(super) fn find_atom(&self, hash: u32, text: Str<'_>) -> Option<StrId> {
        let table = &self.interner.table;
        let mask = table.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        while let Some(&raw) = table.get(at) {
            if raw == EMPTY {
                return None;
            }
            let id = StrId::from_raw(raw);
            if self.strings[id].hash == hash && self.str(id) == text {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn reserve_atom(&mut self) -> Result<(), AllocError> {
        let new = self.interner.growth();
        if new > 0 {
            self.account.grow((new - self.interner.table.len()) * 4)?;
            self.rebuild_interner(new);
        }
        Ok(())
    }

    fn add_atom(&mut self, hash: u32, id: StrId) -> Result<(), AllocError> {
        self.reserve_atom()?;
        let big = self.str(id).array_index().is_some_and(|i| i > Key::MAX_INDEX);
        self.strings[id].role = if big { Role::BigIndex } else { Role::Atom };
        insert(&mut self.interner.table, hash, id.raw());
        self.interner.used += 1;
        Ok(())
    }

    /// Rebuilds the table from the atoms that exist, at the given size.
    pub(crate) fn rebuild_interner(&mut self, size: usize) {
        self.rebuild_interner_of(size, usize::MAX);
    }

    /// Rebuilds the table from the atoms among the first so many strings.
    pub(super) fn rebuild_interner_of(&mut self, size: usize, strings: usize) {
        let mut table = vec![EMPTY; size];
        let mut used = 0;
        for (id, record) in self.strings.iter().take_while(|(id, _)| (id.raw() as usize) < strings) {
            if record.role != Role::Plain {
                insert(&mut table, record.hash, id.raw());
                used += 1;
            }
        }
        self.interner = Interner { table, used };
    }

    /// After a sweep: forgets the atoms that died, and gives memory back when most did.
    pub(crate) fn sweep_interner(&mut self, dead: usize) {
        let live = self.interner.used.saturating_sub(dead);
        let size = (live * 4).next_power_of_two().max(1024).min(self.interner.table.len());
        self.rebuild_interner(size);
    }
}

pub(super) fn insert(table: &mut [u32], hash: u32, raw: u32) {
    let mask = table.len().wrapping_sub(1);
    let mut at = hash as usize & mask;
    // The table is at most half full, so an empty slot comes.
    while table.get(at).is_some_and(|&slot| slot != EMPTY) {
        at = (at + 1) & mask;
    }
    if let Some(slot) = table.get_mut(at) {
        *slot = raw;
    }
}
