//! How Claude Code is run: what a turn says reaches the model, what the host changes in the middle of a turn counts at once, and a
//! host that does not read holds the program up without losing the power to stop it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_helmor::BoxFuture;
use outrigger_helmor::protocol::{AgentProxy, Effort, PermissionMode, SendMessage, Steer};
use outrigger_helmor::provider::claude::SystemPrompt;
use outrigger_helmor::provider::{
    Answer, Asked, Change, Desk, InputAsk, Outcome, PermissionAsk, STOPS_WITHIN, Turn, Verdict,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::claude_kit::{World, ask_model, asked, kinds, processes, programs, run, texts};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        claude_is_run_as_the_turn_says,
        claude_can_be_had_without_its_own_system_prompt,
        claude_is_given_another_mode_in_the_middle_of_a_turn,
        claude_that_went_into_plan_mode_by_itself_comes_back_with_the_next_turn,
        claude_never_loses_a_steer_that_crosses_its_last_word,
        claude_is_given_the_proxy_under_all_its_names,
        a_program_that_minds_neither_an_interruption_nor_a_signal_is_killed,
        a_host_that_does_not_read_holds_the_program_up_and_can_still_stop_it
    ]
}

fn claude_is_run_as_the_turn_says() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let send = SendMessage {
            effort: Some(Effort("low".to_owned())),
            fast_mode: true,
            model: Some("opus".to_owned()),
            ..talk.send("{{say quick and easy}}")
        };
        let (outcome, _) = talk.turn(send).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let request = asked("quick and easy").pop().unwrap();
        assert_eq!(request["output_config"]["effort"], "low");
        assert_eq!(request["speed"], "fast");
        assert!(request["model"].as_str().unwrap().contains("opus"), "{}", request["model"]);
        assert!(request["system_chars"].as_u64().unwrap() > 1000, "Claude Code says who it is");

        let first = programs(&world);
        let unknown = Some(Effort("heroic".to_owned()));
        let (outcome, _) = talk.turn(SendMessage { effort: unknown, ..talk.send("{{say as usual}}") }).await;
        assert!(matches!(outcome, Outcome::Ended), "an effort that it does not know is none: {outcome:?}");
        assert_eq!(asked("as usual").pop().unwrap()["speed"], Value::Null);
        assert_ne!(programs(&world), first, "what cannot be changed needs a new program");
    });
}

fn claude_can_be_had_without_its_own_system_prompt() {
    let Some(world) = World::real("") else { return };
    let world = world.telling(SystemPrompt::Empty);
    run(async {
        let (outcome, _) = world.session().says("{{say nobody told me who I am}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let request = asked("nobody told me who I am").pop().unwrap();
        assert!(request["system_chars"].as_u64().unwrap() < 500, "{}", request["system_chars"]);
    });
}

fn claude_is_given_another_mode_in_the_middle_of_a_turn() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let write = |name: &str| {
            format!("{{{{use Write {}}}}}", json!({"file_path": world.work().join(name), "content": "x"}))
        };
        let prompt = format!("{} {} {{{{hold change-of-mode}}}}", write("one"), write("two"));
        let running = talk.begin(talk.send_in(PermissionMode::Default, &prompt));
        let ask = running.desk.of("permissionRequest").await;
        let change = |mode| Change { permission_mode: Some(Some(mode)), ..Change::default() };
        talk.session.reconfigure(&change(PermissionMode::AcceptEdits)).await.unwrap();
        running.desk.allow(&ask["permissionId"]);
        let is_text = |event: &Value| event["event"]["delta"]["text"] == "change-of-mode";
        running.desk.first("the last text", is_text).await;
        let model = Change { model: Some(Some("haiku".to_owned())), ..Change::default() };
        talk.session.reconfigure(&model).await.unwrap();
        assert_eq!(running.steer("{{say in another model}}").await, Some(Ok(())));
        ask_model("/release/change-of-mode");
        let desk = Arc::clone(&running.desk);
        assert!(matches!(running.end().await, Outcome::Ended));
        let events = desk.all();
        assert!(
            world.work().join("two").exists(),
            "nobody was asked for the second one: {:?}",
            kinds(&events)
        );
        assert_eq!(texts(&events).last().map(String::as_str), Some("in another model"));
        let request = asked("in another model").pop().unwrap();
        assert!(request["model"].as_str().unwrap().contains("haiku"), "{}", request["model"]);
    });
}

fn claude_that_went_into_plan_mode_by_itself_comes_back_with_the_next_turn() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let (outcome, events) = talk.says("{{use EnterPlanMode {}}}").await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let changed: Vec<&Value> =
            events.iter().filter(|event| event["type"] == "permissionModeChanged").collect();
        assert_eq!(changed, [&json!({"type": "permissionModeChanged", "permissionMode": "plan"})]);
        let warm = programs(&world);
        let (_, events) = talk.says("{{say back to work}}").await;
        let init = events.iter().find(|event| event["subtype"] == "init").unwrap();
        assert_eq!(init["permissionMode"], "bypassPermissions");
        assert_eq!(programs(&world), warm, "the same program");
    });
}

fn claude_never_loses_a_steer_that_crosses_its_last_word() {
    let Some(world) = World::real("") else { return };
    run(async {
        let talk = world.session();
        let mut taken = 0;
        for round in 0..16 {
            let running = talk.begin(talk.send(&format!("{{{{say round {round}}}}}")));
            // The nearer to the end, the more of them come when the program has said its last word already.
            let near = ["stream_event", "assistant", "result", "result"][round % 4];
            running.desk.of(near).await;
            let steered = running.steer(&format!("{{{{say steer {round}.}}}}")).await;
            let desk = Arc::clone(&running.desk);
            assert!(matches!(running.end().await, Outcome::Ended));
            let said = texts(&desk.all());
            match steered {
                Some(Ok(())) => {
                    taken += 1;
                    assert!(said.contains(&format!("steer {round}.")), "accepted and lost: {said:?}");
                }
                Some(Err(why)) => panic!("{why}"),
                None => assert_eq!(said, [format!("round {round}")], "not accepted and not said"),
            }
        }
        assert!(taken > 0, "none was accepted, so this shows nothing");
    });
}

fn claude_is_given_the_proxy_under_all_its_names() {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let echo: Vec<String> = names.iter().map(|name| format!("echo ${name} >> $HOME/proxies")).collect();
    let world = World::with(&format!("{}\nexit 1", echo.join("\n")));
    run(async {
        let talk = world.session();
        let proxy = Some(AgentProxy::Custom("http://127.0.0.1:9".to_owned()));
        let (outcome, _) = talk.turn(SendMessage { agent_proxy: proxy, ..talk.send("hello") }).await;
        assert!(matches!(outcome, Outcome::Failed(_)));
        let proxies = std::fs::read_to_string(world.home().join("proxies")).unwrap();
        assert_eq!(proxies, "http://127.0.0.1:9\n".repeat(6));
    });
}

fn a_program_that_minds_neither_an_interruption_nor_a_signal_is_killed() {
    let running = json!({"type": "system", "subtype": "session_state_changed", "state": "running"});
    let world = World::with(&format!(
        r#"trap '' TERM INT
read -r line; id=$(printf %s "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')
printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":{{}}}}}}\n' "$id"
read -r line; echo '{running}'; echo '{{"type":"stream_event","event":{{"type":"content_block_delta"}}}}'
while :; do sleep 1; done"#
    ));
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("hello"));
        running.desk.talks().await;
        let began = std::time::Instant::now();
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert!(began.elapsed() < STOPS_WITHIN, "{:?}", began.elapsed());
        let script = world.folder.path().join("claude");
        assert_eq!(processes(script.to_str().unwrap()), Vec::<u32>::new());
        assert_eq!(talk.session.warm_since(), None);
    });
}

/// A desk of a host that reads only when it is told to.
struct Slow {
    reads: watch::Sender<usize>,
    passed: AtomicUsize,
    told: Mutex<Vec<String>>,
}

impl Desk for Slow {
    fn pass(&self, _: &str) {
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    fn tell(&self, kind: &str, _: &[(&str, Value)]) {
        self.told.lock().unwrap().push(kind.to_owned());
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        let mut reads = self.reads.subscribe();
        Box::pin(async move {
            let _ = reads.wait_for(|reads| self.passed.load(Ordering::SeqCst) < *reads).await;
        })
    }

    fn ask_permission(&self, _: PermissionAsk) -> Asked<Verdict> {
        Asked::new(oneshot::channel().1, || {})
    }

    fn ask_input(&self, _: InputAsk) -> Asked<Answer> {
        Asked::new(oneshot::channel().1, || {})
    }

    fn steered(&self, _: &Steer) {}

    fn context_lost(&self, _: &str, _: &str) {}

    fn host_call<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Err("nobody is there".to_owned()) })
    }

    fn log(&self, _: &str) {}
}

fn a_host_that_does_not_read_holds_the_program_up_and_can_still_stop_it() {
    // Far more than all pipes and queues between the program and the host can hold.
    const LINES: usize = 20_000;
    let line = json!({"type": "stream_event", "event": {"text": "x".repeat(200)}});
    let world = World::with(&format!(
        r#"read -r line; id=$(printf %s "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')
printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":{{}}}}}}\n' "$id"
read -r line; yes '{line}' | head -n {LINES}; echo done >> $HOME/said
echo '{{"type":"result","is_error":false}}'; read -r line"#
    ));
    run(async {
        for stops in [true, false] {
            let talk = world.session();
            let desk = Arc::new(Slow {
                reads: watch::Sender::new(0),
                passed: AtomicUsize::new(0),
                told: Mutex::default(),
            });
            let stop = CancellationToken::new();
            let (_steer, steering) = mpsc::channel(1);
            let turn = Turn {
                send: talk.send("hello"),
                desk: Arc::clone(&desk) as Arc<dyn Desk>,
                stop: stop.clone(),
                steering,
            };
            let outcome = tokio::spawn(Arc::clone(&talk.session).turn(turn));
            desk.reads.send_replace(1);
            crate::claude_kit::until(|| desk.passed.load(Ordering::SeqCst) > 0).await;
            assert!(desk.passed.load(Ordering::SeqCst) <= 64, "it waits for the host after a batch");
            assert!(!world.home().join("said").exists(), "and so does the program");
            if stops {
                stop.cancel();
                assert!(matches!(outcome.await.unwrap(), Outcome::Aborted));
            } else {
                desk.reads.send_replace(usize::MAX);
                assert!(matches!(outcome.await.unwrap(), Outcome::Ended));
                assert_eq!(desk.passed.load(Ordering::SeqCst), LINES + 1, "nothing was lost");
            }
        }
    });
}
