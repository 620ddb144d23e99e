//! The kits for node and Python against the real sidecar: their own tests, run as their users run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::finish;

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk")
}

fn passes(command: &mut Command) {
    command.env("MUSTARD_SIDECAR", env!("CARGO_BIN_EXE_mustard-sidecar"));
    let finished = finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(finished.code(), 0, "{}\n{}", finished.stdout, finished.stderr);
}

#[test]
fn the_kit_for_node_runs_keeps_and_resumes_scripts() {
    passes(Command::new("node").arg("--test").arg(sdk().join("node/mustard.test.mjs")));
}

#[test]
fn the_kit_for_python_runs_keeps_and_resumes_scripts() {
    let file = sdk().join("python/test_outrigger_mustard.py");
    passes(Command::new("python3").arg("-B").arg(file));
}
