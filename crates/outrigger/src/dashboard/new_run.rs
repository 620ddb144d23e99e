//! A new run: who does it, what, where, and how long people have to answer.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::form::Fields;
use super::layout::{Here, Live, Shell, head, page};
use super::parts::{Icon, icon};
use super::problem::Problem;
use super::run::actions::actor;
use super::{Answer, sent, then, waiting};
use crate::daemon::App;
use crate::runs::approval::DefaultAnswer;
use crate::runs::request::ApprovalTerms;
use crate::runs::{BackendView, Health, NewRun};

/// How long people may have, in the words of the request; empty is for ever.
const TERMS: [(&str, &str); 5] =
    [("", "as configured"), ("10m", "10 minutes"), ("1h", "an hour"), ("24h", "a day"), ("168h", "a week")];

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    backend: Option<String>,
}

pub(super) async fn show(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Answer {
    let backends = app.runs.backends().await;
    sent(draw(&backends, asked.backend.as_deref(), waiting(&app).await))
}

pub(super) async fn submit(State(app): State<Arc<App>>, body: Bytes) -> Answer {
    let fields = Fields::read(&body)?;
    let backends = app.runs.backends().await;
    let new = read(&fields, &backends)?;
    let state = app.runs.submit(new, actor()).await?;
    then(&format!("/runs/{}", state.id))
}

/// The run that a form asks for. What is given to a backend that runs scripts is a script.
fn read(fields: &Fields, backends: &[BackendView]) -> Result<NewRun, Problem> {
    let what = fields.given("what").ok_or_else(|| Problem::field("there is nothing to do: say what"))?;
    let backend = fields.given("backend").map(str::to_owned);
    let scripts =
        backends.iter().any(|view| Some(&view.name) == backend.as_ref() && view.dialect == "mustard");
    let (script, task) = if scripts { (Some(what.to_owned()), None) } else { (None, Some(what.to_owned())) };
    let workspace = fields.given("root").map(|root| {
        let mode = if fields.text("mode") == "pass_through" { "pass_through" } else { "staged" };
        json!({ "root": root, "mode": mode })
    });
    let budget = fields.given("budget").map(|text| {
        let usd: f64 =
            text.parse().map_err(|_| Problem::field("the budget is a number of dollars, such as 0.50"))?;
        Ok::<_, Problem>(json!({ "max_budget_usd": usd }))
    });
    let retries = fields.given("retries").map(str::parse::<u32>).transpose();
    let new = NewRun {
        backend,
        title: fields.given("title").map(str::to_owned),
        task,
        script,
        workspace,
        config: budget.transpose()?,
        approvals: terms(fields),
        retries: retries.map_err(|_| Problem::field("`retries` is a small number"))?,
        ..NewRun::default()
    };
    // The same checks as for a request from elsewhere.
    let value = serde_json::to_value(&new).map_err(|error| Problem::field(error.to_string()))?;
    Ok(NewRun::from_value(value)?)
}

/// How long people have, if the form says.
pub(super) fn terms(fields: &Fields) -> Option<ApprovalTerms> {
    let within = fields.given("within").map(str::to_owned)?;
    let default = match fields.text("default") {
        "approve" => DefaultAnswer::Approve,
        _ => DefaultAnswer::Deny,
    };
    Some(ApprovalTerms { within: Some(within), default })
}

pub(super) fn draw(backends: &[BackendView], chosen: Option<&str>, waiting: u64) -> Markup {
    let shell = Shell { title: "New run", here: Here::Runs, waiting, live: Live::Still };
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/" { "Runs" } (icon(Icon::Right)) span { "New run" } }
            (head("New run", "Give an agent a task. Scripts with tools are easier in the playground.", html! { a.button href="/playground" { (icon(Icon::Playground)) "Playground" } }))
            form.card.stack.narrow method="post" action="/runs/new" data-live-form {
                label { "Backend" (backend_select(backends, chosen)) }
                label { "What is to be done"
                    textarea name="what" rows="6" required autofocus data-submit maxlength="1048576" placeholder="Fix the failing test in parser.rs" {}
                    span.hint { "For the backend " code { "mustard" } ": the JavaScript itself." }
                }
                label { "Title" input type="text" name="title" maxlength="120" placeholder="Its first line, if you give none"; }
                details.fold {
                    summary { "Where it works" }
                    div.cols {
                        label { "Folder" input.mono type="text" name="root" placeholder="/home/you/project" autocomplete="off";
                            span.hint { "None is an empty folder of its own." } }
                        label { "How" select name="mode" { option value="staged" { "in a copy; you get a patch" } option value="pass_through" { "in the folder itself" } } }
                    }
                }
                details.fold {
                    summary { "Limits and people" }
                    div.cols {
                        label { "Budget in dollars" input type="text" inputmode="decimal" name="budget" placeholder="none"; }
                        label { "Tries after a failure" input type="number" name="retries" min="0" max="20" placeholder="0"; }
                        label { "People have" select name="within" { @for (value, words) in TERMS { option value=(value) { (words) } } } }
                        label { "Then it is" select name="default" { option value="deny" { "denied" } option value="approve" { "approved" } } }
                    }
                }
                div.row.end { a.button href="/" { "Back" } button.primary { (icon(Icon::Play)) "Start" } }
            }
        },
    )
}

/// All backends, those that are ready first.
pub(super) fn backend_select(backends: &[BackendView], chosen: Option<&str>) -> Markup {
    let (ready, others): (Vec<_>, Vec<_>) = backends.iter().partition(|view| view.health == Health::Ready);
    html! {
        select name="backend" {
            @for view in ready { option value=(view.name) selected[chosen == Some(view.name.as_str())] { (view.name) " — " (view.about) } }
            @for view in others {
                option value=(view.name) selected[chosen == Some(view.name.as_str())] { (view.name) " (" (health_word(&view.health)) ")" }
            }
        }
    }
}

fn health_word(health: &Health) -> &'static str {
    match health {
        Health::Ready => "ready",
        Health::Missing { .. } => "not here",
        Health::Failing { .. } => "failing",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::backends;
    use super::*;

    fn new(form: &str) -> Result<NewRun, String> {
        read(&Fields::read(form.as_bytes()).unwrap(), &backends()).map_err(|problem| problem.message)
    }

    #[test]
    fn a_task_is_for_an_agent_and_the_same_words_are_a_script_for_mustard() {
        let agent = new("backend=claude&what=fix+it&root=/tmp/x&mode=staged&budget=0.5&within=24h&default=approve&retries=2").unwrap();
        assert_eq!((agent.task.as_deref(), agent.script), (Some("fix it"), None));
        assert_eq!(agent.workspace, Some(json!({"root": "/tmp/x", "mode": "staged"})));
        assert_eq!(agent.config, Some(json!({"max_budget_usd": 0.5})));
        assert_eq!(agent.retries, Some(2));
        let terms = ApprovalTerms { within: Some("24h".to_owned()), default: DefaultAnswer::Approve };
        assert_eq!(agent.approvals, Some(terms));
        let script = new("backend=mustard&what=1%2B1").unwrap();
        assert_eq!((script.script.as_deref(), script.task), (Some("1+1"), None));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_sentence() {
        assert!(new("backend=claude&what=+").unwrap_err().contains("nothing to do"));
        assert!(new("what=x&budget=much").unwrap_err().contains("number of dollars"));
        assert!(new("what=x&retries=-1").unwrap_err().contains("small number"));
        assert!(new("what=x&retries=21").unwrap_err().contains("retries"));
    }
}
