//! Talking to an agent: a thread is the runs that name it, one a turn.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::form::{Fields, encode};
use super::layout::{Here, Live, Shell, empty, page};
use super::new_run::backend_select;
use super::parts::badge::phase_dot;
use super::parts::{Icon, ago, icon, phase_badge};
use super::problem::Problem;
use super::run::actions::actor;
use super::run::page::approval_cards;
use super::run::stories::Stories;
use super::run::story::Story;
use super::run::talk::{bubbles, steer_box};
use super::{Answer, sent, then, waiting};
use crate::daemon::App;
use crate::runs::state::Moment;
use crate::runs::{BackendView, ListQuery, NewRun, RunId, RunState};

/// Runs that are looked through for threads.
const LOOKED_THROUGH: usize = 400;
/// Threads in the list.
const MOST_THREADS: usize = 40;
/// Turns of a thread.
const MOST_TURNS: usize = 20;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    backend: Option<String>,
    #[serde(default)]
    thread: Option<String>,
}

/// What the page shows.
pub(super) struct ChatPage {
    pub(super) backends: Vec<BackendView>,
    pub(super) backend: Option<String>,
    pub(super) thread: Option<String>,
    /// The newest run of each thread, the newest first.
    pub(super) threads: Vec<RunState>,
    /// The runs of the thread, the oldest first.
    pub(super) turns: Vec<(RunState, Arc<Story>)>,
    pub(super) waiting: u64,
    pub(super) now: Moment,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(stories): Extension<Stories>,
    Query(asked): Query<Asked>,
) -> Answer {
    let recent = recent(&app).await?;
    let mut turns = Vec::new();
    if let Some(thread) = &asked.thread {
        let of_thread = recent.iter().filter(|run| run.thread.as_ref() == Some(thread));
        for run in of_thread.take(MOST_TURNS) {
            turns.push((run.clone(), stories.of(&app.runs, run).await?));
        }
        turns.reverse();
    }
    let backends = app.runs.backends().await.into_iter().filter(|view| view.dialect != "mustard").collect();
    let page = ChatPage {
        backends,
        backend: asked.backend,
        thread: asked.thread,
        threads: threads(recent),
        turns,
        waiting: waiting(&app).await,
        now: Moment::now(),
    };
    sent(draw(&page))
}

pub(super) async fn send(State(app): State<Arc<App>>, body: Bytes) -> Answer {
    let fields = Fields::read(&body)?;
    let task = fields.given("text").ok_or_else(|| Problem::field("there is nothing to say"))?.to_owned();
    let backend = fields.given("backend").map(str::to_owned);
    let thread = match fields.given("thread") {
        Some(thread) => thread.to_owned(),
        None => RunId::random().map_err(|error| Problem::field(error.to_string()))?.to_string(),
    };
    let new = NewRun {
        backend: backend.clone(),
        task: Some(task),
        thread: Some(thread.clone()),
        ..NewRun::default()
    };
    app.runs.submit(new, actor()).await?;
    then(&address(backend.as_deref().unwrap_or(""), Some(&thread)))
}

async fn recent(app: &App) -> Result<Vec<RunState>, Problem> {
    let (mut runs, mut before) = (Vec::new(), None);
    while runs.len() < LOOKED_THROUGH {
        let page = app.runs.list(ListQuery { phases: Vec::new(), before, limit: 200 }).await?;
        runs.extend(page.runs);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(runs)
}

/// The newest run of each thread.
fn threads(recent: Vec<RunState>) -> Vec<RunState> {
    let mut newest: Vec<RunState> = Vec::new();
    for run in recent {
        let known = newest.iter().any(|one| one.thread == run.thread);
        if run.thread.is_some() && !known && newest.len() < MOST_THREADS {
            newest.push(run);
        }
    }
    newest
}

pub(super) fn draw(view: &ChatPage) -> Markup {
    let last = view.turns.last();
    let live = match last {
        Some((state, story)) if !state.phase.is_over() => Live::Run(&state.id, story.seq),
        Some(_) | None => Live::Still,
    };
    let shell = Shell { title: "Chat", here: Here::Agents, waiting: view.waiting, live };
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/agents" { "Agents" } (icon(Icon::Right)) h1 { "Chat" } }
            div.chat {
                aside.threads aria-label="Threads" {
                    a.button href=(address(view.backend.as_deref().unwrap_or(""), None)) { (icon(Icon::Plus)) "New thread" }
                    ul #threads data-live {
                        @for run in &view.threads {
                            @let thread = run.thread.as_deref().unwrap_or_default();
                            li { a href=(address(&run.backend, Some(thread))) aria-current=[(view.thread.as_deref() == Some(thread)).then_some("true")] {
                                (phase_dot(run.phase)) span { b { (run.title) } span.sub { (run.backend) " · " (ago(run.updated_at, view.now)) } }
                            } }
                        }
                    }
                }
                section.conversation aria-label="Conversation" {
                    div #chat-turns data-live data-stick {
                        @if view.turns.is_empty() {
                            (empty(Icon::Chat, "Say something", html! { p { "Choose an agent below. Each turn is a run of its own, with its own receipt." } }))
                        }
                        @for (state, story) in &view.turns { (turn(view, state, story)) }
                    }
                    div #chat-box data-live { (composer(view)) }
                }
            }
        },
    )
}

fn turn(view: &ChatPage, state: &RunState, story: &Story) -> Markup {
    let back = address(&state.backend, view.thread.as_deref());
    html! {
        div.turn data-key=(state.id) {
            (bubbles(story, view.now))
            (approval_cards(state, story, &back, view.now))
            p.turn-foot.sub { (phase_badge(state.phase)) a href={ "/runs/" (state.id) } { "the run" }
                @if let Some(error) = &state.error { span.bad { (crate::say::short(error)) } } }
        }
    }
}

/// What one says next: to the agent that is at work, or as the next turn.
fn composer(view: &ChatPage) -> Markup {
    match view.turns.last() {
        Some((state, _)) if !state.phase.is_over() => {
            steer_box(state, &address(&state.backend, view.thread.as_deref()))
        }
        last => {
            let chosen = last.map(|(state, _)| state.backend.as_str()).or(view.backend.as_deref());
            html! {
                form.composer method="post" action="/chat" data-live-form data-reset {
                    @match (&view.thread, last) {
                        (Some(thread), Some((state, _))) => {
                            input type="hidden" name="thread" value=(thread);
                            input type="hidden" name="backend" value=(state.backend);
                        }
                        _ => { label.row { span.sub { "Agent" } (backend_select(&view.backends, chosen)) } }
                    }
                    label { span.visually-hidden { "Message" } textarea name="text" rows="3" maxlength="1048576" placeholder="What is to be done?" required data-submit {} }
                    button.primary { "Send" kbd { "Ctrl ⏎" } }
                }
            }
        }
    }
}

fn address(backend: &str, thread: Option<&str>) -> String {
    let thread = thread.map_or_else(String::new, |thread| format!("&thread={}", encode(thread)));
    format!("/chat?backend={}{thread}", encode(backend))
}
