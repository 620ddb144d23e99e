//! The streams of the fake sidecar: one that plays a script from its params, and one that relays a model server.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::host_fake::{Fake, log};

pub(crate) async fn run_stream(fake: &Fake, id: &str, params: &Value, cancel: &CancellationToken) {
    let run = async {
        match params["provider"].as_str() {
            Some("script") => script(fake, id, &params["script"]).await,
            _ => relay(fake, id, params).await,
        }
    };
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => Some(("stream.done", json!({"ok":false,"cancelled":true}))),
        end = run => end,
    };
    let Some((method, mut end)) = end else { return };
    end["streamId"] = id.into();
    if fake.has("no-terminal") {
        return;
    }
    fake.notify(method, &end);
    if fake.has("two-ends") {
        fake.notify("stream.done", &json!({"streamId":id,"ok":false}));
    }
}

type Ending = Option<(&'static str, Value)>;

/// Plays a list: a text is a delta, an object a step.
async fn script(fake: &Fake, id: &str, steps: &Value) -> Ending {
    for step in steps.as_array().into_iter().flatten() {
        match step {
            Value::String(delta) => fake.notify("stream.chunk", &json!({"streamId":id,"delta":delta})),
            Value::Object(step) => {
                if let Some(chunk) = step.get("chunk") {
                    let mut chunk = chunk.clone();
                    chunk["streamId"] = id.into();
                    fake.notify("stream.chunk", &chunk);
                }
                if let Some(count) = step.get("flood").and_then(Value::as_u64) {
                    let bytes = step.get("bytes").and_then(Value::as_u64).unwrap_or(10);
                    let padding = "x".repeat(usize::try_from(bytes).unwrap_or(10));
                    for number in 0..count {
                        fake.notify(
                            "stream.chunk",
                            &json!({"streamId":id,"delta":format!("{number} {padding}")}),
                        );
                        // Others get their turn, as in a real runtime.
                        tokio::task::yield_now().await;
                    }
                }
                if let Some(code) = step.get("die").and_then(Value::as_i64) {
                    log(format_args!("dying as told"));
                    std::process::exit(i32::try_from(code).unwrap_or(1));
                }
                if step.contains_key("closeStdout") {
                    let _ = rustix::stdio::dup2_stdout(
                        std::fs::File::open("/dev/null").expect("the null device"),
                    );
                }
                if step.contains_key("hang") {
                    std::future::pending::<()>().await;
                }
                if let Some(method) = step.get("ask").and_then(Value::as_str) {
                    let answer = fake.ask(method, &step["params"]).await;
                    fake.notify("stream.chunk", &json!({"streamId":id,"delta":answer.to_string()}));
                }
                if let Some(note) = step.get("notify").and_then(Value::as_str) {
                    fake.notify(note, &step["params"]);
                }
                if let Some(line) = step.get("say").and_then(Value::as_str) {
                    fake.line(line);
                }
                if let Some(error) = step.get("error") {
                    return Some(("stream.error", error.clone()));
                }
                if let Some(done) = step.get("done") {
                    return Some(("stream.done", done.clone()));
                }
            }
            _ => {}
        }
    }
    Some(("stream.done", json!({"ok":true})))
}

/// Relays a server that speaks OpenAI's chat completions, just well enough.
async fn relay(fake: &Fake, id: &str, params: &Value) -> Ending {
    let base = params["baseUrl"].as_str().unwrap_or_default();
    let (address, path) = base.trim_start_matches("http://").split_once('/').unwrap_or((base, ""));
    let failed = |kind: &str, message: String| {
        Some(("stream.error", json!({"kind":kind,"message":message,"retryable":false})))
    };
    let Ok(mut server) = TcpStream::connect(address).await else {
        return failed("transport", "nobody there".into());
    };
    let body = json!({"model":params["model"],"messages":params["messages"],"stream":true}).to_string();
    let key = params["apiKey"].as_str().unwrap_or_default();
    let head = format!(
        "POST /{path}/chat/completions HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    if server.write_all(head.as_bytes()).await.is_err() {
        return failed("transport", "it does not listen".into());
    }
    let mut lines = BufReader::new(server).lines();
    let status = lines.next_line().await.ok().flatten().unwrap_or_default();
    let status: u16 = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    if status != 200 {
        let kind = if status == 401 { "auth" } else { "server" };
        let kind = if fake.has("odd-failures") { "HTTPStatusError" } else { kind };
        let mut end =
            json!({"kind":kind,"message":format!("HTTP {status}"),"status":status,"retryable":false});
        if fake.has("failures-are-done") {
            end = json!({"ok":true});
            return Some(("stream.done", end));
        }
        return Some(("stream.error", end));
    }
    let mut calls: Vec<(String, String, String)> = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
        if data == "[DONE]" {
            break;
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else { continue };
        let choice = &event["choices"][0];
        if let Some(delta) = choice["delta"]["content"].as_str() {
            let delta = if fake.has("garbles") { delta.replace('ü', "?") } else { delta.to_owned() };
            fake.notify("stream.chunk", &json!({"streamId":id,"delta":delta}));
        }
        for part in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(part["index"].as_u64().unwrap_or(0)).unwrap_or(0);
            calls.resize(calls.len().max(index + 1), Default::default());
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            calls[index].0.push_str(&text(&part["id"]));
            calls[index].1.push_str(&text(&part["function"]["name"]));
            calls[index].2.push_str(&text(&part["function"]["arguments"]));
            if fake.has("fragments") {
                fake.notify("stream.chunk", &json!({"streamId":id,"toolCall":{"id":part["id"],"name":part["function"]["name"],"arguments":{}}}));
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            for (call, name, arguments) in calls.drain(..).filter(|_| !fake.has("fragments")) {
                let arguments: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
                fake.notify(
                    "stream.chunk",
                    &json!({"streamId":id,"toolCall":{"id":call,"name":name,"arguments":arguments}}),
                );
            }
            fake.notify("stream.chunk", &json!({"streamId":id,"finishReason":reason}));
        }
        if let Some(usage) = event["usage"].as_object()
            && !fake.has("no-usage")
        {
            let usage = json!({"promptTokens":usage["prompt_tokens"],"completionTokens":usage["completion_tokens"],"totalTokens":usage["total_tokens"]});
            fake.notify("stream.chunk", &json!({"streamId":id,"usage":usage}));
        }
        // A model takes its time; so others can be heard between two pieces.
        tokio::time::sleep(Duration::ZERO).await;
    }
    Some(("stream.done", json!({"ok":true})))
}
