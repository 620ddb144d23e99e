//! Streams over the real process: order, ends, names, and a host that does not read.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::server::Server;
use crate::sidecar_kit::{Raw, script, scripted, with};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_stream_is_an_answer_then_chunks_then_one_end,
        the_first_notification_never_shares_a_write_with_the_answer,
        what_is_wrong_with_a_stream_is_told_before_it_is_promised,
        a_name_is_the_hosts_and_only_one_stream_has_it,
        a_stream_of_a_provider_is_passed_on,
        a_call_is_told_once_before_the_reason,
        a_failure_is_told_with_its_kind,
        a_cancelled_stream_ends_soon_and_once,
        a_stream_and_its_cancel_in_one_write_end_cancelled,
        cancelling_what_is_over_or_never_was_is_fine,
        steering_a_stream_that_is_no_turn_is_not_heard,
        a_batch_that_opens_a_stream_is_answered_before_the_stream_speaks,
        a_long_delta_becomes_several_chunks,
        twenty_streams_do_not_delay_each_other_or_a_ping,
        a_slow_stream_does_not_delay_anything,
        a_host_that_stops_reading_loses_nothing_and_costs_bounded_memory,
    ]
}

fn openai(server: &Server, model: &str) -> Value {
    json!({
        "provider": "openai", "model": model, "baseUrl": server.base_url(), "apiKey": "k",
        "messages": [{"role": "user", "content": "hi"}],
    })
}

fn a_stream_is_an_answer_then_chunks_then_one_end() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [
        {"reasoningDelta": "hm"}, {"delta": "a"}, {"delta": "b"},
        {"toolCall": {"id": "c1", "name": "f", "arguments": {"x": 1}}},
        {"usage": {"promptTokens": 1, "completionTokens": 2, "totalTokens": 3}}, {"finishReason": "stop"},
    ]})]);
    let id = raw.ask("agent.chat.stream", scripted(&path));
    let answer = raw.hear();
    assert_eq!(answer["id"], id);
    let stream = answer["result"]["streamId"].as_str().unwrap().to_owned();
    assert!(stream.strip_prefix("str_").is_some_and(|hex| hex.len() == 32), "{stream}");
    let (chunks, terminal) = raw.rest(&stream);
    let bare: Vec<Value> = chunks
        .into_iter()
        .map(|mut chunk| {
            chunk.as_object_mut().unwrap().remove("streamId");
            chunk
        })
        .collect();
    let text: Vec<&Value> = bare.iter().filter(|chunk| chunk.get("delta").is_some()).collect();
    assert_eq!(text, [&json!({"delta": "a"}), &json!({"delta": "b"})]);
    assert_eq!(bare[0], json!({"reasoningDelta": "hm"}));
    let call = bare
        .iter()
        .position(|chunk| *chunk == json!({"toolCall": {"id": "c1", "name": "f", "arguments": {"x": 1}}}));
    let reason = bare.iter().position(|chunk| *chunk == json!({"finishReason": "stop"}));
    assert!(call.unwrap() < reason.unwrap(), "{bare:?}");
    assert!(
        bare.contains(&json!({"usage": {"promptTokens": 1, "completionTokens": 2, "totalTokens": 3}})),
        "{bare:?}"
    );
    assert_eq!(
        terminal,
        json!({"jsonrpc": "2.0", "method": "stream.done", "params": {"streamId": stream, "ok": true}})
    );
    raw.result("system.ping", Value::Null);
    assert!(raw.heard.is_empty(), "nothing after the end: {:?}", raw.heard);
}

fn the_first_notification_never_shares_a_write_with_the_answer() {
    let mut raw = Raw::start_in_packets(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    for _ in 0..50 {
        raw.ask("agent.chat.stream", scripted(&path));
        let read = raw.read_once();
        assert_eq!(read.matches('\n').count(), 1, "{read}");
        let answer: Value = serde_json::from_str(&read).unwrap();
        raw.rest(answer["result"]["streamId"].as_str().unwrap());
    }
}

fn what_is_wrong_with_a_stream_is_told_before_it_is_promised() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]}), json!({"chunks": 1})]);
    let good = json!({"provider": "openai", "model": "m"});
    let table = [
        (json!(1), "params must be an object"),
        (json!({}), "provider must be a non-empty string"),
        (json!({"provider": "abacus"}), "provider must be one of openai,"),
        (json!({"provider": "openai", "messages": 1}), "model must be a non-empty string"),
        (with(good.clone(), json!({"messages": {}})), "messages must be an array"),
        (with(good.clone(), json!({"messages": [1]})), "messages[0] must be an object"),
        (with(good.clone(), json!({"messages": [{"role": "wizard"}]})), "messages[0].role must be "),
        (with(good.clone(), json!({"temperature": "hot"})), "temperature must be a number"),
        (with(good.clone(), json!({"maxTokens": 1.5})), "maxTokens must be a whole number"),
        (with(good.clone(), json!({"tools": {}})), "tools must be an array"),
        (with(good.clone(), json!({"providerOptions": []})), "providerOptions must be an object"),
        (with(good, json!({"streamId": 1})), "streamId must be a string"),
        (scripted(&path), "baseUrl: line 2 of the script"),
        (scripted(std::path::Path::new("/nowhere/at/all")), "baseUrl: cannot read the script"),
    ];
    for (params, message) in table {
        let shown = params.to_string();
        let (code, kind, said) = raw.error("agent.chat.stream", params);
        assert_eq!((code, kind.as_str()), (-32602, "invalid_params"), "{shown}");
        assert!(said.starts_with(message), "{shown}: {said}");
    }
}

fn a_name_is_the_hosts_and_only_one_stream_has_it() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}, {"sleepMs": 600_000}]})]);
    let params = with(scripted(&path), json!({"streamId": "mine"}));
    assert_eq!(raw.result("agent.chat.stream", params.clone()), json!({"streamId": "mine"}));
    let (code, kind, message) = raw.error("agent.chat.stream", params.clone());
    assert_eq!((code, kind.as_str()), (-32602, "invalid_params"));
    assert!(message.contains("streamId"), "{message}");
    raw.result("agent.chat.cancel", json!({"streamId": "mine"}));
    raw.rest("mine");
    assert_eq!(
        raw.result("agent.chat.stream", params),
        json!({"streamId": "mine"}),
        "the name is free again"
    );
}

fn a_stream_of_a_provider_is_passed_on() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    let (chunks, terminal) = raw.stream(openai(&server, "chunks,n=1000,size=4"));
    let text: String = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert_eq!(text, "xxxx".repeat(1000));
    let usage = chunks.iter().find_map(|chunk| chunk.get("usage")).unwrap();
    assert_eq!(
        *usage,
        json!({"promptTokens": 11, "completionTokens": 1000, "totalTokens": 1011, "cachedPromptTokens": 3})
    );
    assert_eq!(
        chunks.iter().filter_map(|chunk| chunk["finishReason"].as_str()).collect::<Vec<_>>(),
        ["stop"]
    );
    assert_eq!((terminal["method"].as_str(), &terminal["params"]["ok"]), (Some("stream.done"), &json!(true)));
}

fn a_call_is_told_once_before_the_reason() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    let (chunks, _) = raw.stream(openai(&server, "tools2"));
    let members: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| ["toolCall", "finishReason"].into_iter().find(|name| chunk.get(name).is_some()))
        .collect();
    assert_eq!(members, ["toolCall", "toolCall", "finishReason"], "{chunks:?}");
}

fn a_failure_is_told_with_its_kind() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    let table = [
        ("status,code=401", "auth", json!(401), false),
        ("status,code=400", "invalid_request", json!(400), false),
        ("status,code=500", "server", json!(500), true),
        ("overflow", "context_overflow", json!(400), false),
        ("errmid", "", Value::Null, false),
    ];
    for (model, kind, status, retryable) in table {
        let (_, terminal) = raw.stream(with(openai(&server, model), json!({"retryMaxAttempts": 1})));
        assert_eq!(terminal["method"], "stream.error", "{model}: {terminal}");
        let params = &terminal["params"];
        assert!(params["message"].is_string() && params["retryable"].is_boolean(), "{terminal}");
        if !kind.is_empty() {
            assert_eq!((params["kind"].as_str(), &params["status"]), (Some(kind), &status), "{terminal}");
            assert_eq!(params["retryable"], retryable, "{terminal}");
        }
    }
    let (_, terminal) =
        raw.stream(with(openai(&server, "status,code=429,retry_after=7"), json!({"retryMaxAttempts": 1})));
    assert_eq!(
        (terminal["params"]["kind"].as_str(), &terminal["params"]["retryAfterMs"]),
        (Some("rate_limit"), &json!(7000))
    );
}

fn a_cancelled_stream_ends_soon_and_once() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    for model in ["hang", "nohdr"] {
        let stream =
            raw.result("agent.chat.stream", openai(&server, model))["streamId"].as_str().unwrap().to_owned();
        if model == "hang" {
            raw.notification("stream.chunk");
        }
        let began = Instant::now();
        assert_eq!(raw.result("agent.chat.cancel", json!({"streamId": stream})), Value::Null);
        let (_, terminal) = raw.rest(&stream);
        assert_eq!(terminal["params"], json!({"streamId": stream, "ok": false, "cancelled": true}));
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }
    raw.result("system.ping", Value::Null);
    assert!(raw.heard.is_empty(), "{:?}", raw.heard);
}

fn a_stream_and_its_cancel_in_one_write_end_cancelled() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    let open = json!({"id": 1, "method": "agent.chat.stream", "params": with(openai(&server, "hang"), json!({"streamId": "s"}))});
    let cancel = json!({"id": 2, "method": "agent.chat.cancel", "params": {"streamId": "s"}});
    raw.write(format!("{open}\n{cancel}\n").as_bytes());
    assert_eq!(raw.hear()["id"], 1);
    assert_eq!(raw.hear()["id"], 2);
    let (_, terminal) = raw.rest("s");
    assert_eq!(terminal["params"], json!({"streamId": "s", "ok": false, "cancelled": true}));
}

fn cancelling_what_is_over_or_never_was_is_fine() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    raw.stream(with(scripted(&path), json!({"streamId": "s"})));
    for id in ["s", "never"] {
        assert_eq!(raw.result("agent.chat.cancel", json!({"streamId": id})), Value::Null);
    }
}

fn steering_a_stream_that_is_no_turn_is_not_heard() {
    let mut raw = Raw::start(&[]);
    let not_active = json!({"ok": false, "reason": "stream_not_active"});
    assert_eq!(raw.result("agent.chat.steer", json!({"streamId": "s", "content": "x"})), not_active);
    assert_eq!(raw.result("agent.chat.compact", json!({"streamId": "s"})), not_active);
    let (code, _, message) =
        raw.error("agent.chat.steer", json!({"streamId": "s", "content": "x", "mode": "soon"}));
    assert_eq!((code, message.as_str()), (-32602, "mode must be \"boundary\" or \"interrupt\""));
}

fn a_batch_that_opens_a_stream_is_answered_before_the_stream_speaks() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let mut raw = Raw::start(&["--write-root", root, "--commands", "allow"]);
    let (_script, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    let slow = json!({"command": "sleep", "args": ["0.3"], "cwd": root});
    let batch = json!([
        {"id": 1, "method": "agent.chat.stream", "params": with(scripted(&path), json!({"streamId": "s"}))},
        {"id": 2, "method": "tool.invoke", "params": {"name": "run_command", "arguments": slow, "consentGranted": true}},
    ]);
    raw.say(&batch.to_string());
    let answers = raw.hear();
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    let (chunks, _) = raw.rest("s");
    assert_eq!(chunks, [json!({"streamId": "s", "delta": "a"})]);
}

fn a_long_delta_becomes_several_chunks() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    let (chunks, terminal) = raw.stream(openai(&server, "bigdelta,size=3000000"));
    let deltas: Vec<&str> = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert!(deltas.len() >= 3 && deltas.iter().all(|delta| delta.len() <= 1 << 20));
    assert_eq!(deltas.iter().map(|delta| delta.len()).sum::<usize>(), 3_000_000);
    assert_eq!(terminal["params"]["ok"], true);
}

fn twenty_streams_do_not_delay_each_other_or_a_ping() {
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    for stream in 0..20 {
        let params = with(openai(&server, "chunks,n=2000,size=8"), json!({"streamId": format!("s{stream}")}));
        raw.ask("agent.chat.stream", params);
    }
    let mut ended = 0;
    let mut deltas = 0;
    let mut slowest = Duration::ZERO;
    let mut asked = Instant::now();
    let mut ping = raw.ask("system.ping", Value::Null);
    while ended < 20 {
        let message = raw.hear();
        match message["method"].as_str() {
            Some("stream.chunk") => deltas += usize::from(message["params"].get("delta").is_some()),
            Some("stream.done") => {
                assert_eq!(message["params"]["ok"], true, "{message}");
                ended += 1;
            }
            Some(_) => panic!("{message}"),
            None if message["id"] == ping => {
                slowest = slowest.max(asked.elapsed());
                asked = Instant::now();
                ping = raw.ask("system.ping", Value::Null);
            }
            None => assert!(message["result"]["streamId"].is_string(), "{message}"),
        }
    }
    assert_eq!(deltas, 20 * 2000);
    // The machine may be busy; what is judged is that a ping does not wait for the streams to end.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

fn a_slow_stream_does_not_delay_anything() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"sleepMs": 600_000}, {"delta": "late"}]})]);
    raw.result("agent.chat.stream", with(scripted(&path), json!({"streamId": "slow"})));
    let (_quick, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    for _ in 0..10 {
        let (chunks, _) = raw.stream(scripted(&path));
        assert_eq!(chunks.len(), 1);
    }
    raw.result("agent.chat.cancel", json!({"streamId": "slow"}));
    let (chunks, _) = raw.rest("slow");
    assert!(chunks.is_empty(), "{chunks:?}");
}

fn a_host_that_stops_reading_loses_nothing_and_costs_bounded_memory() {
    const CHUNKS: usize = 5000;
    let server = Server::scenarios();
    let mut raw = Raw::start(&[]);
    // So that what is loaded at the first stream is not taken for what waits.
    raw.stream(openai(&server, "text"));
    let before = raw.rss();
    for stream in 0..20 {
        let model = format!("chunks,n={CHUNKS},size=400");
        raw.ask(
            "agent.chat.stream",
            with(openai(&server, &model), json!({"streamId": format!("s{stream}")})),
        );
    }
    // 40 MB of text are on their way and nobody reads: wait until the sidecar has nothing more to do.
    let mut idle = 0;
    let mut busy = raw.cpu_ticks();
    while idle < 20 {
        std::thread::sleep(Duration::from_millis(50));
        let now = raw.cpu_ticks();
        idle = if now == busy { idle + 1 } else { 0 };
        busy = now;
    }
    let grown = raw.rss().saturating_sub(before);
    assert!(grown < 24 * 1024, "{grown} KiB more than before");
    // It still hears: the answer comes before what waits, when somebody reads again.
    let ping = raw.ask("system.ping", Value::Null);
    let mut counts = [0; 20];
    let (mut ended, mut pinged, mut lines_before_ping) = (0, false, 0);
    while ended < 20 || !pinged {
        let message = raw.hear();
        if message["id"] == ping {
            pinged = true;
        } else if let Some(name) = message["params"]["streamId"].as_str() {
            lines_before_ping += usize::from(!pinged);
            let stream: usize = name.strip_prefix('s').unwrap().parse().unwrap();
            match message["method"].as_str() {
                Some("stream.chunk") => {
                    counts[stream] += message["params"]["delta"].as_str().map_or(0, str::len);
                }
                Some("stream.done") => ended += 1,
                other => panic!("{other:?} {message}"),
            }
        }
    }
    assert_eq!(counts, [CHUNKS * 400; 20]);
    assert!(lines_before_ping < 2000, "the ping waited for {lines_before_ping} lines");
}
