//! Runs on a terminal: lists, one run, and a run as it happens.

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::say::{self, Format, gist, printable, short};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// A page of runs.
pub(super) fn list(page: &Value, format: Format) {
    let runs = page.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for run in runs {
        match format {
            Format::Json => say::line(run),
            Format::Text => {
                let phase = text(run, "phase");
                let (style, id) = (style(phase), text(run, "id"));
                anstream::println!(
                    "{id:<36}  {style}{phase:<9}{style:#}  {:<10}  {}",
                    text(run, "backend"),
                    printable(text(run, "title"))
                );
            }
        }
    }
    if runs.is_empty() && format == Format::Text {
        anstream::eprintln!("there are no runs; `outrigger runs submit --help` says how to make one");
    }
}

/// One run.
pub(super) fn run(run: &Value, format: Format) {
    if format == Format::Json {
        return say::line(run);
    }
    let phase = text(run, "phase");
    let style = style(phase);
    anstream::println!("{BOLD}{}{BOLD:#}", printable(text(run, "title")));
    anstream::println!("{}  {style}{phase}{style:#}  {}", text(run, "id"), text(run, "backend"));
    for (name, member) in [("error", "error"), ("result", "result")] {
        if let Some(value) = run.get(member).and_then(Value::as_str) {
            anstream::println!("{DIM}{name}{DIM:#}  {}", printable(value));
        }
    }
    if let Some(receipt) = run.get("receipt").filter(|receipt| receipt.is_object()) {
        anstream::println!(
            "{DIM}receipt{DIM:#}  {}  sha256 {}",
            text(receipt, "file"),
            text(receipt, "sha256")
        );
    }
    let approvals = run.get("approvals").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for approval in approvals.iter().filter(|approval| approval.get("given").is_none_or(Value::is_null)) {
        open_approval(text(run, "id"), approval);
    }
}

/// What waits, over all runs.
pub(super) fn waiting(page: &Value, format: Format) {
    let waiting = page.get("approvals").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for one in waiting {
        match format {
            Format::Json => say::line(one),
            Format::Text => open_approval(text(one, "run"), one.get("approval").unwrap_or(one)),
        }
    }
    if waiting.is_empty() && format == Format::Text {
        anstream::eprintln!("nothing waits for you");
    }
}

fn open_approval(run: &str, approval: &Value) {
    let choices = approval.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    let what = format!("{} {}", text(approval, "tool"), short(text(approval, "input")));
    anstream::println!(
        "{BOLD}{}{BOLD:#}  {}  {DIM}{}{DIM:#}",
        text(approval, "id"),
        printable(&what),
        choices.join(" · ")
    );
    anstream::println!("    {DIM}{}{DIM:#}", printable(text(approval, "reason")));
    let id = text(approval, "id");
    let verb = if choices.contains(&"approve") {
        format!("approve {run} {id}")
    } else {
        format!("answer {run} {id} --value JSON")
    };
    anstream::println!("    outrigger runs {verb}");
}

/// A run that was accepted.
pub(super) fn accepted(state: &Value, format: Format) {
    match format {
        Format::Json => say::line(state),
        Format::Text => {
            let id = text(state, "id");
            anstream::println!("{id}");
            anstream::eprintln!("{DIM}outrigger runs watch {id}{DIM:#}");
        }
    }
}

/// Something was done to a run.
pub(super) fn done(run: &str, what: &str, format: Format) {
    match format {
        Format::Json => say::line(&json!({ "event": what, "run": run })),
        Format::Text => anstream::eprintln!("{run}: {what}"),
    }
}

/// What a check of a receipt found; the exit code says whether it holds.
pub(super) fn checked(check: &Value, format: Format) -> ExitCode {
    let valid = check.get("valid").and_then(Value::as_bool).unwrap_or(false);
    match format {
        Format::Json => say::line(check),
        Format::Text if valid => anstream::println!("the receipt holds: {}", text(check, "file")),
        Format::Text => {
            anstream::println!("the receipt does not hold");
            let problems = check
                .get("check")
                .and_then(|check| check.get("problems"))
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            for problem in problems {
                anstream::println!("  {}", printable(problem.as_str().unwrap_or(&problem.to_string())));
            }
        }
    }
    if valid { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// A run as it happens.
pub(super) struct Screen {
    format: Format,
    /// Whether the last thing on the line is streamed text.
    open_line: bool,
    ended: Option<String>,
}

impl Screen {
    pub(super) fn new(format: Format) -> Self {
        Self { format, open_line: false, ended: None }
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn completed(&self) -> bool {
        self.ended.as_deref() == Some("completed")
    }

    /// One more record of the log.
    pub(super) fn record(&mut self, record: &Value) {
        let none = Value::Null;
        let data = record.get("data").unwrap_or(&none);
        let kind = text(record, "kind");
        if kind == "finished" {
            self.ended = Some(text(data, "phase").to_owned());
        }
        if self.format == Format::Json {
            return say::line(record);
        }
        match kind {
            "event" => self.event(data.get("event").unwrap_or(&none)),
            "accepted" => {}
            "started" => {
                let again = if data.get("resumed").and_then(Value::as_bool) == Some(true) {
                    "goes on"
                } else {
                    "begins"
                };
                self.line(&format!(
                    "{DIM}attempt {} {again} ({}){DIM:#}",
                    data["attempt"],
                    text(data, "backend")
                ));
            }
            "suspended" => {
                self.line(&format!("{DIM}stands still: snapshot of {} bytes{DIM:#}", data["snapshot_bytes"]))
            }
            "asked" => {
                self.line("");
                anstream::println!(
                    "{BOLD}waits for you:{BOLD:#} {} {}",
                    text(data, "id"),
                    printable(&format!("{} {}", text(data, "tool"), short(text(data, "input"))))
                );
            }
            "answered" => {
                let choice = data.get("answer").map(|answer| text(answer, "choice")).unwrap_or_default();
                self.line(&format!(
                    "{}: {choice} by {}",
                    text(data, "approval"),
                    printable(text(data, "by"))
                ));
            }
            "steered" => self.line(&format!("{DIM}›{DIM:#} {}", printable(text(data, "text")))),
            "cancelling" => self.line(&format!("cancelling: {}", printable(text(data, "why")))),
            "attempted" => self.line(&format!(
                "attempt {} failed: {}; next: {}",
                data["attempt"],
                printable(text(data, "error")),
                text(data, "next_backend")
            )),
            "note" => self.line(&format!("{DIM}{}{DIM:#}", printable(text(data, "text")))),
            "finished" => self.finished(data),
            _ => {}
        }
    }

    fn event(&mut self, event: &Value) {
        let member = |name| text(event, name);
        match member("type") {
            "assistant_delta" => {
                anstream::print!("{}", printable(member("text")));
                // Whoever stopped reading wants nothing more.
                let _ = std::io::stdout().flush();
                self.open_line = true;
            }
            "assistant_message" if self.open_line => self.line(""),
            "assistant_message" => self.line(&printable(member("text"))),
            "tool_call" => {
                let input = event.get("input").map(Value::to_string).unwrap_or_default();
                self.line(&format!(
                    "{DIM}→{DIM:#} {} {}",
                    printable(member("tool_name")),
                    short(&gist(&input))
                ));
            }
            "tool_result" => {
                let output = event.get("output").map(Value::to_string).unwrap_or_default();
                self.line(&format!("{DIM}← {}{DIM:#}", short(&output)));
            }
            "file_changed" => self.line(&format!("{DIM}changed{DIM:#} {}", printable(member("path")))),
            "command_executed" => self.line(&format!("{DIM}ran{DIM:#} {}", short(member("command")))),
            "warning" | "error" => {
                self.line(&format!("{}: {}", member("type"), printable(member("message"))))
            }
            _ => {}
        }
    }

    fn finished(&mut self, data: &Value) {
        let phase = text(data, "phase");
        let style = style(phase);
        let why = data.get("error").and_then(Value::as_str).map(|why| format!(": {}", printable(why)));
        self.line(&format!("{style}{phase}{style:#}{}", why.unwrap_or_default()));
        if let Some(value) = data.get("value").filter(|value| !value.is_null()) {
            anstream::println!("{value}");
        }
        if let Some(receipt) = data.get("receipt").filter(|receipt| receipt.is_object()) {
            anstream::println!(
                "{DIM}receipt {} sha256 {}{DIM:#}",
                text(receipt, "file"),
                text(receipt, "sha256")
            );
        }
    }

    /// A line of its own.
    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.open_line) {
            anstream::println!();
        }
        if !text.is_empty() {
            anstream::println!("{text}");
        }
    }
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn style(phase: &str) -> Style {
    let colour = match phase {
        "completed" => AnsiColor::Green,
        "failed" => AnsiColor::Red,
        "waiting" => AnsiColor::Yellow,
        "running" => AnsiColor::Cyan,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}
