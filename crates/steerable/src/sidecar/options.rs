//! What a sidecar is started with.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::protocol::LogLevel;
use crate::tools::Stated;

/// The flags of a sidecar, and what the program that it is part of knows.
#[derive(Clone, Debug)]
pub struct Options {
    /// What healths say. The version of the program.
    pub version: String,
    /// How much is logged; `None` is what was kept, or `INFO`.
    pub log_level: Option<LogLevel>,
    /// Whether the ready marker is written.
    pub marker: Marker,
    /// Where everything is kept; `None` is memory.
    pub storage_path: Option<PathBuf>,
    /// What streams and tools may reach, as far as flags say.
    pub grants: Stated,
    /// Which of the sidecar's own tools there are; `None` is all that the grants make useful.
    pub tool_names: Option<Vec<String>>,
    /// How a program that runs scripts is started, with its arguments.
    pub mustard: Option<Vec<OsString>>,
}

impl Options {
    /// A sidecar without flags.
    #[must_use]
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            log_level: None,
            marker: Marker::Write,
            storage_path: None,
            grants: Stated::default(),
            tool_names: None,
            mustard: None,
        }
    }
}

/// Whether the ready marker is written on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// It is.
    Write,
    /// It is not; `lifecycle.ready` says the same.
    Omit,
}
