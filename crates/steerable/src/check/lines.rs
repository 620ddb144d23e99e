//! The rules about lines: what is a request, what is answered, and that nothing on standard input ends a sidecar.

use outrigger_wire::conformance::{Trouble, Verdict, demand, shown};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::suite::Suite;

/// The longest line that must be served.
const LINE: usize = 16 << 20;

pub(super) async fn id_echo(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let ids = [json!("text"), json!(-7), json!(1.5), json!(true), json!({"a":[1]}), json!(null)];
    for id in &ids {
        let line = json!({"jsonrpc":"2.0","id":id,"method":"system.ping"}).to_string();
        let answer = talk.exchange(line, id.clone()).await?;
        demand(answer.get("result").is_some(), "a ping with this id is not answered with a result", &answer)?;
    }
    Ok(format!("{} sorts of ids come back", ids.len()))
}

pub(super) async fn explicit_null(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.ask("agent.chat.cancel", json!({"streamId":"nobody"})).await?;
    demand(answer.get("error").is_none(), "a cancel of a stream that never was is an error", &answer)?;
    demand(answer.get("result") == Some(&Value::Null), "there is no \"result\":null", &answer)?;
    let refused = talk.exchange("{", Value::Null).await?;
    demand(refused.get("id") == Some(&Value::Null), "there is no \"id\":null", &refused)?;
    Ok("both are there".to_owned())
}

pub(super) async fn parse_error(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for line in ["{\"jsonrpc\":", "hello", "{} {}", "{\"id\":1,\"method\":\"system.ping\",\"params\":NaN}"] {
        let answer = talk.exchange(line, Value::Null).await?;
        expect(&answer, -32700, line)?;
    }
    talk.is_alive().await?;
    Ok("four such lines were answered so".to_owned())
}

pub(super) async fn invalid_request(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for line in ["7", "\"text\"", "null", "true", "[]"] {
        let answer = talk.exchange(line, Value::Null).await?;
        expect(&answer, -32600, line)?;
    }
    for (at, line) in
        [r#"{"id":"ID"}"#, r#"{"id":"ID","method":""}"#, r#"{"id":"ID","method":7}"#].iter().enumerate()
    {
        let id = format!("invalid-{at}");
        let line = line.replace("ID", &id);
        let answer = talk.exchange(&line, id.into()).await?;
        expect(&answer, -32600, &line)?;
    }
    talk.is_alive().await?;
    Ok("eight such lines were answered so".to_owned())
}

pub(super) async fn jsonrpc_member(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.exchange(r#"{"id":"no-version","method":"system.ping"}"#, "no-version".into()).await?;
    demand(answer.get("result").is_some(), "a request without the member is not served", &answer)?;
    let line = r#"{"jsonrpc":"1.0","id":"old-version","method":"system.ping"}"#;
    let answer = talk.exchange(line, "old-version".into()).await?;
    expect(&answer, -32600, line)?;
    Ok("both are so".to_owned())
}

pub(super) async fn unknown_method(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.ask("check.no_such_method", json!({})).await?;
    expect(&answer, -32601, "check.no_such_method")?;
    let named = answer["error"]["data"]["method"] == "check.no_such_method";
    demand(named, "data.method does not name it", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn error_kinds(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let kind = |answer: &Value, kind: &str| {
        demand(answer["error"]["kind"] == kind, &format!("the kind is not `{kind}`"), answer)
    };
    kind(&talk.exchange("nonsense", Value::Null).await?, "parse")?;
    kind(&talk.exchange("7", Value::Null).await?, "invalid_request")?;
    kind(&talk.ask("check.no_such_method", json!({})).await?, "method_not_found")?;
    kind(&talk.ask("agent.session.resume", json!({})).await?, "invalid_params")?;
    kind(&talk.ask("agent.session.resume", json!({"sessionId":"check-nobody"})).await?, "invalid_request")?;
    Ok("five sorts of errors have theirs".to_owned())
}

pub(super) async fn batch(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let line = r#"[{"jsonrpc":"2.0","id":"b1","method":"system.ping"},{"jsonrpc":"2.0","method":"system.ping"},7,{"jsonrpc":"2.0","id":"b2","method":"check.no_such_method"}]"#;
    talk.say(line).await;
    let answers = talk.until("an array of answers", suite.limits.answer, Value::is_array).await?;
    let all = answers.as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |id: Value| all.iter().find(|answer| answer.get("id").unwrap_or(&Value::Null) == &id);
    demand(
        all.len() == 3,
        "there are not three answers to two requests, a notification and a number",
        &answers,
    )?;
    demand(
        of("b1".into()).is_some_and(|answer| answer.get("result").is_some()),
        "the ping is not answered",
        &answers,
    )?;
    for (id, code) in [(json!("b2"), -32601), (Value::Null, -32600)] {
        let right = of(id).is_some_and(|answer| answer["error"]["code"] == code);
        demand(right, &format!("no answer has the code {code}"), &answers)?;
    }
    talk.say(r#"[{"jsonrpc":"2.0","method":"system.ping"}]"#).await;
    talk.is_alive().await?;
    Ok("it is".to_owned())
}

pub(super) async fn notification(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    talk.say(r#"{"jsonrpc":"2.0","method":"system.shutdown"}"#).await;
    talk.say(r#"{"jsonrpc":"2.0","method":"check.no_such_method"}"#).await;
    talk.is_alive().await?;
    let unasked = talk.rest(suite.limits.quiet).await;
    match unasked.first() {
        None => Ok("two of them were passed over".to_owned()),
        Some(frame) => Err(Trouble::shown("it said something", frame)),
    }
}

pub(super) async fn white_space(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"system.ping"}}"#);
    for (line, id) in [(format!("{}\r", ping("w1")), "w1"), (format!("\n\r\n   \n \t{}  ", ping("w2")), "w2")]
    {
        let answer = talk.exchange(line, id.into()).await?;
        demand(answer.get("result").is_some(), "a ping between blanks is not answered", &answer)?;
    }
    Ok("they are".to_owned())
}

pub(super) async fn invalid_utf8(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let answer = talk.exchange(b"{\"id\":1,\"method\":\"\xff\xfe\"}", Value::Null).await?;
    expect(&answer, -32700, "a line that is not UTF-8")?;
    talk.is_alive().await?;
    Ok("it is".to_owned())
}

pub(super) async fn deep_nesting(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let depth = 100_000;
    let line = format!(
        r#"{{"id":"deep","method":"system.ping","params":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    talk.say(line).await;
    let is_it =
        |frame: &Value| frame.get("method").is_none() && (frame["id"] == "deep" || frame["id"].is_null());
    let answer = talk.until("an answer", suite.limits.answer, is_it).await?;
    let code = &answer["error"]["code"];
    demand(*code == -32600 || *code == -32700, "it is not an error", &answer)?;
    talk.is_alive().await?;
    Ok(format!("it was answered with {code}"))
}

pub(super) async fn long_line(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let around = r#"{"jsonrpc":"2.0","id":"long","method":"system.ping","params":""}"#.len();
    let line = |length: usize| {
        let padding = "x".repeat(length - around);
        format!(r#"{{"jsonrpc":"2.0","id":"long","method":"system.ping","params":"{padding}"}}"#)
    };
    let answer = talk.exchange(line(LINE), "long".into()).await?;
    demand(answer.get("result").is_some(), "a line of 16 MiB is not served", &answer)?;
    talk.say(line(LINE + 1)).await;
    let is_it =
        |frame: &Value| frame.get("method").is_none() && (frame["id"] == "long" || frame["id"].is_null());
    let answer = talk.until("an answer", suite.limits.answer, is_it).await?;
    expect(&answer, -32600, "a line of one byte more")?;
    talk.is_alive().await?;
    Ok("both are so".to_owned())
}

pub(super) async fn order(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let pings =
        (0..1000).map(|number| format!(r#"{{"jsonrpc":"2.0","id":"p{number}","method":"system.ping"}}"#));
    talk.say(pings.collect::<Vec<_>>().join("\n")).await;
    for number in 0..1000 {
        let is_any = |frame: &Value| frame["id"].as_str().is_some_and(|id| id.starts_with('p'));
        let answer = talk.until("an answer to a ping", suite.limits.answer, is_any).await?;
        demand(answer["id"] == format!("p{number}"), &format!("this came as number {number}"), &answer)?;
    }
    Ok("they are".to_owned())
}

/// The answer is this error.
pub(super) fn expect(answer: &Value, code: i64, to: &str) -> Result<(), Trouble> {
    let message = format!("{} was not answered with {code}", shown(to));
    demand(answer["error"]["code"] == code && answer["error"]["message"].is_string(), &message, answer)
}
