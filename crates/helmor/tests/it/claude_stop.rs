//! Stopping, steering and dying, with the real Claude Code: a stop leaves nothing of the turn running, an accepted steer is
//! never lost, and a program that dies is told with its last words.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_helmor::protocol::{PermissionMode, SendMessage};
use outrigger_helmor::provider::{FailureCode, InputAction, Outcome};
use serde_json::{Value, json};

use crate::claude_kit::{World, ask_model, asked, kinds, processes, programs, run, session_id, texts, until};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        claude_stopped_in_its_text_is_ready_for_the_next_turn,
        claude_stopped_in_a_tool_leaves_nothing_of_it_running,
        claude_stopped_with_a_tool_in_the_background_takes_it_along,
        claude_stopped_while_it_asks_withdraws_the_question,
        claude_stopped_before_it_has_begun_does_not_begin,
        claude_takes_a_steer_at_the_border_of_a_tool,
        claude_takes_a_steer_in_its_last_text_as_a_turn_of_its_own,
        claude_killed_in_a_turn_is_told_and_the_session_goes_on,
        claude_that_wakes_up_by_itself_does_not_disturb_the_next_turn,
        claude_passes_on_the_form_of_a_server_that_belongs_to_the_repository,
        a_program_that_ends_without_a_word_is_an_error_whatever_its_code,
        a_program_that_never_says_that_it_is_idle_still_ends_its_turns,
        a_program_that_begins_by_itself_between_turns_is_interrupted,
        a_program_is_refused_what_nobody_knows_and_what_nobody_can_be_asked
    ]
}

/// A command of a tool that leaves a trace if it survives, and can be recognised while it runs.
fn tool(world: &World, command: &str) -> String {
    let survived = world.work().join("survived");
    let command = command.replace("SURVIVED", survived.to_str().unwrap());
    format!("{{{{use Bash {}}}}}", json!({"command": command}))
}

/// Waits until a process with this mark runs.
async fn runs(mark: &str) {
    until(|| !processes(mark).is_empty()).await;
}

fn claude_stopped_in_its_text_is_ready_for_the_next_turn() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("{{hold stop-in-text}}"));
        running.desk.talks().await;
        let first = programs(&world);
        assert_eq!(running.steer("{{say this must not be said}}").await, Some(Ok(())));
        let began = Instant::now();
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert!(began.elapsed() < Duration::from_secs(2), "by the protocol: {:?}", began.elapsed());
        let (outcome, events) = talk.says("{{say and now this}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(texts(&events), ["and now this"], "the steer went with its turn");
        assert_eq!(programs(&world), first);
    });
}

fn claude_stopped_in_a_tool_leaves_nothing_of_it_running() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let survived = world.work().join("survived");
        let mark = survived.to_str().unwrap();
        let running = talk.begin(talk.send(&tool(&world, "sh -c 'sleep 25; touch SURVIVED'")));
        runs(mark).await;
        let first = programs(&world);
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(processes(mark), Vec::<u32>::new(), "nothing is left to touch anything");
        let (outcome, events) = talk.says("{{say next}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(
            (texts(&events), programs(&world)),
            (vec!["next".to_owned()], first),
            "in the same program"
        );
    });
}

fn claude_stopped_with_a_tool_in_the_background_takes_it_along() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let survived = world.work().join("survived");
        let mark = survived.to_str().unwrap();
        let (_, events) = talk.says("{{say first}}").await;
        let id = session_id(&events);
        let command =
            "(setsid sh -c 'touch detached; sleep 25; touch SURVIVED' >/dev/null 2>&1 &); sh -c 'sleep 26'";
        let running = talk.begin(talk.send(&tool(&world, command)));
        let detached = world.work().join("detached");
        // Only a process that has left its session cannot be reached by those who know only that.
        until(|| detached.exists()).await;
        let first = programs(&world);
        let began = Instant::now();
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(processes(mark), Vec::<u32>::new(), "neither the tool nor what it left behind");
        let (outcome, events) = talk.says("{{say next}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(
            (texts(&events), session_id(&events)),
            (vec!["next".to_owned()], id),
            "the session goes on"
        );
        assert_ne!(programs(&world), first);
    });
}

fn claude_stopped_while_it_asks_withdraws_the_question() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let prompt = tool(&world, "touch SURVIVED");
        let running = talk.begin(talk.send_in(PermissionMode::Default, &prompt));
        let ask = running.desk.of("permissionRequest").await;
        let first = programs(&world);
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        let withdrawn = desk.of("permissionCancelled").await;
        assert_eq!(withdrawn["withdrawn"], ask["permissionId"]);
        let (outcome, _) = talk.turn(talk.send_in(PermissionMode::Default, "{{say next}}")).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(programs(&world), first);
        assert!(!world.work().join("survived").exists());
    });
}

fn claude_stopped_before_it_has_begun_does_not_begin() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send(&tool(&world, "touch SURVIVED")));
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        let (outcome, events) = talk.says("{{say after that}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let running = talk.begin(talk.send(&tool(&world, "touch SURVIVED")));
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        let (outcome, more) = talk.says("{{say and after that}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(session_id(&more), session_id(&events));
        assert!(!world.work().join("survived").exists());
    });
}

fn claude_takes_a_steer_at_the_border_of_a_tool() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let gate = world.work().join("gate");
        let command = format!("until test -e {}; do sleep 0.05; done", gate.display());
        let running = talk.begin(talk.send(&tool(&world, &command)));
        runs(gate.to_str().unwrap()).await;
        assert_eq!(running.steer("mind the gap, please").await, Some(Ok(())));
        std::fs::write(&gate, "").unwrap();
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let kinds = kinds(&desk.all());
        assert_eq!(kinds.iter().filter(|kind| kind.starts_with("result")).count(), 1, "one turn: {kinds:?}");
        let said = |kind: &str| kinds.iter().position(|known| known == kind);
        assert!(said("user_prompt") < said("result/success"), "{kinds:?}");
        assert_eq!(asked("mind the gap, please").len(), 1, "the model heard it in the call after the tool");
    });
}

fn claude_takes_a_steer_in_its_last_text_as_a_turn_of_its_own() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("{{hold steer-in-text}}"));
        running.desk.talks().await;
        assert_eq!(running.steer("{{say and one more}}").await, Some(Ok(())));
        ask_model("/release/steer-in-text");
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let events = desk.all();
        assert_eq!(texts(&events), ["steer-in-text", "and one more"], "the steer was not lost");
        let results = kinds(&events).iter().filter(|kind| kind.starts_with("result")).count();
        assert_eq!(results, 2);
        let usage = kinds(&events).iter().filter(|kind| *kind == "contextUsageUpdated").count();
        assert_eq!(usage, 1, "said once, at the end");
    });
}

fn claude_killed_in_a_turn_is_told_and_the_session_goes_on() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let (_, events) = talk.says("{{say first}}").await;
        let running = talk.begin(talk.send("{{hold killed}}"));
        running.desk.talks().await;
        for pid in programs(&world) {
            kill(pid);
        }
        let outcome = running.end().await;
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::AgentExited);
        assert!(
            failure.message.contains("middle of a turn") && failure.message.contains("SIGKILL"),
            "{failure}"
        );
        let (outcome, more) = talk.says("{{say here again}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(session_id(&more), session_id(&events));

        // Also when it dies while nobody looks.
        for pid in programs(&world) {
            kill(pid);
        }
        while talk.session.warm_since().is_some() {
            tokio::task::yield_now().await;
        }
        let (outcome, more) = talk.says("{{say and again}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(session_id(&more), session_id(&events));
    });
}

fn kill(pid: u32) {
    #[expect(clippy::disallowed_methods, reason = "a test that kills")]
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

fn claude_that_wakes_up_by_itself_does_not_disturb_the_next_turn() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        for round in 0..3 {
            let gate = world.work().join(format!("gate{round}"));
            let command = format!("until test -e {}; do sleep 0.02; done", gate.display());
            let background = json!({"command": command, "run_in_background": true});
            let (outcome, _) = talk.says(&format!("{{{{use Bash {background}}}}} {{{{say it runs}}}}")).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            let first = programs(&world);
            // The end of the command and the next turn come at the same time.
            std::fs::write(&gate, "").unwrap();
            until(|| processes(gate.to_str().unwrap()).is_empty()).await;
            let (outcome, events) = talk.says(&format!("{{{{say turn {round}}}}}")).await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            // Where the program wakes up within the turn, the host sees that too.
            assert!(texts(&events).contains(&format!("turn {round}")), "{:?}", kinds(&events));
            assert_eq!(programs(&world), first, "the same program");
        }
    });
}

/// A server of the Model Context Protocol with one tool, which asks the user for a name.
const ASKER: &str = r#"
import json, sys
def say(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    method, id = m.get("method"), m.get("id")
    if method == "initialize":
        say(id=id, result={"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "asker", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": [{"name": "ask", "description": "asks", "inputSchema": {"type": "object", "properties": {}}}]})
    elif method == "tools/call":
        call = id
        say(id="e1", method="elicitation/create", params={"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}})
    elif id == "e1":
        say(id=call, result={"content": [{"type": "text", "text": "it said " + json.dumps(m.get("result"))}]})
    elif id is not None:
        say(id=id, result={})
"#;

fn claude_passes_on_the_form_of_a_server_that_belongs_to_the_repository() {
    let Some(world) = World::real("") else { return };
    run(async {
        let server = world.folder.path().join("asker.py");
        std::fs::write(&server, ASKER).unwrap();
        let servers = json!({"asker": {"command": "python3", "args": [server]}});
        let settings = json!({"projects": {"/the/repository": {"mcpServers": servers}}});
        std::fs::write(world.home().join(".claude.json"), settings.to_string()).unwrap();
        let talk = world.session();
        let send = SendMessage {
            source_repo: Some("/the/repository".into()),
            claude_environment: vec![("CLAUDE_CONFIG_DIR".to_owned(), world.home().display().to_string())],
            ..talk.send("{{use mcp__asker__ask {}}}")
        };
        let running = talk.begin(send);
        let ask = running.desk.of("userInputRequest").await;
        assert_eq!((&ask["source"], &ask["message"]), (&json!("asker"), &json!("Who are you?")));
        assert_eq!(ask["payload"]["kind"], "form");
        assert_eq!(ask["payload"]["schema"]["required"], json!(["name"]), "{ask}");
        running.desk.answer(&ask["userInputId"], InputAction::Submit, &json!({"name": "Ada"}));
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let said = texts(&desk.all()).concat();
        assert!(said.contains("accept") && said.contains("Ada"), "{said}");
    });
}

/// A program in the shell that introduces itself and then does as `then` says for each message of the user.
fn play(then: &str) -> World {
    World::with(&format!(
        r#"while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')
  case "$line" in
    *'"subtype":"initialize"'*) printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":{{}}}}}}\n' "$id";;
    *'"type":"user"'*) {then};;
    *'"subtype":"interrupt"'*) echo interrupted >> $HOME/heard
      echo '{{"type":"result","is_error":true}}'; echo '{{"type":"system","subtype":"session_state_changed","state":"idle"}}';;
    *) printf '%s\n' "$line" >> $HOME/heard;;
  esac
done"#
    ))
}

fn a_program_that_ends_without_a_word_is_an_error_whatever_its_code() {
    run(async {
        for (world, words) in [
            (World::with("echo the disk is full >&2; exit 0"), "the disk is full"),
            (World::with("exit 3"), "3"),
            (play("echo it was too much >&2; exit 0"), "it was too much"),
        ] {
            let (outcome, _) = world.session().says("hello").await;
            let Outcome::Failed(failure) = outcome else { panic!("{words}: {outcome:?}") };
            assert_eq!(failure.code, FailureCode::AgentExited);
            assert!(failure.message.contains(words), "{failure}");
        }
        let world = World::with("");
        std::fs::remove_file(world.folder.path().join("claude")).unwrap();
        let (outcome, _) = world.session().says("hello").await;
        assert!(matches!(outcome, Outcome::Failed(failure) if failure.code == FailureCode::NotInstalled));
    });
}

fn a_program_that_never_says_that_it_is_idle_still_ends_its_turns() {
    let world = play(
        r#"echo 'noise'; printf '{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}\n{"type":"result","is_error":false}\n'"#,
    );
    run(async {
        let talk = world.session();
        for _ in 0..2 {
            let (outcome, events) = talk.says("hello").await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(kinds(&events), ["log", "assistant", "result"], "{events:?}");
        }
    });
}

fn a_program_that_begins_by_itself_between_turns_is_interrupted() {
    let state = |state: &str| {
        let line = json!({"type": "system", "subtype": "session_state_changed", "state": state});
        format!("echo '{line}'; ")
    };
    let result = r#"echo '{"type":"result","is_error":false}'; "#;
    let world = play(&format!("{}{result}{}{}true", state("running"), state("idle"), state("running")));
    run(async {
        let talk = world.session();
        for turn in 1..=3 {
            let (outcome, events) = talk.says("hello").await;
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(kinds(&events), ["result"], "what began by itself is in no turn");
            let expected = "interrupted\n".repeat(turn);
            until(|| {
                std::fs::read_to_string(world.home().join("heard")).is_ok_and(|heard| heard == expected)
            })
            .await;
        }
    });
}

fn a_program_is_refused_what_nobody_knows_and_what_nobody_can_be_asked() {
    let ask = |id: &str, request: Value| {
        format!("echo '{}'; ", json!({"type": "control_request", "request_id": id, "request": request}))
    };
    let result = r#"echo '{"type":"result","is_error":false}'; "#;
    let tool = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"});
    // The first is asked in a turn. The second is asked when the turn is over, and the third, a control request without a
    // subtype, in the next one.
    let world = play(&format!(
        "{}{result}{}printf '' > $HOME/asked",
        ask("unknown", json!({"subtype": "mind_reading"})) + &ask("odd", json!({})),
        ask("late", tool)
    ));
    run(async {
        let talk = world.session();
        let (outcome, events) = talk.says("hello").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(kinds(&events), ["result"]);
        let heard = world.home().join("heard");
        let answers = || -> Vec<Value> {
            let text = std::fs::read_to_string(&heard).unwrap_or_default();
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        until(|| answers().len() == 3).await;
        let answers = answers();
        for (answer, id) in answers.iter().zip(["unknown", "odd", "late"]) {
            assert_eq!(
                (&answer["response"]["subtype"], &answer["response"]["request_id"]),
                (&json!("error"), &json!(id))
            );
        }
    });
}
