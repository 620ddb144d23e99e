//! What a sidecar is started with.

use std::path::PathBuf;
use std::time::Duration;

use super::log::LogLevel;
use super::providers::Providers;

/// The flags of a sidecar, and what the program that it is part of knows.
#[derive(Debug)]
pub struct Options {
    /// Who does the work.
    pub providers: Providers,
    /// How often a stream says that it lives.
    pub heartbeat: Duration,
    /// How a failure of a model's server ends a stream.
    pub api_errors: ApiErrors,
    /// Where the conversations are recorded.
    pub record: Option<PathBuf>,
    /// A recorded conversation to be played instead of asking anybody.
    pub replay: Option<PathBuf>,
    /// How much is logged; what `HELMOR_LOG` says if absent.
    pub log_level: Option<LogLevel>,
    /// The folder of `sidecar.jsonl`; what `HELMOR_LOG_DIR` says if absent.
    pub log_dir: Option<PathBuf>,
    /// How much is kept warm.
    pub warm: Warm,
    /// The version of the program, for the log.
    pub version: String,
}

impl Options {
    /// A sidecar without flags, with the numbers of the contract.
    #[must_use]
    pub fn new(version: impl Into<String>, providers: Providers) -> Self {
        Self {
            providers,
            heartbeat: Duration::from_secs(15),
            api_errors: ApiErrors::Error,
            record: None,
            replay: None,
            log_level: None,
            log_dir: None,
            warm: Warm { programs: 8, at_most: Duration::from_secs(600) },
            version: version.into(),
        }
    }
}

/// How a failure of a model's server ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrors {
    /// With `error`.
    Error,
    /// With `end` and `isError`, as the original did.
    End,
}

/// How much is kept warm between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warm {
    /// This many programs.
    pub programs: usize,
    /// For this long.
    pub at_most: Duration,
}
