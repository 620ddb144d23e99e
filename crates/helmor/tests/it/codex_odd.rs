//! The Codex driver with a program that behaves oddly: what the real one does only sometimes, or never.

use std::time::{Duration, Instant};

use outrigger_helmor::protocol::PermissionMode;
use outrigger_helmor::provider::{Change, FailureCode, Outcome, Verdict};
use serde_json::{Value, json};

use crate::codex_kit::{Bench, answer_of, begin, begin_slow, kinds, run, turn};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        codex_is_told_when_it_asks_something_unknown,
        codex_that_finds_its_data_being_made_by_another_one_is_started_again,
        codex_may_call_a_tool_of_an_mcp_server_unasked_only_if_everything_is_allowed,
        codex_is_answered_in_the_words_of_yesterday_if_it_asks_in_them,
        codex_is_heard_only_about_its_own_thread_and_bad_lines_do_no_harm,
        codex_can_withdraw_a_question,
        codex_tells_a_storm_of_retries_once,
        codex_that_fails_after_it_has_done_something_ends_badly,
        codex_that_refuses_a_turn_fails_it_with_its_reason,
        codex_loses_nothing_of_a_flood,
        codex_reacts_to_a_steer_only_after_the_host_has_heard_of_it,
        codex_that_forgets_a_steer_that_it_took_is_told_again,
        codex_that_cannot_be_steered_says_so,
        codex_that_is_deaf_to_a_stop_is_ended_with_everything_it_started,
        codex_tells_nothing_more_of_a_turn_that_was_stopped,
        codex_stops_its_sub_agents_too,
        codex_waits_for_a_host_that_is_slow_and_can_be_stopped_meanwhile,
        codex_is_not_let_loose_when_the_mode_is_cleared_in_the_middle_of_a_turn,
        codex_stops_asking_when_everything_is_allowed_in_the_middle_of_a_turn,
        codex_that_ends_by_itself_fails_the_turn_with_its_last_words,
    ]
}

fn odd() -> Bench {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/codex_odd.py");
    Bench::scripted(&format!("#!/bin/sh\nBENCH=$(dirname \"$0\") exec python3 '{script}' \"$@\"\n"))
}

/// The JSON that the program answered with.
fn told(events: &[Value]) -> Value {
    serde_json::from_str(answer_of(events)).unwrap()
}

fn codex_that_finds_its_data_being_made_by_another_one_is_started_again() {
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/codex_odd.py");
    let fails = "echo 'Error: failed to initialize sqlite state runtime' >&2; exit 1";
    let bench = Bench::scripted(&format!(
        "#!/bin/sh\n[ -e tried ] || {{ touch tried; {fails}; }}\nexec python3 {odd}\n"
    ));
    run(async {
        let (outcome, _) = turn(&bench.session(), bench.send("unknown")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
    });
    let bench = Bench::scripted(&format!("#!/bin/sh\necho again >> tries; {fails}\n"));
    run(async {
        let (outcome, _) = turn(&bench.session(), bench.send("unknown")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert!(failure.message.contains("sqlite state runtime"), "{failure}");
        let tries = std::fs::read_to_string(bench.folder.path().join("work/tries")).unwrap();
        assert_eq!(tries.lines().count(), 3, "and not for ever");
    });
}

fn codex_is_told_when_it_asks_something_unknown() {
    let bench = odd();
    run(async {
        let (outcome, events) = turn(&bench.session(), bench.send("unknown")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let error = json!({ "code": -32601, "message": "this client does not know `item/tool/call`" });
        assert_eq!(told(&events), json!({ "id": 0, "error": error }));
    });
}

fn codex_may_call_a_tool_of_an_mcp_server_unasked_only_if_everything_is_allowed() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let (_, events) = turn(&session, bench.send("elicit")).await;
        assert_eq!(told(&events), json!({ "action": "accept", "content": {}, "_meta": null }));
        assert!(!kinds(&events).contains(&"userInputRequest"));
        let running = begin(&session, bench.asking("elicit"));
        let asked = running.seen_kind("userInputRequest").await;
        assert_eq!((asked["source"].as_str(), asked["message"].as_str()), (Some("db"), Some("May it?")));
        assert_eq!(asked["payload"]["meta"], json!({ "codex_approval_kind": "mcp_tool_call" }));
        let no = outrigger_helmor::provider::Answer {
            action: outrigger_helmor::provider::InputAction::Decline,
            content: None,
            meta: None,
        };
        running.desk.answer(&asked, no);
        let (_, events) = running.over().await;
        assert_eq!(told(&events)["action"], "decline");
    });
}

fn codex_is_answered_in_the_words_of_yesterday_if_it_asks_in_them() {
    let bench = odd();
    run(async {
        let running = begin(&bench.session(), bench.asking("legacy"));
        let asked = running.seen_kind("permissionRequest").await;
        assert_eq!(asked["toolInput"], json!({ "command": "ls -l", "cwd": "/" }));
        running.desk.verdict(&asked, Verdict::Deny { message: Some("not here".to_owned()) });
        let (_, events) = running.over().await;
        let decision = json!({ "decision": { "denied": { "rejection": "not here" } } });
        assert_eq!(told(&events), json!({ "id": "a-1", "result": decision }));
    });
}

fn codex_is_heard_only_about_its_own_thread_and_bad_lines_do_no_harm() {
    let bench = odd();
    run(async {
        let (outcome, events) = turn(&bench.session(), bench.send("others")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(
            kinds(&events),
            ["turn/started", "account/updated", "warning", "item/completed", "turn/completed"]
        );
        assert_eq!(events[1], json!({ "type": "account/updated", "authMode": null, "session_id": "T" }));
        assert_eq!(events[2], json!({ "type": "warning", "session_id": "T" }));
        assert_eq!(answer_of(&events), "mine");
    });
}

fn codex_can_withdraw_a_question() {
    let bench = odd();
    run(async {
        let running = begin(&bench.session(), bench.asking("withdraw"));
        let asked = running.seen_kind("permissionRequest").await;
        let withdrawn = running.seen_kind("permissionCancelled").await;
        assert_eq!(asked["permissionId"], withdrawn["permissionId"]);
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
    });
}

fn codex_tells_a_storm_of_retries_once() {
    let bench = odd();
    run(async {
        let (_, events) = turn(&bench.session(), bench.send("storm")).await;
        let notices: Vec<&Value> = events.iter().filter(|event| event["type"] == "system").collect();
        let notice = json!({
            "type": "system", "subtype": "codex_reconnecting", "attempt": 1, "max_retries": 5, "retry_delay_ms": 0,
            "error": "Reconnecting... 1/5",
        });
        assert_eq!(notices, [&notice]);
    });
}

fn codex_that_fails_after_it_has_done_something_ends_badly() {
    let bench = odd();
    run(async {
        let (outcome, events) = turn(&bench.session(), bench.send("break")).await;
        let Outcome::EndedBadly { message } = outcome else { panic!("{outcome:?}") };
        assert_eq!(message, "unexpected status 401 Unauthorized\nTo log in: codex login");
        assert_eq!(kinds(&events).last(), Some(&"turn/completed"));
    });
}

fn codex_that_refuses_a_turn_fails_it_with_its_reason() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let (outcome, _) = turn(&session, bench.send("refuse")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::InvalidRequest);
        assert_eq!(failure.message, "Codex refused `turn/start`: the effort is wrong");
        let (outcome, _) = turn(&session, bench.send("hello")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
    });
}

fn codex_loses_nothing_of_a_flood() {
    let bench = odd();
    run(async {
        let (outcome, events) = turn(&bench.session(), bench.send("flood")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let deltas: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let expected: Vec<String> = (0..10_000).map(|number: u32| number.to_string()).collect();
        assert_eq!(deltas, expected);
    });
}

fn codex_reacts_to_a_steer_only_after_the_host_has_heard_of_it() {
    let bench = odd();
    run(async {
        let running = begin(&bench.session(), bench.send("wait"));
        running.seen_kind("item/agentMessage/delta").await;
        assert_eq!(running.steer("left", &[]).await, Some(Ok(())));
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let expected = [
            "turn/started",
            "item/agentMessage/delta",
            "user_prompt",
            "item/started",
            "item/completed",
            "turn/completed",
        ];
        assert_eq!(kinds(&events), expected);
        assert_eq!(events[2]["text"], "left");
    });
}

fn codex_that_forgets_a_steer_that_it_took_is_told_again() {
    let bench = odd();
    run(async {
        let running = begin(&bench.session(), bench.send("lose"));
        running.seen_kind("item/agentMessage/delta").await;
        assert_eq!(running.steer("do not forget me", &[]).await, Some(Ok(())));
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "do not forget me");
        assert_eq!(events.iter().filter(|event| event["type"] == "turn/completed").count(), 2);
    });
}

fn codex_that_cannot_be_steered_says_so() {
    let bench = odd();
    run(async {
        let running = begin(&bench.session(), bench.send("wait"));
        running.seen_kind("item/agentMessage/delta").await;
        assert_eq!(running.steer("refuse", &[]).await, Some(Err("no_active_turn".to_owned())));
        assert_eq!(running.steer("now", &[]).await, Some(Ok(())));
        let (_, events) = running.over().await;
        let prompts: Vec<&Value> = events.iter().filter(|event| event["type"] == "user_prompt").collect();
        assert_eq!(prompts.len(), 1, "{prompts:?}");
    });
}

fn codex_that_is_deaf_to_a_stop_is_ended_with_everything_it_started() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("stubborn"));
        running.seen_kind("item/agentMessage/delta").await;
        while bench.processes().len() < 2 {
            tokio::task::yield_now().await;
        }
        let stopped = Instant::now();
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
        assert_eq!(bench.processes(), []);
        assert!(session.warm_since().is_none());
    });
}

fn codex_tells_nothing_more_of_a_turn_that_was_stopped() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("wait"));
        running.seen_kind("item/agentMessage/delta").await;
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        let (outcome, events) = turn(&session, bench.send("late")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(kinds(&events), ["turn/started", "item/completed", "turn/completed"]);
        assert_eq!(answer_of(&events), "new");
    });
}

fn codex_stops_its_sub_agents_too() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("family"));
        running.seen_kind("item/agentMessage/delta").await;
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        let (_, events) = turn(&session, bench.send("recall")).await;
        let expected = json!([
            ["initialize", null],
            ["turn/interrupt", "T"],
            ["turn/interrupt", "X"],
            ["thread/backgroundTerminals/clean", "X"],
            ["thread/backgroundTerminals/clean", "T"],
        ]);
        assert_eq!(told(&events), expected);
    });
}

fn codex_waits_for_a_host_that_is_slow_and_can_be_stopped_meanwhile() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin_slow(&session, bench.send("flood"));
        running.desk.room_is_wanted().await;
        // The first batch at most, however much there is.
        let early = running.desk.events().len();
        assert!((1..=65).contains(&early), "{early}");
        running.desk.give_room();
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(events.len() > 10_000, "{}", events.len());
        let running = begin_slow(&session, bench.send("flood"));
        running.desk.room_is_wanted().await;
        running.stop.cancel();
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert!(events.len() <= 65, "{}", events.len());
    });
}

fn codex_is_not_let_loose_when_the_mode_is_cleared_in_the_middle_of_a_turn() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("wait"));
        running.seen_kind("item/agentMessage/delta").await;
        session.reconfigure(&Change { permission_mode: Some(None), ..Change::default() }).await.unwrap();
        assert_eq!(running.steer("ask", &[]).await, Some(Ok(())));
        let asked = running.seen_kind("permissionRequest").await;
        running.desk.verdict(&asked, Verdict::Deny { message: None });
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
    });
}

fn codex_stops_asking_when_everything_is_allowed_in_the_middle_of_a_turn() {
    let bench = odd();
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("wait"));
        running.seen_kind("item/agentMessage/delta").await;
        let bypass = Some(Some(PermissionMode::BypassPermissions));
        session.reconfigure(&Change { permission_mode: bypass, ..Change::default() }).await.unwrap();
        assert_eq!(running.steer("ask", &[]).await, Some(Ok(())));
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(told(&events)["result"], json!({ "decision": "approved" }));
        assert!(!kinds(&events).contains(&"permissionRequest"));
    });
}

fn codex_that_ends_by_itself_fails_the_turn_with_its_last_words() {
    let bench = odd();
    run(async {
        let (outcome, _) = turn(&bench.session(), bench.send("die")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::AgentExited);
        assert!(failure.message.contains("the last words"), "{failure}");
        assert!(failure.message.contains('7'), "{failure}");
    });
}
