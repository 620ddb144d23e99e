//! Turns that meet a limit, a mistake of the model, or a failure.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::agent::Budgets;
use outrigger_steerable::chat::ToolResult;
use outrigger_steerable::model::FailureKind;
use outrigger_steerable::protocol::{EventKind, SpanStatus, TraceStatus};
use outrigger_steerable::store::{MemoryLimits, Store};
use outrigger_steerable::tools::{Mode, Turns};
use serde_json::json;

use crate::agent_kit::{
    Answer, Bench, FakeHost, FakeTool, block_on, calls, cost, echo, fails, ok, once, raw, says, spec, status,
    user,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
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
        a_host_that_is_gone_is_a_failed_call,
        an_answer_that_does_not_fit_its_schema_is_repaired,
        an_answer_that_never_fits_fails_the_turn,
        a_provider_that_fails_fails_the_turn_and_leaves_what_can_be_resumed,
        a_turn_with_nothing_to_answer_says_so,
        a_listener_that_is_gone_ends_the_turn,
        a_provider_that_is_tried_again_is_told,
        a_result_that_cannot_be_stored_is_not_told_and_ends_the_turn,
    ]
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

fn a_provider_that_is_tried_again_is_told() {
    block_on(async {
        let mut bench = Bench::new([Answer { retries: 2, ..says("done") }]);
        let turn = bench.turn(&[user("go")]);
        bench.run(turn).await;
        assert_eq!(bench.log(), ["retry 1", "retry 2", "delta done", "round_end 1"]);
        let tree = bench.trace().await;
        assert_eq!(tree.events.iter().filter(|event| event.kind == EventKind::Retry).count(), 2);
    });
}

fn a_result_that_cannot_be_stored_is_not_told_and_ends_the_turn() {
    block_on(async {
        let large =
            FakeTool::new("large", Mode::Read, Turns::Alone, |_, _| async { ok(&"x".repeat(20_000)) });
        let mut bench = Bench::new(once("large", json!({}))).with(large);
        bench.store = Store::memory(MemoryLimits { bytes: 10_000, ..MemoryLimits::STANDARD });
        let turn = bench.turn(&[user("go")]);
        let ended = bench.run(turn).await;
        assert!(status(&ended).starts_with("unknown: storage: the store is full"), "{}", status(&ended));
        assert_eq!(ended.reason.as_deref(), Some("storage"));
        assert_eq!(bench.model.times_called(), 1);
        assert!(!bench.log().contains(&"result c1 ok"), "{:?}", bench.log());
    });
}
