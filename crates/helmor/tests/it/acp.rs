//! An agent over ACP under its driver: turns, questions, settings, earlier sessions, files, and what goes wrong.

use outrigger_helmor::protocol::{
    AgentProxy, ContextQuery, Effort, PermissionMode, SendMessage, SlashQuery, TitleRequest,
};
use outrigger_helmor::provider::acp::Flavour;
use outrigger_helmor::provider::{Change, FailureCode, InputAction, Outcome, Provider, Verdict};
use serde_json::{Value, json};

use crate::acp_kit::{World, cursor, failure, last_said, of, said};
use crate::claude_kit::{kinds, run};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        acp_agent_streams_a_turn_in_order_and_stays_warm,
        acp_agent_asks_and_the_host_allows_denies_or_allows_for_ever,
        acp_agent_is_not_asked_about_under_modes_that_decide,
        acp_agent_is_put_into_the_mode_and_the_model_that_the_turn_wants,
        acp_agent_that_cannot_plan_does_not_pretend_to,
        acp_agent_goes_on_with_an_earlier_session_and_history_is_no_news,
        acp_agent_that_lost_a_session_says_so_and_starts_anew_in_the_same_turn,
        acp_agent_gets_a_new_program_when_the_folder_or_the_proxy_changes,
        acp_agent_sees_pictures_and_hears_of_those_it_cannot_take,
        acp_agent_cannot_be_steered,
        acp_agent_is_asked_for_models_commands_titles_and_usage,
        cursor_has_its_own_name_key_questions_and_plans
    ]
}

fn acp_agent_streams_a_turn_in_order_and_stays_warm() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let events = talk
            .says(r#"{{think hm}}{{say one}}{{tool {"rawInput":{"x":1}}}}{{update {"sessionUpdate":"plan","entries":[]}}}{{flood 300}}{{say end}}"#)
            .await;
        let kinds = kinds(&events);
        assert_eq!(
            kinds[..7],
            [
                "acp/agent_init",
                "acp/status",
                "acp/thinking",
                "acp/assistant",
                "acp/tool_call_start",
                "acp/tool_call_end",
                "acp/plan"
            ]
        );
        let words: Vec<String> = (0..300).map(|count| format!("word {count} ")).collect();
        assert_eq!(
            said(&events),
            format!("one{}end", words.concat()),
            "in order, and nothing is missing before the end"
        );
        let finished = events.last().unwrap();
        assert_eq!((&finished["type"], &finished["stop_reason"]), (&json!("acp/status"), &json!("end_turn")));
        let init = &events[0];
        assert_eq!((&init["model"], init["session_id"].as_str().is_some()), (&json!("small"), true));

        let first = talk.state().await;
        let second = talk.state().await;
        assert_eq!(first, second, "the same program and the same session");
        assert_eq!(init["session_id"], first["id"]);
        assert!(talk.session.warm_since().is_some());
        talk.session.close().await;
        assert_eq!((world.programs(), talk.session.warm_since()), (vec![], None));
        let again = talk.state().await;
        assert_eq!(again["id"], first["id"], "closed is not forgotten");
        talk.session.close().await;
    });
}

fn acp_agent_asks_and_the_host_allows_denies_or_allows_for_ever() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let always = json!({ "type": "option", "optionId": "allow-always", "name": "Always allow", "kind": "allow_always" });
        let cases = [
            (Verdict::Allow { updated: vec![] }, "allow-once"),
            (Verdict::Allow { updated: vec![always.clone()] }, "allow-always"),
            (Verdict::Deny { message: None }, "reject-once"),
        ];
        for (verdict, option) in cases {
            let prompt = r#"{{permit {"title":"ls -la","rawInput":{"command":"ls -la"}}}}"#;
            let running = talk.begin(talk.send_in(PermissionMode::Default, prompt));
            let asked = running.desk.of("permissionRequest").await;
            assert_eq!(
                (&asked["toolName"], &asked["toolInput"]),
                (&json!("execute"), &json!({ "command": "ls -la" }))
            );
            assert_eq!(asked["suggestions"], json!([always]));
            assert!(asked["permissionId"].as_str().unwrap().starts_with("acp-"));
            running.desk.decide(&asked["permissionId"], verdict);
            assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
            let events = running.desk.all();
            assert_eq!(
                last_said(&events),
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            );
            assert_eq!(of(&events, "permissionCancelled"), Vec::<&Value>::new());
        }
        talk.session.close().await;
    });
}

fn acp_agent_is_not_asked_about_under_modes_that_decide() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let cases = [
            (PermissionMode::BypassPermissions, "execute", "allow-once"),
            (PermissionMode::AcceptEdits, "edit", "allow-once"),
            (PermissionMode::DontAsk, "edit", "reject-once"),
            (PermissionMode::Plan, "switch_mode", "reject-once"),
        ];
        for (mode, kind, option) in cases {
            let prompt = format!(r#"{{{{permit {{"kind":"{kind}","rawInput":{{"plan":"1. think"}}}}}}}}"#);
            let (outcome, events) = talk.turn(talk.send_in(mode, &prompt)).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(last_said(&events)["outcome"]["optionId"], option, "{mode:?}");
            assert_eq!(of(&events, "permissionRequest"), Vec::<&Value>::new());
            let plans = of(&events, "planCaptured");
            match mode {
                PermissionMode::Plan => assert_eq!(plans[0]["plan"], "1. think"),
                _ => assert_eq!(plans, Vec::<&Value>::new()),
            }
        }

        // What a question leaves out was said before, and an agent may stop when it is not allowed to go on.
        let early = r#"{{update {"sessionUpdate":"tool_call","toolCallId":"t9","title":"Plan","kind":"switch_mode","rawInput":{"plan":"2. act"}}}}{{permit {"toolCallId":"t9","kind":null,"rawInput":{}}}}{{stop cancelled}}"#;
        let (outcome, events) = talk.turn(talk.send_in(PermissionMode::Plan, early)).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(of(&events, "planCaptured")[0]["plan"], "2. act");

        // The host changes its mind in the middle of a turn.
        let running = talk.begin(talk.send_in(PermissionMode::Default, r"{{permit {}}}{{permit {}}}"));
        let first = running.desk.of("permissionRequest").await;
        let change =
            Change { permission_mode: Some(Some(PermissionMode::BypassPermissions)), ..Change::default() };
        talk.session.reconfigure(&change).await.unwrap();
        running.desk.allow(&first["permissionId"]);
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        assert_eq!(of(&running.desk.all(), "permissionRequest").len(), 1);
        talk.session.close().await;
    });
}

fn acp_agent_is_put_into_the_mode_and_the_model_that_the_turn_wants() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let planned = SendMessage {
            model: Some("large".to_owned()),
            ..talk.send_in(PermissionMode::Plan, "{{state}}")
        };
        let (_, events) = talk.turn(planned).await;
        let state = last_said(&events);
        assert_eq!((&state["mode"], &state["model"]), (&json!("plan"), &json!("large")));
        assert_eq!(events[0]["model"], "large");
        assert_eq!(
            of(&events, "permissionModeChanged"),
            Vec::<&Value>::new(),
            "what the host wants is no news to it"
        );
        assert_eq!(
            talk.state().await["mode"],
            "agent",
            "a turn that only plans does not make the next one so"
        );

        let changes =
            r#"{{update {"sessionUpdate":"current_mode_update","currentModeId":"plan"}}}{{permit {}}}"#;
        let running = talk.begin(talk.send(changes));
        let told = running.desk.of("permissionModeChanged").await;
        assert_eq!(told["permissionMode"], "plan");
        let asked = running.desk.of("permissionRequest").await;
        running.desk.allow(&asked["permissionId"]);
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));

        let unknown = SendMessage { model: Some("huge".to_owned()), ..talk.send("{{say hi}}") };
        let (outcome, events) = talk.turn(unknown).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert!(of(&events, "log")[0]["message"].as_str().unwrap().contains("`huge`"));
        let init = of(&events, "acp/agent_init")[0];
        assert_eq!(init["model"], "large", "the host hears which model it is");
        let change = Change { model: Some(Some("huge".to_owned())), ..Change::default() };
        assert_eq!(talk.session.reconfigure(&change).await.unwrap_err().code, FailureCode::InvalidRequest);
        talk.session.close().await;
    });
    let world = World::new(&["--with", "config"]);
    run(async {
        let talk = world.session();
        let effort = Some(Effort("high".to_owned()));
        let (_, events) = talk
            .turn(SendMessage { model: Some("Large".to_owned()), effort, ..talk.send("{{state}}") })
            .await;
        let state = last_said(&events);
        assert_eq!((&state["model"], &state["effort"]), (&json!("large"), &json!("high")));
        talk.session.close().await;
    });
}

fn acp_agent_that_cannot_plan_does_not_pretend_to() {
    let world = World::new(&["--without", "modes"]);
    run(async {
        let talk = world.session();
        let (outcome, events) =
            talk.turn(talk.send_in(PermissionMode::Plan, "{{say I changed everything}}")).await;
        assert_eq!(failure(outcome).code, FailureCode::Unsupported);
        assert_eq!(said(&events), "");
        assert_eq!(said(&talk.says("{{say other modes are ours}}").await), "other modes are ours");
        talk.session.close().await;
    });
}

fn acp_agent_goes_on_with_an_earlier_session_and_history_is_no_news() {
    for args in [&[][..], &["--with", "resume"]] {
        let world = World::new(args);
        run(async {
            let first = world.session();
            let session = first.says("remember me").await[0]["session_id"].as_str().unwrap().to_owned();
            first.session.close().await;
            let second = world.session();
            let resumed = SendMessage { resume: Some(session.clone()), ..second.send("{{history}}") };
            let (outcome, events) = second.turn(resumed.clone()).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(said(&events), r#"["remember me"]"#, "nothing of the history is passed on");
            assert_eq!(events[0]["session_id"], session.as_str());
            assert_eq!(of(&events, "contextReset"), Vec::<&Value>::new());
            let (_, events) = second.turn(resumed).await;
            assert_eq!(
                said(&events),
                r#"["remember me", "{{history}}"]"#,
                "the warm program has that very session"
            );
            second.session.close().await;
        });
    }
}

fn acp_agent_that_lost_a_session_says_so_and_starts_anew_in_the_same_turn() {
    for (args, reason) in
        [(&[][..], "no such session"), (&["--without", "load"], "cannot load earlier sessions")]
    {
        let world = World::new(args);
        run(async {
            let talk = world.session();
            let (outcome, events) =
                talk.turn(SendMessage { resume: Some("gone".to_owned()), ..talk.send("{{say new}}") }).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(events[0]["type"], "contextReset");
            assert_eq!(events[0]["resume"], "gone");
            assert!(events[0]["reason"].as_str().unwrap().contains(reason), "{}", events[0]);
            assert_ne!(events[1]["session_id"], "gone");
            assert_eq!(said(&events), "new");
            talk.session.close().await;
        });
    }
}

fn acp_agent_gets_a_new_program_when_the_folder_or_the_proxy_changes() {
    let world = World::new(&["--with", "directories"]);
    run(async {
        let talk = world.session();
        let other = world.folder.path().join("other");
        std::fs::create_dir_all(&other).unwrap();
        let first = talk.state().await;
        assert_eq!(first["folders"], Value::Null);
        let proxy = Some(AgentProxy::Custom("http://127.0.0.1:9".to_owned()));
        let send = SendMessage {
            additional_directories: vec![other.clone()],
            agent_proxy: proxy,
            ..talk.send("{{state}}")
        };
        let (_, events) = talk.turn(send).await;
        let second = last_said(&events);
        assert_ne!(first["program"], second["program"]);
        assert_eq!((&second["folders"], &second["proxy"]), (&json!([other]), &json!("http://127.0.0.1:9")));
        assert_eq!(first["id"], second["id"], "and goes on where it was");
        assert_eq!(of(&events, "contextReset"), Vec::<&Value>::new());
        talk.session.close().await;
    });
    let forgetful = World::new(&["--without", "load"]);
    run(async {
        let talk = forgetful.session();
        let first = talk.state().await;
        let proxy = Some(AgentProxy::Custom("http://127.0.0.1:9".to_owned()));
        let (_, events) =
            talk.turn(SendMessage { agent_proxy: proxy, ..talk.send("{{say who are you}}") }).await;
        assert_eq!(of(&events, "contextReset")[0]["resume"], first["id"], "or says that it cannot");
        talk.session.close().await;
    });
}

fn acp_agent_sees_pictures_and_hears_of_those_it_cannot_take() {
    let picture = |world: &World| {
        let path = world.work().join("a.png");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
        path
    };
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let path = picture(&world);
        let prompt = format!("what is @{} {{{{blocks}}}}", path.display());
        let (_, events) = talk.turn(SendMessage { images: vec![path], ..talk.send(&prompt) }).await;
        let expected = json!([{ "type": "text", "text": "what is {{blocks}}" }, { "type": "image", "mimeType": "image/png", "data": 12 }]);
        assert_eq!(last_said(&events), expected);
        let linked = SendMessage { additional_directories: vec![world.work()], ..talk.send("{{blocks}}") };
        let (_, events) = talk.turn(linked).await;
        assert!(
            last_said(&events)[0]["text"].as_str().unwrap().contains(world.work().to_str().unwrap()),
            "who cannot take folders is told"
        );
        talk.session.close().await;
    });
    let world = World::new(&["--without", "image"]);
    run(async {
        let talk = world.session();
        let images = vec![picture(&world)];
        let (_, events) = talk.turn(SendMessage { images, ..talk.send("{{blocks}}") }).await;
        assert!(last_said(&events)[1]["text"].as_str().unwrap().contains("1 image(s) are not attached"));
        talk.session.close().await;
    });
}

fn acp_agent_cannot_be_steered() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("{{say listening}}{{hang}}"));
        running.desk.of("acp/assistant").await;
        assert_eq!(running.steer("faster").await, Some(Err("unsupported".to_owned())));
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        talk.session.close().await;
    });
}

fn acp_agent_is_asked_for_models_commands_titles_and_usage() {
    let world = World::new(&["--with", "delete"]);
    run(async {
        let models = world.acp.models(None).await.unwrap();
        let names: Vec<(&str, &str)> = models.iter().map(|model| (&*model.id, &*model.label)).collect();
        assert_eq!(names, [("small", "Small"), ("large", "Large")]);
        let query = SlashQuery { cwd: Some(world.work()), additional_directories: vec![] };
        let commands = world.acp.slash_commands(&query).await.unwrap();
        assert_eq!((&*commands[0].name, commands[0].argument_hint.as_deref()), ("review", Some("what")));
        let request = TitleRequest {
            prompt: "{{say title: }}{{permit {}}}".to_owned(),
            model: Some("large".to_owned()),
            claude_environment: vec![],
            agent_proxy: None,
        };
        let sessions = || std::fs::read_dir(world.folder.path().join("sessions")).unwrap().count();
        let before = sessions();
        let title = world.acp.one_shot(&request).await.unwrap();
        assert_eq!(sessions(), before, "a title leaves no session behind");
        assert_eq!(title, r#"title:{"outcome": {"optionId": "reject-once", "outcome": "selected"}}"#);

        let talk = world.session();
        let query = ContextQuery {
            session_id: "s1".to_owned(),
            model: "small".to_owned(),
            provider_session_id: None,
            cwd: None,
            agent_proxy: None,
        };
        assert_eq!(talk.session.context_usage(&query).await.unwrap_err().code, FailureCode::Unsupported);
        let events = talk.says(r#"{{update {"sessionUpdate":"usage_update","used":50,"size":200}}}"#).await;
        let told = of(&events, "contextUsageUpdated")[0];
        let meta = json!({ "modelId": "small", "usedTokens": 50, "maxTokens": 200, "percentage": 25.0 });
        assert_eq!(serde_json::from_str::<Value>(told["meta"].as_str().unwrap()).unwrap(), meta);
        assert_eq!(told["sessionId"], "s1");
        let asked = talk.session.context_usage(&query).await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&asked).unwrap(), meta);
        talk.session.close().await;
    });
}

fn cursor_has_its_own_name_key_questions_and_plans() {
    let world = World::with(|folder| cursor(folder, &[]));
    run(async {
        let talk = world.session();
        let events = talk.says("{{state}}").await;
        assert_eq!(
            kinds(&events),
            ["cursor/agent_init", "cursor/status", "cursor/assistant", "cursor/status"]
        );
        assert_eq!(last_said(&events)["key"], "first");
        world.acp.configure(&Change { cursor_api_key: Some(Some("second".to_owned())), ..Change::default() });
        assert_eq!(talk.state().await["key"], "second", "a new key is a new program");

        let ask = r#"{{ask cursor/ask_question {"toolCallId":"t","title":"Pick","questions":[{"id":"q","prompt":"Which?","options":[{"id":"a","label":"A"},{"id":"b","label":"B"}]}]}}}"#;
        let running = talk.begin(talk.send(ask));
        let asked = running.desk.of("userInputRequest").await;
        assert_eq!((&asked["message"], &asked["payload"]["kind"]), (&json!("Pick"), &json!("form")));
        running.desk.answer(&asked["userInputId"], InputAction::Submit, &json!({ "q": "b" }));
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        let answers = json!([{ "questionId": "q", "selectedOptionIds": ["b"] }]);
        assert_eq!(
            last_said(&running.desk.all())["outcome"],
            json!({ "outcome": "answered", "answers": answers })
        );

        let plan = r##"{{ask cursor/create_plan {"toolCallId":"t","name":"N","overview":"O","plan":"# P","todos":[]}}}{{tell cursor/update_todos {"todos":[]}}}"##;
        let events = talk.says(plan).await;
        assert_eq!(
            of(&events, "planCaptured")[0],
            &json!({ "type": "planCaptured", "toolUseId": "t", "plan": "O\n\n# P" })
        );
        assert_eq!(last_said(&events)["outcome"]["outcome"], "rejected");
        assert_eq!(of(&events, "cursor/update_todos").len(), 1);
        talk.session.close().await;

        let models = world.acp.models(Some("another key")).await.unwrap();
        assert_eq!(models.len(), 2, "what the agent offers");
        let skill = world.work().join(".cursor/skills/deploy");
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), "---\nname: deploy\ndescription: Ships it\n---\n").unwrap();
        let query = SlashQuery { cwd: Some(world.work()), additional_directories: vec![] };
        let commands = world.acp.slash_commands(&query).await.unwrap();
        assert!(commands.iter().any(|command| command.name == "deploy" && command.source == "skill"));
    });
    let missing =
        World::with(|_| Flavour::Cursor { program: Some("/nowhere/cursor-agent".into()), api_key: None });
    run(async {
        let models = missing.acp.models(None).await.unwrap();
        assert_eq!(models[0].id, "composer-2", "without the program there is still the table");
    });
}
