//! The tree's own text: every identifier and literal once, as UTF-16 code units in the narrowest form.

use super::Atom;

/// A source can be written so that its names collide. A search this long makes the table change its hash function …
const LONG_PROBE: usize = 64;
/// … but not for ever: nobody has names that collide under all of these, and if so the table is slow, not wrong.
const MAX_SEEDS: u32 = 8;

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

impl<'a> From<Text<'a>> for crate::heap::Str<'a> {
    fn from(text: Text<'a>) -> Self {
        match text {
            Text::Latin1(units) => Self::Latin1(units),
            Text::Wide(units) => Self::Wide(units),
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
    /// How often the hash function was changed.
    seed: u32,
    /// Whether the last search was too long.
    crowded: bool,
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
        let hash = hash(self.seed, units.iter().copied());
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
        let hash = hash(self.seed, units.iter().copied());
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
            self.rebuild((self.table.len() * 2).max(64));
        }
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        let mut steps = 0;
        loop {
            let slot = self.table[place];
            if slot == 0 {
                break;
            }
            let index = slot as usize - 1;
            let entry = &self.entries[index];
            if entry.hash == hash && self.text(entry) == wanted {
                return Ok(Atom::from_index(index));
            }
            place = (place + 1) & mask;
            steps += 1;
        }
        if steps > LONG_PROBE {
            self.crowded = true;
        }
        Err(place)
    }

    fn add(&mut self, place: usize, entry: Entry) -> Atom {
        let index = self.entries.len();
        self.entries.push(entry);
        self.table[place] = index as u32 + 1;
        if std::mem::take(&mut self.crowded) && self.seed < MAX_SEEDS {
            self.seed += 1;
            for i in 0..self.entries.len() {
                let entry = self.entries[i];
                self.entries[i].hash = match self.text(&entry) {
                    Text::Latin1(units) => hash(self.seed, units.iter().copied()),
                    Text::Wide(units) => hash(self.seed, units.iter().copied()),
                };
            }
            self.rebuild(self.table.len());
        }
        Atom::from_index(index)
    }

    fn rebuild(&mut self, size: usize) {
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

/// Code units, a few at a time, through a widening multiplication whose halves are folded together.
fn hash<U: Into<u64>>(seed: u32, units: impl Iterator<Item = U>) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = MULTIPLIER.rotate_left(seed) ^ u64::from(seed);
    let mut word = 0u64;
    let mut count = 0u64;
    for unit in units {
        word = word << 16 | unit.into();
        count += 1;
        if count.is_multiple_of(4) {
            state = mix(state, word);
            word = 0;
        }
    }
    state = mix(state, word);
    state = mix(state, count);
    (state ^ state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_stored_once_and_as_narrow_as_it_can_be() {
        let mut texts = Texts::default();
        let name = texts.intern("café");
        assert_eq!(texts.get(name), Text::Latin1(b"caf\xe9"));
        assert_eq!(texts.utf16(&[0x63, 0x61, 0x66, 0xe9]), name);
        let wide = texts.utf16(&[0x61, 0xd800]);
        assert_eq!(texts.get(wide), Text::Wide(&[0x61, 0xd800]));
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn atoms_survive_growth_and_a_change_of_the_hash_function() {
        let mut texts = Texts::default();
        let names: Vec<String> = (0..5000).map(|i| format!("name{i}")).collect();
        let atoms: Vec<Atom> = names.iter().map(|name| texts.intern(name)).collect();
        texts.crowded = true;
        texts.intern("one more");
        assert_eq!(texts.seed, 1);
        for (name, atom) in names.iter().zip(&atoms) {
            assert_eq!(texts.intern(name), *atom);
            assert_eq!(texts.get(*atom).to_string_lossy(), *name);
        }
        assert_eq!(texts.len(), 5001);
    }

    #[test]
    fn names_that_collide_under_one_hash_function_do_not_make_the_table_slow() {
        // Found by search: names whose hashes under the first seed agree in their low bits.
        let colliding: Vec<String> = (0u32..)
            .map(|i| format!("x{i}"))
            .filter(|name| hash(0, name.bytes()) & 0xfff == 7)
            .take(LONG_PROBE * 2)
            .collect();
        let mut texts = Texts::default();
        for name in &colliding {
            texts.intern(name);
        }
        assert!(texts.seed > 0, "the hash function changed");
    }
}
