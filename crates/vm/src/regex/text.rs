//! The text a pattern runs over: Latin-1 bytes or UTF-16 units, read through one trait.

use memchr::{memchr, memchr2, memchr3, memmem};

/// One unit of text. There are two kinds, so the matcher exists twice.
pub(super) trait Unit: Copy + PartialEq {
    /// Can two units make one code point?
    const HAS_PAIRS: bool;

    fn unit(self) -> u32;

    /// The code point at `at` and its width, which is zero at the end of the text.
    fn point_at(text: &[Self], at: usize) -> (u32, usize);

    /// The code point that ends before `at`.
    fn point_before(text: &[Self], at: usize) -> (u32, usize);

    fn is_inside_pair(text: &[Self], at: usize) -> bool;

    fn same(text: &[Self], wanted: &[u16]) -> bool {
        text.len() == wanted.len() && text.iter().zip(wanted).all(|(a, &b)| a.unit() == u32::from(b))
    }

    fn find_any(text: &[Self], bytes: [u8; 3], count: u8) -> Option<usize>;

    fn find_run(text: &[Self], wanted: &[u16]) -> Option<usize>;
}

impl Unit for u8 {
    const HAS_PAIRS: bool = false;

    #[inline]
    fn unit(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn point_at(text: &[Self], at: usize) -> (u32, usize) {
        text.get(at).map_or((0, 0), |&unit| (u32::from(unit), 1))
    }

    #[inline]
    fn point_before(text: &[Self], at: usize) -> (u32, usize) {
        at.checked_sub(1).map_or((0, 0), |before| Self::point_at(text, before))
    }

    fn is_inside_pair(_text: &[Self], _at: usize) -> bool {
        false
    }

    fn find_any(text: &[Self], [a, b, c]: [u8; 3], count: u8) -> Option<usize> {
        match count {
            1 => memchr(a, text),
            2 => memchr2(a, b, text),
            _ => memchr3(a, b, c, text),
        }
    }

    fn find_run(text: &[Self], wanted: &[u16]) -> Option<usize> {
        // Long needles are cut: the matcher compares the whole literal anyway.
        let mut bytes = [0u8; 32];
        let len = wanted.len().min(bytes.len());
        for (byte, &unit) in bytes.iter_mut().zip(wanted) {
            *byte = u8::try_from(unit).ok()?;
        }
        // A searcher costs more to build than a short text costs to scan.
        if text.len() < 64 {
            return text.windows(len).position(|window| window == &bytes[..len]);
        }
        memmem::find(text, &bytes[..len])
    }
}

impl Unit for u16 {
    const HAS_PAIRS: bool = true;

    #[inline]
    fn unit(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn point_at(text: &[Self], at: usize) -> (u32, usize) {
        match (text.get(at), text.get(at + 1)) {
            (Some(&high @ 0xd800..=0xdbff), Some(&low @ 0xdc00..=0xdfff)) => (join(high, low), 2),
            (Some(&unit), _) => (u32::from(unit), 1),
            (None, _) => (0, 0),
        }
    }

    #[inline]
    fn point_before(text: &[Self], at: usize) -> (u32, usize) {
        let before = |distance: usize| at.checked_sub(distance).and_then(|at| text.get(at));
        match (before(2), before(1)) {
            (Some(&high @ 0xd800..=0xdbff), Some(&low @ 0xdc00..=0xdfff)) => (join(high, low), 2),
            (_, Some(&unit)) => (u32::from(unit), 1),
            (_, None) => (0, 0),
        }
    }

    fn is_inside_pair(text: &[Self], at: usize) -> bool {
        let high = at.checked_sub(1).and_then(|before| text.get(before));
        matches!((high, text.get(at)), (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)))
    }

    fn find_any(text: &[Self], bytes: [u8; 3], _count: u8) -> Option<usize> {
        let [a, b, c] = bytes.map(u16::from);
        text.iter().position(|&unit| unit == a || unit == b || unit == c)
    }

    fn find_run(text: &[Self], wanted: &[u16]) -> Option<usize> {
        let (&first, rest) = wanted.split_first()?;
        let mut from = 0;
        loop {
            from += text.get(from..)?.iter().position(|&unit| unit == first)? + 1;
            if text.get(from..)?.starts_with(rest) {
                return Some(from - 1);
            }
        }
    }
}

fn join(high: u16, low: u16) -> u32 {
    ((u32::from(high & 0x3ff) << 10) | u32::from(low & 0x3ff)) + 0x1_0000
}
