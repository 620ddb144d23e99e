//! What the buttons of a run do. Each is a form that leads back to a page.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use serde_json::Value;

use super::super::form::Fields;
use super::super::problem::Problem;
use super::super::{Answer, then};
use crate::daemon::App;
use crate::engine::Seq;
use crate::runs::approval::{self, ApprovalId, Choice};
use crate::runs::{Actor, RunId};

/// How whoever uses the dashboard is called.
pub(in super::super) fn actor() -> Actor {
    Actor::new("dashboard")
}

pub(in super::super) async fn answer(
    State(app): State<Arc<App>>,
    Path((id, approval)): Path<(String, String)>,
    body: Bytes,
) -> Answer {
    let id = RunId::parse(&id)?;
    let fields = Fields::read(&body)?;
    let given = read_answer(&fields)?;
    app.runs.answer(&id, &ApprovalId(approval), given, actor()).await?;
    then(&fields.back(&format!("/runs/{id}")))
}

pub(in super::super) async fn act(
    State(app): State<Arc<App>>,
    Path((id, action)): Path<(String, String)>,
    body: Bytes,
) -> Answer {
    let id = RunId::parse(&id)?;
    let fields = Fields::read(&body)?;
    let runs = &app.runs;
    let same = fields.back(&format!("/runs/{id}"));
    match action.as_str() {
        "cancel" => {
            let why = fields.given("why").unwrap_or("somebody cancelled it on the dashboard");
            runs.cancel(&id, why.to_owned(), actor()).await?;
            then(&same)
        }
        "steer" => {
            let text = fields.given("text").ok_or_else(|| Problem::field("there is nothing to say"))?;
            runs.steer(&id, text.to_owned(), actor()).await?;
            then(&same)
        }
        "resume" => then(&format!("/runs/{}", runs.resume(&id, actor()).await?.id)),
        "replay" => then(&format!("/runs/{}", runs.replay(&id, actor()).await?.id)),
        "fork" => {
            let at = fields.given("at").map(str::parse).transpose();
            let at = at.map_err(|_| Problem::field("`at` is the number of a record"))?;
            then(&format!("/runs/{}", runs.fork(&id, at.map(Seq), actor()).await?.id))
        }
        "forget" => {
            runs.forget(&id).await?;
            then("/")
        }
        _ => Err(Problem::missing("such button")),
    }
}

/// The answer that a form gives.
fn read_answer(fields: &Fields) -> Result<approval::Answer, Problem> {
    let reason = fields.given("reason").map(str::to_owned);
    let plain = |choice| Ok(approval::Answer { reason: reason.clone(), ..approval::Answer::plain(choice) });
    match fields.text("choice") {
        "approve" => Ok(approval::Answer::plain(Choice::Approve)),
        "approve_always" => Ok(approval::Answer::plain(Choice::ApproveAlways)),
        "deny" => plain(Choice::Deny),
        "edit" => {
            let text = fields.text("arguments");
            let arguments = serde_json::from_str(text)
                .map_err(|error| Problem::field(format!("the arguments are not JSON: {error}")))?;
            Ok(approval::Answer { arguments: Some(arguments), ..approval::Answer::plain(Choice::Edit) })
        }
        "answer" => {
            let text = fields.text("value").trim();
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            Ok(approval::Answer { value: Some(value), ..approval::Answer::plain(Choice::Answer) })
        }
        other => {
            Err(Problem::field(format!("`{}` is not something that can be said", crate::say::short(other))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(form: &str) -> Result<approval::Answer, String> {
        read_answer(&Fields::read(form.as_bytes()).unwrap()).map_err(|problem| problem.message)
    }

    #[test]
    fn every_choice_of_the_card_is_an_answer() {
        let plain = approval::Answer::plain;
        assert_eq!(read("choice=approve&reason=ignored"), Ok(plain(Choice::Approve)));
        let denied = approval::Answer { reason: Some("too late".to_owned()), ..plain(Choice::Deny) };
        assert_eq!(read("choice=deny&reason=+too+late+"), Ok(denied));
        let edited = approval::Answer { arguments: Some(json!(["b", 1])), ..plain(Choice::Edit) };
        assert_eq!(read("choice=edit&arguments=%5B%22b%22%2C1%5D"), Ok(edited));
        let answered = approval::Answer { value: Some(json!({"ok": true})), ..plain(Choice::Answer) };
        assert_eq!(read("choice=answer&value=%7B%22ok%22%3Atrue%7D"), Ok(answered));
        let text = approval::Answer { value: Some(json!("yes, do")), ..plain(Choice::Answer) };
        assert_eq!(read("choice=answer&value=yes%2C+do"), Ok(text));
    }

    #[test]
    fn arguments_that_are_not_json_and_words_that_mean_nothing_are_refused() {
        assert!(read("choice=edit&arguments=%5B").unwrap_err().contains("not JSON"));
        assert!(read("choice=").unwrap_err().contains("is not something that can be said"));
        assert!(read("").is_err());
    }
}
