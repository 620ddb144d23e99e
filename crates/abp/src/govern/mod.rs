//! What a run may do and spend: every reported action is judged, every budget counted, approvals asked for.

pub mod address;
pub mod names;
pub mod place;
pub mod reach;
pub mod tally;
