//! Calls that somebody has to allow, questions to a person, and scripts that call tools.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::agent::{Approval, Budgets, Decision, Questions, Verdict};
use outrigger_steerable::protocol::SpanStatus;
use outrigger_steerable::store::RecordId;
use outrigger_steerable::tools::{Commands, Mode, Turns};
use serde_json::json;

use crate::agent_kit::{Bench, FakeTool, block_on, call, calls, echo, ok, once, raw, says, status, user};

const HOST: Approval = Approval::Host { patience: Duration::from_secs(60) };

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_call_that_nobody_consents_to_is_not_made,
        a_call_that_is_denied_and_then_allowed_is_made_once,
        what_is_allowed_for_a_session_is_not_asked_again_in_it,
        what_is_denied_for_ever_is_not_asked_again_anywhere,
        one_who_allows_a_call_can_change_its_arguments,
        an_abort_ends_the_turn_and_answers_the_other_calls,
        an_approval_that_nobody_gives_in_time_is_a_denial,
        commands_that_are_granted_are_run_and_those_to_be_asked_for_are_not_without_somebody_to_ask,
        a_question_reaches_the_person_and_the_answer_the_model,
        what_a_script_calls_is_judged_and_counted_like_what_the_model_calls,
        a_person_who_is_asked_by_a_script_does_not_use_up_its_time,
    ]
}

fn a_call_that_nobody_consents_to_is_not_made() {
    block_on(async {
        let tool = echo("delete_it", Mode::Destructive);
        let made = Arc::clone(&tool.calls);
        let mut bench = Bench::new(once("delete_it", json!({}))).with(tool);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert!(bench.log().contains(&"result c1 approval_denied"), "{:?}", bench.log());

        let mut bench = bench.then(once("delete_it", json!({})));
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = Approval::Auto;
        bench.run(turn).await;
        assert_eq!(made.load(Ordering::SeqCst), 1);
    });
}

fn a_call_that_is_denied_and_then_allowed_is_made_once() {
    block_on(async {
        let tool = echo("write_it", Mode::SafeWrite);
        let made = Arc::clone(&tool.calls);
        let answers = [
            calls([("c1", "write_it", json!({"n":1}))]),
            calls([("c2", "write_it", json!({"n":2}))]),
            says("done"),
        ];
        let mut bench = Bench::new(answers).with(tool);
        let denied = Decision { reason: Some("not now".to_owned()), ..Decision::plain(Verdict::DenyOnce) };
        bench.host.decisions.lock().unwrap().extend([denied, Decision::plain(Verdict::AllowOnce)]);
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        bench.run(turn).await;
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(
            bench.asked(),
            [
                r#"approve write_it {"n":1} safe_write tool 1"#,
                r#"approve write_it {"n":2} safe_write tool 2"#
            ]
        );
        assert_eq!(
            bench.log(),
            [
                r#"call c1 write_it {"n":1}"#,
                "approval write_it deny_once",
                "result c1 approval_denied",
                "round_end 1",
                r#"call c2 write_it {"n":2}"#,
                "approval write_it allow_once",
                "result c2 ok",
                "round_end 2",
                "delta done",
                "round_end 3",
            ]
        );
        assert_eq!(bench.transcript().await[2], "tool c1: error: approval_denied\nnot now");
    });
}

fn what_is_allowed_for_a_session_is_not_asked_again_in_it() {
    block_on(async {
        let mut bench = Bench::new(once("write_it", json!({})))
            .with(echo("write_it", Mode::SafeWrite))
            .deciding([Verdict::AllowForSession, Verdict::DenyOnce]);
        for _ in 0..2 {
            let mut turn = bench.turn(&[user("go")]);
            turn.approval = HOST;
            bench.run(turn).await;
            bench = bench.then(once("write_it", json!({})));
        }
        assert_eq!(bench.asked().len(), 1);
        bench.record = RecordId::new("another");
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        bench.run(turn).await;
        assert_eq!(bench.asked().len(), 2);
        assert!(bench.log().contains(&"result c1 approval_denied"));
    });
}

fn what_is_denied_for_ever_is_not_asked_again_anywhere() {
    block_on(async {
        let mut bench = Bench::new(once("write_it", json!({})))
            .with(echo("write_it", Mode::SafeWrite))
            .deciding([Verdict::DenyAlways]);
        for record in ["one", "two"] {
            bench.record = RecordId::new(record);
            let mut turn = bench.turn(&[user("go")]);
            turn.approval = HOST;
            bench.run(turn).await;
            assert!(bench.log().contains(&"approval write_it deny_always"), "{record}");
            bench = bench.then(once("write_it", json!({})));
        }
        assert_eq!(bench.asked().len(), 1);
    });
}

fn one_who_allows_a_call_can_change_its_arguments() {
    block_on(async {
        let mut bench = Bench::new(once("write_it", json!({"n":1}))).with(echo("write_it", Mode::SafeWrite));
        let amended = Decision { amended: Some(raw(&json!({"n":2}))), ..Decision::plain(Verdict::AllowOnce) };
        bench.host.decisions.lock().unwrap().push_back(amended);
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        bench.run(turn).await;
        let transcript = bench.transcript().await;
        assert_eq!(transcript[1], r#"assistant: [c1 write_it {"n":1}]"#);
        assert_eq!(transcript[2], r#"tool c1: {"n":2}"#);
    });
}

fn an_abort_ends_the_turn_and_answers_the_other_calls() {
    block_on(async {
        let two = calls([("c1", "write_it", json!({})), ("c2", "write_it", json!({}))]);
        let tool = FakeTool::new("write_it", Mode::SafeWrite, Turns::Alone, |_, _| async { ok("") });
        let made = Arc::clone(&tool.calls);
        let mut bench = Bench::new([two]).with(tool).deciding([Verdict::Abort]);
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "cancelled");
        assert_eq!(ended.reason.as_deref(), Some("abort"));
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert_eq!(bench.model.times_called(), 1);
        assert_eq!(
            bench.transcript().await[2..],
            ["tool c1: error: approval_denied", "tool c2: error: cancelled"]
        );
    });
}

fn an_approval_that_nobody_gives_in_time_is_a_denial() {
    block_on(async {
        let mut bench = Bench::new(once("write_it", json!({}))).with(echo("write_it", Mode::SafeWrite));
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        let began = tokio::time::Instant::now();
        bench.run(turn).await;
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        assert!(bench.log().contains(&"approval write_it timed_out"));
        assert!(bench.log().contains(&"result c1 approval_denied"));
        let tree = bench.trace().await;
        let wait = tree.spans.iter().find(|span| span.name == "approval.wait").unwrap();
        assert_eq!(wait.status, SpanStatus::Timeout);
    });
}

fn commands_that_are_granted_are_run_and_those_to_be_asked_for_are_not_without_somebody_to_ask() {
    block_on(async {
        for (commands, approval, expected) in [
            (Commands::Allow, Approval::Nobody, "result c1 ok"),
            (Commands::Allow, Approval::Auto, "result c1 ok"),
            (Commands::Ask, Approval::Nobody, "result c1 approval_denied"),
            (Commands::Ask, Approval::Auto, "result c1 approval_denied"),
            (Commands::Ask, HOST, "result c1 ok"),
        ] {
            let mut bench = Bench::new(once("run_command", json!({"command": "ls"})))
                .with(echo("run_command", Mode::Destructive))
                .deciding([Verdict::AllowOnce]);
            bench.grants.commands = commands;
            let mut turn = bench.turn(&[user("go")]);
            turn.approval = approval;
            bench.run(turn).await;
            assert!(bench.log().contains(&expected), "{commands:?} {approval:?}: {:?}", bench.log());
        }
    });
}

fn a_question_reaches_the_person_and_the_answer_the_model() {
    block_on(async {
        let question = json!({"questions": [{"id": "q", "question": "Which colour?"}]});
        let answers =
            [calls([("c1", "ask_user", question)]), calls([("c2", "ask_user", json!({}))]), says("done")];
        let mut bench = Bench::new(answers);
        let mut turn = bench.turn(&[user("go")]);
        turn.questions = Questions::Allowed;
        turn.chat_id = Some("chat".to_owned());
        bench.run(turn).await;
        assert_eq!(
            bench.asked(),
            [r#"ask {"chatId":"chat","questions":[{"id":"q","question":"Which colour?"}]}"#]
        );
        let transcript = bench.transcript().await;
        assert_eq!(transcript[2], r#"tool c1: {"answers":{"q":"blue"}}"#);
        assert!(
            transcript[4].starts_with("tool c2: error: the arguments of ask_user do not fit"),
            "{}",
            transcript[4]
        );
    });
}

/// A tool that calls another one, as a script does.
fn script(name: &'static str) -> FakeTool {
    FakeTool::new("run_script", Mode::Read, Turns::Alone, move |_, place| async move {
        let mut told = Vec::new();
        for id in ["s1", "s2"] {
            let result = place.dispatch.call(call(id, name)).await;
            told.push(result.error.unwrap_or_else(|| "ok".to_owned()));
        }
        ok(&told.join(","))
    })
}

fn what_a_script_calls_is_judged_and_counted_like_what_the_model_calls() {
    block_on(async {
        for (name, tool_calls, decisions, expected) in [
            ("write_it", 10, [Verdict::AllowOnce, Verdict::DenyOnce], "tool c1: ok,approval_denied"),
            ("write_it", 2, [Verdict::AllowOnce, Verdict::AllowOnce], "tool c1: ok,budget_exhausted"),
            (
                "run_script",
                10,
                [Verdict::AllowOnce, Verdict::AllowOnce],
                "tool c1: a script cannot run scripts,a script cannot run scripts",
            ),
            (
                "missing",
                10,
                [Verdict::AllowOnce, Verdict::AllowOnce],
                "tool c1: Unknown tool: missing,Unknown tool: missing",
            ),
        ] {
            let mut bench = Bench::new(once("run_script", json!({})))
                .with(script(name))
                .with(echo("write_it", Mode::SafeWrite))
                .deciding(decisions);
            let mut turn = bench.turn(&[user("go")]);
            turn.approval = HOST;
            turn.budgets = Budgets { tool_calls, ..Budgets::STANDARD };
            bench.run(turn).await;
            assert_eq!(bench.transcript().await[2], expected);
        }
        let mut bench = Bench::new(once("run_script", json!({})))
            .with(script("write_it"))
            .with(echo("write_it", Mode::SafeWrite))
            .deciding([Verdict::Abort]);
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        assert_eq!(status(&bench.run(turn).await), "cancelled");
        assert_eq!(bench.model.times_called(), 1);
    });
}

fn a_person_who_is_asked_by_a_script_does_not_use_up_its_time() {
    block_on(async {
        let mut bench = Bench::new(once("run_script", json!({})))
            .with(script("write_it"))
            .with(echo("write_it", Mode::SafeWrite));
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        turn.tool_timeout = Duration::from_secs(5);
        let began = tokio::time::Instant::now();
        bench.run(turn).await;
        assert_eq!(began.elapsed(), Duration::from_secs(120));
        assert_eq!(bench.transcript().await[2], "tool c1: approval_denied,approval_denied");
    });
}
