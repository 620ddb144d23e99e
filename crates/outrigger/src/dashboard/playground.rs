//! The playground: JavaScript, what it may call, and the run that comes of it, step by step, on one page.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::form::Fields;
use super::layout::{Here, Live, Shell, empty, head, page};
use super::parts::json::viewer;
use super::parts::{Icon, bytes, icon, phase_badge};
use super::problem::Problem;
use super::run::actions::actor;
use super::run::page::approval_cards;
use super::run::stories::Stories;
use super::run::story::Story;
use super::run::talk::bubbles;
use super::run::timeline::timeline;
use super::runs::duration;
use super::{Answer, sent, then, waiting};
use crate::daemon::App;
use crate::runs::request::ToolChoice;
use crate::runs::state::Moment;
use crate::runs::{NewRun, Phase, RunId, RunState};

/// Names that a person answers, in one form.
const MOST_PEOPLE: usize = 32;

/// A script to begin with.
struct Example {
    key: &'static str,
    name: &'static str,
    about: &'static str,
    script: &'static str,
    people: &'static str,
    inputs: &'static str,
    tools: &'static [&'static str],
}

const EXAMPLES: [Example; 4] = [
    Example {
        key: "approval",
        name: "Wait for a person",
        about: "Stops at a call that you answer",
        script: "// Deploy when a person agrees.\n//\n// The call to approve() stops the script. It becomes a snapshot of a few kilobytes\n// and costs nothing until somebody answers, even if the daemon is restarted.\nconst tests = { passed: 128, failed: 0 };\nprint(`tests: ${tests.passed} passed, ${tests.failed} failed`);\n\nconst who = approve(\"deploy main to production\", tests);\n\n`deployed, approved by ${who}`\n",
        people: "approve",
        inputs: "",
        tools: &["print"],
    },
    Example {
        key: "hello",
        name: "Hello",
        about: "Inputs, a tool and a result",
        script: "// `name` comes from the inputs; the last expression is the result.\nprint(`hello, ${name}`);\n({ greeted: name, letters: name.length })\n",
        people: "",
        inputs: "{ \"name\": \"Ada\" }",
        tools: &["print"],
    },
    Example {
        key: "loop",
        name: "A conversation",
        about: "Asks you again and again",
        script: "// Each question is its own suspension: look at the timeline.\nconst answers = [];\nfor (const question of [\"name\", \"colour\", \"reason\"]) {\n  answers.push(ask(question));\n}\nanswers.join(\" · \")\n",
        people: "ask",
        inputs: "",
        tools: &[],
    },
    Example {
        key: "parallel",
        name: "Two calls at once",
        about: "Promise.all over two people",
        script: "// Both calls wait at the same time. Answer them in any order.\nconst [legal, security] = await Promise.all([\n  review(\"legal\"),\n  review(\"security\"),\n]);\n({ legal, security })\n",
        people: "review",
        inputs: "",
        tools: &[],
    },
];

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    /// The run that is shown.
    #[serde(default)]
    run: Option<String>,
    /// A run whose script is put into the editor.
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    example: Option<String>,
}

/// What the page shows.
pub(super) struct PlaygroundPage {
    pub(super) draft: Draft,
    pub(super) tools: Vec<(String, String)>,
    pub(super) run: Option<(RunState, Arc<Story>)>,
    pub(super) waiting: u64,
    pub(super) now: Moment,
}

/// What is in the form.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) script: String,
    pub(super) inputs: String,
    /// Names that a person answers.
    pub(super) people: String,
    /// Tools that may be called, and whether a person must agree.
    pub(super) tools: BTreeMap<String, Leave>,
    pub(super) step: bool,
}

/// How a tool may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Freely,
    WhenAgreed,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(stories): Extension<Stories>,
    Query(asked): Query<Asked>,
) -> Answer {
    let run = match asked.run.as_deref() {
        Some(id) => {
            let id = RunId::parse(id)?;
            let state = app.runs.show(&id).await?;
            let story = stories.of(&app.runs, &state).await?;
            Some((state, story))
        }
        None => None,
    };
    let from = match (&run, asked.from.as_deref()) {
        (Some((state, _)), _) => Some(state.id.clone()),
        (None, Some(id)) => Some(RunId::parse(id)?),
        (None, None) => None,
    };
    let draft = match from {
        Some(id) => Draft::of_request(&app.runs.request(&id).await?),
        None => Draft::of_example(asked.example.as_deref().unwrap_or(EXAMPLES[0].key)),
    };
    let (tools, waiting) = (app.runs.tools(), waiting(&app).await);
    sent(draw(&PlaygroundPage { draft, tools, run, waiting, now: Moment::now() }))
}

pub(super) async fn submit(State(app): State<Arc<App>>, body: Bytes) -> Answer {
    let new = read(&Fields::read(&body)?)?;
    let state = app.runs.submit(new, actor()).await?;
    then(&format!("/playground?run={}", state.id))
}

fn read(fields: &Fields) -> Result<NewRun, Problem> {
    let script = fields.text("script");
    if script.trim().is_empty() {
        return Err(Problem::field("the script is empty"));
    }
    let inputs = match fields.given("inputs") {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(inputs)) => inputs,
            Ok(_) => return Err(Problem::field("the inputs are a JSON object: {\"name\": \"Ada\"}")),
            Err(error) => return Err(Problem::field(format!("the inputs are not JSON: {error}"))),
        },
    };
    let mut tools = BTreeMap::new();
    for (name, leave) in fields.under("tool:") {
        let choice = match leave {
            "call" => ToolChoice::Tool(name.to_owned()),
            "ask" => ToolChoice::Approved(name.to_owned()),
            _ => continue,
        };
        tools.insert(name.to_owned(), choice);
    }
    let people = fields.text("people").split([' ', ',', '\n', '\t']).filter(|name| !name.is_empty());
    for name in people.take(MOST_PEOPLE) {
        tools.insert(name.to_owned(), ToolChoice::Person);
    }
    let new = NewRun {
        backend: Some("mustard".to_owned()),
        script: Some(script.to_owned()),
        title: fields.given("title").map(str::to_owned).or_else(|| title(script)),
        inputs,
        tools,
        step: fields.given("step").is_some(),
        ..NewRun::default()
    };
    let value = serde_json::to_value(&new).map_err(|error| Problem::field(error.to_string()))?;
    Ok(NewRun::from_value(value)?)
}

/// The first line of a script that says something.
fn title(script: &str) -> Option<String> {
    let mut lines = script.lines().map(|line| line.trim().trim_start_matches('/').trim());
    lines.find(|line| !line.is_empty()).map(|line| line.chars().take(80).collect())
}

impl Draft {
    fn of_example(key: &str) -> Self {
        let example = EXAMPLES.iter().find(|example| example.key == key).unwrap_or(&EXAMPLES[0]);
        Self {
            script: example.script.to_owned(),
            inputs: example.inputs.to_owned(),
            people: example.people.to_owned(),
            tools: example.tools.iter().map(|name| ((*name).to_owned(), Leave::Freely)).collect(),
            step: false,
        }
    }

    pub(super) fn of_request(request: &NewRun) -> Self {
        let mut draft = Self {
            script: request.script.clone().unwrap_or_default(),
            step: request.step,
            ..Self::default()
        };
        if !request.inputs.is_empty() {
            draft.inputs = serde_json::to_string_pretty(&request.inputs).unwrap_or_default();
        }
        let mut people = Vec::new();
        for (name, choice) in &request.tools {
            match choice {
                // The form has no place for a fixed answer: a person can give it.
                ToolChoice::Person | ToolChoice::Value(_) => people.push(name.as_str()),
                ToolChoice::Tool(tool) => drop(draft.tools.insert(tool.clone(), Leave::Freely)),
                ToolChoice::Approved(tool) => drop(draft.tools.insert(tool.clone(), Leave::WhenAgreed)),
            }
        }
        draft.people = people.join(" ");
        draft
    }
}

pub(super) fn draw(view: &PlaygroundPage) -> Markup {
    let live = match &view.run {
        Some((state, story)) if !state.phase.is_over() => Live::Run(&state.id, story.seq),
        Some(_) | None => Live::Still,
    };
    let shell = Shell { title: "Playground", here: Here::Playground, waiting: view.waiting, live };
    page(
        &shell,
        html! {
            (head("Playground", "Sandboxed JavaScript that can stop at any call and go on days later.", examples()))
            div.playground {
                (editor(view))
                div.play-out { (outcome(view)) }
            }
        },
    )
}

fn examples() -> Markup {
    html! {
        details.menu {
            summary.button { "Examples" (icon(Icon::Down)) }
            ul { @for example in &EXAMPLES { li { a href={ "/playground?example=" (example.key) } { b { (example.name) } span.sub { (example.about) } } } } }
        }
    }
}

fn editor(view: &PlaygroundPage) -> Markup {
    let Draft { script, inputs, people, tools, step } = &view.draft;
    html! {
        form.play-in method="post" action="/playground" data-live-form {
            div.editor {
                pre.lines aria-hidden="true" data-lines { (line_numbers(script)) }
                textarea.mono name="script" aria-label="Script" spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" rows="16" required data-code data-submit { (script) }
            }
            div.card.stack {
                fieldset {
                    legend { "It may call" }
                    @if view.tools.is_empty() { p.hint { "There are no tools. " code { "[tools.NAME]" } " in outrigger.toml makes one." } }
                    ul.tools {
                        @for (name, about) in view.tools.iter().take(200) {
                            @let leave = tools.get(name).copied();
                            li {
                                div { label.mono for={ "tool-" (name) } { (name) } span.sub { (about) } }
                                select id={ "tool-" (name) } name={ "tool:" (name) } {
                                    option value="" { "no" }
                                    option value="call" selected[leave == Some(Leave::Freely)] { "yes" }
                                    option value="ask" selected[leave == Some(Leave::WhenAgreed)] { "ask me first" }
                                }
                            }
                        }
                    }
                }
                label { "Names that you answer yourself"
                    input.mono type="text" name="people" value=(people) placeholder="approve ask" autocomplete="off" spellcheck="false";
                    span.hint { "Calling one stops the script until somebody answers." }
                }
                details.fold open[!inputs.is_empty()] data-key="inputs" {
                    summary { "Inputs" }
                    label { span.visually-hidden { "Inputs, as a JSON object" }
                        textarea.mono name="inputs" rows="3" spellcheck="false" placeholder="{ \"name\": \"Ada\" }" data-json { (inputs) } }
                }
                div.row {
                    label.check { input type="checkbox" name="step" value="1" checked[*step]; "Stop at every call" }
                    span.grow {}
                    button.primary { (icon(Icon::Play)) "Run" kbd { "Ctrl ⏎" } }
                }
            }
        }
    }
}

fn line_numbers(script: &str) -> String {
    let lines = script.split('\n').count().clamp(1, 5000);
    (1..=lines).map(|number| number.to_string()).collect::<Vec<_>>().join("\n")
}

fn outcome(view: &PlaygroundPage) -> Markup {
    let Some((state, story)) = &view.run else {
        return html! {
            div.card { (empty(Icon::Playground, "Nothing was run yet", html! {
                p { "Press Run. Calls appear here one by one; you answer, approve or edit them, and the script goes on from that very call." }
            })) }
        };
    };
    let back = format!("/playground?run={}", state.id);
    let value = story.value.as_deref().or(state.result.as_deref());
    html! {
        section #play-head.card data-live aria-label="The run" {
            div.row.wrap {
                (phase_badge(state.phase))
                span.num { (duration(state, view.now)) }
                @if let Some(at) = state.suspended.as_ref().filter(|_| !state.phase.is_over()) {
                    span.chip title="All that is left of the script while it waits" { (icon(Icon::Pause)) "snapshot " (bytes(at.snapshot_bytes)) }
                }
                span.grow {}
                @if !state.phase.is_over() {
                    form method="post" action={ "/runs/" (state.id) "/cancel" } data-live-form {
                        input type="hidden" name="back" value=(back);
                        button.small.danger { "Cancel" }
                    }
                }
                a.button.small href={ "/runs/" (state.id) } { "Open" (icon(Icon::Right)) }
            }
            @if let Some(error) = state.error.as_ref().filter(|_| state.phase == Phase::Failed) { pre.code.bad tabindex="0" { code { (error) } } }
        }
        section #play-approvals data-live aria-label="Calls that wait" { (approval_cards(state, story, &back, view.now)) }
        section #play-result data-live {
            @if let Some(value) = value.filter(|_| state.phase == Phase::Completed) {
                div.card.result { h2 { (icon(Icon::Flag)) "Result" } (viewer(value)) }
            }
        }
        section #play-said data-live { @if !story.said.is_empty() { div.card { h2 { (icon(Icon::Terminal)) "Output" } (bubbles(story, view.now)) } } }
        section #play-timeline.card data-live { (timeline(story, &state.id, view.now)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn new(form: &str) -> Result<NewRun, String> {
        read(&Fields::read(form.as_bytes()).unwrap()).map_err(|problem| problem.message)
    }

    #[test]
    fn a_form_becomes_a_script_with_what_it_may_call_and_back_again() {
        let form = "script=%2F%2F+say+hello%0Aprint(1)&inputs=%7B%22a%22%3A1%7D&tool%3Aprint=call&tool%3Anow=ask&tool%3Await=&people=approve,+ask&step=1";
        let run = new(form).unwrap();
        assert_eq!(run.title.as_deref(), Some("say hello"));
        assert_eq!(run.inputs.get("a"), Some(&json!(1)));
        let tools = [
            ("approve", ToolChoice::Person),
            ("ask", ToolChoice::Person),
            ("now", ToolChoice::Approved("now".to_owned())),
            ("print", ToolChoice::Tool("print".to_owned())),
        ];
        assert_eq!(run.tools, tools.map(|(name, choice)| (name.to_owned(), choice)).into());
        let draft = Draft::of_request(&run);
        assert_eq!((draft.people.as_str(), draft.step), ("approve ask", true));
        assert_eq!(draft.tools.get("now"), Some(&Leave::WhenAgreed));
        assert_eq!(draft.tools.get("print"), Some(&Leave::Freely));
    }

    #[test]
    fn an_empty_script_and_inputs_that_are_no_object_are_refused() {
        assert_eq!(new("script=+%0A"), Err("the script is empty".to_owned()));
        assert!(new("script=1&inputs=%5B1%5D").unwrap_err().contains("JSON object"));
        assert!(new("script=1&inputs=%7B").unwrap_err().contains("not JSON"));
    }
}
