//! What the words mean, which keys there are, and where else things can be done.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{Here, Live, Shell, head, key_list, page};
use super::parts::{phase_badge, span};
use super::{Answer, sent, waiting};
use crate::daemon::App;
use crate::runs::Phase;

pub(super) async fn show(State(app): State<Arc<App>>) -> Answer {
    let about = format!(
        "Outrigger {} on {}, up {}.",
        env!("CARGO_PKG_VERSION"),
        app.address,
        span(app.since.elapsed())
    );
    sent(draw(&about, waiting(&app).await))
}

pub(super) fn draw(about: &str, waiting: u64) -> Markup {
    let shell = Shell { title: "Help", here: Here::Help, waiting, live: Live::Still };
    let phases = [
        (Phase::Queued, "it waits for its backend, or to be tried again"),
        (Phase::Running, "its backend is at work"),
        (Phase::Waiting, "it waits for a person; a script costs nothing meanwhile"),
        (Phase::Completed, "it ended well, and left a receipt"),
        (Phase::Failed, "it did not; the page of the run says why"),
        (Phase::Cancelled, "somebody ended it"),
    ];
    let elsewhere = [
        ("outrigger runs", "the same runs from a terminal"),
        ("outrigger receipts verify FILE", "check a receipt, here or on any other machine"),
        ("outrigger up --link", "a new link to this dashboard"),
        ("GET /v1/openapi.json", "everything that this page does, for programs"),
        ("GET /metrics", "numbers for Prometheus"),
    ];
    page(
        &shell,
        html! {
            (head("Help", about, html! {}))
            div.help-grid {
                section.card { h2 { "Phases" } dl.keys { @for (phase, words) in phases { div { dt { (phase_badge(phase)) } dd { (words) } } } } }
                section.card { h2 { "Keys" } (key_list()) }
                section.card { h2 { "Elsewhere" } dl.keys.wide { @for (command, words) in elsewhere { div { dt { code { (command) } } dd { (words) } } } } }
                section.card { h2 { "Approvals" }
                    p { "A call that needs a person can be approved, denied, approved with other arguments, or answered in the tool's place. The first answer counts: two clicks cannot run a tool twice." }
                    p { "If there is a deadline, the card says when it is and what happens then." }
                }
            }
        },
    )
}
