//! The raw log of a run, record by record, a page at a time.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::super::layout::{Here, Live, Shell, head, page};
use super::super::parts::json::viewer;
use super::super::parts::{Icon, icon};
use super::super::{Answer, sent, waiting};
use crate::daemon::App;
use crate::engine::Seq;
use crate::runs::service::Numbered;
use crate::runs::{Line, RunId};
use crate::say;

/// Records on a page.
const ON_A_PAGE: usize = 100;

#[derive(Debug, Deserialize)]
pub(in super::super) struct Asked {
    #[serde(default)]
    after: u64,
}

pub(in super::super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Answer {
    let id = RunId::parse(&id)?;
    app.runs.show(&id).await?;
    let records = app.runs.events(&id, Seq(asked.after), ON_A_PAGE).await?;
    sent(draw(&id, &records, asked.after, waiting(&app).await))
}

pub(in super::super) fn draw(run: &RunId, records: &[Numbered], after: u64, waiting: u64) -> Markup {
    let shell = Shell { title: "Raw log", here: Here::Runs, waiting, live: Live::Still };
    let full = records.len() == ON_A_PAGE;
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/" { "Runs" } (icon(Icon::Right)) a.mono href={ "/runs/" (run) } { (run) } (icon(Icon::Right)) span { "Raw log" } }
            (head("Raw log", "Every record of the run, as it is stored.", html! { a.button href={ "/v1/runs/" (run) "/events?limit=1000" } { "JSON" } }))
            section.card.rawlog aria-label="Records" {
                @if records.is_empty() { p.hint { "There are no records after " (after) "." } }
                @for record in records { (row(record)) }
            }
            nav.pager aria-label="Pages" {
                @if after > 0 { a.button href={ "/runs/" (run) "/log?after=" (after.saturating_sub(ON_A_PAGE as u64)) } { "Earlier" } }
                @if let Some(last) = records.last().filter(|_| full) { a.button href={ "/runs/" (run) "/log?after=" (last.seq.0) } { "Later" (icon(Icon::Right)) } }
            }
        },
    )
}

fn row(record: &Numbered) -> Markup {
    let line = Line::read(&record.record).ok();
    let kind = line.as_ref().map_or("?", |line| line.entry.kind());
    let at = line.as_ref().map_or_else(String::new, |line| line.at.to_string());
    html! {
        details.raw data-key=(record.seq.0) {
            summary { span.num.no { (record.seq.0) } span.chip { (kind) } span.mono.gist { (say::short(&record.record)) } span.num.sub { (at) } }
            (viewer(&record.record))
        }
    }
}
