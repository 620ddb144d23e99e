//! The arguments of `outrigger js`, and their notations.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use outrigger_mustard::host::{Limits, Plain};

use super::json::FromJson;
use crate::args::{Bytes, duration};

const RUN_HELP: &str = "\
Exit status:
  0    done
  1    the script failed
  3    a limit or the time was exceeded
  4    it is not a valid script
  75   the run waits for somebody and is kept
  125  outrigger itself failed
  130  stopped by Ctrl-C

Examples:
  outrigger js run script.js
  echo 'n * 2' | outrigger js run - --input n=21
  outrigger js run report.js --allow load_user='./load-user.sh' --allow now='json:\"2026-01-01\"'
  outrigger js run deploy.js --allow approve     (it is kept at approve(); js resume goes on)
  outrigger js run notes.js --mcp fs='npx -y @modelcontextprotocol/server-filesystem .'
  outrigger --json js run script.js --instructions 5000000 --heap 64M";

const STEP_HELP: &str = "\
At each call: type JSON to answer, `error MESSAGE` to throw, `call` to let the capability's own command answer, `keep` to
leave the run for later, `quit` to cancel it, `help` for more. Any name the script calls can be granted with --allow.

Examples:
  outrigger js step script.js --allow approve --allow fetch='curl -s https://example.com/data.json'";

#[derive(Subcommand)]
pub(crate) enum JsCommand {
    /// Run a script in a sandbox against the capabilities it is given.
    #[command(after_help = RUN_HELP)]
    Run(Box<ScriptArgs>),
    /// Run a script and stop at every host call: look at the arguments, answer, or leave it for later.
    #[command(after_help = STEP_HELP)]
    Step(Box<ScriptArgs>),
    /// Go on with a run that was kept at a host call.
    Resume(Box<ResumeArgs>),
    /// Show what a kept run waits for, how big it is and what it may do. Runs nothing.
    Inspect(InspectArgs),
    /// Remove kept runs. One that is being run at this moment stays.
    Forget(ForgetArgs),
    /// Measure a script: time to start, to compile, to run, and the price of a host call.
    Bench(Box<BenchArgs>),
}

/// What a script is given.
#[derive(Args)]
pub(crate) struct WorldArgs {
    /// A global variable of the script: NAME=JSON. May be given many times.
    #[arg(long = "input", value_name = "NAME=JSON", help_heading = "What the script is given")]
    pub(crate) inputs: Vec<InputArg>,

    /// Read all inputs from a JSON object in a file.
    #[arg(long, value_name = "FILE", help_heading = "What the script is given")]
    pub(crate) inputs_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

    /// Seed of Math.random: the same seed gives the same run.
    #[arg(long, value_name = "NUMBER", help_heading = "What the script is given")]
    pub(crate) seed: Option<u64>,

    /// What the script's clock says, in milliseconds since 1970.
    #[arg(long, value_name = "MS", help_heading = "What the script is given")]
    pub(crate) now: Option<f64>,

    /// `return` at top level ends the script with that value.
    #[arg(long, help_heading = "What the script is given")]
    pub(crate) lenient_return: bool,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Who answers host calls.
#[derive(Args)]
pub(crate) struct ToolArgs {
    /// A capability: NAME=COMMAND (arguments as a JSON array on its standard input, the answer as JSON on its standard
    /// output), NAME=json:VALUE (always that), or NAME alone (the run stops there and is kept until somebody answers).
    #[arg(long, value_name = "NAME[=HOW]", help_heading = "What the script is given")]
    pub(crate) allow: Vec<AllowArg>,

    /// Every tool of an MCP server as a capability: COMMAND or PREFIX=COMMAND (then their names begin with PREFIX_).
    #[arg(long, value_name = "[PREFIX=]COMMAND", help_heading = "What the script is given")]
    pub(crate) mcp: Vec<McpArg>,
}

/// How much a script may use.
#[derive(Args, Clone, Copy)]
pub(crate) struct LimitArgs {
    /// Several limits at once, by their names in the protocol: NAME=NUMBER,… or a JSON object. The options below win.
    #[arg(long, value_name = "LIMITS", help_heading = "Limits")]
    pub(crate) limits: Option<LimitsArg>,

    /// Instructions in all [default: 1000000].
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) instructions: Option<u64>,

    /// Memory of the script, for example 64M [default: 8M].
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) heap: Option<Bytes>,

    /// Objects alive at once [default: 250000].
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) objects: Option<u64>,

    /// Calls inside calls [default: 256].
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) call_depth: Option<u64>,

    /// Host calls that wait at once [default: 128].
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) host_calls: Option<u64>,

    /// How long the script may compute between two host calls.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", help_heading = "Limits")]
    pub(crate) deadline: Duration,

    /// How long the whole run may take [default: for ever].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
}

/// Where runs are kept.
#[derive(Args)]
pub(crate) struct StoreArgs {
    /// Where runs are kept that wait for somebody: a folder, or a file that ends in .db or .sqlite [default: the user's
    /// data folder; OUTRIGGER_JS_STORE names another].
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
}

/// A script and what it is given.
#[derive(Args)]
pub(crate) struct ScriptArgs {
    /// The script, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) world: WorldArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Args)]
#[command(after_help = "\
A kept run can be resumed once; a second time needs --replay. Exit status as of `js run`.

Examples:
  outrigger js resume 4f1c…                     the ticket that `js run` printed
  outrigger js resume 4f1c… --answer '{\"ok\":true}'
  outrigger js resume 4f1c… --error 'not today'
  outrigger js resume 4f1c… --answer 2='\"later\"'    for the call with the number 2")]
pub(crate) struct ResumeArgs {
    /// The ticket of the kept run; its beginning is enough if no other begins like it.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) ticket: String,

    /// Answer a waiting call: JSON for the first one, or NUMBER=JSON.
    #[arg(long = "answer", value_name = "[NUMBER=]JSON")]
    pub(crate) answers: Vec<AnswerArg>,

    /// Throw an error from the first waiting call instead.
    #[arg(long, value_name = "MESSAGE", conflicts_with = "answers")]
    pub(crate) error: Option<String>,

    /// Resume a run again that was resumed before. Its effects happen again too.
    #[arg(long)]
    pub(crate) replay: bool,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger js inspect              every run that is kept
  outrigger js inspect 4f1c…")]
pub(crate) struct InspectArgs {
    /// The ticket of a kept run; without it, all of them are listed.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) ticket: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Args)]
#[command(after_help = "\
Each line of `js inspect` is one thing that can be forgotten. If one of several names is wrong, nothing is.

Examples:
  outrigger js forget 4f1c…         the ticket that `js run` printed, or its beginning
  outrigger js forget 4f1c… 90ab…
  outrigger js forget --all         everything but what is being run")]
pub(crate) struct ForgetArgs {
    /// Tickets or runs as `js inspect` lists them; a beginning is enough if no other begins like it.
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) runs: Vec<String>,

    /// Forget everything that is kept.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Args)]
#[command(after_help = "\
Capabilities are answered with `null` at once unless --allow NAME=json:VALUE says otherwise.

Examples:
  outrigger js bench script.js
  outrigger js bench script.js --runs 1000 --allow load_user=json:'{\"id\":1}'")]
pub(crate) struct BenchArgs {
    /// The script.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// How often it is run.
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) runs: u32,

    #[command(flatten)]
    pub(crate) world: WorldArgs,
}

/// `NAME=JSON`
#[derive(Clone)]
pub(crate) struct InputArg {
    pub(crate) name: String,
    pub(crate) value: Plain,
}

/// `NAME`, `NAME=COMMAND` or `NAME=json:VALUE`
#[derive(Clone)]
pub(crate) enum AllowArg {
    Command { name: String, command: String },
    Fixed { name: String, value: Plain },
    Person { name: String },
}

/// `COMMAND` or `PREFIX=COMMAND`
#[derive(Clone)]
pub(crate) struct McpArg {
    pub(crate) prefix: Option<String>,
    pub(crate) command: String,
}

/// `JSON` or `NUMBER=JSON`
#[derive(Clone)]
pub(crate) struct AnswerArg {
    pub(crate) call: Option<u64>,
    pub(crate) value: Plain,
}

/// `NAME=NUMBER,…` or a JSON object
#[derive(Clone, Copy)]
pub(crate) struct LimitsArg(pub(crate) Limits);

impl FromStr for LimitsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut limits = Limits::DEFAULTS;
        for (name, number) in named_numbers(text)? {
            let limit = match name.as_str() {
                "instruction_budget" => &mut limits.instruction_budget,
                "heap_limit_bytes" => &mut limits.heap_limit_bytes,
                "allocation_budget" => &mut limits.allocation_budget,
                "call_depth_limit" => &mut limits.call_depth_limit,
                "max_outstanding_host_calls" => &mut limits.max_outstanding_host_calls,
                _ => {
                    return Err(format!(
                        "there is no limit `{name}`; there are instruction_budget, heap_limit_bytes, allocation_budget, \
                         call_depth_limit and max_outstanding_host_calls"
                    ));
                }
            };
            *limit = Some(number);
        }
        Ok(LimitsArg(limits))
    }
}

fn named_numbers(text: &str) -> Result<Vec<(String, u64)>, String> {
    if text.trim_start().starts_with('{') {
        let read: Result<std::collections::BTreeMap<String, u64>, _> = serde_json::from_str(text);
        let read = read.map_err(|error| format!("limits are names and whole numbers ({error})"))?;
        return Ok(read.into_iter().collect());
    }
    let pair = |part: &str| {
        let (name, number) = part.split_once('=').ok_or_else(|| format!("`{part}` is not NAME=NUMBER"))?;
        let number = number.trim().parse().map_err(|_| format!("`{number}` is not a whole number"))?;
        Ok((name.trim().to_owned(), number))
    };
    text.split(',').map(pair).collect()
}

impl AllowArg {
    pub(crate) fn name(&self) -> &str {
        match self {
            AllowArg::Command { name, .. } | AllowArg::Fixed { name, .. } | AllowArg::Person { name } => name,
        }
    }
}

fn json(text: &str) -> Result<Plain, String> {
    let read: Result<FromJson, _> = serde_json::from_str(text);
    read.map(|FromJson(plain)| plain).map_err(|error| {
        format!("`{text}` is not JSON ({error}); a text needs quotes: '\"{}\"'", text.escape_default())
    })
}

impl FromStr for InputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("NAME=JSON is needed, for example n=21")?;
        if name.is_empty() {
            return Err("the name is missing before `=`".to_owned());
        }
        Ok(InputArg { name: name.to_owned(), value: json(value)? })
    }
}

impl FromStr for AllowArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, how) = match text.split_once('=') {
            Some((name, how)) => (name, Some(how)),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("the capability has no name".to_owned());
        }
        let name = name.to_owned();
        match how {
            None => Ok(AllowArg::Person { name }),
            Some("") => {
                Err(format!("what answers `{name}`? Give a command, json:VALUE, or leave out the `=`"))
            }
            Some(how) => match how.strip_prefix("json:") {
                Some(value) => Ok(AllowArg::Fixed { name, value: json(value)? }),
                None => Ok(AllowArg::Command { name, command: how.to_owned() }),
            },
        }
    }
}

impl FromStr for McpArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let (prefix, command) = match text.split_once('=') {
            Some((prefix, command)) if is_name(prefix) => (Some(prefix.to_owned()), command),
            _ => (None, text),
        };
        if command.trim().is_empty() {
            return Err("the command that starts the server is missing".to_owned());
        }
        Ok(McpArg { prefix, command: command.to_owned() })
    }
}

impl FromStr for AnswerArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((number, value)) = text.split_once('=')
            && let Ok(call) = number.parse()
        {
            return Ok(AnswerArg { call: Some(call), value: json(value)? });
        }
        Ok(AnswerArg { call: None, value: json(text)? })
    }
}
