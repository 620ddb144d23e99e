//! The rules about how a sidecar ends.

use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_wire::conformance::{Trouble, Verdict, demand};
use serde_json::{Value, json};

use super::conversation::{Conversation, left};
use super::suite::Suite;

pub(super) async fn shutdown(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    let id = talk.send("shutdown", &json!({})).await;
    let events = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    let answered = events.iter().any(|event| event["id"] == *id && event["type"] == "pong");
    demand(answered, "it is not answered with `pong`", &json!(events))?;
    leaves(exit)
}

pub(super) async fn shutdown_ends_streams(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    let stream = suite.lasting(&mut talk, "check-shutdown").await?;
    let id = talk.send("shutdown", &json!({})).await;
    let events = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    let ends: Vec<&Value> = ends_of(&events, &stream);
    demand(ends.len() == 1 && ends[0]["type"] == "aborted", "it has not one end, `aborted`", &json!(ends))?;
    let answered = events.iter().position(|event| event["id"] == *id && event["type"] == "pong");
    let ended = events.iter().position(|event| event["id"] == *stream && event["type"] == "aborted");
    demand(answered.is_some() && ended < answered, "`pong` is not behind it", &json!(events))?;
    leaves(exit)
}

pub(super) async fn eof(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    talk.is_alive().await?;
    closed(suite, &mut talk).await
}

pub(super) async fn eof_in_a_turn(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    let stream = suite.lasting(&mut talk, "check-eof").await?;
    talk.close_input();
    let events = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    leaves(exit)?;
    let ends = ends_of(&events, &stream);
    demand(
        ends.len() == 1 && ends[0]["type"] == "aborted",
        "the turn has not one end, `aborted`",
        &json!(ends),
    )?;
    Ok("it does".to_owned())
}

pub(super) async fn eof_in_a_line(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    talk.say(r#"{"id":"half","method":"pi"#).await;
    closed(suite, &mut talk).await
}

pub(super) async fn sigterm(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.ready().await?;
    let exit = talk.terminate(suite.limits.exit).await;
    suite.hear(&mut talk);
    match exit {
        Some(ExitStatus::Signal(9)) | None => Err(Trouble::broken("it stayed and was killed")),
        Some(_) => Ok(format!("it {}", left(exit))),
    }
}

async fn closed(suite: &mut Suite<'_>, talk: &mut Conversation) -> Verdict {
    talk.close_input();
    talk.rest(suite.limits.exit).await;
    suite.hear(talk);
    leaves(talk.exit(suite.limits.exit).await)
}

fn ends_of<'e>(events: &'e [Value], id: &str) -> Vec<&'e Value> {
    let is_end = |event: &&Value| matches!(event["type"].as_str(), Some("end" | "aborted" | "error"));
    events.iter().filter(|event| event["id"] == *id).filter(is_end).collect()
}

fn leaves(exit: Option<ExitStatus>) -> Verdict {
    match exit {
        Some(ExitStatus::Code(0)) => Ok("it does".to_owned()),
        None => Err(Trouble::broken("it stayed")),
        other => Err(Trouble::broken(format!("it {}", left(other)))),
    }
}
