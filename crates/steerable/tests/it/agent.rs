//! Turns of an agent: rounds, tools, consent, budgets, answers of a shape.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::agent::{
    Approval, Budgets, ContentMode, Decision, History, Questions, Routing, Verdict,
};
use outrigger_steerable::chat::{ToolCall, ToolResult};
use outrigger_steerable::model::FailureKind;
use outrigger_steerable::protocol::{SpanStatus, TraceStatus};
use outrigger_steerable::store::RecordId;
use outrigger_steerable::tools::{Commands, Mode, Turns};
use serde_json::{Map, Value, json};
use tokio::sync::Barrier;

use crate::agent_kit::{
    Answer, Bench, FakeHost, FakeTool, block_on, calls, cost, echo, fails, ok, raw, says, spec, status, user,
};

const HOST: Approval = Approval::Host { patience: Duration::from_secs(60) };

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_turn_goes_from_the_model_to_a_tool_and_back_to_an_answer,
        a_turn_leaves_a_trace_of_everything_it_did,
        tools_that_may_run_together_really_do,
        no_more_than_eight_calls_run_at_the_same_time,
        tools_that_must_run_alone_wait_for_each_other,
        results_reach_the_model_in_the_order_of_the_calls,
        a_call_that_nobody_consents_to_is_not_made,
        a_call_that_is_denied_and_then_allowed_is_made_once,
        what_is_allowed_for_a_session_is_not_asked_again_in_it,
        what_is_denied_for_ever_is_not_asked_again_anywhere,
        one_who_allows_a_call_can_change_its_arguments,
        an_abort_ends_the_turn_and_answers_the_other_calls,
        an_approval_that_nobody_gives_in_time_is_a_denial,
        commands_that_are_granted_are_run_and_those_to_be_asked_for_are_not_without_somebody_to_ask,
        a_model_call_that_the_budget_does_not_cover_is_not_made,
        a_tool_call_beyond_the_budget_is_not_made,
        a_turn_of_one_round_makes_the_calls_and_stops,
        a_tool_that_takes_too_long_is_stopped,
        a_tool_that_panics_does_not_end_the_turn,
        a_model_that_calls_a_tool_which_is_not_there_is_told_which_one_it_meant,
        arguments_that_are_no_json_are_told_and_not_dispatched,
        the_same_failing_call_five_times_in_a_row_ends_the_turn,
        calls_of_the_same_id_get_ids_of_their_own,
        a_terminal_result_ends_the_turn_with_every_call_answered,
        with_content_final_only_the_last_round_is_heard,
        tools_that_only_the_host_has_are_called_there_and_own_ones_here,
        with_tools_via_host_every_call_goes_there,
        a_host_that_is_gone_is_a_failed_call,
        a_question_reaches_the_person_and_the_answer_the_model,
        what_a_script_calls_is_judged_and_counted_like_what_the_model_calls,
        a_person_who_is_asked_by_a_script_does_not_use_up_its_time,
        an_answer_that_does_not_fit_its_schema_is_repaired,
        an_answer_that_never_fits_fails_the_turn,
        a_provider_that_fails_fails_the_turn_and_leaves_what_can_be_resumed,
        a_turn_with_nothing_to_answer_says_so,
        a_turn_that_ignores_the_history_still_writes_to_it,
        a_listener_that_is_gone_ends_the_turn,
    ]
}

/// Calls one tool, and says `done` when it has the result.
fn once(name: &str, arguments: Value) -> [Answer; 2] {
    [calls([("c1", name, arguments)]), says("done")]
}

fn a_turn_goes_from_the_model_to_a_tool_and_back_to_an_answer() {
    block_on(async {
        let first = Answer {
            thoughts: "hm",
            says: "Let me look. ".to_owned(),
            ..calls([("c1", "look", json!({"at":1}))])
        };
        let mut bench = Bench::new([first, says("It is a cat.")]).with(echo("look", Mode::Read));
        let mut turn = bench.turn(&[user("What is it?")]);
        turn.system_prompt = Some("Be brief.".to_owned());
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "completed");
        assert_eq!(
            bench.log(),
            [
                "thinks hm",
                "delta Let ",
                "delta me ",
                "delta look. ",
                r#"call c1 look {"at":1}"#,
                "result c1 ok",
                "round_end 1",
                "delta It ",
                "delta is ",
                "delta a ",
                "delta cat.",
                "round_end 2",
            ]
        );
        let transcript = [
            "user: What is it?",
            r#"assistant: Let me look. [c1 look {"at":1}]"#,
            r#"tool c1: {"at":1}"#,
            "assistant: It is a cat.",
        ];
        assert_eq!(bench.transcript().await, transcript);
        let mut prompt = vec!["system: Be brief."];
        prompt.extend(&transcript[..3]);
        assert_eq!(bench.model.prompt(1), prompt);
    });
}

fn a_turn_leaves_a_trace_of_everything_it_did() {
    block_on(async {
        let mut answers = once("delete_it", json!({}));
        answers[0].usage = cost(10);
        answers[1].usage = cost(20);
        let mut bench =
            Bench::new(answers).with(echo("delete_it", Mode::Destructive)).deciding([Verdict::AllowOnce]);
        let mut turn = bench.turn(&[user("go")]);
        turn.approval = HOST;
        let ended = bench.run(turn).await;
        assert_eq!(ended.usage.total_tokens, 30);
        let tree = bench.trace().await;
        assert_eq!(tree.trace.status, TraceStatus::Completed);
        assert_eq!(tree.trace.total_tokens, Some(30));
        let spans: Vec<(&str, Option<&str>, &str)> = tree
            .spans
            .iter()
            .map(|span| (span.name.as_str(), span.parent_span_id.as_deref(), span.status.word()))
            .collect();
        assert_eq!(
            spans,
            [
                ("agent.run", None, "ok"),
                ("llm.request", Some("span_1"), "ok"),
                ("tool.delete_it", Some("span_1"), "ok"),
                ("approval.wait", Some("span_3"), "ok"),
                ("llm.request", Some("span_1"), "ok"),
            ]
        );
        let attrs = &tree.spans[1].attrs;
        let told = ["provider", "model", "round", "promptTokens", "finishReason", "attempts", "firstTokenMs"]
            .map(|name| attrs.get(name).cloned().unwrap_or_default());
        assert_eq!(
            told,
            [json!("scripted"), json!("fake"), json!(1), json!(10), json!("tool_calls"), json!(1), json!(1)]
        );
        let events: Vec<(&str, &str)> =
            tree.events.iter().map(|event| (event.kind.word(), event.name.as_str())).collect();
        assert_eq!(
            events,
            [
                ("lifecycle", "turn.begin"),
                ("llm_request", "llm.request"),
                ("llm_response", "llm.response"),
                ("tool_call", "delete_it"),
                ("policy", "approval"),
                ("tool_result", "delete_it"),
                ("llm_request", "llm.request"),
                ("llm_response", "llm.response"),
                ("completion", "turn.completed"),
            ]
        );
    });
}

fn tools_that_may_run_together_really_do() {
    block_on(async {
        let barrier = Arc::new(Barrier::new(2));
        let meets = FakeTool::new("meet", Mode::Read, Turns::Together, move |_, _| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                ok("met")
            }
        });
        let both = calls([("c1", "meet", json!({})), ("c2", "meet", json!({}))]);
        let mut bench = Bench::new([both, says("done")]).with(meets);
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        let transcript = bench.transcript().await;
        assert_eq!(&transcript[2..4], ["tool c1: met", "tool c2: met"]);
    });
}

/// A tool that counts how many of it run at the same time.
fn crowd(name: &str, turns: Turns) -> (FakeTool, Arc<AtomicUsize>) {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let tool = FakeTool::new(name, Mode::Read, turns, move |_, _| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&seen));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ok("")
        }
    });
    (tool, most)
}

fn no_more_than_eight_calls_run_at_the_same_time() {
    block_on(async {
        let (tool, most) = crowd("work", Turns::Together);
        let ids: Vec<String> = (0..20).map(|number| format!("c{number}")).collect();
        let many = Answer { calls: ids.iter().map(|id| (call(id, "work"), None)).collect(), ..calls([]) };
        let mut bench = Bench::new([many, says("done")]).with(tool);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(most.load(Ordering::SeqCst), 8);
        assert_eq!(bench.transcript().await.len(), 23);
    });
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: raw(&json!({})) }
}

fn tools_that_must_run_alone_wait_for_each_other() {
    block_on(async {
        let (tool, most) = crowd("work", Turns::Alone);
        let three = calls([("c1", "work", json!({})), ("c2", "work", json!({})), ("c3", "work", json!({}))]);
        let mut bench = Bench::new([three, says("done")]).with(tool);
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
    });
}

fn results_reach_the_model_in_the_order_of_the_calls() {
    block_on(async {
        let sleeper = FakeTool::new("sleep", Mode::Read, Turns::Together, |arguments, _| async move {
            tokio::time::sleep(Duration::from_secs(arguments["s"].as_u64().unwrap())).await;
            ok("slept")
        });
        let both = calls([("slow", "sleep", json!({"s": 9})), ("fast", "sleep", json!({"s": 1}))]);
        let mut bench = Bench::new([both, says("done")]).with(sleeper);
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        // Stored and told as they finish, so that nothing that is done can be lost; shown in order.
        assert_eq!(bench.log()[2..4], ["result fast ok", "result slow ok"]);
        assert_eq!(bench.model.prompt(1)[2..], ["tool slow: slept", "tool fast: slept"]);
    });
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

fn a_model_call_that_the_budget_does_not_cover_is_not_made() {
    block_on(async {
        let mut answers = once("look", json!({}));
        answers[0].usage = cost(990);
        let mut bench = Bench::new(answers).with(echo("look", Mode::Read));
        let mut turn = bench.turn(&[user("go")]);
        turn.budgets = Budgets { tokens: Some(1_000), ..Budgets::STANDARD };
        turn.request.max_tokens = Some(5_000);
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "budget_exhausted");
        assert_eq!(ended.reason.as_deref(), Some("tokens"));
        assert_eq!(bench.model.times_called(), 1);
        let asked = bench.model.seen.lock().unwrap()[0].max_tokens.unwrap();
        assert!((1..1_000).contains(&asked), "{asked}");
        assert_eq!(bench.log().last(), Some(&"budget_exhausted tokens 990/1000"));
        assert_eq!(bench.trace().await.trace.status, TraceStatus::BudgetExhausted);
    });
}

fn a_tool_call_beyond_the_budget_is_not_made() {
    block_on(async {
        let two = calls([("c1", "look", json!({})), ("c2", "look", json!({}))]);
        let tool = FakeTool::new("look", Mode::Read, Turns::Alone, |_, _| async { ok("") });
        let made = Arc::clone(&tool.calls);
        let mut bench = Bench::new([two]).with(tool);
        let mut turn = bench.turn(&[user("go")]);
        turn.budgets = Budgets { tool_calls: 1, ..Budgets::STANDARD };
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "budget_exhausted");
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(bench.log().last(), Some(&"budget_exhausted tool_calls 1/1"));
        assert!(bench.transcript().await[3].starts_with("tool c2: error: budget_exhausted"));
    });
}

fn a_turn_of_one_round_makes_the_calls_and_stops() {
    block_on(async {
        let mut bench = Bench::new(once("look", json!({}))).with(echo("look", Mode::Read));
        let mut turn = bench.turn(&[user("go")]);
        turn.budgets = Budgets { rounds: Some(1), ..Budgets::STANDARD };
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "budget_exhausted");
        assert_eq!(bench.model.times_called(), 1);
        assert_eq!(bench.log()[1..], ["result c1 ok", "round_end 1", "budget_exhausted rounds 1/1"]);
    });
}

fn a_tool_that_takes_too_long_is_stopped() {
    block_on(async {
        let hang = FakeTool::new("hang", Mode::Read, Turns::Alone, |_, _| std::future::pending());
        let mut bench = Bench::new(once("hang", json!({}))).with(hang);
        let mut turn = bench.turn(&[user("go")]);
        turn.tool_timeout = Duration::from_secs(5);
        turn.soft_timeout = Some(Duration::from_secs(2));
        let began = tokio::time::Instant::now();
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert_eq!(bench.log()[1..4], ["soft_timeout", "result c1 tool_timeout", "round_end 1"]);
        let tree = bench.trace().await;
        let span = tree.spans.iter().find(|span| span.name == "tool.hang").unwrap();
        assert_eq!(span.status, SpanStatus::Timeout);
    });
}

fn a_tool_that_panics_does_not_end_the_turn() {
    block_on(async {
        let broken = FakeTool::new("broken", Mode::Read, Turns::Together, |_, _| async {
            panic!("this tool panics on purpose")
        });
        let mut bench = Bench::new(once("broken", json!({}))).with(broken);
        let turn = bench.turn(&[user("go")]);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(
            bench.transcript().await[2],
            "tool c1: error: the tool broken broke down; this is a defect of the runtime"
        );
    });
}

fn a_model_that_calls_a_tool_which_is_not_there_is_told_which_one_it_meant() {
    block_on(async {
        let mut bench = Bench::new(once("readFile", json!({}))).with(echo("read_file", Mode::Read));
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        assert_eq!(
            bench.transcript().await[2],
            "tool c1: error: Unknown tool: readFile\nDid you mean read_file?"
        );
    });
}

fn arguments_that_are_no_json_are_told_and_not_dispatched() {
    block_on(async {
        let tool = echo("look", Mode::Read);
        let made = Arc::clone(&tool.calls);
        let mut answers = once("look", json!({}));
        answers[0].calls[0].1 = Some(r#"{"at": "#.to_owned());
        let mut bench = Bench::new(answers).with(tool);
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        assert_eq!(made.load(Ordering::SeqCst), 0);
        let told = &bench.transcript().await[2];
        assert!(
            told.starts_with("tool c1: error: invalid_arguments: the arguments of look are no JSON object"),
            "{told}"
        );
        assert!(told.ends_with(r#"begins with: {"at": "#), "{told}");
    });
}

fn the_same_failing_call_five_times_in_a_row_ends_the_turn() {
    block_on(async {
        let fail = FakeTool::new("fail", Mode::Read, Turns::Alone, |_, _| async {
            ToolResult::failure("no such file")
        });
        let answers: Vec<Answer> = (0..6).map(|_| calls([("c1", "fail", json!({"path": "x"}))])).collect();
        let mut bench = Bench::new(answers).with(fail);
        let turn = bench.turn(&[user("go")]);
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "unknown: the model made the same failing call of fail 5 times in a row");
        assert_eq!(ended.reason.as_deref(), Some("repeated_failure"));
        assert_eq!(bench.model.times_called(), 5);
        let transcript = bench.transcript().await;
        assert_eq!(transcript[4], "tool c1: error: no such file");
        assert!(transcript[6].contains("failed 3 times in a row"), "{}", transcript[6]);
    });
}

fn calls_of_the_same_id_get_ids_of_their_own() {
    block_on(async {
        let two = calls([("same", "look", json!({"n":1})), ("same", "look", json!({"n":2}))]);
        let mut bench = Bench::new([two, says("done")]).with(echo("look", Mode::Read));
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        assert_eq!(bench.transcript().await[2..4], [r#"tool same: {"n":1}"#, r#"tool call_1_2: {"n":2}"#]);
    });
}

fn a_terminal_result_ends_the_turn_with_every_call_answered() {
    block_on(async {
        let last = FakeTool::new("hand_over", Mode::Read, Turns::Alone, |_, _| async {
            ToolResult { terminal: Some(true), ..ok("over to you") }
        });
        let two = calls([("c1", "hand_over", json!({})), ("c2", "hand_over", json!({}))]);
        let mut bench = Bench::new([two]).with(last);
        let turn = bench.turn(&[user("go")]);
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "completed");
        assert_eq!(ended.reason.as_deref(), Some("terminal_result"));
        assert_eq!(
            bench.transcript().await[2..],
            ["tool c1: over to you", "tool c2: error: not_made: the turn has ended"]
        );
    });
}

fn with_content_final_only_the_last_round_is_heard() {
    block_on(async {
        let first = Answer { says: "Let me look.".to_owned(), ..calls([("c1", "look", json!({}))]) };
        let last = Answer { thoughts: "hm", ..says("It is a cat.") };
        let mut bench = Bench::new([first, last]).with(echo("look", Mode::Read));
        let mut turn = bench.turn(&[user("go")]);
        turn.content = ContentMode::Final;
        bench.run(turn).await;
        assert_eq!(
            bench.log(),
            [
                "call c1 look {}",
                "result c1 ok",
                "round_end 1",
                "round_end 2",
                "thinks hm",
                "delta It is a cat."
            ]
        );
    });
}

fn tools_that_only_the_host_has_are_called_there_and_own_ones_here() {
    block_on(async {
        let both = calls([("c1", "look", json!({})), ("c2", "read_mail", json!({"n":1}))]);
        let mut bench = Bench::new([both, says("done")]).with(echo("look", Mode::Read));
        let mut turn = bench.turn(&[user("go")]);
        turn.host_tools = vec![spec("look"), spec("read_mail")];
        turn.chat_id = Some("chat".to_owned());
        turn.tool_context = Map::from_iter([("tab".to_owned(), json!(3))]);
        bench.run(turn).await;
        assert_eq!(bench.asked(), [r#"invoke read_mail {"n":1} {"chatId":"chat","tab":3}"#]);
        let tools: Vec<String> =
            bench.model.seen.lock().unwrap()[0].tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(tools, ["look", "read_mail"]);
        assert_eq!(bench.model.prompt(1)[2..], ["tool c1: {}", "tool c2: from the host"]);
    });
}

fn with_tools_via_host_every_call_goes_there() {
    block_on(async {
        let tool = echo("look", Mode::Read);
        let made = Arc::clone(&tool.calls);
        let mut bench = Bench::new(once("look", json!({}))).with(tool).with(echo("own", Mode::Read));
        let mut turn = bench.turn(&[user("go")]);
        turn.routing = Routing::HostOnly;
        turn.host_tools = vec![spec("look")];
        bench.run(turn).await;
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert_eq!(bench.asked(), ["invoke look {} {}"]);
        assert_eq!(bench.model.seen.lock().unwrap()[0].tools.len(), 1);
    });
}

fn a_host_that_is_gone_is_a_failed_call() {
    block_on(async {
        let mut bench = Bench::new(once("look", json!({})));
        bench.host = Arc::new(FakeHost { gone: true, ..FakeHost::default() });
        let mut turn = bench.turn(&[user("go")]);
        turn.host_tools = vec![spec("look")];
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(bench.transcript().await[2], "tool c1: error: the host did not answer: it hung up");
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

fn an_answer_that_does_not_fit_its_schema_is_repaired() {
    block_on(async {
        let mut bench =
            Bench::new([says("It is seven."), says(r#"{"n":"7"}"#), says("```json\n{\"n\":7}\n```")]);
        let mut turn = bench.turn(&[user("How many?")]);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        turn.request.response_schema = Some(raw(&schema));
        let ended = bench.run(turn).await;
        assert_eq!(status(&ended), "completed");
        assert_eq!(ended.output, Some(json!({"n": 7})));
        let transcript = bench.transcript().await;
        assert_eq!(transcript.len(), 6);
        assert!(
            transcript[2].starts_with("user: Your answer does not fit the JSON Schema"),
            "{}",
            transcript[2]
        );
        assert!(transcript[4].contains("integer"), "{}", transcript[4]);
        assert!(bench.model.seen.lock().unwrap()[0].response_schema.is_some());
    });
}

fn an_answer_that_never_fits_fails_the_turn() {
    block_on(async {
        let mut bench = Bench::new([says("a"), says("b"), says("c")]);
        let mut turn = bench.turn(&[user("How many?")]);
        turn.request.response_schema = Some(raw(&json!({"type": "integer"})));
        let ended = bench.run(turn).await;
        assert!(status(&ended).starts_with("invalid_request: invalid_output: "), "{}", status(&ended));
        assert_eq!(ended.reason.as_deref(), Some("invalid_output"));
        assert_eq!(bench.model.times_called(), 3);
    });
}

fn a_provider_that_fails_fails_the_turn_and_leaves_what_can_be_resumed() {
    block_on(async {
        let half = Answer { says: "It is ".to_owned(), ..fails(FailureKind::Server) };
        let mut bench = Bench::new([half]);
        let turn = bench.turn(&[user("What is it?")]);
        assert_eq!(status(&bench.run(turn).await), "server: the provider said no");
        assert_eq!(bench.transcript().await, ["user: What is it?"]);
        assert_eq!(bench.trace().await.trace.status, TraceStatus::Error);

        let mut bench = bench.then([says("It is a cat.")]);
        let turn = bench.turn(&[]);
        assert_eq!(status(&bench.run(turn).await), "completed");
        assert_eq!(bench.transcript().await, ["user: What is it?", "assistant: It is a cat."]);
    });
}

fn a_turn_with_nothing_to_answer_says_so() {
    block_on(async {
        let mut bench = Bench::new([]);
        let turn = bench.turn(&[]);
        let ended = bench.run(turn).await;
        assert_eq!(ended.reason.as_deref(), Some("nothing_to_answer"));
        let mut bench = bench.then([says("hi")]);
        let turn = bench.turn(&[user("hi")]);
        bench.run(turn).await;
        let turn = bench.turn(&[]);
        assert_eq!(bench.run(turn).await.reason.as_deref(), Some("nothing_to_answer"));
        assert_eq!(bench.model.times_called(), 1);
    });
}

fn a_turn_that_ignores_the_history_still_writes_to_it() {
    block_on(async {
        let mut bench = Bench::new([says("one"), says("two")]);
        for words in ["first", "second"] {
            let mut turn = bench.turn(&[user(words)]);
            turn.history = History::Ignore;
            bench.run(turn).await;
        }
        assert_eq!(bench.model.prompt(1), ["user: second"]);
        assert_eq!(
            bench.transcript().await,
            ["user: first", "assistant: one", "user: second", "assistant: two"]
        );
    });
}

fn a_listener_that_is_gone_ends_the_turn() {
    block_on(async {
        for at in 0..4 {
            let mut bench = Bench::new(once("look", json!({}))).with(echo("look", Mode::Read));
            bench.recorder.gone_at = Some(at);
            let turn = bench.turn(&[user("go")]);
            let ended = bench.run(turn).await;
            assert_eq!(status(&ended), "cancelled", "{at}");
            assert_eq!(ended.reason.as_deref(), Some("nobody_listens"));
            assert_eq!(bench.model.times_called(), 1, "{at}");
        }
    });
}
