//! Streams of chat completions against the scripted server, with every fault that a provider can have.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::chat::{BoxFuture, Secret, Usage};
use outrigger_steerable::model::{Client, Event, FailureKind, Gone, Sink, Summary};
use outrigger_steerable::net::Http;
use serde_json::json;

use crate::model_kit::{Heard, block_on, call, heard, hi};
use crate::server::{Answer, Server, Step};
use crate::server_scenarios::text;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        an_answer_is_told_as_it_comes_and_then_why_it_ended_and_what_it_cost,
        however_the_events_are_spelled_the_answer_is_the_same,
        a_huge_delta_arrives_whole,
        thoughts_are_told_under_either_name,
        two_calls_in_interleaved_pieces_are_told_once_each_before_the_finish_reason,
        arguments_that_come_as_an_object_pass_as_they_are,
        usage_on_a_chunk_that_has_choices_is_told,
        a_stream_without_its_last_mark_is_complete,
        an_answer_that_is_no_stream_is_taken_whole,
        an_event_that_is_no_json_is_named,
        an_error_in_the_stream_is_the_failure_of_the_call,
        a_connection_that_breaks_in_the_middle_is_a_failure_and_what_was_told_is_not_told_again,
        an_answer_without_any_events_is_a_failure,
        an_event_beyond_sixteen_mebibytes_is_refused,
        a_stream_that_falls_silent_times_out,
        a_stream_that_takes_too_long_in_all_times_out,
        a_listener_that_is_gone_ends_the_call,
        a_call_that_is_dropped_hangs_up,
        a_listener_is_asked_to_catch_up_before_it_holds_too_much,
        a_listener_that_does_not_read_makes_the_provider_wait,
        twenty_streams_at_a_time_are_all_complete_and_use_their_connections_again,
        twenty_faults_at_a_time_do_not_touch_each_other,
    ]
}

fn an_answer_is_told_as_it_comes_and_then_why_it_ended_and_what_it_cost() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "text"));
    assert_eq!(lines, ["says Hello ", "says world", "ends stop", "used 11+2=13 cached 3"]);
    let summary = outcome.unwrap();
    assert!(summary.first_event_after.is_some());
    let usage = Usage { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13, cached_prompt_tokens: 3 };
    let expected = Summary {
        usage: Some(usage),
        finish_reason: Some("stop".to_owned()),
        attempts: 1,
        first_event_after: summary.first_event_after,
    };
    assert_eq!(summary, expected);
}

fn however_the_events_are_spelled_the_answer_is_the_same() {
    let server = Server::scenarios();
    let say = |model: &str| {
        let lines = heard(&hi(&server.base_url(), model));
        lines.iter().filter_map(|line| line.strip_prefix("says ")).collect::<String>()
    };
    assert_eq!(say("utf8split"), "é日本😀 end");
    assert_eq!(say("crlf"), "one two");
    assert_eq!(say("multiline"), "joined");
    assert_eq!(say("nospace"), "tight");
    assert_eq!(say("null"), "only");
    assert_eq!(say("length"), "cut");
}

fn a_huge_delta_arrives_whole() {
    let server = Server::scenarios();
    let lines = heard(&hi(&server.base_url(), "bigdelta,size=8000000"));
    assert_eq!(lines[0], format!("says {}", "z".repeat(8_000_000)));
    assert_eq!(lines[1..], ["ends stop", "used 11+1=12 cached 3"]);
}

fn thoughts_are_told_under_either_name() {
    let server = Server::scenarios();
    let lines = heard(&hi(&server.base_url(), "reason"));
    assert_eq!(lines[..3], ["thinks think-A ", "thinks think-B ", "says answer"]);
}

fn two_calls_in_interleaved_pieces_are_told_once_each_before_the_finish_reason() {
    let server = Server::scenarios();
    let lines = heard(&hi(&server.base_url(), "tools2"));
    let expected = [
        r#"calls call_a get_weather {"city":"Paris"}"#,
        r#"calls call_b list_files {"dir":"/data","n":3}"#,
        "ends tool_calls",
        "used 11+9=20 cached 3",
    ];
    assert_eq!(lines, expected);
}

fn arguments_that_come_as_an_object_pass_as_they_are() {
    let server = Server::scenarios();
    let lines = heard(&hi(&server.base_url(), "toolobj"));
    assert_eq!(lines[..2], [r#"calls call_o get_weather {"city":"Oslo"}"#, "ends tool_calls"]);
}

fn usage_on_a_chunk_that_has_choices_is_told() {
    let server = Server::scenarios();
    assert_eq!(heard(&hi(&server.base_url(), "usagein")), ["says x", "ends stop", "used 11+1=12 cached 3"]);
}

fn a_stream_without_its_last_mark_is_complete() {
    let server = Server::scenarios();
    assert_eq!(heard(&hi(&server.base_url(), "nodone")), ["says a", "says b", "ends stop"]);
    // Not even the blank line after the last event.
    let server = Server::start(|_| {
        let mut bytes = text("a");
        bytes.truncate(bytes.len() - 2);
        Answer::events(bytes)
    });
    assert_eq!(heard(&hi(&server.base_url(), "x")), ["says a"]);
}

fn an_answer_that_is_no_stream_is_taken_whole() {
    let server = Server::scenarios();
    let expected = [
        "says Hello world",
        r#"calls call_1 get_weather {"city":"Rome"}"#,
        "ends tool_calls",
        "used 11+2=13 cached 3",
    ];
    assert_eq!(heard(&hi(&server.base_url(), "json")), expected);
    // An error that pretends to be a success.
    let server = Server::start(|_| Answer::json(200, &json!({"error": "model not found"})));
    let failure = call(&hi(&server.base_url(), "x")).1.unwrap_err();
    assert_eq!(failure.message, "openai: error in the stream (unknown): model not found");
}

fn an_event_that_is_no_json_is_named() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "badjson"));
    assert_eq!(lines, ["says good1"]);
    let failure = outcome.unwrap_err();
    let expected = "openai: an event is no JSON (key must be a string at line 1 column 2): {not json";
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Server, expected));
}

fn an_error_in_the_stream_is_the_failure_of_the_call() {
    let server = Server::scenarios();
    let (lines, outcome) = call(&hi(&server.base_url(), "errmid"));
    assert_eq!(lines, ["says part"]);
    let failure = outcome.unwrap_err();
    assert_eq!(failure.message, "openai: error in the stream (server): upstream exploded");
    assert_eq!((failure.kind, failure.status), (FailureKind::Server, Some(500)));
}

fn a_connection_that_breaks_in_the_middle_is_a_failure_and_what_was_told_is_not_told_again() {
    let server = Server::scenarios();
    for model in ["reset", "trunc"] {
        let (lines, outcome) = call(&hi(&server.base_url(), model));
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Transport, "{failure}");
        assert!(failure.message.starts_with("openai: "), "{failure}");
        // A reset may overtake what was sent before it.
        assert!(
            ["says 0 ", "says 1 ", "says 2 "].starts_with(&as_strs(&lines)) || model == "reset",
            "{lines:?}"
        );
    }
    assert_eq!(server.requests().iter().filter(|got| got.json()["model"] == "trunc").count(), 1);
}

fn as_strs(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn an_answer_without_any_events_is_a_failure() {
    for body in ["", "<html>a proxy speaks</html>\n\n", ": only a comment\n\n"] {
        let server = Server::start(move |_| Answer::events(body));
        let failure = call(&hi(&server.base_url(), "x")).1.unwrap_err();
        assert_eq!(failure.message, "openai: the answer has no events in it");
        assert_eq!(failure.kind, FailureKind::Transport);
        assert_eq!(server.requests().len(), 3);
    }
}

fn an_event_beyond_sixteen_mebibytes_is_refused() {
    let server = Server::start(|_| Answer::events(text(&"z".repeat(16 << 20))));
    let mut request = hi(&server.base_url(), "x");
    request.patience.attempts = 1;
    let failure = call(&request).1.unwrap_err();
    assert_eq!(failure.message, "openai: a server-sent event is larger than 16777216 bytes");
}

fn a_stream_that_falls_silent_times_out() {
    let server = Server::scenarios();
    let mut request = hi(&server.base_url(), "hang");
    request.patience.idle = Duration::from_millis(50);
    let (lines, outcome) = call(&request);
    assert_eq!(lines, ["says first"]);
    let failure = outcome.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Timeout, "openai: silent for 50ms"));
    assert!(server.sees_hangups(1));
    assert_eq!(server.requests().len(), 1);
}

fn a_stream_that_takes_too_long_in_all_times_out() {
    let server = Server::scenarios();
    let mut request = hi(&server.base_url(), "hang");
    request.patience.total = Duration::from_millis(80);
    let failure = call(&request).1.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Timeout, "openai: not done within 80ms")
    );
    assert!(server.sees_hangups(1));
}

/// Hears everything and is never there to write.
struct Absent;

impl Sink for Absent {
    fn event(&mut self, _: Event<'_>) {}

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async { Err(Gone) })
    }
}

fn a_listener_that_is_gone_ends_the_call() {
    let server = Server::scenarios();
    let request = hi(&server.base_url(), "hang");
    let failure = block_on(Client::new(Http::new()).stream(&request, &mut Absent)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert!(server.sees_hangups(1));
}

/// Says when it first heard something.
struct Knocker(Option<tokio::sync::oneshot::Sender<()>>);

impl Sink for Knocker {
    fn event(&mut self, _: Event<'_>) {
        if let Some(knock) = self.0.take() {
            knock.send(()).unwrap_or_default();
        }
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async { Ok(()) })
    }
}

fn a_call_that_is_dropped_hangs_up() {
    let server = Server::scenarios();
    let request = hi(&server.base_url(), "hang");
    block_on(async {
        let (knock, knocked) = tokio::sync::oneshot::channel();
        let client = Client::new(Http::new());
        let mut sink = Knocker(Some(knock));
        tokio::select! {
            outcome = client.stream(&request, &mut sink) => panic!("{outcome:?}"),
            knock = knocked => knock.unwrap(),
        }
        // The connection is closed by a task of the runtime, so that must live until the server has seen it.
        tokio::task::spawn_blocking(move || assert!(server.sees_hangups(1))).await.unwrap();
    });
}

fn a_listener_is_asked_to_catch_up_before_it_holds_too_much() {
    let server = Server::scenarios();
    let request = hi(&server.base_url(), "chunks,n=20000,size=100,per_write=5000");
    let mut heard = Heard::default();
    block_on(Client::new(Http::new()).stream(&request, &mut heard)).unwrap();
    assert_eq!(heard.lines.len(), 20_002);
    assert!(heard.most_held <= 64 << 10, "{}", heard.most_held);
    assert!(heard.flushes < 1_000, "{} flushes for 20,000 chunks", heard.flushes);
}

/// Hears, and writes nothing until it is told to.
struct Stalled {
    heard: usize,
    stalled: Option<tokio::sync::oneshot::Sender<usize>>,
    go: Arc<tokio::sync::Notify>,
}

impl Sink for Stalled {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Delta(text) = event {
            self.heard += text.len();
        }
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async {
            if let Some(stalled) = self.stalled.take() {
                stalled.send(self.heard).unwrap();
                self.go.notified().await;
            }
            Ok(())
        })
    }
}

fn a_listener_that_does_not_read_makes_the_provider_wait() {
    // 64 MB are more than all the buffers between the two.
    let server = Server::start(|_| {
        let mut steps = vec![Step::Chunk(text(&"y".repeat(100_000))); 640];
        steps.push(Step::End);
        Answer::Stream(steps)
    });
    let request = hi(&server.base_url(), "x");
    block_on(async {
        let (stalled, is_stalled) = tokio::sync::oneshot::channel();
        let go = Arc::new(tokio::sync::Notify::new());
        let mut sink = Stalled { heard: 0, stalled: Some(stalled), go: Arc::clone(&go) };
        let client = Client::new(Http::new());
        let listening = client.stream(&request, &mut sink);
        let letting_go = async {
            let held = is_stalled.await.unwrap();
            assert!(held <= 200_000, "{held} bytes were held");
            go.notify_one();
        };
        let (outcome, ()) = tokio::join!(listening, letting_go);
        outcome.unwrap();
        assert_eq!(sink.heard, 64_000_000);
    });
}

fn twenty_streams_at_a_time_are_all_complete_and_use_their_connections_again() {
    let server = Server::scenarios();
    let request = hi(&server.base_url(), "chunks,n=1000,size=5,per_write=10");
    block_on(async {
        let client = Client::new(Http::new());
        for _ in 0..3 {
            let mut streams = tokio::task::JoinSet::new();
            for _ in 0..20 {
                let (client, request) = (client.clone(), request.clone());
                streams.spawn(async move {
                    let mut heard = Heard::default();
                    client.stream(&request, &mut heard).await.unwrap();
                    heard.lines
                });
            }
            while let Some(lines) = streams.join_next().await {
                let lines = lines.unwrap();
                assert_eq!(lines.len(), 1_002);
                assert!(lines[..1_000].iter().all(|line| line == "says xxxxx"));
                assert_eq!(lines[1_000..], ["ends stop", "used 11+1000=1011 cached 3"]);
            }
        }
    });
    assert_eq!(server.requests().len(), 60);
    assert!(server.connections() < 40, "{} connections for 60 streams", server.connections());
}

fn twenty_faults_at_a_time_do_not_touch_each_other() {
    let server = Server::scenarios();
    let models = [
        "text",
        "trunc",
        "badjson",
        "errmid",
        "tools2",
        "utf8split",
        "json",
        "crlf",
        "reset",
        "status,code=401",
    ];
    block_on(async {
        let client = Client::new(Http::new());
        let mut streams = tokio::task::JoinSet::new();
        for model in models.into_iter().chain(models) {
            let (client, request) = (client.clone(), hi(&server.base_url(), model));
            streams.spawn(async move {
                let mut heard = Heard::default();
                let outcome = client.stream(&request, &mut heard).await;
                (model, outcome.map(|summary| summary.finish_reason).map_err(|failure| failure.kind))
            });
        }
        let mut seen = streams.join_all().await;
        seen.sort_by_key(|(model, _)| *model);
        seen.dedup();
        let ends = |reason: &str| Ok(Some(reason.to_owned()));
        let expected = [
            ("badjson", Err(FailureKind::Server)),
            ("crlf", ends("stop")),
            ("errmid", Err(FailureKind::Server)),
            ("json", ends("tool_calls")),
            ("reset", Err(FailureKind::Transport)),
            ("status,code=401", Err(FailureKind::Auth)),
            ("text", ends("stop")),
            ("tools2", ends("tool_calls")),
            ("trunc", Err(FailureKind::Transport)),
            ("utf8split", ends("stop")),
        ];
        assert_eq!(seen, expected);
    });
}

/// The key of the tests of retries.
pub(crate) fn key() -> Secret {
    Secret::new("sk-test-0123456789")
}
