//! Replays every corpus, so that what the fuzzer once found stays found.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_fuzz::TARGETS;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn every_corpus_passes() {
    for (name, target) in TARGETS {
        let mut files: Vec<_> =
            fs::read_dir(corpus(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            target(&fs::read(&file).unwrap());
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    for entry in fs::read_dir(corpus("")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(TARGETS.iter().any(|(known, _)| name == *known), "{name:?} belongs to no target");
    }
}
