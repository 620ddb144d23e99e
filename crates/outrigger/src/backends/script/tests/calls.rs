//! Calls of a script and everybody who can answer them.

use super::*;
use crate::runs::Phase;

#[tokio::test(flavor = "multi_thread")]
async fn a_script_calls_its_tools_and_ends_with_a_value_and_a_receipt() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "const a = await safe('one'); await print('got', a); ({ a, n: (await fixed()).n + offset })";
    let run = runs.submit(script(source, json!({"inputs": {"offset": 2}})), me()).await.unwrap().id;
    let state = over(&runs, &run).await;
    assert_eq!(
        (state.phase, state.ending.as_deref()),
        (Phase::Completed, Some("final")),
        "{:?}",
        state.error
    );
    assert_eq!(state.result.as_deref(), Some(r#"{"a":"ONE","n":7}"#));
    let expected = [
        "started",
        r#"call c1 safe ["one"]"#,
        r#"result c1 "ONE""#,
        r#"call c2 print ["got","ONE"]"#,
        "says got ONE",
        "result c2 null",
        "call c3 fixed []",
        r#"result c3 {"n":5}"#,
        "completed",
    ];
    assert_eq!(events(&runs, &run).await, expected);
    assert_receipt(&bench, &runs, &state).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_waits_for_a_person_holds_nothing_and_goes_on_under_another_daemon() {
    let bench = Bench::new();
    let source = "const name = await ask('who?'); await safe(name)";
    let run = {
        let runs = bench.daemon(Arc::new(bench.store()));
        let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
        let state = until(&runs, &run, |state| state.phase == Phase::Waiting).await;
        let asked = &state.approvals[0];
        assert_eq!(
            (asked.key.as_str(), asked.tool.as_str(), asked.input.as_str()),
            ("1", "ask", r#"["who?"]"#)
        );
        assert_eq!(asked.choices, [Choice::Answer, Choice::Deny]);
        runs.drain(Duration::from_secs(10)).await;
        run
    };
    let runs = bench.daemon(Arc::new(reopened(&bench).await));
    assert_eq!(runs.show(&run).await.unwrap().phase, Phase::Waiting);
    answer(&runs, &run, value(json!("anna"))).await;
    let state = over(&runs, &run).await;
    assert_eq!((state.phase, state.result.as_deref()), (Phase::Completed, Some("\"ANNA\"")));
    assert_eq!(state.attempt, 1);
    let account = verify(&bench.receipts().path().join(state.receipt.as_ref().unwrap().file.clone()));
    let account = account.unwrap().receipt.unwrap().outrigger().unwrap();
    assert_eq!(account["approvals"][0]["answer"]["choice"], "answer");
    assert_eq!(account["approvals"][0]["answer"]["by"], "test");
    assert_receipt(&bench, &runs, &state).await;
}

/// The store again; the tasks of the last daemon let go of it one by one.
async fn reopened(bench: &Bench) -> Sqlite {
    for _ in 0..10_000 {
        if let Ok(store) = Sqlite::open(&bench.folder.path().join("runs.sqlite")) {
            return store;
        }
        tokio::task::yield_now().await;
    }
    bench.store()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_edits_answers_or_denies_a_tool() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "const out = []; for (const x of ['a', 'b', 'c', 'd']) { try { out.push(await checked(x)); } \
                  catch (e) { out.push(e.name + ': ' + e.message + ' ' + e.code); } } out.join()";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    answer(&runs, &run, plainly(Choice::Approve)).await;
    answer(&runs, &run, Answer { arguments: Some(json!(["z"])), ..plainly(Choice::Edit) }).await;
    answer(&runs, &run, value(json!("mine"))).await;
    answer(&runs, &run, Answer { reason: Some("not today".into()), ..plainly(Choice::Deny) }).await;
    let state = over(&runs, &run).await;
    assert_eq!(state.result.as_deref(), Some("\"A,Z,mine,Denied: not today denied\""), "{:?}", state.error);
    assert_eq!(bench.called(), ["a", "z"]);
    let expected = [
        "started",
        r#"call c1 checked ["a"]"#,
        r#"result c1 "A""#,
        r#"call c2 checked ["b"]"#,
        r#"result c2 "Z""#,
        r#"call c3 checked ["c"]"#,
        r#"result c3 "mine""#,
        r#"call c4 checked ["d"]"#,
        "error c4 Denied",
        "completed",
    ];
    assert_eq!(events(&runs, &run).await, expected);
    assert_receipt(&bench, &runs, &state).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_approves_always_is_asked_once_a_tool() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "await checked('a'); await checked('b'); await guarded('c'); 'done'";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    answer(&runs, &run, plainly(Choice::ApproveAlways)).await;
    answer(&runs, &run, plainly(Choice::Approve)).await;
    let state = over(&runs, &run).await;
    assert_eq!(state.phase, Phase::Completed);
    let asked: Vec<&str> = state.approvals.iter().map(|asked| asked.tool.as_str()).collect();
    assert_eq!(asked, ["checked", "guarded"]);
    assert_eq!(bench.called(), ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stepped_through_asks_before_every_call() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let run = runs.submit(script("await safe('a'); fixed()", json!({"step": true})), me()).await.unwrap().id;
    answer(&runs, &run, plainly(Choice::Approve)).await;
    answer(&runs, &run, plainly(Choice::Approve)).await;
    let state = over(&runs, &run).await;
    assert_eq!((state.approvals.len(), state.result.as_deref()), (2, Some(r#"{"n":5}"#)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_the_order_denies_tools_and_wants_people_by_the_tools_own_names() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let policy = json!({"policy": {
        "allowed_tools": [], "disallowed_tools": ["risky"], "deny_read": [], "deny_write": [],
        "allow_network": [], "deny_network": [], "require_approval_for": ["safe"],
    }});
    let source = "let said; try { await checked('a'); } catch (e) { said = e.code + ' ' + e.message; } \
                  [said, await safe('b')].join('|')";
    let run = runs.submit(script(source, policy), me()).await.unwrap().id;
    answer(&runs, &run, plainly(Choice::Approve)).await;
    let state = over(&runs, &run).await;
    let denied = "policy_denied the script may not call `risky`";
    let result = state.result.unwrap();
    assert!(result.contains(denied) && result.ends_with("|B\""), "{result}");
    assert_eq!(bench.called(), ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_house_forbids_no_order_allows() {
    let mut bench = Bench::new();
    bench.house.disallowed_tools.push("safe".into());
    let runs = bench.daemon(Arc::new(bench.store()));
    let run = runs.submit(script("await safe('a')", json!({})), me()).await.unwrap().id;
    let state = over(&runs, &run).await;
    assert_eq!((state.phase, bench.called().len()), (Phase::Failed, 0));
    assert!(state.error.unwrap().contains("may not call `safe`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_race_is_won_by_the_first_answer_and_the_script_goes_on_before_the_others() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "const first = await Promise.race([ask('slow'), safe('fast')]); await print(first); first";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    // A tool that was called is waited for, also by a script that has nothing more to do.
    until(&runs, &run, |state| state.phase == Phase::Waiting && state.spent.tool_calls == 2).await;
    answer(&runs, &run, value(json!("late"))).await;
    let state = over(&runs, &run).await;
    assert_eq!((state.phase, state.result.as_deref()), (Phase::Completed, Some("\"FAST\"")));
    let expected = [
        "started",
        r#"call c2 safe ["fast"]"#,
        r#"result c2 "FAST""#,
        r#"call c3 print ["FAST"]"#,
        "says FAST",
        "result c3 null",
        r#"call c1 ask ["slow"]"#,
        r#"result c1 "late""#,
        "completed",
    ];
    assert_eq!(events(&runs, &run).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_at_once_than_may_be_made_at_once_are_all_made() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source =
        "const all = []; for (let i = 0; i < 70; i++) all.push(safe('x')); (await Promise.all(all)).length";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    let state = over(&runs, &run).await;
    assert_eq!((state.result.as_deref(), bench.called().len()), (Some("70"), 70), "{:?}", state.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_gives_the_same_answers_and_calls_nobody() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "const n = Math.random(); const a = await safe('one'); const b = await ask('two'); \
                  await print(String(n) + Date.now()); [n, a, b]";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    answer(&runs, &run, value(json!({"b": 1, "a": 2}))).await;
    let first = over(&runs, &run).await;
    assert_eq!(first.phase, Phase::Completed, "{:?}", first.error);
    let again = runs.replay(&run, me()).await.unwrap().id;
    let second = over(&runs, &again).await;
    assert_eq!((second.phase, &second.result), (Phase::Completed, &first.result), "{:?}", second.error);
    assert_eq!(bench.called(), ["one"]);
    assert!(second.approvals.is_empty());
    let calls =
        |events: Vec<String>| events.into_iter().filter(|word| !word.starts_with("says")).collect::<Vec<_>>();
    assert_eq!(calls(events(&runs, &again).await), calls(events(&runs, &run).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_from_a_call_in_the_middle() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let source = "const a = await safe('one'); const b = await ask('two'); a + b";
    let run = runs.submit(script(source, json!({})), me()).await.unwrap().id;
    let state = answer(&runs, &run, value(json!("x"))).await;
    over(&runs, &run).await;
    let mut at = None;
    for (index, line) in lines(&runs, &run).await.iter().enumerate() {
        if let Entry::Suspended(suspended) = &line.entry
            && suspended.calls[0].capability == "ask"
        {
            at = Some(Seq(index as u64 + 1));
        }
    }
    let fork = runs.fork(&state.id, at, me()).await.unwrap().id;
    answer(&runs, &fork, value(json!("y"))).await;
    let state = over(&runs, &fork).await;
    assert_eq!(state.result.as_deref(), Some("\"ONEy\""), "{:?}", state.error);
    assert_eq!(bench.called(), ["one"], "what was before the fork is not done again");
    assert_receipt(&bench, &runs, &state).await;
}
