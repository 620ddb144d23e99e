//! Runs: begin, list, look, cancel, steer, go on, again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::door::Door;
use super::problem::Problem;
use super::read::{self, OfRun, Query, expect_json};
use super::view;
use crate::engine::{Begun, Seq};
use crate::runs::{Actor, ListQuery, NewRun, Phase, RunId, RunState, RunsError};

/// The longest reason.
const MAX_WHY: usize = 2000;

/// What is said to an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Steer {
    /// What to say.
    text: String,
}

/// Why a run is ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    /// In words, for the log.
    #[serde(default)]
    why: Option<String>,
}

/// Where a run is begun again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The number of a `suspended` record of a script; the beginning if none is given.
    #[serde(default)]
    at: Option<u64>,
}

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) async fn submit(
    State(door): State<Arc<Door>>,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    expect_json(&headers)?;
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| Problem::bad("bad_json", format!("the body is not JSON: {error}")))?;
    let new = NewRun::from_value(value)?;
    let known = match new.id.as_deref().map(RunId::parse) {
        Some(Ok(id)) => match door.app.runs.show(&id).await {
            Ok(_) => Known::Before,
            Err(RunsError::NoSuchRun(_)) => Known::New,
            Err(error) => return Err(error.into()),
        },
        Some(Err(_)) | None => Known::New,
    };
    let state = door.app.runs.submit(new, by).await?;
    Ok(begun(state, known))
}

/// Whether a run was there before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    New,
    Before,
}

/// A run that there is now.
fn begun(state: RunState, known: Known) -> Response {
    let at = view::path(&state.id);
    let run = Json(view::run(state));
    match known {
        Known::Before => run.into_response(),
        Known::New => (StatusCode::CREATED, [(LOCATION, at)], run).into_response(),
    }
}

/// A page of runs.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    runs: Vec<view::Run>,
    /// Where the next page begins.
    next: Option<u64>,
}

pub(super) async fn list(State(door): State<Arc<Door>>, uri: Uri) -> Result<Json<Listed>, Problem> {
    let query = Query::of(&uri, &["phase", "before", "limit"])?;
    let mut phases = Vec::new();
    for word in query.words("phase") {
        phases.push(phase(word)?);
    }
    let before = query.number("before")?.map(Begun);
    let wanted = ListQuery { phases, before, limit: query.limit(50, 200)? };
    let page = door.app.runs.list(wanted).await?;
    let runs = page.runs.into_iter().map(view::run).collect();
    Ok(Json(Listed { runs, next: page.next.map(|begun| begun.0) }))
}

fn phase(word: &str) -> Result<Phase, Problem> {
    Phase::of_word(word).ok_or_else(|| {
        let known = Phase::ALL.map(Phase::word).join(", ");
        Problem::bad("bad_query", "there is no such phase").at("phase").hint(format!("there are: {known}"))
    })
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
) -> Result<Json<view::Run>, Problem> {
    Ok(Json(view::run(door.app.runs.show(&run).await?)))
}

pub(super) async fn request(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
) -> Result<Json<NewRun>, Problem> {
    Ok(Json(door.app.runs.request(&run).await?))
}

pub(super) async fn forget(State(door): State<Arc<Door>>, OfRun(run): OfRun) -> Result<StatusCode, Problem> {
    door.app.runs.forget(&run).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn steer(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<view::Run>, Problem> {
    let Steer { text } = read::json(&headers, &body)?;
    Ok(Json(view::run(door.app.runs.steer(&run, text, by).await?)))
}

pub(super) async fn cancel(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<view::Run>, Problem> {
    let Cancel { why } = read::json(&headers, &body)?;
    let why = match why {
        Some(why) if why.chars().count() > MAX_WHY => {
            return Err(Problem::unfit("why", format!("`why` may have {MAX_WHY} characters")));
        }
        Some(why) if !why.trim().is_empty() => why,
        Some(_) | None => format!("cancelled by {}", by.0),
    };
    Ok(Json(view::run(door.app.runs.cancel(&run, why, by).await?)))
}

pub(super) async fn resume(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let Nothing {} = read::json(&headers, &body)?;
    let state = door.app.runs.resume(&run, by).await?;
    let known = if state.id == run { Known::Before } else { Known::New };
    Ok(begun(state, known))
}

pub(super) async fn fork(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let Fork { at } = read::json(&headers, &body)?;
    let state = door.app.runs.fork(&run, at.map(Seq), by).await?;
    Ok(begun(state, Known::New))
}

pub(super) async fn replay(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let Nothing {} = read::json(&headers, &body)?;
    let state = door.app.runs.replay(&run, by).await?;
    Ok(begun(state, Known::New))
}
