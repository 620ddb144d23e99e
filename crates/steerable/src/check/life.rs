//! The rules about how a sidecar begins and ends.

use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_wire::conformance::{Trouble, Verdict, demand, shown};
use serde_json::{Value, json};

use super::conversation::{Conversation, left};
use super::suite::{Limits, Suite};
use crate::protocol::{Health, READY_MARKER};

/// The marker of a child that has already answered.
pub(super) async fn marker(talk: &mut Conversation, limits: Limits) -> Verdict {
    // Who writes it in pieces has not written it before the last one.
    let whole = |line: &str| {
        let rest = line.strip_prefix(READY_MARKER);
        rest.is_some_and(|rest| serde_json::from_str::<Value>(rest).is_ok())
    };
    let line = match talk.log_until(limits.quiet, whole).await {
        Some(line) => Some(line),
        None => talk.log_until(limits.quiet, |line| line.starts_with(READY_MARKER)).await,
    };
    let Some(line) = line else {
        return Err(Trouble::broken("there is no such line"));
    };
    match serde_json::from_str::<Health>(&line[READY_MARKER.len()..]) {
        Ok(_) => Ok("it is there".to_owned()),
        Err(error) => Err(Trouble::Broken {
            detail: format!("no health follows it: {error}"),
            evidence: Some(shown(&line)),
        }),
    }
}

pub(super) fn ready_first(talk: &Conversation, first: &Value) -> Verdict {
    if let Some(noise) = &talk.noise {
        return Err(Trouble::Broken {
            detail: "it is something else".to_owned(),
            evidence: Some(noise.clone()),
        });
    }
    demand(first["method"] == "lifecycle.ready", "it is something else", first)?;
    let params = &first["params"];
    let whole = params["version"].is_string()
        && params["protocolVersion"].is_string()
        && params["pid"].is_u64()
        && params["listenInfo"]["transport"] == "stdio";
    demand(whole, "version, protocolVersion, pid or listenInfo is missing", first)?;
    Ok("it is".to_owned())
}

/// Begins a stream that waits, so that there is something to end.
async fn waiting_stream(suite: &Suite<'_>, talk: &mut Conversation) -> Result<(), Trouble> {
    let server = suite.server.as_ref();
    let server =
        server.ok_or_else(|| Trouble::Unseen("no server could be started on the loopback".to_owned()))?;
    let answer = talk.ask("agent.chat.stream", server.stream("check-hang", "check-live")).await?;
    if answer["result"]["streamId"] != "check-live" {
        return Err(Trouble::Unseen("it has no streams".to_owned()));
    }
    talk.of_stream("check-live", suite.limits.stream).await.map(drop)
}

pub(super) async fn shutdown(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.greeted(&[]).await?;
    waiting_stream(suite, &mut talk).await?;
    let id = talk.send("system.shutdown", &Value::Null).await;
    let frames = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    let terminal = frames.iter().position(cancelled);
    let answer = frames.iter().position(|frame| frame["id"] == id && frame.get("error").is_none());
    let all = json!(frames);
    demand(answer.is_some(), "the shutdown is not answered with a success", &all)?;
    demand(terminal.is_some(), "the live stream did not end with stream.done, cancelled:true", &all)?;
    demand(terminal < answer, "the answer came before the end of the live stream", &all)?;
    goodbye(&frames, "normal")?;
    leaves(exit)
}

pub(super) async fn shutdown_now(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.greeted(&[]).await?;
    let id = talk.send("system.shutdown_now", &Value::Null).await;
    let frames = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    let answered = frames.iter().any(|frame| frame["id"] == id && frame.get("error").is_none());
    demand(answered, "it is not answered with a success", &json!(frames))?;
    goodbye(&frames, "normal")?;
    leaves(exit)
}

pub(super) async fn eof(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.greeted(&[]).await?;
    let waits = waiting_stream(suite, &mut talk).await.is_ok();
    talk.close_input();
    let frames = talk.rest(suite.limits.exit).await;
    suite.hear(&mut talk);
    let exit = talk.exit(suite.limits.exit).await;
    demand(!waits || frames.iter().any(cancelled), "the live stream has no end", &json!(frames))?;
    goodbye(&frames, "eof")?;
    leaves(exit)
}

pub(super) async fn sigterm(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, _) = suite.greeted(&[]).await?;
    let exit = talk.terminate(suite.limits.exit).await;
    let frames = talk.rest(suite.limits.quiet).await;
    suite.hear(&mut talk);
    goodbye(&frames, "normal")?;
    leaves(exit)
}

pub(super) async fn quiet_ready(suite: &mut Suite<'_>) -> Verdict {
    let (mut talk, first) = suite.greeted(&["--quiet-ready"]).await?;
    let line = talk.log_until(suite.limits.quiet, |line| line.starts_with(READY_MARKER)).await;
    suite.hear(&mut talk);
    if let Some(line) = line {
        return Err(Trouble::Broken {
            detail: "the marker is there".to_owned(),
            evidence: Some(shown(&line)),
        });
    }
    demand(first["method"] == "lifecycle.ready", "lifecycle.ready is left out too", &first)?;
    Ok("it does".to_owned())
}

pub(super) async fn bad_flag(suite: &mut Suite<'_>) -> Verdict {
    match suite.greeted(&["--check-no-such-flag"]).await {
        Ok(_) => Err(Trouble::broken("it started all the same")),
        Err(Trouble::Broken { detail, .. }) if detail.contains("exited with code 2") => {
            Ok("it does".to_owned())
        }
        Err(trouble) => Err(trouble),
    }
}

fn cancelled(frame: &Value) -> bool {
    let params = &frame["params"];
    frame["method"] == "stream.done" && params["streamId"] == "check-live" && params["cancelled"] == true
}

fn goodbye(frames: &[Value], reason: &str) -> Result<(), Trouble> {
    let last = frames.last().cloned().unwrap_or_default();
    demand(last["method"] == "lifecycle.shutdown", "the last frame is not lifecycle.shutdown", &last)?;
    demand(last["params"]["reason"] == reason, &format!("the reason is not `{reason}`"), &last)
}

fn leaves(exit: Option<ExitStatus>) -> Verdict {
    match exit {
        Some(ExitStatus::Code(0)) => Ok("it does".to_owned()),
        None => Err(Trouble::broken("it stayed")),
        other => Err(Trouble::broken(format!("it {}", left(other)))),
    }
}
