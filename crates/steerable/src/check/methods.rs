//! The rules about methods that answer at once: health, sessions, tools, settings.

use outrigger_wire::conformance::{Trouble, Verdict, demand};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::lines::expect;
use super::suite::Suite;

/// The result of a call that must have one.
async fn result(talk: &mut Conversation, method: &str, params: Value) -> Result<Value, Trouble> {
    let mut answer = talk.ask(method, params).await?;
    demand(answer.get("error").is_none(), &format!("`{method}` is answered with an error"), &answer)?;
    Ok(answer.get_mut("result").map(Value::take).unwrap_or_default())
}

pub(super) async fn ping(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let health = result(talk, "system.ping", Value::Null).await?;
    let words = ["ok", "degraded", "starting", "shutting_down"];
    let status = health["status"].as_str().is_some_and(|status| words.contains(&status));
    demand(status, "status is not ok, degraded, starting or shutting_down", &health)?;
    for name in ["version", "protocolVersion", "platform"] {
        demand(health[name].is_string(), &format!("{name} is not a string"), &health)?;
    }
    for name in ["uptimeMs", "pid", "loadedTools", "activeTraces"] {
        demand(health[name].is_u64(), &format!("{name} is not a whole number"), &health)?;
    }
    let version = health["protocolVersion"].as_str().unwrap_or_default();
    demand(version.split('.').next() == Some("0"), "the protocol is not 0.*", &health)?;
    Ok(format!("version {}, protocol {version}", health["version"].as_str().unwrap_or_default()))
}

pub(super) async fn session_create(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let session = result(talk, "agent.session.create", json!({"chatId":"check-chat"})).await?;
    for name in ["sessionId", "createdAt", "updatedAt"] {
        let there = session[name].as_str().is_some_and(|text| !text.is_empty());
        demand(there, &format!("{name} is not a text"), &session)?;
    }
    for (name, value) in [
        ("chatId", json!("check-chat")),
        ("userId", json!("local")),
        ("currentStage", json!("plan")),
        ("isActive", json!(true)),
    ] {
        demand(session[name] == value, &format!("{name} is not {value}"), &session)?;
    }
    let given = json!({"chatId":"check-chat","sessionId":"check-own","userId":"check-user","currentStage":"act","stageData":{"n":null}});
    let session = result(talk, "agent.session.create", given.clone()).await?;
    for name in ["sessionId", "userId"] {
        demand(session[name] == given[name], &format!("{name} is not what was given"), &session)?;
    }
    Ok("it does".to_owned())
}

pub(super) async fn session_resume(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let made = result(talk, "agent.session.create", json!({"chatId":"check-chat"})).await?;
    let resumed = result(talk, "agent.session.resume", json!({"sessionId":made["sessionId"]})).await?;
    demand(made == resumed, "it is not the session that was made", &resumed)?;
    let answer = talk.ask("agent.session.resume", json!({"sessionId":"check-nobody"})).await?;
    expect(&answer, -32004, "a session that is not there")?;
    Ok("it does".to_owned())
}

pub(super) async fn session_list(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let mut made = Vec::new();
    for _ in 0..3 {
        let session = result(talk, "agent.session.create", json!({"chatId":"check-list"})).await?;
        made.push(session["sessionId"].clone());
    }
    made.reverse();
    let listed = result(talk, "agent.session.list", json!({"chatId":"check-list"})).await?;
    let ids: Vec<Value> =
        listed.as_array().into_iter().flatten().map(|session| session["sessionId"].clone()).collect();
    demand(ids == made, "it is not the three sessions of that chat, the newest first", &listed)?;
    let nobodys = result(talk, "agent.session.list", json!({"userId":"check-nobody"})).await?;
    demand(nobodys == json!([]), "somebody without sessions has some", &nobodys)?;
    Ok("it does".to_owned())
}

pub(super) async fn tool_list(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let tools = result(talk, "tool.list", Value::Null).await?;
    let Some(all) = tools.as_array() else { return Err(Trouble::shown("it is not an array", &tools)) };
    for tool in all {
        let function = &tool["function"];
        let whole =
            tool["type"] == "function" && function["name"].is_string() && function["parameters"].is_object();
        demand(whole, "this is not {\"type\":\"function\",\"function\":{name, parameters}}", tool)?;
    }
    Ok(format!("{} tools", all.len()))
}

pub(super) async fn tool_invoke(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let made = result(talk, "tool.invoke", json!({"name":"check_no_such_tool","arguments":{}})).await?;
    demand(made["success"] == false, "success is not false", &made)?;
    demand(made["error"].is_string(), "error does not say what is wrong", &made)?;
    Ok("it is".to_owned())
}

pub(super) async fn config(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let before = result(talk, "config.get", Value::Null).await?;
    demand(before["logLevel"].is_string(), "logLevel is not a string", &before)?;
    demand(before["gracePeriodSeconds"].is_number(), "gracePeriodSeconds is not a number", &before)?;
    for level in [&json!("ERROR"), &before["logLevel"]] {
        result(talk, "config.set", json!({"logLevel":level})).await?;
        let after = result(talk, "config.get", Value::Null).await?;
        demand(after["logLevel"] == *level, "what was set is not there", &after)?;
    }
    Ok("it does".to_owned())
}

pub(super) async fn config_checked(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let before = result(talk, "config.get", Value::Null).await?;
    for wrong in [
        json!({"logLevel":"LOUD"}),
        json!({"logLevel":"ERROR","check_no_such_key":1}),
        json!({"logLevel":"ERROR","gracePeriodSeconds":"soon"}),
    ] {
        let answer = talk.ask("config.set", wrong.clone()).await?;
        expect(&answer, -32602, &wrong.to_string())?;
    }
    let after = result(talk, "config.get", Value::Null).await?;
    demand(before == after, "something was set all the same", &after)?;
    Ok("it does".to_owned())
}

pub(super) async fn params_checked(_: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    for (method, params) in [
        ("agent.session.create", json!({})),
        ("agent.session.create", json!([])),
        ("agent.session.resume", json!({})),
        ("tool.invoke", json!({})),
        ("trace.fetch", json!({})),
        ("agent.chat.cancel", json!({})),
    ] {
        let answer = talk.ask(method, params.clone()).await?;
        expect(&answer, -32602, &format!("{method} {params}"))?;
    }
    Ok("six such calls were answered so".to_owned())
}
