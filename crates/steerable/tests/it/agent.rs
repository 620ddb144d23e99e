//! Turns of an agent: from the model to tools and back, side by side where that is safe, over a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::agent::{self, Approval, ContentMode, History, Routing, Verdict, World};
use outrigger_steerable::chat::{Part, ToolResult};
use outrigger_steerable::model::{Client, Provider};
use outrigger_steerable::net::Http;
use outrigger_steerable::protocol::TraceStatus;
use outrigger_steerable::store::Store;
use outrigger_steerable::tools::{Mode, Turns};
use serde_json::{Map, json};
use tokio::sync::Barrier;

use crate::agent_kit::{
    Answer, Bench, FakeTool, block_on, call, calls, cost, echo, ok, once, says, spec, status, user,
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
        with_content_final_only_the_last_round_is_heard,
        tools_that_only_the_host_has_are_called_there_and_own_ones_here,
        with_tools_via_host_every_call_goes_there,
        a_turn_that_ignores_the_history_still_writes_to_it,
        pictures_reach_a_provider_that_takes_them_and_are_named_to_others,
        a_real_script_and_a_real_file_carry_a_turn_over_a_restart,
    ]
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

fn pictures_reach_a_provider_that_takes_them_and_are_named_to_others() {
    block_on(async {
        for (provider, pictures) in [(Provider::Messages, 1), (Provider::ChatCompletions, 0)] {
            let camera = FakeTool::new("photo", Mode::Read, Turns::Alone, |_, _| async {
                ToolResult::success(Map::new())
                    .with("images", json!([{"mediaType": "image/png", "data": "AAAA"}]))
            });
            let mut bench = Bench::new(once("photo", json!({}))).with(camera);
            let mut turn = bench.turn(&[user("go")]);
            turn.request.provider = provider;
            bench.run(turn).await;
            let seen = bench.model.seen.lock().unwrap();
            let message = seen[1].messages.last().unwrap();
            assert_eq!(message.parts.iter().filter(|part| matches!(part, Part::Image(_))).count(), pictures);
            assert_eq!(message.plain_text().contains("returned pictures"), pictures == 0);
        }
    });
}

fn a_real_script_and_a_real_file_carry_a_turn_over_a_restart() {
    let script = concat!(
        r#"{"chunks":[{"delta":"Let me look."},{"toolCall":{"id":"c1","name":"look","arguments":{"at":1}}},{"finishReason":"tool_calls"}]}"#,
        "\n",
        r#"{"chunks":[{"delta":"It is a cat."},{"usage":{"promptTokens":5,"completionTokens":4,"totalTokens":9}},{"finishReason":"stop"}]}"#,
        "\n",
    );
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("script.jsonl"), folder.path().join("store.db"));
    std::fs::write(&path, script).unwrap();
    let client = || Arc::new(Client::new(Http::new()));
    let mut lost = None;
    for hang in [true, false] {
        // The store has a thread of its own, so the clock has to be the real one; and tasks that were given up hold the file
        // until their runtime is gone.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut bench = Bench::new([]);
        bench.store = Store::open(&file).unwrap();
        let called = Arc::new(tokio::sync::Notify::new());
        let told = Arc::clone(&called);
        bench.toolbox.add(Arc::new(FakeTool::new("look", Mode::Read, Turns::Together, move |_, _| {
            let told = Arc::clone(&told);
            async move {
                told.notify_one();
                if hang { std::future::pending().await } else { ok("a cat") }
            }
        })));
        let messages = if hang { vec![user("What is it?")] } else { Vec::new() };
        let mut turn = bench.turn(&messages);
        turn.request.base_url = Some(path.to_str().unwrap().to_owned());
        let world = World { model: client(), ..bench.world() };
        let (_ear, steering) = tokio::sync::mpsc::channel(1);
        runtime.block_on(async {
            let run = agent::run(turn, world, steering, bench.cancel.clone(), &mut bench.recorder);
            tokio::select! {
                ended = run => assert_eq!(status(&ended), "completed"),
                // The process dies while the tool runs.
                () = async { called.notified().await; if !hang { std::future::pending().await } } => {}
            }
        });
        let transcript = runtime.block_on(bench.transcript());
        lost.get_or_insert(transcript.len());
        if !hang {
            assert_eq!(transcript[0], "user: What is it?");
            assert_eq!(transcript[1], r#"assistant: Let me look.[c1 look {"at":1}]"#);
            assert!(transcript[2].contains("interrupted"), "{}", transcript[2]);
            assert_eq!(transcript[3..], ["assistant: It is a cat."]);
        }
    }
    assert_eq!(lost, Some(2));
}
