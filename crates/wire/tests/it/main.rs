//! The integration tests of `wire`: one binary, one module per room.

mod line_adapters;
mod lines;
