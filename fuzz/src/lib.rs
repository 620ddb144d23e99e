//! Fuzz targets as plain functions: each takes any bytes and panics if a promise is broken.
//!
//! # Theory of operation
//!
//! A target is a name and a function in [`TARGETS`]. Two things run it: the ordinary tests replay `corpus/<name>/*`, so a
//! bug once found stays found; and `libfuzzer/`, a package of its own, links libFuzzer and chooses a target by the
//! environment variable `FUZZ_TARGET`. The first bytes of an input choose limits and policies, the rest is the stream.
//!
//! ```
//! for (name, target) in outrigger_fuzz::TARGETS {
//!     target(b"any bytes at all");
//!     assert!(!name.is_empty());
//! }
//! ```

mod abp;
pub mod engine;
mod frames;
mod helmor;
mod lines;
mod mustard;
mod rpc;
mod sep;
mod sse;
mod tape;

/// A target: any bytes go in, and it panics if a promise is broken.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("lines", lines::lines),
    ("frames", frames::frames),
    ("rpc", rpc::rpc),
    ("tape", tape::tape),
    ("script", engine::script),
    ("program", engine::program),
    ("pattern", engine::pattern),
    ("snapshot_load", engine::snapshot_load),
    ("program_load", engine::program_load),
    ("mustard", mustard::mustard),
    ("abp", abp::abp),
    ("sse", sse::sse),
    ("helmor", helmor::helmor),
    ("sep_manifest", sep::sep_manifest),
    ("sep_policy", sep::sep_policy),
    ("sep_frames", sep::sep_frames),
    ("sep_lifecycle", sep::sep_lifecycle),
    ("sep_android", sep::sep_android),
];

pub use abp::abp;
pub use frames::frames;
pub use helmor::helmor;
pub use lines::lines;
pub use mustard::mustard;
pub use rpc::rpc;
pub use sep::{sep_android, sep_frames, sep_lifecycle, sep_manifest, sep_policy};
pub use sse::sse;
pub use tape::tape;

/// Takes small choices off the front of an input.
struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[usize::from(self.byte()) % options.len()]
    }
}

/// Cuts a stream into pieces whose sizes are taken, round and round, from `seed`.
fn cut(mut stream: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut size = usize::from(seed % 7) + 1;
    while !stream.is_empty() {
        let (piece, rest) = stream.split_at(size.min(stream.len()));
        pieces.push(piece);
        stream = rest;
        size = (size * 5 + usize::from(seed)) % 23 + 1;
    }
    pieces
}
