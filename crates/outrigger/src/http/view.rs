//! Runs and approvals as the API shows them: what is stored, with links, and without the folders of this machine.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::runs::{RunId, RunState, Waiting};

/// A run. Written as it is, not by way of a [`Value`]: lists have hundreds of them.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    #[serde(flatten)]
    state: RunState,
    links: Links,
}

#[derive(Debug, Serialize)]
struct Links {
    #[serde(rename = "self")]
    own: String,
    request: String,
    events: String,
    page: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

/// A run with its links.
pub(super) fn run(mut state: RunState) -> Run {
    let links = links(&state);
    state.patch = state.patch.map(file_name);
    Run { state, links }
}

/// An approval that waits, with the run that it belongs to.
pub(super) fn approval(waiting: &Waiting) -> Value {
    let Waiting { run, title, backend, approval } = waiting;
    json!({
        "run": run,
        "title": title,
        "backend": backend,
        "approval": approval,
        "links": {
            "answer": format!("/v1/runs/{run}/approvals/{}", approval.id.0),
            "run": format!("/v1/runs/{run}"),
            "page": format!("/runs/{run}"),
        },
    })
}

fn links(state: &RunState) -> Links {
    let own = path(&state.id);
    let receipt = state.receipt.is_some();
    Links {
        request: format!("{own}/request"),
        events: format!("{own}/events"),
        page: format!("/runs/{}", state.id),
        receipt: receipt.then(|| format!("{own}/receipt")),
        receipt_check: receipt.then(|| format!("{own}/receipt/check")),
        patch: state.patch.is_some().then(|| format!("{own}/patch")),
        own,
    }
}

/// Where a run is.
pub(super) fn path(run: &RunId) -> String {
    format!("/v1/runs/{run}")
}

/// The name of a file without its folder.
pub(super) fn file_name(path: impl AsRef<Path>) -> String {
    path.as_ref().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
