//! Server-sent events as text, and streams of them with a heartbeat.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;

/// For somebody who hears nothing: a comment, which readers skip.
pub(super) const BEAT: &str = ": still here\n\n";

/// What a stream begins with: come back after a second if it breaks.
pub(super) const RETRY: &str = "retry: 1000\n\n";

/// One event.
pub(super) struct Frame<'a> {
    pub(super) id: Option<u64>,
    pub(super) event: &'a str,
    pub(super) data: &'a str,
}

impl Frame<'_> {
    /// Adds it to what is sent.
    pub(super) fn write(&self, out: &mut String) {
        if let Some(id) = self.id {
            out.push_str("id: ");
            out.push_str(&id.to_string());
            out.push('\n');
        }
        out.push_str("event: ");
        // A name with a line break in it would be two lines, and the second one whatever its author likes.
        out.extend(self.event.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')));
        out.push('\n');
        // Line breaks end a line here, also a bare carriage return. Nearly nothing has one, and to look is faster than to split.
        if self.data.contains('\n') || self.data.contains('\r') {
            for line in self.data.split(['\r', '\n']) {
                data_line(out, line);
            }
        } else {
            data_line(out, self.data);
        }
        out.push('\n');
    }
}

fn data_line(out: &mut String, line: &str) {
    out.push_str("data: ");
    out.push_str(line);
    out.push('\n');
}

/// Whether somebody wants a stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.contains("text/event-stream"))
}

/// The number of the last event that somebody has seen, if they come back.
pub(super) fn last_seen(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

/// An answer that goes on.
pub(super) fn response(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt;
    let body = Body::from_stream(stream.map(Ok::<_, Infallible>));
    let headers = [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        // Proxies that gather answers would hold events back.
        (axum::http::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: Option<u64>, event: &str, data: &str) -> String {
        let mut out = String::new();
        Frame { id, event, data }.write(&mut out);
        out
    }

    #[test]
    fn an_event_has_its_number_its_kind_and_its_data() {
        assert_eq!(written(Some(7), "event", "{}"), "id: 7\nevent: event\ndata: {}\n\n");
        assert_eq!(written(None, "end", ""), "event: end\ndata: \n\n");
    }

    #[test]
    fn data_with_line_breaks_cannot_become_another_event() {
        let hostile = "{\"a\":\r\n\nevent: forged\rdata: x}";
        let text = written(Some(1), "ev\nid: 9\r\nent\0", hostile);
        assert_eq!(
            text,
            "id: 1\nevent: evid: 9ent\ndata: {\"a\":\ndata: \ndata: \ndata: event: forged\ndata: data: x}\n\n"
        );
        assert_eq!(text.matches("\n\n").count(), 1);
    }

    #[test]
    fn a_reader_says_what_it_wants_and_what_it_has() {
        let mut headers = HeaderMap::new();
        assert!(!is_wanted(&headers));
        assert_eq!(last_seen(&headers), None);
        headers.insert(ACCEPT, "text/html, text/event-stream;q=0.9".parse().unwrap());
        headers.insert("last-event-id", " 42".parse().unwrap());
        assert!(is_wanted(&headers));
        assert_eq!(last_seen(&headers), Some(42));
        headers.insert("last-event-id", "forty-two".parse().unwrap());
        assert_eq!(last_seen(&headers), None);
    }
}
