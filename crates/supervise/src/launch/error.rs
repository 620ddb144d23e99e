//! Every way in which a program can fail to start, each with a stable code.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::launch::exact::{exact_path, exact_paths};

/// Why a program was not started. Nothing is left running when one of these comes back.
///
/// It travels over the control socket, hence `Serialize`; both ends are always the same build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such file, or a bare name that is in no directory of the child's `PATH`.
    #[error("program `{program}` was not found; looked in {}", looked(searched))]
    ProgramNotFound {
        /// The program as the plan names it.
        program: String,
        /// The files or directories that were tried.
        #[serde(with = "exact_paths")]
        searched: Vec<PathBuf>,
    },
    /// The file exists but the system will not execute it.
    #[error("`{}` cannot be executed: {reason}", path.display())]
    NotExecutable {
        /// The file.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// Why not, in words.
        reason: String,
    },
    /// The file exists and is executable, but the interpreter it names does not exist.
    #[error("`{}` names an interpreter that does not exist: {interpreter}", path.display())]
    BadInterpreter {
        /// The script or program.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// What it wants to be run by.
        interpreter: String,
    },
    /// The file is still open for writing somewhere, and stayed so through every retry.
    #[error("`{}` is being written by another process (text file busy)", path.display())]
    Busy {
        /// The file.
        #[serde(with = "exact_path")]
        path: PathBuf,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory `{}`: {reason}", path.display())]
    Cwd {
        /// The directory.
        #[serde(with = "exact_path")]
        path: PathBuf,
        /// Why not, in words.
        reason: String,
    },
    /// The box cannot be built as asked; the program was never started.
    #[error("the sandbox cannot be built, {missing} is missing: {reason}")]
    Sandbox {
        /// The layer that is missing, such as `landlock`.
        missing: String,
        /// Why, in words.
        reason: String,
    },
    /// The plan itself makes no sense (a NUL byte in an argument, too many descriptors, …).
    #[error("the launch plan is invalid: {reason}")]
    InvalidPlan {
        /// What is wrong with it.
        reason: String,
    },
    /// The system is short of something right now; trying later can help.
    #[error("the system is out of resources: {doing}: {reason}")]
    Resource {
        /// What was attempted.
        doing: String,
        /// The system's error number.
        errno: i32,
        /// The system's message.
        reason: String,
    },
    /// A step failed for a reason that has no name here.
    #[error("{doing} failed: {reason}")]
    System {
        /// What was attempted.
        doing: String,
        /// The system's error number, 0 if there is none.
        errno: i32,
        /// The system's message.
        reason: String,
    },
    /// The launcher ended without a report: the executable does not call `intercept`, or somebody killed it.
    #[error("the launcher ended with {status} before it reported anything{}", quoted(stderr))]
    LauncherDied {
        /// How it ended.
        status: String,
        /// What it wrote to its standard error, cut to a few kilobytes.
        stderr: String,
    },
    /// This operating system is not supported.
    #[error("programs cannot be launched on this operating system: {reason}")]
    Unsupported {
        /// What is missing.
        reason: String,
    },
}

impl LaunchError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProgramNotFound { .. } => "program_not_found",
            Self::NotExecutable { .. } => "not_executable",
            Self::BadInterpreter { .. } => "bad_interpreter",
            Self::Busy { .. } => "text_file_busy",
            Self::Cwd { .. } => "bad_cwd",
            Self::Sandbox { .. } => "sandbox",
            Self::InvalidPlan { .. } => "invalid_plan",
            Self::Resource { .. } => "host_resource",
            Self::System { .. } => "launch_failed",
            Self::LauncherDied { .. } => "launcher_died",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// Whether trying again without changing anything is pointless.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::ProgramNotFound { .. }
            | Self::NotExecutable { .. }
            | Self::BadInterpreter { .. }
            | Self::Cwd { .. }
            | Self::Sandbox { .. }
            | Self::InvalidPlan { .. }
            | Self::Unsupported { .. } => true,
            Self::Busy { .. } | Self::Resource { .. } | Self::System { .. } | Self::LauncherDied { .. } => {
                false
            }
        }
    }
}

fn looked(searched: &[PathBuf]) -> String {
    if searched.is_empty() {
        return "nothing: the child's PATH is empty".to_owned();
    }
    searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn quoted(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it wrote: {stderr}") }
}
