//! Being a bridge to the real coding agents: what `outrigger sidecar helmor` and the installed `helmor-sidecar` do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use outrigger_helmor::provider::claude::SystemPrompt;
use outrigger_helmor::sidecar::{ApiErrors, LogLevel, Options, Providers, Settings, serve};

/// A bridge to the real coding agents: requests are read from standard input, a JSON object a line; events go to standard
/// output, logs to standard error.
#[derive(Parser)]
#[command(name = "helmor-sidecar", version)]
#[command(after_help = "\
Programs are looked for by these flags, by HELMOR_CLAUDE_CODE_BIN_PATH, HELMOR_CODEX_BIN_PATH and HELMOR_CURSOR_BIN_PATH, on PATH,
and in node_modules. Each has its own login; its variables are passed on.

Exit status: 0 when it was asked to leave or its standard input ended, 2 for a wrong flag, 130 and 143 after SIGINT and SIGTERM.

Examples:
  helmor-sidecar
  helmor-sidecar --claude ~/bin/claude --acp mine='node my-agent.js'
  helmor-sidecar --record talk.jsonl           every line of every conversation
  helmor-sidecar --replay talk.jsonl           the same again, without any agent
  echo '{\"id\":\"1\",\"method\":\"listModels\",\"params\":{\"provider\":\"claude\"}}' | helmor-sidecar")]
struct Flags {
    /// Claude Code's program.
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Codex's program.
    #[arg(long, value_name = "PATH")]
    codex: Option<PathBuf>,

    /// The program of Cursor's agent.
    #[arg(long, value_name = "PATH")]
    cursor: Option<PathBuf>,

    /// An agent that speaks ACP: its name after `acp:`, and its command with quotes around words that have spaces (repeatable).
    #[arg(long, value_name = "NAME=COMMAND", value_parser = acp)]
    acp: Vec<(String, Vec<String>)>,

    /// What the provider `scripted` plays.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// How often a stream says that it lives.
    #[arg(long, value_name = "TIME", value_parser = heartbeat)]
    heartbeat: Option<Duration>,

    /// How a failure of a model's server ends a stream.
    #[arg(long, value_enum, value_name = "HOW", default_value = "error")]
    api_errors: ApiErrorsArg,

    /// Which system prompt Claude Code has: its own, or none, as hosts of the original had it.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "own")]
    claude_system_prompt: PromptArg,

    /// Write every line of every conversation to this file. What is said is in it; keep it as you would keep that.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Play a recorded conversation instead of asking any agent.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// How much is logged, on standard error [default: $HELMOR_LOG, else info].
    #[arg(long, value_enum, value_name = "LEVEL")]
    log_level: Option<LevelArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ApiErrorsArg {
    /// With an event `error`.
    Error,
    /// With an event `end` that says `isError`.
    End,
}

#[derive(Clone, Copy, ValueEnum)]
enum PromptArg {
    /// Its own.
    Own,
    /// None.
    Empty,
}

#[derive(Clone, Copy, ValueEnum)]
enum LevelArg {
    Debug,
    Info,
    Error,
}

/// Is a bridge until its host has had enough.
pub(crate) fn be_helmor(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let name = OsString::from("helmor-sidecar");
    let flags =
        Flags::try_parse_from([name].into_iter().chain(arguments)).unwrap_or_else(|error| error.exit());
    let settings = Settings {
        claude: flags.claude,
        codex: flags.codex,
        cursor: flags.cursor,
        acp: flags.acp,
        script: flags.script,
        claude_system_prompt: match flags.claude_system_prompt {
            PromptArg::Own => SystemPrompt::Own,
            PromptArg::Empty => SystemPrompt::Empty,
        },
    };
    let mut options = Options::new(env!("CARGO_PKG_VERSION"), Providers::real(settings));
    if let Some(every) = flags.heartbeat {
        options.heartbeat = every;
    }
    options.api_errors = match flags.api_errors {
        ApiErrorsArg::Error => ApiErrors::Error,
        ApiErrorsArg::End => ApiErrors::End,
    };
    options.record = flags.record;
    options.replay = flags.replay;
    options.log_level = flags.log_level.map(|level| match level {
        LevelArg::Debug => LogLevel::Debug,
        LevelArg::Info => LogLevel::Info,
        LevelArg::Error => LogLevel::Error,
    });
    serve(options)
}

fn acp(text: &str) -> Result<(String, Vec<String>), String> {
    let Some((name, command)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err("it is NAME=COMMAND".to_owned());
    };
    let words = crate::words::words(command).map_err(|error| error.to_string())?;
    if words.is_empty() {
        return Err("the command is empty".to_owned());
    }
    Ok((name.to_owned(), words))
}

fn heartbeat(text: &str) -> Result<Duration, String> {
    match crate::duration::duration(text)? {
        Duration::ZERO => Err("it must be more than nothing".to_owned()),
        every => Ok(every),
    }
}
