//! How the end of a run looks: a value, a ticket, or an error with its line and a caret.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use outrigger_mustard::host::store::Waiting;
use outrigger_mustard::host::{
    CompileError, Ending, Failed, Parked, Plain, RunError, ScriptError, Statistics,
};
use outrigger_mustard::protocol::response::Place;
use serde::Serialize;

use super::json::Json;
use crate::say::{self, Format, printable};

/// The script is done.
pub(crate) const DONE: u8 = 0;
/// The script failed.
pub(crate) const FAILED: u8 = 1;
/// A limit or a time was exceeded.
pub(crate) const LIMIT: u8 = 3;
/// It is no script.
pub(crate) const INVALID: u8 = 4;
/// The run waits for somebody.
pub(crate) const WAITS: u8 = 75;
/// Something else went wrong.
pub(crate) const OWN_FAILURE: u8 = 125;
/// Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Where a script comes from, for places in it.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) name: String,
}

/// Shows how a run ended and says with which exit code.
pub(crate) fn ending(ended: Result<Ending, Failed>, origin: &Origin, format: Format) -> u8 {
    match ended {
        Ok(Ending::Finished(finished)) => {
            value(&finished.value, finished.statistics, format);
            DONE
        }
        Ok(Ending::Parked(parked)) => {
            waits(&parked, format);
            WAITS
        }
        Err(failed) => failure(&failed, origin, format),
    }
}

#[derive(Serialize)]
struct Counts {
    hops: u64,
    calls: u64,
    remembered: u64,
    largest_snapshot: u64,
    sidecars: u64,
    repeats: u64,
}

impl From<Statistics> for Counts {
    fn from(statistics: Statistics) -> Self {
        let Statistics { hops, calls, remembered, largest_snapshot, children, repeats } = statistics;
        Self { hops, calls, remembered, largest_snapshot, sidecars: children, repeats }
    }
}

#[derive(Serialize)]
struct FinishedEvent<'a> {
    event: &'static str,
    value: Json<'a>,
    statistics: Counts,
}

fn value(value: &Plain, statistics: Statistics, format: Format) {
    if format == Format::Json {
        return say::object(&FinishedEvent {
            event: "finished",
            value: Json(value),
            statistics: statistics.into(),
        });
    }
    let mut stdout = std::io::stdout();
    let text = match value {
        Plain::Undefined => return,
        Plain::String(text) if stdout.is_terminal() => printable(text),
        Plain::String(text) => text.clone(),
        Plain::Number(number) if !number.is_finite() => number.to_string().replace("inf", "Infinity"),
        other => serde_json::to_string_pretty(&Json(other)).unwrap_or_default(),
    };
    // A reader that has gone wants nothing more.
    let _ = writeln!(stdout, "{text}");
}

#[derive(Serialize)]
pub(crate) struct CallEvent<'a> {
    call: u64,
    capability: &'a str,
    args: Vec<Json<'a>>,
}

pub(crate) fn call_event(waiting: &Waiting) -> CallEvent<'_> {
    CallEvent {
        call: waiting.call.0,
        capability: &waiting.capability,
        args: waiting.args.iter().map(Json).collect(),
    }
}

#[derive(Serialize)]
struct ParkedEvent<'a> {
    event: &'static str,
    ticket: Option<&'a str>,
    run: &'a str,
    calls: Vec<CallEvent<'a>>,
    snapshot_bytes: usize,
    statistics: Counts,
}

/// A call as the script would write it.
pub(crate) fn call_text(waiting: &Waiting) -> String {
    let args: Vec<String> = waiting.args.iter().map(|arg| Json(arg).to_string()).collect();
    printable(&format!("{}({})", waiting.capability, args.join(", ")))
}

fn waits(parked: &Parked, format: Format) {
    let Parked { record, ticket, statistics } = parked;
    if format == Format::Json {
        return say::object(&ParkedEvent {
            event: "parked",
            ticket: ticket.as_ref().map(|ticket| ticket.as_str()),
            run: record.run.as_str(),
            calls: record.calls.iter().map(call_event).collect(),
            snapshot_bytes: record.snapshot.len(),
            statistics: (*statistics).into(),
        });
    }
    let mut text = format!("{}: the run waits for an answer to\n", say::label());
    for waiting in &record.calls {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  #{} {}", waiting.call, call_text(waiting));
    }
    if let Some(ticket) = ticket {
        let _ = writeln!(text, "It is kept ({} bytes). To go on:", record.snapshot.len());
        let _ = writeln!(text, "  outrigger js resume {ticket} --answer JSON");
    }
    anstream::eprint!("{text}");
}

#[derive(Serialize)]
struct FailedEvent<'a> {
    event: &'static str,
    kind: &'a str,
    code: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    frames: Vec<FrameEvent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Json<'a>>,
    exit_code: u8,
}

#[derive(Serialize)]
pub(crate) struct FrameEvent<'a> {
    function: &'a str,
    line: u64,
    column: u64,
}

pub(crate) fn frames(places: &[Place]) -> Vec<FrameEvent<'_>> {
    places
        .iter()
        .map(|Place { function, line, column }| FrameEvent { function, line: *line, column: *column })
        .collect()
}

/// Why there is nothing to run.
pub(crate) fn not_compiled(error: &CompileError, origin: &Origin, format: Format) -> u8 {
    match error {
        CompileError::Script(script) => script_error(script, origin, format),
        CompileError::NoChild(error) => other("sidecar", &error.to_string(), OWN_FAILURE, format),
        CompileError::Sidecar(error) => other("sidecar", &error.to_string(), OWN_FAILURE, format),
    }
}

fn failure(failed: &Failed, origin: &Origin, format: Format) -> u8 {
    match &failed.why {
        RunError::Script(script) => script_error(script, origin, format),
        RunError::Cancelled => other("cancelled", "the run was stopped", INTERRUPTED, format),
        why @ RunError::Deadline { .. } => other("deadline", &why.to_string(), LIMIT, format),
        why @ RunError::NoSuchCall { .. } => other("no_such_call", &why.to_string(), OWN_FAILURE, format),
        why @ RunError::TooLarge { .. } => other("too_large", &why.to_string(), OWN_FAILURE, format),
        why @ RunError::TooDeep { .. } => other("too_deep", &why.to_string(), OWN_FAILURE, format),
        why @ RunError::Journal(_) => other("store", &why.to_string(), OWN_FAILURE, format),
        why @ (RunError::KeepsDying { .. } | RunError::NoChild(_)) => {
            other("sidecar", &why.to_string(), OWN_FAILURE, format)
        }
    }
}

fn other(code: &str, message: &str, exit_code: u8, format: Format) -> u8 {
    match format {
        Format::Text => anstream::eprintln!("{}: {}", say::label(), printable(message)),
        Format::Json => say::object(&FailedEvent {
            event: "failed",
            kind: "Run",
            code: Some(code),
            message,
            name: None,
            line: None,
            column: None,
            frames: Vec::new(),
            details: None,
            exit_code,
        }),
    }
    exit_code
}

fn script_error(error: &ScriptError, origin: &Origin, format: Format) -> u8 {
    let exit_code = match error.kind.as_str() {
        "Parse" | "Validation" => INVALID,
        "Limit" => LIMIT,
        "Runtime" => FAILED,
        _ => OWN_FAILURE,
    };
    match format {
        Format::Text => anstream::eprint!("{}", error_text(error, origin)),
        Format::Json => say::object(&FailedEvent {
            event: "failed",
            kind: &error.kind,
            code: error.code.as_deref(),
            message: &error.message,
            name: error.name.as_deref(),
            line: error.line,
            column: error.column,
            frames: frames(&error.frames),
            details: error.details.as_ref().map(Json),
            exit_code,
        }),
    }
    exit_code
}

/// The message, the line with a caret under the place, and the way there.
pub(crate) fn error_text(error: &ScriptError, origin: &Origin) -> String {
    let (red, blue) =
        (anstyle::AnsiColor::Red.on_default().bold(), anstyle::AnsiColor::Blue.on_default().bold());
    let mut text = format!("{red}{}{red:#}: {}\n", error.kind, printable(&error.message));
    let mut line = |rest: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{rest}");
    };
    if let (Some(number), Some(column)) = (error.line, error.column) {
        let gutter = " ".repeat(number.to_string().len());
        line(format_args!("{gutter}{blue}-->{blue:#} {}:{number}:{column}", origin.name));
        if let Some(source) = &error.source_line {
            let before: String =
                source.encode_utf16().take(column.saturating_sub(1) as usize).map(|_| ' ').collect();
            line(format_args!("{gutter} {blue}|{blue:#}"));
            line(format_args!("{blue}{number} |{blue:#} {}", printable(source).replace('\t', " ")));
            line(format_args!("{gutter} {blue}|{blue:#} {before}{red}^{red:#}"));
        }
    }
    for place in &error.frames {
        line(format_args!(
            "  at {} ({}:{}:{})",
            printable(&place.function),
            origin.name,
            place.line,
            place.column
        ));
    }
    if let Some(details) = &error.details {
        line(format_args!("  details: {}", printable(&Json(details).to_string())));
    }
    text
}
