//! What the program says of itself: JSON objects on standard output, or sentences on standard error.

use std::io::Write;

use serde_json::{Value, json};

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
        Format::Text => anstream::eprintln!("{}: {error:#}", label()),
        Format::Json => line(&json!({ "event": "error", "message": format!("{error:#}") })),
    }
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

/// Prints one JSON object, in its own order of members, as a line of standard output.
pub(crate) fn object(object: &impl serde::Serialize) {
    // What is shown has string keys only; and a reader that has gone wants nothing more.
    let text = serde_json::to_string(object).unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "{text}");
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
