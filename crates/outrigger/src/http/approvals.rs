//! Approvals: what waits for a person, and what they say.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::door::Door;
use super::problem::Problem;
use super::read::{self, Named, OfRun, Query};
use super::view;
use crate::runs::{Actor, Answer, ApprovalId, Choice, RunState, Waiting};

/// A yes or a no.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    /// Which approval; may be left out if only one waits.
    #[serde(default)]
    approval: Option<String>,
    /// In words; with a no the run is told.
    #[serde(default)]
    reason: Option<String>,
}

pub(super) async fn waiting(State(door): State<Arc<Door>>, uri: Uri) -> Result<Json<Value>, Problem> {
    let limit = Query::of(&uri, &["limit"])?.limit(200, 1000)?;
    let waiting = door.app.runs.waiting().await?;
    let shown: Vec<Value> = waiting.iter().take(limit).map(view::approval).collect();
    Ok(Json(json!({ "approvals": shown, "total": waiting.len() })))
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Named(names): Named,
) -> Result<Json<Value>, Problem> {
    let RunState { title, backend, .. } = door.app.runs.show(&run).await?;
    let approval = door.app.runs.approval(&run, &second(names)).await?;
    Ok(Json(view::approval(&Waiting { run, title, backend, approval })))
}

/// The approval that a path names after its run.
fn second(names: Vec<String>) -> ApprovalId {
    ApprovalId(names.into_iter().nth(1).unwrap_or_default())
}

pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Named(names): Named,
    Extension(by): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<view::Run>, Problem> {
    let answer: Answer = read::json(&headers, &body)?;
    Ok(Json(view::run(door.app.runs.answer(&run, &second(names), answer, by).await?)))
}

pub(super) async fn approve(
    door: State<Arc<Door>>,
    run: OfRun,
    by: Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<view::Run>, Problem> {
    say(door, run, by, &read::json(&headers, &body)?, Choice::Approve).await
}

pub(super) async fn deny(
    door: State<Arc<Door>>,
    run: OfRun,
    by: Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<view::Run>, Problem> {
    say(door, run, by, &read::json(&headers, &body)?, Choice::Deny).await
}

/// A bare yes or no.
async fn say(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    Extension(by): Extension<Actor>,
    verdict: &Verdict,
    choice: Choice,
) -> Result<Json<view::Run>, Problem> {
    let state = door.app.runs.show(&run).await?;
    let approval = meant(&state, verdict.approval.clone())?;
    let answer = Answer { reason: verdict.reason.clone(), ..Answer::plain(choice) };
    Ok(Json(view::run(door.app.runs.answer(&run, &approval, answer, by).await?)))
}

/// The approval that somebody means who may not have named it.
fn meant(state: &RunState, named: Option<String>) -> Result<ApprovalId, Problem> {
    if let Some(named) = named {
        return Ok(ApprovalId(named));
    }
    let open: Vec<&ApprovalId> = state.open_approvals().map(|approval| &approval.id).collect();
    match open.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let message = format!("nothing of this run waits for a person; it is {}", state.phase.word());
            Err(Problem::conflict("nothing_waits", message).with("phase", state.phase.word()))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|id| id.0.as_str()).collect();
            let message = format!("{} approvals wait: {}", names.len(), names.join(", "));
            let hint = "name one of them: {\"approval\": \"…\"}";
            Err(Problem::conflict("several_wait", message).with("open", names).hint(hint))
        }
    }
}
