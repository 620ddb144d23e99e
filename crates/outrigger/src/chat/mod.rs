//! `outrigger chat`: a conversation with an agent in the steerable runtime, on a terminal or in a pipe.

mod archive;
pub(crate) mod args;
pub(crate) mod ask;
mod keys;
mod line;
mod screen;
mod settings;
mod show;
mod terminal;
mod turn;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use outrigger_steerable::host::{NewSession, Sidecar, SidecarSpec, Terms};
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

pub(crate) use self::archive::{find_trace, recent_traces};

use self::archive::Conversation;
use self::args::ChatArgs;
use self::ask::{Asked, Asker};
use self::keys::Key;
use self::line::{Line, Typed};
use self::screen::Screen;
use self::settings::Settings;
use self::show::CANCELLED;
use self::terminal::Terminal;
use self::turn::Around;
use crate::args::StdinArg;
use crate::config::Config;
use crate::exec::owner::{Owner, Wish};
use crate::say::{self, Format};
use crate::trees;

/// The longest prompt that is read from standard input.
const MAX_PROMPT: u64 = 8 << 20;

/// Does what `outrigger chat` was asked for.
pub(crate) fn run(args: ChatArgs, format: Format) -> anyhow::Result<ExitCode> {
    if args.sessions {
        return archive::list(format);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(go(args, format))?;
    // A thread may still wait for a key that nobody presses.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

async fn go(args: ChatArgs, format: Format) -> anyhow::Result<u8> {
    let config = Config::find(args.config.as_deref())?;
    let grants = settings::grants(&args)?;
    let mut terminal = match (format, &args.prompt) {
        (Format::Text, _) => Terminal::open()?,
        (Format::Json, _) => None,
    };
    let settings = Settings::new(&args, &config, terminal.is_some())?;
    // A pipe that brings the prompt may close; one that brings nothing is the lifeline of our owner.
    let (prompt, stdin) = match (args.prompt.clone(), &terminal) {
        (Some(prompt), _) => (Some(prompt), StdinArg::Lifeline),
        (None, Some(_)) => (None, StdinArg::Null),
        (None, None) => (Some(read_prompt()?), StdinArg::Null),
    };
    let stdin = if terminal.is_some() { StdinArg::Null } else { stdin };
    let mut owner = Owner::watch(stdin)?;
    let conversation = Conversation::open(args.session.as_deref(), args.continue_last)?;
    let (asker, asked) = Asker::new();
    let supervisor = trees::supervisor();
    let spec = sidecar(&conversation, grants)?;
    let sidecar = tokio::select! {
        started = Sidecar::start(&supervisor, &spec, Terms::usual(), Arc::new(asker)) => started?,
        _ = owner.next() => return Ok(CANCELLED),
    };
    if format == Format::Json {
        say::members(&[
            ("event", "started".into()),
            ("session", conversation.id.clone().into()),
            ("provider", settings.provider.clone().into()),
            ("model", settings.model.clone().into()),
            ("pid", json!(sidecar.pid())),
        ]);
    }
    let mut chat = Chat {
        format,
        screen: Screen::new(terminal.is_some()),
        terminal: terminal.take(),
        line: Line::default(),
        asked,
        owner,
        sidecar,
        settings,
        conversation,
        within: args.timeout,
        last_trace: None,
    };
    let code = match prompt {
        Some(prompt) => chat.turn(&prompt).await,
        None => chat.talk().await,
    };
    chat.screen.break_line();
    drop(chat.terminal.take());
    chat.sidecar.shutdown().await;
    if chat.conversation.is_new {
        chat.conversation.forget();
    }
    code
}

struct Chat {
    format: Format,
    screen: Screen,
    terminal: Option<Terminal>,
    line: Line,
    asked: mpsc::Receiver<Asked>,
    owner: Owner,
    sidecar: Sidecar,
    settings: Settings,
    conversation: Conversation,
    within: Option<std::time::Duration>,
    last_trace: Option<String>,
}

/// The prompt.
const YOU: &str = "›";

const HELP: &str = "\
Enter sends, Alt-Enter makes a new line, Up and Down recall, Esc or Ctrl-C cancels a turn, Ctrl-D leaves.
/tools    what the agent can use
/trace    what the last turn did, as a picture
/session  how to come back
/quit     leave";

impl Chat {
    /// Talks until the person leaves.
    async fn talk(&mut self) -> anyhow::Result<u8> {
        let Settings { provider, model, .. } = &self.settings;
        self.screen.note(&format!("{model} ({provider}) · {} · /help", self.conversation.id));
        while let Some(text) = self.typed().await {
            self.screen.sent(YOU, &text);
            match text.trim() {
                "/quit" | "/exit" => return Ok(0),
                "/help" => self.screen.note(HELP),
                "/session" => {
                    self.screen.note(&format!("outrigger chat --session {}", self.conversation.id));
                }
                "/trace" => self.show_trace().await,
                "/tools" => self.show_tools().await,
                word if word.starts_with('/') && !word.contains(char::is_whitespace) => {
                    self.screen.warn(&format!("there is no {word}; /help says what there is"));
                }
                _ => {
                    // The next turn may go better: a runtime that failed is started again.
                    if let Err(error) = self.turn(&text).await {
                        self.screen.bad(&crate::say::whole(&error));
                    }
                }
            }
        }
        Ok(0)
    }

    /// What the person sends; none when they leave.
    async fn typed(&mut self) -> Option<String> {
        loop {
            self.screen.draw(YOU, &self.line);
            let terminal = self.terminal.as_mut()?;
            let key = tokio::select! {
                key = terminal.key() => key?,
                wish = self.owner.next() => match wish {
                    Wish::Stop | Wish::Kill => return None,
                },
            };
            let was_interrupt = key == Key::Interrupt;
            match self.line.key(key) {
                Typed::Sent(text) => return Some(text),
                Typed::Over => return None,
                Typed::Stop if self.line.is_empty() && was_interrupt => {
                    self.screen.note("Ctrl-D or /quit leaves");
                }
                Typed::Stop => self.line.clear(),
                Typed::Nothing => {}
            }
        }
    }

    /// One turn, to its end.
    async fn turn(&mut self, text: &str) -> anyhow::Result<u8> {
        let mut params: Map<String, Value> = self.settings.members.clone();
        params.insert("recordId".to_owned(), self.conversation.id.clone().into());
        params.insert("chatId".to_owned(), self.conversation.id.clone().into());
        params.insert("messages".to_owned(), json!([{ "role": "user", "content": text }]));
        let stream = self.sidecar.stream(&params).await?;
        // A conversation whose first turn is refused is none.
        if std::mem::take(&mut self.conversation.is_new) {
            let mut session = NewSession::of_chat(&self.conversation.id);
            session.session_id = Some(self.conversation.id.clone());
            session.stage_data = serde_json::value::to_raw_value(&json!({ "title": say::short(text) })).ok();
            self.sidecar.create_session(&session).await?;
        }
        let around = Around {
            format: self.format,
            sidecar: &self.sidecar,
            screen: &mut self.screen,
            terminal: &mut self.terminal,
            line: &mut self.line,
            asked: &mut self.asked,
            owner: &mut self.owner,
            within: self.within,
        };
        let ending = turn::run(around, stream).await;
        self.last_trace = ending.trace.or(self.last_trace.take());
        Ok(ending.code)
    }

    async fn show_trace(&mut self) {
        let Some(id) = self.last_trace.clone() else {
            return self.screen.note("nothing was done yet");
        };
        match self.sidecar.trace(&outrigger_steerable::host::TraceOf::Trace(id)).await {
            Ok(record) => {
                self.screen.break_line();
                crate::trace::print(&record.trace, &record.spans);
            }
            Err(error) => self.screen.warn(&error.to_string()),
        }
    }

    async fn show_tools(&mut self) {
        match self.sidecar.tools().await {
            Ok(tools) if tools.is_empty() => {
                self.screen.note("none; --read, --write, --allow-host and --mcp give it some")
            }
            Ok(tools) => {
                for tool in tools {
                    self.screen.deed("•", &tool.name, &tool.description);
                }
            }
            Err(error) => self.screen.warn(&error.to_string()),
        }
    }
}

/// This program as a steerable sidecar, with the conversation's file and what it may reach.
fn sidecar(conversation: &Conversation, grants: Vec<String>) -> anyhow::Result<SidecarSpec> {
    let program = std::env::current_exe().context("our own program cannot be found")?;
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let mut request = Request::new(Level::Basic, Limits::as_the_host());
    request.network = Network::Allow;
    let spec = SidecarSpec::new("chat", program, here, request)
        .args(["sidecar", "steerable", "--log-level", "WARNING", "--storage-path"])
        .args([conversation.file.as_os_str()])
        .args(grants)
        .inherit_env();
    Ok(spec)
}

fn read_prompt() -> anyhow::Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_PROMPT + 1).read_to_string(&mut text);
    let read = read.context("standard input is not text")?;
    if read as u64 > MAX_PROMPT {
        bail!("the prompt on standard input has more than {MAX_PROMPT} bytes");
    }
    if text.trim().is_empty() {
        bail!("what should it be asked? outrigger chat \"…\", or something on standard input");
    }
    Ok(text)
}
