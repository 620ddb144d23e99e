//! The integration tests of this crate, one binary.

fn main() {}
