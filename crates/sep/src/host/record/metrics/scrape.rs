//! The numbers as text for a scraper and as JSON for a program: the same families, the same labels.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::label::{CODES, METHODS, TOPICS, UNKNOWN};
use super::{BOUNDS, EventFate, Incident, Metrics, MetricsBook};
use crate::protocol::{ExitKind, ExtensionId, Permission, State};

/// One family of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The numbers.
    pub samples: Vec<Sample>,
}

/// One number with its labels. Counters that are zero are not listed, unless they have no label but the extension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The extension.
    pub ext: ExtensionId,
    /// Further labels, in order.
    pub labels: Vec<(&'static str, String)>,
    /// `_bucket`, `_sum` or `_count` of a histogram; else empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub part: &'static str,
    /// The number.
    pub value: f64,
}

impl MetricsBook {
    /// All numbers in the text exposition format, version 0.0.4.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for family in self.families() {
            let Family { name, kind, help, samples } = family;
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for Sample { ext, labels, part, value } in samples {
                let _ = write!(out, "{name}{part}{{ext=\"{ext}\"");
                // Every label is one of our own words: nothing has to be escaped.
                for (label, text) in labels {
                    let _ = write!(out, ",{label}=\"{text}\"");
                }
                let _ = writeln!(out, "}} {value}");
            }
        }
        out
    }

    /// All numbers, family by family.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let extensions = self.list();
        FAMILIES
            .iter()
            .map(|(name, kind, help, read)| {
                let samples = extensions.iter().flat_map(|(ext, metrics)| {
                    let mut sink = Sink { ext, samples: Vec::new() };
                    read(metrics, &mut sink);
                    sink.samples
                });
                Family { name, kind, help, samples: samples.collect() }
            })
            .collect()
    }
}

struct Sink<'a> {
    ext: &'a ExtensionId,
    samples: Vec<Sample>,
}

impl Sink<'_> {
    fn put(&mut self, labels: Vec<(&'static str, String)>, part: &'static str, value: f64) {
        self.samples.push(Sample { ext: self.ext.clone(), labels, part, value });
    }

    fn plain(&mut self, value: f64) {
        self.put(Vec::new(), "", value);
    }

    fn counted(&mut self, counter: &AtomicU64, labels: impl FnOnce() -> Vec<(&'static str, String)>) {
        let value = load(counter);
        if value > 0.0 {
            self.put(labels(), "", value);
        }
    }
}

type Read = fn(&Metrics, &mut Sink<'_>);

const FAMILIES: [(&str, &str, &str, Read); 24] = [
    ("sep_starts_total", "counter", "Processes started.", |m, sink| sink.plain(load(&m.starts))),
    ("sep_exits_total", "counter", "Processes ended, by kind.", exits),
    ("sep_restarts_total", "counter", "Processes started after a crash.", |m, sink| {
        sink.plain(load(&m.restarts));
    }),
    ("sep_rpc_failed_total", "counter", "Calls answered with an error, by code.", rpc_failed),
    ("sep_permission_denied_total", "counter", "Calls denied for want of a permission.", denied),
    ("sep_rpc_total", "counter", "Calls answered, in both directions.", rpc),
    ("sep_rpc_duration_seconds", "histogram", "How long calls took.", durations),
    ("sep_rate_limited_total", "counter", "Requests that came too fast.", |m, sink| {
        sink.plain(incident(m, Incident::RateLimited));
    }),
    ("sep_events_offered_total", "counter", "Events the extension was to hear about.", |m, sink| {
        events(m, sink, EventFate::Offered);
    }),
    ("sep_events_delivered_total", "counter", "Events that were acknowledged.", |m, sink| {
        events(m, sink, EventFate::Delivered);
    }),
    ("sep_events_dropped_total", "counter", "Events thrown away because too many waited.", |m, sink| {
        events(m, sink, EventFate::Dropped);
    }),
    ("sep_events_coalesced_total", "counter", "Events that a newer one replaced.", |m, sink| {
        events(m, sink, EventFate::Coalesced);
    }),
    ("sep_health_missed_total", "counter", "Health requests without an answer in time.", |m, sink| {
        sink.plain(incident(m, Incident::HealthMissed));
    }),
    ("sep_frames_oversize_total", "counter", "Frames that were too long.", |m, sink| {
        sink.plain(incident(m, Incident::FrameOversize));
    }),
    ("sep_protocol_violations_total", "counter", "Frames that broke the protocol.", |m, sink| {
        sink.plain(incident(m, Incident::ProtocolViolation));
    }),
    ("sep_attach_denied_total", "counter", "Attempts to attach that were refused.", |m, sink| {
        sink.plain(incident(m, Incident::AttachDenied));
    }),
    ("sep_reclaims_total", "counter", "Processes that the platform took.", |m, sink| {
        sink.plain(incident(m, Incident::Reclaimed));
    }),
    ("sep_log_dropped_total", "counter", "Log lines that came too fast.", |m, sink| {
        sink.plain(load(&m.log_dropped));
    }),
    ("sep_state", "gauge", "1 for the state that the extension is in.", state),
    ("sep_inflight", "gauge", "Requests of the extension being worked on.", |m, sink| {
        sink.plain(m.inflight.load(Ordering::Relaxed).max(0) as f64);
    }),
    ("sep_queue_len", "gauge", "Events that wait.", |m, sink| sink.plain(load(&m.queue_len))),
    ("sep_queue_bytes", "gauge", "Bytes of events that wait.", |m, sink| sink.plain(load(&m.queue_bytes))),
    ("sep_uptime_seconds", "gauge", "How long the process has been running.", |m, sink| {
        let since = *m.running_since.lock().unwrap_or_else(PoisonError::into_inner);
        sink.plain(since.map_or(0.0, |since| since.elapsed().as_secs() as f64));
    }),
    ("sep_rss_bytes", "gauge", "Memory of the tree of processes.", |m, sink| sink.plain(load(&m.rss))),
];

fn exits(metrics: &Metrics, sink: &mut Sink<'_>) {
    for kind in ExitKind::ALL {
        sink.counted(&metrics.exits[*kind as usize], || vec![("kind", kind.to_string())]);
    }
}

fn rpc(metrics: &Metrics, sink: &mut Sink<'_>) {
    for (counter, method) in metrics.rpc.iter().zip(METHODS) {
        sink.counted(counter, || vec![("method", method.to_owned())]);
    }
}

fn rpc_failed(metrics: &Metrics, sink: &mut Sink<'_>) {
    for (counters, method) in metrics.rpc_failed.iter().zip(METHODS) {
        for (counter, code) in counters.iter().zip(CODES) {
            let code = || if code == 0 { UNKNOWN.to_owned() } else { code.to_string() };
            sink.counted(counter, || vec![("method", method.to_owned()), ("code", code())]);
        }
    }
}

fn denied(metrics: &Metrics, sink: &mut Sink<'_>) {
    for (counters, method) in metrics.denied.iter().zip(METHODS) {
        for (counter, permission) in counters.iter().zip(Permission::ALL) {
            sink.counted(counter, || {
                vec![("method", method.to_owned()), ("permission", permission.to_string())]
            });
        }
    }
}

fn durations(metrics: &Metrics, sink: &mut Sink<'_>) {
    let mut below = 0.0;
    for (counter, bound) in metrics.durations.iter().zip(BOUNDS) {
        below += load(counter);
        let seconds = (bound as f64 / 1e6).to_string();
        sink.put(vec![("le", seconds)], "_bucket", below);
    }
    below += metrics.durations.last().map_or(0.0, load);
    sink.put(vec![("le", "+Inf".to_owned())], "_bucket", below);
    sink.put(Vec::new(), "_sum", load(&metrics.duration_sum) / 1e6);
    sink.put(Vec::new(), "_count", below);
}

fn events(metrics: &Metrics, sink: &mut Sink<'_>, fate: EventFate) {
    for (counters, topic) in metrics.events.iter().zip(TOPICS) {
        sink.counted(&counters[fate as usize], || vec![("topic", topic.to_owned())]);
    }
}

fn state(metrics: &Metrics, sink: &mut Sink<'_>) {
    let state = usize::try_from(metrics.state.load(Ordering::Relaxed)).ok();
    if let Some(state) = state.and_then(|state| State::ALL.get(state)) {
        sink.put(vec![("state", state.to_string())], "", 1.0);
    }
}

fn incident(metrics: &Metrics, incident: Incident) -> f64 {
    load(&metrics.incidents[incident as usize])
}

fn load(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}
