//! The rules about streams, tried against the model server of the checks.

use outrigger_wire::conformance::{Trouble, Verdict, demand};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::lines::expect;
use super::server::{Server, TEXT};
use super::suite::Suite;

/// The words that hosts know.
const KINDS: [&str; 9] = [
    "transport",
    "rate_limit",
    "context_overflow",
    "auth",
    "invalid_request",
    "server",
    "timeout",
    "cancelled",
    "unknown",
];

/// What a stream said.
struct Heard {
    chunks: Vec<Value>,
    terminal: Value,
}

impl Suite<'_> {
    fn server(&self) -> Result<&Server, Trouble> {
        self.server
            .as_ref()
            .ok_or_else(|| Trouble::Unseen("no server could be started on the loopback".to_owned()))
    }

    /// Begins a stream, which must be answered with its id.
    async fn begin(&self, talk: &mut Conversation, model: &str, stream: &str) -> Result<(), Trouble> {
        let answer = talk.ask("agent.chat.stream", self.server()?.stream(model, stream)).await?;
        demand(
            answer["result"]["streamId"] == *stream,
            "the answer does not have the id of the stream",
            &answer,
        )
    }

    /// Hears a stream to its end, and that nothing follows.
    async fn hear_out(&self, talk: &mut Conversation, stream: &str) -> Result<Heard, Trouble> {
        let mut chunks = Vec::new();
        loop {
            let frame = talk.of_stream(stream, self.limits.stream).await?;
            match frame["method"].as_str() {
                Some("stream.chunk") => chunks.push(frame["params"].clone()),
                Some("stream.done" | "stream.error") => {
                    let follows = |frame: &Value| frame["params"]["streamId"] == *stream;
                    if let Ok(more) = talk.until("nothing", self.limits.quiet, follows).await {
                        return Err(Trouble::shown("something follows its end", &more));
                    }
                    return Ok(Heard { chunks, terminal: frame });
                }
                _ => return Err(Trouble::shown("this is no notification of a stream", &frame)),
            }
        }
    }
}

pub(super) async fn params(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let usual = suite.server()?.stream("check-text", "check-refused-params");
    for (member, wrong) in [
        ("provider", json!(null)),
        ("provider", json!("check-no-such-provider")),
        ("model", json!(null)),
        ("messages", json!("hello")),
        ("messages", json!([7])),
        ("messages", json!([{"role":"check","content":"x"}])),
    ] {
        let mut params = usual.clone();
        params[member] = wrong.clone();
        let answer = talk.ask("agent.chat.stream", params).await?;
        expect(&answer, -32602, &format!("a stream with {member} {wrong}"))?;
    }
    Ok("six such streams were refused so".to_owned())
}

pub(super) async fn text(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = talk.send("agent.chat.stream", &suite.server()?.stream("check-text", "check-text-1")).await;
    let is_ours = |frame: &Value| frame["id"] == id || frame["params"]["streamId"] == "check-text-1";
    let first = talk.until("an answer", suite.limits.answer, is_ours).await?;
    demand(first["id"] == id, "a notification of the stream came before its answer", &first)?;
    demand(
        first["result"]["streamId"] == "check-text-1",
        "the answer does not have the id of the stream",
        &first,
    )?;
    let Heard { chunks, terminal } = suite.hear_out(talk, "check-text-1").await?;
    let text: String = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    demand(text == TEXT, &format!("the text is not {TEXT:?}"), &json!(text))?;
    let well = terminal["method"] == "stream.done" && terminal["params"]["ok"] == true;
    demand(well, "it does not end with stream.done, ok:true", &terminal)?;
    let finished = chunks.iter().any(|chunk| chunk["finishReason"] == "stop");
    demand(finished, "the finish reason of the provider was not told", &json!(chunks))?;
    Ok(format!("{} chunks", chunks.len()))
}

pub(super) async fn usage(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-text", "check-usage").await?;
    let Heard { chunks, .. } = suite.hear_out(talk, "check-usage").await?;
    let expected = json!({"promptTokens":7,"completionTokens":5,"totalTokens":12});
    let told = chunks.iter().find_map(|chunk| chunk.get("usage").filter(|usage| !usage.is_null()));
    let told = told.ok_or_else(|| Trouble::shown("no chunk has it", &json!(chunks)))?;
    let right =
        ["promptTokens", "completionTokens", "totalTokens"].iter().all(|name| told[name] == expected[name]);
    demand(right, &format!("it is not {expected}"), told)?;
    Ok("it is".to_owned())
}

pub(super) async fn tool_calls(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-tools", "check-calls").await?;
    let Heard { chunks, .. } = suite.hear_out(talk, "check-calls").await?;
    let calls: Vec<Value> = chunks.iter().filter_map(|chunk| chunk.get("toolCall").cloned()).collect();
    let expected = [
        json!({"id":"call_a","name":"first","arguments":{"a":1}}),
        json!({"id":"call_b","name":"second","arguments":{"b":[2]}}),
    ];
    demand(calls == expected, "these are not the two calls that the model made", &json!(calls))?;
    let last_call = chunks.iter().rposition(|chunk| chunk.get("toolCall").is_some());
    let finish =
        chunks.iter().position(|chunk| chunk.get("finishReason").is_some_and(|reason| !reason.is_null()));
    demand(last_call <= finish || finish.is_none(), "a call comes after the finish reason", &json!(chunks))?;
    Ok("two calls that came in five pieces".to_owned())
}

pub(super) async fn error(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-refused", "check-error").await?;
    let Heard { terminal, .. } = suite.hear_out(talk, "check-error").await?;
    demand(terminal["method"] == "stream.error", "it does not end with stream.error", &terminal)?;
    let params = &terminal["params"];
    let whole =
        params["kind"].is_string() && params["message"].as_str().is_some_and(|message| !message.is_empty());
    demand(whole, "kind and message are not there", &terminal)?;
    Ok(format!("a 401 is {}", params["kind"]))
}

pub(super) async fn error_kind(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-refused", "check-error-kind").await?;
    let Heard { terminal, .. } = suite.hear_out(talk, "check-error-kind").await?;
    if terminal["method"] != "stream.error" {
        return Err(Trouble::Unseen("there was none".to_owned()));
    }
    let kind = terminal["params"]["kind"].as_str().unwrap_or_default();
    demand(KINDS.contains(&kind), "it is another word", &terminal)?;
    demand(kind == "auth", "a 401 is not `auth`", &terminal)?;
    Ok("a 401 is `auth`".to_owned())
}

pub(super) async fn cancel(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-hang", "check-cancel").await?;
    talk.of_stream("check-cancel", suite.limits.stream).await?;
    let answer = talk.ask("agent.chat.cancel", json!({"streamId":"check-cancel"})).await?;
    demand(answer.get("error").is_none(), "the cancel is answered with an error", &answer)?;
    let terminal = loop {
        let frame = talk.of_stream("check-cancel", suite.limits.answer).await?;
        if frame["method"] != "stream.chunk" {
            break frame;
        }
    };
    let params = &terminal["params"];
    let cancelled =
        terminal["method"] == "stream.done" && params["ok"] == false && params["cancelled"] == true;
    demand(cancelled, "it does not end with stream.done, ok:false, cancelled:true", &terminal)?;
    let again = talk.ask("agent.chat.cancel", json!({"streamId":"check-cancel"})).await?;
    demand(again.get("error").is_none(), "a cancel of a stream that is over is an error", &again)?;
    Ok("it does".to_owned())
}

pub(super) async fn interleaves(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-hang", "check-waits").await?;
    talk.of_stream("check-waits", suite.limits.stream).await?;
    talk.is_alive().await?;
    suite.begin(talk, "check-text", "check-beside").await?;
    let Heard { terminal, .. } = suite.hear_out(talk, "check-beside").await?;
    demand(terminal["params"]["ok"] == true, "the stream beside it did not end well", &terminal)?;
    // What is left of the one that waits is no concern of the next rule, whether it can be cancelled or not.
    let _ = talk.ask("agent.chat.cancel", json!({"streamId":"check-waits"})).await;
    let _ = suite.hear_out(talk, "check-waits").await;
    Ok("it does not".to_owned())
}

pub(super) async fn id_taken(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    suite.begin(talk, "check-hang", "check-taken").await?;
    let answer = talk.ask("agent.chat.stream", suite.server()?.stream("check-text", "check-taken")).await?;
    expect(&answer, -32602, "a second stream of that id")?;
    let _ = talk.ask("agent.chat.cancel", json!({"streamId":"check-taken"})).await;
    let _ = suite.hear_out(talk, "check-taken").await;
    Ok("it is".to_owned())
}
