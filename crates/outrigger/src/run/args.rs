//! What can be asked of `outrigger run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::{SandboxArg, duration};

#[derive(Args)]
#[command(after_help = "\
Exit status:
  0    complete
  1    failed: the backend said so, crashed, gave up or did what the policy denies
  3    partial: a budget or the time ended it, or the backend said so
  4    protocol error: the backend does not speak abp, or not our version of it
  125  outrigger itself failed, or the order is wrong
  130  cancelled

Ctrl-C once cancels the run (the backend may still hand in its receipt); twice kills it. When standard input is a
pipe and its other end closes, the owner is gone and the run is cancelled too. Either way there is a receipt, and
nothing is left running.

Examples:
  outrigger run \"say hello\" --backend mock
  outrigger run \"fix the test\" --backend claude          ask before it acts; type to steer it
  outrigger run \"and the docs\" --backend claude --resume 5f0c…           go on where it was
  outrigger run \"fix the test\" --backend 'acp:opencode acp' --apply
  outrigger run \"fix the test\" --sidecar 'node my-agent.js' --budget-usd 0.50 --timeout 10m
  outrigger run \"tidy up\" --backend agent --in-place --policy policy.json --approve all
  outrigger run --order order.json --backend agent --json --out receipt.json
  outrigger run \"rename it\" --backend agent --apply        take the patch over when the run is complete")]
pub(crate) struct RunArgs {
    /// What is to be done.
    #[arg(value_name = "TASK", required_unless_present = "order")]
    pub(crate) task: Option<String>,

    /// The backend to use: claude, codex, cursor, acp:COMMAND, mock, or one of the configuration [default: default_backend, else
    /// mock].
    #[arg(long, value_name = "NAME", env = "OUTRIGGER_BACKEND", conflicts_with = "sidecar")]
    pub(crate) backend: Option<String>,

    /// A child that speaks abp, as a command line: words, with quotes around those that have spaces.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) sidecar: Option<String>,

    /// The work order as a JSON file, or - for standard input; what the command line says wins.
    #[arg(long, value_name = "FILE")]
    pub(crate) order: Option<PathBuf>,

    /// The configuration [default: ./outrigger.toml, else ./backplane.toml].
    #[arg(long, value_name = "FILE", env = "OUTRIGGER_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The folder to work on [default: that of the order, else this one].
    #[arg(long, value_name = "DIR", help_heading = "Workspace")]
    pub(crate) root: Option<PathBuf>,

    /// Work on a copy; the result is a patch [default, unless the order says otherwise].
    #[arg(long, help_heading = "Workspace")]
    pub(crate) staged: bool,

    /// Work on the folder itself.
    #[arg(long, conflicts_with_all = ["staged", "apply", "keep"], help_heading = "Workspace")]
    pub(crate) in_place: bool,

    /// Copy only what matches (repeatable).
    #[arg(long, value_name = "GLOB", help_heading = "Workspace")]
    pub(crate) include: Vec<String>,

    /// Leave out what matches (repeatable).
    #[arg(long, value_name = "GLOB", help_heading = "Workspace")]
    pub(crate) exclude: Vec<String>,

    /// Apply the patch to the folder when the run is complete; refused, and nothing changed, if it has moved on.
    #[arg(long, help_heading = "Workspace")]
    pub(crate) apply: bool,

    /// Keep the copy even when all went well.
    #[arg(long, help_heading = "Workspace")]
    pub(crate) keep: bool,

    /// The policy profile as a JSON file: lists of globs for tools, files and hosts.
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub(crate) policy: Option<PathBuf>,

    /// Who approves what the policy wants approved.
    #[arg(long, value_enum, value_name = "WHO", default_value = "ask", help_heading = "Rules")]
    pub(crate) approve: ApproveArg,

    /// How long an approval may take; then it is denied.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration, help_heading = "Rules")]
    pub(crate) approve_within: Duration,

    /// What a reported action that the policy denies does to the run.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "end", help_heading = "Rules")]
    pub(crate) on_denied: OnDeniedArg,

    /// The most money, in US dollars.
    #[arg(long, value_name = "X", help_heading = "Rules")]
    pub(crate) budget_usd: Option<f64>,

    /// The most tokens, read and written together.
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub(crate) max_tokens: Option<u64>,

    /// The most turns.
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub(crate) max_turns: Option<u32>,

    /// The longest the run may take.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Rules")]
    pub(crate) timeout: Option<Duration>,

    /// The longest the backend may be silent.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Rules")]
    pub(crate) silence: Option<Duration>,

    /// How long it may take to say hello.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, help_heading = "Rules")]
    pub(crate) hello_within: Duration,

    /// Ping it this often; three unanswered pings in a row mean that it is stalled.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Rules")]
    pub(crate) ping: Option<Duration>,

    /// How much the backend is boxed in [default: that of the configuration, else basic].
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Rules")]
    pub(crate) sandbox: Option<SandboxArg>,

    /// A path that a strict box may read beside the workspace (repeatable).
    #[arg(long, value_name = "PATH", help_heading = "Rules")]
    pub(crate) read: Vec<PathBuf>,

    /// What to do with a line on its standard output that is no JSON, or of another run.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "fail", help_heading = "Rules")]
    pub(crate) noise: NoiseArg,

    /// The model, for backends that have a choice.
    #[arg(long, help_heading = "Order")]
    pub(crate) model: Option<String>,

    /// The conversation of a coding agent to go on with, as a run before named it.
    #[arg(long, value_name = "ID", help_heading = "Order")]
    pub(crate) resume: Option<String>,

    /// What a coding agent may do unasked: default, plan, acceptEdits, dontAsk, auto or bypassPermissions.
    #[arg(long, value_name = "MODE", help_heading = "Order")]
    pub(crate) permission_mode: Option<PermissionModeArg>,

    /// How hard a coding agent should think, as it calls that.
    #[arg(long, value_name = "LEVEL", help_heading = "Order")]
    pub(crate) effort: Option<String>,

    /// A picture for a coding agent (repeatable).
    #[arg(long, value_name = "FILE", help_heading = "Order")]
    pub(crate) image: Vec<PathBuf>,

    /// A capability it must have: NAME, NAME=native or NAME=emulated (repeatable).
    #[arg(long, value_name = "NAME[=LEVEL]", help_heading = "Order")]
    pub(crate) require: Vec<String>,

    /// A file that the backend should look at (repeatable).
    #[arg(long, value_name = "PATH", help_heading = "Order")]
    pub(crate) context: Vec<String>,

    /// A vendor setting: dots nest, the value is JSON or text (repeatable).
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Order")]
    pub(crate) param: Vec<String>,

    /// A variable for the backend, in its environment and in the order (repeatable).
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Order")]
    pub(crate) env: Vec<String>,

    /// Where the receipt goes [default: a file in the folder of receipts].
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) out: Option<PathBuf>,

    /// The folder of receipts [default: receipts_dir, else $XDG_DATA_HOME/outrigger/receipts].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_RECEIPTS", help_heading = "Result")]
    pub(crate) receipts: Option<PathBuf>,

    /// Sign the receipt with the key in this file; it is made if it is not there.
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) sign: Option<PathBuf>,
}

/// What a coding agent may do unasked, in its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "camelCase")]
pub(crate) enum PermissionModeArg {
    /// It asks.
    Default,
    /// It plans and changes nothing.
    Plan,
    /// Edits are accepted, the rest is asked for.
    AcceptEdits,
    /// What is not allowed already is denied.
    DontAsk,
    /// It judges by itself.
    Auto,
    /// It does not ask. The policy still counts.
    BypassPermissions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ApproveArg {
    /// Whoever sits at this terminal; or another process, with `outrigger approvals`.
    Ask,
    /// Everything is approved.
    All,
    /// Nothing is.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OnDeniedArg {
    /// It is ended.
    End,
    /// It is warned about and goes on.
    Warn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NoiseArg {
    /// The run fails, and the error shows the line.
    Fail,
    /// It is skipped with a warning.
    Skip,
}
