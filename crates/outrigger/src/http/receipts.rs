//! What a run leaves behind: its receipt, whether that holds, and what changed in its workspace.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use super::door::Door;
use super::problem::Problem;
use super::read::OfRun;
use super::view::file_name;
use crate::runs::RunId;

/// How much of a file is in memory at once.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) async fn receipt(State(door): State<Arc<Door>>, OfRun(run): OfRun) -> Result<Response, Problem> {
    let (path, _) = door.app.runs.receipt(&run).await?.ok_or_else(|| none(&run))?;
    let name = file_name(&path);
    let opened = tokio::task::spawn_blocking(move || File::open(path)).await;
    let file = match opened {
        Ok(Ok(file)) => file,
        Ok(Err(error)) => return Err(Problem::own(format!("the receipt {name} cannot be read: {error}"))),
        Err(error) => return Err(Problem::own(format!("the receipt {name} was not read: {error}"))),
    };
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_DISPOSITION, format!("inline; filename=\"{}\"", plain(&name))),
    ];
    Ok((headers, Body::from_stream(stream::unfold(Some(file), chunk))).into_response())
}

/// The next part of a file; a receipt may be larger than memory. An error breaks the answer off, so that nobody takes a part
/// for the whole.
async fn chunk(file: Option<File>) -> Option<(io::Result<Bytes>, Option<File>)> {
    let mut file = file?;
    let read = tokio::task::spawn_blocking(move || -> io::Result<(Bytes, File)> {
        let mut buffer = vec![0; CHUNK_BYTES];
        let count = file.read(&mut buffer)?;
        buffer.truncate(count);
        Ok((Bytes::from(buffer), file))
    });
    match read.await {
        Ok(Ok((bytes, _))) if bytes.is_empty() => None,
        Ok(Ok((bytes, file))) => Some((Ok(bytes), Some(file))),
        Ok(Err(error)) => Some((Err(error), None)),
        Err(error) => Some((Err(io::Error::other(error)), None)),
    }
}

pub(super) async fn check(State(door): State<Arc<Door>>, OfRun(run): OfRun) -> Result<Json<Value>, Problem> {
    let (path, check) = door.app.runs.receipt(&run).await?.ok_or_else(|| none(&run))?;
    let valid = check.is_valid();
    let name = file_name(&path);
    let mut found = serde_json::to_value(&check)
        .map_err(|error| Problem::own(format!("the check cannot be shown: {error}")))?;
    if let Value::Object(members) = &mut found {
        members.insert("path".to_owned(), name.clone().into());
    }
    Ok(Json(json!({ "valid": valid, "file": name, "check": found })))
}

pub(super) async fn patch(State(door): State<Arc<Door>>, OfRun(run): OfRun) -> Result<Response, Problem> {
    let patch = door.app.runs.patch(&run).await?.ok_or_else(|| {
        Problem::not_found(
            "no_patch",
            format!("the run `{run}` has changed nothing in a workspace of its own"),
        )
    })?;
    Ok(([(CONTENT_TYPE, "text/x-diff; charset=utf-8")], patch).into_response())
}

fn none(run: &RunId) -> Problem {
    Problem::not_found("no_receipt", format!("the run `{run}` has no receipt"))
        .hint("a run has one when it is over")
}

/// A name that cannot leave its quotes in a header.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    name.chars().filter(is_plain).collect()
}
