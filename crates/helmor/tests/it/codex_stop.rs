//! The Codex driver with the real program: stop, steer, resume, and a program that is killed or not there.

use std::time::{Duration, Instant};

use outrigger_helmor::protocol::{ContextQuery, SendMessage, SlashQuery, TitleRequest};
use outrigger_helmor::provider::codex::{Codex, Config};
use outrigger_helmor::provider::process::Programs;
use outrigger_helmor::provider::{FailureCode, Outcome, Provider};
use serde_json::Value;

use crate::codex::PICTURE;
use crate::codex_kit::{Bench, answer_of, begin, kinds, run, turn};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        codex_stops_in_its_text_and_goes_on_with_the_next_turn,
        codex_stops_a_command_with_everything_that_it_started,
        codex_stops_while_it_waits_for_a_permission,
        codex_stops_before_there_is_a_turn,
        codex_stops_working_on_a_goal,
        codex_is_steered_in_its_last_text,
        codex_is_steered_at_a_tool,
        codex_is_steered_with_a_picture,
        codex_goes_on_with_a_thread_of_an_earlier_program,
        codex_tells_that_a_thread_is_lost_and_starts_anew,
        codex_that_is_killed_fails_the_turn_and_the_next_one_goes_on,
        codex_that_is_not_installed_fails_at_once,
        codex_that_cannot_start_says_why,
        codex_makes_a_title_without_a_trace,
        codex_lists_its_models_and_its_commands,
    ]
}

fn codex_stops_in_its_text_and_goes_on_with_the_next_turn() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{trickle 100}}"));
        running.seen_kind("item/agentMessage/delta").await;
        let stopped = Instant::now();
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
        assert!(session.warm_since().is_some());
        let (outcome, events) = turn(&session, bench.send("{{say fine}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "fine");
        session.close().await;
    });
}

fn codex_stops_a_command_with_everything_that_it_started() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let survived = bench.work().join("survived");
        let started = bench.work().join("started");
        let command = format!(
            "{{{{run (sleep 25; touch {}) & touch {}; sleep 25; touch {}}}}}",
            survived.display(),
            started.display(),
            survived.display()
        );
        let running = begin(&session, bench.send(&command));
        running.item("commandExecution").await;
        while !started.exists() {
            tokio::task::yield_now().await;
        }
        let server = bench.server();
        let commands = |all: Vec<(u32, String)>| {
            all.into_iter().filter(|(_, line)| line.contains("sleep")).collect::<Vec<(u32, String)>>()
        };
        assert!(commands(bench.processes()).len() >= 2, "{:?}", bench.processes());
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert_eq!(commands(bench.processes()), []);
        assert_eq!(bench.server(), server);
        assert!(!survived.exists());
        let (outcome, _) = turn(&session, bench.send("{{say fine}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        session.close().await;
    });
}

fn codex_stops_while_it_waits_for_a_permission() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.asking("{{run touch made}}"));
        let asked = running.seen_kind("permissionRequest").await;
        running.stop.cancel();
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        let withdrawn = events.iter().find(|event| event["type"] == "permissionCancelled").unwrap();
        assert_eq!(withdrawn["permissionId"], asked["permissionId"]);
        let (outcome, events) = turn(&session, bench.send("{{say fine}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "fine");
        assert!(!bench.work().join("made").exists());
        session.close().await;
    });
}

fn codex_stops_before_there_is_a_turn() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{run touch made}}"));
        running.stop.cancel();
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert!(!kinds(&events).contains(&"turn/started"), "{:?}", kinds(&events));
        assert_eq!(bench.processes(), []);
        // And as soon as there is one, before the server says that it began.
        let running = begin(&session, bench.send("{{run sleep 25; touch made}}"));
        running.seen_kind("thread/started").await;
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        assert!(!bench.work().join("made").exists());
        session.close().await;
    });
}

fn codex_stops_working_on_a_goal() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("/goal {{say working}}"));
        running.seen_kind("turn/completed").await;
        running.stop.cancel();
        let (outcome, _) = running.over().await;
        assert!(matches!(outcome, Outcome::Aborted), "{outcome:?}");
        let (outcome, events) = turn(&session, bench.send("{{say fine}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "fine");
        session.close().await;
    });
}

/// Where an event is among others.
fn place(events: &[Value], wanted: impl Fn(&Value) -> bool) -> usize {
    events.iter().position(wanted).unwrap_or_else(|| panic!("not there: {:?}", kinds(events)))
}

fn codex_is_steered_in_its_last_text() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{trickle 50}}"));
        running.seen_kind("item/agentMessage/delta").await;
        assert_eq!(running.steer("{{say steered}}", &[]).await, Some(Ok(())));
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "steered");
        let told = place(&events, |event| event["type"] == "user_prompt");
        let heard = place(&events, |event| {
            event["item"]["type"] == "userMessage" && event.to_string().contains("{{say steered}}")
        });
        assert!(told < heard, "{told} {heard}");
        session.close().await;
    });
}

fn codex_is_steered_at_a_tool() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let running = begin(&session, bench.send("{{run sleep 1}}"));
        running.item("commandExecution").await;
        assert_eq!(running.steer("{{say steered}}", &[]).await, Some(Ok(())));
        let (outcome, events) = running.over().await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(answer_of(&events), "steered");
        assert_eq!(events.iter().filter(|event| event["type"] == "turn/completed").count(), 1);
        session.close().await;
    });
}

fn codex_is_steered_with_a_picture() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let path = bench.work().join("point.png");
        std::fs::write(&path, PICTURE).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let session = bench.session();
        let running = begin(&session, bench.send("{{trickle 50}}"));
        running.seen_kind("item/agentMessage/delta").await;
        let taken = running.steer(&format!("{{{{about}}}} @{path}"), &[path]).await;
        assert_eq!(taken, Some(Ok(())));
        let (_, events) = running.over().await;
        let about: Value = serde_json::from_str(answer_of(&events)).unwrap();
        assert_eq!(about["pictures"], 1);
        session.close().await;
    });
}

fn codex_goes_on_with_a_thread_of_an_earlier_program() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        let (_, events) = turn(&session, bench.send("{{say first}}")).await;
        let thread = events.last().unwrap()["session_id"].as_str().unwrap().to_owned();
        session.close().await;
        // Without a program the window is known too.
        let query = ContextQuery {
            session_id: "S".to_owned(),
            model: "gpt-5.5".to_owned(),
            provider_session_id: Some(thread.clone()),
            cwd: Some(bench.work()),
            agent_proxy: None,
        };
        let later = bench.session();
        let usage: Value = serde_json::from_str(&later.context_usage(&query).await.unwrap()).unwrap();
        assert_eq!(usage["usedTokens"], 49);
        let send = SendMessage { resume: Some(thread.clone()), ..bench.send("{{about}}") };
        let (outcome, events) = turn(&later, send).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let about: Value = serde_json::from_str(answer_of(&events)).unwrap();
        assert_eq!(
            (about["texts"].as_u64(), events.last().unwrap()["session_id"].as_str()),
            (Some(2), Some(&*thread))
        );
        assert!(!kinds(&events).contains(&"contextReset"));
        let usage: Value = serde_json::from_str(&later.context_usage(&query).await.unwrap()).unwrap();
        assert_eq!(usage["modelId"], "gpt-5.5");
        later.close().await;
    });
}

fn codex_tells_that_a_thread_is_lost_and_starts_anew() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        for lost in ["01a1e32a-0a7f-7ab2-9f2b-f059b05cba54", "nonsense"] {
            let session = bench.session();
            let send = SendMessage { resume: Some(lost.to_owned()), ..bench.send("{{say fine}}") };
            let (outcome, events) = turn(&session, send).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            let told = place(&events, |event| event["type"] == "contextReset");
            assert!(told < place(&events, |event| event["type"] == "turn/started"));
            assert_eq!(events[told]["resume"], lost);
            assert_eq!(answer_of(&events), "fine");
            assert_ne!(events.last().unwrap()["session_id"], lost);
            session.close().await;
        }
    });
}

fn codex_that_is_killed_fails_the_turn_and_the_next_one_goes_on() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let session = bench.session();
        turn(&session, bench.send("{{say first}}")).await;
        let (outcome, _) = turn(&session, bench.send("{{run kill -9 $PPID; sleep 25}}")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::AgentExited);
        assert!(failure.message.contains("Codex ended in the middle of the turn"), "{failure}");
        assert!(failure.message.contains("SIGKILL") || failure.message.contains("signal 9"), "{failure}");
        assert_eq!(bench.processes(), []);
        let (outcome, events) = turn(&session, bench.send("{{about}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let about: Value = serde_json::from_str(answer_of(&events)).unwrap();
        assert_eq!(about["texts"], 3);
        session.close().await;
    });
}

fn codex_that_is_not_installed_fails_at_once() {
    let bench = Bench::scripted("#!/bin/sh\n");
    run(async {
        let codex = Codex::new(Config { program: Some("/nowhere/codex".into()) }, Programs::default());
        let (outcome, events) = turn(&codex.session("S"), bench.send("hello")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::NotInstalled);
        assert!(failure.message.contains("/nowhere/codex"), "{failure}");
        assert_eq!(events, Vec::<Value>::new());
        assert_eq!(codex.models(None).await.unwrap_err().code, FailureCode::NotInstalled);
    });
}

fn codex_that_cannot_start_says_why() {
    let bench = Bench::scripted("#!/bin/sh\necho 'the config is broken' >&2\nexit 3\n");
    run(async {
        let (outcome, _) = turn(&bench.session(), bench.send("hello")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::AgentExited);
        assert!(failure.message.contains("the config is broken"), "{failure}");
        let send = SendMessage { cwd: Some("/nowhere/at/all".into()), ..bench.send("hello") };
        let (outcome, _) = turn(&bench.session(), send).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::InvalidRequest);
        assert!(failure.message.contains("/nowhere/at/all"), "{failure}");
    });
}

fn codex_makes_a_title_without_a_trace() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let request = |prompt: &str, model: Option<&str>| TitleRequest {
            prompt: prompt.to_owned(),
            model: model.map(str::to_owned),
            claude_environment: Vec::new(),
            agent_proxy: None,
        };
        let title = bench.codex.one_shot(&request("{{say title: Fix it}}", None)).await.unwrap();
        assert_eq!(title, "title: Fix it");
        let about = bench.codex.one_shot(&request("{{about}}", None)).await.unwrap();
        let about: Value = serde_json::from_str(&about).unwrap();
        assert_eq!((about["model"].as_str(), about["effort"].as_str()), (Some("gpt-5.5"), Some("low")));
        assert!(!bench.folder.path().join("home/sessions").exists());
        let failure = bench.codex.one_shot(&request("{{status 401}}", Some("gpt-5.5"))).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::Auth);
        assert_eq!(bench.processes(), []);
    });
}

fn codex_lists_its_models_and_its_commands() {
    let Some(bench) = Bench::real() else { return };
    run(async {
        let models = bench.codex.models(None).await.unwrap();
        let known = models.iter().find(|model| model.id == "gpt-5.5").unwrap();
        assert_eq!((known.label.as_str(), known.cli_model.as_str()), ("GPT-5.5", "gpt-5.5"));
        assert_eq!(known.supports_fast_mode, Some(true));
        assert!(known.effort_levels.as_ref().unwrap().contains(&"xhigh".to_owned()));
        let skill = bench.work().join(".agents/skills/sew");
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), "---\nname: sew\ndescription: Mends things\n---\nHow.\n")
            .unwrap();
        let query = SlashQuery { cwd: Some(bench.work()), additional_directories: Vec::new() };
        let commands = bench.codex.slash_commands(&query).await.unwrap();
        let sew = commands.iter().find(|command| command.name == "sew").unwrap();
        assert_eq!((sew.description.as_str(), sew.source), ("Mends things", "skill"));
        assert_eq!(commands[0].name, "compact");
        assert_eq!(bench.processes(), []);
    });
}
