//! The Codex driver with the real program: turns, approvals, questions, and what goes wrong.

use outrigger_helmor::protocol::{PermissionMode, SendMessage};
use outrigger_helmor::provider::{Answer, FailureCode, InputAction, Outcome, Verdict};
use serde_json::{Value, json};

use crate::codex_kit::{Bench, answer_of, begin, kinds, run, turn};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        codex_runs_a_whole_turn_and_tells_all_of_it_under_one_thread,
        codex_stays_warm_between_turns,
        codex_runs_a_command_that_is_allowed_once_and_asks_again,
        codex_does_not_ask_again_what_is_allowed_for_the_session,
        codex_does_not_run_what_is_denied,
        codex_applies_a_patch_that_is_allowed,
        codex_asks_the_user_in_plan_mode,
        codex_tells_a_failure_of_the_model_server_once_with_its_word,
        codex_fails_when_the_answer_is_cut_or_fails,
        codex_sends_pictures,
        codex_uses_the_model_the_effort_and_the_speed_of_the_turn,
        codex_compacts,
        codex_works_on_a_goal_until_it_is_reached,
        codex_rests_when_its_goal_is_paused,
    ]
}

fn codex_runs_a_whole_turn_and_tells_all_of_it_under_one_thread() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let (outcome, events) = turn(&session, bench.send("{{think hello there}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "hello there");
        let thread = events.iter().find(|event| event["type"] == "thread/started").unwrap();
        let name = thread["thread"]["id"].as_str().unwrap();
        let passed: Vec<&Value> =
            events.iter().filter(|event| event["type"].as_str().unwrap().contains('/')).collect();
        assert!(passed.iter().all(|event| event["session_id"] == name), "{passed:#?}");
        let kinds = kinds(&events);
        for kind in
            ["turn/started", "item/agentMessage/delta", "item/reasoning/summaryTextDelta", "item/completed"]
        {
            assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
        }
        assert_eq!(kinds.last(), Some(&"turn/completed"));
        let usage = events.iter().find(|event| event["type"] == "contextUsageUpdated").unwrap();
        let meta: Value = serde_json::from_str(usage["meta"].as_str().unwrap()).unwrap();
        assert_eq!((usage["sessionId"].as_str(), meta["usedTokens"].as_u64()), (Some("S"), Some(49)));
        assert_eq!(meta["modelId"], "gpt-5.5");
        assert!(meta["maxTokens"].as_u64().unwrap() > 10_000);
        session.close().await;
        assert_eq!(bench.processes(), []);
    });
}

fn codex_stays_warm_between_turns() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        assert!(session.warm_since().is_none());
        let (_, first) = turn(&session, bench.send("{{say first}}")).await;
        let (since, server) = (session.warm_since().unwrap(), bench.server());
        let (_, second) = turn(&session, bench.send("{{say second}}")).await;
        assert_eq!(bench.server(), server);
        assert_eq!(first.last().unwrap()["session_id"], second.last().unwrap()["session_id"]);
        assert!(session.warm_since().unwrap() > since);
        // Another folder means another server, which goes on with the same thread.
        let send = SendMessage { cwd: Some(bench.folder.path().to_owned()), ..bench.send("{{about}}") };
        let (_, third) = turn(&session, send).await;
        assert_ne!(bench.server(), server);
        assert_eq!(first.last().unwrap()["session_id"], third.last().unwrap()["session_id"]);
        assert_eq!(about(&third)["texts"], 3);
        session.close().await;
        assert!(session.warm_since().is_none());
    });
}

fn codex_runs_a_command_that_is_allowed_once_and_asks_again() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        for round in 1..=2 {
            let running = begin(&session, bench.asking("{{run echo again >> made}}"));
            let asked = running.seen_kind("permissionRequest").await;
            assert_eq!(asked["toolName"], "Bash");
            assert!(asked["toolInput"]["command"].as_str().unwrap().contains("echo again >> made"));
            assert!(asked["permissionId"].as_str().unwrap().starts_with("codex-"));
            running.desk.verdict(&asked, Verdict::Allow { updated: Vec::new() });
            let (outcome, _) = running.over().await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            let made = std::fs::read_to_string(bench.work().join("made")).unwrap();
            assert_eq!(made.lines().count(), round);
        }
        session.close().await;
    });
}

fn codex_does_not_ask_again_what_is_allowed_for_the_session() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("{{run echo again >> made}}"));
        let asked = running.seen_kind("permissionRequest").await;
        let suggestions = asked["suggestions"].as_array().unwrap();
        assert_eq!(suggestions[0], json!({ "type": "acceptForSession" }));
        assert_eq!(suggestions[1]["type"], "acceptWithExecpolicyAmendment");
        running.desk.verdict(&asked, Verdict::Allow { updated: vec![suggestions[0].clone()] });
        running.over().await;
        let (outcome, events) = turn(&session, bench.asking("{{run echo again >> made}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(!kinds(&events).contains(&"permissionRequest"));
        assert_eq!(std::fs::read_to_string(bench.work().join("made")).unwrap(), "again\nagain\n");
        session.close().await;
    });
}

fn codex_does_not_run_what_is_denied() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("{{run touch made}}"));
        let asked = running.seen_kind("permissionRequest").await;
        running.desk.verdict(&asked, Verdict::Deny { message: Some("no".to_owned()) });
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(answer_of(&events).contains("rejected"), "{}", answer_of(&events));
        assert!(!bench.work().join("made").exists());
        session.close().await;
    });
}

fn codex_applies_a_patch_that_is_allowed() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("{{patch made.txt hello}}"));
        let asked = running.seen_kind("permissionRequest").await;
        assert_eq!(asked["toolName"], "apply_patch");
        let path = bench.work().join("made.txt");
        assert_eq!(asked["toolInput"]["changes"][0]["path"], path.to_str().unwrap());
        assert_eq!(asked["description"], format!("Codex wants to change {}", path.display()));
        assert!(!path.exists());
        running.desk.verdict(&asked, Verdict::Allow { updated: Vec::new() });
        running.over().await;
        assert_eq!(std::fs::read_to_string(path).unwrap(), "hello\n");
        session.close().await;
    });
}

fn codex_asks_the_user_in_plan_mode() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let plan = SendMessage { permission_mode: Some(PermissionMode::Plan), ..bench.send("{{ask}}") };
        let running = begin(&session, plan);
        let asked = running.seen_kind("userInputRequest").await;
        assert_eq!(
            (asked["source"].as_str(), asked["message"].as_str()),
            (Some("Codex"), Some("Which colour?"))
        );
        let property = &asked["payload"]["schema"]["properties"]["colour"];
        assert_eq!(property["oneOf"][1]["const"], "Blue");
        let Value::Object(content) = json!({ "colour": "Blue" }) else { panic!() };
        running
            .desk
            .answer(&asked, Answer { action: InputAction::Submit, content: Some(content), meta: None });
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(answer_of(&events).contains(r#"{"colour":{"answers":["Blue"]}}"#), "{}", answer_of(&events));
        // The next turn does not plan: the same question is not open to it.
        let (_, events) = turn(&session, bench.send("{{ask}}")).await;
        assert!(!kinds(&events).contains(&"userInputRequest"), "{:?}", kinds(&events));
        session.close().await;
    });
}

fn codex_tells_a_failure_of_the_model_server_once_with_its_word() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        for (status, code, words) in [
            (401, FailureCode::Auth, "401 Unauthorized"),
            (429, FailureCode::RateLimit, "429 Too Many Requests"),
            (500, FailureCode::Server, "high demand"),
            (400, FailureCode::Provider, "as you asked: 400"),
        ] {
            let (outcome, events) = turn(&session, bench.send(&format!("{{{{status {status}}}}}"))).await;
            let Outcome::Failed(failure) = outcome else { panic!("{status}: {outcome:?}") };
            assert_eq!(failure.code, code, "{failure}");
            assert!(failure.message.contains(words), "{failure}");
            assert!(!kinds(&events).contains(&"error"));
        }
        let (outcome, _) = turn(&session, bench.send("{{say fine}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        session.close().await;
    });
}

fn codex_fails_when_the_answer_is_cut_or_fails() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        for directive in ["{{cut}}", "{{fail}}"] {
            let (outcome, events) = turn(&session, bench.send(directive)).await;
            let Outcome::Failed(failure) = outcome else { panic!("{directive}: {outcome:?}") };
            assert_eq!(failure.code, FailureCode::Server, "{failure}");
            let retries: Vec<&Value> =
                events.iter().filter(|event| event["subtype"] == "codex_reconnecting").collect();
            assert_eq!(retries.len(), 1, "{events:#?}");
            assert_eq!(
                (retries[0]["attempt"].as_u64(), retries[0]["max_retries"].as_u64()),
                (Some(1), Some(1))
            );
        }
        session.close().await;
    });
}

/// What the model server says about the request that it got.
fn about(events: &[Value]) -> Value {
    serde_json::from_str(answer_of(events)).unwrap()
}

/// A picture of one point.
pub(crate) const PICTURE: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T', 0x78, 0xda, 0x63, 0x64, 0xf8,
    0xcf, 0x50, 0x0f, 0, 3, 0x86, 1, 0x80, 0x5a, 0x34, 0x7d, 0x6b, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae,
    0x42, 0x60, 0x82,
];

fn codex_sends_pictures() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let path = bench.work().join("point.png");
        std::fs::write(&path, PICTURE).unwrap();
        let prompt = format!("{{{{about}}}} @{}", path.display());
        let session = bench.session();
        let (_, events) = turn(&session, SendMessage { images: vec![path], ..bench.send(&prompt) }).await;
        assert_eq!(about(&events)["pictures"], 1);
        session.close().await;
    });
}

fn codex_uses_the_model_the_effort_and_the_speed_of_the_turn() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let effort = outrigger_helmor::protocol::Effort("high".to_owned());
        let fast = SendMessage { fast_mode: true, effort: Some(effort), ..bench.send("{{about}}") };
        let (_, events) = turn(&session, fast).await;
        let told = about(&events);
        assert_eq!((told["effort"].as_str(), told["tier"].as_str()), (Some("high"), Some("priority")));
        let (_, events) = turn(&session, bench.send("{{about}}")).await;
        assert_eq!(about(&events)["tier"], Value::Null);
        let other = SendMessage { model: Some("gpt-5.6-luna".to_owned()), ..bench.send("{{about}}") };
        let (_, events) = turn(&session, other).await;
        assert_eq!(about(&events)["model"], "gpt-5.6-luna");
        session.close().await;
    });
}

fn codex_compacts() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        turn(&session, bench.send("{{say something}}")).await;
        let (outcome, events) = turn(&session, bench.send("/compact")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let compacted =
            |event: &Value| event["type"] == "item/completed" && event["item"]["type"] == "contextCompaction";
        assert!(events.iter().any(compacted), "{:?}", kinds(&events));
        session.close().await;
    });
}

fn codex_works_on_a_goal_until_it_is_reached() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let goal = r#"/goal {{use update_goal {"status":"complete"}}}"#;
        let (outcome, events) = turn(&session, bench.send(goal)).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let told = events.iter().rev().find(|event| event["type"] == "codexGoalUpdated").unwrap();
        let goal: Value = serde_json::from_str(told["goal"].as_str().unwrap()).unwrap();
        assert_eq!(goal["status"], "complete");
        assert_eq!(events.iter().filter(|event| event["type"] == "turn/completed").count(), 1);
        session.close().await;
    });
}

fn codex_rests_when_its_goal_is_paused() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("/goal {{trickle 2}}"));
        let first = running.seen_kind("turn/completed").await;
        let first = first["turn"]["id"].clone();
        running.seen(|event| event["type"] == "turn/started" && event["turn"]["id"] != first).await;
        session.mutate_goal(outrigger_helmor::provider::GoalChange::Pause).await.unwrap();
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let started = events.iter().filter(|event| event["type"] == "turn/started").count();
        let completed = events.iter().filter(|event| event["type"] == "turn/completed").count();
        assert!(started >= 2 && started == completed, "{started} {completed}");
        session.close().await;
    });
}
