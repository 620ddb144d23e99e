//! What the server counts, and how it is written for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper ends of the classes of the histogram, in milliseconds.
const CLASSES_MS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 5000];

/// How many requests there were and how long they took. Bounded: a line for each route and status, never for a path.
#[derive(Debug, Default)]
pub(super) struct Meter {
    requests: Mutex<BTreeMap<Answered, u64>>,
    took: Mutex<BTreeMap<String, Took>>,
    streams: AtomicU64,
    appends: AtomicU64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Answered {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Took {
    classes: [u64; CLASSES_MS.len()],
    count: u64,
    sum: Duration,
}

/// An event stream that is open. Counted until this goes.
#[derive(Debug)]
pub(super) struct OpenStream(std::sync::Arc<Meter>);

impl Meter {
    /// A request was answered, as far as its status.
    pub(super) fn answered(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            *requests.entry(Answered { route: route.to_owned(), method, status }).or_default() += 1;
        }
        let mut books = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        let book = books.entry(route.to_owned()).or_default();
        book.count += 1;
        book.sum += took;
        if let Some(class) = CLASSES_MS.iter().position(|end| took <= Duration::from_millis(*end)) {
            book.classes[class] += 1;
        }
    }

    /// An event stream is open.
    pub(super) fn open_stream(self: &std::sync::Arc<Self>) -> OpenStream {
        self.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(std::sync::Arc::clone(self))
    }

    /// Event streams that are open.
    pub(super) fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    /// The logs of runs grew so many times.
    pub(super) fn appended(&self, times: u64) {
        self.appends.fetch_add(times, Ordering::Relaxed);
    }

    /// The text exposition format, version 0.0.4.
    pub(super) fn write(&self, out: &mut String) {
        family(out, "outrigger_http_requests_total", "counter", "Requests by route and status.");
        for (answered, count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let Answered { route, method, status } = answered;
            let labels = format!("route=\"{}\",method=\"{method}\",status=\"{status}\"", label(route));
            sample(out, &format!("outrigger_http_requests_total{{{labels}}}"), *count);
        }
        let name = "outrigger_http_request_seconds";
        family(out, name, "histogram", "Time to the beginning of the answer, by route.");
        for (route, took) in &*self.took.lock().unwrap_or_else(PoisonError::into_inner) {
            let route = label(route);
            let mut so_far = 0;
            for (end, count) in CLASSES_MS.iter().zip(took.classes) {
                so_far += count;
                let end = *end as f64 / 1000.0;
                sample(out, &format!("{name}_bucket{{route=\"{route}\",le=\"{end}\"}}"), so_far);
            }
            sample(out, &format!("{name}_bucket{{route=\"{route}\",le=\"+Inf\"}}"), took.count);
            let sum = took.sum.as_secs_f64();
            sample(out, &format!("{name}_sum{{route=\"{route}\"}}"), sum);
            sample(out, &format!("{name}_count{{route=\"{route}\"}}"), took.count);
        }
        family(out, "outrigger_http_streams", "gauge", "Event streams that are open.");
        sample(out, "outrigger_http_streams", self.streams());
        let name = "outrigger_run_appends_total";
        family(out, name, "counter", "Times that something was written into the log of a run.");
        sample(out, name, self.appends.load(Ordering::Relaxed));
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The two lines before the samples of a family.
pub(super) fn family(out: &mut String, name: &str, kind: &str, about: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
}

/// One sample.
pub(super) fn sample(out: &mut String, series: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{series} {value}");
}

/// A text as the value of a label.
pub(super) fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_has_every_status_and_classes_that_add_up() {
        let meter = std::sync::Arc::new(Meter::default());
        meter.answered("/v1/runs", "GET", 200, Duration::from_millis(1));
        meter.answered("/v1/runs", "GET", 200, Duration::from_millis(3));
        meter.answered("/v1/runs", "POST", 422, Duration::from_secs(60));
        let open = meter.open_stream();
        meter.appended(7);
        let mut text = String::new();
        meter.write(&mut text);
        insta::assert_snapshot!(text, @r#"
        # HELP outrigger_http_requests_total Requests by route and status.
        # TYPE outrigger_http_requests_total counter
        outrigger_http_requests_total{route="/v1/runs",method="GET",status="200"} 2
        outrigger_http_requests_total{route="/v1/runs",method="POST",status="422"} 1
        # HELP outrigger_http_request_seconds Time to the beginning of the answer, by route.
        # TYPE outrigger_http_request_seconds histogram
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.001"} 1
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.002"} 1
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.005"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.01"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.02"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.05"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.1"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.25"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="0.5"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="1"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="5"} 2
        outrigger_http_request_seconds_bucket{route="/v1/runs",le="+Inf"} 3
        outrigger_http_request_seconds_sum{route="/v1/runs"} 60.004
        outrigger_http_request_seconds_count{route="/v1/runs"} 3
        # HELP outrigger_http_streams Event streams that are open.
        # TYPE outrigger_http_streams gauge
        outrigger_http_streams 1
        # HELP outrigger_run_appends_total Times that something was written into the log of a run.
        # TYPE outrigger_run_appends_total counter
        outrigger_run_appends_total 7
        "#);
        drop(open);
        assert_eq!(meter.streams(), 0);
    }

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
