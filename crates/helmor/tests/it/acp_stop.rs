//! Stopping an agent over ACP: in its words, in a tool, while it asks, while it starts, and when it does not listen.

use std::time::{Duration, Instant};

use outrigger_helmor::protocol::PermissionMode;
use outrigger_helmor::provider::Outcome;
use serde_json::Value;

use crate::acp_kit::{World, of, said};
use crate::claude_kit::{processes, run, until};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        acp_stop_in_words_leaves_the_agent_warm,
        acp_stop_while_it_asks_withdraws_the_question,
        acp_stop_in_a_tool_leaves_nothing_of_it,
        acp_stop_ends_a_tool_that_the_agent_forgot,
        acp_stop_ends_an_agent_that_does_not_listen,
        acp_stop_while_it_starts_leaves_nothing
    ]
}

fn acp_stop_in_words_leaves_the_agent_warm() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let before = talk.state().await;
        let running = talk.begin(talk.send("{{say something}}{{hang}}{{say too late}}"));
        running.desk.of("acp/assistant").await;
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(said(&desk.all()), "something");
        assert_eq!(talk.state().await, before, "the same program, the same session");
        talk.session.close().await;
    });
}

fn acp_stop_while_it_asks_withdraws_the_question() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let before = talk.state().await;
        let running = talk.begin(talk.send_in(PermissionMode::Default, "{{permit {}}}"));
        let asked = running.desk.of("permissionRequest").await;
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        let events = desk.all();
        assert_eq!(of(&events, "permissionCancelled")[0]["withdrawn"], asked["permissionId"]);
        // The agent heard that its question is cancelled, or it would not have ended its turn.
        assert_eq!(talk.state().await, before);
        talk.session.close().await;
    });
}

/// A tool that leaves a file behind if it is left alone.
fn tool(world: &World, directive: &str) -> (String, std::path::PathBuf) {
    let file = world.work().join("survived");
    (format!("{{{{{directive} sleep 25; touch {}}}}}", file.display()), file)
}

fn acp_stop_in_a_tool_leaves_nothing_of_it() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let before = talk.state().await;
        let (prompt, file) = tool(&world, "run");
        let running = talk.begin(talk.send(&prompt));
        running.desk.of("acp/tool_call_start").await;
        until(|| !processes(file.to_str().unwrap()).is_empty()).await;
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(processes(file.to_str().unwrap()), Vec::<u32>::new());
        assert_eq!(talk.state().await, before, "an agent that cleans up stays warm");
        talk.session.close().await;
    });
}

fn acp_stop_ends_a_tool_that_the_agent_forgot() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let before = talk.state().await;
        let (prompt, file) = tool(&world, "leak");
        let running = talk.begin(talk.send(&prompt));
        running.desk.of("acp/tool_call_start").await;
        until(|| !processes(file.to_str().unwrap()).is_empty()).await;
        let began = Instant::now();
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(processes(file.to_str().unwrap()), Vec::<u32>::new(), "also in a session of its own");
        assert_eq!(world.programs(), Vec::<u32>::new(), "the agent had to go with it");
        let after = talk.state().await;
        assert_eq!(after["id"], before["id"], "and the next turn goes on where it was");
        talk.session.close().await;
    });
}

fn acp_stop_ends_an_agent_that_does_not_listen() {
    let world = World::new(&[]);
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("{{deaf la la la}}"));
        running.desk.of("acp/assistant").await;
        let began = Instant::now();
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(5), "{took:?}");
        assert_eq!(world.programs(), Vec::<u32>::new());
        assert_eq!(talk.session.warm_since(), None);
        talk.session.close().await;
    });
}

fn acp_stop_while_it_starts_leaves_nothing() {
    let world = World::new(&["--mute"]);
    run(async {
        let talk = world.session();
        let running = talk.begin(talk.send("hi"));
        // There is no event for it: nothing is said before an agent has introduced itself.
        until(|| !world.programs().is_empty()).await;
        let desk = std::sync::Arc::clone(&running.desk);
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(world.programs(), Vec::<u32>::new());
        assert_eq!(desk.all(), Vec::<Value>::new());
    });
}
