//! The kits for authors of abp sidecars in node and Python: their own tests, run as their users run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::finish;

#[test]
fn the_abp_kit_for_node_keeps_its_promises_under_a_scripted_host() {
    passes(Command::new("node").arg("--test").arg(sdk().join("node/abp.test.mjs")));
}

#[test]
fn the_abp_kit_for_python_keeps_its_promises_under_a_scripted_host() {
    passes(Command::new("python3").arg("-B").arg(sdk().join("python/test_outrigger_abp.py")));
}

#[test]
fn the_real_claude_code_is_an_abp_sidecar_that_asks_before_every_tool() {
    let modules = std::env::var_os("OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE").expect(
        "OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE must name the folder that holds Claude Code: run the tests with `cargo xtask test`",
    );
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node_modules/@anthropic-ai/claude-code-linux-{machine}/claude");
    let mut command = Command::new("node");
    command.env("CLAUDE_COMMAND", Path::new(&modules).join(package));
    passes(command.arg("--test").arg(sdk().join("node/examples/abp-claude.test.mjs")));
}

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk")
}

fn passes(command: &mut Command) {
    let finished = finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(finished.code(), 0, "{}\n{}", finished.stdout, finished.stderr);
}
