//! `outrigger js step`: every host call is shown and waits for what the person says.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::Arc;

use anyhow::{Context, bail};
use outrigger_mustard::host::{Call, Canceller, Capabilities, HostError, Reply};
use serde::Serialize;
use tokio::sync::Mutex;

use super::args::ScriptArgs;
use super::json::{FromJson, Json};
use super::tool::{self, Tool, Tools};
use super::{console, keep, launch, run, show};
use crate::say::{self, Format, printable};
use crate::trees;

const HELP: &str = "\
  JSON            the call returns this value
  error MESSAGE   the call throws an error
  call            the capability's own command, value or MCP tool answers
  keep            leave the run as it is, to be resumed later
  quit            cancel the run
";

/// The longest line that a person can type.
const MAX_ANSWER: u64 = 32 << 20;

pub(crate) async fn step(args: ScriptArgs, format: Format) -> anyhow::Result<u8> {
    if args.file.as_os_str() == "-" {
        bail!("js step reads answers from standard input, so the script must be a file");
    }
    let source = launch::read_source(&args.file)?;
    let supervisor = trees::supervisor();
    let tools = tool::open(&args.world.tools.allow, &args.world.tools.mcp, &supervisor).await?;
    let keep = keep::open(&args.store)?;
    let host = launch::host(&supervisor, keep.key.clone())?;
    let script = match launch::compile(&host, &source, args.world.lenient_return).await {
        Ok(script) => script,
        Err(error) => return Ok(show::not_compiled(&error, &source.origin, format)),
    };
    let stepped = launch::run(&host, &script, &args.world)?;
    let person = Arc::new(Person { format, canceller: stepped.canceller(), turn: Mutex::new(()) });
    let table = asking(&tools, console::grant(Capabilities::none(), format), &person);
    let ended = match run::conduct(stepped.capabilities(table).store(keep.store)).await? {
        Some(ended) => ended,
        None => return Ok(show::INTERRUPTED),
    };
    Ok(show::ending(ended, &source.origin, format))
}

/// A table in which the person is asked first.
fn asking(tools: &Tools, mut table: Capabilities, person: &Arc<Person>) -> Capabilities {
    for (name, tool) in tools {
        let (person, tool) = (Arc::clone(person), tool.clone());
        table = table.on_call(name, move |call| {
            let (person, tool) = (Arc::clone(&person), tool.clone());
            async move { person.answer(call, &tool).await }
        });
    }
    table
}

struct Person {
    format: Format,
    canceller: Canceller,
    /// One question at a time.
    turn: Mutex<()>,
}

/// What a person can say to a call.
enum Said {
    Value(FromJson),
    Error(String),
    Call,
    Keep,
    Quit,
    Help,
}

#[derive(Serialize)]
struct CallEvent<'a> {
    event: &'static str,
    call: u64,
    capability: &'a str,
    args: Vec<Json<'a>>,
}

impl Person {
    async fn answer(&self, call: Call, tool: &Tool) -> Reply {
        let turn = self.turn.lock().await;
        self.show(&call);
        loop {
            let said = match self.listen().await {
                Ok(Some(line)) => parse(&line),
                // Nobody is there any more: nothing is lost.
                Ok(None) | Err(_) => return Reply::Park,
            };
            return match said {
                Ok(Said::Value(FromJson(value))) => Reply::Value(value),
                Ok(Said::Error(message)) => {
                    Reply::Error(HostError { name: "Error".to_owned(), message, code: None, details: None })
                }
                Ok(Said::Call) if matches!(tool, Tool::Person) => {
                    self.note("nothing answers this one by itself; give a value, or `keep`");
                    continue;
                }
                Ok(Said::Call) => {
                    drop(turn);
                    let answer = tool.answer(call.args).await;
                    match &answer {
                        Ok(value) => self.note(&format!("it answers {}", Json(value))),
                        Err(error) => self.note(&format!("it fails: {}", error.message)),
                    }
                    answer.into()
                }
                Ok(Said::Keep) => Reply::Park,
                Ok(Said::Quit) => {
                    self.canceller.cancel();
                    Reply::Park
                }
                Ok(Said::Help) => {
                    self.note(HELP.trim_end());
                    continue;
                }
                Err(complaint) => {
                    self.note(&complaint);
                    continue;
                }
            };
        }
    }

    fn show(&self, call: &Call) {
        match self.format {
            Format::Json => say::object(&CallEvent {
                event: "call",
                call: call.id.0,
                capability: &call.capability,
                args: call.args.iter().map(Json).collect(),
            }),
            Format::Text => {
                let args: Vec<String> = call.args.iter().map(|arg| Json(arg).to_string()).collect();
                let bold = anstyle::Style::new().bold();
                let (name, args) = (printable(&call.capability), printable(&args.join(", ")));
                anstream::eprintln!("#{} {bold}{name}{bold:#}({args})", call.id);
            }
        }
    }

    fn note(&self, text: &str) {
        match self.format {
            Format::Json => say::line(&serde_json::json!({ "event": "note", "message": text })),
            Format::Text => anstream::eprintln!("{}", printable(text)),
        }
    }

    /// The next line that the person types; none when they are gone.
    async fn listen(&self) -> anyhow::Result<Option<String>> {
        if self.format == Format::Text && std::io::stdin().is_terminal() {
            let mut stderr = std::io::stderr();
            write!(stderr, "answer (JSON, or help)> ")
                .and_then(|()| stderr.flush())
                .context("standard error")?;
        }
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            let count = std::io::stdin().lock().take(MAX_ANSWER + 1).read_line(&mut line)?;
            anyhow::ensure!(count as u64 <= MAX_ANSWER, "an answer is longer than {MAX_ANSWER} bytes");
            Ok((count > 0).then_some(line))
        });
        read.await.context("the reader of standard input failed")?
    }
}

fn parse(line: &str) -> Result<Said, String> {
    let line = line.trim();
    match line {
        "" | "help" | "?" => return Ok(Said::Help),
        "call" => return Ok(Said::Call),
        "keep" => return Ok(Said::Keep),
        "quit" | "exit" => return Ok(Said::Quit),
        "undefined" => return Ok(Said::Value(FromJson(outrigger_mustard::host::Plain::Undefined))),
        _ => {}
    }
    if let Some(message) = line.strip_prefix("error ") {
        return Ok(Said::Error(message.trim().to_owned()));
    }
    serde_json::from_str(line).map(Said::Value).map_err(|error| {
        format!("this is neither JSON ({error}) nor a word I know; `help` lists them, a text needs quotes")
    })
}
