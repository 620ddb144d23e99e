//! Event streams: readers that do not read, readers that are gone, and a daemon that leaves.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::site::{Site, request, rest, roomy, within};
use crate::http::ServerLimits;

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_does_not_slow_the_run() {
    let site = Site::start(roomy()).await;
    let id = site.run("linger", "running").await;
    let idle = site.stream(&format!("/v1/runs/{id}/events"), &[]).await;
    // 20 MB, which no socket buffer holds.
    let begun = site.post("/v1/runs", json!({ "id": "flood", "task": "flood 320" })).await;
    assert_eq!(begun.status, 201);
    let mut asleep = Vec::new();
    for _ in 0..10 {
        asleep.push(site.stream("/v1/runs/flood/events", &[]).await);
    }
    site.until("flood", "completed").await;
    site.metric("outrigger_http_streams", "11").await;
    // One of them wakes up and misses nothing.
    let events = asleep.pop().unwrap().all().await;
    assert_eq!(events.len(), 320 + 4);
    let numbers: Vec<u64> = events.iter().filter_map(|event| event.id).collect();
    assert_eq!(numbers, (1..=323).collect::<Vec<u64>>());
    // Those who leave without having read free everything.
    drop((idle, asleep));
    site.metric("outrigger_http_streams", "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_sleeps_for_too_long_loses_its_place() {
    let site = Site::start(ServerLimits { stall_within: Duration::from_millis(200), ..roomy() }).await;
    site.run("flood 320", "completed").await;
    let id = site.get("/v1/runs").await.json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let asleep = site.stream(&format!("/v1/runs/{id}/events"), &[]).await;
    site.metric("outrigger_http_streams", "0").await;
    drop(asleep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_gone_frees_its_place_while_the_run_is_quiet() {
    let site = Site::start(ServerLimits { streams: 2, ..roomy() }).await;
    let id = site.run("linger", "running").await;
    let path = format!("/v1/runs/{id}/events");
    let one = site.stream(&path, &[]).await;
    let two = site.stream("/v1/changes", &[]).await;
    assert_eq!((one.status, two.status), (200, 200));
    // Streams have places of their own: one too many is refused, and requests are not.
    let refused = site.stream(&path, &[]).await;
    assert_eq!(refused.status, 503);
    assert_eq!(site.get("/v1/runs").await.status, 200);
    drop(one);
    site.metric("outrigger_http_streams", "1").await;
    assert_eq!(site.stream(&path, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_hears_nothing_is_told_that_we_are_still_there() {
    let site = Site::start(ServerLimits { heartbeat: Duration::from_millis(50), ..roomy() }).await;
    let id = site.run("linger", "running").await;
    for path in [format!("/v1/runs/{id}/events"), "/v1/changes".to_owned()] {
        let mut stream = site.connect().await;
        let host = format!("Host: {}", site.address);
        let headers = [host.as_str(), "Authorization: Bearer secret", "Accept: text/event-stream"];
        stream.write_all(request("GET", &path, &headers, "").as_bytes()).await.unwrap();
        let mut heard = String::new();
        let mut piece = [0; 4096];
        while heard.matches(": still here\n\n").count() < 2 {
            let length = within(stream.read(&mut piece)).await.unwrap();
            heard.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_leaves_ends_streams_at_once_and_finishes_requests() {
    let mut site = Site::start(roomy()).await;
    let id = site.run("linger", "running").await;
    let mut events = site.stream(&format!("/v1/runs/{id}/events"), &[]).await;
    let mut changes = site.stream("/v1/changes", &[]).await;
    assert_eq!(events.next().await.unwrap().kind, "accepted");
    // A request of which the head is there, and whose body the server waits for.
    let mut half = site.connect().await;
    let host = format!("Host: {}", site.address);
    let json = "Content-Type: application/json";
    let headers = [host.as_str(), "Authorization: Bearer secret", json, "Expect: 100-continue"];
    let text = request("POST", &format!("/v1/runs/{id}/cancel"), &headers, "{\"why\":\"bye\"}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    half.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    within(half.read_exact(&mut go_on)).await.unwrap();
    site.leave();
    while events.next().await.is_some() {}
    while changes.next().await.is_some() {}
    half.write_all(body.as_bytes()).await.unwrap();
    let answer = rest(half).await;
    assert_eq!((answer.status, answer.json()["cancelling"].clone()), (200, json!("bye")));
    site.left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_leaves_does_not_wait_for_those_who_never_finish() {
    let mut site = Site::start(ServerLimits { drain_within: Duration::from_millis(200), ..roomy() }).await;
    let mut half = site.connect().await;
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
    assert_eq!(site.get("/v1/runs").await.status, 200);
    let idle = site.connect().await;
    site.leave();
    site.left().await;
    drop((half, idle));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_asks_again_and_again() {
    let site = Site::start(roomy()).await;
    let mut stream = site.connect().await;
    let host = format!("Host: {}", site.address);
    let text = request("GET", "/healthz", &[&host], "");
    let mut buffer = [0; 4096];
    for _ in 0..100 {
        stream.write_all(text.as_bytes()).await.unwrap();
        let read = within(stream.read(&mut buffer)).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..read]));
    }
}
