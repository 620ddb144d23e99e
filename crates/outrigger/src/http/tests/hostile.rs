//! Clients that mean no good, or are broken. Each limit is met at the limit and one past it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::site::{Site, request, rest, roomy, within};
use crate::http::ServerLimits;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_have_as_many_bytes_as_it_may_and_not_one_more() {
    let site = Site::start(ServerLimits { body_bytes: 64, ..roomy() }).await;
    let body = |length: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(length - 11));
    let path = "/v1/runs/nobody/steer";
    assert_eq!(body(64).len(), 64);
    assert_eq!(site.ask("POST", path, &[], &body(64)).await.problem(), (404, "no_such_run".to_owned()));
    assert_eq!(site.ask("POST", path, &[], &body(65)).await.problem(), (413, "body_too_large".to_owned()));
    // The same when nobody says before how long it will be.
    let chunked = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{}\r\n0\r\n\r\n",
            site.address,
            body(length)
        )
    };
    assert_eq!(site.raw(chunked(64).as_bytes()).await.status, 404);
    assert_eq!(site.raw(chunked(65).as_bytes()).await.status, 413);
    let packed = site.ask("POST", path, &["Content-Encoding: gzip"], "{}").await;
    assert_eq!(packed.problem(), (415, "encoded_body".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_make_us_read_a_body() {
    let site = Site::start(roomy()).await;
    let mut stream = site.connect().await;
    let head = format!("POST /v1/runs HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n", site.address);
    stream.write_all(head.as_bytes()).await.unwrap();
    // Not a byte of the body was sent, and the answer is there.
    let mut start = [0; 12];
    within(stream.read_exact(&mut start)).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 401");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_end_is_refused_before_it_is_large() {
    let site = Site::start(ServerLimits { head_bytes: 16 << 10, ..roomy() }).await;
    let long = format!("X-Long: {}", "x".repeat(8 << 10));
    assert_eq!(site.ask("GET", "/v1/runs", &[&long], "").await.status, 200);
    let endless = format!("GET /v1/runs HTTP/1.1\r\nX-Long: {}", "x".repeat(1 << 20));
    assert_eq!(site.raw(endless.as_bytes()).await.status, 431);
    let many: Vec<String> = (0..200).map(|i| format!("X-{i}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(site.ask("GET", "/v1/runs", &many, "").await.status, 431);
    assert_eq!(site.get("/v1/runs").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_a_byte_now_and_then_is_sent_away() {
    let limits = ServerLimits {
        head_within: Duration::from_secs(1),
        body_within: Duration::from_secs(1),
        idle_within: Duration::from_secs(1),
        ..roomy()
    };
    let site = Site::start(limits).await;
    // Nothing at all.
    assert_eq!(rest(site.connect().await).await.status, 408);
    // A head that never ends, byte by byte: each byte does not buy more time.
    let mut stream = site.connect().await;
    let drip = async {
        for byte in b"GET /healthz HTTP/1.1\r\nX-Slow: ".iter().chain(std::iter::repeat(&b'x')) {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(drip).await;
    // A body that never comes.
    let mut stream = site.connect().await;
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
        site.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert_eq!(answer.problem(), (408, "slow_body".to_owned()));
    // A connection that is kept open after an answer, with nothing asked.
    let mut stream = site.connect().await;
    let host = format!("Host: {}", site.address);
    stream.write_all(request("GET", "/healthz", &[&host], "").as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["ok"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_long_is_not_cut_by_the_clocks_of_requests() {
    let limits = ServerLimits {
        head_within: Duration::from_millis(500),
        idle_within: Duration::from_millis(500),
        ..roomy()
    };
    let site = Site::start(limits).await;
    let id = site.run("linger", "running").await;
    let mut events = site.stream(&format!("/v1/runs/{id}/events"), &[]).await;
    assert_eq!(events.next().await.unwrap().kind, "accepted");
    assert_eq!(events.next().await.unwrap().kind, "started");
    // Longer than both clocks.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    site.post(&format!("/v1/runs/{id}/cancel"), serde_json::json!({})).await;
    assert_eq!(events.next().await.unwrap().kind, "cancelling");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_too_many_is_told_to_come_back_and_a_place_that_is_left_is_free() {
    let site = Site::start(ServerLimits { connections: 3, ..roomy() }).await;
    let host = format!("Host: {}", site.address);
    let ask = request("GET", "/healthz", &[&host], "");
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = site.connect().await;
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        within(stream.read_exact(&mut start)).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        held.push(stream);
    }
    let refused = site.get("/v1/runs").await;
    assert_eq!(refused.problem(), (503, "too_many_connections".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    held.pop();
    let freed = async { while site.get("/v1/runs").await.status != 200 {} };
    within(freed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_connections_leave_those_that_are_in_alone() {
    let site = Site::start(ServerLimits { connections: 8, ..roomy() }).await;
    let host = format!("Host: {}", site.address);
    let ask = request("GET", "/healthz", &[&host], "");
    let mut inside = site.connect().await;
    let mut buffer = [0; 4096];
    inside.write_all(ask.as_bytes()).await.unwrap();
    assert!(within(inside.read(&mut buffer)).await.unwrap() > 0);
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let address = site.address;
        crowd.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut bytes = Vec::new();
            let _ = tokio::time::timeout(Duration::from_millis(200), stream.read_to_end(&mut bytes)).await;
        });
    }
    for _ in 0..20 {
        inside.write_all(ask.as_bytes()).await.unwrap();
        let read = within(inside.read(&mut buffer)).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
    }
    crowd.join_all().await;
    let freed = async { while site.get("/v1/runs").await.status != 200 {} };
    within(freed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_may_come_at_once_are_told_when_to_come_back() {
    let site = Site::start(ServerLimits { per_second: 1, burst: 3, ..roomy() }).await;
    for _ in 0..3 {
        assert_eq!(site.bare("GET", "/healthz", &[], "").await.status, 200);
    }
    let refused = site.bare("GET", "/healthz", &[], "").await;
    assert_eq!(refused.problem(), (429, "too_many_requests".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_climb_lead_nowhere() {
    let site = Site::start(roomy()).await;
    let paths = [
        "/assets/../v1/runs",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/v1/runs/..%2f..%2fetc%2fpasswd",
        "/v1/runs/%2e%2e/receipt",
        "/v1/runs/../../etc/passwd",
        "/v1/runs/%00",
        "/v1/runs/%ff%fe",
        "/v1/extensions/..%2f..%2fetc/logs",
        "//v1/runs",
        "/v1/runs/",
        "/V1/runs",
    ];
    for path in paths {
        let answer = site.get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.head);
        assert!(!answer.text().contains("root:"), "{path}");
    }
    // Climbing out of what is open does not help a stranger either.
    let stranger = site.bare("GET", "/assets/../v1/runs", &[], "").await;
    assert_eq!(stranger.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http_is_closed_and_nobody_else_notices() {
    let site = Site::start(roomy()).await;
    let not_http: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET /v1/runs HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
    ];
    for bytes in not_http {
        let answer = site.raw(bytes).await;
        assert!(matches!(answer.status, 0 | 400 | 505), "{bytes:?}: {}", answer.head);
    }
    let wrong = site.ask("PUT", "/v1/runs", &[], "").await;
    assert_eq!(wrong.problem(), (405, "wrong_method".to_owned()));
    assert_eq!(site.get("/v2/runs").await.problem(), (404, "no_such_path".to_owned()));
    assert_eq!(site.get("/v1/runs").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_half_frees_its_place() {
    let site = Site::start(ServerLimits { connections: 1, ..roomy() }).await;
    let mut stream = site.connect().await;
    stream.write_all(b"GET /healthz HTT").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    let freed = async { while site.get("/v1/runs").await.status != 200 {} };
    within(freed).await;
}
