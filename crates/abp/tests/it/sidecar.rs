//! The kit for authors under a scripted host: whatever the handler and the host do, the protocol is kept.

use std::borrow::Cow;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::protocol::{
    AgentEvent, Counts, ErrorCode, EventKind, Outcome, Raw, Timestamp, Usage, UsageReport,
};
use outrigger_abp::sidecar::{
    By, Done, EmitError, Failure, MAX_ARTIFACTS, MAX_QUESTIONS, Options, Question, ToolUse, Tooled,
};
use serde_json::json;

use crate::host_kit::trial;
use crate::sidecar_kit::{Host, RUN};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_run_streams_and_its_receipt_is_whole", a_run_streams_and_its_receipt_is_whole),
        trial("all_kinds_of_events_travel_and_a_vendors_bytes_are_kept", all_kinds_of_events),
        trial("a_handler_that_fails_or_panics_ends_its_run_with_one_fatal", failures),
        trial("pings_are_answered_when_idle_and_during_a_run", pings),
        trial("a_cancelled_run_ends_partial_also_when_the_handler_ignores_it", cancels),
        trial("runs_follow_each_other_and_a_second_one_at_the_same_time_is_refused", sequence),
        trial("input_that_is_closed_after_the_run_does_not_end_it", closed_input),
        trial("nonsense_is_answered_when_idle_and_logged_during_a_run", nonsense),
        trial("questions_go_to_a_host_that_knows_them_and_else_to_the_policy", questions),
        trial("a_host_that_stops_listening_leaves_questions_to_the_policy", silent_host),
        trial("a_tool_says_what_it_does_and_what_is_denied", tools),
        trial("what_is_spent_is_summed_and_told_to_hosts_that_count", usage),
        trial("nothing_follows_the_end_of_a_run", late_events),
        trial("a_host_that_is_gone_ends_the_sidecar_and_drops_the_handler", gone_host),
        trial("an_event_that_is_dropped_half_way_does_not_cut_a_line", dropped_halfway),
        trial("a_line_of_64_mib_is_read_and_one_byte_more_ends_the_sidecar_with_a_reason", longest_line),
        trial("questions_and_artifacts_have_a_limit", most_questions_and_artifacts),
    ]
}

async fn a_run_streams_and_its_receipt_is_whole() {
    let mut host = Host::of(Options { trace_events: 1, ..Options::usual() }, |run| async move {
        run.delta("a").await?;
        run.message(&run.order().task).await?;
        run.artifact("patch", "out.patch");
        Ok(Done { usage_raw: Some(Raw::of(&7).unwrap()), ..Done::as_it_went() })
    })
    .await;
    host.run(json!({"id":"11111111-2222-3333-4444-555555555555","task":"say hello"})).await;
    let first = host.hear().await;
    assert_eq!((&first["ref_id"], &first["event"]["text"]), (&json!(RUN), &json!("a")));
    let (types, end) = host.rest().await;
    assert_eq!(types, ["assistant_message"]);
    let mut receipt = end["receipt"].clone();
    let meta = receipt["meta"].take();
    assert_eq!(
        (&meta["run_id"], &meta["work_order_id"], &meta["contract_version"]),
        (&json!(RUN), &json!("11111111-2222-3333-4444-555555555555"), &json!("abp/v0.1"))
    );
    let time = |name: &str| Timestamp::parse(meta[name].as_str().unwrap()).unwrap();
    assert!(time("started_at") <= time("finished_at"));
    assert_eq!(
        receipt,
        json!({"meta":null,"backend":{"id":"kit","backend_version":null,"adapter_version":null},"capabilities":{},"mode":"mapped",
               "usage_raw":7,"usage":{"input_tokens":null,"output_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,
               "request_units":null,"estimated_cost_usd":null},"trace":[first["event"]],"artifacts":[{"kind":"patch","path":"out.patch"}],
               "verification":{"git_diff":null,"git_status":null,"harness_ok":true},"outcome":"complete","receipt_sha256":null})
    );
    host.close().await;
    assert_eq!(host.line().await, None);
    host.serving.await.unwrap();
}

async fn all_kinds_of_events() {
    const VENDOR: &str = "{\"raw_message\":{ \"b\":1.0,\n \"a\":[1e3] }}";
    let mut host = Host::of(Options::usual(), |run| async move {
        let call = ToolUse {
            id: Some("u1".into()),
            parent: Some("u0".into()),
            ..ToolUse::new("Read", Raw::new("{\"x\":1}").unwrap())
        };
        run.started("go").await?;
        run.delta("a").await?;
        run.message("ab").await?;
        run.tool_call(&call).await?;
        run.tool_result(&call, Ok(Raw::NULL)).await?;
        run.file_changed("a", "new").await?;
        run.command_executed("ls", Some(0), None).await?;
        run.warning("careful").await?;
        run.error("hm", Some(ErrorCode::ExecutionToolFailed)).await?;
        let kind = EventKind::RunCompleted { message: Cow::Borrowed("done") };
        let ext = Some(Raw::new(VENDOR).unwrap());
        run.emit(AgentEvent { ext, ..AgentEvent::now(kind) }).await?;
        Ok(Done::with(Outcome::Failed))
    })
    .await;
    host.run(json!({})).await;
    let mut types = Vec::new();
    let mut last = String::new();
    for _ in 0..10 {
        last = host.line().await.unwrap();
        let message: serde_json::Value = serde_json::from_str(&last).unwrap();
        types.push(message["event"]["type"].as_str().unwrap().to_owned());
    }
    let expected = "run_started assistant_delta assistant_message tool_call tool_result file_changed command_executed warning error run_completed";
    assert_eq!(types.join(" "), expected);
    assert!(last.ends_with("\"ext\":{\"raw_message\":{ \"b\":1.0,  \"a\":[1e3] }}}}"), "{last}");
    let (_, end) = host.rest().await;
    assert_eq!(end["receipt"]["outcome"], "failed");
    // An order without an id gets one that hosts of the original can read.
    assert_eq!(end["receipt"]["meta"]["work_order_id"], "00000000-0000-0000-0000-000000000000");
}

async fn failures() {
    let mut host = Host::of(Options::usual(), |run| async move {
        match run.order().task.as_str() {
            "panic" => panic!("out of cheese"),
            "unknown" => Err(Failure::new("x", ErrorCode::from("weather_bad"))),
            _ => Err(Failure::new("no key", ErrorCode::BackendAuthFailed)),
        }
    })
    .await;
    for (task, error, code) in [
        ("fail", "no key", json!("backend_auth_failed")),
        ("panic", "the handler panicked: out of cheese", json!("internal")),
        ("unknown", "x", json!(null)),
    ] {
        host.run(json!({ "task": task })).await;
        let (types, end) = host.rest().await;
        assert!(types.is_empty());
        assert_eq!((&end["ref_id"], &end["error"], &end["error_code"]), (&json!(RUN), &json!(error), &code));
    }
}

async fn pings() {
    let mut host = Host::of(Options::usual(), |run| async move {
        run.started("").await?;
        run.cancelled().await;
        Ok(Done::as_it_went())
    })
    .await;
    host.say(r#"{"t":"ping","seq":18446744073709551615}"#).await;
    assert_eq!(host.line().await.unwrap(), r#"{"t":"pong","seq":18446744073709551615}"#);
    host.run(json!({})).await;
    assert_eq!(host.hear().await["event"]["type"], "run_started");
    host.say(r#"{"t":"ping","seq":7}"#).await;
    assert_eq!(host.line().await.unwrap(), r#"{"t":"pong","seq":7}"#);
}

async fn cancels() {
    let grace = Duration::from_millis(50);
    let mut host = Host::of(Options { cancel_grace: grace, ..Options::usual() }, |run| async move {
        run.started("").await?;
        match run.order().task.as_str() {
            "polite" => assert_eq!(run.cancelled().await, "enough"),
            _ => std::future::pending().await,
        }
        run.warning("cleaned up").await?;
        Ok(Done::as_it_went())
    })
    .await;
    for (task, expected) in [("polite", vec!["warning"]), ("deaf", vec![])] {
        host.run(json!({ "task": task })).await;
        host.hear().await;
        host.say(json!({"t":"cancel","ref_id":"another","reason":"no"})).await;
        host.say(json!({"t":"cancel","ref_id":RUN,"reason":"enough"})).await;
        let (types, end) = host.rest().await;
        assert_eq!(
            (types, &end["receipt"]["outcome"]),
            (expected.into_iter().map(str::to_owned).collect(), &json!("partial"))
        );
    }
}

async fn sequence() {
    let mut host = Host::of(Options::usual(), |run| async move {
        run.started("").await?;
        if run.order().task == "wait" {
            run.cancelled().await;
        }
        Ok(Done::as_it_went())
    })
    .await;
    host.run(json!({"task":"wait"})).await;
    host.hear().await;
    host.say(json!({"t":"run","id":"second","work_order":{}})).await;
    let refused = host.hear().await;
    assert_eq!(
        (&refused["t"], &refused["ref_id"], &refused["error_code"]),
        (&json!("fatal"), &json!("second"), &json!("protocol_unexpected_message"))
    );
    host.say(json!({"t":"cancel","ref_id":RUN})).await;
    host.rest().await;
    for _ in 0..20 {
        host.run(json!({})).await;
        assert_eq!(host.rest().await.1["t"], "final");
    }
}

async fn closed_input() {
    let mut host = Host::of(Options::usual(), |run| async move {
        for _ in 0..1000 {
            run.delta(&"x".repeat(500)).await?;
        }
        Ok(Done::as_it_went())
    })
    .await;
    host.run(json!({})).await;
    host.close().await;
    let (types, end) = host.rest().await;
    assert_eq!((types.len(), &end["t"]), (1000, &json!("final")));
    assert_eq!(host.line().await, None);
}

async fn nonsense() {
    let mut host = Host::of(Options::usual(), |run| async move {
        run.started("").await?;
        run.cancelled().await;
        Ok(Done::as_it_went())
    })
    .await;
    host.say("").await;
    host.say(r#"{"t":"#).await;
    let fatal = host.hear().await;
    assert_eq!((&fatal["t"], &fatal["ref_id"]), (&json!("fatal"), &json!(null)));
    assert!(fatal["error"].as_str().unwrap().starts_with("invalid json: "), "{fatal}");
    host.say(json!({"t":"run","id":"x","work_order":"tidy up"})).await;
    let fatal = host.hear().await;
    assert_eq!((&fatal["ref_id"], &fatal["error_code"]), (&json!("x"), &json!("contract_schema_violation")));
    host.say(json!({"t":"dance"})).await;
    host.say(json!({"t":"run","id":RUN,"work_order":{"unknown":1,"config":null},"unknown":2})).await;
    assert_eq!(host.hear().await["event"]["type"], "run_started");
    host.say("garbage").await;
    host.say(json!({"t":"dance"})).await;
    host.say(json!({"t":"cancel","ref_id":RUN})).await;
    assert_eq!(host.rest().await.1["t"], "final");
}

async fn questions() {
    let mut host = Host::of(Options::usual(), |run| async move {
        let tool =
            Question::tool("Bash", Raw::new("{\"command\":\"ls\"}").unwrap()).for_call(Some("u".into()));
        let (tool, network) = tokio::join!(run.ask(tool), run.ask(Question::network("example.org")));
        let (tool, network) = (tool?, network?);
        run.message(&format!("{}/{:?} {}/{:?}", tool.decision, tool.by, network.decision, network.by))
            .await?;
        Ok(Done::as_it_went())
    })
    .await;
    host.run_offering(&["ask"]).await;
    let first = host.hear().await;
    assert_eq!(
        first,
        json!({"t":"ask","ref_id":RUN,"id":"ask-1","action":"tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"u"})
    );
    assert_eq!(
        host.hear().await,
        json!({"t":"ask","ref_id":RUN,"id":"ask-2","action":"network","host":"example.org"})
    );
    for (id, decision) in [("ask-2", "deny"), ("ask-9", "allow"), ("ask-1", "allow")] {
        host.say(json!({"t":"answer","ref_id":RUN,"id":id,"decision":decision,"reason":"so"})).await;
    }
    assert_eq!(host.hear().await["event"]["text"], "allow/Host deny/Host");
    host.rest().await;
    // A host that knows no questions.
    host.run(json!({"policy":{"require_approval_for":["Bash"]}})).await;
    assert_eq!(host.hear().await["event"]["text"], "deny/Policy allow/Policy");
    host.rest().await;
    // A cancel is an answer too.
    host.run_offering(&["ask"]).await;
    host.hear().await;
    host.hear().await;
    host.say(json!({"t":"cancel","ref_id":RUN,"reason":"enough"})).await;
    assert_eq!(host.hear().await["event"]["text"], "deny/Cancel deny/Cancel");
}

async fn silent_host() {
    let mut host = Host::of(Options::usual(), |run| async move {
        let first = run.ask(Question::network("example.org")).await?;
        let second = run.ask(Question::network("example.org")).await?;
        assert_eq!((first.by, second.by), (By::Policy, By::Policy));
        Ok(Done::as_it_went())
    })
    .await;
    host.run_offering(&["ask"]).await;
    assert_eq!(host.hear().await["t"], "ask");
    host.close().await;
    let (types, end) = host.rest().await;
    assert_eq!((types.len(), &end["t"]), (0, &json!("final")));
}

async fn tools() {
    let mut host = Host::of(Options::usual(), |run| async move {
        let call = |name| ToolUse::new(name, Raw::new("{}").unwrap());
        let done = run.tool(&call("Twice"), || async { Ok(Raw::of(&4).unwrap()) }).await?;
        assert_eq!(done, Tooled::Done(Raw::of(&4).unwrap()));
        let denied = run.tool(&call("Bash"), || async { panic!("it was denied") }).await?;
        assert!(matches!(denied, Tooled::Denied(_)));
        let failed = run.tool(&call("Breaks"), || async { Err(Failure::internal("broken")) }).await?;
        assert_eq!(failed, Tooled::Failed(Failure::internal("broken")));
        Ok(Done::as_it_went())
    })
    .await;
    host.run(json!({"policy":{"disallowed_tools":["Ba*"]}})).await;
    let (types, end) = host.rest().await;
    assert_eq!(types, ["tool_call", "tool_result", "warning", "tool_result", "tool_call", "tool_result"]);
    assert_eq!(end["t"], "final", "{end}");
}

async fn usage() {
    let mut host = Host::of(Options::usual(), |run| async move {
        let report = |input, output, counts| UsageReport {
            usage: Usage {
                input_tokens: input,
                output_tokens: output,
                estimated_cost_usd: Some(0.5),
                ..Usage::default()
            },
            turns: None,
            counts,
        };
        run.usage(report(Some(3), None, Counts::Increments)).await?;
        run.usage(report(Some(4), Some(10), Counts::Increments)).await?;
        run.usage(report(None, Some(7), Counts::Totals)).await?;
        Ok(Done::as_it_went())
    })
    .await;
    for (features, events) in [(vec![], 0), (vec!["usage"], 3)] {
        host.run_offering(&features).await;
        let (types, end) = host.rest().await;
        assert_eq!(types, vec!["usage"; events]);
        let spent = &end["receipt"]["usage"];
        assert_eq!(
            (
                &spent["input_tokens"],
                &spent["output_tokens"],
                &spent["estimated_cost_usd"],
                &spent["request_units"]
            ),
            (&json!(7), &json!(10), &json!(1.0), &json!(null))
        );
    }
}

async fn late_events() {
    let (say, heard) = tokio::sync::oneshot::channel();
    let say = std::sync::Mutex::new(Some(say));
    let mut host = Host::of(Options::usual(), move |run| {
        let _ = say.lock().unwrap().take().unwrap().send(run.clone());
        async { Ok(Done::as_it_went()) }
    })
    .await;
    host.run(json!({})).await;
    host.rest().await;
    let run = heard.await.unwrap();
    assert_eq!(run.delta("too late").await, Err(EmitError::Ended));
    assert_eq!(run.ask(Question::read("x")).await.map(|answered| answered.by), Ok(By::Policy));
    // A run that somebody holds holds the stream.
    drop(run);
    host.close().await;
    assert_eq!(host.line().await, None);
}

async fn gone_host() {
    let (dropped, noticed) = tokio::sync::oneshot::channel::<()>();
    let dropped = std::sync::Mutex::new(Some(dropped));
    let mut host = Host::of(Options::usual(), move |run| {
        let held = dropped.lock().unwrap().take();
        async move {
            let _held = held;
            loop {
                run.delta(&"x".repeat(1000)).await?;
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    host.run(json!({})).await;
    host.hear().await;
    host.leave().await.unwrap();
    assert!(noticed.await.is_err(), "the handler is dropped");
}

async fn dropped_halfway() {
    let mut host = Host::of(Options::usual(), |run| async move {
        let long = "y".repeat(1 << 20);
        // The pipe takes a part of it, and nobody waits for the rest.
        let sending = run.delta(&long);
        tokio::select! {
            biased;
            _ = sending => panic!("the pipe does not hold so much"),
            () = tokio::task::yield_now() => {}
        }
        run.delta("short").await?;
        Ok(Done::as_it_went())
    })
    .await;
    host.run(json!({})).await;
    let long = host.hear().await;
    assert_eq!(long["event"]["text"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(host.hear().await["event"]["text"], "short");
}

async fn longest_line() {
    let padded = |length: usize| {
        let (head, tail) = ("{\"t\":\"ping\",\"seq\":1", "}");
        format!("{head}{}{tail}", " ".repeat(length - head.len() - tail.len()))
    };
    let mut host = Host::of(Options::usual(), |_| async { Ok(Done::as_it_went()) }).await;
    host.say(padded(64 << 20)).await;
    assert_eq!(host.hear().await, json!({"t":"pong","seq":1}));
    host.say(padded((64 << 20) + 1)).await;
    let fatal = host.hear().await;
    assert_eq!((&fatal["t"], &fatal["ref_id"]), (&json!("fatal"), &json!(null)));
    assert!(fatal["error"].as_str().unwrap().contains("67108864"), "{fatal}");
    assert_eq!(host.line().await, None);
}

async fn most_questions_and_artifacts() {
    let mut host = Host::of(Options::usual(), |run| async move {
        for number in 0..=MAX_ARTIFACTS {
            run.artifact("file", number.to_string());
        }
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..=MAX_QUESTIONS {
            let run = run.clone();
            waiting.spawn(async move { run.ask(Question::network("example.org")).await });
        }
        // Nobody answers, so the first that is answered is the one too many.
        let first = waiting.join_next().await.unwrap().unwrap()?;
        assert_eq!(first.by, By::Policy);
        Ok(Done::as_it_went())
    })
    .await;
    host.run_offering(&["ask"]).await;
    let (types, end) = host.rest().await;
    let asked = types.iter().filter(|t| *t == "ask").count();
    assert_eq!(
        (asked, end["receipt"]["artifacts"].as_array().unwrap().len()),
        (MAX_QUESTIONS, MAX_ARTIFACTS)
    );
}
