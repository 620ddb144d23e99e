//! The integration tests of `wire`: one binary, one module per room.

mod frames;
mod line_adapters;
mod lines;
mod peer;
mod rpc;
mod tapes;
