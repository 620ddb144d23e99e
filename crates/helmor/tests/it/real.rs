//! The real programs from npm, and the model servers on loopback that they talk to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outrigger_helmor::provider::locate::{self, Known};
use serde_json::Value;

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        the_programs_that_npm_installed_are_found_below_its_folder,
        a_model_server_of_the_tests_says_where_it_listens
    ]
}

/// The real Claude Code, if it was installed for the tests.
pub(crate) fn claude() -> Option<PathBuf> {
    installed("OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE", &locate::CLAUDE)
}

/// The real Codex, if it was installed for the tests.
pub(crate) fn codex() -> Option<PathBuf> {
    installed("OUTRIGGER_NPM_OPENAI_CODEX", &locate::CODEX)
}

/// A program that `cargo xtask test` installs. Without it a test says so and covers nothing.
fn installed(variable: &str, known: &Known) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(variable) else {
        #[expect(clippy::print_stderr, reason = "who runs the tests must know what they did not cover")]
        {
            eprintln!("skipped, because {variable} is not set: run the tests with `cargo xtask test`");
        }
        return None;
    };
    let path = known.packages.iter().map(|package| Path::new(&folder).join("node_modules").join(package));
    Some(
        path.into_iter()
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("{} has no program", known.title)),
    )
}

/// A model server on loopback, one of `fakes/`, in a process of its own.
pub(crate) struct Model {
    child: Child,
    /// Where it listens on 127.0.0.1.
    pub(crate) port: u64,
}

impl Model {
    /// `anthropic` or `responses`.
    pub(crate) fn start(fake: &str) -> Self {
        let program = format!("{}/../../fakes/{fake}.py", env!("CARGO_MANIFEST_DIR"));
        #[expect(clippy::disallowed_methods, reason = "a server for the tests, not a child of the product")]
        let mut command = Command::new("python3");
        command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self { child, port: said["port"].as_u64().unwrap() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn the_programs_that_npm_installed_are_found_below_its_folder() {
    for path in [claude(), codex()].into_iter().flatten() {
        assert!(path.is_file(), "{}", path.display());
    }
}

fn a_model_server_of_the_tests_says_where_it_listens() {
    let model = Model::start("anthropic");
    let stream = std::net::TcpStream::connect(("127.0.0.1", u16::try_from(model.port).unwrap()));
    assert!(stream.is_ok());
}
