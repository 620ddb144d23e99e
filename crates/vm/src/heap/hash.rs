//! The seeded hash behind atoms, property tables, Maps and Sets.
//!
//! Guests choose the keys, so a fixed fast hash could be flooded; the seed is chosen by the host per engine and
//! saved with a snapshot. No order of iteration ever depends on it: every table here keeps insertion order.

use super::Str;

const K0: u64 = 0x9E37_79B9_7F4A_7C15;
const K1: u64 = 0xD6E8_FEB8_6659_FD93;

/// The per-engine key of the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    first: u64,
    second: u64,
}

impl Seed {
    pub(crate) fn new(seed: u64) -> Seed {
        let first = fold(seed ^ K0, K1);
        Seed { first, second: fold(first ^ seed, K0) | 1 }
    }

    /// The hash of one word: ids, numbers, keys.
    #[inline]
    pub(crate) fn word(self, word: u64) -> u32 {
        let h = fold(word ^ self.first, self.second ^ K0);
        (h ^ h >> 32) as u32
    }

    /// The hash of a text. Latin-1 and wide texts are never equal, so they may hash differently.
    pub(crate) fn text(self, text: Str<'_>) -> u32 {
        let h = match text {
            Str::Latin1(bytes) => self.bytes(bytes),
            Str::Wide(units) => self.units(units),
        };
        // Zero means "not computed yet" in the cache.
        ((h ^ h >> 32) as u32).max(1)
    }

    /// The hash of raw bytes (bigint digits).
    pub(crate) fn bytes(self, bytes: &[u8]) -> u64 {
        let mut h = self.first ^ bytes.len() as u64;
        let (chunks, tail) = bytes.as_chunks::<8>();
        for chunk in chunks {
            h = fold(h ^ u64::from_le_bytes(*chunk), self.second);
        }
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        fold(h ^ u64::from_le_bytes(last), self.second ^ K1)
    }

    fn units(self, units: &[u16]) -> u64 {
        let mut h = self.first ^ !(units.len() as u64);
        let (chunks, tail) = units.as_chunks::<4>();
        for &[a, b, c, d] in chunks {
            let word = u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48;
            h = fold(h ^ word, self.second);
        }
        for &unit in tail {
            h = fold(h ^ u64::from(unit), self.second);
        }
        fold(h, self.second ^ K1)
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

/// A hash of bytes that is the same everywhere: for finding damage, not malice.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    // Four at a time, each by itself: a multiplication takes longer to end than to begin.
    let (blocks, tail) = bytes.as_chunks::<32>();
    let mut lanes = [K0, K1, !K0, !K1];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = fold(*lane ^ u64::from_le_bytes(*word), K1);
        }
    }
    let tail = Seed::new(bytes.len() as u64).bytes(tail);
    lanes.iter().fold(tail, |sum, lane| fold(sum ^ lane, K1))
}
