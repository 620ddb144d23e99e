//! Being a backend: the two ready-made children that `outrigger sidecar abp-…` is.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use outrigger_abp::sidecar::{mock, process};

use crate::args::ProcessArgs;

/// The longest script of a mock.
const MAX_SCRIPT: u64 = 16 << 20;

/// Is a backend that plays a script.
pub(crate) fn be_mock(script: Option<&Path>) -> anyhow::Result<ExitCode> {
    let script = match script {
        None => mock::Script::usual(),
        Some(path) => {
            let name = format!("the script {}", path.display());
            let length = std::fs::metadata(path).with_context(|| format!("{name} cannot be read"))?.len();
            if length > MAX_SCRIPT {
                bail!("{name} has {length} bytes; it may have {MAX_SCRIPT}");
            }
            let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
            mock::Script::read(&text).with_context(|| name)?
        }
    };
    Ok(mock::serve_script(script))
}

/// Is a backend that runs a program for each order.
pub(crate) fn be_process(args: ProcessArgs) -> ExitCode {
    let mut words = args.command.into_iter();
    process::serve_command(process::Command {
        // The parser refuses an empty command.
        program: words.next().unwrap_or_default().into(),
        args: words.collect(),
        task: if args.task_in_args { process::Task::InArguments } else { process::Task::OnStdin },
        stderr: if args.warn { process::Stderr::Warnings } else { process::Stderr::Log },
    })
}
