//! `outrigger doctor`: what this machine can enforce.
use std::process::ExitCode;

use crate::say::Format;

pub(crate) fn run(_format: Format) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
