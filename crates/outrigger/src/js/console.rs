//! `console.log`, `console.warn` and `console.error` of a script: lines on standard error, or events.

use std::io::{IsTerminal, Write};

use outrigger_mustard::host::{Capabilities, Plain};
use serde::Serialize;

use super::json::Json;
use crate::say::{self, Format, printable};

/// Grants the console, unless the user grants a name of it to something else.
pub(crate) fn grant(mut table: Capabilities, format: Format) -> Capabilities {
    for level in ["log", "warn", "error"] {
        let name = format!("console.{level}");
        table = table.on(name, move |args| {
            print(level, &args, format);
            async { Plain::Undefined }
        });
    }
    table
}

#[derive(Serialize)]
struct Printed<'a> {
    event: &'static str,
    level: &'a str,
    args: Vec<Json<'a>>,
}

fn print(level: &str, args: &[Plain], format: Format) {
    match format {
        Format::Json => {
            say::object(&Printed { event: "console", level, args: args.iter().map(Json).collect() })
        }
        Format::Text => {
            let words: Vec<String> = args.iter().map(word).collect();
            let text = words.join(" ");
            let mut stderr = std::io::stderr();
            let shown = if stderr.is_terminal() { printable(&text) } else { text };
            // Nobody may be there to read it; that is not the script's business.
            let _ = writeln!(stderr, "{shown}");
        }
    }
}

/// A text as it is, anything else as JSON.
fn word(value: &Plain) -> String {
    match value {
        Plain::String(text) => text.clone(),
        Plain::Undefined => "undefined".to_owned(),
        Plain::Number(number) if !number.is_finite() => number.to_string().replace("inf", "Infinity"),
        other => Json(other).to_string(),
    }
}
