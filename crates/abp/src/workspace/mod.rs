//! Where a run works: the root itself or a staged copy, and what changed there, as a patch.
