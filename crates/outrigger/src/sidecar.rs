//! Being a sidecar: what `outrigger sidecar mustard` and the installed `mustard-sidecar` do.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use outrigger_mustard::sidecar::program;

/// Is a mustard sidecar until standard input ends, and says why it ended if that was not the reason.
pub(crate) fn be_mustard(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let end = program::run(arguments);
    // Nobody is left to tell when the last words cannot be written.
    if let Some(text) = end.output {
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    if let Some(text) = end.error {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    ExitCode::from(end.code)
}
