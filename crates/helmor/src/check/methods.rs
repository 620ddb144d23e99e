//! The rules about requests that no agent is needed for.

use outrigger_wire::conformance::{Trouble, Verdict, demand};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::lines::refuses;
use super::suite::Suite;

pub(super) async fn parameters(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let cases = [
        ("sendMessage", json!({"prompt":"p","provider":"claude"}), "sessionId"),
        ("sendMessage", json!({"sessionId":"s","provider":"claude"}), "prompt"),
        ("sendMessage", json!({"sessionId":"s","prompt":7,"provider":"claude"}), "prompt"),
        ("stopSession", json!({"provider":"claude"}), "sessionId"),
        ("generateTitle", json!({}), "userMessage"),
        ("getContextUsage", json!({"sessionId":"s"}), "model"),
        ("userInputResponse", json!({"action":"submit"}), "userInputId"),
    ];
    let count = cases.len();
    for (method, params, name) in cases {
        let what = format!("{method} without {name}");
        let answer = talk.ask(method, params).await?;
        refuses(&answer, &format!("params.{name}"), &what)?;
    }
    Ok(format!("{count} requests were refused so"))
}

pub(super) async fn unknown_provider(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let cases = [
        ("sendMessage", json!({"sessionId":"s","prompt":"p","provider":"check-nobody"})),
        ("stopSession", json!({"sessionId":"s","provider":"check-nobody"})),
        ("listModels", json!({"provider":"check-nobody"})),
        ("listSlashCommands", json!({"provider":"check-nobody"})),
    ];
    for (method, params) in cases {
        let answer = talk.ask(method, params).await?;
        refuses(&answer, "check-nobody", method)?;
    }
    Ok("four requests were refused".to_owned())
}

pub(super) async fn one_end(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let params = json!({"sessionId":"check-one-end","prompt":"p","provider":"check-nobody"});
    let id = talk.send("sendMessage", &params).await;
    let end = talk.event_of(&id, suite.limits.answer).await?;
    demand(end["type"] == "error", "it does not end with an error", &end)?;
    let follows = |event: &Value| event["id"] == *id;
    match talk.until("nothing", suite.limits.quiet, follows).await {
        Ok(more) => Err(Trouble::shown("something follows its end", &more)),
        Err(_) => talk.is_alive().await.map(|()| "it has one".to_owned()),
    }
}

pub(super) async fn stop_unknown(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let params = json!({"sessionId":"check-nobody","provider":"claude"});
    let answer = talk.ask("stopSession", params).await?;
    let is_so = answer["type"] == "stopped" && answer["sessionId"] == "check-nobody";
    demand(is_so, "it is not answered with `stopped` and the session", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn steer_unknown(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let params = json!({"sessionId":"check-nobody","provider":"claude","prompt":"faster"});
    let answer = talk.ask("steerSession", params).await?;
    let is_so = answer["type"] == "steered" && answer["accepted"] == false;
    demand(is_so, "it is not answered with `steered` and `accepted:false`", &answer)?;
    demand(answer["reason"].is_string(), "it does not say why", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn permission_to_nobody(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = talk.send("permissionResponse", &json!({"permissionId":"check-nobody","behavior":"deny"})).await;
    talk.is_alive().await?;
    let answer = talk.event_of(&id, suite.limits.quiet).await;
    let answer = answer.map_err(|_| Trouble::broken("nothing is said about it"))?;
    demand(answer["type"] == "error", "it is answered with something else", &answer)?;
    Ok("it is".to_owned())
}

pub(super) async fn input_to_nobody(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let params = json!({"userInputId":"check-nobody","action":"cancel"});
    let answer = talk.ask("userInputResponse", params).await?;
    refuses(&answer, "check-nobody", "an answer to nobody")?;
    Ok("it is".to_owned())
}

pub(super) async fn update_config(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for params in [json!({"cursorApiKey":"check"}), json!({"cursorApiKey":null}), json!({})] {
        let answer = talk.ask("updateConfig", params).await?;
        demand(answer["type"] == "pong", "it is not answered with `pong`", &answer)?;
    }
    Ok("it is".to_owned())
}

pub(super) async fn error_codes(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let code = |answer: &Value, code: &str| {
        demand(answer["code"] == code, &format!("the code is not `{code}`"), answer)
    };
    code(&talk.ask("checkNoSuchMethod", json!({})).await?, "unknown_method")?;
    code(&talk.ask("generateTitle", json!({})).await?, "invalid_params")?;
    let nobody = json!({"userInputId":"check-nobody","action":"cancel"});
    code(&talk.ask("userInputResponse", nobody).await?, "unknown_waiter")?;
    Ok("three sorts of errors have theirs".to_owned())
}

pub(super) async fn order(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let pings = (0..1000).map(|number| format!(r#"{{"id":"p{number}","method":"ping","params":{{}}}}"#));
    talk.say(pings.collect::<Vec<_>>().join("\n")).await;
    for number in 0..1000 {
        let is_any = |event: &Value| event["id"].as_str().is_some_and(|id| id.starts_with('p'));
        let answer = talk.until("an answer to a ping", suite.limits.answer, is_any).await?;
        demand(answer["id"] == format!("p{number}"), &format!("this came as number {number}"), &answer)?;
    }
    Ok("a thousand are".to_owned())
}
