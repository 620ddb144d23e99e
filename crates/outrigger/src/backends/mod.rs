//! The backends of the daemon, one implementation of the trait a dialect: scripts (mustard), work orders to children (abp, and through
//! it the coding agents of helmor), conversations (steerable).

pub(crate) mod order;
pub(crate) mod script;
pub(crate) mod seal;
pub(crate) mod talk;
pub(crate) mod tools;
mod turns;
