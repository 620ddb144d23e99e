//! The arguments of `outrigger runs`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger runs                                     the newest runs
  outrigger runs submit --task 'fix the test' --backend claude --workspace . --watch
  outrigger runs submit --script report.js --tool load=person --watch
  outrigger runs waiting                             what waits for you
  outrigger runs approve 0193 a1                     let it happen
  outrigger runs answer 0193 a1 --value '{\"ok\": true}'
  outrigger runs watch last                          as it happens

A run is named by its id, the beginning of it, or `last`.")]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// The folder of the daemon [default: $XDG_STATE_HOME/outrigger/daemon].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_STATE", global = true)]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// The newest runs.
    List {
        /// Only these: queued, running, waiting, completed, failed, cancelled; several with commas.
        #[arg(long)]
        phase: Option<String>,
        /// How many, up to 200.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
        limit: u16,
    },
    /// One run: where it is, what waits, how it ended.
    Show { run: String },
    /// What happens in a run, until it is over. Exits with 1 if it does not end well.
    Watch {
        run: String,
        /// From the record after this one.
        #[arg(long, default_value_t = 0)]
        after: u64,
    },
    /// Ask for a run.
    Submit(Box<Submit>),
    /// What waits for a person, over all runs.
    Waiting,
    /// Let it happen.
    Approve {
        #[command(flatten)]
        answering: Answering,
        /// And every later call of the same tool in that run.
        #[arg(long)]
        always: bool,
    },
    /// Do not let it happen.
    Deny {
        #[command(flatten)]
        answering: Answering,
        /// Said to the run.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let it happen with other arguments.
    Edit {
        #[command(flatten)]
        answering: Answering,
        /// JSON; for a script an array.
        #[arg(long)]
        arguments: String,
    },
    /// Answer in the place of the tool.
    Answer {
        #[command(flatten)]
        answering: Answering,
        /// JSON.
        #[arg(long)]
        value: String,
    },
    /// Say something to the agent of a run.
    Steer { run: String, text: String },
    /// End a run.
    Cancel {
        run: String,
        /// Why.
        #[arg(long, default_value = "cancelled by its user")]
        why: String,
    },
    /// Go on with a run that failed or was cancelled, or try one now that waits to be tried again.
    Resume { run: String },
    /// The same again as a run of its own.
    Fork {
        run: String,
        /// From this record on, a suspension of a script.
        #[arg(long)]
        at: Option<u64>,
    },
    /// A script again, with the answers that it got then.
    Replay { run: String },
    /// The receipt of a run.
    Receipt {
        run: String,
        /// Say whether it holds instead.
        #[arg(long)]
        check: bool,
    },
    /// Forget a run that is over. Its receipt stays.
    Forget { run: String },
}

#[derive(Args)]
pub(crate) struct Answering {
    pub(crate) run: String,
    /// Which approval; not needed if only one is open.
    pub(crate) approval: Option<String>,
}

#[derive(Args)]
pub(crate) struct Submit {
    /// A JSON file with the whole request; `-` for standard input.
    pub(crate) file: Option<PathBuf>,
    /// What an agent is to do.
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// A file with JavaScript.
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(crate) script: Option<PathBuf>,
    /// Who does it.
    #[arg(long)]
    pub(crate) backend: Option<String>,
    /// What to call it.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Its id, so that asking twice is asking once.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The folder that an agent works in, in a copy.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// In the folder itself, not in a copy.
    #[arg(long, requires = "workspace")]
    pub(crate) in_place: bool,
    /// What a script may call: NAME=person, NAME=TOOL, NAME=?TOOL (a person approves each call), NAME=:JSON (always this).
    #[arg(long = "tool", value_name = "NAME=WHAT", value_parser = ToolArg::parse)]
    pub(crate) tools: Vec<ToolArg>,
    /// A person lets every host call of a script through.
    #[arg(long)]
    pub(crate) step: bool,
    /// Stay and show what happens.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// `NAME=WHAT`
#[derive(Clone, Debug)]
pub(crate) struct ToolArg {
    name: String,
    what: String,
}

impl ToolArg {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, what) = text.split_once('=').unwrap_or((text, text));
        match name.is_empty() || what.is_empty() {
            true => Err(format!("`{text}`: write NAME=person, NAME=TOOL, NAME=?TOOL or NAME=:JSON")),
            false => Ok(Self { name: name.to_owned(), what: what.to_owned() }),
        }
    }

    /// As a member of `tools`.
    pub(crate) fn member(&self) -> anyhow::Result<(String, Value)> {
        let choice = match self.what.as_bytes().first() {
            Some(b':') => {
                let value: Value = serde_json::from_str(&self.what[1..]).with_context(|| {
                    format!("--tool {}={} is not JSON after the colon", self.name, self.what)
                })?;
                json!({"value": value})
            }
            Some(b'?') => json!({"approved": self.what[1..]}),
            _ if self.what == "person" => json!("person"),
            _ => json!({"tool": self.what}),
        };
        Ok((self.name.clone(), choice))
    }
}
