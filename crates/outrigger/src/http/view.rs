//! Runs and approvals as the API shows them: what is stored, with links, and without the folders of this machine.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::runs::{Approval, RunState};

/// A run.
pub(super) fn run(state: &RunState) -> Value {
    // Strings, numbers, and maps whose keys are strings: JSON has them all.
    let mut members = match serde_json::to_value(state) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    if let Some(patch) = &state.patch {
        members.insert("patch".to_owned(), file_name(patch).into());
    }
    members.insert("links".to_owned(), links(state));
    Value::Object(members)
}

/// An approval that waits, with the run that it belongs to.
pub(super) fn approval(state: &RunState, approval: &Approval) -> Value {
    json!({
        "run": state.id,
        "title": state.title,
        "backend": state.backend,
        "approval": approval,
        "links": {
            "answer": format!("/v1/runs/{}/approvals/{}", state.id, approval.id.0),
            "run": format!("/v1/runs/{}", state.id),
            "page": format!("/runs/{}", state.id),
        },
    })
}

fn links(state: &RunState) -> Value {
    let own = format!("/v1/runs/{}", state.id);
    let mut links = Map::new();
    let mut link = |name: &str, path: String| links.insert(name.to_owned(), path.into());
    link("request", format!("{own}/request"));
    link("events", format!("{own}/events"));
    link("page", format!("/runs/{}", state.id));
    if state.receipt.is_some() {
        link("receipt", format!("{own}/receipt"));
        link("receipt_check", format!("{own}/receipt/check"));
    }
    if state.patch.is_some() {
        link("patch", format!("{own}/patch"));
    }
    link("self", own);
    Value::Object(links)
}

/// The name of a file without its folder.
pub(super) fn file_name(path: impl AsRef<Path>) -> String {
    path.as_ref().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
