//! What can be asked of `outrigger chat`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::duration;

#[derive(Args)]
#[command(after_help = "\
Exit status (with PROMPT, or without a terminal):
  0    answered
  1    failed: the provider or the runtime said why
  3    a budget ended it
  125  outrigger itself failed, or what was asked for is wrong
  130  cancelled

On a terminal: Enter sends, Alt-Enter makes a new line, Up and Down recall. Esc or Ctrl-C cancels the turn; on an
empty line Ctrl-D leaves. What is typed while the agent works steers it. /help says more.

Keys of providers come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, XAI_API_KEY, or the
variable that --api-key-env names. outrigger.toml may have a table [chat] with provider, model, base_url, api_key_env.

Examples:
  outrigger chat --provider anthropic --model claude-sonnet-4-5
  outrigger chat --provider ollama --model llama3.2 \"why is the sky blue?\"
  outrigger chat --read . --write src --commands ask \"make the tests pass\"
  outrigger chat --mcp 'npx -y @modelcontextprotocol/server-everything'
  outrigger chat --provider scripted --script demo.jsonl --json \"hello\"
  outrigger chat --continue                  go on where the last conversation ended
  outrigger chat --sessions                  the conversations that there are")]
pub(crate) struct ChatArgs {
    /// What to say: one turn, and that is it. Without it a terminal is talked to, and other standard input is the prompt.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Who runs the model: openai, openai-responses, ollama, anthropic, gemini, xai, scripted.
    #[arg(long, value_name = "NAME", env = "OUTRIGGER_PROVIDER", help_heading = "Model")]
    pub(crate) provider: Option<String>,

    /// Which model.
    #[arg(long, value_name = "NAME", env = "OUTRIGGER_MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,

    /// Where the provider is, if it is not where it usually is.
    #[arg(long, value_name = "URL", env = "OUTRIGGER_BASE_URL", help_heading = "Model")]
    pub(crate) base_url: Option<String>,

    /// The variable that has the provider's key.
    #[arg(long, value_name = "VARIABLE", help_heading = "Model")]
    pub(crate) api_key_env: Option<String>,

    /// A file of answers, for --provider scripted.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) script: Option<PathBuf>,

    /// How much it thinks, in the provider's words: low, medium, high.
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    pub(crate) effort: Option<String>,

    /// The most tokens of one answer.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) max_tokens: Option<u64>,

    /// The configuration [default: ./outrigger.toml].
    #[arg(long, value_name = "FILE", env = "OUTRIGGER_CONFIG", help_heading = "Model")]
    pub(crate) config: Option<PathBuf>,

    /// Go on with this conversation.
    #[arg(long, value_name = "ID", conflicts_with = "continue_last", help_heading = "Conversation")]
    pub(crate) session: Option<String>,

    /// Go on with the last conversation.
    #[arg(long = "continue", help_heading = "Conversation")]
    pub(crate) continue_last: bool,

    /// List the conversations and leave.
    #[arg(long, conflicts_with_all = ["session", "continue_last", "prompt"], help_heading = "Conversation")]
    pub(crate) sessions: bool,

    /// Instructions that come before everything.
    #[arg(long, value_name = "TEXT", help_heading = "Conversation")]
    pub(crate) system: Option<String>,

    /// The answer must be JSON that fits the JSON Schema in this file.
    #[arg(long, value_name = "FILE", help_heading = "Conversation")]
    pub(crate) schema: Option<PathBuf>,

    /// The agent's own tools: a list of names, all, or none.
    #[arg(long, value_name = "NAMES", default_value = "all", help_heading = "Tools")]
    pub(crate) tools: String,

    /// A folder it may read (repeatable).
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) read: Vec<PathBuf>,

    /// A folder it may read and write (repeatable).
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) write: Vec<PathBuf>,

    /// A host it may fetch from, such as example.com or *.example.com (repeatable).
    #[arg(long, value_name = "HOST", help_heading = "Tools")]
    pub(crate) allow_host: Vec<String>,

    /// Whether it may run commands, in a sandbox with the folders above and no network.
    #[arg(long, value_enum, value_name = "WHETHER", default_value = "deny", help_heading = "Tools")]
    pub(crate) commands: CommandsArg,

    /// An MCP server whose tools it gets: a command line, or an http address; NAME=… names it (repeatable).
    #[arg(long, value_name = "SERVER", help_heading = "Tools")]
    pub(crate) mcp: Vec<String>,

    /// Who approves what is more than reading.
    #[arg(long, value_enum, value_name = "WHO", default_value = "ask", help_heading = "Rules")]
    pub(crate) approve: ApproveArg,

    /// The most tokens of a turn, read and written together.
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub(crate) budget_tokens: Option<u64>,

    /// The most calls of the model in a turn.
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub(crate) max_rounds: Option<u64>,

    /// The longest a turn may take.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Rules")]
    pub(crate) timeout: Option<Duration>,

    /// The longest one tool may take.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Rules")]
    pub(crate) tool_timeout: Option<Duration>,

    /// Beyond this many tokens the conversation is summed up before the model is called again.
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub(crate) context_tokens: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CommandsArg {
    /// No.
    Deny,
    /// Each one is approved first.
    Ask,
    /// Yes.
    Allow,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ApproveArg {
    /// Whoever sits at the terminal; without one nothing is approved.
    Ask,
    /// Everything that the folders and hosts above allow.
    All,
    /// Nothing.
    None,
}
