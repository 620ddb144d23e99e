//! The provider that plays a file, under a desk of its own: every step, and every way to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_helmor::protocol::{ContextQuery, SendMessage, SlashQuery, TitleRequest};
use outrigger_helmor::provider::process::Programs;
use outrigger_helmor::provider::scripted::{Script, Scripted};
use outrigger_helmor::provider::{FailureCode, InputAction, Outcome, Provider, Verdict};
use serde_json::{Value, json};

use crate::acp_kit::{Talk, of};
use crate::claude_kit::{kinds, processes, run, until};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        scripted_turn_plays_its_steps_in_order,
        scripted_questions_reach_the_host_and_its_answers_the_stream,
        scripted_turn_takes_a_steer_where_it_waits_for_one_and_nowhere_else,
        scripted_turn_fails_hangs_and_loses_its_memory,
        scripted_turn_stops_at_once_whatever_it_does,
        scripted_children_are_real_and_go_with_their_turn,
        scripted_repeats_of_a_hundred_thousand_events_are_all_told,
        scripted_provider_answers_what_is_asked_beside_turns
    ]
}

fn scripted(script: &Value) -> Scripted {
    Scripted::new(Script::read(&script.to_string()).unwrap(), Programs::default())
}

/// A session with a script of one turn.
fn talk(steps: &Value) -> Talk {
    let provider = scripted(&json!({ "turns": [{ "steps": steps }] }));
    Talk::of(provider.session("s1"), std::env::temp_dir())
}

fn scripted_turn_plays_its_steps_in_order() {
    run(async {
        let talk = talk(&json!([
            { "pass": { "type": "system", "subtype": "init", "session_id": "p1" } },
            { "repeat": 2, "steps": [{ "say": "la" }, { "repeat": 2, "steps": [{ "pass": { "type": "x" } }] }] },
            { "wait_ms": 1 },
            { "repeat": 0, "steps": [{ "fail": "never" }] },
            { "host": "triage.list", "params": { "limit": 1 } },
        ]));
        let events = talk.says("go").await;
        assert_eq!(
            kinds(&events),
            ["system/init", "assistant", "x", "x", "assistant", "x", "x", "scripted/answer"]
        );
        assert_eq!(events[1]["message"]["content"], json!([{ "type": "text", "text": "la" }]));
        assert_eq!(events[7]["error"], "nobody is there");
    });
}

fn scripted_questions_reach_the_host_and_its_answers_the_stream() {
    run(async {
        let suggestions = json!([{ "type": "addRules" }]);
        let talk = talk(&json!([
            { "permission": { "tool": "Bash", "input": { "command": "ls" }, "suggestions": suggestions } },
            { "permission": { "tool": "Write" } },
            { "ask": { "kind": "form", "schema": {} } },
        ]));
        let running = talk.begin(talk.send("go"));
        let first = running.desk.of("permissionRequest").await;
        assert_eq!((&first["toolName"], &first["toolInput"]), (&json!("Bash"), &json!({ "command": "ls" })));
        assert_eq!(first["suggestions"], suggestions);
        running
            .desk
            .decide(&first["permissionId"], Verdict::Allow { updated: vec![json!({ "type": "addRules" })] });
        let second = running.desk.first("the second", |event| event["toolName"] == "Write").await;
        assert_ne!(first["permissionId"], second["permissionId"]);
        running.desk.decide(&second["permissionId"], Verdict::Deny { message: Some("not today".to_owned()) });
        let asked = running.desk.of("userInputRequest").await;
        assert_eq!(asked["payload"], json!({ "kind": "form", "schema": {} }));
        running.desk.answer(&asked["userInputId"], InputAction::Submit, &json!({ "a": 1 }));
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        let events = running.desk.all();
        let answers: Vec<Value> = of(&events, "scripted/answer").into_iter().cloned().collect();
        assert_eq!(
            answers,
            [
                json!({ "type": "scripted/answer", "behavior": "allow", "updatedPermissions": suggestions }),
                json!({ "type": "scripted/answer", "behavior": "deny", "message": "not today" }),
                json!({ "type": "scripted/answer", "action": "submit", "content": { "a": 1 } }),
            ]
        );
    });
}

fn scripted_turn_takes_a_steer_where_it_waits_for_one_and_nowhere_else() {
    run(async {
        let takes = talk(&json!([{ "say": "before" }, { "steer": true }, { "say": "after" }]));
        let running = takes.begin(takes.send("go"));
        running.desk.of("assistant").await;
        assert_eq!(running.steer("left").await, Some(Ok(())));
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        assert_eq!(kinds(&running.desk.all()), ["assistant", "user_prompt", "assistant"]);

        let refuses = talk(&json!([{ "say": "before" }, { "hang": true }]));
        let running = refuses.begin(refuses.send("go"));
        running.desk.of("assistant").await;
        assert!(running.steer("left").await.unwrap().is_err());
        assert!(matches!(running.stopped().await, Outcome::Aborted));
    });
}

fn scripted_turn_fails_hangs_and_loses_its_memory() {
    run(async {
        let talk = talk(
            &json!([{ "lose_resume": "it was long ago" }, { "fail": "so it goes" }, { "say": "never" }]),
        );
        let (outcome, events) =
            talk.turn(SendMessage { resume: Some("p0".to_owned()), ..talk.send("go") }).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!((failure.code, failure.message.as_str()), (FailureCode::Provider, "so it goes"));
        assert_eq!(events, [json!({ "type": "contextReset", "resume": "p0", "reason": "it was long ago" })]);
        let (_, events) = talk.turn(talk.send("go")).await;
        assert_eq!(events, Vec::<Value>::new(), "there is nothing to lose without a resume");

        let provider = scripted(&json!({ "turns": [{ "when": "please", "steps": [] }] }));
        let talk = Talk::of(provider.session("s1"), std::env::temp_dir());
        assert!(matches!(talk.turn(talk.send("now please")).await.0, Outcome::Ended));
        assert!(matches!(talk.turn(talk.send("now")).await.0, Outcome::Failed(_)));
    });
}

fn scripted_turn_stops_at_once_whatever_it_does() {
    run(async {
        let busy = [
            json!([{ "pass": { "type": "here" } }, { "hang": true }]),
            json!([{ "pass": { "type": "here" } }, { "wait_ms": 600_000 }]),
            json!([{ "pass": { "type": "here" } }, { "repeat": u64::MAX, "steps": [{ "repeat": 1000, "steps": [] }, { "pass": { "type": "x" } }] }]),
            json!([{ "pass": { "type": "here" } }, { "permission": { "tool": "Bash" } }]),
            json!([{ "pass": { "type": "here" } }, { "steer": true }]),
        ];
        for steps in busy {
            let talk = talk(&steps);
            let running = talk.begin(talk.send("go"));
            running.desk.of("here").await;
            let began = Instant::now();
            assert!(matches!(running.stopped().await, Outcome::Aborted));
            assert!(began.elapsed() < Duration::from_secs(1), "{steps}: {:?}", began.elapsed());
        }
    });
}

fn scripted_children_are_real_and_go_with_their_turn() {
    run(async {
        let quick =
            talk(&json!([{ "run": ["sh", "-c", "echo one; echo two >&2; exit 3"] }, { "say": "after" }]));
        let events = quick.says("go").await;
        assert_eq!(kinds(&events), ["scripted/output", "scripted/exited", "assistant"]);
        assert_eq!(events[0]["text"], "one");
        assert!(events[1]["how"].as_str().unwrap().contains('3'), "{}", events[1]);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("survived");
        let mark = file.to_str().unwrap();
        // In a session of its own, as the tools of real agents are.
        let tool = format!("setsid sh -c 'sleep 25; touch {mark}' & echo started; wait");
        let slow = talk(&json!([{ "run": ["sh", "-c", tool] }]));
        let running = slow.begin(slow.send("go"));
        running.desk.of("scripted/output").await;
        until(|| !processes(mark).is_empty()).await;
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(processes(mark), Vec::<u32>::new());

        let missing = talk(&json!([{ "run": ["no-such-program-anywhere"] }]));
        let (outcome, _) = missing.turn(missing.send("go")).await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::NotInstalled);
    });
}

fn scripted_repeats_of_a_hundred_thousand_events_are_all_told() {
    run(async {
        let talk = talk(
            &json!([{ "repeat": 1000, "steps": [{ "repeat": 100, "steps": [{ "pass": { "type": "x" } }] }] }]),
        );
        let running = talk.begin(talk.send("go"));
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        assert_eq!(desk.all().len(), 100_000);
    });
}

fn scripted_provider_answers_what_is_asked_beside_turns() {
    run(async {
        let provider = scripted(&json!({
            "turns": [],
            "models": [{ "id": "m", "effortLevels": ["low"] }],
            "commands": [{ "name": "review", "description": "Looks", "source": "skill" }],
            "title": "title: A title\nbranch: a-branch",
            "context_usage": { "usedTokens": 1 },
        }));
        let models = provider.models(None).await.unwrap();
        assert_eq!(
            serde_json::to_value(&models).unwrap(),
            json!([{ "id": "m", "label": "m", "cliModel": "m", "effortLevels": ["low"] }])
        );
        let query = SlashQuery { cwd: None, additional_directories: vec![] };
        let commands = provider.slash_commands(&query).await.unwrap();
        assert_eq!(
            serde_json::to_value(&commands).unwrap(),
            json!([{ "name": "review", "description": "Looks", "source": "skill" }])
        );
        let title = TitleRequest {
            prompt: String::new(),
            model: None,
            claude_environment: vec![],
            agent_proxy: None,
        };
        assert_eq!(provider.one_shot(&title).await.unwrap(), "title: A title\nbranch: a-branch");
        let usage = ContextQuery {
            session_id: "s1".to_owned(),
            model: "m".to_owned(),
            provider_session_id: None,
            cwd: None,
            agent_proxy: None,
        };
        assert_eq!(provider.session("s1").context_usage(&usage).await.unwrap(), r#"{"usedTokens":1}"#);

        let silent = scripted(&json!({ "turns": [] }));
        assert_eq!(silent.models(None).await.unwrap_err().code, FailureCode::Unsupported);
        assert_eq!(silent.one_shot(&title).await.unwrap_err().message, "the script has no `title`");
    });
}
