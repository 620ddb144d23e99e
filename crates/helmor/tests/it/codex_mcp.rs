//! The Codex driver with the real program and an MCP server: what that asks, and that it survives a stop.

use outrigger_helmor::provider::{Answer, InputAction, Outcome};
use serde_json::{Value, json};

use crate::codex_kit::{Bench, answer_of, begin, kinds, run, turn};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        codex_passes_on_what_an_mcp_server_asks_and_approves_its_tools_if_everything_is_allowed,
        codex_asks_before_it_calls_a_tool_of_an_mcp_server,
        codex_keeps_its_mcp_servers_when_a_turn_is_stopped,
    ]
}

fn bench() -> Option<Bench> {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/codex_mcp.py");
    Bench::real_with(&format!("[mcp_servers.db]\ncommand = \"python3\"\nargs = [\"{server}\"]\n"))
}

fn codex_passes_on_what_an_mcp_server_asks_and_approves_its_tools_if_everything_is_allowed() {
    let Some(bench) = bench() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{use mcp__db.ask {}}}"));
        let asked = running.seen_kind("userInputRequest").await;
        assert_eq!(
            (asked["source"].as_str(), asked["message"].as_str()),
            (Some("db"), Some("What is your name?"))
        );
        assert_eq!(asked["payload"]["schema"]["properties"]["name"]["title"], "Name");
        assert!(asked["userInputId"].as_str().unwrap().starts_with("codex-mcp-elicit-"));
        let Value::Object(content) = json!({ "name": "Ada" }) else { panic!() };
        running
            .desk
            .answer(&asked, Answer { action: InputAction::Submit, content: Some(content), meta: None });
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(answer_of(&events).contains(r#"{"name": "Ada"}"#), "{}", answer_of(&events));
        // The approval of the tool is the only other question, and nobody is asked that.
        assert_eq!(events.iter().filter(|event| event["type"] == "userInputRequest").count(), 1);
        session.close().await;
    });
}

fn codex_asks_before_it_calls_a_tool_of_an_mcp_server() {
    let Some(bench) = bench() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("{{use mcp__db.tell {}}}"));
        let asked = running.seen_kind("userInputRequest").await;
        assert_eq!(asked["payload"]["meta"]["codex_approval_kind"], "mcp_tool_call");
        assert_eq!(asked["payload"]["schema"]["properties"], json!({}));
        running.desk.answer(&asked, Answer { action: InputAction::Decline, content: None, meta: None });
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(!answer_of(&events).contains("told"), "{}", answer_of(&events));
        session.close().await;
    });
}

fn codex_keeps_its_mcp_servers_when_a_turn_is_stopped() {
    let Some(bench) = bench() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{trickle 100}}"));
        running.seen_kind("item/agentMessage/delta").await;
        let server = bench.server();
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert_eq!(bench.server(), server);
        let (outcome, events) = turn(&session, bench.send("{{use mcp__db.tell {}}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(answer_of(&events).contains("told"), "{} {:?}", answer_of(&events), kinds(&events));
        session.close().await;
    });
}
