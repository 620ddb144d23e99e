//! What the crate promises, as its users see it: only the public API.

mod audit;
mod budgets;
mod canonical;
mod globs;
mod grants;
mod hosts;
mod names;
mod profile;
mod properties;
mod rates;
