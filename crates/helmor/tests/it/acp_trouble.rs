//! An agent over ACP that is not as one would like: not there, not logged in, dying, failing, asking for too much.

use outrigger_helmor::protocol::{PermissionMode, SendMessage};
use outrigger_helmor::provider::acp::Flavour;
use outrigger_helmor::provider::{FailureCode, Outcome};
use serde_json::{Value, json};

use crate::acp_kit::{World, cursor, failure, last_said, of, said};
use crate::claude_kit::{run, until};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        acp_agent_that_is_not_logged_in_is_helped,
        acp_agent_reads_and_writes_files_only_below_its_folders,
        acp_agent_may_ask_for_what_we_do_not_offer_and_print_what_is_no_message,
        acp_agent_may_ask_64_questions_at_once_and_not_65,
        acp_agent_that_dies_is_told_with_its_last_words,
        acp_agent_that_fails_fails_with_a_word,
        acp_agent_ends_its_turn_for_many_reasons,
        acp_agent_that_is_not_there_is_told_at_once
    ]
}

fn acp_agent_that_is_not_logged_in_is_helped() {
    let world = World::new(&["--auth", "cursor_login"]);
    run(async {
        let talk = world.session();
        assert_eq!(
            said(&talk.says("{{say logged in}}").await),
            "logged in",
            "a login that needs nobody is used"
        );
        talk.session.close().await;
    });
    let world = World::new(&["--auth", "oauth"]);
    run(async {
        let talk = world.session();
        let resumed = SendMessage { resume: Some("earlier".to_owned()), ..talk.send("hi") };
        for send in [talk.send("hi"), resumed] {
            let (outcome, events) = talk.turn(send).await;
            let failure = failure(outcome);
            assert_eq!(failure.code, FailureCode::Auth);
            assert!(failure.message.contains("The login (with a browser)"), "{failure}");
            assert_eq!(
                of(&events, "contextReset"),
                Vec::<&Value>::new(),
                "who is not logged in has lost nothing"
            );
        }
        assert_eq!(talk.session.warm_since(), None, "a program without a session is not kept");
    });
    let cursor = World::with(|folder| cursor(folder, &["--auth", "nobody"]));
    run(async {
        let talk = cursor.session();
        let (outcome, _) = talk.turn(talk.send("hi")).await;
        let failure = failure(outcome);
        assert!(failure.code == FailureCode::Auth && failure.message.contains("CURSOR_API_KEY"), "{failure}");
    });
}

fn acp_agent_reads_and_writes_files_only_below_its_folders() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        std::fs::write(world.work().join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(world.folder.path().join("secret.txt"), "secret").unwrap();
        let (work, outside) = (world.work(), world.folder.path().join("secret.txt"));
        let (work, outside) = (work.display(), outside.display());
        let read = talk
            .says(&format!(r#"{{{{ask fs/read_text_file {{"path":"{work}/a.txt","line":2,"limit":1}}}}}}"#))
            .await;
        assert_eq!(last_said(&read), json!({ "content": "two\n" }));
        talk.says(&format!(r#"{{{{ask fs/write_text_file {{"path":"{work}/new/b.txt","content":"b"}}}}}}"#))
            .await;
        assert_eq!(std::fs::read_to_string(world.work().join("new/b.txt")).unwrap(), "b");
        for prompt in [
            format!(r#"{{{{ask fs/read_text_file {{"path":"{outside}"}}}}}}"#),
            format!(r#"{{{{ask fs/write_text_file {{"path":"{outside}","content":"x"}}}}}}"#),
            format!(r#"{{{{ask fs/write_text_file {{"path":"{work}/../secret.txt","content":"x"}}}}}}"#),
        ] {
            let refused = last_said(&talk.says(&prompt).await);
            assert!(
                refused["error"]["message"].as_str().unwrap().contains("outside of the folders"),
                "{refused}"
            );
        }
        let missing = last_said(
            &talk.says(&format!(r#"{{{{ask fs/read_text_file {{"path":"{work}/none"}}}}}}"#)).await,
        );
        assert_eq!(missing["error"]["code"], -32002);
        let planned = format!(r#"{{{{ask fs/write_text_file {{"path":"{work}/plan.txt","content":"x"}}}}}}"#);
        talk.turn(talk.send_in(PermissionMode::Plan, &planned)).await;
        assert!(!world.work().join("plan.txt").exists(), "a turn that only plans writes nothing");
        assert_eq!(std::fs::read_to_string(world.folder.path().join("secret.txt")).unwrap(), "secret");
        talk.session.close().await;
    });
}

fn acp_agent_may_ask_for_what_we_do_not_offer_and_print_what_is_no_message() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let unknown = last_said(&talk.says(r#"{{ask terminal/create {"command":"ls"}}}"#).await);
        assert_eq!(unknown["error"]["code"], -32601);
        let wrong = last_said(&talk.says(r#"{{ask fs/read_text_file {"path":7}}}"#).await);
        assert_eq!(wrong["error"]["code"], -32602);
        let events = talk.says("{{garbage}}{{say still here}}").await;
        assert_eq!(said(&events), "still here");
        assert!(
            of(&events, "log").iter().any(|log| log["message"].as_str().unwrap().contains("this is no JSON"))
        );
        talk.session.close().await;
    });
}

fn acp_agent_may_ask_64_questions_at_once_and_not_65() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let questions = |events: &[Value]| of(events, "permissionRequest").len();
        let running = talk.begin(talk.send_in(PermissionMode::Default, "{{crowd 64}}"));
        until(|| questions(&running.desk.all()) == 64).await;
        for asked in of(&running.desk.all(), "permissionRequest") {
            running.desk.allow(&asked["permissionId"]);
        }
        assert!(matches!(running.outcome.await.unwrap(), Outcome::Ended));
        let events = running.desk.all();
        assert_eq!((questions(&events), said(&events).contains("error")), (64, false));

        let running = talk.begin(talk.send_in(PermissionMode::Default, "{{crowd 65}}"));
        let refused = running.desk.of("acp/assistant").await;
        assert!(refused.to_string().contains("64 questions are open already"), "{refused}");
        until(|| questions(&running.desk.all()) == 64).await;
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(said(&talk.says("{{say and all is well}}").await), "and all is well");
        talk.session.close().await;
    });
}

fn acp_agent_that_dies_is_told_with_its_last_words() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let (outcome, events) = talk.turn(talk.send("{{say half}}{{die out of memory}}")).await;
        let failure = failure(outcome);
        assert_eq!(failure.code, FailureCode::AgentExited);
        assert!(failure.message.contains("out of memory") && failure.message.contains('7'), "{failure}");
        assert_eq!(said(&events), "half");
        assert_eq!((world.programs(), talk.session.warm_since()), (vec![], None));
        assert_eq!(said(&talk.says("{{say back again}}").await), "back again");
        talk.session.close().await;
    });
    let world = World::new(&["--broken"]);
    run(async {
        let talk = world.session();
        let (outcome, _) = talk.turn(talk.send("hi")).await;
        let failure = failure(outcome);
        assert!(
            failure.code == FailureCode::AgentExited && failure.message.contains("this agent is broken"),
            "{failure}"
        );
    });
}

fn acp_agent_that_fails_fails_with_a_word() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let cases = [
            ("-32000 Authentication required", FailureCode::Auth),
            ("-32603 HTTP 401 from the API", FailureCode::Auth),
            ("-32603 429 Too Many Requests", FailureCode::RateLimit),
            ("-32603 Overloaded", FailureCode::Server),
            ("-32602 Invalid params", FailureCode::InvalidRequest),
            ("-32603 Internal error after 15003 tokens", FailureCode::Provider),
        ];
        for (error, code) in cases {
            let (outcome, _) = talk.turn(talk.send(&format!("{{{{error {error}}}}}"))).await;
            let failure = failure(outcome);
            assert_eq!(failure.code, code, "{error}");
            assert!(failure.message.contains("the details"), "{failure}");
        }
        assert_eq!(
            said(&talk.says("{{say a failed turn is not the end}}").await),
            "a failed turn is not the end"
        );
        talk.session.close().await;
    });
    let world = World::new(&["--version", "2"]);
    run(async {
        let talk = world.session();
        let (outcome, _) = talk.turn(talk.send("hi")).await;
        assert_eq!(failure(outcome).code, FailureCode::AgentProtocol);
    });
}

fn acp_agent_ends_its_turn_for_many_reasons() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        for reason in ["refusal", "max_tokens", "max_turn_requests", "cancelled"] {
            let (outcome, events) =
                talk.turn(talk.send(&format!("{{{{say so}}}}{{{{stop {reason}}}}}"))).await;
            assert!(matches!(outcome, Outcome::EndedBadly { .. }), "{reason}: {outcome:?}");
            assert_eq!(events.last().unwrap()["stop_reason"], reason);
        }
        assert_eq!(said(&talk.says("{{say so}}{{stop something_new}}").await), "so");
        talk.session.close().await;
    });
}

fn acp_agent_that_is_not_there_is_told_at_once() {
    let command = vec!["no-such-agent-anywhere".to_owned()];
    let world = World::with(|_| Flavour::Named { name: "mine".to_owned(), command });
    run(async {
        let talk = world.session();
        let (outcome, _) = talk.turn(talk.send("hi")).await;
        let failure = failure(outcome);
        assert_eq!(failure.code, FailureCode::NotInstalled);
        assert!(failure.message.contains("no-such-agent-anywhere"), "{failure}");
    });
}
