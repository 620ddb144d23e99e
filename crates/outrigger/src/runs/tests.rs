//! Runs over a real store, with backends that do as they are told.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, EventKind};
use outrigger_abp::receipt::{Folder, SpoolLimit};
use outrigger_policy::Digest;
use serde_json::json;
use serde_json::value::RawValue;

use super::backend::{Again, NewApproval};
use super::dispatch::Lane;
use super::state::Receipt;
use super::*;
use crate::engine::sqlite::Sqlite;
use crate::engine::{BoxFuture, Engine, Seq};

/// One thing that a fake backend does in an attempt.
#[derive(Clone, Debug)]
enum Do {
    Say(&'static str),
    /// Asks, unless it was answered before, and then rests.
    AskAndRest,
    /// Asks, and waits for nobody.
    Ask,
    /// Asks and waits for the answer.
    AskAndWait,
    /// Waits until it is told to end.
    Linger,
    Fail(Again),
    Panic,
}

/// Does what the first of its scripts says, attempt by attempt; with none left it completes.
struct Fake {
    name: &'static str,
    resumes: bool,
    scripts: Mutex<VecDeque<Vec<Do>>>,
}

impl Fake {
    fn new(name: &'static str, scripts: impl Into<VecDeque<Vec<Do>>>) -> Self {
        Self { name, resumes: false, scripts: Mutex::new(scripts.into()) }
    }

    async fn perform(&self, mut attempt: Attempt) -> Concluded {
        let script = self.scripts.lock().unwrap().pop_front().unwrap_or_default();
        for step in script {
            match step {
                Do::Say(text) => {
                    let event = AgentEvent::now(EventKind::AssistantMessage { text: text.into() });
                    attempt.teller.event(&event).await.unwrap();
                }
                Do::AskAndRest => {
                    if attempt.state.approvals.iter().any(|approval| !approval.is_open()) {
                        continue;
                    }
                    attempt.teller.ask(question(None)).await.unwrap();
                    return Concluded::AtRest;
                }
                Do::Ask => drop(attempt.teller.ask(question(None)).await.unwrap()),
                Do::AskAndWait => {
                    attempt.teller.ask(question(None)).await.unwrap();
                    while let Some(control) = attempt.control.recv().await {
                        if let Control::Answered(_) = control {
                            break;
                        }
                    }
                }
                Do::Linger => {
                    while let Some(control) = attempt.control.recv().await {
                        match control {
                            Control::Cancel { why } => {
                                let ended = Ended::failed("cancelled", why, Again::Nobody);
                                return Concluded::Ended(Box::new(Ended {
                                    phase: Phase::Cancelled,
                                    ..ended
                                }));
                            }
                            Control::Drain => return Concluded::Drained,
                            Control::Steer { .. } | Control::Answered(_) => {}
                        }
                    }
                }
                Do::Fail(again) => {
                    return Concluded::Ended(Box::new(Ended::failed("exited", "it fell over", again)));
                }
                Do::Panic => panic!("as it was told"),
            }
        }
        let ended = Ended::failed("final", "", Again::Nobody);
        Concluded::Ended(Box::new(Ended {
            phase: Phase::Completed,
            error: None,
            value: Some(json!(42)),
            ..ended
        }))
    }
}

fn question(deadline: Option<Duration>) -> NewApproval {
    NewApproval {
        key: "k".to_owned(),
        tool: "refund".to_owned(),
        input: "[1]".to_owned(),
        input_sha256: Digest::of(b"[1]"),
        reason: "the policy wants a person".to_owned(),
        choices: vec![Choice::Approve, Choice::Answer, Choice::Deny],
        deadline: deadline.map(|within| state::Moment::now().after(within)),
        default: DefaultAnswer::Deny,
    }
}

impl Backend for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn resumes(&self) -> bool {
        self.resumes
    }

    fn check(&self, _: &NewRun) -> Result<(), RequestError> {
        Ok(())
    }

    fn look(&self) -> BoxFuture<'_, BackendView> {
        unreachable!("nobody looks")
    }

    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
        Box::pin(self.perform(attempt))
    }
}

fn open(folder: &Path, backends: Vec<Fake>) -> Runs {
    let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(&folder.join("runs.sqlite")).unwrap());
    let lanes = backends.into_iter().map(|backend| Lane::new(Arc::new(backend), 4)).collect();
    open_with(folder, engine, lanes)
}

fn task(members: serde_json::Value) -> NewRun {
    let mut request = json!({"task": "do it"});
    request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    NewRun::from_value(request).unwrap()
}

fn me() -> Actor {
    Actor::new("test")
}

/// Waits until a run is as it should be.
async fn until(runs: &Runs, run: &RunId, mut is: impl FnMut(&RunState) -> bool) -> RunState {
    let mut follower = runs.follow(run, Seq(0)).await.unwrap();
    loop {
        let state = runs.show(run).await.unwrap();
        if is(&state) {
            return state;
        }
        let more = tokio::time::timeout(Duration::from_secs(20), follower.next()).await.expect("it changes");
        if more.unwrap().is_none() {
            let state = runs.show(run).await.unwrap();
            assert!(is(&state), "it is over, and not as it should be: {state:?}");
            return state;
        }
    }
}

async fn kinds(runs: &Runs, run: &RunId) -> Vec<String> {
    let page = runs.events(run, Seq(0), 1000).await.unwrap();
    page.iter().map(|one| Line::read(&one.record).unwrap().entry.kind().to_owned()).collect()
}

/// What the log folds to, from its beginning.
async fn folded(runs: &Runs, run: &RunId) -> RunState {
    let page = runs.events(run, Seq(0), 1000).await.unwrap();
    let lines: Vec<Line> = page.iter().map(|one| Line::read(&one.record).unwrap()).collect();
    let mut state = RunState::begin(run.clone(), &lines[0]).unwrap();
    lines[1..].iter().for_each(|line| state.fold(line));
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_accepted_done_and_its_log_folds_to_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::Say("hello"), Do::Say("bye")]])]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!((state.phase, state.attempt, state.result.as_deref()), (Phase::Completed, 1, Some("42")));
    assert_eq!(kinds(&runs, &run).await, ["accepted", "started", "event", "event", "finished"]);
    assert_eq!(folded(&runs, &run).await, state);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_is_the_same_run_and_cannot_ask_for_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![])]);
    let first = runs.submit(task(json!({"id": "mine"})), me()).await.unwrap();
    until(&runs, &first.id, |state| state.phase.is_over()).await;
    let again = runs.submit(task(json!({"id": "mine"})), me()).await.unwrap();
    assert_eq!((again.id, again.attempt), (first.id, 1), "it was not done again");
    let other = runs.submit(task(json!({"id": "mine", "title": "another"})), me()).await;
    assert!(matches!(other, Err(RunsError::Refused(_))), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_one_counts_and_the_other_is_told_who_was_first() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::AskAndRest], vec![Do::AskAndRest]])]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.phase == Phase::Waiting).await;
    let approval = state.approvals[0].id.clone();
    let click =
        |by: &'static str| runs.answer(&run, &approval, Answer::plain(Choice::Approve), Actor::new(by));
    let (one, two) = tokio::join!(click("one"), click("two"));
    let first = match (&one, &two) {
        (Ok(_), Err(RunsError::Answered { approval })) | (Err(RunsError::Answered { approval }), Ok(_)) => {
            approval
        }
        other => panic!("{other:?}"),
    };
    assert!(first.given.is_some());
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!(state.phase, Phase::Completed);
    assert_eq!(kinds(&runs, &run).await.iter().filter(|kind| *kind == "answered").count(), 1);
    let wrong = runs.answer(&run, &approval, Answer::plain(Choice::Edit), me()).await;
    assert!(matches!(wrong, Err(RunsError::Answered { .. })), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_must_be_one_of_the_choices_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::AskAndWait]])]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    let asked = until(&runs, &run, |state| state.phase == Phase::Waiting).await.approvals[0].id.clone();
    for (answer, expected) in [
        (Answer::plain(Choice::Edit), "takes approve, answer, deny, not `edit`"),
        (Answer::plain(Choice::Answer), "`answer` needs `value`"),
    ] {
        let error = runs.answer(&run, &asked, answer, me()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let none = runs.answer(&run, &ApprovalId("a9".to_owned()), Answer::plain(Choice::Deny), me()).await;
    assert!(matches!(none, Err(RunsError::NoSuchApproval { .. })));
    runs.answer(&run, &asked, Answer::plain(Choice::Deny), me()).await.unwrap();
    until(&runs, &run, |state| state.phase == Phase::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_again_and_then_by_somebody_else() {
    let folder = tempfile::tempdir().unwrap();
    let first = Fake::new("first", vec![vec![Do::Panic], vec![Do::Fail(Again::Same)]]);
    let second = Fake::new("second", vec![vec![Do::Say("I can")]]);
    let runs = open(folder.path(), vec![first, second]);
    let run = runs.submit(task(json!({"retries": 1, "fallback": ["second"]})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!((state.phase, state.attempt, state.backend.as_str()), (Phase::Completed, 3, "second"));
    let expected =
        ["accepted", "started", "attempted", "started", "attempted", "started", "event", "finished"];
    assert_eq!(kinds(&runs, &run).await, expected);
    assert_eq!(folded(&runs, &run).await, state);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_attempt_asked_for_does_not_hold_up_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let first = Fake::new("first", vec![vec![Do::Ask, Do::Fail(Again::Other)]]);
    let second = Fake::new("second", vec![vec![Do::AskAndWait]]);
    let runs = open(folder.path(), vec![first, second]);
    let run = runs.submit(task(json!({"fallback": ["second"]})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.approvals.len() == 2).await;
    let put_aside = state.approvals[0].given.clone().unwrap();
    assert_eq!((put_aside.answer.choice, put_aside.by.is_somebody()), (Choice::Deny, false));
    let open: Vec<_> = state.open_approvals().map(|approval| approval.id.clone()).collect();
    assert_eq!(open, [state.approvals[1].id.clone()]);
    let yes = Answer { choice: Choice::Approve, arguments: None, value: None, reason: None };
    runs.answer(&run, &open[0], yes, me()).await.unwrap();
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!((state.phase, state.backend.as_str()), (Phase::Completed, "second"));
    assert_eq!(folded(&runs, &run).await, state);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_do_better_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::Fail(Again::Nobody)]])]);
    let run = runs.submit(task(json!({"retries": 5})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!(
        (state.phase, state.attempt, state.error.as_deref()),
        (Phase::Failed, 1, Some("it fell over"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_whether_it_waits_rests_or_works() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = vec![vec![Do::Linger], vec![Do::AskAndRest]];
    let runs = open(folder.path(), vec![Fake::new("fake", scripts)]);
    let works = runs.submit(task(json!({})), me()).await.unwrap().id;
    until(&runs, &works, |state| state.phase == Phase::Running).await;
    let rests = runs.submit(task(json!({})), me()).await.unwrap().id;
    until(&runs, &rests, |state| state.phase == Phase::Waiting).await;
    for run in [&works, &rests] {
        runs.cancel(run, "enough".to_owned(), me()).await.unwrap();
        let state = until(&runs, run, |state| state.phase.is_over()).await;
        assert_eq!((state.phase, state.ending.as_deref()), (Phase::Cancelled, Some("cancelled")));
        assert_eq!(state.error.as_deref(), Some("enough"));
        let again = runs.cancel(run, "again".to_owned(), me()).await;
        assert!(matches!(again, Err(RunsError::Phase { .. })), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_is_answered_by_its_deadline() {
    struct Asks;
    impl Backend for Asks {
        fn name(&self) -> &str {
            "asks"
        }
        fn resumes(&self) -> bool {
            false
        }
        fn check(&self, _: &NewRun) -> Result<(), RequestError> {
            Ok(())
        }
        fn look(&self) -> BoxFuture<'_, BackendView> {
            unreachable!("nobody looks")
        }
        fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
            Box::pin(async move {
                if attempt.state.approvals.is_empty() {
                    attempt.teller.ask(question(Some(Duration::from_millis(50)))).await.unwrap();
                    return Concluded::AtRest;
                }
                Concluded::Ended(Box::new(Ended::failed("final", "denied", Again::Nobody)))
            })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(&folder.path().join("runs.sqlite")).unwrap());
    let runs = open_with(folder.path(), engine, vec![Lane::new(Arc::new(Asks), 1)]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    let given = state.approvals[0].given.clone().unwrap();
    assert_eq!((given.by, given.answer.choice), (Actor::new("deadline"), Choice::Deny));
}

/// What the run `ended` left: it had said three things and was done. What `endless` said is too long to be read back.
fn left(id: &str) -> Option<LeftBehind> {
    let event = |text: &str| {
        let mut written = Vec::new();
        AgentEvent::now(EventKind::AssistantMessage { text: text.into() }).write(&mut written);
        RawValue::from_string(String::from_utf8(written).unwrap()).unwrap()
    };
    let ended = LeftEnd { phase: Phase::Completed, error: None, ending: "final".to_owned(), patch: None };
    let events = match id {
        "ended" => Ok(["half", "two thirds", "whole"].map(event).into()),
        "endless" => Err("it is too long".to_owned()),
        _ => return None,
    };
    let receipt = Receipt { file: "ended.json".to_owned(), sha256: Digest::of(b"ended") };
    Some(LeftBehind { receipt, ended: Some(ended), events })
}

fn open_with(folder: &Path, engine: Arc<dyn Engine>, lanes: Vec<Lane>) -> Runs {
    let runs = Runs::open(RunsOptions {
        engine,
        default_backend: lanes[0].backend.name().to_owned(),
        lanes,
        receipts: Receipts {
            folder: Arc::new(Folder::open(folder.join("receipts"), SpoolLimit::USUAL).unwrap()),
            sign: None,
        },
        rules: RunRules {
            queued: 8,
            retries: 0,
            approve_within: None,
            approve_default: DefaultAnswer::Deny,
            keep_for: Duration::from_secs(3600),
            keep_at_most: 100,
        },
        tools: Vec::new(),
        left: Box::new(left),
        complaints: Box::new(|_| {}),
    });
    runs.work();
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_may_wait_is_refused_and_what_was_accepted_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let scripts: Vec<Vec<Do>> = (0..4).map(|_| vec![Do::Linger]).collect();
    let runs = open(folder.path(), vec![Fake::new("fake", scripts)]);
    let mut accepted = Vec::new();
    for _ in 0..4 {
        let run = runs.submit(task(json!({})), me()).await.unwrap().id;
        until(&runs, &run, |state| state.phase == Phase::Running).await;
        accepted.push(run);
    }
    for number in 0..8 {
        let waits = task(json!({"id": format!("waits-{number}")}));
        accepted.push(runs.submit(waits, me()).await.unwrap().id);
    }
    let full = runs.submit(task(json!({})), me()).await;
    assert!(matches!(full, Err(RunsError::Full { queued: 8, limit: 8 })), "{full:?}");
    let again = runs.submit(task(json!({"id": "waits-0"})), me()).await.unwrap();
    assert_eq!(again.id, accepted[4], "what was accepted is known, however many wait");
    for run in &accepted[..4] {
        runs.cancel(run, "make room".to_owned(), me()).await.unwrap();
    }
    for run in &accepted[4..] {
        until(&runs, run, |state| state.phase == Phase::Completed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_drains_leaves_runs_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::Say("half"), Do::Linger]])]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    until(&runs, &run, |state| state.phase == Phase::Running && state.attempt_events == 1).await;
    runs.drain(Duration::from_secs(10)).await;
    assert!(matches!(runs.submit(task(json!({})), me()).await, Err(RunsError::Draining)));
    let state = runs.show(&run).await.unwrap();
    let expected = (Phase::Queued, Some("the daemon went down during the attempt"));
    assert_eq!((state.phase, state.error.as_deref()), expected, "it is told as it is while nobody is up");
    drop(runs);
    let runs = reopen(folder.path(), || vec![Fake::new("fake", vec![vec![Do::Say("whole")]])]).await;
    let state = until(&runs, &run, |state| state.phase.is_over()).await;
    assert_eq!((state.phase, state.attempt), (Phase::Completed, 2));
    let expected = ["accepted", "started", "event", "attempted", "started", "event", "finished"];
    assert_eq!(kinds(&runs, &run).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_gets_what_only_the_receipt_of_a_cut_attempt_has() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::Say("half"), Do::Linger]])]);
    let run = runs.submit(task(json!({"id": "ended"})), me()).await.unwrap().id;
    until(&runs, &run, |state| state.attempt_events == 1).await;
    runs.drain(Duration::from_secs(10)).await;
    let state = runs.show(&run).await.unwrap();
    assert_eq!((state.phase, state.attempt_events, state.attempt), (Phase::Completed, 3, 1));
    let expected = ["accepted", "started", "event", "event", "event", "finished"];
    assert_eq!(kinds(&runs, &run).await, expected);
    assert_eq!(folded(&runs, &run).await, state);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_says_that_it_may_lack_the_last_words_of_an_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::Say("half"), Do::Linger]])]);
    let run = runs.submit(task(json!({"id": "endless"})), me()).await.unwrap().id;
    until(&runs, &run, |state| state.attempt_events == 1).await;
    runs.drain(Duration::from_secs(10)).await;
    assert_eq!(kinds(&runs, &run).await, ["accepted", "started", "event", "note", "finished"]);
    let log = runs.events(&run, Seq(3), 1).await.unwrap();
    assert!(log[0].record.contains("in its receipt only: it is too long"), "{}", log[0].record);
}

/// Opens the store again; the tasks of the last daemon let go of it one by one.
async fn reopen(folder: &Path, backends: impl Fn() -> Vec<Fake>) -> Runs {
    for _ in 0..500 {
        if Sqlite::open(&folder.join("runs.sqlite")).is_ok() {
            return open(folder, backends());
        }
        tokio::task::yield_now().await;
    }
    open(folder, backends())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_every_record_once_and_in_order_while_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let says: Vec<Do> = (0..300).map(|_| Do::Say("word")).collect();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![says])]);
    let run = runs.submit(task(json!({})), me()).await.unwrap().id;
    let mut follower = runs.follow(&run, Seq(0)).await.unwrap();
    let mut seen = Vec::new();
    while let Some(page) = follower.next().await.unwrap() {
        seen.extend(page.records().iter().map(|one| one.seq.0));
    }
    assert_eq!(seen, (1..=303).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_are_forgotten_and_only_those_that_are_over() {
    let folder = tempfile::tempdir().unwrap();
    let runs = open(folder.path(), vec![Fake::new("fake", vec![vec![Do::AskAndRest]])]);
    let waits = runs.submit(task(json!({})), me()).await.unwrap().id;
    until(&runs, &waits, |state| state.phase == Phase::Waiting).await;
    let refused = runs.forget(&waits).await;
    assert!(matches!(refused, Err(RunsError::Phase { .. })), "{refused:?}");
    let over = runs.submit(task(json!({})), me()).await.unwrap().id;
    until(&runs, &over, |state| state.phase.is_over()).await;
    assert_eq!(runs.tidy().await.unwrap(), 0);
    runs.forget(&over).await.unwrap();
    assert!(matches!(runs.show(&over).await, Err(RunsError::NoSuchRun(_))));
    assert!(runs.show(&waits).await.is_ok());
}

#[test]
fn what_is_wrong_with_a_request_is_named_with_its_place() {
    for (request, field, expected) in [
        (json!({"taks": "x"}), "taks", "did you mean `task`?"),
        (json!({}), "task", "give `task` or `script`"),
        (json!({"task": "x", "script": "1"}), "task", "not both"),
        (json!({"task": "x", "id": "a b"}), "id", "is not the id of a run"),
        (json!({"task": "x", "retries": 21}), "retries", "may be 0 to 20"),
        (json!({"task": "x", "approvals": {"within": "5"}}), "approvals.within", "has no unit"),
        (json!({"task": "x", "policy": {"deny_read": ["[z"]}}), "policy", "deny_read"),
        (json!({"task": 3}), "", "cannot be read"),
        (json!([]), "", "a run is a JSON object"),
    ] {
        let error = NewRun::from_value(request.clone()).unwrap_err();
        assert_eq!(error.field, field, "{request}: {error}");
        assert!(error.message.contains(expected), "{request}: {error}");
    }
}
