//! What a child says about its run against what was seen. What was seen wins; the difference is written down.

use std::time::Duration;

use outrigger_policy::Digest;
use serde::Serialize;

use super::canonical::{self, Vendor};
use super::head::{Hasher, Meta};
use crate::protocol::fields::each_element;
use crate::protocol::json::Piece;
use crate::protocol::{AgentEvent, BackendIdentity, Manifest, Raw, ReceivedReceipt, Timestamp};

/// How far the clocks of child and host may be apart before it is worth a word.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);

/// The most differences that a receipt lists.
pub const MAX_CLAIMS: usize = 64;

/// Something that the child said and that was not so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Which member.
    pub what: String,
    /// What the child said; none if it said nothing.
    pub claimed: Option<String>,
    /// What was seen.
    pub observed: String,
}

/// What the child says its events were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceClaim {
    /// How many.
    pub events: u64,
    /// The hash of their canonical spellings; none if one of them is not an event.
    pub sha256: Option<Digest>,
}

/// What the host saw.
pub(super) struct Observed<'o> {
    pub(super) meta: &'o Meta,
    pub(super) backend: &'o BackendIdentity,
    pub(super) capabilities: &'o Manifest,
    pub(super) events: u64,
    pub(super) trace: Option<Digest>,
}

impl ReceivedReceipt<'_> {
    /// Counts and hashes the events that the child says it sent, one at a time; none if it sent none along.
    #[must_use]
    pub fn trace_claim(&self) -> Option<TraceClaim> {
        let trace = Piece::read(self.trace.as_ref()?.as_str()).ok()?;
        let (mut events, mut hasher) = (0, Some(Hasher::new()));
        let mut text = Vec::new();
        each_element(&trace, |_, element| {
            events += 1;
            text.clear();
            let spelled = AgentEvent::read(element.text)
                .is_ok_and(|event| canonical::write_event(&mut text, &event, Vendor::Canonical).is_ok());
            match &mut hasher {
                Some(hasher) if spelled => {
                    hasher.update(&text);
                    hasher.update(b"\n");
                }
                _ => hasher = None,
            }
            Ok(())
        })
        .ok()?;
        (events > 0).then(|| TraceClaim { events, sha256: hasher.map(Hasher::finish) })
    }
}

/// Every difference between what the child says and what was seen.
pub(super) fn compare(
    receipt: &ReceivedReceipt<'_>,
    trace: Option<TraceClaim>,
    observed: &Observed<'_>,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut note = |what: &str, claimed: Option<String>, seen: String| {
        if claims.len() < MAX_CLAIMS {
            claims.push(Claim { what: what.to_owned(), claimed, observed: seen });
        }
    };
    let meta = observed.meta;
    match &receipt.run_id {
        Some(id) if id.canonical() == meta.run_id.canonical() => {}
        claimed => note("run_id", claimed.as_ref().map(ToString::to_string), meta.run_id.to_string()),
    }
    match &receipt.work_order_id {
        Some(id) if id.canonical() == meta.work_order_id.canonical() => {}
        claimed => {
            note("work_order_id", claimed.as_ref().map(ToString::to_string), meta.work_order_id.to_string());
        }
    }
    match &receipt.contract_version {
        Some(version) if *version == meta.contract_version => {}
        claimed => {
            let seen = meta.contract_version.to_string();
            note("contract_version", claimed.as_ref().map(ToString::to_string), seen);
        }
    }
    match &receipt.backend {
        Some(backend) if backend == observed.backend => {}
        claimed => {
            note("backend", claimed.as_ref().map(super::head::text), super::head::text(observed.backend))
        }
    }
    // A child that leaves its capabilities to the hello says nothing wrong.
    if let Some(claimed) = receipt.capabilities.as_ref().filter(|claimed| *claimed != observed.capabilities) {
        note("capabilities", Some(super::head::text(claimed)), super::head::text(observed.capabilities));
    }
    let times = [
        ("started_at", receipt.started_at, meta.started_at),
        ("finished_at", receipt.finished_at, meta.finished_at),
    ];
    for (what, claimed, seen) in times {
        match claimed {
            Some(time) if apart(time, seen) <= CLOCK_TOLERANCE => {}
            claimed => note(what, claimed.map(|time| time.to_string()), seen.to_string()),
        }
    }
    if let Some(claimed) = receipt.duration_ms
        && Duration::from_millis(claimed.abs_diff(meta.duration_ms)) > CLOCK_TOLERANCE
    {
        note("duration_ms", Some(claimed.to_string()), meta.duration_ms.to_string());
    }
    if let Some(trace) = trace {
        if trace.events != observed.events {
            note("trace", Some(format!("{} events", trace.events)), format!("{} events", observed.events));
        } else if trace.sha256 != observed.trace {
            let hash =
                |digest: Option<Digest>| digest.map_or("not events".to_owned(), |digest| digest.to_string());
            note("trace", Some(hash(trace.sha256)), hash(observed.trace));
        }
    }
    if receipt.outcome.is_none() {
        note("outcome", None, "a final message".to_owned());
    }
    for problem in &receipt.problems {
        note("receipt", Some(problem.to_string()), "unreadable".to_owned());
    }
    claims
}

fn apart(one: Timestamp, other: Timestamp) -> Duration {
    one.since(other).max(other.since(one))
}

/// What the child says it used, as an object that more can be put into.
pub(super) fn usage_object(usage_raw: Option<&Raw<'_>>) -> Vec<(String, Raw<'static>)> {
    let Some(raw) = usage_raw.filter(|raw| raw.as_str() != "null") else { return Vec::new() };
    match super::head::members(raw) {
        Some(members) => members.into_iter().collect(),
        None => vec![("original".to_owned(), raw.clone().into_owned())],
    }
}
