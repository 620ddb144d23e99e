//! The tree's own text: every identifier and literal once, as UTF-16 code units in the narrowest form.

use rustc_hash::FxHasher;
use std::hash::Hasher;

use super::Atom;

/// Borrowed text: Latin-1 exactly if all code units are below 256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'a> {
    /// One byte a code unit.
    Latin1(&'a [u8]),
    /// Some code unit is 256 or more; surrogates may be lone.
    Wide(&'a [u16]),
}

impl Text<'_> {
    /// Number of UTF-16 code units.
    #[must_use]
    pub const fn len(self) -> usize {
        match self {
            Self::Latin1(units) => units.len(),
            Self::Wide(units) => units.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// For messages: lone surrogates become U+FFFD.
    #[must_use]
    pub fn to_string_lossy(self) -> String {
        match self {
            Self::Latin1(units) => units.iter().map(|&unit| char::from(unit)).collect(),
            Self::Wide(units) => String::from_utf16_lossy(units),
        }
    }
}

/// The interner. Atoms are numbered in the order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    latin1: Vec<u8>,
    wide: Vec<u16>,
    entries: Vec<Entry>,
    /// Open addressing; zero is empty, otherwise atom index + 1. The length is a power of two or zero.
    table: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    len: u32,
    hash: u32,
    wide: bool,
}

impl Texts {
    /// The atom for ASCII or other text whose characters are all below 256, given as bytes.
    pub fn latin1(&mut self, units: &[u8]) -> Atom {
        let hash = hash_latin1(units);
        let place = match self.find(hash, Text::Latin1(units)) {
            Ok(atom) => return atom,
            Err(place) => place,
        };
        let start = self.latin1.len() as u32;
        self.latin1.extend_from_slice(units);
        self.add(place, Entry { start, len: units.len() as u32, hash, wide: false })
    }

    /// The atom for any code units.
    pub fn utf16(&mut self, units: &[u16]) -> Atom {
        if units.iter().all(|&unit| unit < 256) {
            let narrow: Vec<u8> = units.iter().map(|&unit| unit as u8).collect();
            return self.latin1(&narrow);
        }
        let hash = hash_wide(units);
        let place = match self.find(hash, Text::Wide(units)) {
            Ok(atom) => return atom,
            Err(place) => place,
        };
        let start = self.wide.len() as u32;
        self.wide.extend_from_slice(units);
        self.add(place, Entry { start, len: units.len() as u32, hash, wide: true })
    }

    /// The atom for a string.
    pub fn intern(&mut self, text: &str) -> Atom {
        if text.is_ascii() {
            return self.latin1(text.as_bytes());
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        self.utf16(&units)
    }

    /// What an atom stands for.
    #[must_use]
    pub fn get(&self, atom: Atom) -> Text<'_> {
        self.entries.get(atom.index()).map_or(Text::Latin1(&[]), |entry| self.text(entry))
    }

    /// How many atoms there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn text(&self, entry: &Entry) -> Text<'_> {
        let range = entry.start as usize..(entry.start + entry.len) as usize;
        if entry.wide {
            Text::Wide(self.wide.get(range).unwrap_or_default())
        } else {
            Text::Latin1(self.latin1.get(range).unwrap_or_default())
        }
    }

    fn find(&mut self, hash: u32, wanted: Text<'_>) -> Result<Atom, usize> {
        if (self.entries.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.table[place];
            if slot == 0 {
                return Err(place);
            }
            let index = slot as usize - 1;
            let entry = &self.entries[index];
            if entry.hash == hash && self.text(entry) == wanted {
                return Ok(Atom::from_index(index));
            }
            place = (place + 1) & mask;
        }
    }

    fn add(&mut self, place: usize, entry: Entry) -> Atom {
        let index = self.entries.len();
        self.entries.push(entry);
        self.table[place] = index as u32 + 1;
        Atom::from_index(index)
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(64);
        let mask = size - 1;
        let mut table = vec![0; size];
        for (index, entry) in self.entries.iter().enumerate() {
            let mut place = entry.hash as usize & mask;
            while table[place] != 0 {
                place = (place + 1) & mask;
            }
            table[place] = index as u32 + 1;
        }
        self.table = table;
    }
}

fn hash_latin1(units: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(units);
    fold(hasher.finish())
}

fn hash_wide(units: &[u16]) -> u32 {
    let mut hasher = FxHasher::default();
    for &unit in units {
        hasher.write_u16(unit);
    }
    fold(hasher.finish())
}

fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}
