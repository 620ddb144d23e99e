//! What `outrigger ext` prints: objects for programs, tables and sentences for people.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use outrigger_sep::host::record::LogLine;
use outrigger_sep::host::record::audit::{Broken, Verified};
use outrigger_sep::manifest::{Finding, Severity, Standing};
use outrigger_supervise::sandbox::Capabilities;
use serde_json::{Value, json};

use crate::say::{self, Format, printable};

const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// An object with the event in front, for programs.
fn event(name: &str, value: &Value) {
    let mut members = vec![("event", json!(name))];
    if let Value::Object(map) = value {
        members.extend(map.iter().map(|(key, value)| (key.as_str(), value.clone())));
    }
    say::members(&members);
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("")
}

fn state_style(state: &str) -> Style {
    match state {
        "ready" => GREEN,
        "failed" | "disabled" | "invalid" | "blocked" => RED,
        "backoff" | "unresponsive" | "needs_consent" | "unavailable" => YELLOW,
        _ => Style::new(),
    }
}

pub(crate) fn list(list: &Value, format: Format) {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if format == Format::Json {
        return list.iter().for_each(|one| event("extension", one));
    }
    if list.is_empty() {
        anstream::eprintln!("there are no extensions; `outrigger ext new org.example.hello` makes one");
        return;
    }
    let width = list.iter().map(|one| text(one, "id").len()).max().unwrap_or(0).max(10);
    anstream::println!("{BOLD}{:<width$}  {:<13}  {:<20}  {:>8}{BOLD:#}", "ID", "STATE", "TRUST", "UP");
    for one in list {
        let state = text(one, "state");
        let style = state_style(state);
        let up = one["uptimeMs"].as_u64().map_or_else(String::new, |ms| span(ms / 1000));
        let id = match text(one, "id") {
            "" => text(one, "dir"),
            id => id,
        };
        anstream::println!("{id:<width$}  {style}{state:<13}{style:#}  {:<20}  {up:>8}", text(one, "trust"));
        let reason = ["disabled", "failed"].iter().find_map(|member| one[*member].as_str());
        let why: Vec<String> = reason
            .into_iter()
            .chain(one["detail"].as_str())
            .map(|why| printable(&why.replace('\n', " ")))
            .collect();
        if !why.is_empty() && state != "ready" {
            anstream::println!("{:<width$}  {DIM}{}{DIM:#}", "", why.join(": "));
        }
    }
}

pub(crate) fn detail(detail: &Value, format: Format) {
    if format == Format::Json {
        return event("extension", detail);
    }
    let summary = &detail["summary"];
    let state = text(summary, "state");
    let style = state_style(state);
    anstream::println!(
        "{BOLD}{}{BOLD:#} {} {DIM}{}{DIM:#}",
        text(summary, "id"),
        printable(text(summary, "version")),
        printable(text(summary, "name"))
    );
    let line = |name: &str, value: String| anstream::println!("  {name:<12} {value}");
    let why = summary["detail"].as_str().map_or_else(String::new, |why| format!(": {}", printable(why)));
    let reason = ["disabled", "failed"].iter().find_map(|member| summary[*member].as_str());
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    line("state", format!("{style}{state}{style:#}{reason}{why}"));
    line("folder", printable(text(summary, "dir")));
    if let Some(trust) = summary["trust"].as_str() {
        let claimed = text(detail, "claimedTrust");
        let clamped =
            detail["clamped"].as_str().map_or_else(String::new, |why| format!(", claims {claimed}: {why}"));
        line("trust", format!("{trust}{clamped}"));
    }
    if let Some(pid) = summary["pid"].as_u64() {
        let up =
            summary["uptimeMs"].as_u64().map_or_else(String::new, |ms| format!(", up {}", span(ms / 1000)));
        line("process", format!("{pid}{up}, started {} times", summary["starts"]));
    }
    if let Some(session) = detail["session"].as_object() {
        let of = |member: &str| session.get(member).and_then(Value::as_str).unwrap_or("?").to_owned();
        let level = detail["session"]["sandbox"]["level"].as_str().unwrap_or("?").to_owned();
        line("session", format!("{} speaks {} over {}", of("id"), of("protocolVersion"), of("transport")));
        line("box", level);
    }
    let permissions = &detail["permissions"];
    for permission in permissions["granted"].as_array().into_iter().flatten() {
        line("may", format!("{GREEN}{}{GREEN:#}", permission.as_str().unwrap_or("?")));
    }
    for denied in permissions["denied"].as_array().into_iter().flatten() {
        line("may not", format!("{}: {}", text(denied, "permission"), text(denied, "reason")));
    }
    let subscribed = &detail["events"]["subscribed"];
    let heard: Vec<&str> = subscribed.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !heard.is_empty() {
        line("hears", heard.join(", "));
    }
    for finding in detail["findings"].as_array().into_iter().flatten() {
        line(
            text(finding, "code"),
            printable(&format!("{} {}", text(finding, "path"), text(finding, "message"))),
        );
    }
    for exit in detail["exits"].as_array().into_iter().flatten() {
        let code = exit["code"].as_i64().map(|code| format!("code {code}"));
        let signal = exit["signal"].as_i64().map(|signal| format!("signal {signal}"));
        let how =
            [Some(text(exit, "kind").to_owned()), code, signal].into_iter().flatten().collect::<Vec<_>>();
        let why = exit["detail"].as_str().map_or_else(String::new, |why| format!(": {}", printable(why)));
        line("ended", format!("{}{why}", how.join(", ")));
        for words in exit["lastWords"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            anstream::println!("               {DIM}| {}{DIM:#}", printable(words));
        }
    }
}

pub(crate) fn findings(path: &Path, findings: &[Finding], standing: Standing, format: Format) {
    if format == Format::Json {
        return say::line(&json!({
            "event": "validated",
            "path": path.display().to_string(),
            "standing": standing,
            "findings": findings,
        }));
    }
    let style = match standing {
        Standing::Admitted => GREEN,
        Standing::Blocked | Standing::Unavailable => YELLOW,
        Standing::Invalid => RED,
    };
    anstream::println!("{BOLD}{}{BOLD:#} {style}{standing}{style:#}", path.display());
    for Finding { path, severity, code, message, suggestion, .. } in findings {
        let style = match severity {
            Severity::Error => RED,
            Severity::Block => YELLOW,
            Severity::Warning => DIM,
        };
        let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
        anstream::println!("  {style}{code}{style:#} {}", printable(&format!("{at}{message}")));
        if let Some(suggestion) = suggestion {
            anstream::println!("      {DIM}{}{DIM:#}", printable(suggestion));
        }
    }
}

pub(crate) fn state(id: &str, view: &Value, format: Format) {
    if format == Format::Json {
        let mut view = view.clone();
        view["id"] = json!(id);
        return event("state", &view);
    }
    let state = text(view, "state");
    let style = state_style(state);
    let why = view["detail"].as_str().map_or_else(String::new, |why| format!(": {}", printable(why)));
    anstream::eprintln!("{id} is {style}{state}{style:#}{why}");
}

pub(crate) fn permitted(id: &str, method: &str, done: &Value, format: Format) {
    if format == Format::Json {
        return say::line(&json!({ "event": method, "id": id, "permissions": done }));
    }
    let words: Vec<&str> = done.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (method, words.is_empty()) {
        (_, true) => anstream::eprintln!("{id}: nothing changed"),
        ("grant", false) => anstream::eprintln!("{id} may {}", words.join(", ")),
        (_, false) => anstream::eprintln!("{id} may no longer {}", words.join(", ")),
    }
}

pub(crate) fn invoked(invoked: &Value, format: Format) {
    if format == Format::Json {
        return event("invoked", invoked);
    }
    let outcome = text(invoked, "outcome");
    let style = if outcome == "ok" { GREEN } else { RED };
    let message =
        invoked["message"].as_str().map_or_else(String::new, |text| format!(": {}", printable(text)));
    anstream::println!("{style}{outcome}{style:#}{message}");
}

pub(crate) fn log_line(line: &LogLine, format: Format) {
    if format == Format::Json {
        return say::object(line);
    }
    let style = match line.level.as_str() {
        "error" => RED,
        "warn" => YELLOW,
        _ if line.stream.as_str() == "host" => DIM,
        _ => Style::new(),
    };
    anstream::println!("{DIM}{} {:<6}{DIM:#} {style}{}{style:#}", line.ts, line.stream, printable(&line.msg));
}

pub(crate) fn ui(ui: &Value, format: Format) {
    if format == Format::Json {
        return event("ui", ui);
    }
    let mut any = false;
    for (slot, panels) in ui["slots"].as_object().into_iter().flatten() {
        for panel in panels.as_array().into_iter().flatten() {
            any = true;
            let state = text(panel, "state");
            let style = if state == "active" { GREEN } else { DIM };
            anstream::println!(
                "{BOLD}{}{BOLD:#}  {style}{state}{style:#}  {DIM}{slot}{DIM:#}",
                printable(text(panel, "title"))
            );
            anstream::println!(
                "  {DIM}{} · {} · {}{DIM:#}",
                printable(text(panel, "extensionName")),
                text(panel, "trustLevel"),
                text(panel, "panelKey")
            );
            if let Some(reason) = panel["reason"].as_str() {
                anstream::println!("  {YELLOW}{}{YELLOW:#}", printable(reason));
            }
            if let Some(description) = panel["description"].as_str() {
                anstream::println!("  {}", printable(description));
            }
            for node in panel["content"].as_array().into_iter().flatten() {
                show_node(node, 1);
            }
            for action in panel["actions"].as_array().into_iter().flatten() {
                anstream::println!(
                    "  [{}]  {DIM}{}{DIM:#}",
                    printable(text(action, "label")),
                    text(action, "id")
                );
            }
        }
    }
    if !any {
        anstream::eprintln!("no extension has a panel");
    }
}

fn show_node(node: &Value, depth: usize) {
    let pad = "  ".repeat(depth);
    let words = |member: &str| printable(text(node, member));
    match text(node, "type") {
        "separator" => anstream::println!("{pad}──────"),
        "kv" => {
            for row in node["items"].as_array().into_iter().flatten() {
                anstream::println!(
                    "{pad}{:<20} {}",
                    printable(text(row, "key")),
                    printable(text(row, "value"))
                );
            }
        }
        "progress" => {
            let (value, max) =
                (node["value"].as_u64().unwrap_or(0), node["max"].as_u64().unwrap_or(100).max(1));
            let filled = usize::try_from(value * 20 / max).unwrap_or(0).min(20);
            let bar = "█".repeat(filled) + &"░".repeat(20 - filled);
            anstream::println!("{pad}{bar} {value}/{max} {}", words("label"));
        }
        "list" => {
            for item in node["items"].as_array().into_iter().flatten() {
                show_node(item, depth + 1);
            }
        }
        _ => anstream::println!("{pad}{}", words("text")),
    }
}

pub(crate) fn notices(notices: &Value, format: Format) {
    for notice in notices.as_array().into_iter().flatten() {
        match format {
            Format::Json => event("notice", notice),
            Format::Text => {
                anstream::println!("{:<8} {}", text(notice, "level"), printable(text(notice, "text")))
            }
        }
    }
}

pub(crate) fn metrics(metrics: &Value, format: Format) {
    let exposition = metrics.as_str().unwrap_or_default();
    match format {
        Format::Text => anstream::print!("{exposition}"),
        Format::Json => {
            for line in exposition.lines().filter(|line| !line.starts_with('#')) {
                if let Some((series, value)) = line.rsplit_once(' ') {
                    let value = value.parse::<f64>().unwrap_or_default();
                    say::line(&json!({ "event": "metric", "series": series, "value": value }));
                }
            }
        }
    }
}

pub(crate) fn trace(frames: &Value, id: &str, format: Format) {
    let frames = frames.as_array().map(Vec::as_slice).unwrap_or_default();
    for frame in frames {
        match format {
            Format::Json => event("frame", frame),
            Format::Text => {
                let arrow = if text(frame, "way") == "from_extension" { ">" } else { "<" };
                anstream::println!("{arrow} {}", printable(text(frame, "text")));
            }
        }
    }
    if frames.is_empty() && format == Format::Text {
        anstream::eprintln!("no frame of {id} was kept; `outrigger ext up --trace` keeps them");
    }
}

pub(crate) fn scan(scan: &Value, format: Format) {
    if format == Format::Json {
        return event("scanned", scan);
    }
    let words = |member: &str| {
        let list = scan[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        list.collect::<Vec<_>>().join(", ")
    };
    anstream::eprintln!("{} extensions", scan["found"]);
    for (member, what) in [("changed", "new or changed"), ("removed", "gone")] {
        let words = words(member);
        if !words.is_empty() {
            anstream::eprintln!("  {what}: {words}");
        }
    }
}

pub(crate) fn happened(happening: &Value, format: Format) {
    if format == Format::Json {
        return say::line(happening);
    }
    if text(happening, "event") == "changed" {
        let to = text(happening, "to");
        let style = state_style(to);
        let why =
            happening["detail"].as_str().map_or_else(String::new, |why| format!(": {}", printable(why)));
        anstream::println!(
            "{:<40} {style}{to:<13}{style:#} {}{why}",
            text(happening, "ext"),
            text(happening, "cause")
        );
    }
}

pub(crate) fn missed(params: &Value, format: Format) {
    match format {
        Format::Json => event("missed", params),
        Format::Text => anstream::eprintln!("… {} changes were too fast to be shown", params["count"]),
    }
}

pub(crate) fn sent(sent: &Value, format: Format) {
    match format {
        Format::Json => event("sent", sent),
        Format::Text => anstream::println!("{} {}", text(sent, "messageHash"), text(sent, "state")),
    }
}

pub(crate) fn messages(messages: &Value, format: Format) {
    for message in messages.as_array().into_iter().flatten().rev() {
        match format {
            Format::Json => event("message", message),
            Format::Text => {
                let arrow = if message["incoming"] == true { "←" } else { "→" };
                anstream::println!(
                    "{arrow} {} {DIM}{:<9}{DIM:#} {}",
                    text(message, "peerHash"),
                    text(message, "state"),
                    say::short(text(message, "content"))
                );
            }
        }
    }
}

pub(crate) fn contacts(contacts: &Value, format: Format) {
    for contact in contacts.as_array().into_iter().flatten() {
        match format {
            Format::Json => event("contact", contact),
            Format::Text => anstream::println!(
                "{:>5}  {}  {}",
                contact["id"],
                contact["lxmfAddress"].as_str().unwrap_or_else(|| text(contact, "identityHash")),
                printable(text(contact, "name"))
            ),
        }
    }
}

pub(crate) fn fields(name: &str, value: &Value, format: Format) {
    match format {
        Format::Json => event(name, value),
        Format::Text => anstream::eprintln!("{name} {}", value["number"]),
    }
}

pub(crate) fn verified(folder: &Path, verified: &Verified, format: Format) {
    match format {
        Format::Json => event("verified", &json!(verified)),
        Format::Text => {
            let Verified { records, files, head, torn_bytes, .. } = verified;
            anstream::println!(
                "{GREEN}unbroken{GREEN:#}: {records} records in {files} files of {}",
                folder.display()
            );
            anstream::println!("  ends with {head}");
            if *torn_bytes > 0 {
                anstream::println!(
                    "  {YELLOW}{torn_bytes} bytes after the last whole line{YELLOW:#}, as a kill leaves them"
                );
            }
        }
    }
}

pub(crate) fn broken(broken: &Broken, format: Format) {
    match format {
        Format::Json => say::line(&json!({ "event": "broken", "message": broken.to_string() })),
        Format::Text => anstream::eprintln!("{RED}broken{RED:#}: {broken}"),
    }
}

pub(crate) fn record(line: &str, format: Format) {
    if format == Format::Json {
        return anstream::println!("{line}");
    }
    let Ok(record) = serde_json::from_str::<Value>(line) else { return };
    let decision = text(&record, "decision");
    let style = if decision == "allow" { GREEN } else { RED };
    anstream::println!(
        "{:>6}  {style}{decision:<5}{style:#}  {:<9}  {:<32}  {:<28}  {}",
        record["seq"],
        text(&record, "kind"),
        text(&record, "ext"),
        text(&record, "method"),
        text(&record, "reason")
    );
}

pub(crate) fn sandbox(found: &Capabilities, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        event("sandbox", &serde_json::to_value(found)?);
        return Ok(());
    }
    let layers = [
        ("landlock", &found.landlock, "files, TCP, signals"),
        ("seccomp", &found.seccomp, "system calls; no sockets, one process"),
        ("pid namespace", &found.pid_namespace, "the tree dies as a whole"),
        ("limits", &found.limits, "address space, descriptors"),
    ];
    for (name, capability, what) in layers {
        match &capability.reason {
            None => anstream::println!("  {GREEN}yes{GREEN:#}  {name:<14} {what}"),
            Some(reason) => anstream::println!("  {RED}no {RED:#}  {name:<14} {}", printable(reason)),
        }
    }
    let abi = found.landlock_abi.map_or_else(String::new, |abi| format!(" (landlock interface {abi})"));
    match found.auto_level {
        outrigger_supervise::sandbox::Level::Strict => {
            anstream::println!("untrusted extensions can run here, in a strict box{abi}");
        }
        _ => anstream::println!("untrusted extensions cannot run here: a strict box is not to be had"),
    }
    Ok(())
}

fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}
