//! How everything in a blob is spelled: varints, counted lists, and a reader that trusts nothing.
//!
//! A reader has a budget of memory: whatever is allocated on behalf of the blob is paid for first. A list is never longer than
//! the bytes that are left could describe, unless it is one that goes on in equal steps, which only the budget bounds. So
//! a hostile length is an error before it is an allocation.

/// What is wrong with a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It does not describe anything this engine could have written.
    Invalid(&'static str),
    /// It asks for more memory than the limits allow.
    TooLarge,
}

/// Whether reading went well.
pub(crate) type Read<T> = Result<T, Flaw>;

/// Answers the flaw unless the condition holds.
#[inline]
pub(crate) fn require(holds: bool, what: &'static str) -> Read<()> {
    if holds { Ok(()) } else { Err(Flaw::Invalid(what)) }
}

/// Bytes under construction.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Seven bits a byte, the low ones first.
    #[inline]
    pub(crate) fn uint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.out.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.out.push(n as u8);
    }

    pub(crate) fn count(&mut self, n: usize) {
        self.uint(n as u64);
    }

    /// A signed number: small ones of either sign are short.
    pub(crate) fn int(&mut self, n: i64) {
        self.uint((n << 1 ^ n >> 63) as u64);
    }

    /// An id, as its distance from where the new ones begin.
    pub(crate) fn id(&mut self, id: u32, base: u32) {
        self.int(i64::from(id) - i64::from(base));
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.out.extend_from_slice(&word.to_le_bytes());
    }

    /// Room for so many bytes more.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// The first few of some bytes. Copying a fixed number and taking back what is too much is the fastest way.
    #[inline]
    pub(crate) fn short<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        let end = self.out.len() + len.min(N);
        self.out.extend_from_slice(bytes);
        self.out.truncate(end);
    }

    /// Many short things at once: `spell` writes up to `N` bytes for each, and answers how many of them count.
    #[inline]
    pub(crate) fn shorts<T, const N: usize>(
        &mut self,
        things: &[T],
        mut spell: impl FnMut(&T, &mut [u8; N]) -> usize,
    ) {
        // Where the next one goes is only known here, and not to memory, which would take longer to tell.
        for some in things.chunks(64) {
            let mut end = self.out.len();
            self.out.resize(end + some.len() * N, 0);
            for thing in some {
                // There is room for all of them.
                let Some(place) = self.out.get_mut(end..).and_then(|room| room.first_chunk_mut()) else {
                    break;
                };
                end += spell(thing, place).min(N);
            }
            self.out.truncate(end);
        }
    }

    /// Bytes with their number in front.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    /// A number that may be missing.
    pub(crate) fn option(&mut self, n: Option<u32>) {
        self.uint(n.map_or(0, |n| u64::from(n) + 1));
    }
}

/// Bytes to be understood.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes of memory that may still be allocated.
    budget: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], budget: usize) -> Reader<'a> {
        Reader { rest: bytes, budget }
    }

    /// Pays for memory.
    pub(crate) fn spend(&mut self, bytes: usize) -> Read<()> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Flaw::TooLarge)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Read<u8> {
        let (&first, rest) = self.rest.split_first().ok_or(Flaw::Invalid("it ends too early"))?;
        self.rest = rest;
        Ok(first)
    }

    /// The next byte, not yet taken.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    #[inline]
    pub(crate) fn uint(&mut self) -> Read<u64> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_uint(),
        }
    }

    fn long_uint(&mut self) -> Read<u64> {
        // Most numbers end within a word: its bytes are looked at together.
        if let Some(word) = self.rest.first_chunk::<8>().map(|word| u64::from_le_bytes(*word)) {
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let len = ends.trailing_zeros() as usize / 8 + 1;
                let used = word & u64::MAX >> (64 - 8 * len);
                require(used >> (8 * (len - 1)) != 0 || len == 1, TOO_LONG)?;
                self.rest = &self.rest[len..];
                return Ok(sevens(used));
            }
        }
        self.longest_uint()
    }

    #[inline(never)]
    fn longest_uint(&mut self) -> Read<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // Only one spelling of each number: equal states have equal bytes.
            require(bits << shift >> shift == bits && (byte != 0 || shift == 0), TOO_LONG)?;
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Flaw::Invalid(TOO_LONG))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Read<u32> {
        u32::try_from(self.uint()?).map_err(|_| Flaw::Invalid("a number is too large"))
    }

    pub(crate) fn u16(&mut self) -> Read<u16> {
        u16::try_from(self.uint()?).map_err(|_| Flaw::Invalid("a number is too large"))
    }

    #[inline]
    pub(crate) fn int(&mut self) -> Read<i64> {
        let n = self.uint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Read<i32> {
        i32::try_from(self.int()?).map_err(|_| Flaw::Invalid("a number is too large"))
    }

    #[inline]
    pub(crate) fn id(&mut self, base: u32) -> Read<u32> {
        let id = self.int()?.checked_add(i64::from(base));
        id.and_then(|id| u32::try_from(id).ok()).ok_or(Flaw::Invalid("an id is out of range"))
    }

    pub(crate) fn word(&mut self) -> Read<u64> {
        let (word, rest) = self.rest.split_first_chunk::<8>().ok_or(Flaw::Invalid("it ends too early"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// The length of a list whose items take at least a byte each here, and `size` bytes each in memory. Pays for them.
    pub(crate) fn count(&mut self, size: usize) -> Read<usize> {
        let n = self.uint()?;
        let n = usize::try_from(n).ok().filter(|&n| n <= self.rest.len());
        let n = n.ok_or(Flaw::Invalid("a list is longer than what is left"))?;
        self.spend(n.saturating_mul(size))?;
        Ok(n)
    }

    /// So many bytes.
    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Read<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(n).ok_or(Flaw::Invalid("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The leading bytes of a big-endian word; the others are zero.
    #[inline]
    pub(crate) fn leading(&mut self, len: usize) -> Read<u64> {
        match self.rest.first_chunk::<8>() {
            // Looking at more than is taken is the fastest way.
            Some(ahead) if (1..=8).contains(&len) => {
                self.rest = &self.rest[len..];
                Ok(u64::from_be_bytes(*ahead) & u64::MAX << (64 - 8 * len))
            }
            _ => {
                let mut bytes = [0; 8];
                let few = bytes.get_mut(..len).ok_or(Flaw::Invalid("it ends too early"))?;
                few.copy_from_slice(self.take(len)?);
                Ok(u64::from_be_bytes(bytes))
            }
        }
    }

    /// What is left, not yet taken.
    #[inline]
    pub(crate) fn ahead(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes with their number in front. Paid for by whoever keeps them.
    pub(crate) fn text(&mut self) -> Read<&'a [u8]> {
        let n = self.count(0)?;
        self.take(n)
    }

    /// The length of a list whose items may take less than a byte each here, and take `size` bytes each in memory. Pays for
    /// them, so that it is the budget that bounds it.
    pub(crate) fn paid_count(&mut self, size: usize) -> Read<usize> {
        let n = usize::try_from(self.uint()?).map_err(|_| Flaw::TooLarge)?;
        self.spend(n.saturating_mul(size))?;
        Ok(n)
    }

    pub(crate) fn flag(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Flaw::Invalid("a flag is neither set nor clear")),
        }
    }

    pub(crate) fn option(&mut self) -> Read<Option<u32>> {
        match self.uint()? {
            0 => Ok(None),
            n => u32::try_from(n - 1).map(Some).map_err(|_| Flaw::Invalid("a number is too large")),
        }
    }

    /// What may still be spent.
    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// Reads something else out of the same purse.
    pub(crate) fn within<'b, T>(
        &mut self,
        bytes: &'b [u8],
        read: impl FnOnce(&mut Reader<'b>) -> Read<T>,
    ) -> Read<T> {
        let mut inner = Reader { rest: bytes, budget: self.budget };
        let read = read(&mut inner);
        self.budget = inner.budget;
        read
    }

    /// Everything must have been used.
    pub(crate) fn end(&self) -> Read<()> {
        require(self.rest.is_empty(), "there is something after its end")
    }
}

/// What [`Writer::uint`] writes for a number of up to fifty-six bits, as a little-endian word, and how many bytes of it.
#[inline]
pub(crate) fn varint(mut n: u64) -> (u64, usize) {
    let (mut word, mut shift) = (0, 0);
    while n >= 0x80 {
        word |= (n & 0x7F | 0x80) << shift;
        n >>= 7;
        shift += 8;
    }
    (word | n << shift, shift / 8 + 1)
}

const TOO_LONG: &str = "a number is too long";

/// The low seven bits of each byte, put together.
#[inline]
fn sevens(word: u64) -> u64 {
    let word = word & 0x7F7F_7F7F_7F7F_7F7F;
    let word = (word & 0x7F00_7F00_7F00_7F00) >> 1 | word & 0x007F_007F_007F_007F;
    let word = (word & 0x3FFF_0000_3FFF_0000) >> 2 | word & 0x0000_3FFF_0000_3FFF;
    (word & 0x0FFF_FFFF_0000_0000) >> 4 | word & 0x0FFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_written() {
        let around =
            |bit: u32| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 0x5555_5555_5555_5555 >> (63 - bit)];
        let unsigned: Vec<u64> = (0..64).flat_map(around).chain([0, u64::MAX]).collect();
        let signed: Vec<i64> = unsigned.iter().flat_map(|&n| [n as i64, (n as i64).wrapping_neg()]).collect();
        let mut w = Writer::new();
        unsigned.iter().for_each(|&n| w.uint(n));
        signed.iter().for_each(|&n| w.int(n));
        let bytes = w.finish();
        let mut r = Reader::new(&bytes, 0);
        for n in unsigned {
            assert_eq!(r.uint(), Ok(n));
        }
        for n in signed {
            assert_eq!(r.int(), Ok(n));
        }
        assert_eq!(r.end(), Ok(()));
    }

    #[test]
    fn a_number_is_the_same_whatever_follows_it() {
        for bytes in [&[0x80, 1][..], &[0xFF, 0xFF, 0x7F], &[0x80, 0x80, 0], &[0xFF; 8], &[0x80, 0x80, 0x80]]
        {
            let alone = Reader::new(bytes, 0).uint();
            for behind in [0, 0x7F, 0x80, 0xFF] {
                let more = [bytes, &[behind; 9]].concat();
                let ends = bytes.last().is_some_and(|last| last & 0x80 == 0);
                assert!(!ends || Reader::new(&more, 0).uint() == alone, "{more:?}");
            }
        }
    }

    #[test]
    fn short_things_are_written_behind_each_other() {
        let words = ["", "a", "bc", "def", "ghij"];
        let many: Vec<&str> = words.iter().cycle().take(200).copied().collect();
        let mut w = Writer::new();
        w.byte(7);
        w.shorts(&many, |word, bytes: &mut [u8; 4]| {
            bytes[..word.len()].copy_from_slice(word.as_bytes());
            word.len()
        });
        assert_eq!(w.finish(), [b"\x07", many.concat().as_bytes()].concat());
    }

    #[test]
    fn a_number_has_one_spelling_and_at_most_sixty_four_bits() {
        for bytes in [&[0x80, 0][..], &[0xFF; 9], &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]]
        {
            assert!(Reader::new(bytes, 0).uint().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_list_is_no_longer_than_the_bytes_that_describe_it_and_no_larger_than_the_budget() {
        assert_eq!(Reader::new(&[3, 0, 0, 0], 24).count(8), Ok(3));
        assert_eq!(Reader::new(&[3, 0, 0, 0], 23).count(8), Err(Flaw::TooLarge));
        assert!(Reader::new(&[3, 0, 0], 1 << 20).count(8).is_err());
    }
}
