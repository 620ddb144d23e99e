//! The command line, as types: what can be asked for, with its help, and the parsers of the small notations.

mod notation;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use outrigger_supervise::sandbox::Level;

pub(crate) use crate::duration::duration;
pub(crate) use notation::{Bytes, CrashLimit, EnvArg, HeartbeatArg, ReadyArg};

use crate::agents::AgentsArgs;
use crate::approvals::ApprovalsCommand;
use crate::chat::args::ChatArgs;
use crate::check::CheckCommand;
use crate::config_cmd::ConfigCommand;
use crate::daemon::args::{DownArgs, UpArgs};
use crate::ext::args::ExtCommand;
use crate::js::args::JsCommand;
use crate::receipts::ReceiptsCommand;
use crate::run::args::RunArgs;
use crate::runs_cmd::args::RunsArgs;
use crate::stages::StagesCommand;
use crate::trace::TraceArgs;

/// Run the processes that live beside an application: keep them alive, keep them in their box, say what they did.
#[derive(Parser)]
#[command(name = "outrigger", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  outrigger up
  outrigger exec -- node sidecar.js
  outrigger exec --restart on-failure --ready line:listening -- ./server --port 8080
  outrigger exec --sandbox strict --read . --write ./out -- python3 job.py
  outrigger agents
  outrigger run \"fix the failing test\" --backend claude
  outrigger run \"fix the failing test\" --sidecar 'node my-agent.js'
  outrigger receipts verify receipt.json
  outrigger check abp -- node my-agent.js
  outrigger chat --provider ollama --model llama3.2
  outrigger js run script.js --allow load_user=./load-user.sh
  outrigger ext up
  outrigger doctor")]
pub(crate) struct Cli {
    /// Print one JSON object a line on standard output, and nothing else there.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the daemon: runs that survive restarts, approvals, an API and a dashboard on this machine.
    Up(Box<UpArgs>),
    /// End the daemon.
    Down(DownArgs),
    /// The runs of the daemon: ask for them, watch them, answer what waits.
    Runs(RunsArgs),
    /// The configuration: what is in force, and what is wrong with a file.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Run a program under supervision: ready gate, heartbeat, restarts, sandbox, and a stop that stops.
    Exec(Box<ExecArgs>),
    /// Give a work order to an agent backend: live events, policy, approvals, budgets, and a receipt at the end.
    Run(Box<RunArgs>),
    /// Which coding agents are here: versions, logins, models.
    Agents(AgentsArgs),
    /// What waits for a person, and the answers.
    Approvals {
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Check, show and compare the receipts that runs leave.
    Receipts {
        #[command(subcommand)]
        command: ReceiptsCommand,
    },
    /// The copies that runs worked in and that stayed.
    Stages {
        #[command(subcommand)]
        command: StagesCommand,
    },
    /// Say whether a sidecar keeps to its protocol, rule by rule, with the evidence.
    Check {
        #[command(subcommand)]
        command: CheckCommand,
    },
    /// Sandboxed scripts: run them, answer their host calls, keep them and take them up again.
    Js {
        #[command(subcommand)]
        command: JsCommand,
    },
    /// Talk to an agent: its words as they come, its tools, approvals, steering.
    Chat(Box<ChatArgs>),
    /// What a turn of a conversation did: a waterfall of its model calls and tools.
    Trace(TraceArgs),
    /// Extensions: a host that boxes them, gates every call they make, and writes down what it decided.
    Ext {
        #[command(subcommand)]
        command: ExtCommand,
    },
    /// Be the child: speak one of the dialects on standard input and output.
    Sidecar {
        #[command(subcommand)]
        which: Dialect,
    },
    /// Say what this machine can enforce, and what degrades.
    #[command(after_help = "Examples:\n  outrigger doctor\n  outrigger doctor --json")]
    Doctor,
    /// Print a completion script for a shell.
    #[command(
        after_help = "Examples:\n  outrigger completions bash > ~/.local/share/bash-completion/completions/outrigger\n  outrigger completions zsh > ~/.zfunc/_outrigger"
    )]
    Completions {
        /// The shell to write the script for.
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
pub(crate) enum Dialect {
    /// Sandboxed scripts that suspend at every host call: binary frames, or with --jsonl a JSON message a line.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Mustard {
        /// --jsonl, --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// An agent runtime: sessions, model streams, tools and traces over JSON-RPC lines.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Steerable {
        /// --log-level, --quiet-ready, --storage-path, --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// An agent backend that plays a script: events, delays, questions, an end.
    #[command(
        after_help = "Examples:\n  outrigger run \"say hello\" --backend mock\n  outrigger check abp -- outrigger sidecar abp-mock"
    )]
    AbpMock {
        /// What it does, as JSON {\"steps\":[{\"do\":…}]} [default: it says hello].
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
    },
    /// Any program as an agent backend: its lines are what the agent says, its exit code is the outcome.
    #[command(
        after_help = "Examples:\n  outrigger sidecar abp-process -- ./agent.sh\n  outrigger sidecar abp-process --task-in-args -- my-agent --prompt '{task}'"
    )]
    AbpProcess(ProcessArgs),
    /// A coding agent as an agent backend: claude, codex, cursor or acp:NAME, through the bridge.
    #[command(
        after_help = "Examples:\n  outrigger run \"say hello\" --backend claude\n  outrigger check abp -- outrigger sidecar abp-agent claude"
    )]
    AbpAgent(AgentArgs),
    /// An extension that answers messages and counts them: the one that `outrigger ext new --language rust` begins with.
    SepAutoreply {
        /// --text TEXT, --quiet-ms N, --protocol 1.0.0
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// A bridge to the real coding agents: Claude Code, Codex, Cursor and whatever speaks ACP.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Helmor {
        /// --claude, --codex, --cursor, --acp, --script, --record, --replay, --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
}

#[derive(Args)]
pub(crate) struct AgentArgs {
    /// claude, codex, cursor, scripted or acp:NAME.
    pub(crate) provider: String,

    /// The program, with arguments where it is one that speaks ACP; for `scripted` the file that is played.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Args)]
pub(crate) struct ProcessArgs {
    /// The task is only where an argument says {task}; standard input is empty.
    #[arg(long)]
    pub(crate) task_in_args: bool,

    /// Lines on its standard error are warnings of the run instead of a log.
    #[arg(long)]
    pub(crate) warn: bool,

    /// The program and its arguments; {task} in an argument is the task.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "\
Exit status:
  the program's own exit code     when it ended by itself or was asked to stop and did
  124  it was not ready in time, went silent, or ran past --timeout
  125  outrigger itself failed (for example: --sandbox required and a layer is missing)
  126  the program was found but could not be executed
  127  the program was not found
  128+N  it was ended by signal N

Signals: SIGINT, SIGTERM or SIGHUP once stops gracefully (ask, then SIGTERM, then SIGKILL of the whole
tree), twice stops now. A reader of the output that does not read holds up neither for longer than two
seconds. When standard input is a pipe and its other end closes, the owner is gone and
the program is stopped as well, unless --stdin says otherwise.

Examples:
  outrigger exec -- sleep 60
  outrigger exec --ready json:/type=ready --ready-within 5s -- node sidecar.js
  outrigger exec --restart always --crash-limit 5/10m --log-file sidecar.log -- ./sidecar
  outrigger exec --heartbeat silence:45s -- ./worker
  outrigger exec --sandbox strict --net deny --memory 512M -- python3 untrusted.py
  echo data | outrigger exec --stdin forward -- sort")]
pub(crate) struct ExecArgs {
    /// Name for the reports [default: the program's file name].
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// When the program counts as ready: none, line:TEXT (a stdout line containing TEXT), json:/FIELD=VALUE
    /// (a JSON line on stdout), stderr:PREFIX (a stderr line starting with PREFIX).
    #[arg(long, value_name = "GATE", default_value = "none", help_heading = "Life")]
    pub(crate) ready: ReadyArg,

    /// How long it may take to become ready.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, help_heading = "Life")]
    pub(crate) ready_within: Duration,

    /// How we know it is alive: none, silence:TIME (some output at least that often), beat:TEXT:TIME (a stdout
    /// line containing TEXT at least that often), ping:TIME or ping:TIME:MISSES (we write `ping N`, it answers `pong N`).
    #[arg(long, value_name = "RULE", default_value = "none", help_heading = "Life")]
    pub(crate) heartbeat: HeartbeatArg,

    /// What to do when it ends.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "never", help_heading = "Life")]
    pub(crate) restart: RestartArg,

    /// First pause before a restart; it doubles each time, up to a minute.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration, help_heading = "Life")]
    pub(crate) backoff: Duration,

    /// Give up after COUNT crashes within TIME (a true sliding window).
    #[arg(long, value_name = "COUNT/TIME", default_value = "5/10m", help_heading = "Life")]
    pub(crate) crash_limit: CrashLimit,

    /// How long it may leave forwarded input unread before it counts as stuck [default: for ever].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Life")]
    pub(crate) stall: Option<Duration>,

    /// Stop it after this long, whatever it does.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Life")]
    pub(crate) timeout: Option<Duration>,

    /// How long to wait after asking it to stop (its standard input is closed), before SIGTERM.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration, help_heading = "Life")]
    pub(crate) ask_within: Duration,

    /// How long to wait after SIGTERM, before SIGKILL of the whole tree.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration, help_heading = "Life")]
    pub(crate) term_within: Duration,

    /// How much the program is boxed in. `auto` is the strongest level this machine can hold; `required` is
    /// `strict` or nothing. Every level kills the whole tree at the end, whatever happens to outrigger.
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "basic", help_heading = "Box")]
    pub(crate) sandbox: SandboxArg,

    /// A path the program may read (strict and above; repeatable). System libraries and its own folder are readable.
    #[arg(long, value_name = "PATH", help_heading = "Box")]
    pub(crate) read: Vec<PathBuf>,

    /// A path the program may read and write (strict and above; repeatable).
    #[arg(long, value_name = "PATH", help_heading = "Box")]
    pub(crate) write: Vec<PathBuf>,

    /// Which sockets it may use at level strict and above.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "deny", help_heading = "Box")]
    pub(crate) net: NetArg,

    /// Largest address space of a process, such as 512M (programs that reserve much, like node, need gigabytes).
    #[arg(long, value_name = "BYTES", help_heading = "Box")]
    pub(crate) memory: Option<Bytes>,

    /// Processor time of a process.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Box")]
    pub(crate) cpu_time: Option<Duration>,

    /// Most files a process may hold open.
    #[arg(long, value_name = "COUNT", help_heading = "Box")]
    pub(crate) open_files: Option<u64>,

    /// Folder to run in [default: this one].
    #[arg(long, value_name = "DIR", help_heading = "Surroundings")]
    pub(crate) cwd: Option<PathBuf>,

    /// A variable for the program: NAME=VALUE, or NAME to pass ours on (repeatable). It starts with PATH, HOME, USER,
    /// LOGNAME, SHELL, LANG, LC_ALL, LC_CTYPE, TERM, TZ and TMPDIR only.
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Surroundings")]
    pub(crate) env: Vec<EnvArg>,

    /// Pass our whole environment on.
    #[arg(long, help_heading = "Surroundings")]
    pub(crate) env_all: bool,

    /// Standard input of the program. `lifeline` gives it none, and stops it when ours (a pipe) closes; `forward`
    /// copies ours, and its end is only the end of the input; `null` gives it none and ignores ours.
    #[arg(long, value_enum, value_name = "MODE", default_value = "lifeline", help_heading = "Surroundings")]
    pub(crate) stdin: StdinArg,

    /// Keep its standard error in this file too, rotated within --log-size.
    #[arg(long, value_name = "FILE", help_heading = "Surroundings")]
    pub(crate) log_file: Option<PathBuf>,

    /// Most that --log-file and its three rotated copies may take together.
    #[arg(long, value_name = "BYTES", default_value = "8M", help_heading = "Surroundings")]
    pub(crate) log_size: Bytes,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RestartArg {
    /// Run it once.
    Never,
    /// Again when it crashes, goes silent or exits with an error.
    OnFailure,
    /// Again whenever it ends.
    Always,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SandboxArg {
    /// Only the tree kill.
    Off,
    /// No new privileges, clean file descriptors, resource limits.
    Basic,
    /// And Landlock (files, TCP) and seccomp (system calls).
    Strict,
    /// The strongest level that works here.
    Auto,
    /// Strict, or do not start.
    Required,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NetArg {
    /// No new sockets at all.
    Deny,
    /// Unix sockets only.
    Unix,
    /// Any socket.
    Allow,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StdinArg {
    /// None; a closing pipe on ours means that our owner is gone.
    Lifeline,
    /// A copy of ours.
    Forward,
    /// None, and ours is not looked at.
    Null,
}

impl SandboxArg {
    /// The level of the box.
    pub(crate) fn level(self) -> Level {
        match self {
            SandboxArg::Off => Level::Off,
            SandboxArg::Basic => Level::Basic,
            SandboxArg::Strict => Level::Strict,
            SandboxArg::Auto => Level::Auto,
            SandboxArg::Required => Level::Required,
        }
    }
}
