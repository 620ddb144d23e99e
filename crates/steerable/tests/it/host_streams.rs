//! Streams against a fake sidecar: what they carry, who waits for whom, and that each has exactly one end.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::host::{
    CallError, Nobody, Pulse, Sidecar, SteerBy, Steered, StreamEnd, StreamEvent, StreamId, StreamLimits,
    Terms,
};
use outrigger_supervise::launch::Status;
use outrigger_supervise::state::Cause;
use serde_json::json;

use crate::host_kit::{again, fake, millis, quick, read, script, start, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_stream_carries_every_sort_of_chunk_in_order_and_keeps_what_it_does_not_know", chunks),
        trial("a_stream_that_fails_says_why", failures),
        trial("a_stream_has_one_end_even_if_the_sidecar_sends_two", one_end),
        trial("twenty_streams_at_once_are_each_complete_and_in_order", twenty),
        trial("a_stream_that_was_refused_never_was", refused),
        trial("a_stream_id_that_is_taken_is_refused_without_asking", taken),
        trial("a_cancelled_stream_ends_cancelled", cancel),
        trial("a_stream_that_is_dropped_is_cancelled", dropped),
        trial("a_sidecar_that_dies_ends_its_streams_with_its_exit_code_and_its_last_lines", dies),
        trial("a_sidecar_that_closes_its_output_and_stays_is_lost", closes_output),
        trial("a_sidecar_that_dies_comes_back_and_takes_streams_again", comes_back),
        trial("a_restart_on_request_loses_the_streams_and_gives_a_fresh_process", restart),
        trial("a_sidecar_that_crashes_in_a_loop_is_given_up", crash_loop),
        trial("a_reader_that_takes_its_time_makes_the_sidecar_wait_and_loses_nothing", slow_reader),
        trial("a_stream_that_nobody_reads_can_be_cancelled_and_the_sidecar_stopped", unread),
        trial("a_chunk_larger_than_the_queue_passes", large_chunk),
        trial("a_sidecar_that_ignores_pings_is_killed_and_restarted_whatever_it_streams", no_pings),
        trial("a_sidecar_that_answers_pings_stays", pings),
    ]
}

async fn chunks() {
    let sidecar = start(&[], quick()).await;
    let steps = json!([
        {"chunk":{"delta":"Hallo, wörld\u{1F600}"}},
        {"chunk":{"delta":""}},
        {"chunk":{}},
        {"chunk":{"reasoningDelta":"hm","delta":null}},
        {"chunk":{"toolCall":{"id":"c","name":"f","arguments":{"a":1.50}}}},
        {"chunk":{"toolCall":{"id":"d","name":"g","arguments":{},"argumentsText":"{oops"}}},
        {"chunk":{"toolResult":{"id":"c","name":"f","success":false,"durationMs":12,"error":"no","resultPreview":"…"}}},
        {"chunk":{"notice":{"kind":"round_end","round":1}}},
        {"chunk":{"usage":{"promptTokens":1,"completionTokens":2,"totalTokens":3}}},
        {"chunk":{"finishReason":"stop","rawChunk":{"x":1},"usage":"free"}},
        {"done":{"ok":false,"status":"budget_exhausted","reason":"rounds","traceId":"trace_1","recordId":"rec_1",
                 "usage":{"promptTokens":1,"completionTokens":2,"totalTokens":3,"cachedPromptTokens":1,"costUsd":0.1},
                 "output":{"a":1},"novelty":true}},
    ]);
    let mut stream = sidecar.stream(&script(&steps)).await.expect("a stream");
    let mut chunks = Vec::new();
    let end = loop {
        match stream.next().await.expect("an end") {
            StreamEvent::Chunk(chunk) => chunks.push(chunk),
            StreamEvent::Missed(missed) => panic!("missed {missed}"),
            StreamEvent::End(end) => break end,
        }
    };
    assert_eq!(chunks.len(), 8, "empty ones are not delivered: {chunks:#?}");
    assert_eq!(chunks[0].delta.as_deref(), Some("Hallo, wörld\u{1F600}"));
    assert_eq!((chunks[1].reasoning_delta.as_deref(), &chunks[1].delta), (Some("hm"), &None));
    let call = chunks[2].tool_call.as_ref().expect("a call");
    assert_eq!((call.id.as_str(), call.name.as_str(), call.arguments.get()), ("c", "f", r#"{"a":1.5}"#));
    assert_eq!(chunks[3].tool_call.as_ref().expect("a call").arguments_text.as_deref(), Some("{oops"));
    let result = chunks[4].tool_result.as_ref().expect("a result");
    assert_eq!(
        (result.success, result.duration, result.error.as_deref()),
        (false, Some(millis(12)), Some("no"))
    );
    let notice = chunks[5].notice.as_ref().expect("a notice");
    assert_eq!((notice.kind.as_str(), notice.member("round").expect("a round").get()), ("round_end", "1"));
    assert_eq!(chunks[6].usage.expect("usage").total_tokens, 3);
    let other: Vec<(&str, &str)> =
        chunks[7].other.iter().map(|(name, raw)| (name.as_str(), raw.get())).collect();
    assert_eq!(chunks[7].finish_reason.as_deref(), Some("stop"));
    assert_eq!(other, [("rawChunk", r#"{"x":1}"#), ("usage", r#""free""#)]);
    let StreamEnd::Done(done) = end else { panic!("{end:?}") };
    assert_eq!((done.ok, done.cancelled, done.status.as_deref()), (false, false, Some("budget_exhausted")));
    assert_eq!((done.trace_id.as_deref(), done.record_id.as_deref()), (Some("trace_1"), Some("rec_1")));
    assert_eq!(done.usage.expect("usage").cached_prompt_tokens, 1);
    assert_eq!(done.output.expect("output").get(), r#"{"a":1}"#);
    assert_eq!(done.other.len(), 1);
}

async fn failures() {
    let sidecar = start(&[], quick()).await;
    let steps = json!(["a", {"error":{"kind":"rate_limit","message":"slow down","status":429,"retryAfterMs":1500,"retryable":true,"traceId":"t"}}]);
    let (deltas, _, end) = read(sidecar.stream(&script(&steps)).await.expect("a stream")).await;
    assert_eq!(deltas, ["a"]);
    let StreamEnd::Failed(failure) = end else { panic!("{end:?}") };
    assert_eq!(
        (failure.kind.as_str(), failure.message.as_str(), failure.status),
        ("rate_limit", "slow down", Some(429))
    );
    assert_eq!((failure.retry_after, failure.retryable), (Some(millis(1500)), Some(true)));
    // The original says no more than this.
    let steps = json!([{"error":{"kind":"HTTPStatusError","message":"401"}}]);
    let (_, _, end) = read(sidecar.stream(&script(&steps)).await.expect("a stream")).await;
    assert!(
        matches!(end, StreamEnd::Failed(failure) if failure.kind == "HTTPStatusError" && failure.retryable.is_none())
    );
}

async fn one_end() {
    let sidecar = start(&["two-ends"], quick()).await;
    for _ in 0..3 {
        let (_, _, end) = read(
            sidecar
                .stream(&script(&json!([{"error":{"kind":"server","message":"x"}}])))
                .await
                .expect("a stream"),
        )
        .await;
        assert!(matches!(end, StreamEnd::Failed(_)));
    }
    sidecar.ping().await.expect("an answer, after the last of the second ends");
    assert_eq!(sidecar.irregular().strays, 3);
}

async fn twenty() {
    let sidecar = start(&[], quick()).await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let stream = sidecar.stream(&script(&json!([{"flood":500,"bytes":20}]))).await.expect("a stream");
        readers.spawn(read(stream));
    }
    let expected: Vec<String> = (0..500).map(|number| format!("{number} {}", "x".repeat(20))).collect();
    let mut complete = 0;
    while let Some(read) = readers.join_next().await {
        let (deltas, missed, end) = read.expect("a reader");
        assert_eq!((deltas == expected, missed), (true, 0));
        assert!(matches!(end, StreamEnd::Done(done) if done.ok));
        complete += 1;
    }
    assert_eq!(complete, 20);
}

async fn refused() {
    let sidecar = start(&[], quick()).await;
    let mut params = script(&json!([]));
    params["streamId"] = "mine".into();
    params["provider"] = "nobody".into();
    let error = sidecar.stream(&params).await.expect_err("an error");
    assert_eq!(error.kind(), Some("invalid_params"), "{error}");
    params["provider"] = "script".into();
    let stream = sidecar.stream(&params).await.expect("the id is free");
    assert_eq!(stream.id().as_str(), "mine");
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.ok));
}

async fn taken() {
    let sidecar = start(&["shares-streams"], quick()).await;
    let mut params = script(&json!([{"hang":true}]));
    params["streamId"] = "mine".into();
    let first = sidecar.stream(&params).await.expect("a stream");
    let error = sidecar.stream(&params).await.expect_err("an error");
    assert!(matches!(&error, CallError::StreamExists(id) if id.as_str() == "mine"), "{error}");
    sidecar.cancel(first.id()).await.expect("a success");
    assert!(matches!(read(first).await.2, StreamEnd::Done(done) if done.cancelled));
}

async fn cancel() {
    let sidecar = start(&[], quick()).await;
    let stream = sidecar.stream(&script(&json!(["a", {"hang":true}]))).await.expect("a stream");
    sidecar.cancel(stream.id()).await.expect("a success");
    let (deltas, missed, end) = read(stream).await;
    // The fake looks at its cancel first, so the text may or may not have been sent.
    assert!(deltas.len() <= 1 && missed == 0);
    assert!(matches!(end, StreamEnd::Done(done) if done.cancelled && !done.ok));
}

async fn dropped() {
    let sidecar = start(&[], quick()).await;
    let stream = sidecar.stream(&script(&json!(["a", {"hang":true}]))).await.expect("a stream");
    let id = stream.id().clone();
    assert_eq!(
        sidecar.steer(&id, "left", SteerBy::AsTheTurnSays).await.expect("an answer"),
        Steered::Accepted
    );
    drop(stream);
    while sidecar.steer(&id, "left", SteerBy::AsTheTurnSays).await.expect("an answer") == Steered::Accepted {}
}

async fn dies() {
    let sidecar = start(&[], quick()).await;
    let other = sidecar.stream(&script(&json!(["b", {"hang":true}]))).await.expect("a stream");
    let stream = sidecar.stream(&script(&json!(["a", {"die":7}]))).await.expect("a stream");
    let (deltas, _, end) = read(stream).await;
    assert_eq!(deltas, ["a"], "what was said is heard");
    let StreamEnd::Lost(lost) = end else { panic!("{end:?}") };
    let report = lost.report.as_ref().expect("a report");
    assert_eq!((report.status, report.cause), (Some(Status::Code(7)), Cause::Crash));
    assert!(
        lost.to_string().contains("exit code 7") && lost.to_string().contains("| dying as told"),
        "{lost}"
    );
    assert!(matches!(read(other).await.2, StreamEnd::Lost(_)));
    let error = sidecar.ping().await.expect_err("an error");
    assert!(error.to_string().contains("exit code 7"), "{error}");
    let lost = sidecar.ready().await.expect_err("it does not come back");
    assert!(lost.report.is_some());
    assert_eq!(sidecar.pid(), None);
}

async fn closes_output() {
    let sidecar = start(&["stays"], quick()).await;
    let stream =
        sidecar.stream(&script(&json!(["a", {"closeStdout":true}, {"hang":true}]))).await.expect("a stream");
    let (deltas, _, end) = read(stream).await;
    assert_eq!(deltas, ["a"]);
    let StreamEnd::Lost(lost) = end else { panic!("{end:?}") };
    assert_eq!(lost.report.expect("a report").cause, Cause::ChannelLost);
}

async fn comes_back() {
    let sidecar = start(&[], Terms { restart: again(), ..quick() }).await;
    let before = sidecar.pid();
    for code in [1, 2] {
        let stream = sidecar.stream(&script(&json!([{"die":code}]))).await.expect("a stream");
        let (pinged, (_, _, end)) = tokio::join!(sidecar.ping(), read(stream));
        assert!(matches!(end, StreamEnd::Lost(_)));
        if let Err(error) = pinged {
            assert!(matches!(error, CallError::Lost { .. }), "{error}");
        }
        sidecar.lost().await;
        sidecar.ready().await.expect("another process");
    }
    assert_ne!(sidecar.pid(), before);
    assert!(sidecar.ping().await.is_ok());
    let (deltas, _, _) = read(sidecar.stream(&script(&json!(["again"]))).await.expect("a stream")).await;
    assert_eq!(deltas, ["again"]);
}

async fn restart() {
    let sidecar = start(&["ignores-cancel"], quick()).await;
    let before = sidecar.pid();
    let stream = sidecar.stream(&script(&json!([{"hang":true}]))).await.expect("a stream");
    let hello = sidecar.restart().await.expect("another process");
    assert_eq!(hello.version, "1.2.3");
    assert_ne!(sidecar.pid(), before);
    // It drained, so the end is its own.
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.cancelled));
    assert!(sidecar.ping().await.is_ok());
}

async fn crash_loop() {
    let sidecar = start(&[], Terms { restart: again(), ..quick() }).await;
    for _ in 0..4 {
        if sidecar.ready().await.is_err() {
            break;
        }
        let stream = sidecar.stream(&script(&json!([{"die":1}]))).await.expect("a stream");
        assert!(matches!(read(stream).await.2, StreamEnd::Lost(_)));
        sidecar.lost().await;
    }
    let lost = sidecar.ready().await.expect_err("it is given up");
    assert!(lost.to_string().contains("crashes in a loop"), "{lost}");
}

async fn slow_reader() {
    let limits = StreamLimits { chunks: 8, bytes: 1 << 20 };
    let pulse = Pulse::Ping { every: millis(50), missed: NonZeroU32::new(20).expect("not zero") };
    let sidecar = start(&[], Terms { stream: limits, pulse, ..quick() }).await;
    let before = sidecar.pid();
    let stream = sidecar.stream(&script(&json!([{"flood":20_000,"bytes":100}]))).await.expect("a stream");
    // The time is what is tested: a sidecar that we do not read from for many pings is not taken for dead.
    tokio::time::sleep(millis(2000)).await;
    assert_eq!(sidecar.pid(), before, "pings are excused while nobody reads");
    let (deltas, missed, end) = read(stream).await;
    assert_eq!((deltas.len(), missed), (20_000, 0));
    assert!(deltas.iter().enumerate().all(|(at, delta)| delta.starts_with(&format!("{at} "))));
    assert!(matches!(end, StreamEnd::Done(done) if done.ok));
    assert!(sidecar.ping().await.is_ok());
    assert_eq!(sidecar.pid(), before);
}

async fn unread() {
    let limits = StreamLimits { chunks: 8, bytes: 1 << 20 };
    let sidecar = start(&[], Terms { stream: limits, ..quick() }).await;
    let endless = json!([{"flood":u64::MAX,"bytes":1000}]);
    let mut stream = sidecar.stream(&script(&endless)).await.expect("a stream");
    let began = Instant::now();
    assert!(matches!(stream.next().await, Some(StreamEvent::Chunk(_))), "it flows");
    sidecar.cancel(stream.id()).await.expect("a success, though nobody reads");
    let (deltas, _, end) = read(stream).await;
    assert!(deltas.len() <= 8, "{} chunks waited", deltas.len());
    assert!(deltas.iter().enumerate().all(|(at, delta)| delta.starts_with(&format!("{} ", at + 1))));
    assert!(matches!(end, StreamEnd::Done(done) if done.cancelled));

    let stream = sidecar.stream(&script(&endless)).await.expect("a stream");
    let report = sidecar.shutdown().await.expect("a report");
    assert_eq!(report.status, Some(Status::Code(0)), "it could leave by itself");
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.cancelled));
    assert!(began.elapsed() < Duration::from_secs(20));
}

async fn large_chunk() {
    let sidecar = start(&[], quick()).await;
    let stream = sidecar.stream(&script(&json!([{"flood":3,"bytes":8 << 20}, "z"]))).await.expect("a stream");
    let (deltas, missed, _) = read(stream).await;
    assert_eq!((deltas.len(), missed), (4, 0));
    assert_eq!(deltas[1].len(), 2 + (8 << 20));
}

async fn no_pings() {
    let pulse = Pulse::Ping { every: millis(100), missed: NonZeroU32::new(3).expect("not zero") };
    let terms = Terms { pulse, restart: again(), ..quick() };
    let sidecar = start(&["ignores-ping"], terms).await;
    let before = sidecar.pid();
    let stream = sidecar.stream(&script(&json!([{"flood":u64::MAX,"bytes":1}]))).await.expect("a stream");
    let (deltas, _, end) = read(stream).await;
    assert!(!deltas.is_empty(), "it streamed all the time");
    let StreamEnd::Lost(lost) = end else { panic!("{end:?}") };
    assert!(lost.what.contains("did not answer its pings"), "{lost}");
    assert_eq!(lost.report.expect("a report").cause, Cause::Unhealthy);
    sidecar.lost().await;
    sidecar.ready().await.expect("another process");
    assert_ne!(sidecar.pid(), before);
}

async fn pings() {
    // Patient enough for a busy machine, and less so than the test is long.
    let pulse = Pulse::Ping { every: millis(25), missed: NonZeroU32::new(60).expect("not zero") };
    let sidecar =
        Sidecar::start(&supervisor(), &fake(&[]), Terms { pulse, ..quick() }, Arc::new(Nobody)).await;
    let sidecar = sidecar.expect("a sidecar");
    let before = sidecar.pid();
    let stream = sidecar.stream(&script(&json!([{"flood":2000,"bytes":10}]))).await.expect("a stream");
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.ok));
    // The time is what is tested: one whose pings went unanswered would be killed by now.
    tokio::time::sleep(millis(2500)).await;
    assert_eq!(
        (sidecar.pid(), sidecar.steer(&StreamId::new("x"), "y", SteerBy::Interrupt).await.is_ok()),
        (before, true)
    );
}
