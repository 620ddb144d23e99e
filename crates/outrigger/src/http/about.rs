//! The daemon about itself: health, version, numbers, backends, tools, and what can be asked.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::door::Door;
use super::meter::{family, sample};
use super::problem::Problem;
use super::sidecars::measured;
use crate::daemon::Extensions;
use crate::runs::BackendView;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn health(State(door): State<Arc<Door>>) -> Response {
    let leaving = door.is_leaving() || door.app.runs.is_draining();
    let status = if leaving { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (status, Json(json!({ "ok": !leaving, "version": VERSION, "draining": leaving }))).into_response()
}

pub(super) async fn version(State(door): State<Arc<Door>>) -> Json<Value> {
    Json(json!({ "version": VERSION, "api": "v1", "uptime_seconds": door.app.since.elapsed().as_secs() }))
}

pub(super) async fn document(
    State(door): State<Arc<Door>>,
) -> ([(axum::http::HeaderName, &'static str); 1], Bytes) {
    ([(CONTENT_TYPE, "application/json")], door.openapi.clone())
}

pub(super) async fn backends(State(door): State<Arc<Door>>) -> Json<Value> {
    let backends: Vec<BackendView> = door.app.runs.backends().await;
    Json(json!({ "backends": backends }))
}

pub(super) async fn tools(State(door): State<Arc<Door>>) -> Json<Value> {
    let tools = door.app.runs.tools();
    let tools: Vec<Value> =
        tools.into_iter().map(|(name, about)| json!({ "name": name, "about": about })).collect();
    Json(json!({ "tools": tools }))
}

pub(super) async fn metrics(State(door): State<Arc<Door>>) -> Result<Response, Problem> {
    let mut text = String::new();
    family(&mut text, "outrigger_runs", "gauge", "Runs by phase.");
    for (phase, count) in door.app.runs.counts().await? {
        sample(&mut text, &format!("outrigger_runs{{phase=\"{}\"}}", phase.word()), count);
    }
    door.meter.write(&mut text);
    let app = Arc::clone(&door.app);
    let looked = tokio::task::spawn_blocking(move || (resident_bytes(), (app.store_bytes)())).await;
    let (resident, stored) =
        looked.map_err(|error| Problem::own(format!("the files cannot be looked at: {error}")))?;
    family(&mut text, "outrigger_store_bytes", "gauge", "What the store takes on disk.");
    sample(&mut text, "outrigger_store_bytes", stored);
    if let Some(bytes) = resident {
        family(&mut text, "process_resident_memory_bytes", "gauge", "Resident memory of the daemon.");
        sample(&mut text, "process_resident_memory_bytes", bytes);
    }
    family(&mut text, "outrigger_uptime_seconds", "gauge", "How long the daemon has been running.");
    sample(&mut text, "outrigger_uptime_seconds", door.app.since.elapsed().as_secs());
    text.push_str(&measured(&door).await?.to_prometheus());
    if let Extensions::On(fleet) = &door.app.extensions {
        text.push_str(&fleet.metrics().to_text());
    }
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// The resident memory of this process, where the system tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
