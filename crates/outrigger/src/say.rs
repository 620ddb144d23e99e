//! What the program says of itself: JSON objects on standard output, or sentences on standard error.

use std::io::Write;

use serde_json::{Value, json};

/// The longest piece of a tool's input or output that is shown.
const MAX_SHOWN: usize = 100;

/// Who reads us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// A person.
    Text,
    /// A program: one JSON object a line on standard output, nothing else there.
    Json,
}

/// Reports a failure of the program itself, with everything that led to it.
pub(crate) fn failure(format: Format, error: &anyhow::Error) {
    match format {
        Format::Text => anstream::eprintln!("{}: {}", label(), whole(error)),
        Format::Json => line(&json!({ "event": "error", "message": whole(error) })),
    }
}

/// An error with everything that led to it. What a sentence has said already is not said again.
pub(crate) fn whole(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Control characters that a stranger could drive a terminal with, made visible. Line ends and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_debug()),
            // They turn the reading direction, so that a text says something else than it shows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// So many files.
pub(crate) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// One line, fit to be shown, cut where it becomes long.
pub(crate) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = printable(line).chars().take(MAX_SHOWN).collect();
    if shown.chars().count() < line.chars().count() || line.len() < text.trim_end().len() {
        shown.push('…');
    }
    shown
}

/// What a call is about: the one member that says most, else its input as it is.
pub(crate) fn gist(input: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str(input) else { return input.to_owned() };
    let telling = ["command", "file_path", "path", "pattern", "url", "query", "description"];
    let found = telling.iter().find_map(|name| members.get(*name)?.as_str());
    found.map_or_else(|| input.to_owned(), str::to_owned)
}

/// Prints one JSON object, in its own order of members, as a line of standard output.
pub(crate) fn object(object: &impl serde::Serialize) {
    // What is shown has string keys only; and a reader that has gone wants nothing more.
    let text = serde_json::to_string(object).unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints these members as one JSON object, in this order, as a line of standard output.
pub(crate) fn members(members: &[(&str, Value)]) {
    struct Ordered<'a>(&'a [(&'a str, Value)]);
    impl serde::Serialize for Ordered<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
        }
    }
    object(&Ordered(members));
}

/// Prints one JSON object as a line of standard output.
pub(crate) fn line(object: &Value) {
    anstream::println!("{object}");
}

/// The name that begins each of our own lines on a stream that a child shares with us.
pub(crate) fn label() -> String {
    let bold = anstyle::Style::new().bold();
    format!("{bold}outrigger{bold:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_an_error_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("it cannot be read: {0}")]
        struct Unreadable(#[source] std::io::Error);
        let cause = || std::io::Error::other("no such file");
        let twice = anyhow::Error::new(Unreadable(cause())).context("the receipt is not checked");
        assert_eq!(whole(&twice), "the receipt is not checked: it cannot be read: no such file");
        assert_eq!(whole(&anyhow::Error::new(cause()).context("the note")), "the note: no such file");
    }

    #[test]
    fn a_tool_call_is_one_line_that_says_what_it_is_about() {
        assert_eq!(gist(r#"{"description":"tests","command":"cargo test"}"#), "cargo test");
        assert_eq!(gist(r#"{"file_path":"src/lib.rs","limit":3}"#), "src/lib.rs");
        assert_eq!(gist(r#"{"x":1}"#), r#"{"x":1}"#);
        assert_eq!(gist("[1]"), "[1]");
        assert_eq!(short("one\ntwo"), "one…");
        assert_eq!(short("one\n"), "one");
        assert_eq!(short(&"x".repeat(200)).chars().count(), MAX_SHOWN + 1);
        assert_eq!(short("\u{1b}[2Jx"), "\\u{1b}[2Jx");
    }
}
