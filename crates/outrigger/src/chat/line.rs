//! The line that is being typed: a cursor, a history, and what a key does to them. Pure.

use super::keys::Key;

/// How many lines are remembered.
const MAX_HISTORY: usize = 200;

/// What a key came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Typed {
    /// The line is as it was, or looks different now.
    Nothing,
    /// It is sent.
    Sent(String),
    /// Escape or Ctrl-C: what is going on should stop.
    Stop,
    /// Ctrl-D on an empty line: it is over.
    Over,
}

/// The line and its cursor.
#[derive(Default)]
pub(super) struct Line {
    text: Vec<char>,
    at: usize,
    history: Vec<String>,
    /// Which line of the history is shown, from the end.
    back: usize,
    /// What was typed before the history was looked at.
    draft: Vec<char>,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.set(Vec::new());
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: Key) -> Typed {
        match key {
            Key::Text(c) => self.insert([c]),
            Key::NewLine => self.insert(['\n']),
            Key::Paste(text) => self.insert(text.chars().collect::<Vec<_>>()),
            Key::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            Key::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            Key::Left => self.at = self.at.saturating_sub(1),
            Key::Right => self.at = (self.at + 1).min(self.text.len()),
            Key::Home => self.at = 0,
            Key::End => self.at = self.text.len(),
            Key::KillLine => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            Key::KillWord => self.kill_word(),
            Key::Up => self.recall(self.back + 1),
            Key::Down => self.recall(self.back.saturating_sub(1)),
            Key::Enter => return self.send(),
            Key::Escape | Key::Interrupt => return Typed::Stop,
            Key::EndOfInput if self.text.is_empty() => return Typed::Over,
            Key::Backspace | Key::Delete | Key::EndOfInput | Key::Redraw => {}
        }
        Typed::Nothing
    }

    /// The part that fits into `width` columns, and how many of them are before the cursor.
    pub(super) fn window(&self, width: usize) -> (String, usize) {
        let width = width.max(1);
        let first = (self.at + 1).saturating_sub(width);
        let shown = self.text[first..].iter().take(width);
        let shown = shown.map(|c| if *c == '\n' { '⏎' } else { *c }).collect();
        (shown, self.at - first)
    }

    fn insert(&mut self, chars: impl IntoIterator<Item = char>) {
        for c in chars {
            if c != '\n' && c.is_control() {
                continue;
            }
            self.text.insert(self.at, c);
            self.at += 1;
        }
    }

    fn kill_word(&mut self) {
        let before = &self.text[..self.at];
        let blanks = before.iter().rev().take_while(|c| c.is_whitespace()).count();
        let word = before[..self.at - blanks].iter().rev().take_while(|c| !c.is_whitespace()).count();
        let from = self.at - blanks - word;
        self.text.drain(from..self.at);
        self.at = from;
    }

    fn recall(&mut self, back: usize) {
        if back > self.history.len() || back == self.back {
            return;
        }
        if self.back == 0 {
            self.draft = self.text.clone();
        }
        let text = match back {
            0 => std::mem::take(&mut self.draft),
            back => self.history[self.history.len() - back].chars().collect(),
        };
        self.set(text);
        self.back = back;
    }

    fn send(&mut self) -> Typed {
        let text: String = self.text.iter().collect();
        self.clear();
        if text.trim().is_empty() {
            return Typed::Nothing;
        }
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        if self.history.len() > MAX_HISTORY {
            self.history.remove(0);
        }
        Typed::Sent(text)
    }

    fn set(&mut self, text: Vec<char>) {
        self.at = text.len();
        self.text = text;
        self.back = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut Line, text: &str) {
        for c in text.chars() {
            assert_eq!(line.key(Key::Text(c)), Typed::Nothing);
        }
    }

    #[test]
    fn a_line_is_edited_in_its_middle_and_sent() {
        let mut line = Line::default();
        typed(&mut line, "helo");
        line.key(Key::Left);
        typed(&mut line, "l");
        assert_eq!(line.key(Key::Enter), Typed::Sent("hello".into()));
        assert!(line.is_empty());
    }

    #[test]
    fn blanks_are_not_sent() {
        let mut line = Line::default();
        typed(&mut line, "  ");
        assert_eq!(line.key(Key::Enter), Typed::Nothing);
    }

    #[test]
    fn the_history_gives_back_what_was_sent_and_the_draft_after_it() {
        let mut line = Line::default();
        for text in ["one", "two"] {
            typed(&mut line, text);
            line.key(Key::Enter);
        }
        typed(&mut line, "dra");
        line.key(Key::Up);
        line.key(Key::Up);
        line.key(Key::Up);
        assert_eq!(line.window(10).0, "one");
        line.key(Key::Down);
        line.key(Key::Down);
        assert_eq!(line.window(10), ("dra".into(), 3));
    }

    #[test]
    fn a_word_and_a_line_can_be_killed() {
        let mut line = Line::default();
        typed(&mut line, "one two  ");
        line.key(Key::KillWord);
        assert_eq!(line.window(20).0, "one ");
        line.key(Key::KillLine);
        assert!(line.is_empty());
    }

    #[test]
    fn a_line_wider_than_the_screen_shows_what_is_around_the_cursor() {
        let mut line = Line::default();
        typed(&mut line, "abcdefgh");
        assert_eq!(line.window(4), ("fgh".into(), 3));
        line.key(Key::Home);
        assert_eq!(line.window(4), ("abcd".into(), 0));
    }

    #[test]
    fn control_d_ends_only_an_empty_line() {
        let mut line = Line::default();
        typed(&mut line, "a");
        assert_eq!(line.key(Key::EndOfInput), Typed::Nothing);
        line.key(Key::Backspace);
        assert_eq!(line.key(Key::EndOfInput), Typed::Over);
    }
}
