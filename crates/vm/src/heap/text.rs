//! Borrowed guest text: UTF-16 code units, stored as Latin-1 bytes whenever every unit is below 256.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A piece of guest text. The rule "Latin-1 exactly when all units are below 256" holds for every string in the heap,
/// so texts of different variants are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Str<'a> {
    /// Units below 256, one byte each.
    Latin1(&'a [u8]),
    /// UTF-16 units, at least one of them 256 or above.
    Wide(&'a [u16]),
}

impl<'a> Str<'a> {
    /// The empty text.
    pub const EMPTY: Str<'static> = Str::Latin1(&[]);

    /// How many code units.
    #[inline]
    pub const fn len(self) -> usize {
        match self {
            Str::Latin1(bytes) => bytes.len(),
            Str::Wide(units) => units.len(),
        }
    }

    /// Is there nothing in it?
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The code unit at an index.
    #[inline]
    pub fn get(self, index: usize) -> Option<u16> {
        match self {
            Str::Latin1(bytes) => bytes.get(index).map(|&b| u16::from(b)),
            Str::Wide(units) => units.get(index).copied(),
        }
    }

    /// The part from `start` to `end`, both clamped. A part of a wide text may break the variant rule: it is for
    /// reading, [`super::Heap::substring`] makes proper strings.
    pub fn slice(self, start: usize, end: usize) -> Str<'a> {
        let end = end.min(self.len());
        let start = start.min(end);
        match self {
            Str::Latin1(bytes) => Str::Latin1(&bytes[start..end]),
            Str::Wide(units) => Str::Wide(&units[start..end]),
        }
    }

    /// The code units in order.
    pub fn units(self) -> Units<'a> {
        match self {
            Str::Latin1(bytes) => Units::Latin1(bytes.iter()),
            Str::Wide(units) => Units::Wide(units.iter()),
        }
    }

    /// The order of `<` on strings: by code unit.
    pub fn compare(self, other: Str<'_>) -> Ordering {
        match (self, other) {
            (Str::Latin1(a), Str::Latin1(b)) => a.cmp(b),
            (Str::Wide(a), Str::Wide(b)) => a.cmp(b),
            (Str::Latin1(_), Str::Wide(_)) | (Str::Wide(_), Str::Latin1(_)) => {
                self.units().cmp(other.units())
            }
        }
    }

    /// Lossless UTF-16.
    pub fn to_utf16(self) -> Vec<u16> {
        self.units().collect()
    }

    /// UTF-8; unpaired surrogates become U+FFFD.
    pub fn to_string_lossy(self) -> Cow<'a, str> {
        match self {
            Str::Latin1(bytes) if bytes.is_ascii() => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => Cow::Borrowed(""),
            },
            Str::Latin1(bytes) => Cow::Owned(bytes.iter().map(|&b| char::from(b)).collect()),
            Str::Wide(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }

    /// Does it say exactly this ASCII text?
    pub fn is_ascii(self, text: &str) -> bool {
        matches!(self, Str::Latin1(bytes) if bytes == text.as_bytes())
    }

    /// The array index that this text spells canonically ("0", "17", no leading zeros, at most 2^32 - 2).
    pub fn array_index(self) -> Option<u32> {
        let Str::Latin1(bytes) = self else { return None };
        let (&first, rest) = bytes.split_first()?;
        if !first.is_ascii_digit() || bytes.len() > 10 || (first == b'0' && !rest.is_empty()) {
            return None;
        }
        let mut n = 0u64;
        for &b in bytes {
            if !b.is_ascii_digit() {
                return None;
            }
            n = n * 10 + u64::from(b - b'0');
        }
        u32::try_from(n).ok().filter(|&n| n != u32::MAX)
    }
}

/// The code units of a [`Str`].
#[derive(Clone, Debug)]
pub enum Units<'a> {
    /// Over bytes.
    Latin1(std::slice::Iter<'a, u8>),
    /// Over units.
    Wide(std::slice::Iter<'a, u16>),
}

impl Iterator for Units<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        match self {
            Units::Latin1(bytes) => bytes.next().map(|&b| u16::from(b)),
            Units::Wide(units) => units.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Units::Latin1(bytes) => bytes.size_hint(),
            Units::Wide(units) => units.size_hint(),
        }
    }
}

impl ExactSizeIterator for Units<'_> {}
