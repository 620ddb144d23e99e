//! Property keys in 32 bits: an array index, an interned string or a symbol.

use super::{StrId, SymId};
use std::fmt;

const NAME: u32 = 1 << 31;
const SYMBOL: u32 = 1 << 30;

/// A property key. Equal keys have equal bits, because strings are interned and small indices never are strings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u32);

/// A key taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// An array index below 2^31.
    Index(u32),
    /// An interned string (which, from 2^31 on, may still spell an array index).
    Atom(StrId),
    /// A symbol or a private name.
    Symbol(SymId),
}

impl Key {
    /// The largest index that has this form; larger ones are atoms.
    pub const MAX_INDEX: u32 = NAME - 1;
    /// A key that no property has: the mark of a deleted entry.
    pub(crate) const DELETED: Key = Key(u32::MAX);

    /// The key of an array index, if it is small enough to have one of its own.
    #[inline]
    pub const fn index(index: u32) -> Option<Key> {
        if index <= Self::MAX_INDEX { Some(Key(index)) } else { None }
    }

    /// The key of an atom. The string must come from the interner: use [`super::Heap::key_of_string`] otherwise.
    #[inline]
    pub const fn atom(id: StrId) -> Key {
        Key(NAME | id.raw())
    }

    /// The key of a symbol.
    #[inline]
    pub const fn symbol(id: SymId) -> Key {
        Key(NAME | SYMBOL | id.raw())
    }

    /// The index, if it is one.
    #[inline]
    pub const fn as_index(self) -> Option<u32> {
        if self.0 & NAME == 0 { Some(self.0) } else { None }
    }

    /// The atom, if it is one.
    #[inline]
    pub const fn as_atom(self) -> Option<StrId> {
        if self.0 & (NAME | SYMBOL) == NAME { Some(StrId::from_raw(self.0 & !NAME)) } else { None }
    }

    /// The symbol, if it is one.
    #[inline]
    pub const fn as_symbol(self) -> Option<SymId> {
        if self.0 & (NAME | SYMBOL) == NAME | SYMBOL {
            Some(SymId::from_raw(self.0 & !(NAME | SYMBOL)))
        } else {
            None
        }
    }

    /// Takes the key apart.
    #[inline]
    pub const fn kind(self) -> KeyKind {
        if self.0 & NAME == 0 {
            KeyKind::Index(self.0)
        } else if self.0 & SYMBOL == 0 {
            KeyKind::Atom(StrId::from_raw(self.0 & !NAME))
        } else {
            KeyKind::Symbol(SymId::from_raw(self.0 & !(NAME | SYMBOL)))
        }
    }

    /// The bits, for instructions and snapshots.
    #[inline]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// The key with these bits.
    #[inline]
    pub const fn from_raw(raw: u32) -> Key {
        Key(raw)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}
