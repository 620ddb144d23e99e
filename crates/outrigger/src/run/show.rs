//! What a person sees of a run: what the agent says on standard output, what it does on standard error, folded to a line each.

use std::io::{IsTerminal, Write};

use outrigger_abp::protocol::{AgentEvent, EventKind, Raw};

use crate::say::{gist, printable, short};

/// How much of what was streamed is remembered, to recognise a message that only repeats it.
const MAX_REMEMBERED: usize = 1 << 20;

/// Shows a run as it goes.
pub(super) struct Screen {
    /// What was streamed since the last message, as far as it is remembered.
    streamed: String,
    /// A command that was shown when it began.
    command: String,
    /// Whether the cursor stands behind something.
    in_line: bool,
    /// Text of a stranger could drive a terminal, and nothing else.
    terminal: bool,
    paint: Paint,
}

/// The styles, which are empty where nobody would see them.
#[derive(Clone, Copy)]
struct Paint {
    dim: anstyle::Style,
    bad: anstyle::Style,
    warn: anstyle::Style,
    good: anstyle::Style,
}

impl Paint {
    fn new() -> Self {
        use anstyle::{AnsiColor, Style};
        Self {
            dim: Style::new().dimmed(),
            bad: Style::new().fg_color(Some(AnsiColor::Red.into())),
            warn: Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            good: Style::new().fg_color(Some(AnsiColor::Green.into())),
        }
    }
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            streamed: String::new(),
            command: String::new(),
            in_line: false,
            terminal: std::io::stdout().is_terminal(),
            paint: Paint::new(),
        }
    }

    /// One event of the agent.
    pub(super) fn event(&mut self, event: &AgentEvent<'_>) {
        let Paint { dim, bad, warn, .. } = self.paint;
        match &event.kind {
            EventKind::AssistantDelta { text } => self.stream(text),
            EventKind::AssistantMessage { text } => self.message(text),
            // The command is the call.
            EventKind::ToolCall { input, .. }
                if !self.command.is_empty() && said(input, "command") == self.command => {}
            EventKind::ToolCall { tool_name, input, .. } => {
                let line = format!(
                    "{dim}•{dim:#} {} {dim}{}{dim:#}",
                    short(tool_name),
                    short(&gist(input.as_str()))
                );
                self.line(&line);
            }
            EventKind::ToolResult { tool_name, output, is_error: true, .. } => {
                self.line(&format!("  {bad}✗ {}: {}{bad:#}", short(tool_name), short(&plain(output))));
            }
            // A call that went well is worth no second line.
            EventKind::ToolResult { is_error: false, .. } => {}
            EventKind::FileChanged { path, summary } => {
                self.line(&format!("{dim}✎{dim:#} {} {dim}{}{dim:#}", short(path), short(summary)));
            }
            EventKind::CommandExecuted { command, exit_code, .. } => {
                let line = format!("{dim}${dim:#} {}", short(command));
                let shown = std::mem::take(&mut self.command) == **command;
                match exit_code {
                    None | Some(0) if shown => {}
                    None | Some(0) => self.line(&line),
                    Some(code) => self.line(&format!("{line} {bad}(exit code {code}){bad:#}")),
                }
            }
            EventKind::Other { kind, members } if kind == "command_started" => {
                self.command = said(members, "command");
                self.line(&format!("{dim}${dim:#} {}", short(&self.command)));
            }
            EventKind::Warning { message } => self.line(&format!("{warn}! {}{warn:#}", short(message))),
            EventKind::Error { message, error_code } => {
                let code = error_code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
                self.line(&format!("{bad}✗ {}{code}{bad:#}", short(message)));
            }
            EventKind::Other { kind, members } if kind == "user_prompt" => {
                self.line(&format!("{dim}»{dim:#} {}", short(&said(members, "text"))));
            }
            EventKind::RunStarted { .. }
            | EventKind::RunCompleted { .. }
            | EventKind::Usage(_)
            | EventKind::Other { .. } => {}
        }
    }

    /// Something of our own.
    pub(super) fn note(&mut self, text: &str) {
        let dim = self.paint.dim;
        self.line(&format!("{dim}{}{dim:#}", printable(text)));
    }

    /// Something that is not as it should be.
    pub(super) fn warn(&mut self, text: &str) {
        let warn = self.paint.warn;
        self.line(&format!("{warn}! {}{warn:#}", printable(text)));
    }

    /// A question, without a new line behind it.
    pub(super) fn ask(&mut self, text: &str) {
        self.break_line();
        let warn = self.paint.warn;
        anstream::eprint!("{warn}? {}{warn:#} ", printable(text));
    }

    /// The last line of a run that went well.
    pub(super) fn good(&mut self, text: &str) {
        let good = self.paint.good;
        self.line(&format!("{good}✔{good:#} {}", printable(text)));
    }

    /// The last lines of one that did not.
    pub(super) fn bad(&mut self, text: &str) {
        let bad = self.paint.bad;
        self.line(&format!("{bad}✗{bad:#} {}", printable(text)));
    }

    /// A patch, coloured as people are used to. Of binary files only their names.
    pub(super) fn patch(&mut self, text: &str) {
        let Paint { dim, bad, good, .. } = self.paint;
        self.break_line();
        let mut binary = false;
        for line in text.lines() {
            binary = match line {
                "GIT binary patch" => true,
                line if line.starts_with("diff --git ") => false,
                _ => binary,
            };
            if binary && line != "GIT binary patch" {
                continue;
            }
            let line = printable(line);
            let style = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => dim,
                [b'+', ..] => good,
                [b'-', ..] => bad,
                [b' ', ..] => anstyle::Style::new(),
                _ => dim,
            };
            anstream::eprintln!("{style}{line}{style:#}");
        }
    }

    fn stream(&mut self, text: &str) {
        if self.streamed.len() + text.len() <= MAX_REMEMBERED {
            self.streamed.push_str(text);
        }
        self.say(text);
    }

    /// A message that repeats what was streamed only ends its line.
    fn message(&mut self, text: &str) {
        let repeats = std::mem::take(&mut self.streamed);
        if repeats != text {
            self.break_line();
            self.say(text);
        }
        self.break_line();
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let shown = if self.terminal { printable(text) } else { text.to_owned() };
        let mut stdout = std::io::stdout();
        // A reader that has gone wants nothing more.
        let _ = stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush());
        self.in_line = !text.ends_with('\n');
    }

    fn line(&mut self, text: &str) {
        self.break_line();
        anstream::eprintln!("{text}");
    }

    fn break_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            let _ = writeln!(std::io::stdout());
        }
    }
}

/// A member that is a text.
fn said(members: &Raw<'_>, name: &str) -> String {
    members.to_value()[name].as_str().unwrap_or_default().to_owned()
}

/// The text of a result, if it is one.
fn plain(output: &Raw<'_>) -> String {
    output.parse::<String>().unwrap_or_else(|_| output.as_str().to_owned())
}
