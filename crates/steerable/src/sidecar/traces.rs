//! `trace.fetch` and `trace.export`.

use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::peer::Outcome;
use serde_json::json;
use serde_json::value::RawValue;

use super::answer::{shown, shutting_down, stored};
use super::runtime::Runtime;
use crate::protocol::{Kind, TraceExport, TraceFetch, not_found};
use crate::store::{Store, TraceKey, TraceTree, otlp};

/// How long a collector has to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// `trace.fetch`.
pub(super) async fn fetch(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let wanted = TraceFetch::read(params.as_deref())?;
    let (key, name) = match &wanted {
        TraceFetch::Trace(id) => (TraceKey::Trace(id), id),
        TraceFetch::Stream(id) => (TraceKey::Stream(id), id),
    };
    match store.trace(key).await.map_err(|error| stored(&error))? {
        Some(tree) => shown(&tree),
        None => Err(not_found(format!("trace not found: {name}"))),
    }
}

/// `trace.export`.
pub(super) async fn export(runtime: Arc<Runtime>, params: Option<Box<RawValue>>) -> Outcome {
    let asked = TraceExport::read(params.as_deref())?;
    let tree = runtime.store.trace(TraceKey::Trace(&asked.trace_id)).await.map_err(|error| stored(&error))?;
    let Some(tree) = tree else {
        return Err(not_found(format!("trace not found: {}", asked.trace_id)));
    };
    tokio::select! {
        biased;
        () = runtime.stop.cancelled() => Err(shutting_down()),
        sent = send(&runtime, &asked, &tree) => sent,
    }
}

async fn send(runtime: &Runtime, asked: &TraceExport, tree: &TraceTree) -> Outcome {
    let wrong =
        |problem: String| Kind::InvalidParams.error(format!("endpoint must be an address: {problem}"));
    let (client, mut url) = runtime.http.open(&asked.endpoint).map_err(|error| wrong(error.to_string()))?;
    if matches!(url.path(), "" | "/") {
        url.set_path("/v1/traces");
    }
    let body = otlp::body(tree, asked.privacy, &asked.service_name);
    let mut request =
        client.post(url).timeout(PATIENCE).header("content-type", "application/json").body(body.to_string());
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    match request.send().await {
        Ok(response) => shown(&json!({
            "status": response.status().as_u16(),
            "traceId": asked.trace_id,
            "privacyMode": asked.privacy.word(),
        })),
        Err(error) if error.is_builder() => Err(Kind::InvalidParams.error("headers must be HTTP headers")),
        Err(error) => {
            // The address may have a password in it.
            let problem = crate::net::http::chain(&error.without_url());
            Err(Kind::TransportClosed.error(format!("the collector could not be reached: {problem}")))
        }
    }
}
