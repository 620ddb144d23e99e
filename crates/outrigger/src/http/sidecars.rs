//! The processes that the daemon runs: who they are, what they use, what they said last; stop and restart.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use outrigger_supervise::driver::{Child, ChildId};
use outrigger_supervise::metrics::{ChildMetrics, Metrics};
use outrigger_supervise::state::Ladder;
use serde_json::{Value, json};

use super::door::Door;
use super::problem::Problem;
use super::read::Named;

/// How long a process has to go by itself.
const LADDER: Ladder = Ladder { ask: Duration::from_secs(2), term: Duration::from_secs(3) };

pub(super) async fn list(State(door): State<Arc<Door>>) -> Result<Json<Value>, Problem> {
    let metrics = measured(&door).await?;
    let sidecars: Vec<Value> = metrics.children.iter().map(shown).collect();
    Ok(Json(json!({ "sidecars": sidecars, "starts": metrics.starts, "restarts": metrics.restarts })))
}

/// The numbers of all processes. Reads the process table, so not on a thread that serves requests.
pub(super) async fn measured(door: &Door) -> Result<Metrics, Problem> {
    let metrics = door.app.supervisor.metrics();
    let measured = tokio::task::spawn_blocking(move || {
        let unmeasured = metrics.clone();
        metrics.measure().unwrap_or(unmeasured)
    });
    measured.await.map_err(|error| Problem::own(format!("the processes were not measured: {error}")))
}

fn shown(child: &ChildMetrics) -> Value {
    json!({
        "id": child.id,
        "name": child.name,
        "phase": child.phase.to_string(),
        "pid": child.pid.map(|pid| pid.get()),
        "incarnation": child.incarnation.0,
        "uptime_ms": child.uptime.map(|uptime| u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX)),
        "rss_bytes": child.usage.map(|usage| usage.rss_bytes),
        "processes": child.usage.map(|usage| usage.processes),
    })
}

pub(super) async fn logs(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    let child = named(&door, &names)?;
    Ok(Json(json!({
        "id": child.id(),
        "name": child.name(),
        "stderr": child.stderr_tail(),
        "stdout": child.stdout_tail(),
    })))
}

pub(super) async fn stop(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    let child = named(&door, &names)?;
    let outcome = child.stop(LADDER).await;
    let how = outcome.report.map(|report| report.to_string());
    Ok(Json(json!({ "id": child.id(), "name": child.name(), "phase": "exited", "how": how })))
}

pub(super) async fn restart(State(door): State<Arc<Door>>, names: Named) -> Result<Json<Value>, Problem> {
    let child = named(&door, &names)?;
    child.restart(LADDER).await;
    let phase = child.status().phase.to_string();
    Ok(Json(json!({ "id": child.id(), "name": child.name(), "phase": phase })))
}

fn named(door: &Door, Named(names): &Named) -> Result<Child, Problem> {
    let name = names.first().map(String::as_str).unwrap_or_default();
    let child = name.parse().ok().and_then(|number| door.app.supervisor.child(ChildId(number)));
    child.ok_or_else(|| {
        let shown: String = name.chars().take(40).collect();
        Problem::not_found("no_such_sidecar", format!("there is no process `{shown}`"))
            .hint("GET /v1/sidecars lists them by `id`; one that has ended for good is not there any more")
    })
}
