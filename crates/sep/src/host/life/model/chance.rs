//! Where the choices of a random life come from: a seed, or the bytes of a fuzzer.

/// A source of choices.
#[derive(Clone, Debug)]
pub(super) enum Chance<'a> {
    /// SplitMix64: the same on every machine, and without an end.
    Seed(u64),
    /// One byte a choice; when there are no more, the life is over.
    Bytes(&'a [u8]),
}

impl<'a> Chance<'a> {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seed(seed)
    }

    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Bytes([]))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let drawn = match self {
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((mixed ^ (mixed >> 31)) >> 33) as usize
            }
            Self::Bytes(bytes) => match bytes.split_first() {
                Some((first, rest)) => {
                    *bytes = rest;
                    usize::from(*first)
                }
                None => 0,
            },
        };
        drawn % bound.max(1)
    }

    /// One of them.
    pub(super) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
