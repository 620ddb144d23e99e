//! The other side's requests and notifications: order, places, ids, batches, cancellation, irregular lines.

use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::line::{LineLimit, LinePolicy, dialect};
use outrigger_wire::peer::{Crowded, DuplicateIds, IncomingLimits, PeerConfig, Reaction};
use outrigger_wire::rpc::{ErrorObject, code};
use tokio::sync::{Semaphore, mpsc};

use super::{CONFIG, Script, echo, peer, raw};

fn request(id: impl std::fmt::Display, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

fn result(id: impl std::fmt::Display, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: impl std::fmt::Display, code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

/// A script with `hold`, which answers when the returned gate is given a permit.
fn holding() -> (Script, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let shared = Arc::clone(&gate);
    let script = echo().later("hold", move |_| {
        let gate = Arc::clone(&shared);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(raw("\"held\""))
        }
    });
    (script, gate)
}

#[tokio::test(start_paused = true)]
async fn the_reader_does_not_wait_for_a_slow_handler() {
    let (script, gate) = holding();
    let (_peer, mut remote) = peer(script, CONFIG);
    remote.send(&request(1, "hold")).await;
    remote.send(&request(2, "echo")).await;
    assert_eq!(remote.read().await, result(2, "null"));
    gate.add_permits(1);
    assert_eq!(remote.read().await, result(1, "\"held\""));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_message_is_answered_and_the_conversation_goes_on() {
    let lines = outrigger_wire::line::LinePolicy {
        limit: outrigger_wire::line::LineLimit::before_newline(200),
        ..dialect::STEERABLE
    };
    let (peer, mut remote) = peer(echo(), PeerConfig { lines, ..CONFIG });
    for (line, answer) in [
        ("{".to_owned(), error("null", -32700, "message is not valid JSON")),
        ("1".to_owned(), error("null", -32600, "message is not an object")),
        (request(7, ""), error(7, -32600, "missing method")),
        ("x".repeat(201), error("null", -32600, "line exceeds maximum size of 200 bytes")),
        (request("\"a\"", "echo"), result("\"a\"", "null")),
        (request(8, "nope"), error(8, -32601, "unknown method")),
    ] {
        remote.send(&line).await;
        assert_eq!(remote.read().await, answer);
    }
    assert_eq!(peer.counts().refused, 3);
}

#[tokio::test(start_paused = true)]
async fn the_handler_words_the_complaints_of_its_dialect() {
    let script = echo().temper(|complaint| {
        let error = complaint.to_error().with_member("kind", raw("\"parse\""));
        Some(Reaction::Answer(error))
    });
    let (_peer, mut remote) = peer(script, CONFIG);
    remote.send("{").await;
    let expect = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"message is not valid JSON","kind":"parse"}}"#;
    assert_eq!(remote.read().await, expect);
}

#[tokio::test(start_paused = true)]
async fn an_id_in_flight_cannot_be_used_again_and_the_first_request_is_unaffected() {
    let (script, gate) = holding();
    let (_peer, mut remote) = peer(script, CONFIG);
    remote.send(&request("\"A\"", "hold")).await;
    remote.send(&request("\"\\u0041\"", "echo")).await;
    assert_eq!(remote.read().await, error("null", -32600, "id is already in use by a request in flight"));
    gate.add_permits(1);
    assert_eq!(remote.read().await, result("\"A\"", "\"held\""));
    remote.send(&request("\"A\"", "echo")).await;
    assert_eq!(remote.read().await, result("\"A\"", "null"));
}

#[tokio::test(start_paused = true)]
async fn a_lenient_peer_serves_duplicate_ids() {
    let (script, gate) = holding();
    let (_peer, mut remote) = peer(script, PeerConfig { duplicate_ids: DuplicateIds::Serve, ..CONFIG });
    remote.send(&request(1, "hold")).await;
    remote.send(&request(1, "echo")).await;
    assert_eq!(remote.read().await, result(1, "null"));
    gate.add_permits(1);
    assert_eq!(remote.read().await, result(1, "\"held\""));
}

#[tokio::test(start_paused = true)]
async fn a_request_one_past_the_places_is_refused_and_the_others_are_served() {
    let (script, gate) = holding();
    let incoming = IncomingLimits { running: 1, waiting: 1, crowded: Crowded::Refuse, ..CONFIG.incoming };
    let (peer, mut remote) = peer(script, PeerConfig { incoming, ..CONFIG });
    for id in 1..=3 {
        remote.send(&request(id, "hold")).await;
    }
    assert_eq!(remote.read().await, error(3, -32801, "more than 2 requests at once"));
    assert_eq!((peer.counts().requests_running, peer.counts().requests_waiting), (1, 1));
    gate.add_permits(2);
    assert_eq!(remote.read().await, result(1, "\"held\""));
    assert_eq!(remote.read().await, result(2, "\"held\""));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_pauses_serves_everyone_without_reading_ahead() {
    let (script, gate) = holding();
    let incoming = IncomingLimits { running: 2, waiting: 1, crowded: Crowded::Pause, ..CONFIG.incoming };
    let (peer, mut remote) = peer(script, PeerConfig { incoming, ..CONFIG });
    for id in 1..=50 {
        remote.send(&request(id, "hold")).await;
    }
    // The clock stands still until nothing else can happen, so this is the state in which the peer has paused.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((peer.counts().requests_running, peer.counts().requests_waiting), (2, 1));
    gate.add_permits(50);
    let mut answers = Vec::new();
    for _ in 1..=50 {
        answers.push(remote.read().await);
    }
    let mut expect: Vec<_> = (1..=50).map(|id| result(id, "\"held\"")).collect();
    answers.sort();
    expect.sort();
    assert_eq!(answers, expect);
}

#[tokio::test(start_paused = true)]
async fn the_gate_comes_before_ids_and_places() {
    let (script, _gate) = holding();
    let script = script.gate(|method| match method {
        "shut" => Err(ErrorObject::new(code::sep::NOT_INITIALIZED, "not initialized")),
        _ => Ok(()),
    });
    let incoming = IncomingLimits { running: 1, waiting: 0, crowded: Crowded::Refuse, ..CONFIG.incoming };
    let (_peer, mut remote) = peer(script, PeerConfig { incoming, ..CONFIG });
    remote.send(&request(1, "hold")).await;
    remote.send(&request(1, "shut")).await;
    assert_eq!(remote.read().await, error(1, -32002, "not initialized"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_stops_and_is_answered_exactly_once() {
    struct Stopped(mpsc::Sender<&'static str>);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.try_send("stopped").unwrap();
        }
    }
    let (told, mut stopped) = mpsc::channel(1024);
    let script = echo().later("forever", move |_| {
        let guard = Stopped(told.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let (_peer, mut remote) = peer(script, CONFIG);
    remote.send(&request("\"x\"", "forever")).await;
    remote.send(r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"y"}}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","method":"$/cancel"}"#).await;
    remote.send(r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"x"}}"#).await;
    assert_eq!(remote.read().await, error("\"x\"", -32800, "request was cancelled"));
    assert_eq!(stopped.recv().await, Some("stopped"));
    remote.send(r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"x"}}"#).await;
    remote.send(&request(2, "echo")).await;
    assert_eq!(remote.read().await, result(2, "null"), "nothing more was said about x");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_answered_for_and_the_others_go_on() {
    let script = echo()
        .now("panic now", |_| panic!("expected by the test"))
        .later("panic later", |_| async { panic!("expected by the test") });
    let (_peer, mut remote) = peer(script, CONFIG);
    for (id, method) in [(1, "panic now"), (2, "panic later")] {
        remote.send(&request(id, method)).await;
        assert_eq!(remote.read().await, error(id, -32603, "handler failed unexpectedly"));
    }
    remote.send(&request(3, "echo")).await;
    assert_eq!(remote.read().await, result(3, "null"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_becomes_an_error_that_says_so() {
    let script = echo().now("big", |_| Ok(raw(&format!("\"{}\"", "x".repeat(200)))));
    let (_peer, mut remote) = peer(script, PeerConfig { max_line_out: 200, ..CONFIG });
    remote.send(&request(1, "big")).await;
    assert_eq!(
        remote.read().await,
        error(1, -32603, "response of 236 bytes exceeds maximum size of 200 bytes")
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_in_one_line_and_notifications_in_it_are_not() {
    let (notes, mut heard) = mpsc::channel(1024);
    let (script, gate) = holding();
    let (_peer, mut remote) = peer(script.notes(notes), CONFIG);
    let note = r#"{"jsonrpc":"2.0","method":"note"}"#;
    remote.send(&format!("[{},{note},1,{}]", request(1, "hold"), request(2, "echo"))).await;
    remote.send(&format!("[{note}]")).await;
    assert_eq!(heard.recv().await.as_deref(), Some("note -"));
    gate.add_permits(1);
    let expect =
        [error("null", -32600, "message is not an object"), result(2, "null"), result(1, "\"held\"")];
    assert_eq!(remote.read().await, format!("[{}]", expect.join(",")));
    assert_eq!(heard.recv().await.as_deref(), Some("note -"));
    remote.send("[]").await;
    assert_eq!(remote.read().await, error("null", -32600, "batch is empty"));
}

#[tokio::test(start_paused = true)]
async fn notifications_are_heard_one_at_a_time_and_in_order() {
    let (notes, mut heard) = mpsc::channel(1024);
    let (done, mut order) = mpsc::channel(1024);
    let script = echo().notes(notes).on_note(move |note| {
        let done = done.clone();
        Some(Box::pin(async move {
            // The first one is the slowest; the others must wait for it all the same.
            let n: u64 = note.params.unwrap().get().parse().unwrap();
            tokio::time::sleep(Duration::from_secs(10 - n)).await;
            done.send(n).await.unwrap();
        }))
    });
    let (_peer, mut remote) = peer(script, CONFIG);
    for n in 0..5 {
        remote.send(&format!(r#"{{"jsonrpc":"2.0","method":"n","params":{n}}}"#)).await;
    }
    for n in 0..5 {
        assert_eq!(heard.recv().await, Some(format!("n {n}")));
        assert_eq!(order.recv().await, Some(n));
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_that_come_too_fast_are_dropped_and_counted_where_the_limits_say_refuse() {
    let (notes, mut heard) = mpsc::channel(1024);
    let gate = Arc::new(Semaphore::new(0));
    let shared = Arc::clone(&gate);
    let script = echo().notes(notes).on_note(move |_| {
        let gate = Arc::clone(&shared);
        Some(Box::pin(async move { gate.acquire().await.unwrap().forget() }))
    });
    let incoming = IncomingLimits { notifications: 2, crowded: Crowded::Refuse, ..CONFIG.incoming };
    let (peer, mut remote) = peer(script, PeerConfig { incoming, ..CONFIG });
    let note = |n: u32| format!(r#"{{"jsonrpc":"2.0","method":"n","params":{n}}}"#);
    remote.send(&note(0)).await;
    assert_eq!(heard.recv().await.as_deref(), Some("n 0"));
    for n in 1..=5 {
        remote.send(&note(n)).await;
    }
    remote.send(&request(1, "echo")).await;
    assert_eq!(remote.read().await, result(1, "null"));
    assert_eq!(peer.counts().notifications_dropped, 3);
    gate.add_permits(9);
    assert_eq!(heard.recv().await.as_deref(), Some("n 1"));
    assert_eq!(heard.recv().await.as_deref(), Some("n 2"));
}

#[tokio::test(start_paused = true)]
async fn notifications_that_are_long_find_as_little_room_as_many_short_ones() {
    const LIMIT: usize = 1000;
    let (notes, mut heard) = mpsc::channel(1024);
    let gate = Arc::new(Semaphore::new(0));
    let shared = Arc::clone(&gate);
    let script = echo().notes(notes).on_note(move |_| {
        let gate = Arc::clone(&shared);
        Some(Box::pin(async move { gate.acquire().await.unwrap().forget() }))
    });
    let lines = LinePolicy { limit: LineLimit::before_newline(LIMIT), ..CONFIG.lines };
    let incoming = IncomingLimits { crowded: Crowded::Refuse, ..CONFIG.incoming };
    let (peer, mut remote) = peer(script, PeerConfig { lines, incoming, ..CONFIG });
    let note = format!(r#"{{"jsonrpc":"2.0","method":"n","params":"{}"}}"#, "x".repeat(600));
    remote.send(&note).await;
    heard.recv().await.unwrap();
    // One is being heard; of those that wait, the second one reaches what a line may have.
    for _ in 0..4 {
        remote.send(&note).await;
    }
    remote.send(&request(1, "echo")).await;
    assert_eq!(remote.read().await, result(1, "null"));
    assert_eq!(peer.counts().notifications_dropped, 2);
    gate.add_permits(9);
    heard.recv().await.unwrap();
    heard.recv().await.unwrap();
    // There is room again.
    remote.send(&note).await;
    heard.recv().await.unwrap();
    assert_eq!(peer.counts().notifications_dropped, 2);
}
