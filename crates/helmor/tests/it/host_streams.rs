//! Streams of the bridge: exactly one end, nothing lost, nobody held up by somebody else, and sessions that can be gone on with.

use std::time::Instant;

use libtest_mimic::Trial;
use outrigger_helmor::host::{BridgeError, Irregular, StreamEnd, StreamEvent, Terms, Waits};
use outrigger_helmor::protocol::ProviderName;
use serde_json::{Value, json};

use crate::host_kit::{bridge, gone, millis, of, passed, quick, read, trial, turn};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_an_agent_says_is_passed_on_as_it_came_and_then_there_is_one_end", passed_on),
        trial("a_second_turn_of_a_busy_session_is_refused_before_it_is_sent", busy),
        trial("a_stream_that_is_dropped_stops_its_turn_and_frees_its_session", dropped_stream),
        trial("a_stop_ends_the_stream_as_aborted_before_it_returns", stop),
        trial("a_silent_stream_ends_and_can_be_gone_on_with", silence),
        trial("heartbeats_keep_a_stream_alive_for_ever", heartbeats),
        trial("a_sidecar_that_is_silent_altogether_is_killed", hung),
        trial("eight_streams_do_not_wait_for_the_slowest_reader_and_lose_nothing", slow_reader),
        trial("a_stream_that_is_never_read_ends_with_a_name_for_it_and_its_turn_is_stopped", overflow),
        trial("each_provider_says_in_its_own_way_what_can_be_resumed", adoption),
        trial("a_name_is_not_passed_to_another_provider_and_what_the_caller_says_counts", whose_resume),
        trial("a_lost_context_is_told_and_the_new_one_is_gone_on_with", context_reset),
        trial("the_last_words_of_a_sidecar_that_dies_are_heard", last_words),
    ]
}

fn claude() -> ProviderName {
    ProviderName::Claude
}

async fn passed_on() {
    let bridge = bridge(&[], quick());
    let steps = json!([
        "hello",
        {"pass":{"type":"stream_event","n":1.0e0,"id":"theirs"}},
        {"end":{"type":"end","isError":true,"message":"out of credit"}},
    ]);
    let (said, end) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert_eq!(said.iter().map(|said| &said["type"]).collect::<Vec<_>>(), ["assistant", "stream_event"]);
    assert!(matches!(end, StreamEnd::EndedBadly { message: Some(message) } if message == "out of credit"));
    for (event, code) in [
        (json!({"type":"error","message":"no","code":"auth"}), "auth"),
        (json!({"type":"error","message":"no"}), "failed"),
        (json!({"type":"aborted","reason":"terminated"}), "aborted"),
        (json!({"type":"end"}), "ended"),
    ] {
        let stream = bridge.send(turn("s", &json!([{"end":event}]))).await.unwrap();
        assert_eq!(stream.end().await.unwrap().code(), code);
    }
    bridge.shutdown().await;
}

async fn busy() {
    let bridge = bridge(&["never-busy"], quick());
    let mut first = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    let error = bridge.send(turn("s", &json!(["b"]))).await.unwrap_err();
    assert!(matches!(&error, BridgeError::Busy { session } if session == "s"));
    assert_eq!(error.code(), "session_busy");
    assert!(bridge.send(turn("other", &json!([]))).await.unwrap().end().await.unwrap().is_good());
    passed(&mut first).await;
    bridge.stop("s", &claude()).await.unwrap();
    assert!(matches!(first.end().await, Some(StreamEnd::Aborted { .. })));
    assert!(bridge.send(turn("s", &json!([]))).await.unwrap().end().await.unwrap().is_good());
    bridge.shutdown().await;
}

async fn dropped_stream() {
    let bridge = bridge(&[], quick());
    let mut first = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut first).await;
    drop(first);
    // The session is free when the sidecar says that the turn has ended.
    let second = loop {
        match bridge.send(turn("s", &json!(["b"]))).await {
            Ok(stream) => break stream,
            Err(BridgeError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(second.end().await.unwrap().is_good());
    assert_eq!(bridge.irregular(), Irregular { noise: 0, strays: 0, complaints: 0 });
    bridge.shutdown().await;
}

async fn stop() {
    let bridge = bridge(&[], quick());
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    bridge.stop("s", &claude()).await.unwrap();
    match stream.next().await {
        Some(StreamEvent::End(StreamEnd::Aborted { reason })) => assert_eq!(reason, "user_requested"),
        other => panic!("{other:?}"),
    }
    // A session that nobody knows is stopped already.
    bridge.stop("nobody", &claude()).await.unwrap();
    bridge.shutdown().await;
}

async fn silence() {
    let bridge = bridge(&[], Terms { silence: millis(200), ..quick() });
    let init = json!({"type":"system","subtype":"init","session_id":"claude-1"});
    let mut stream = bridge.send(turn("s", &json!([{"pass":init}, {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let asked = Instant::now();
    let end = stream.end().await.unwrap();
    assert!(matches!(end, StreamEnd::Silent { after } if after == millis(200)), "{end}");
    assert!(asked.elapsed() >= millis(150), "it was not silent for so long");
    assert!(end.to_string().contains("not even a heartbeat"), "{end}");
    let pid = bridge.pid();
    let (said, end) = read(bridge.send(turn("s", &json!([{"echo":true}]))).await.unwrap()).await;
    assert!(end.is_good(), "the turn was stopped, so the session is free in the sidecar too: {end}");
    assert_eq!(said[0]["params"]["resume"], "claude-1");
    assert_eq!(bridge.pid(), pid, "a sidecar that answers is not to blame");
    bridge.shutdown().await;
}

async fn heartbeats() {
    let bridge = bridge(&["beat=20"], Terms { silence: millis(400), ..quick() });
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    // Nothing but heartbeats for much longer than the silence that is allowed, and the reader sees none of them.
    let next = tokio::time::timeout(millis(1200), stream.next()).await;
    assert!(next.is_err(), "{next:?}");
    bridge.stop("s", &claude()).await.unwrap();
    assert!(matches!(stream.next().await, Some(StreamEvent::End(StreamEnd::Aborted { .. }))));
    bridge.shutdown().await;
}

async fn hung() {
    let waits = Waits { stop: millis(200), ..quick().waits };
    let bridge = bridge(&["silent:stopSession"], Terms { silence: millis(200), waits, ..quick() });
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let first = bridge.pid().unwrap();
    assert!(matches!(stream.end().await, Some(StreamEnd::Silent { .. })));
    gone(first).await;
    // A request that comes between the death and the news of it would be lost with it.
    while bridge.pid() == Some(first) {
        tokio::task::yield_now().await;
    }
    assert!(bridge.send(turn("s", &json!(["b"]))).await.unwrap().end().await.unwrap().is_good());
    assert_ne!(bridge.pid(), Some(first));
    bridge.shutdown().await;
}

async fn slow_reader() {
    const EVENTS: u64 = 500;
    let bridge = bridge(&[], quick());
    // 4 MB of the slow one wait: far more than all pipes between us hold.
    let steps = json!([{"flood":EVENTS,"bytes":8000}]);
    let slow = bridge.send(turn("slow", &steps)).await.unwrap();
    let mut fast = Vec::new();
    for number in 0..7 {
        fast.push(bridge.send(turn(&format!("fast-{number}"), &steps)).await.unwrap());
    }
    let all = |said: &[Value]| said.iter().map(|said| said["n"].as_u64().unwrap()).eq(0..EVENTS);
    for stream in fast {
        let (said, end) = read(stream).await;
        assert!(end.is_good() && all(&said), "{} events, {end}", said.len());
    }
    // Nobody has read the slow one so far, and a request is answered all the same.
    bridge.ping().await.unwrap();
    let (said, end) = read(slow).await;
    assert!(end.is_good() && all(&said), "{} events, {end}", said.len());
    bridge.shutdown().await;
}

async fn overflow() {
    let bridge = bridge(&[], Terms { stream_bytes: 100_000, ..quick() });
    let init = json!({"type":"system","subtype":"init","session_id":"claude-1"});
    let steps = json!([{"pass":init}, {"flood":1000,"bytes":1000}, {"hang":true}]);
    let stream = bridge.send(turn("s", &steps)).await.unwrap();
    // Nobody reads it. Its turn is stopped when it has overflowed, and only then is its session free.
    let next = loop {
        match bridge.send(turn("s", &json!([{"echo":true}]))).await {
            Ok(stream) => break stream,
            Err(BridgeError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let (echoed, end) = read(next).await;
    assert!(end.is_good(), "it is free in the sidecar too: {end}");
    assert_eq!(echoed[0]["params"]["resume"], "claude-1");
    let (said, end) = read(stream).await;
    assert!(matches!(end, StreamEnd::Overflow { limit: 100_000 }), "{end}");
    let numbers = said[1..].iter().map(|said| said["n"].as_u64().unwrap());
    assert!(
        numbers.eq(0..said.len() as u64 - 1),
        "what had waited was delivered, and nothing of it is missing"
    );
    assert!((80..100).contains(&said.len()), "100 of 1,000 bytes do not fit: {}", said.len());
    bridge.shutdown().await;
}

async fn adoption() {
    let bridge = bridge(&[], quick());
    let early = json!({"type":"system","subtype":"hook_started","session_id":"early"});
    let init = json!({"type":"system","subtype":"init","session_id":"id-claude"});
    let thread = json!({"type":"turn/started","session_id":"id-codex"});
    let cursor = json!({"type":"cursor/agent_init","session_id":"id-cursor"});
    let acp = json!({"type":"acp/agent_init","session_id":"id-acp:fake"});
    let cases = [
        (ProviderName::Claude, vec![early.clone(), init.clone()]),
        (ProviderName::Codex, vec![thread]),
        (ProviderName::Cursor, vec![early.clone(), cursor]),
        (ProviderName::Acp("fake".into()), vec![early, acp]),
        (ProviderName::Scripted, vec![json!({"type":"system","subtype":"init","session_id":"id-scripted"})]),
    ];
    for (provider, events) in cases {
        let session = format!("of-{provider}");
        let steps: Vec<Value> = events.into_iter().map(|event| json!({ "pass": event })).collect();
        read(bridge.send(of(provider.clone(), &session, &json!(steps))).await.unwrap()).await;
        let known = bridge.resume_id(&session).unwrap();
        assert_eq!(known, (provider.clone(), format!("id-{provider}")));
        let again = of(provider.clone(), &session, &json!([{"echo":true}]));
        let (said, _) = read(bridge.send(again).await.unwrap()).await;
        assert_eq!(said[0]["params"]["resume"], format!("id-{provider}"));
    }
    bridge.shutdown().await;
}

async fn whose_resume() {
    let bridge = bridge(&[], quick());
    bridge.remember("s", &ProviderName::Claude, "claude-1");
    let echo = json!([{"echo":true}]);
    let resume = |said: Vec<Value>| said[0]["params"]["resume"].clone();
    let other = of(ProviderName::Codex, "s", &echo);
    assert_eq!(resume(read(bridge.send(other).await.unwrap()).await.0), Value::Null);
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), "claude-1");
    let mut said = turn("s", &echo);
    said.resume = Some("claude-2".to_owned());
    assert_eq!(resume(read(bridge.send(said).await.unwrap()).await.0), "claude-2");
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), "claude-2");
    bridge.forget("s");
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), Value::Null);
    bridge.shutdown().await;
}

async fn context_reset() {
    let bridge = bridge(&[], quick());
    bridge.remember("s", &ProviderName::Claude, "dead");
    let reset =
        json!({"type":"contextReset","sessionId":"s","resume":"dead","reason":"No conversation found"});
    let init = json!({"type":"system","subtype":"init","session_id":"fresh"});
    let mut stream =
        bridge.send(turn("s", &json!([{"pass":reset}, {"host":"wait"}, {"pass":init}]))).await.unwrap();
    match stream.next().await {
        Some(StreamEvent::ContextReset { resume, reason }) => {
            assert_eq!((resume.as_str(), reason.as_str()), ("dead", "No conversation found"));
        }
        other => panic!("{other:?}"),
    }
    assert!(stream.end().await.unwrap().is_good());
    assert_eq!(bridge.resume_id("s"), Some((ProviderName::Claude, "fresh".to_owned())));
    bridge.shutdown().await;
}

async fn last_words() {
    let bridge = bridge(&[], quick());
    let steps = json!([{"flood":200,"bytes":1000}, {"die":0}]);
    let (said, end) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert_eq!(said.len(), 200, "{end}");
    assert_eq!(end.code(), "sidecar_lost");
    bridge.shutdown().await;
}
