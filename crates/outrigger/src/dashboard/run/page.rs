//! The page of a run.

use std::sync::Arc;

use maud::{Markup, html};
use outrigger_abp::receipt::Check;

use super::super::layout::{Here, Live, Shell, page};
use super::super::parts::approval::{answered_row, open_card};
use super::super::parts::diff::{diff, tally};
use super::super::parts::json::viewer;
use super::super::parts::patch::Patch;
use super::super::parts::{Icon, bytes, icon, phase_badge};
use super::super::runs::duration;
use super::cards::{buttons, facts, receipt_card, request_card};
use super::story::Story;
use super::talk::talk;
use super::timeline::timeline;
use crate::runs::state::Moment;
use crate::runs::{Phase, RunState};

/// What the page shows.
pub(in super::super) struct RunPage {
    pub(in super::super) state: RunState,
    pub(in super::super) story: Arc<Story>,
    pub(in super::super) patch: Option<Kept>,
    pub(in super::super) receipt: Option<Check>,
    pub(in super::super) waiting: u64,
    pub(in super::super) now: Moment,
}

/// A patch, if it can be shown.
pub(in super::super) enum Kept {
    Whole(Patch),
    /// So many bytes.
    TooLarge(usize),
}

pub(in super::super) fn draw(view: &RunPage) -> Markup {
    let RunPage { state, story, now, .. } = view;
    let live = if state.phase.is_over() { Live::Still } else { Live::Run(&state.id, story.seq) };
    let title = if state.title.is_empty() { "Untitled" } else { &state.title };
    let shell = Shell { title, here: Here::Runs, waiting: view.waiting, live };
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/" { "Runs" } (icon(Icon::Right)) span.mono { (state.id) } }
            header #run-head.page-head data-live {
                div {
                    h1 { (title) }
                    p.run-meta {
                        (phase_badge(state.phase))
                        span.chip { (state.backend) }
                        @if state.attempt > 1 { span { "attempt " (state.attempt) } }
                        span.num title="From its start to now or to its end" { (icon(Icon::Clock)) (duration(state, *now)) }
                        @if let Some(why) = state.cancelling.as_ref().filter(|_| !state.phase.is_over()) { span.bad { "is being cancelled: " (why) } }
                    }
                }
                div.actions { (buttons(state)) }
            }
            div.run-grid {
                div.run-main {
                    (error_card(state))
                    (approvals(view))
                    (result(view))
                    section #run-timeline.card data-live aria-labelledby="timeline-title" { (timeline(story, &state.id, *now)) }
                    section #run-talk.card data-live aria-labelledby="talk-title" { (talk(story, state, *now)) }
                    (changes(view))
                }
                aside.run-side aria-label="About this run" {
                    section #run-facts.card data-live { (facts(state, *now)) }
                    section #run-receipt.card data-live { (receipt_card(state, view.receipt.as_ref())) }
                    (request_card(story))
                }
            }
        },
    )
}

fn error_card(state: &RunState) -> Markup {
    let error = state.error.as_ref().filter(|_| state.phase != Phase::Completed);
    html! {
        section #run-error data-live {
            @if let Some(error) = error {
                div.card.trouble role="alert" {
                    h2 { (icon(Icon::Alert))
                        @if state.phase.is_over() { "It ended: " (state.ending.as_deref().unwrap_or("failed")) } @else { "The attempt before this one failed" }
                    }
                    pre.code tabindex="0" { code { (error) } }
                }
            }
        }
    }
}

/// What waits, and what was answered.
pub(in super::super) fn approvals(view: &RunPage) -> Markup {
    let RunPage { state, story, now, .. } = view;
    let back = format!("/runs/{}", state.id);
    html! { section #run-approvals data-live aria-label="Approvals" { (approval_cards(state, story, &back, *now)) } }
}

/// The cards alone, for whichever page shows them.
pub(in super::super) fn approval_cards(state: &RunState, story: &Story, back: &str, now: Moment) -> Markup {
    let answered: Vec<_> = state.approvals.iter().filter(|approval| !approval.is_open()).collect();
    html! {
        @for approval in state.open_approvals().take(20) {
            (open_card(&state.id, approval, story.input(&approval.id.0), back, now))
        }
        @if !answered.is_empty() {
            details.answered data-key="answered" {
                summary { (answered.len()) " answered" }
                ul { @for approval in answered.iter().rev().take(50) { (answered_row(approval, now)) } }
            }
        }
    }
}

fn result(view: &RunPage) -> Markup {
    let whole = view.story.value.as_deref().or(view.state.result.as_deref().filter(|_| view.state.script));
    html! {
        section #run-result data-live {
            @if let Some(value) = whole.filter(|_| view.state.phase == Phase::Completed) {
                div.card.result {
                    h2 { (icon(Icon::Flag)) "Result" }
                    (viewer(value))
                }
            }
        }
    }
}

fn changes(view: &RunPage) -> Markup {
    html! {
        section #run-diff data-live {
            @match &view.patch {
                Some(Kept::Whole(patch)) if !patch.files.is_empty() => {
                    div.card {
                        header.card-head {
                            h2 { (icon(Icon::File)) "Changes" }
                            span.meta { (crate::say::files(patch.files.len() + patch.more_files)) " " (tally(patch.added(), patch.removed())) }
                            a.button.small href={ "/v1/runs/" (view.state.id) "/patch" } download={ (view.state.id) ".patch" } { (icon(Icon::Download)) "Patch" }
                        }
                        (diff(patch))
                    }
                }
                Some(Kept::TooLarge(length)) => {
                    div.card {
                        h2 { (icon(Icon::File)) "Changes" }
                        p { "The patch has " (bytes(*length as u64)) ", which is too much for a page. "
                            a href={ "/v1/runs/" (view.state.id) "/patch" } download={ (view.state.id) ".patch" } { "Download it" } "." }
                    }
                }
                Some(Kept::Whole(_)) | None => {}
            }
        }
    }
}
