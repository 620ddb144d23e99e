//! The last lines of a stream, bounded in number and in bytes.

use std::collections::VecDeque;

/// One line that a child wrote.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LogLine {
    /// Its text, with U+FFFD where it was not UTF-8.
    pub text: String,
    /// How many bytes were cut off its end because it was too long.
    pub cut_bytes: u64,
}

/// The last lines of a stream.
#[derive(Debug)]
pub struct Tail {
    lines: VecDeque<LogLine>,
    bytes: usize,
    max_lines: usize,
    max_bytes: usize,
    forgotten: u64,
}

impl Tail {
    /// An empty tail that keeps at most `max_lines` lines of at most `max_bytes` bytes together.
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, max_lines, max_bytes, forgotten: 0 }
    }

    /// Adds a line and forgets the oldest ones that no longer fit. A line that cannot fit at all is forgotten itself.
    pub fn push(&mut self, line: LogLine) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > self.max_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.forgotten += 1;
        }
    }

    /// The kept lines, oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.iter().cloned().collect()
    }

    /// How many lines came before the kept ones.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(max_lines: usize, max_bytes: usize, lines: &[&str]) -> (Vec<String>, u64) {
        let mut tail = Tail::new(max_lines, max_bytes);
        for text in lines {
            tail.push(LogLine { text: (*text).to_owned(), cut_bytes: 0 });
        }
        (tail.lines().into_iter().map(|line| line.text).collect(), tail.forgotten())
    }

    #[test]
    fn the_last_lines_are_kept_and_the_others_are_counted() {
        assert_eq!(tail_of(2, 100, &["a", "b"]), (vec!["a".into(), "b".into()], 0));
        assert_eq!(tail_of(2, 100, &["a", "b", "c"]), (vec!["b".into(), "c".into()], 1));
    }

    #[test]
    fn bytes_are_bounded_too_at_the_limit_and_one_past_it() {
        assert_eq!(tail_of(9, 4, &["ab", "cd"]), (vec!["ab".into(), "cd".into()], 0));
        assert_eq!(tail_of(9, 4, &["ab", "cde"]), (vec!["cde".into()], 1));
        assert_eq!(tail_of(9, 4, &["ab", "cdefg"]), (vec![], 2));
        assert_eq!(tail_of(0, 4, &["ab"]), (vec![], 1));
    }
}
