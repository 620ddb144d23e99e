//! The backends: who is here, what each can do, how busy it is.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use super::form::encode;
use super::layout::{Here, Live, Shell, empty, head, page};
use super::parts::{Icon, health_badge, icon};
use super::{Answer, sent, waiting};
use crate::daemon::App;
use crate::runs::{BackendView, Health};

/// Capabilities on a card; the others are counted.
const MOST_SHOWN: usize = 8;

pub(super) async fn show(State(app): State<Arc<App>>) -> Answer {
    let backends = app.runs.backends().await;
    sent(draw(&backends, waiting(&app).await))
}

pub(super) fn draw(backends: &[BackendView], waiting: u64) -> Markup {
    let shell = Shell { title: "Agents", here: Here::Agents, waiting, live: Live::Every(5000) };
    let (ready, others): (Vec<_>, Vec<_>) = backends.iter().partition(|view| view.health == Health::Ready);
    page(
        &shell,
        html! {
            (head("Agents", "Everything that can do a run, as it is now.", html! { a.button.primary href="/chat" { (icon(Icon::Chat)) "Chat" } }))
            section #agents data-live aria-label="Backends" {
                @if backends.is_empty() {
                    (empty(Icon::Agents, "There are no backends", html! { p { "A " code { "[backends.NAME]" } " in outrigger.toml makes one." } }))
                }
                ul.cards { @for view in ready { (card(view)) } }
                @if !others.is_empty() {
                    h2.strip-title { "Not ready" }
                    ul.cards { @for view in others { (card(view)) } }
                }
            }
        },
    )
}

fn card(view: &BackendView) -> Markup {
    let room = view.at_once.saturating_sub(view.running);
    html! {
        li.card.agent data-key=(view.name) {
            header { h3 { (view.name) } span.chip { (view.dialect) } span.grow {} (health_badge(&view.health)) }
            p { (view.about) }
            @match &view.health {
                Health::Ready => {}
                Health::Missing { why } | Health::Failing { why } => { p.why { (why) } }
            }
            dl.inline {
                div { dt { "running" } dd.num { (view.running) " of " (view.at_once) } }
                div { dt { "queued" } dd.num { (view.queued) } }
                @if room == 0 && view.at_once > 0 { div { dt.visually-hidden { "state" } dd.warn-text { "full" } } }
            }
            @if !view.capabilities.is_empty() {
                ul.tags aria-label="Capabilities" {
                    @for (name, how) in view.capabilities.iter().take(MOST_SHOWN) { li title=(how) { (name) span.sub { (how) } } }
                    @if view.capabilities.len() > MOST_SHOWN { li { "+" (view.capabilities.len() - MOST_SHOWN) } }
                }
            }
            @if view.health == Health::Ready {
                footer.row {
                    @if view.dialect == "mustard" { a.button.small href="/playground" { (icon(Icon::Playground)) "Playground" } }
                    @else {
                        a.button.small href={ "/chat?backend=" (encode(&view.name)) } { (icon(Icon::Chat)) "Chat" }
                        a.button.small href={ "/runs/new?backend=" (encode(&view.name)) } { "New run" }
                    }
                }
            }
        }
    }
}
