//! Extensions: who they are, what they may, what their panels show, what can be done with them.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use outrigger_sep::host::record::log;
use outrigger_sep::host::ui::{InvokeError, PanelView};
use outrigger_sep::host::{AskError, CallError, Fleet};
use outrigger_sep::protocol::{ExtensionId, Permission, Slot, TrustLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::door::Door;
use super::problem::Problem;
use super::read::{self, Named, Query};
use super::view::file_name;
use crate::daemon::Extensions;

/// How much of the end of the audit is looked at.
const AUDIT_BYTES: u64 = 4 << 20;

/// An action of a panel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    /// Which panel of the extension; may be left out if it has one.
    #[serde(default)]
    panel: Option<String>,
    /// Which action of it.
    action: String,
    /// What the action asks for, if it does.
    #[serde(default)]
    input: Option<String>,
}

/// A permission that is given or taken back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Permit {
    /// Its name; all that the extension declares if none is given.
    #[serde(default)]
    permission: Option<String>,
}

pub(super) async fn list(State(door): State<Arc<Door>>) -> Result<Json<Value>, Problem> {
    let list = fleet(&door)?.list().await;
    let mut shown = Vec::new();
    for summary in list {
        shown.push(without_folder(value(&summary)?));
    }
    Ok(Json(json!({ "extensions": shown })))
}

pub(super) async fn show(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    let detail = fleet(&door)?.show(key(&names)).await.map_err(refused)?;
    let mut shown = value(&detail)?;
    if let Some(summary) = shown.get_mut("summary") {
        *summary = without_folder(summary.take());
    }
    Ok(Json(shown))
}

pub(super) async fn panel(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    let fleet = fleet(&door)?;
    let id = extension(fleet, &names).await?;
    let snapshot = fleet.panels().snapshot();
    let own = snapshot.slots.iter().filter(|(_, panel)| panel.extension_id == id);
    let panels: Vec<Value> =
        own.map(|(slot, panel)| json!({ "slot": slot, "panel": panel })).collect::<Vec<_>>();
    Ok(Json(json!({ "revision": snapshot.revision, "panels": panels })))
}

pub(super) async fn start(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "start").await
}

pub(super) async fn stop(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "stop").await
}

pub(super) async fn restart(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "restart").await
}

pub(super) async fn enable(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "enable").await
}

pub(super) async fn disable(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "disable").await
}

pub(super) async fn reset(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    changed(&door, &names, "reset").await
}

async fn changed(door: &Door, names: &Named, what: &'static str) -> Result<Json<Value>, Problem> {
    let (fleet, id) = (fleet(door)?, key(names));
    let view = match what {
        "start" => fleet.start_one(id).await,
        "stop" => fleet.stop_one(id).await,
        "restart" => fleet.restart_one(id).await,
        "enable" => fleet.enable(id).await,
        "disable" => fleet.disable(id).await,
        _ => fleet.reset(id).await,
    };
    let view = view.map_err(refused)?;
    Ok(Json(json!({
        "state": view.state,
        "disabled": view.disabled,
        "failed": view.failed,
        "detail": view.detail,
    })))
}

pub(super) async fn call(
    State(door): State<Arc<Door>>,
    names: Named,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let Call { panel, action, input } = read::json(&headers, &body)?;
    let fleet = fleet(&door)?;
    let id = extension(fleet, &names).await?;
    let panel = match panel {
        Some(panel) => format!("{id}/{panel}"),
        None => only_panel(fleet, &id)?,
    };
    let invoked = fleet.call(&panel, &action, input.as_deref()).await.map_err(not_called)?;
    Ok(Json(value(&invoked)?))
}

/// The panel of an extension that has one.
fn only_panel(fleet: &Fleet, id: &ExtensionId) -> Result<String, Problem> {
    let snapshot = fleet.panels().snapshot();
    let own: Vec<(Slot, &PanelView)> =
        snapshot.slots.iter().filter(|(_, panel)| panel.extension_id == *id).collect();
    match own.as_slice() {
        [(_, only)] => Ok(only.panel_key.to_string()),
        [] => Err(Problem::not_found("no_such_panel", format!("{id} has no panel"))),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, panel)| panel.panel_key.panel()).collect();
            let message = format!("{id} has {} panels: {}", names.len(), names.join(", "));
            Err(Problem::conflict("several_panels", message)
                .with("panels", names)
                .hint("name one of them: {\"panel\": \"…\"}"))
        }
    }
}

pub(super) async fn grant(
    State(door): State<Arc<Door>>,
    names: Named,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let permissions = permissions(&headers, &body)?;
    let given = fleet(&door)?.grant(key(&names), &permissions).await.map_err(refused)?;
    Ok(Json(json!({ "granted": given })))
}

pub(super) async fn revoke(
    State(door): State<Arc<Door>>,
    names: Named,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let permissions = permissions(&headers, &body)?;
    let taken = fleet(&door)?.revoke(key(&names), &permissions).await.map_err(refused)?;
    Ok(Json(json!({ "revoked": taken })))
}

fn permissions(headers: &HeaderMap, body: &Bytes) -> Result<Vec<Permission>, Problem> {
    let Permit { permission } = read::json(headers, body)?;
    let read = permission.as_deref().map(Permission::parse).transpose();
    let read = read.map_err(|error| Problem::unfit("permission", error.to_string()))?;
    Ok(read.into_iter().collect())
}

pub(super) async fn logs(
    State(door): State<Arc<Door>>,
    names: Named,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let limit = Query::of(&uri, &["limit"])?.limit(200, 1000)?;
    let fleet = fleet(&door)?;
    let id = extension(fleet, &names).await?;
    let folder = fleet.state_dir().join("logs").join(id.as_str());
    // As many files as anybody may have.
    let ceilings = outrigger_sep::manifest::ceilings(TrustLevel::FirstParty);
    let lines = blocking(move || log::tail_of(&folder, &ceilings, limit)).await?;
    Ok(Json(json!({ "lines": lines })))
}

pub(super) async fn audit(
    State(door): State<Arc<Door>>,
    names: Named,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let limit = Query::of(&uri, &["limit"])?.limit(200, 1000)?;
    let fleet = fleet(&door)?;
    let id = extension(fleet, &names).await?;
    let path = fleet.state_dir().join("audit").join("audit.log");
    let records = blocking(move || audit_of(path, id.as_str(), limit)).await?;
    let records = records.map_err(|error| Problem::own(format!("the audit cannot be read: {error}")))?;
    Ok(Json(json!({ "records": records })))
}

/// The last records about an extension, from the end of the file, oldest first.
fn audit_of(path: PathBuf, id: &str, limit: usize) -> std::io::Result<Vec<Value>> {
    let mut file = std::fs::File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(AUDIT_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(AUDIT_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let records = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut records: Vec<Value> = records.filter(|record| record["ext"] == id).take(limit).collect();
    records.reverse();
    Ok(records)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::own(format!("a file was not read: {error}")))
}

/// The host of extensions, if there is one.
fn fleet(door: &Door) -> Result<&Fleet, Problem> {
    match &door.app.extensions {
        Extensions::On(fleet) => Ok(fleet),
        Extensions::Off { hint } => {
            Err(Problem::not_found("extensions_off", "the daemon runs no extensions").hint(hint.clone()))
        }
        Extensions::Failed { why } => {
            let message = format!("the host of extensions could not be started: {why}");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "extensions_failed", message))
        }
    }
}

fn key(Named(names): &Named) -> &str {
    names.first().map(String::as_str).unwrap_or_default()
}

/// The extension that a path names. Its name is part of paths of files, so it must be one.
async fn extension(fleet: &Fleet, names: &Named) -> Result<ExtensionId, Problem> {
    let detail = fleet.show(key(names)).await.map_err(refused)?;
    detail.summary.id.ok_or_else(|| Problem::not_found("no_such_extension", "this extension has no name"))
}

fn refused(error: AskError) -> Problem {
    let message = error.to_string();
    match error {
        AskError::Unknown { .. } => Problem::not_found("no_such_extension", message),
        AskError::State { state, .. } => {
            Problem::conflict("wrong_state", message).with("state", value(&state).unwrap_or_default())
        }
        AskError::Permission { .. } => Problem::unfit("permission", message),
        AskError::NotRecorded { .. } => Problem::own(message),
        AskError::Leaving | AskError::NotUp => Problem::busy("draining", message, Duration::from_secs(5)),
    }
}

fn not_called(error: CallError) -> Problem {
    let message = error.to_string();
    match error {
        CallError::Key(_) => Problem::unfit("panel", message),
        CallError::Refused(InvokeError::NoPanel { .. }) => Problem::not_found("no_such_panel", message),
        CallError::Refused(InvokeError::NoAction { .. }) => Problem::not_found("no_such_action", message),
        CallError::Refused(InvokeError::BadInput { .. }) => Problem::unfit("input", message),
        CallError::Refused(InvokeError::Busy) => Problem::conflict("panel_busy", message),
        CallError::Refused(InvokeError::Dormant { .. } | InvokeError::Unavailable { .. })
        | CallError::Asleep { .. }
        | CallError::Gone { .. } => Problem::conflict("not_running", message),
        CallError::Failed(_) | CallError::Unfit { .. } => {
            Problem::new(StatusCode::BAD_GATEWAY, "extension_failed", message)
        }
    }
}

fn value(of: &impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(of).map_err(|error| Problem::own(format!("this cannot be shown: {error}")))
}

fn without_folder(mut summary: Value) -> Value {
    if let Some(dir) = summary.get_mut("dir") {
        *dir = file_name(dir.as_str().unwrap_or_default()).into();
    }
    summary
}
