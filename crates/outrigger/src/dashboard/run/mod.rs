//! One run: where it stands, what waits, what happened, what it left behind.

pub(super) mod actions;
pub(super) mod cards;
pub(super) mod log;
pub(super) mod page;
pub(super) mod stories;
pub(super) mod story;
pub(super) mod talk;
pub(super) mod timeline;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};

use self::page::{Kept, RunPage};
use self::stories::Stories;
use super::parts::patch;
use super::{Answer, sent, waiting};
use crate::daemon::App;
use crate::runs::RunId;
use crate::runs::state::Moment;

/// The largest patch that is taken apart for the page; a larger one can be downloaded.
const MAX_PATCH: usize = 4 << 20;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(stories): Extension<Stories>,
    Path(id): Path<String>,
) -> Answer {
    let id = RunId::parse(&id)?;
    let state = app.runs.show(&id).await?;
    let story = stories.of(&app.runs, &state).await?;
    let patch = match &state.patch {
        // What cannot be read is not there; the page says what it has.
        Some(_) => app.runs.patch(&id).await.ok().flatten().map(|bytes| match bytes.len() {
            0..=MAX_PATCH => Kept::Whole(patch::parse(&bytes)),
            length => Kept::TooLarge(length),
        }),
        None => None,
    };
    let receipt = match &state.receipt {
        Some(_) => app.runs.receipt(&id).await.ok().flatten().map(|(_, check)| check),
        None => None,
    };
    let waiting = waiting(&app).await;
    sent(page::draw(&RunPage { state, story, patch, receipt, waiting, now: Moment::now() }))
}
