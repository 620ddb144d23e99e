//! What crossing costs: instructions for the work, and a bound on what is made outside the heap.

use super::export::BoundaryError;
use crate::exec::state::{Limit, State};
use crate::heap::OverLimit;

/// Text is paid for in pieces of this many units.
const PIECE: u64 = 256;

/// What a value may become outside, compared with the heap it comes from: records share names, and texts each other.
const OUTSIDE: usize = 4;

/// What a node counts for beside its text.
const NODE_BYTES: usize = 8;

/// What is left for a value that crosses.
pub(super) struct Purse {
    instructions: u64,
    pub(super) spent: u64,
    bytes: usize,
    limit: usize,
}

impl Purse {
    /// The run's own budget.
    pub(super) fn of(st: &State) -> Purse {
        Purse { instructions: st.fuel.saturating_add(st.reserve), ..Purse::paid(st) }
    }

    /// For what was paid for before: only its size is bounded.
    pub(super) fn paid(st: &State) -> Purse {
        let limit = st.heap.limits().bytes;
        Purse { instructions: u64::MAX, spent: 0, bytes: limit.saturating_mul(OUTSIDE), limit }
    }

    /// Pays for so many nodes.
    #[inline]
    pub(super) fn nodes(&mut self, count: usize) -> Result<(), BoundaryError> {
        self.pay(count as u64, count.saturating_mul(NODE_BYTES))
    }

    /// Pays for text of this length.
    #[inline]
    pub(super) fn text(&mut self, length: usize) -> Result<(), BoundaryError> {
        self.pay(pieces(length), length)
    }

    #[inline]
    fn pay(&mut self, work: u64, bytes: usize) -> Result<(), BoundaryError> {
        self.spent = self.spent.saturating_add(work);
        if self.spent > self.instructions {
            return Err(BoundaryError::Limit(Limit::Instructions));
        }
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit: self.limit }))),
        }
    }
}

/// What text of this length costs in instructions.
pub(super) fn pieces(length: usize) -> u64 {
    length as u64 / PIECE
}
