//! The rules about lines: what is a request, what is answered, and that nothing on standard input ends a sidecar.

use std::time::Duration;

use outrigger_wire::conformance::{Trouble, Verdict, demand, shown};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::conversation::{Conversation, Next};
use super::suite::Suite;

/// A line that must be served: prompts of this size are normal.
const LONG: usize = 8 << 20;

/// Lines that are no requests, for a flood of them.
const GARBAGE: [&str; 8] = [
    "{",
    "hello",
    "7",
    "null",
    "[]",
    r#"{"id":1,"method":"ping","params":{}}"#,
    r#"{"method":"ping","params":{}}"#,
    r#"{"id":"garbage","method":"ping"}"#,
];

pub(super) async fn ping(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    talk.is_alive().await?;
    Ok("it is".to_owned())
}

pub(super) async fn not_json(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for line in ["{\"id\":", "hello", "{} {}", "{\"id\":\"x\",\"method\":\"ping\",\"params\":NaN}"] {
        let answer = talk.complaint(line, "").await?;
        demand(answer["message"].is_string(), "the error has no message", &answer)?;
    }
    talk.is_alive().await?;
    Ok("four such lines were answered so".to_owned())
}

pub(super) async fn bad_envelope(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for line in [
        "7",
        "[]",
        "null",
        r#"{"method":"ping","params":{}}"#,
        r#"{"id":"bad","params":{}}"#,
        r#"{"id":"bad","method":"ping"}"#,
        r#"{"id":"bad","method":"ping","params":null}"#,
        r#"{"id":"bad","method":7,"params":{}}"#,
    ] {
        talk.complaint(line, "bad").await?;
    }
    talk.is_alive().await?;
    Ok("eight such lines were answered with an error".to_owned())
}

pub(super) async fn invalid_words(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.complaint("check: not JSON", "").await?;
    let message = answer["message"].as_str().unwrap_or_default();
    demand(message.starts_with("Invalid request"), "the message begins otherwise", &answer)?;
    demand(message.contains("check: not JSON"), "the message does not show the line", &answer)?;
    talk.is_alive().await?;
    Ok("it does".to_owned())
}

pub(super) async fn envelope_id(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.complaint(r#"{"id":"echo-me","method":"ping"}"#, "echo-me").await?;
    demand(answer["id"] == "echo-me", "the id is left out", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn invalid_utf8(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    talk.say(b"{\"id\":\"u\",\"method\":\"\xff\xfe\",\"params\":{}}").await;
    let is_it = |event: &Value| event["type"] == "error";
    talk.until("an `error`", talk_limit(talk), is_it).await?;
    talk.is_alive().await?;
    Ok("it is".to_owned())
}

pub(super) async fn white_space(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let ping = |id: &str| format!(r#"{{"id":"{id}","method":"ping","params":{{}}}}"#);
    for (line, id) in [(format!("{}\r", ping("w1")), "w1"), (format!("\n\r\n   \n \t{}  ", ping("w2")), "w2")]
    {
        talk.say(line).await;
        let answer = talk.event_of(id, talk_limit(talk)).await?;
        demand(answer["type"] == "pong", "a ping between blanks is not answered", &answer)?;
    }
    Ok("they are".to_owned())
}

pub(super) async fn unknown_method(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.ask("checkNoSuchMethod", json!({})).await?;
    demand(answer["type"] == "error", "it is not answered with an error", &answer)?;
    let named = answer["message"].as_str().is_some_and(|message| message.contains("checkNoSuchMethod"));
    demand(named, "the message does not name it", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn stray_response(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    talk.say(r#"{"type":"hostResponse","callbackId":"check-nobody","ok":1}"#).await;
    talk.is_alive().await?;
    match talk.rest(suite.limits.quiet).await.first() {
        None => Ok("it is".to_owned()),
        Some(event) => Err(Trouble::shown("it said something", event)),
    }
}

pub(super) async fn long_line(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let padding = "x".repeat(LONG);
    let answer = talk.ask("ping", json!({ "padding": padding })).await?;
    demand(answer["type"] == "pong", "it is not served", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn deep_nesting(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    talk.say(format!(r#"{{"id":"deep","method":"ping","params":{{"deep":{deep}}}}}"#)).await;
    let is_it = |event: &Value| event["id"] == "deep" || (event["type"] == "error" && event["id"].is_null());
    let answer = talk.until("an answer", suite.limits.answer, is_it).await?;
    talk.is_alive().await?;
    Ok(format!("it was answered with `{}`", answer["type"].as_str().unwrap_or_default()))
}

pub(super) async fn flood(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let lines = suite.limits.garbage;
    let garbage: Vec<&str> = GARBAGE.iter().copied().cycle().take(lines).collect();
    for some in garbage.chunks(100) {
        talk.say(some.join("\n")).await;
    }
    let id = talk.send("ping", &json!({})).await;
    let (mut answered, deadline) = (0, Instant::now() + suite.limits.answer * 4);
    loop {
        match talk.next(deadline.saturating_duration_since(Instant::now())).await {
            Next::Event(event) if event["id"] == *id => break,
            Next::Event(event) if event["type"] == "error" => answered += 1,
            Next::Event(event) => return Err(Trouble::shown("something else was said", &event)),
            Next::Nothing => {
                return Err(Trouble::broken(format!("a ping after {lines} lines is not answered")));
            }
            Next::Closed => {
                return Err(Trouble::broken(format!("it did not survive {lines} lines of garbage")));
            }
        }
    }
    // Those that are served side by side may be answered after the ping.
    while answered < lines
        && let Next::Event(event) = talk.next(suite.limits.quiet).await
    {
        demand(event["type"] == "error", "something else was said", &event)?;
        answered += 1;
    }
    match answered == lines {
        true => Ok(format!("{lines} lines were answered")),
        false => Err(Trouble::broken(format!("{lines} lines had {answered} answers"))),
    }
}

fn talk_limit(talk: &Conversation) -> Duration {
    talk.limits().answer
}

/// The answer is an error that says this.
pub(super) fn refuses(answer: &Value, words: &str, what: &str) -> Result<(), Trouble> {
    let says = answer["message"].as_str().is_some_and(|message| message.contains(words));
    demand(
        answer["type"] == "error" && says,
        &format!("{} was not answered with an error that says `{words}`", shown(what)),
        answer,
    )
}
