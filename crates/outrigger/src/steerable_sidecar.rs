//! Being a steerable sidecar: what `outrigger sidecar steerable` and the installed `steerable-sidecar` do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use outrigger_steerable::protocol::LogLevel;
use outrigger_steerable::sidecar::{Marker, Options, serve};
use outrigger_steerable::tools::{Commands, Hosts, NAMES, Stated};

/// An agent runtime over JSON-RPC 2.0: requests are read from standard input, a JSON object a line; answers and notifications go
/// to standard output, logs and the ready marker to standard error.
#[derive(Parser)]
#[command(name = "steerable-sidecar", version)]
#[command(after_help = "\
What it may reach is said by flags; a turn can ask for less, never for more. Without any, a turn says it for itself.

Exit status: 0 when it was asked to leave or its standard input ended, 1 when the storage cannot be opened,
2 for a wrong flag, 75 when the storage was written by a newer program.

Examples:
  steerable-sidecar --storage-path agent.db
  steerable-sidecar --quiet-ready --read-root . --write-root ./out --commands ask
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.ping\"}' | steerable-sidecar")]
struct Flags {
    /// How much is logged, on standard error [default: what was kept, else INFO].
    #[arg(long, value_enum, value_name = "LEVEL", ignore_case = true)]
    log_level: Option<LevelArg>,

    /// Skip the __SIDECAR_READY__ marker on standard error; the notification lifecycle.ready says the same.
    #[arg(long)]
    quiet_ready: bool,

    /// Keep sessions, transcripts, traces and settings in this file [default: in memory].
    #[arg(long, value_name = "FILE")]
    storage_path: Option<PathBuf>,

    /// A folder that tools may read (repeatable).
    #[arg(long, value_name = "DIR")]
    read_root: Vec<PathBuf>,

    /// A folder that tools may read and write (repeatable).
    #[arg(long, value_name = "DIR")]
    write_root: Vec<PathBuf>,

    /// A host that tools may fetch from, such as example.com, *.example.com, 127.0.0.1:8080 (repeatable).
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Whether tools may run commands in a sandbox.
    #[arg(long, value_enum, value_name = "WHETHER")]
    commands: Option<CommandsArg>,

    /// Only these of its own tools.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = tool_name)]
    tools: Option<Vec<String>>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum LevelArg {
    Debug,
    Info,
    Warning,
    Error,
}

#[derive(Clone, Copy, ValueEnum)]
enum CommandsArg {
    /// No.
    Deny,
    /// Each one after the host was asked.
    Ask,
    /// Yes.
    Allow,
}

/// Is a steerable sidecar until its host has had enough.
pub(crate) fn be_steerable(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let name = OsString::from("steerable-sidecar");
    let flags =
        Flags::try_parse_from([name].into_iter().chain(arguments)).unwrap_or_else(|error| error.exit());
    let hosts = match Hosts::new(&flags.allow_host) {
        Ok(hosts) => hosts,
        Err((pattern, error)) => Flags::wrong(&format!("--allow-host {pattern}: {error}")),
    };
    let some = |roots: Vec<PathBuf>| (!roots.is_empty()).then_some(roots);
    let mut options = Options::new(env!("CARGO_PKG_VERSION"));
    options.log_level = flags.log_level.map(|level| match level {
        LevelArg::Debug => LogLevel::Debug,
        LevelArg::Info => LogLevel::Info,
        LevelArg::Warning => LogLevel::Warning,
        LevelArg::Error => LogLevel::Error,
    });
    options.marker = if flags.quiet_ready { Marker::Omit } else { Marker::Write };
    options.storage_path = flags.storage_path;
    options.grants = Stated {
        read_roots: some(flags.read_root),
        write_roots: some(flags.write_root),
        hosts: (!flags.allow_host.is_empty()).then_some(hosts),
        commands: flags.commands.map(|commands| match commands {
            CommandsArg::Deny => Commands::Deny,
            CommandsArg::Ask => Commands::Ask,
            CommandsArg::Allow => Commands::Allow,
        }),
    };
    options.tool_names = flags.tools;
    options.mustard = mustard();
    serve(options)
}

impl Flags {
    /// Ends the program as clap does for a flag that it refuses itself.
    fn wrong(message: &str) -> ! {
        use clap::CommandFactory;
        Self::command().error(clap::error::ErrorKind::ValueValidation, message).exit()
    }
}

fn tool_name(name: &str) -> Result<String, String> {
    match NAMES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("there is no tool of that name; there are: {}", NAMES.join(", "))),
    }
}

/// How scripts are run: by the program that is installed beside this one, or by this one.
fn mustard() -> Option<Vec<OsString>> {
    let program = std::env::current_exe().ok()?;
    let words = |program: PathBuf, words: &[&str]| {
        Some([program.into_os_string()].into_iter().chain(words.iter().map(OsString::from)).collect())
    };
    match program.file_name()?.to_str()? {
        "outrigger" => words(program, &["sidecar", "mustard", "--jsonl"]),
        _ => words(program.with_file_name("mustard-sidecar"), &["--jsonl"]),
    }
}
