//! A frame: one call in progress, as plain data.

use crate::heap::ClosureId;
use crate::value::Value;

/// What is special about how a frame returns. Zero for an ordinary call, so that `Ret` tests one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameFlags(pub(crate) u16);

impl FrameFlags {
    /// An ordinary call.
    pub(crate) const NONE: FrameFlags = FrameFlags(0);
    /// Called by `new`: answers `this` unless an object is returned.
    pub(crate) const CONSTRUCT: FrameFlags = FrameFlags(1);
    /// A derived constructor: only an object may be returned.
    pub(crate) const DERIVED: FrameFlags = FrameFlags(2);
    /// The result decides the branch instruction before the caller's pc.
    pub(crate) const BRANCH: FrameFlags = FrameFlags(4);
    /// The bottom frame of a run.
    pub(crate) const ENTRY: FrameFlags = FrameFlags(8);
    /// A generator's body.
    pub(crate) const GENERATOR: FrameFlags = FrameFlags(16);
    /// An async function's body.
    pub(crate) const ASYNC: FrameFlags = FrameFlags(32);
    /// Nobody wants the result: a setter, a field initialiser.
    pub(crate) const DISCARD: FrameFlags = FrameFlags(64);
    /// The result is an iterator step: the hole when done.
    pub(crate) const STEP: FrameFlags = FrameFlags(128);
    /// The result is a pair [iterator, next].
    pub(crate) const PAIR: FrameFlags = FrameFlags(256);
    /// The result is negated: `!=`.
    pub(crate) const NEGATE: FrameFlags = FrameFlags(512);
    /// The bottom frame of a microtask.
    pub(crate) const JOB: FrameFlags = FrameFlags(1024);

    /// A resumed frame whose registers are still in its record.
    pub(crate) const RESTORE: FrameFlags = FrameFlags(2048);

    /// A promise's executor: host calls below it answer promises.
    pub(crate) const EXECUTOR: FrameFlags = FrameFlags(1 << 14);

    /// The arguments are an array: too many for registers.
    pub(crate) const LIST: FrameFlags = FrameFlags(1 << 13);

    /// The result is a promise that the caller awaits.
    pub(crate) const AWAIT: FrameFlags = FrameFlags(4096);

    /// An async generator's body.
    pub(crate) fn is_async_generator(self) -> bool {
        let both = Self::ASYNC.0 | Self::GENERATOR.0;
        self.0 & both == both
    }

    pub(crate) fn without(self, other: FrameFlags) -> FrameFlags {
        FrameFlags(self.0 & !other.0)
    }

    pub(crate) fn has(self, other: FrameFlags) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn and(self, other: FrameFlags) -> FrameFlags {
        FrameFlags(self.0 | other.0)
    }
}

/// One call in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Which function.
    pub(crate) func: u32,
    /// The next instruction; only current while the frame is not on top, or at a safepoint.
    pub(crate) pc: u32,
    /// Where its registers begin in the register file.
    pub(crate) base: u32,
    /// Where its arguments begin in the register file.
    pub(crate) args: u32,
    /// How many arguments it was given.
    pub(crate) argc: u32,
    /// Its captured variables.
    pub(crate) closure: ClosureId,
    /// The caller's register for the result.
    pub(crate) dst: u8,
    pub(crate) flags: FrameFlags,
    /// The function object.
    pub(crate) callee: Value,
    /// `new.target`; of a generator or async frame, the record that it is saved in.
    pub(crate) new_target: Value,
}
