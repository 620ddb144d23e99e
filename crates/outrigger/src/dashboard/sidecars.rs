//! The processes that the daemon runs: where each is, what it uses, what it says.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use maud::{Markup, html};
use outrigger_supervise::driver::{Child, ChildId};
use outrigger_supervise::logs::LogLine;
use outrigger_supervise::metrics::ChildMetrics;
use outrigger_supervise::state::{Ladder, Phase};

use super::layout::{Here, Live, Shell, empty, head, page};
use super::parts::spark::spark;
use super::parts::{Icon, bytes, icon, span, tone_badge};
use super::problem::Problem;
use super::samples::Samples;
use super::{Answer, sent, then, waiting};
use crate::daemon::App;

/// The most rows.
const MOST_SHOWN: usize = 200;
/// How a process is stopped from here.
const LADDER: Ladder = Ladder { ask: Duration::from_secs(5), term: Duration::from_secs(5) };

/// What the page shows of a process.
pub(super) struct Sidecar {
    pub(super) numbers: ChildMetrics,
    pub(super) memory: Vec<u64>,
}

pub(super) async fn show(State(app): State<Arc<App>>, Extension(samples): Extension<Samples>) -> Answer {
    samples.begin(&app);
    let children = measured(&app).await;
    let sidecars: Vec<Sidecar> =
        children.into_iter().map(|numbers| Sidecar { memory: samples.of(numbers.id), numbers }).collect();
    sent(draw(&sidecars, waiting(&app).await))
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Extension(samples): Extension<Samples>,
    Path(id): Path<u64>,
) -> Answer {
    samples.begin(&app);
    let child = found(&app, id)?;
    let numbers = measured(&app).await.into_iter().find(|numbers| numbers.id == child.id());
    let numbers = numbers.ok_or_else(|| Problem::missing("such process any more"))?;
    let sidecar = Sidecar { memory: samples.of(numbers.id), numbers };
    sent(draw_one(&sidecar, &child.stderr_tail(), &child.stdout_tail(), waiting(&app).await))
}

pub(super) async fn act(State(app): State<Arc<App>>, Path((id, action)): Path<(u64, String)>) -> Answer {
    let child = found(&app, id)?;
    match action.as_str() {
        "stop" => {
            child.stop(LADDER).await;
        }
        "restart" => child.restart(LADDER).await,
        _ => return Err(Problem::missing("such button")),
    }
    then("/sidecars")
}

fn found(app: &App, id: u64) -> Result<Child, Problem> {
    app.supervisor.child(ChildId(id)).ok_or_else(|| Problem::missing("such process any more"))
}

async fn measured(app: &App) -> Vec<ChildMetrics> {
    let metrics = app.supervisor.metrics();
    let bare = metrics.children.clone();
    let measured = tokio::task::spawn_blocking(move || metrics.measure()).await;
    // Without sizes it is still a list.
    measured.ok().and_then(Result::ok).map_or(bare, |metrics| metrics.children)
}

pub(super) fn draw(sidecars: &[Sidecar], waiting: u64) -> Markup {
    let shell = Shell { title: "Sidecars", here: Here::Sidecars, waiting, live: Live::Every(2000) };
    page(
        &shell,
        html! {
            (head("Sidecars", "Every process that the daemon runs. None of them outlives it.", html! {}))
            section #sidecars data-live aria-label="Processes" {
                @if sidecars.is_empty() {
                    (empty(Icon::Sidecars, "No process is running", html! {
                        p { "They are started when a run needs them. A script that waits for a person has none." }
                        p { a.button href="/playground" { "Run a script" } }
                    }))
                } @else {
                    table.list.sidecars {
                        thead { tr { th scope="col" { "Name" } th scope="col" { "State" } th.right scope="col" { "Pid" } th.right scope="col" { "Up" }
                            th.right scope="col" { "Restarts" } th.right scope="col" { "Memory" } th scope="col" { span.visually-hidden { "Memory over time" } } th scope="col" { span.visually-hidden { "Actions" } } } }
                        tbody { @for one in sidecars.iter().take(MOST_SHOWN) { (row(one)) } }
                    }
                    @if sidecars.len() > MOST_SHOWN { p.hint { "and " (sidecars.len() - MOST_SHOWN) " more" } }
                }
            }
        },
    )
}

fn row(one: &Sidecar) -> Markup {
    let ChildMetrics { id, name, phase, incarnation, pid, uptime, usage } = &one.numbers;
    html! {
        tr data-key=(id) data-row {
            td.title { a href={ "/sidecars/" (id) } { (name) } }
            td.phase { (state(*phase)) }
            td.right.num.pid { @if let Some(pid) = pid { (pid.get()) } @else { "–" } }
            td.right.num.up data-label="up" { @if let Some(up) = uptime { (span(*up)) } @else { "–" } }
            td.right.num.restarts data-label="restarts" { (incarnation.0.saturating_sub(1)) }
            td.right.num.memory data-label="memory" { @if let Some(usage) = usage { (bytes(usage.rss_bytes)) } @else { "–" } }
            td.spark-cell { (spark(&one.memory, &format!("Memory of {name} over the last minutes"))) }
            td.right.row-actions { (buttons(*id, name)) }
        }
    }
}

fn buttons(id: ChildId, name: &str) -> Markup {
    html! {
        form.inline method="post" action={ "/sidecars/" (id) "/restart" } data-live-form { button.small aria-label={ "Restart " (name) } { "Restart" } }
        form.inline method="post" action={ "/sidecars/" (id) "/stop" } data-live-form data-confirm={ "Stop " (name) "? A run that uses it fails or is tried again." } { button.small.danger aria-label={ "Stop " (name) } { "Stop" } }
    }
}

pub(super) fn draw_one(one: &Sidecar, stderr: &[LogLine], stdout: &[LogLine], waiting: u64) -> Markup {
    let ChildMetrics { id, name, phase, incarnation, pid, uptime, usage } = &one.numbers;
    let shell = Shell { title: name, here: Here::Sidecars, waiting, live: Live::Every(1000) };
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/sidecars" { "Sidecars" } (icon(Icon::Right)) span { (name) } }
            (head(name, "", buttons(*id, name)))
            section #sidecar-facts.card data-live {
                dl.inline {
                    div { dt.visually-hidden { "State" } dd { (state(*phase)) } }
                    @if let Some(pid) = pid { div { dt { "pid" } dd.num { (pid.get()) } } }
                    @if let Some(up) = uptime { div { dt { "up" } dd.num { (span(*up)) } } }
                    div { dt { "restarts" } dd.num { (incarnation.0.saturating_sub(1)) } }
                    @if let Some(usage) = usage { div { dt { "memory" } dd.num { (bytes(usage.rss_bytes)) } } div { dt { "processes" } dd.num { (usage.processes) } } }
                    div { dt.visually-hidden { "Memory over time" } dd { (spark(&one.memory, "Memory over the last minutes")) } }
                }
            }
            (log("Standard error", "sidecar-stderr", stderr))
            @if !stdout.is_empty() { (log("Standard output", "sidecar-stdout", stdout)) }
        },
    )
}

fn log(title: &str, id: &str, lines: &[LogLine]) -> Markup {
    html! {
        section.card aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (icon(Icon::Terminal)) (title) }
            pre.logs id=(id) data-live data-stick tabindex="0" {
                @if lines.is_empty() { span.sub { "It has said nothing yet." } }
                @for line in lines { (line.text) @if line.cut_bytes > 0 { "… (" (bytes(line.cut_bytes)) " more)" } "\n" }
            }
        }
    }
}

fn state(phase: Phase) -> Markup {
    let tone = match phase {
        Phase::Ready => "good",
        Phase::Starting | Phase::Stopping(_) => "busy",
        Phase::Unresponsive | Phase::Backoff => "warn",
        Phase::Idle | Phase::Exited => "quiet",
    };
    tone_badge(tone, &phase.to_string())
}
