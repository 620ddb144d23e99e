//! What crossing costs: instructions for the work, and a bound on what is made outside the heap.

use super::export::BoundaryError;
use crate::exec::state::{Limit, State};
use crate::heap::OverLimit;

/// Text is paid for in pieces of this many units.
const PIECE: u64 = 256;

/// What a value may become outside, compared with the heap it comes from: records share names, and texts each other.
const OUTSIDE: u64 = 4;

/// What a node counts for beside its text.
const NODE_BYTES: u64 = 8;

/// What is left for a value that crosses.
pub(super) struct Purse {
    instructions: u64,
    pub(super) spent: u64,
    /// How large what was paid for is outside the heap, and how large it may become.
    pub(super) weight: u64,
    most: u64,
    limit: usize,
}

impl Purse {
    /// The run's own budget for something that exists beside other things of this weight.
    pub(super) fn beside(st: &State, weight: u64) -> Purse {
        let purse = Purse::of(st);
        Purse { most: purse.most.saturating_sub(weight), ..purse }
    }

    /// The run's own budget.
    pub(super) fn of(st: &State) -> Purse {
        Purse { instructions: st.fuel.saturating_add(st.reserve), ..Purse::paid(st) }
    }

    /// For what was paid for before: only its size is bounded.
    pub(super) fn paid(st: &State) -> Purse {
        let limit = st.heap.limits().bytes;
        let most = (limit as u64).saturating_mul(OUTSIDE);
        Purse { instructions: u64::MAX, spent: 0, weight: 0, most, limit }
    }

    /// Pays for so many nodes.
    #[inline]
    pub(super) fn nodes(&mut self, count: usize) -> Result<(), BoundaryError> {
        self.pay(count as u64, (count as u64).saturating_mul(NODE_BYTES))
    }

    /// Pays for text of this length.
    #[inline]
    pub(super) fn text(&mut self, length: usize) -> Result<(), BoundaryError> {
        self.pay(pieces(length), length as u64)
    }

    #[inline]
    fn pay(&mut self, work: u64, weight: u64) -> Result<(), BoundaryError> {
        self.spent = self.spent.saturating_add(work);
        if self.spent > self.instructions {
            return Err(BoundaryError::Limit(Limit::Instructions));
        }
        self.weight = self.weight.saturating_add(weight);
        if self.weight > self.most {
            return Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit: self.limit })));
        }
        Ok(())
    }
}

/// What text of this length costs in instructions.
pub(super) fn pieces(length: usize) -> u64 {
    length as u64 / PIECE
}
