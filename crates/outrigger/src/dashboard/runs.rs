//! All runs: what waits for a person first, then a table that is kept alive.

use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::form::encode;
use super::layout::{Here, Live, Shell, empty, head, page};
use super::parts::approval::waiting_row;
use super::parts::{Icon, ago, count, icon, money, phase_badge, span, ticking};
use super::{Answer, sent};
use crate::daemon::App;
use crate::engine::Begun;
use crate::runs::state::Moment;
use crate::runs::{ListQuery, Phase, RunState, Waiting};

/// Runs on a page.
const ON_A_PAGE: usize = 50;
/// Runs that are looked through for a word.
const LOOKED_THROUGH: usize = 1000;
/// The most that is shown of what waits.
const MOST_WAITING: usize = 12;

/// What is asked for in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    q: Option<String>,
    #[serde(default)]
    before: Option<u64>,
}

/// What the page shows.
pub(super) struct RunsPage {
    pub(super) runs: Vec<RunState>,
    pub(super) next: Option<Begun>,
    pub(super) counts: Vec<(Phase, u64)>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) phase: Option<Phase>,
    pub(super) words: String,
    pub(super) first_page: bool,
    pub(super) now: Moment,
}

pub(super) async fn show(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Answer {
    let phase = asked.phase.as_deref().and_then(Phase::of_word);
    let words = asked.q.as_deref().unwrap_or("").trim().to_owned();
    let (runs, next) = find(&app, phase, &words, asked.before.map(Begun)).await?;
    let page = RunsPage {
        runs,
        next,
        counts: app.runs.counts().await?,
        waiting: app.runs.waiting().await?,
        phase,
        words,
        first_page: asked.before.is_none(),
        now: Moment::now(),
    };
    sent(draw(&page))
}

/// A page of runs; with words to find, those of the last runs whose title or id has them.
async fn find(
    app: &App,
    phase: Option<Phase>,
    words: &str,
    before: Option<Begun>,
) -> Result<(Vec<RunState>, Option<Begun>), super::Problem> {
    let phases: Vec<Phase> = phase.into_iter().collect();
    if words.is_empty() {
        let page = app.runs.list(ListQuery { phases, before, limit: ON_A_PAGE }).await?;
        return Ok((page.runs, page.next));
    }
    let wanted = words.to_lowercase();
    let (mut found, mut next, mut looked) = (Vec::new(), before, 0);
    loop {
        let page = app.runs.list(ListQuery { phases: phases.clone(), before: next, limit: 200 }).await?;
        looked += page.runs.len();
        let has =
            |run: &RunState| run.title.to_lowercase().contains(&wanted) || run.id.as_str().contains(&wanted);
        found.extend(page.runs.into_iter().filter(has));
        next = page.next;
        if next.is_none() || looked >= LOOKED_THROUGH || found.len() >= ON_A_PAGE {
            found.truncate(200);
            return Ok((found, next));
        }
    }
}

pub(super) fn draw(view: &RunsPage) -> Markup {
    let waiting =
        view.counts.iter().find(|(phase, _)| *phase == Phase::Waiting).map_or(0, |(_, count)| *count);
    let shell = Shell { title: "Runs", here: Here::Runs, waiting, live: Live::Changes };
    page(
        &shell,
        html! {
            (head("Runs", "", html! { a.button.primary href="/runs/new" { (icon(Icon::Plus)) "New run" } }))
            (strip(view))
            (filters(view))
            section #runs data-live aria-label="Runs" { (table(view)) }
        },
    )
}

fn strip(view: &RunsPage) -> Markup {
    let shown = view.waiting.len().min(MOST_WAITING);
    html! {
        section #waiting data-live aria-labelledby="waiting-title" hidden[view.waiting.is_empty()] {
            @if !view.waiting.is_empty() {
                h2 #waiting-title.strip-title { (icon(Icon::Hand)) "Waiting for you" span.pill { (view.waiting.len()) } }
                ul.waiting {
                    @for waiting in &view.waiting[..shown] { (waiting_row(&waiting.run, &waiting.title, &waiting.approval, view.now)) }
                }
                @if shown < view.waiting.len() {
                    p.hint { a href="/?phase=waiting" { "and " (view.waiting.len() - shown) " more" } }
                }
            }
        }
    }
}

fn filters(view: &RunsPage) -> Markup {
    let all: u64 = view.counts.iter().map(|(_, count)| count).sum();
    let of = |phase: Phase| view.counts.iter().find(|(one, _)| *one == phase).map_or(0, |(_, count)| *count);
    html! {
        div.toolbar {
            nav #tabs.tabs data-live aria-label="Phases" {
                a href=(address(None, &view.words, None)) aria-current=[view.phase.is_none().then_some("true")] { "All " span.count { (count(all)) } }
                @for phase in [Phase::Waiting, Phase::Running, Phase::Queued, Phase::Completed, Phase::Failed, Phase::Cancelled] {
                    a href=(address(Some(phase), &view.words, None)) aria-current=[(view.phase == Some(phase)).then_some("true")] {
                        (phase.word()) " " span.count { (count(of(phase))) }
                    }
                }
            }
            form.search role="search" method="get" action="/" {
                @if let Some(phase) = view.phase { input type="hidden" name="phase" value=(phase.word()); }
                (icon(Icon::Search))
                input type="search" name="q" value=(view.words) placeholder="Find by title or id" aria-label="Find by title or id" data-find maxlength="120";
            }
        }
    }
}

fn table(view: &RunsPage) -> Markup {
    if view.runs.is_empty() {
        return nothing(view);
    }
    html! {
        table.list.runs {
            thead { tr {
                th scope="col" { "Run" } th scope="col" { "Phase" } th scope="col" { "Backend" }
                th.right scope="col" { "Duration" } th.right scope="col" { "Tokens" } th.right scope="col" { "Cost" } th.right scope="col" { "Begun" }
            } }
            tbody { @for run in &view.runs { (row(run, view.now)) } }
        }
        nav.pager aria-label="Pages" {
            @if !view.first_page { a.button href=(address(view.phase, &view.words, None)) { "Newest" } }
            @if let Some(next) = view.next { a.button href=(address(view.phase, &view.words, Some(next))) rel="next" { "Older" (icon(Icon::Right)) } }
        }
    }
}

fn row(run: &RunState, now: Moment) -> Markup {
    let tokens = run.spent.input_tokens + run.spent.output_tokens;
    html! {
        tr data-key=(run.id) data-row {
            td.title {
                a href={ "/runs/" (run.id) } { @if run.title.is_empty() { "Untitled" } @else { (run.title) } }
                @if let Some(error) = run.error.as_ref().filter(|_| run.phase == Phase::Failed) { span.sub.bad { (crate::say::short(error)) } }
            }
            td.phase { (phase_badge(run.phase)) }
            td.backend { span.chip { (run.backend) } @if run.attempt > 1 { " " span.sub { "attempt " (run.attempt) } } }
            td.right.num { (duration(run, now)) }
            td.right.num.tokens { @if tokens == 0 { "–" } @else { (count(tokens)) } }
            td.right.num.cost { (money(run.spent.cost_usd)) }
            td.right.begun { (ago(run.created_at, now)) }
        }
    }
}

/// How long a run took, or has been going on.
pub(super) fn duration(run: &RunState, now: Moment) -> Markup {
    match (run.started_at, run.finished_at) {
        (Some(started), Some(finished)) => html! { (span(finished.since(started))) },
        (Some(started), None) => ticking(started, now),
        (None, _) => html! { "–" },
    }
}

fn nothing(view: &RunsPage) -> Markup {
    if !view.words.is_empty() || view.phase.is_some() {
        return empty(
            Icon::Search,
            "No run is like that",
            html! {
                @if !view.words.is_empty() { p { "Nothing among the last " (LOOKED_THROUGH) " runs has “" (view.words) "” in its title or id." } }
                p { a.button href="/" { "All runs" } }
            },
        );
    }
    empty(
        Icon::Runs,
        "There are no runs yet",
        html! {
            p { "A run is a script or a task for an agent. It leaves a receipt, and waits for you where it needs you." }
            p.row.center { a.button.primary href="/playground" { (icon(Icon::Playground)) "Try a script" } a.button href="/runs/new" { "Give an agent a task" } }
            p.hint { "From a terminal: " code { "outrigger runs" } ", or " code { "POST /v1/runs" } "." }
        },
    )
}

fn address(phase: Option<Phase>, words: &str, before: Option<Begun>) -> String {
    let mut parts = Vec::new();
    parts.extend(phase.map(|phase| format!("phase={}", phase.word())));
    parts.extend((!words.is_empty()).then(|| format!("q={}", encode(words))));
    parts.extend(before.map(|before| format!("before={}", before.0)));
    if parts.is_empty() { "/".to_owned() } else { format!("/?{}", parts.join("&")) }
}
