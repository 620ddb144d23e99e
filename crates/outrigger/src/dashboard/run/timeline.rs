//! The timeline of a run: a row for everything that took time, against one axis, each unfolding to what went in and out.

use std::time::Duration;

use maud::{Markup, html};

use super::super::parts::json::viewer;
use super::super::parts::waterfall::{Bar, Break, Mark, Picture, Span, SpanKind, WIDTH, picture};
use super::super::parts::{Icon, icon, span};
use super::story::{MAX_SPANS, Story};
use crate::runs::id::RunId;
use crate::runs::state::Moment;

/// The height of a bar, in the units of its own picture.
const HEIGHT: f64 = 16.0;
/// Waiting that is shorter is not spoken of.
const WORTH_SAYING_MS: u64 = 5000;

pub(in super::super) fn timeline(story: &Story, run: &RunId, now: Moment) -> Markup {
    let spans: Vec<Span> = story.spans.iter().cloned().collect();
    let picture = picture(&spans, now.0.unix_millis());
    html! {
        header.card-head {
            h2 #timeline-title { (icon(Icon::Clock)) "Timeline" }
            span.meta.num { @if !spans.is_empty() { (span(Duration::from_millis(picture.total_ms))) } }
        }
        @if spans.is_empty() {
            p.hint { "Nothing has happened yet. The run waits for its backend." }
        } @else {
            @if story.folded_spans > 0 {
                p.hint { (story.folded_spans) " earlier steps are not shown; the last " (MAX_SPANS) " are. " a href={ "/runs/" (run) "/log" } { "The raw log" } " has all of them." }
            }
            (axis(&picture))
            div.wf role="list" {
                @for (one, bar) in spans.iter().zip(&picture.bars) { (row(one, *bar, &picture.breaks, run, now)) }
            }
            (legend(&spans))
        }
    }
}

/// Where time was left out.
fn axis(picture: &Picture) -> Markup {
    let long: Vec<&Break> = picture.breaks.iter().filter(|one| one.length_ms >= WORTH_SAYING_MS).collect();
    let mut left_out: Vec<String> =
        long.iter().take(6).map(|one| span(Duration::from_millis(one.length_ms))).collect();
    if long.len() > left_out.len() {
        left_out.push("…".to_owned());
    }
    html! {
        @if !left_out.is_empty() {
            p.wf-breaks.sub { (icon(Icon::Pause)) span { "The axis leaves out waiting: " (left_out.join(", ")) } }
        }
    }
}

fn row(one: &Span, bar: Bar, breaks: &[Break], run: &RunId, now: Moment) -> Markup {
    let end = one.to.unwrap_or_else(|| now.0.unix_millis());
    let length = Duration::from_millis((end - one.from).max(0).unsigned_abs());
    let (kind, mark) = (kind_class(one.kind), mark_class(one.mark));
    let instant = one.to == Some(one.from);
    html! {
        details.wf-row.(kind).(mark) role="listitem" data-key=(one.key) {
            summary {
                span.wf-label { (icon(kind_icon(one.kind))) span.visually-hidden { (kind_word(one.kind)) ": " }
                    span.name { (one.label) } @if !one.gist.is_empty() { span.gist { (one.gist) } } }
                svg.wf-bar viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                    @for hole in breaks { rect.hole x={ (format_args!("{:.1}", hole.x)) } y="0" width={ (format_args!("{:.1}", hole.width)) } height=(HEIGHT) {} }
                    rect.bar x={ (format_args!("{:.1}", bar.x)) } y="3" width={ (format_args!("{:.1}", bar.width)) } height="10" rx="2" {}
                }
                span.wf-took.num { @if !instant { (span(length)) } @if let Some(word) = mark_word(one.mark) { span.visually-hidden { ", " (word) } } }
            }
            div.wf-more {
                @for part in &one.parts { h4 { (part.name) } (viewer(&part.text)) }
                @if let Some(at) = one.fork_at {
                    form.row method="post" action={ "/runs/" (run) "/fork" } data-live-form {
                        input type="hidden" name="at" value=(at);
                        button.small { (icon(Icon::Fork)) "Fork from here" }
                        span.hint { "A run of its own that goes on from this very call." }
                    }
                }
                @if one.parts.is_empty() && one.fork_at.is_none() { p.hint { "There is no more to say about it." } }
            }
        }
    }
}

/// What the colours mean, for those kinds that are there.
fn legend(spans: &[Span]) -> Markup {
    let kinds =
        [SpanKind::Attempt, SpanKind::Model, SpanKind::Tool, SpanKind::Approval, SpanKind::Suspension];
    html! {
        p.wf-legend {
            @for kind in kinds.into_iter().filter(|kind| spans.iter().any(|span| span.kind == *kind)) {
                span.(kind_class(kind)) { span.swatch {} (kind_word(kind)) }
            }
        }
    }
}

fn kind_class(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Attempt => "k-attempt",
        SpanKind::Model => "k-model",
        SpanKind::Tool => "k-tool",
        SpanKind::Approval => "k-approval",
        SpanKind::Suspension => "k-suspension",
        SpanKind::Person => "k-person",
        SpanKind::Deed => "k-deed",
        SpanKind::Trouble => "k-trouble",
    }
}

fn kind_word(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Attempt => "attempt",
        SpanKind::Model => "model call",
        SpanKind::Tool => "tool call",
        SpanKind::Approval => "approval",
        SpanKind::Suspension => "suspension",
        SpanKind::Person => "person",
        SpanKind::Deed => "deed",
        SpanKind::Trouble => "trouble",
    }
}

fn kind_icon(kind: SpanKind) -> Icon {
    match kind {
        SpanKind::Attempt => Icon::Flag,
        SpanKind::Model => Icon::Model,
        SpanKind::Tool => Icon::Tool,
        SpanKind::Approval => Icon::Hand,
        SpanKind::Suspension => Icon::Pause,
        SpanKind::Person => Icon::Chat,
        SpanKind::Deed => Icon::File,
        SpanKind::Trouble => Icon::Alert,
    }
}

fn mark_class(mark: Mark) -> &'static str {
    match mark {
        Mark::Open => "m-open",
        Mark::Good => "m-good",
        Mark::Bad => "m-bad",
        Mark::Ended => "m-ended",
    }
}

fn mark_word(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Open => Some("goes on"),
        Mark::Bad => Some("did not go well"),
        Mark::Good | Mark::Ended => None,
    }
}
