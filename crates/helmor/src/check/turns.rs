//! The rules about turns, tried with a provider that somebody named, or with a script.

use std::time::Duration;

use outrigger_wire::conformance::{Trouble, Verdict, demand};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::suite::Suite;

impl Suite<'_> {
    /// The parameters of a turn.
    fn turn(&self, session: &str, prompt: &str) -> Value {
        json!({"sessionId":session,"prompt":prompt,"provider":self.turns.provider.to_string()})
    }

    /// The prompt of a turn that lasts, if there is one and its provider works here.
    fn long(&self) -> Result<String, Trouble> {
        match &self.works {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(Trouble::Unseen(why.clone())),
            None => return Err(Trouble::Unseen("no turn was tried".to_owned())),
        }
        let none = || Trouble::Unseen("no prompt is known whose turn lasts".to_owned());
        self.turns.long.clone().ok_or_else(none)
    }

    /// Begins a turn that lasts, and waits until it says something.
    pub(super) async fn lasting(&self, talk: &mut Conversation, session: &str) -> Result<String, Trouble> {
        let params = self.turn(session, &self.long()?);
        let id = talk.send("sendMessage", &params).await;
        let first = talk.event_of(&id, self.limits.stream).await?;
        match is_end(&first) {
            true => Err(Trouble::Unseen(format!("the turn that should last ends at once: {first}"))),
            false => Ok(id),
        }
    }

    async fn stop(&self, talk: &mut Conversation, session: &str) -> String {
        let params = json!({"sessionId":session,"provider":self.turns.provider.to_string()});
        talk.send("stopSession", &params).await
    }
}

/// One whole turn. What it shows about the provider counts for the other rules.
pub(super) async fn whole(suite: &mut Suite<'_>, talk: &mut Conversation) -> Verdict {
    let params = suite.turn("check-short", &suite.turns.short.clone());
    let id = talk.send("sendMessage", &params).await;
    let (mut said, mut within) = (0, suite.limits.stream);
    let end = loop {
        let event = talk.event_of(&id, within).await?;
        if is_end(&event) {
            break event;
        }
        said += 1;
        within = suite.limits.stream;
    };
    if end["type"] == "error" {
        let provider = &suite.turns.provider;
        let why = format!("`{provider}` does not work here: {}", end["message"].as_str().unwrap_or_default());
        suite.works = Some(Err(why.clone()));
        return Err(Trouble::Unseen(why));
    }
    suite.works = Some(Ok(()));
    nothing_follows(talk, &id, suite.limits.quiet).await?;
    demand(end["type"] == "end", "it does not end with `end`", &end)?;
    Ok(format!("{said} events and one end"))
}

pub(super) async fn heartbeat(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let within = suite.limits.heartbeat;
    let within = within.ok_or_else(|| Trouble::Unseen("it was not to be waited for".to_owned()))?;
    let id = suite.lasting(talk, "check-heartbeat").await?;
    let is_it = |event: &Value| event["id"] == *id && event["type"] == "heartbeat";
    let came = talk.until("a heartbeat", within, is_it).await;
    suite.stop(talk, "check-heartbeat").await;
    ended(suite, talk, &id).await?;
    came.map(|_| "one came".to_owned())
}

pub(super) async fn stop(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = suite.lasting(talk, "check-stop").await?;
    let stop = suite.stop(talk, "check-stop").await;
    let answer = talk.event_of(&stop, suite.limits.answer).await?;
    demand(answer["type"] == "stopped", "it is not answered with `stopped`", &answer)?;
    let end = ended(suite, talk, &id).await?;
    demand(end["type"] == "aborted", "the stream does not end with `aborted`", &end)?;
    nothing_follows(talk, &id, suite.limits.quiet).await?;
    Ok("it does".to_owned())
}

pub(super) async fn stop_order(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = suite.lasting(talk, "check-order").await?;
    let stop = suite.stop(talk, "check-order").await;
    let is_either = |event: &Value| event["id"] == *stop || (event["id"] == *id && is_end(event));
    let first = talk.until("`aborted`", suite.limits.answer, is_either).await?;
    demand(first["type"] == "aborted", "`stopped` comes before it", &first)?;
    talk.event_of(&stop, suite.limits.answer).await?;
    Ok("it is".to_owned())
}

pub(super) async fn busy(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = suite.lasting(talk, "check-busy").await?;
    let second = suite.turn("check-busy", &suite.turns.short);
    let answer = talk.ask("sendMessage", second).await;
    let alive = talk.is_alive().await;
    suite.stop(talk, "check-busy").await;
    let end = ended(suite, talk, &id).await?;
    alive?;
    let answer = answer?;
    let refused = answer["type"] == "error"
        && (answer["code"] == "session_busy"
            || answer["message"].as_str().is_some_and(|message| message.contains("session_busy")));
    demand(refused, "the second turn is not refused with `session_busy`", &answer)?;
    demand(end["type"] == "aborted", "the first turn did not go on until it was stopped", &end)?;
    Ok("it is".to_owned())
}

pub(super) async fn id_in_flight(suite: &Suite<'_>, talk: &mut Conversation) -> Verdict {
    let id = suite.lasting(talk, "check-id").await?;
    talk.say(json!({"id":id,"method":"checkNoSuchMethod","params":{}}).to_string()).await;
    let is_it = |event: &Value| event["type"] == "error" && (event["id"].is_null() || event["id"] == *id);
    let answer = talk.until("an `error`", suite.limits.answer, is_it).await;
    suite.stop(talk, "check-id").await;
    let answer = answer?;
    demand(
        answer["id"].is_null(),
        "the error has the id, and a host takes it for the stream's end",
        &answer,
    )?;
    ended(suite, talk, &id).await?;
    Ok("it is answered without the id".to_owned())
}

/// Hears a stream to its end, whatever it says before.
pub(super) async fn ended(suite: &Suite<'_>, talk: &mut Conversation, id: &str) -> Result<Value, Trouble> {
    let (deadline, mut rest) = (Instant::now() + suite.limits.answer, suite.limits.answer);
    loop {
        let event = talk.event_of(id, rest).await?;
        if is_end(&event) {
            return Ok(event);
        }
        rest = deadline.saturating_duration_since(Instant::now());
    }
}

async fn nothing_follows(talk: &mut Conversation, id: &str, quiet: Duration) -> Result<(), Trouble> {
    match talk.until("nothing", quiet, |event| event["id"] == *id).await {
        Ok(more) => Err(Trouble::shown("something follows its end", &more)),
        Err(_) => Ok(()),
    }
}

fn is_end(event: &Value) -> bool {
    matches!(event["type"].as_str(), Some("end" | "aborted" | "error"))
        && event["willRetry"] != true
        && event["will_retry"] != true
}
