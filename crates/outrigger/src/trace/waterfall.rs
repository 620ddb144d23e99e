//! A run as a picture: a bar for everything that took time, one below the other, against the same clock. Pure.

use std::collections::HashMap;

use anstyle::{AnsiColor, Color, Style};
use outrigger_steerable::protocol::{Span, SpanKind, SpanStatus, Trace};
use serde_json::Value;

use crate::say::{printable, short};

/// The narrowest picture that says anything.
const MIN_BAR: usize = 10;
/// The widest.
const MAX_BAR: usize = 100;
/// Names longer than this are cut.
const MAX_NAME: usize = 32;
/// How deep spans are indented; deeper ones stand where these do.
const MAX_DEPTH: usize = 8;
/// Columns of a duration and the blanks around it.
const DURATION: usize = 10;
/// Columns that are left for remarks.
const REMARK: usize = 28;

const DIM: Style = Style::new().dimmed();
const BAD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red)));

/// Draws the spans of a trace into `columns`.
pub(super) fn draw(trace: &Trace, spans: &[Span], columns: usize) -> String {
    let rows = rows(spans);
    let first = spans.iter().map(|span| span.start_ms).chain(trace.started_at_ms).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.end_ms.unwrap_or(span.start_ms)).max().unwrap_or(first);
    let last = last.max(first + trace.duration_ms.unwrap_or(0)).max(first + 1);
    let name = rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0).min(MAX_NAME);
    let bar = columns.saturating_sub(name + DURATION + REMARK + 4).clamp(MIN_BAR, MAX_BAR);
    let mut picture = String::new();
    for row in &rows {
        let span = row.span;
        let scale = |at: u64| (at.clamp(first, last) - first) as f64 / (last - first) as f64 * bar as f64;
        let from = (scale(span.start_ms).floor() as usize).min(bar - 1);
        let to = (scale(span.end_ms.unwrap_or(last)).ceil() as usize).clamp(from + 1, bar);
        let (style, block) = match span.status {
            SpanStatus::Error | SpanStatus::Timeout => (BAD, '█'),
            SpanStatus::Running => (Style::new(), '░'),
            SpanStatus::Cancelled => (Style::new(), '▒'),
            SpanStatus::Ok | SpanStatus::Other(_) => (colour(&span.kind), '█'),
        };
        let blocks: String = std::iter::repeat_n(block, to - from).collect();
        let label: String = row.label().chars().take(MAX_NAME).collect();
        let took = span.end_ms.map(|end| end.saturating_sub(span.start_ms));
        let took = took.map_or_else(|| "running".to_owned(), duration);
        let bar = format!(
            "{DIM}▏{DIM:#}{:from$}{style}{blocks}{style:#}{:rest$}{DIM}▏{DIM:#}",
            "",
            "",
            rest = bar - to
        );
        picture.push_str(&format!("{label:<name$} {bar}{took:>DURATION$}"));
        let remark = remark(span);
        if !remark.is_empty() {
            picture.push_str(&format!("  {DIM}{remark}{DIM:#}"));
        }
        picture.push('\n');
    }
    picture
}

/// A time as people say it.
pub(super) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.2} s", millis as f64 / 1000.0),
        _ => format!("{} m {:02} s", millis / 60_000, millis / 1000 % 60),
    }
}

struct Row<'a> {
    span: &'a Span,
    depth: usize,
}

impl Row<'_> {
    fn label(&self) -> String {
        format!("{:indent$}{}", "", printable(&self.span.name), indent = 2 * self.depth.min(MAX_DEPTH))
    }
}

/// Spans under those that they are a part of, in the order in which they began. One whose parent is missing, or who is its
/// own grandparent, stands at the left.
fn rows(spans: &[Span]) -> Vec<Row<'_>> {
    let known: HashMap<&str, &Span> = spans.iter().map(|span| (span.span_id.as_str(), span)).collect();
    let mut below: HashMap<&str, Vec<&Span>> = HashMap::new();
    let mut left = Vec::new();
    for span in spans {
        match span.parent_span_id.as_deref().filter(|parent| known.contains_key(parent)) {
            Some(parent) => below.entry(parent).or_default().push(span),
            None => left.push(span),
        }
    }
    let mut rows = Vec::new();
    let mut waiting: Vec<Row<'_>> = left.into_iter().rev().map(|span| Row { span, depth: 0 }).collect();
    while let Some(row) = waiting.pop() {
        let children = below.remove(row.span.span_id.as_str()).unwrap_or_default();
        let depth = row.depth + 1;
        waiting.extend(children.into_iter().rev().map(|span| Row { span, depth }));
        rows.push(row);
    }
    // What is left hangs in a circle.
    let mut lost: Vec<&Span> = below.into_values().flatten().collect();
    lost.sort_by_key(|span| span.start_ms);
    rows.extend(lost.into_iter().map(|span| Row { span, depth: 0 }));
    rows
}

fn colour(kind: &SpanKind) -> Style {
    let colour = match kind {
        SpanKind::Llm => AnsiColor::Blue,
        SpanKind::Tool => AnsiColor::Green,
        SpanKind::Policy | SpanKind::Budget => AnsiColor::Yellow,
        SpanKind::Retry | SpanKind::Transport => AnsiColor::Magenta,
        SpanKind::Completion | SpanKind::Storage | SpanKind::Custom | SpanKind::Other(_) => AnsiColor::White,
    };
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// What else there is to say about a span, in a few words.
fn remark(span: &Span) -> String {
    let mut words = Vec::new();
    match &span.status {
        SpanStatus::Ok | SpanStatus::Running => {}
        other => words.push(other.to_string()),
    }
    for name in ["model", "promptTokens", "completionTokens", "finishReason", "decision", "error"] {
        let unit = match name {
            "promptTokens" => " in",
            "completionTokens" => " out",
            _ => "",
        };
        match span.attrs.get(name) {
            Some(Value::String(text)) => words.push(short(text)),
            Some(Value::Number(number)) => words.push(format!("{number}{unit}")),
            _ => {}
        }
    }
    short(&words.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: Option<&str>, from: u64, to: Option<u64>, status: &str) -> Span {
        let text = serde_json::json!({
            "spanId": id, "parentSpanId": parent, "name": format!("name.{id}"), "kind": "tool",
            "startMs": from, "endMs": to, "status": status,
        });
        serde_json::from_value(text).unwrap()
    }

    fn picture(spans: &[Span]) -> String {
        let trace = serde_json::json!({
            "traceId": "trace_1", "status": "completed", "hadError": false, "eventCount": 0, "spanCount": 0,
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        });
        let drawn = draw(&serde_json::from_value(trace).unwrap(), spans, 72);
        anstream::adapter::strip_str(&drawn).to_string()
    }

    #[test]
    fn spans_stand_under_their_parents_against_one_clock() {
        let spans = [
            span("a", None, 1000, Some(2000), "ok"),
            span("b", Some("a"), 1000, Some(1500), "ok"),
            span("c", Some("b"), 1250, Some(1500), "error"),
            span("d", Some("a"), 1500, None, "running"),
        ];
        assert_eq!(
            picture(&spans),
            "name.a     ▏████████████████████▏    1.00 s\n  \
             name.b   ▏██████████          ▏    500 ms\n    \
             name.c ▏     █████          ▏    250 ms  error\n  \
             name.d   ▏          ░░░░░░░░░░▏   running\n"
        );
    }

    #[test]
    fn spans_in_a_circle_and_spans_without_time_are_drawn_all_the_same() {
        let spans = [
            span("a", Some("b"), 5, Some(5), "ok"),
            span("b", Some("a"), 5, Some(5), "ok"),
            span("c", Some("nobody"), 5, Some(5), "ok"),
        ];
        assert_eq!(picture(&spans).lines().count(), 3);
        assert_eq!(picture(&[]), "");
    }

    #[test]
    fn times_are_said_as_people_do() {
        assert_eq!([duration(7), duration(1234), duration(125_000)], ["7 ms", "1.23 s", "2 m 05 s"]);
    }
}
