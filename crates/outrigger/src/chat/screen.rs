//! What a person sees of a conversation: the words as they come, what is done in between, and the line they type.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use super::line::Line;
use super::terminal;
use crate::say::{printable, short};

/// Paints. Words of the model go to standard output and everything else to standard error, unless somebody types on the
/// same terminal: then everything is painted in one place, above the line that is typed.
pub(super) struct Screen {
    typing: bool,
    /// Text of a stranger could drive a terminal, and nothing else.
    terminal: bool,
    /// Whether the cursor stands behind words.
    in_line: bool,
    /// Whether the line that is typed is on the screen, at the bottom.
    drawn: bool,
}

const DIM: Style = Style::new().dimmed();
const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const WARN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
const YOU: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan))).bold();

impl Screen {
    /// `typing` says that a person types on this terminal.
    pub(super) fn new(typing: bool) -> Self {
        Self { typing, terminal: std::io::stdout().is_terminal(), in_line: false, drawn: false }
    }

    /// Words of the model, as they come.
    pub(super) fn words(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.erase();
        let text = if self.terminal { printable(text) } else { text.to_owned() };
        anstream::print!("{text}");
        self.in_line = !text.ends_with('\n');
        flush();
    }

    /// Thoughts of the model, as they come.
    pub(super) fn thoughts(&mut self, text: &str) {
        self.erase();
        match self.typing {
            true => anstream::print!("{DIM}{}{DIM:#}", printable(text)),
            false => anstream::eprint!("{DIM}{}{DIM:#}", printable(text)),
        }
        self.in_line = !text.ends_with('\n');
        flush();
    }

    /// A line about what is done.
    pub(super) fn deed(&mut self, mark: &str, name: &str, detail: &str) {
        self.line(&format!("{DIM}{mark}{DIM:#} {} {DIM}{}{DIM:#}", short(name), short(detail)));
    }

    /// A line about what did not work.
    pub(super) fn bad(&mut self, text: &str) {
        self.line(&format!("{BAD}✗ {}{BAD:#}", printable(text)));
    }

    /// A line that somebody should see.
    pub(super) fn warn(&mut self, text: &str) {
        self.line(&format!("{WARN}! {}{WARN:#}", printable(text)));
    }

    /// A line for those who want to know.
    pub(super) fn note(&mut self, text: &str) {
        self.line(&format!("{DIM}{}{DIM:#}", printable(text)));
    }

    /// A question; the answer is typed.
    pub(super) fn question(&mut self, text: &str) {
        self.line(&format!("{WARN}? {}{WARN:#}", printable(text)));
    }

    /// What was sent stays on the screen as if it had been typed there.
    pub(super) fn sent(&mut self, label: &str, text: &str) {
        self.line(&format!("{YOU}{label}{YOU:#} {}", printable(text)));
    }

    /// Puts the line that is typed at the bottom.
    pub(super) fn draw(&mut self, label: &str, line: &Line) {
        if !self.typing {
            return;
        }
        self.break_line();
        let columns = label.chars().count() + 1;
        let (shown, before) = line.window(terminal::width().saturating_sub(columns + 1));
        anstream::print!("\r\x1b[2K{YOU}{label}{YOU:#} {}\x1b[{}G", printable(&shown), columns + before + 1);
        self.drawn = true;
        flush();
    }

    /// Takes the line that is typed off the screen.
    pub(super) fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            anstream::print!("\r\x1b[2K");
            flush();
        }
    }

    /// Ends a line of words.
    pub(super) fn break_line(&mut self) {
        self.erase();
        if std::mem::take(&mut self.in_line) {
            anstream::println!();
        }
    }

    fn line(&mut self, text: &str) {
        self.break_line();
        match self.typing {
            true => anstream::println!("{text}"),
            false => anstream::eprintln!("{text}"),
        }
    }
}

fn flush() {
    // A reader that has gone wants nothing more.
    let _ = std::io::stdout().flush();
}
