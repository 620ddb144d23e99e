//! The log of a run: a page of it, or all of it as it grows.
//!
//! A reader of the stream holds a part of the log, which it shares with whoever reads the same one, and nothing of the run: if it
//! does not read, its part stays where it is, and the run goes on.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::door::Door;
use super::problem::Problem;
use super::read::{OfRun, Query};
use super::sse::{self, BEAT, Frame, RETRY};
use crate::engine::{BoxFuture, Seq};
use crate::runs::{Follower, Numbered, Part, RunId, Runs, RunsError};

pub(super) async fn events(
    State(door): State<Arc<Door>>,
    OfRun(run): OfRun,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["after", "limit"])?;
    let after = query.number("after")?.unwrap_or(0);
    if sse::is_wanted(&headers) {
        return followed(&door, run, after, sse::last_seen(&headers)).await;
    }
    let limit = query.limit(200, 1000)?;
    let page = door.app.runs.events(&run, Seq(after), limit).await?;
    Ok(([(CONTENT_TYPE, "application/json")], paged(after, &page)).into_response())
}

/// A page as JSON. The records go through as they were written.
fn paged(after: u64, page: &[Numbered]) -> String {
    let mut text = String::from("{\"events\":[");
    for (i, record) in page.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        numbered(&mut text, record);
    }
    let last = page.last().map_or(after, |record| record.seq.0);
    text.push_str(&format!("],\"after\":{last}}}"));
    text
}

/// A record with its number as its first member.
fn numbered(out: &mut String, Numbered { seq, record }: &Numbered) {
    let rest = record.trim_start().strip_prefix('{').unwrap_or(record).trim_start();
    out.push_str(&format!("{{\"seq\":{}", seq.0));
    if !rest.starts_with('}') {
        out.push(',');
    }
    out.push_str(rest);
}

async fn followed(door: &Door, run: RunId, after: u64, seen: Option<u64>) -> Result<Response, Problem> {
    let runs = &door.app.runs;
    if let Some(seen) = seen {
        // A browser comes back for ever; only this answer tells it that there is nothing to come back for.
        let over = runs.show(&run).await?.phase.is_over();
        if over && runs.events(&run, Seq(seen), 1).await?.is_empty() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let follower = runs.follow(&run, Seq(seen.unwrap_or(after))).await?;
    let heartbeat = door.limits.heartbeat;
    let begin = Following { runs: runs.clone(), run, heartbeat, next: next(follower), state: Told::Nothing };
    Ok(sse::response(begin.stream()))
}

/// What the next part comes from.
type Next = BoxFuture<'static, Result<Option<(Follower, Arc<Part>)>, RunsError>>;

struct Following {
    runs: Runs,
    run: RunId,
    heartbeat: Duration,
    next: Next,
    state: Told,
}

#[derive(PartialEq, Eq)]
enum Told {
    Nothing,
    Something,
    Everything,
}

/// The future is kept over heartbeats, so that nothing depends on what a follower does when it is interrupted.
fn next(mut follower: Follower) -> Next {
    Box::pin(async move { Ok(follower.next().await?.map(|part| (follower, part))) })
}

impl Following {
    fn stream(self) -> impl Stream<Item = Bytes> {
        stream::unfold(self, |mut following| async move {
            let text = following.step().await?;
            Some((text, following))
        })
    }

    /// The next part of the stream; none when it has ended.
    async fn step(&mut self) -> Option<Bytes> {
        match self.state {
            Told::Nothing => {
                self.state = Told::Something;
                return Some(Bytes::from_static(RETRY.as_bytes()));
            }
            Told::Everything => return None,
            Told::Something => {}
        }
        let Ok(read) = timeout(self.heartbeat, &mut self.next).await else {
            return Some(Bytes::from_static(BEAT.as_bytes()));
        };
        Some(match read {
            Ok(Some((follower, part))) => {
                self.next = next(follower);
                part.shown_by(framed)
            }
            Ok(None) => self.end().await.into(),
            Err(error) => self.fail(error).into(),
        })
    }

    async fn end(&mut self) -> String {
        self.state = Told::Everything;
        let mut text = String::new();
        let phase = self.runs.show(&self.run).await.ok().map(|state| state.phase.word());
        Frame { id: None, event: "end", data: &json!({ "phase": phase }).to_string() }.write(&mut text);
        text
    }

    fn fail(&mut self, error: RunsError) -> String {
        self.state = Told::Everything;
        let mut text = String::new();
        let data = Problem::from(error).to_json().to_string();
        Frame { id: None, event: "failed", data: &data }.write(&mut text);
        text
    }
}

fn framed(records: &[Numbered]) -> String {
    let mut text = String::new();
    for record in records {
        write(&mut text, record);
    }
    text
}

fn write(out: &mut String, record: &Numbered) {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let kind = serde_json::from_str::<Kind>(&record.record).map(|Kind { kind }| kind);
    let mut data = String::with_capacity(record.record.len() + 16);
    numbered(&mut data, record);
    // A record of a damaged log has no kind; it is shown all the same.
    let event = kind.as_deref().unwrap_or("unknown");
    Frame { id: Some(record.seq.0), event, data: &data }.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64, record: &str) -> Numbered {
        Numbered { seq: Seq(seq), record: record.to_owned() }
    }

    #[test]
    fn a_record_keeps_its_spelling_and_gets_its_number() {
        let check = |text: &str, expected: &str| {
            let mut out = String::new();
            numbered(&mut out, &record(3, text));
            assert_eq!(out, expected);
        };
        check(r#"{"v":1,"data":{"x": 1.0e2}}"#, r#"{"seq":3,"v":1,"data":{"x": 1.0e2}}"#);
        check(" { \"v\":1}", "{\"seq\":3,\"v\":1}");
        check("{}", r#"{"seq":3}"#);
    }

    #[test]
    fn a_page_says_where_the_next_one_begins() {
        assert_eq!(paged(9, &[]), r#"{"events":[],"after":9}"#);
        let page = [record(10, r#"{"v":1}"#), record(11, r#"{"v":1}"#)];
        assert_eq!(paged(9, &page), r#"{"events":[{"seq":10,"v":1},{"seq":11,"v":1}],"after":11}"#);
    }

    #[test]
    fn an_event_has_the_number_and_the_kind_of_its_record() {
        let out = framed(&[record(4, r#"{"v":1,"at":"t","kind":"note","data":{}}"#), record(5, "damaged")]);
        assert_eq!(
            out,
            "id: 4\nevent: note\ndata: {\"seq\":4,\"v\":1,\"at\":\"t\",\"kind\":\"note\",\"data\":{}}\n\n\
             id: 5\nevent: unknown\ndata: {\"seq\":5,damaged\n\n"
        );
    }
}
