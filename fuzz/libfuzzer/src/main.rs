//! Links libFuzzer to the target that the environment variable `FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::{TARGETS, Target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let names = || TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, target)) => *target,
        None => panic!("FUZZ_TARGET must be one of {}, not {name:?}", names()),
    }
});

fuzz_target!(|input: &[u8]| CHOSEN(input));
