//! Finding a text in a text, from either end, in linear time whatever the guest made of them.

use memchr::memmem;

use super::Str;

/// Haystacks shorter than this are scanned: preparing a searcher costs more.
const SHORT: usize = 64;

/// The first place at or after `from` where `needle` stands.
///
/// ```
/// use outrigger_vm::text::{Str, search::find};
/// assert_eq!(find(Str::Latin1(b"banana"), Str::Latin1(b"an"), 2), Some(3));
/// ```
pub fn find(text: Str<'_>, needle: Str<'_>, from: usize) -> Option<usize> {
    if let (Str::Latin1(text), Str::Latin1(needle)) = (text, needle)
        && let Some((&first, rest)) = needle.split_first()
    {
        return find_bytes(text, first, rest, needle, from);
    }
    Finder::new(needle).find(text, from)
}

/// Jumps from one first byte to the next as long as few of them deceive, for preparing a searcher costs more than most
/// searches.
fn find_bytes(text: &[u8], first: u8, rest: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    for _ in 0..8 {
        at += memchr::memchr(first, text.get(at..)?)?;
        if text[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
    memmem::find(text.get(at..)?, needle).map(|found| found + at)
}

/// The last place at or before `from` where `needle` stands.
///
/// ```
/// use outrigger_vm::text::{Str, search::find_last};
/// assert_eq!(find_last(Str::Latin1(b"banana"), Str::Latin1(b"an"), 2), Some(1));
/// ```
pub fn find_last(text: Str<'_>, needle: Str<'_>, from: usize) -> Option<usize> {
    let end = from.saturating_add(needle.len()).min(text.len());
    match (text, needle) {
        (Str::Latin1(text), Str::Latin1(needle)) => memmem::rfind(&text[..end], needle),
        (Str::Latin1(_), Str::Wide(_)) => None,
        (Str::Wide(text), needle) => {
            let wanted: Vec<u16> = needle.to_utf16().into_iter().rev().collect();
            let found = prefix_search(text[..end].iter().rev().copied(), &wanted, &borders(&wanted))?;
            // Counted from the end, to the start of what was found there.
            Some(end - found - wanted.len())
        }
    }
}

/// Whether `needle` stands at `at`.
pub fn stands_at(text: Str<'_>, needle: Str<'_>, at: usize) -> bool {
    let Some(end) = at.checked_add(needle.len()).filter(|&end| end <= text.len()) else { return false };
    match (text.slice(at, end), needle) {
        (Str::Latin1(a), Str::Latin1(b)) => a == b,
        (Str::Wide(a), Str::Wide(b)) => a == b,
        (a, b) => a.units().eq(b.units()),
    }
}

/// A needle prepared for many searches.
#[derive(Debug)]
pub struct Finder<'n> {
    needle: Needle<'n>,
}

#[derive(Debug)]
enum Needle<'n> {
    Empty,
    Byte(u8),
    Latin1 { bytes: &'n [u8], finder: Option<Box<memmem::Finder<'n>>>, wide: Option<Wide> },
    Wide(Wide),
}

#[derive(Debug)]
struct Wide {
    units: Vec<u16>,
    borders: Vec<u32>,
}

impl Wide {
    fn new(units: Vec<u16>) -> Wide {
        let borders = borders(&units);
        Wide { units, borders }
    }

    fn find(&self, text: &[u16], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        prefix_search(rest.iter().copied(), &self.units, &self.borders).map(|at| at + from)
    }
}

impl<'n> Finder<'n> {
    /// Prepares nothing yet: which preparation pays depends on the texts.
    pub fn new(needle: Str<'n>) -> Finder<'n> {
        let needle = match needle {
            Str::Latin1([]) | Str::Wide([]) => Needle::Empty,
            Str::Latin1(&[byte]) => Needle::Byte(byte),
            Str::Latin1(bytes) => Needle::Latin1 { bytes, finder: None, wide: None },
            Str::Wide(units) => Needle::Wide(Wide::new(units.to_vec())),
        };
        Finder { needle }
    }

    /// The first place at or after `from`.
    pub fn find(&mut self, text: Str<'_>, from: usize) -> Option<usize> {
        match (&mut self.needle, text) {
            (Needle::Empty, _) => (from <= text.len()).then_some(from),
            (Needle::Byte(byte), Str::Latin1(bytes)) => {
                memchr::memchr(*byte, bytes.get(from..)?).map(|at| at + from)
            }
            (Needle::Byte(byte), Str::Wide(units)) => {
                let unit = u16::from(*byte);
                units.get(from..)?.iter().position(|&u| u == unit).map(|at| at + from)
            }
            (Needle::Latin1 { bytes, finder, .. }, Str::Latin1(text)) => {
                let rest = text.get(from..)?;
                let found = if rest.len() < SHORT && finder.is_none() {
                    rest.windows(bytes.len()).position(|window| window == *bytes)
                } else {
                    let bytes: &'n [u8] = bytes;
                    finder.get_or_insert_with(|| Box::new(memmem::Finder::new(bytes))).find(rest)
                };
                found.map(|at| at + from)
            }
            (Needle::Latin1 { bytes, wide, .. }, Str::Wide(text)) => wide
                .get_or_insert_with(|| Wide::new(bytes.iter().map(|&b| u16::from(b)).collect()))
                .find(text, from),
            (Needle::Wide(_), Str::Latin1(_)) => None,
            (Needle::Wide(wide), Str::Wide(text)) => wide.find(text, from),
        }
    }
}

/// For each prefix of the needle, the length of its longest proper border.
fn borders(needle: &[u16]) -> Vec<u32> {
    let mut table = vec![0u32; needle.len()];
    let mut k = 0usize;
    for i in 1..needle.len() {
        while k > 0 && needle[k] != needle[i] {
            k = table[k - 1] as usize;
        }
        if needle[k] == needle[i] {
            k += 1;
        }
        table[i] = k as u32;
    }
    table
}

/// Knuth, Morris and Pratt.
fn prefix_search(text: impl Iterator<Item = u16>, needle: &[u16], borders: &[u32]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    let mut k = 0usize;
    for (i, unit) in text.enumerate() {
        while k > 0 && needle[k] != unit {
            k = borders[k - 1] as usize;
        }
        if needle[k] == unit {
            k += 1;
        }
        if k == needle.len() {
            return Some(i + 1 - k);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_finds_the_same_places_from_both_ends() {
        let text = "abcabcabdabcabcab";
        let narrow: Vec<u8> = text.bytes().collect();
        let mut wide: Vec<u16> = text.encode_utf16().collect();
        wide.push(0x3C0);
        for needle in ["a", "ab", "abcab", "abcabd", "x", "bcabcab", text] {
            let units: Vec<u16> = needle.encode_utf16().collect();
            let needle = Str::Latin1(needle.as_bytes());
            for from in 0..=text.len() {
                let first = (from..text.len()).find(|&at| narrow[at..].starts_with(&units_to_bytes(&units)));
                assert_eq!(find(Str::Latin1(&narrow), needle, from), first, "{needle:?} from {from}");
                assert_eq!(find(Str::Wide(&wide), needle, from), first, "{needle:?} from {from}, wide");
                let last = (0..=from).rev().find(|&at| narrow[at..].starts_with(&units_to_bytes(&units)));
                assert_eq!(find_last(Str::Latin1(&narrow), needle, from), last);
                assert_eq!(find_last(Str::Wide(&wide), needle, from), last);
            }
        }
        assert_eq!(find(Str::Wide(&wide), Str::Wide(&[0x3C0]), 3), Some(17));
        assert_eq!(find(Str::Latin1(&narrow), Str::Wide(&[0x3C0]), 0), None);
        assert_eq!(find_last(Str::Wide(&wide), Str::EMPTY, 99), Some(18));
    }

    fn units_to_bytes(units: &[u16]) -> Vec<u8> {
        units.iter().map(|&u| u as u8).collect()
    }
}
