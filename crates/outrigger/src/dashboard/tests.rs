//! Every page, drawn from runs made by hand. With `OUTRIGGER_PAGES=DIR` they are also written there, to be looked at.

use maud::Markup;
use outrigger_sep::protocol::State as Life;
use outrigger_supervise::logs::LogLine;

use super::fixtures::{
    at, backends, child, extension, extension_detail, failed_agent, finished_script, hostile, panels,
    receipt, running_agent, waiting_script,
};
use super::parts::patch;
use super::run::page::{Kept, RunPage};
use super::run::story::{MAX_SAID, MAX_SPANS};
use super::sidecars::Sidecar;
use super::{agents, chat, extensions, help, new_run, playground, run, runs, sidecars};
use crate::engine::Begun;
use crate::runs::{Phase, RunState, Waiting};

const PATCH: &[u8] = b"diff --git a/src/parser.rs b/src/parser.rs\nindex 1..2 100644\n--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -10,6 +10,9 @@ pub fn parse(input: &str) -> Result<Vec<Token>, ParseError> {\n     let mut tokens = Vec::new();\n-    let first = input.chars().next().ok_or(ParseError::Empty)?;\n+    if input.is_empty() {\n+        return Ok(tokens);\n+    }\n     for (at, c) in input.char_indices() {\n         tokens.push(Token::new(at, c));\n     }\ndiff --git a/tests/empty.rs b/tests/empty.rs\nnew file mode 100644\n--- /dev/null\n+++ b/tests/empty.rs\n@@ -0,0 +1,4 @@\n+#[test]\n+fn an_empty_input_has_no_tokens() {\n+    assert_eq!(parse(\"\"), Ok(vec![]));\n+}\n";

fn runs_page(states: Vec<RunState>) -> Markup {
    let waiting = states
        .iter()
        .flat_map(|state| {
            state.open_approvals().map(|approval| Waiting {
                run: state.id.clone(),
                title: state.title.clone(),
                backend: state.backend.clone(),
                approval: approval.clone(),
            })
        })
        .collect();
    let counts = Phase::ALL
        .map(|phase| (phase, states.iter().filter(|state| state.phase == phase).count() as u64))
        .to_vec();
    let next = Some(Begun(7));
    runs::draw(&runs::RunsPage {
        runs: states,
        next,
        counts,
        waiting,
        phase: None,
        words: String::new(),
        first_page: true,
        now: at(80_100.0),
    })
}

fn run_page((state, story): (RunState, std::sync::Arc<run::story::Story>), seconds: f64) -> Markup {
    let over = state.phase == Phase::Completed;
    run::page::draw(&RunPage {
        receipt: state.receipt.as_ref().map(|_| receipt()),
        patch: over.then(|| Kept::Whole(patch::parse(PATCH))),
        state,
        story,
        waiting: 1,
        now: at(seconds),
    })
}

fn play(example: (RunState, std::sync::Arc<run::story::Story>)) -> Markup {
    let tools = [
        ("print", "shows something"),
        ("now", "what time it is"),
        ("wait", "waits some milliseconds"),
        ("run_tests", "the tests of the project"),
    ];
    let request = example.1.accepted.as_ref().map(|accepted| accepted.request.clone()).unwrap_or_default();
    playground::draw(&playground::PlaygroundPage {
        draft: playground::Draft::of_request(&request),
        tools: tools.map(|(name, about)| (name.to_owned(), about.to_owned())).to_vec(),
        run: Some(example),
        waiting: 1,
        now: at(60.0),
    })
}

fn chat_page() -> Markup {
    let turn = running_agent();
    chat::draw(&chat::ChatPage {
        backends: backends(),
        backend: Some("claude".to_owned()),
        thread: Some("parser".to_owned()),
        threads: vec![turn.0.clone(), failed_agent().0],
        turns: vec![turn],
        waiting: 0,
        now: at(20.0),
    })
}

fn extensions_page() -> Markup {
    let (id, name) = ("org.example.autoreply", "Autoreply");
    let list =
        vec![extension(id, name, Life::Ready), extension("org.example.notes", "Notes", Life::NeedsConsent)];
    extensions::draw(&extensions::ExtensionsPage::On { list, ui: panels(id, name), notices: Vec::new() }, 0)
}

fn one_extension() -> Markup {
    let (id, name) = ("org.example.autoreply", "Autoreply");
    let audit = vec![
        serde_json::json!({"seq": 12, "decision": "deny", "method": "host.messages.send", "reason": "not_granted"}),
        serde_json::json!({"seq": 11, "decision": "allow", "method": "host.messages.list", "reason": "granted"}),
    ];
    let view = extensions::OneExtension {
        detail: extension_detail(id, name),
        ui: panels(id, name),
        audit,
        logs: Vec::new(),
    };
    extensions::draw_one(&view, id, 0)
}

fn pages() -> Vec<(&'static str, Markup)> {
    let states = || {
        vec![waiting_script().0, running_agent().0, finished_script().0, failed_agent().0, waiting_script().0]
    };
    let memory = |size: u64| (0..40).map(|n| size + (n * 7919 % 13) * size / 20).collect::<Vec<u64>>();
    let sidecar =
        |id, name: &str, size: u64| Sidecar { numbers: child(id, name, size), memory: memory(size) };
    let line = |text: &str| LogLine { text: text.to_owned(), cut_bytes: 0 };
    vec![
        ("runs", runs_page(states())),
        ("runs-empty", runs_page(Vec::new())),
        ("run-waiting", run_page(waiting_script(), 60.0)),
        ("run-finished", run_page(finished_script(), 80_060.0)),
        ("run-running", run_page(running_agent(), 17.0)),
        ("run-failed", run_page(failed_agent(), 30.0)),
        ("run-hostile", run_page(hostile(), 30.0)),
        ("playground", play(waiting_script())),
        ("new-run", new_run::draw(&backends(), None, 0)),
        ("agents", agents::draw(&backends(), 0)),
        ("chat", chat_page()),
        (
            "sidecars",
            sidecars::draw(
                &[
                    sidecar(1, "mustard", 12_000_000),
                    sidecar(2, "claude", 180_000_000),
                    sidecar(3, "org.example.notes", 42_000_000),
                ],
                0,
            ),
        ),
        (
            "sidecar",
            sidecars::draw_one(
                &sidecar(2, "claude", 180_000_000),
                &[line("listening"), line("<b>warn</b>")],
                &[],
                0,
            ),
        ),
        ("extensions", extensions_page()),
        ("extension", one_extension()),
        (
            "extensions-off",
            extensions::draw(
                &extensions::ExtensionsPage::Off {
                    hint: "set [extensions] home in outrigger.toml".to_owned(),
                },
                0,
            ),
        ),
        ("help", help::draw("Outrigger 0.1.0 on 127.0.0.1:7700, up 3m 00s.", 0)),
    ]
}

#[test]
fn no_page_has_inline_script_or_style_or_anything_from_elsewhere() {
    for (name, page) in pages() {
        let text = page.into_string();
        for forbidden in [
            " style=",
            "<style",
            " onclick=",
            " onload=",
            "javascript:",
            "src=\"http",
            "href=\"http",
            "<script>",
        ] {
            assert!(!text.contains(forbidden), "{name} has {forbidden}");
        }
        for wanted in ["<main", "<nav", "<h1", "lang=\"en\"", "name=\"viewport\""] {
            assert!(text.contains(wanted), "{name} lacks {wanted}");
        }
        if let Some(folder) = std::env::var_os("OUTRIGGER_PAGES") {
            let text = text.replace("/assets/", "assets/");
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.html")), text).unwrap();
        }
    }
}

#[test]
fn ids_are_unique_on_every_page_and_every_live_part_has_one() {
    for (name, page) in pages() {
        let text = page.into_string();
        let mut ids: Vec<&str> =
            text.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{name}");
        let tags = text.split('<').filter(|tag| {
            tag.split('>')
                .next()
                .is_some_and(|tag| tag.contains(" data-live") && !tag.contains("data-live-form"))
        });
        for tag in tags {
            assert!(tag.contains(" id=\""), "{name}: <{}", tag.split('>').next().unwrap_or_default());
        }
    }
}

#[test]
fn what_somebody_means_harm_with_is_text_on_every_page_that_shows_it() {
    let (state, story) = hostile();
    let chat = chat::ChatPage {
        backends: backends(),
        backend: Some("\"><script>".to_owned()),
        thread: state.thread.clone(),
        threads: vec![state.clone()],
        turns: vec![(state.clone(), story.clone())],
        waiting: 0,
        now: at(1.0),
    };
    for page in [runs_page(vec![state.clone()]), run_page(hostile(), 9.0), play(hostile()), chat::draw(&chat)]
    {
        let text = page.into_string();
        assert!(!text.contains("<script>alert") && !text.contains("<img"), "{text}");
        assert!(text.contains("&lt;script&gt;"));
    }
}

#[test]
fn what_waits_can_be_answered_without_a_script_in_the_browser() {
    let text = run_page(waiting_script(), 60.0).into_string();
    let action = "action=\"/runs/0198c0de-7000-7a11-8a11-5c21f7000001/approvals/a1\"";
    assert_eq!(text.matches(action).count(), 3);
    for choice in ["approve", "approve_always", "deny", "edit", "answer"] {
        assert!(text.contains(&format!("name=\"choice\" value=\"{choice}\"")), "{choice}");
    }
    let person_only = run_page(finished_script(), 80_060.0).into_string();
    assert!(!person_only.contains("name=\"choice\""), "it was answered");
}

#[test]
fn buttons_are_those_that_the_phase_allows() {
    let has = |page: Markup| {
        let text = page.into_string();
        ["cancel", "steer", "fork", "replay", "resume", "forget"]
            .map(|action| text.contains(&format!("/{action}\" data-live-form")))
    };
    assert_eq!(has(run_page(running_agent(), 17.0)), [true, true, false, false, false, false]);
    assert_eq!(has(run_page(finished_script(), 80_060.0)), [false, false, true, true, false, true]);
    assert_eq!(has(run_page(failed_agent(), 30.0)), [false, false, true, false, true, true]);
}

#[test]
fn a_story_stays_within_its_bounds_however_long_the_log_is() {
    use super::fixtures::{accepted, event, run};
    use serde_json::json;
    let of = |count: usize| {
        let mut records = vec![(0.0, "accepted", accepted("mock", json!({"task": "x"})))];
        for number in 0..count {
            let message = json!({"type": "warning", "message": format!("w{number}")});
            records.push((number as f64, "event", event(number as u64 + 1, message)));
        }
        run("long", &records).1
    };
    let at_the_limit = of(MAX_SPANS);
    assert_eq!((at_the_limit.spans.len(), at_the_limit.folded_spans), (MAX_SPANS, 0));
    let past_it = of(MAX_SPANS + 1);
    assert_eq!((past_it.spans.len(), past_it.folded_spans), (MAX_SPANS, 1));
    // The task is one of the words.
    assert_eq!((past_it.said.len(), past_it.folded_said), (MAX_SAID, MAX_SPANS + 2 - MAX_SAID));
}

#[test]
fn words_that_come_in_parts_are_one_and_the_whole_takes_their_place() {
    use super::fixtures::{accepted, event, run};
    use serde_json::json;
    let delta = |number, text: &str| {
        (number as f64, "event", event(number, json!({"type": "assistant_delta", "text": text})))
    };
    let mut records =
        vec![(0.0, "accepted", accepted("mock", json!({"task": "x"}))), delta(1, "a"), delta(2, "b")];
    let (_, story) = run("talk", &records);
    let last = story.said.back().unwrap();
    assert_eq!((last.text.as_str(), last.open), ("ab", true));
    records.push((3.0, "event", event(3, json!({"type": "assistant_message", "text": "abc"}))));
    records.push(delta(4, "next"));
    let (_, story) = run("talk", &records);
    let said: Vec<&str> = story.said.iter().map(|said| said.text.as_str()).collect();
    assert_eq!(said, ["x", "abc", "next"]);
}

#[test]
fn a_panel_is_drawn_with_all_its_parts_and_its_actions_are_forms() {
    let text = one_extension().into_string();
    assert_eq!(text.matches("action=\"/extensions/org.example.autoreply/call\"").count(), 3);
    assert!(text.contains("name=\"panel\" value=\"org.example.autoreply/main\""));
    assert!(text.contains("<progress value=\"40\" max=\"100\">"));
    assert!(text.contains("&lt;i&gt;Ada&lt;/i&gt;: see you"));
    assert!(text.contains("/extensions/org.example.autoreply/grant"), "what was not granted can be");
    assert!(text.contains("/extensions/org.example.autoreply/revoke"), "what was granted can be taken back");
}
