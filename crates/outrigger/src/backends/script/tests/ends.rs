//! How scripts end: failed, out of budget, cancelled, drained; and what is refused at the door.

use super::*;
use crate::runs::{Backend, Phase};

async fn ended(source: &str, members: Value) -> (RunState, Vec<String>) {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let run = runs.submit(script(source, members), me()).await.unwrap().id;
    let state = over(&runs, &run).await;
    assert_receipt(&bench, &runs, &state).await;
    let events = events(&runs, &run).await;
    (state, events)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_throws_fails_with_its_line_and_a_mark() {
    let (state, events) = ended("const x = 1;\nnull.f();", json!({})).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("fatal")));
    let error = state.error.unwrap();
    assert!(
        error.contains("--> script:2:") && error.contains("2 | null.f();") && error.contains('^'),
        "{error}"
    );
    assert!(!error.contains('\u{1b}'), "no colours: {error}");
    assert_eq!(events, ["started", "failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_none_fails_and_says_where() {
    let (state, _) = ended("let = ;", json!({})).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("fatal")));
    assert!(state.error.unwrap().contains("script:1:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_end_a_script_by_their_own_word() {
    let endless = "for (;;) {}";
    let (state, _) = ended(endless, json!({"limits": {"instructions": 10_000}})).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("budget")), "{:?}", state.error);
    let long = json!({"limits": {"instructions": 1_000_000_000_000_u64, "step_ms": 50}});
    let (state, _) = ended(endless, long).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("timeout")), "{:?}", state.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_makes_as_many_host_calls_as_it_may_and_not_one_more() {
    let calls = |count: usize| format!("for (let i = 0; i < {count}; i++) await safe('x'); 'done'");
    let (state, _) = ended(&calls(3), json!({"limits": {"host_calls": 3}})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.error);
    let (state, events) = ended(&calls(4), json!({"limits": {"host_calls": 3}})).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("budget")));
    assert_eq!(state.error.as_deref(), Some("the script made more than 3 host calls"));
    assert_eq!(events.iter().filter(|word| word.starts_with("call")).count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_gives_may_not_be_without_end() {
    let (state, _) = ended("'x'.repeat(2 * 1024 * 1024)", json!({})).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Failed, Some("budget")), "{:?}", state.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_can_be_cancelled_while_a_tool_works_and_while_a_person_thinks() {
    let bench = Bench::new();
    let runs = bench.daemon(Arc::new(bench.store()));
    let busy = runs.submit(script("await stuck('x')", json!({})), me()).await.unwrap().id;
    until(&runs, &busy, |state| state.spent.tool_calls == 1).await;
    runs.cancel(&busy, "enough".into(), me()).await.unwrap();
    let state = over(&runs, &busy).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Cancelled, Some("cancelled")));
    assert_eq!(state.error.as_deref(), Some("cancelled: enough"));
    assert_eq!(
        events(&runs, &busy).await,
        ["started", r#"call c1 stuck ["x"]"#, "error c1 Abandoned", "failed"]
    );
    assert_receipt(&bench, &runs, &state).await;

    let idle = runs.submit(script("await ask('x')", json!({})), me()).await.unwrap().id;
    until(&runs, &idle, |state| state.phase == Phase::Waiting).await;
    runs.cancel(&idle, "enough".into(), me()).await.unwrap();
    let state = over(&runs, &idle).await;
    assert_eq!((state.phase, state.ending.as_deref()), (Phase::Cancelled, Some("cancelled")));
}

#[test]
fn what_cannot_be_run_is_refused_at_the_door_with_what_to_do() {
    let bench = Bench::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let host = super::super::host::with(Arc::new(Threads), HostKey::from_bytes([7; 32])).unwrap();
    let scripts = Scripts::new(host, bench.tools());
    let refused = |members: Value| {
        let mut request = json!({"script": "1"});
        request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let new: NewRun = serde_json::from_value(request).unwrap();
        match scripts.check(&new) {
            Ok(()) => "taken".to_owned(),
            Err(error) => format!("{}: {}", error.field, error.message),
        }
    };
    assert_eq!(refused(json!({})), "taken");
    assert_eq!(
        refused(json!({"tools": {"x": {"tool": "saef"}}})),
        "tools.x: there is no tool `saef`; did you mean `safe`?"
    );
    assert_eq!(refused(json!({"tools": {"a-b": "person"}})), "tools.a-b: `a-b` is not a name in JavaScript");
    assert_eq!(refused(json!({"inputs": {"2x": 1}})), "inputs.2x: `2x` is not a name in JavaScript");
    let both = json!({"inputs": {"x": 1}, "tools": {"x": "person"}});
    assert_eq!(refused(both), "inputs.x: `x` is a tool already");
    assert_eq!(refused(json!({"limits": {"step_ms": 600_000}})), "taken");
    assert_eq!(
        refused(json!({"limits": {"step_ms": 600_001}})),
        "limits.step_ms: `step_ms` may be 1 to 600000"
    );
    assert_eq!(refused(json!({"limits": {"step_ms": 0}})), "limits.step_ms: `step_ms` may be 1 to 600000");
    let task: NewRun = serde_json::from_value(json!({"task": "do it"})).unwrap();
    assert_eq!(scripts.check(&task).unwrap_err().field, "script");
}
