//! A model server for tests: one of the project's own fakes, in a process of its own.

use std::io::{BufRead, BufReader};

use serde_json::Value;

/// A model server on loopback.
pub(crate) struct Model {
    child: std::process::Child,
    pub(crate) port: u64,
}

impl Model {
    /// One that speaks the Messages API.
    pub(crate) fn start() -> Self {
        Self::speaking("anthropic")
    }

    /// `anthropic` or `responses`.
    pub(crate) fn speaking(api: &str) -> Self {
        let program = format!("{}/../../fakes/{api}.py", env!("CARGO_MANIFEST_DIR"));
        let mut command = std::process::Command::new("python3");
        command.arg(program).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
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
