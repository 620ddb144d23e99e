//! The real Claude Code under its driver: turns, questions, plans, what it is asked beside turns, and what goes wrong.

use outrigger_helmor::protocol::{ContextQuery, PermissionMode, SendMessage, SlashQuery, TitleRequest};
use outrigger_helmor::provider::{Change, FailureCode, InputAction, Outcome, Provider, Verdict};
use serde_json::{Value, json};

use crate::claude_kit::{Notes, World, asked, kinds, programs, run, session_id, texts, until};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        claude_streams_a_turn_and_stays_warm_for_the_next_one,
        claude_goes_on_in_a_new_program_when_a_turn_wants_what_a_running_one_cannot_change,
        claude_asks_before_it_writes_and_allow_means_this_once,
        claude_can_be_made_to_ask_before_what_it_would_do_unasked,
        claude_is_allowed_more_when_the_host_passes_a_suggestion_back,
        claude_asks_the_user_and_hears_the_answer,
        claude_hands_over_a_plan_and_does_not_start_with_it,
        claude_goes_on_with_a_session_and_says_when_there_is_none,
        claude_errors_of_the_api_fail_with_a_word_each,
        claude_that_fails_after_an_answer_ends_badly,
        claude_sees_a_picture_and_hears_of_one_that_is_missing,
        claude_answers_what_it_is_asked_beside_turns,
        claude_as_root_is_told_why_it_may_not_bypass_permissions
    ]
}

fn claude_streams_a_turn_and_stays_warm_for_the_next_one() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let (outcome, events) = talk.says("{{say hello out there}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(texts(&events), ["hello out there"]);
        let kinds = kinds(&events);
        let said = |kind: &str| kinds.iter().position(|known| known == kind);
        assert!(said("system/init") < said("stream_event"), "{kinds:?}");
        assert_eq!(kinds.last().map(String::as_str), Some("contextUsageUpdated"), "{kinds:?}");
        assert_eq!(said("command_lifecycle"), None, "signals of ours are not the host's: {kinds:?}");
        assert_eq!(said("system/session_state_changed"), None, "{kinds:?}");
        let meta: Value = serde_json::from_str(events.last().unwrap()["meta"].as_str().unwrap()).unwrap();
        assert_eq!((&meta["usedTokens"], &meta["maxTokens"]), (&json!(37), &json!(1_000_000)));

        let first = programs(&world);
        assert_eq!(first.len(), 1, "one program");
        let began = std::time::Instant::now();
        let running =
            talk.begin(SendMessage { model: Some("haiku".to_owned()), ..talk.send("{{say again}}") });
        running.desk.talks().await;
        let waited = began.elapsed();
        let init = running.desk.first("init", |event| event["subtype"] == "init").await;
        assert!(
            init["model"].as_str().unwrap().contains("haiku"),
            "the model was changed on the way: {init}"
        );
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        assert_eq!(texts(&desk.all()), ["again"]);
        assert_eq!(programs(&world), first, "the same program");
        assert_eq!(session_id(&desk.all()), session_id(&events));
        // The promise is 100 ms on a quiet machine; this only holds that no program was started for it.
        assert!(waited.as_millis() < 1000, "{waited:?}");

        talk.session.close().await;
        assert_eq!((programs(&world), talk.session.warm_since()), (vec![], None));
        let (_, events) = talk.says("{{say after a pause}}").await;
        assert_eq!(session_id(&events), session_id(&desk.all()), "it goes on where it was");
        let request = asked("after a pause").pop().unwrap();
        assert!(
            request["newest"].as_str().unwrap().contains("again"),
            "with what was said before: {request}"
        );
    });
}

fn claude_goes_on_in_a_new_program_when_a_turn_wants_what_a_running_one_cannot_change() {
    let Some(world) = World::real("echo \"$EXTRA\" >> $HOME/extra") else { return };
    run(async {
        let talk = world.session();
        let mode = PermissionMode::Default;
        let (_, events) = talk.turn(talk.send_in(mode, "{{say one}}")).await;
        let first = programs(&world);
        let linked = world.folder.path().join("linked");
        std::fs::create_dir(&linked).unwrap();
        let send = SendMessage {
            claude_environment: vec![("EXTRA".to_owned(), "told".to_owned())],
            additional_directories: vec![linked.clone()],
            ..talk.send_in(mode, "{{say two, with folders}}")
        };
        let (outcome, more) = talk.turn(send).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(session_id(&more), session_id(&events), "the same session");
        assert_ne!(programs(&world), first, "in another program");
        assert_eq!(std::fs::read_to_string(world.home().join("extra")).unwrap(), "\ntold\n");
        let text = asked("two, with folders").pop().unwrap()["newest"].to_string();
        assert!(text.contains(linked.to_str().unwrap()), "the model hears of the linked folder: {text}");

        // The one that was started to ask cannot be told to bypass, and is replaced too.
        let second = programs(&world);
        let change = Change { permission_mode: Some(None), ..Change::default() };
        let refused = talk.session.reconfigure(&change).await.unwrap_err();
        assert_eq!(refused.code, FailureCode::Unsupported);
        let change = Change { permission_mode: Some(Some(PermissionMode::Plan)), ..Change::default() };
        talk.session.reconfigure(&change).await.unwrap();
        assert_eq!(programs(&world), second);
        let (outcome, events) = talk.says("{{say three}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_ne!(programs(&world), second);
        assert_eq!(session_id(&events), session_id(&more));
    });
}

fn write(world: &World, name: &str) -> String {
    let path = world.work().join(name);
    format!("{{{{use Write {}}}}}", json!({"file_path": path, "content": "x"}))
}

fn claude_can_be_made_to_ask_before_what_it_would_do_unasked() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let secret = world.work().join("secret");
        std::fs::write(&secret, "the secret itself").unwrap();
        let read = format!("{{{{use Read {}}}}}", json!({"file_path": secret}));
        let every = |prompt: &str| SendMessage {
            ask_every_tool: true,
            ..talk.send_in(PermissionMode::Default, prompt)
        };
        let running = talk.begin(every(&read));
        let ask = running.desk.of("permissionRequest").await;
        assert_eq!((&ask["toolName"], &ask["required"]), (&json!("Read"), &json!(false)));
        let message = Some("not this one".to_owned());
        running.desk.decide(&ask["permissionId"], Verdict::Deny { message });
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let said = texts(&desk.all()).concat();
        assert!(said.contains("not this one") && !said.contains("the secret itself"), "{said}");

        // What is allowed there is asked for again where the program itself wants that.
        let running = talk.begin(every(&write(&world, "one")));
        let ask = running.desk.of("permissionRequest").await;
        assert_eq!((&ask["toolName"], &ask["required"]), (&json!("Write"), &json!(false)));
        running.desk.allow(&ask["permissionId"]);
        let asks = |desk: &Notes| {
            let all = desk.all().into_iter();
            all.filter(|event| event["type"] == "permissionRequest").collect::<Vec<_>>()
        };
        until(|| asks(&running.desk).len() == 2).await;
        let again = asks(&running.desk).pop().unwrap();
        assert_eq!((&again["toolName"], &again["required"]), (&json!("Write"), &json!(true)));
        assert!(!world.work().join("one").exists());
        running.desk.allow(&again["permissionId"]);
        assert!(matches!(running.end().await, Outcome::Ended));
        assert!(world.work().join("one").exists());
    });
}

fn claude_asks_before_it_writes_and_allow_means_this_once() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send_in(PermissionMode::Default, &write(&world, "one")));
        let ask = running.desk.of("permissionRequest").await;
        assert_eq!((&ask["toolName"], &ask["toolInput"]["content"]), (&json!("Write"), &json!("x")));
        assert!(!ask["suggestions"].as_array().unwrap().is_empty(), "what else could be allowed: {ask}");
        running.desk.allow(&ask["permissionId"]);
        assert!(matches!(running.end().await, Outcome::Ended));
        assert!(world.work().join("one").exists());
        assert!(!world.work().join(".claude/settings.local.json").exists(), "nothing is allowed for ever");

        let running = talk.begin(talk.send_in(PermissionMode::Default, &write(&world, "two")));
        let ask = running.desk.of("permissionRequest").await;
        running.desk.decide(&ask["permissionId"], Verdict::Deny { message: None });
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        assert!(!world.work().join("two").exists());
        assert!(
            texts(&desk.all()).concat().contains("User denied"),
            "the model hears it: {:?}",
            texts(&desk.all())
        );
        assert!(!kinds(&desk.all()).contains(&"permissionModeChanged".to_owned()));
    });
}

fn claude_is_allowed_more_when_the_host_passes_a_suggestion_back() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let prompt = format!("{} {} {{{{say both}}}}", write(&world, "one"), write(&world, "two"));
        let running = talk.begin(talk.send_in(PermissionMode::Default, &prompt));
        let ask = running.desk.of("permissionRequest").await;
        let suggestions = ask["suggestions"].as_array().unwrap();
        let mode = suggestions.iter().find(|update| update["type"] == "setMode").expect("a mode").clone();
        running.desk.decide(&ask["permissionId"], Verdict::Allow { updated: vec![mode] });
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let events = desk.all();
        assert!(world.work().join("two").exists(), "it was not asked for");
        assert_eq!(kinds(&events).iter().filter(|kind| *kind == "permissionRequest").count(), 1);
        let changed =
            events.iter().find(|event| event["type"] == "permissionModeChanged").expect("the host is told");
        assert_eq!(changed["permissionMode"], "acceptEdits");
        assert_eq!(texts(&events).last().map(String::as_str), Some("both"));
    });
}

fn claude_asks_the_user_and_hears_the_answer() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let option = |label: &str| json!({"label": label, "description": "a colour"});
        let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [option("Red"), option("Blue")]});
        let prompt = format!("{{{{use AskUserQuestion {}}}}}", json!({"questions": [question]}));
        let running = talk.begin(talk.send(&prompt));
        let ask = running.desk.of("userInputRequest").await;
        assert_eq!((&ask["source"], &ask["message"]), (&json!("Claude"), &json!("Which colour?")));
        assert_eq!(ask["payload"], json!({"kind": "ask-user-question", "questions": [question]}));
        let content = json!({"questions": [question], "answers": {"Which colour?": "Blue"}});
        running.desk.answer(&ask["userInputId"], InputAction::Submit, &content);
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let events = desk.all();
        assert!(texts(&events).concat().contains("Blue"), "{:?}", texts(&events));
        let used = events.iter().filter(|event| event["type"] == "assistant");
        assert_eq!(used.filter(|event| event.to_string().contains("AskUserQuestion")).count(), 0);

        let running = talk.begin(talk.send(&prompt));
        let ask = running.desk.of("userInputRequest").await;
        running.desk.answer(&ask["userInputId"], InputAction::Decline, &Value::Null);
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        assert!(texts(&desk.all()).concat().contains("User declined"), "{:?}", texts(&desk.all()));
    });
}

fn claude_hands_over_a_plan_and_does_not_start_with_it() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let prompt = r##"{{use ExitPlanMode {"plan":"# Do it\n1. now"}}}"##;
        let (outcome, events) = talk.turn(talk.send_in(PermissionMode::Plan, prompt)).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let captured = events.iter().find(|event| event["type"] == "planCaptured").expect("a plan");
        assert_eq!(captured["plan"], "# Do it\n1. now");
        assert!(captured["toolUseId"].as_str().unwrap().starts_with("toolu_"), "{captured}");
        assert!(texts(&events).concat().contains("Stop here"), "{:?}", texts(&events));
    });
}

fn claude_goes_on_with_a_session_and_says_when_there_is_none() {
    let Some(world) = World::real("") else { return };
    run(async {
        let (_, events) = world.session().says("{{say the first word}}").await;
        let id = session_id(&events);
        // Another session of the host goes on with it.
        let talk = world.session();
        let (outcome, events) =
            talk.turn(SendMessage { resume: Some(id.clone()), ..talk.send("{{say resumed}}") }).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(session_id(&events), id);
        let request = asked("resumed").pop().unwrap();
        assert!(request["newest"].as_str().unwrap().contains("the first word"), "{request}");

        // A host that has learned the first name keeps to it when `/clear` gives the session another one.
        let resume = || Some(id.clone());
        talk.turn(SendMessage { resume: resume(), ..talk.send("/clear") }).await;
        let warm = programs(&world);
        let (_, cleared) = talk.turn(SendMessage { resume: resume(), ..talk.send("{{say cleared}}") }).await;
        assert_ne!(session_id(&cleared), id);
        assert_eq!(programs(&world), warm, "the same program");
        talk.session.close().await;
        let (_, events) =
            talk.turn(SendMessage { resume: resume(), ..talk.send("{{say still cleared}}") }).await;
        assert_eq!(session_id(&events), session_id(&cleared));
        talk.session.close().await;

        for lost in ["12345678-1234-4234-8234-123456789012", "no such thing"] {
            let talk = world.session();
            let send = SendMessage { resume: Some(lost.to_owned()), ..talk.send("{{say anew}}") };
            let (outcome, events) = talk.turn(send).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!((&events[0]["type"], &events[0]["resume"]), (&json!("contextReset"), &json!(lost)));
            assert_eq!(texts(&events), ["anew"], "the turn is not lost");
            assert_eq!(kinds(&events).iter().filter(|kind| kind.starts_with("result")).count(), 1);
        }
    });
}

fn claude_errors_of_the_api_fail_with_a_word_each() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        for (directive, code) in [
            ("status 401", FailureCode::Auth),
            ("status 429", FailureCode::RateLimit),
            ("status 500", FailureCode::Server),
            ("status 529", FailureCode::Server),
            ("status 400", FailureCode::InvalidRequest),
        ] {
            let (outcome, events) = talk.says(&format!("{{{{{directive}}}}}")).await;
            let Outcome::Failed(failure) = outcome else { panic!("{directive}: {outcome:?}") };
            assert_eq!(failure.code, code, "{failure}");
            assert!(failure.message.contains("as you asked"), "what the server said: {failure}");
            assert!(kinds(&events).contains(&"result/success".to_owned()), "its own words come before");
        }
        let (outcome, _) = talk.says("{{cut}}").await;
        assert!(matches!(&outcome, Outcome::Failed(_)), "half an answer is none: {outcome:?}");
        let (outcome, events) = talk.says("{{say and it still works}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(texts(&events), ["and it still works"]);
        assert_eq!(programs(&world).len(), 1);
    });
}

fn claude_that_fails_after_an_answer_ends_badly() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let (outcome, _) = talk.says(r#"{{use Bash {"command":"true"}}} {{status 500}}"#).await;
        assert!(
            matches!(&outcome, Outcome::EndedBadly { message } if message.contains("500")),
            "{outcome:?}"
        );
    });
}

fn claude_sees_a_picture_and_hears_of_one_that_is_missing() {
    let Some(world) = World::real("") else { return };
    run(async {
        let picture = world.folder.path().join("dot.png");
        let dot = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63606060600000000500012 7d4b3000000000049454e44ae426082".replace(' ', "");
        let bytes: Vec<u8> =
            (0..dot.len()).step_by(2).map(|at| u8::from_str_radix(&dot[at..at + 2], 16).unwrap()).collect();
        std::fs::write(&picture, bytes).unwrap();
        let missing = world.folder.path().join("missing.png");
        let talk = world.session();
        let prompt = format!("{{{{say I see}}}} @{}", picture.display());
        let send = SendMessage { images: vec![picture, missing.clone()], ..talk.send(&prompt) };
        let (outcome, events) = talk.turn(send).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(texts(&events), ["I see"]);
        let request = asked("I see").pop().unwrap();
        assert_eq!(request["images"], json!(["image/png"]), "{request}");
        let told = request["texts"].to_string();
        assert!(told.contains("missing.png is not attached") && !told.contains("dot.png"), "{told}");
    });
}

fn claude_answers_what_it_is_asked_beside_turns() {
    let Some(world) = World::real("") else { return };
    run(async {
        let models = world.claude.models(None).await.unwrap();
        let default = models.iter().find(|model| model.id == "default").expect("a default");
        assert!(default.effort_levels.as_ref().is_some_and(|levels| levels.contains(&"high".to_owned())));
        std::fs::create_dir_all(world.work().join(".claude/commands")).unwrap();
        std::fs::write(world.work().join(".claude/commands/mine.md"), "Do my thing").unwrap();
        let query = SlashQuery { cwd: Some(world.work()), additional_directories: Vec::new() };
        let commands = world.claude.slash_commands(&query).await.unwrap();
        let names: Vec<&str> = commands.iter().map(|command| &*command.name).collect();
        assert!(names.contains(&"mine") && names.contains(&"compact"), "{names:?}");

        let request = TitleRequest {
            prompt: "{{say title: A good one}}".to_owned(),
            model: None,
            claude_environment: Vec::new(),
            agent_proxy: None,
        };
        assert_eq!(world.claude.one_shot(&request).await.unwrap(), "title: A good one");
        let heard = asked("A good one").pop().unwrap();
        assert!(heard["model"].as_str().unwrap().contains("haiku"), "the cheapest: {heard}");
        let refused = TitleRequest { prompt: "{{status 401}}".to_owned(), ..request };
        assert_eq!(world.claude.one_shot(&refused).await.unwrap_err().code, FailureCode::Auth);

        let talk = world.session();
        let (_, events) = talk.says("{{say something to count}}").await;
        let mut query = ContextQuery {
            session_id: "s1".to_owned(),
            model: "default".to_owned(),
            provider_session_id: Some(session_id(&events)),
            cwd: Some(world.work()),
            agent_proxy: None,
        };
        let live: Value = serde_json::from_str(&talk.session.context_usage(&query).await.unwrap()).unwrap();
        assert!(live["usedTokens"].as_u64().unwrap() > 0 && live["categories"].is_array(), "{live}");
        assert_eq!(programs(&world).len(), 1, "the one that runs was asked");
        let cold = world.session();
        let usage: Value = serde_json::from_str(&cold.session.context_usage(&query).await.unwrap()).unwrap();
        assert_eq!(usage["maxTokens"], live["maxTokens"], "{usage}");
        query.provider_session_id = Some("12345678-1234-4234-8234-123456789012".to_owned());
        let none = cold.session.context_usage(&query).await.unwrap_err();
        assert_eq!(none.code, FailureCode::InvalidRequest, "{none}");
    });
}

fn claude_as_root_is_told_why_it_may_not_bypass_permissions() {
    let Some(world) = World::real("unset IS_SANDBOX") else { return };
    run(async {
        let talk = world.session();
        let (outcome, _) = talk.says("{{say hello}}").await;
        let root =
            std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
        match outcome {
            Outcome::Failed(failure) if root => {
                assert_eq!(failure.code, FailureCode::AgentExited);
                assert!(failure.message.contains("IS_SANDBOX=1"), "{failure}");
            }
            Outcome::Ended if !root => {}
            other => panic!("{other:?}"),
        }
    });
}
