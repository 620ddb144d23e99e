//! The dashboard: pages that are made here and kept alive by server-sent events.
//!
//! # Theory of operation
//!
//! Every page is whole when it arrives and every button is a form, so that it works in a browser without scripts. The script
//! adds three things. It listens (`data-stream` of the body: an event stream of the API) or looks at the clock (`data-poll`),
//! fetches the same page again, and puts those parts in place that are marked `data-live`; so there is one way in which
//! anything is drawn. It sends forms marked `data-live-form` without leaving the page. And it has keys.
//!
//! Handlers gather what a page shows; pages are functions of that and of the moment, and know nothing else.

mod agents;
mod assets;
mod chat;
mod extensions;
#[cfg(test)]
mod fixtures;
mod form;
mod help;
mod layout;
mod new_run;
mod panel;
mod parts;
mod playground;
mod problem;
mod run;
mod runs;
mod samples;
mod sidecars;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::{Path, RawQuery};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use self::problem::Problem;
use self::run::stories::Stories;
pub(crate) use self::samples::Samples;
use crate::daemon::App;
use crate::runs::Phase;

/// The pages, without the checks around them.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(runs::show))
        .route("/runs", get(|| async { Redirect::permanent("/") }))
        .route("/runs/new", get(new_run::show).post(new_run::submit))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/log", get(run::log::show))
        .route("/runs/{id}/approvals/{approval}", post(run::actions::answer))
        .route("/runs/{id}/{action}", post(run::actions::act))
        .route("/playground", get(playground::show).post(playground::submit))
        .route("/agents", get(agents::show))
        .route("/chat", get(chat::show).post(chat::send))
        .route("/sidecars", get(sidecars::show))
        .route("/sidecars/{id}", get(sidecars::one))
        .route("/sidecars/{id}/{action}", post(sidecars::act))
        .route("/extensions", get(extensions::show))
        .route("/extensions/{id}", get(extensions::one))
        .route("/extensions/{id}/{action}", post(extensions::act))
        .route("/help", get(help::show))
        .route("/assets/{name}", get(asset))
        .layer(Extension(Stories::new()))
        .layer(Extension(Samples::new()))
}

async fn asset(Path(name): Path<String>, RawQuery(query): RawQuery) -> Response {
    assets::asset(&name, query.as_deref())
}

/// What a handler gives: a page, or why there is none.
type Answer = Result<Response, Problem>;

/// A page on its way to the browser.
fn sent(page: maud::Markup) -> Answer {
    Ok(Html(page.into_string()).into_response())
}

/// Where the browser goes after a form.
fn then(path: &str) -> Answer {
    Ok(Redirect::to(path).into_response())
}

/// How many runs wait for a person. A page without that number is better than no page.
async fn waiting(app: &App) -> u64 {
    let counts = app.runs.counts().await.unwrap_or_default();
    counts.into_iter().filter(|(phase, _)| *phase == Phase::Waiting).map(|(_, count)| count).sum()
}
