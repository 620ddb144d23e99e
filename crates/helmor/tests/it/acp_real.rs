//! A real agent over ACP, `claude-agent-acp` from npm, around the real Claude Code, with a model on loopback.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_helmor::protocol::{PermissionMode, SendMessage, SlashQuery};
use outrigger_helmor::provider::acp::Flavour;
use outrigger_helmor::provider::{Outcome, Provider, Verdict};
use serde_json::{Value, json};

use crate::acp_kit::{World, of, said};
use crate::claude_kit::{kinds, model, processes, run, until};
use crate::real;

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        real_acp_agent_streams_turns_and_goes_on_with_its_session,
        real_acp_agent_asks_before_it_runs_a_command,
        real_acp_agent_hands_over_its_plan,
        real_acp_agent_stops_in_a_tool_and_nothing_of_it_survives,
        real_acp_agent_says_what_can_be_chosen
    ]
}

/// The folder that npm installed the agent into. Without it a test says so and covers nothing.
fn installed() -> Option<PathBuf> {
    let variable = "OUTRIGGER_NPM_AGENTCLIENTPROTOCOL_CLAUDE_AGENT_ACP";
    let folder = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.exists());
    if folder.is_none() {
        #[expect(clippy::print_stderr, reason = "who runs the tests must know what they did not cover")]
        {
            eprintln!("skipped, because {variable} names no folder: run the tests with `cargo xtask test`");
        }
    }
    folder
}

/// The real agent, with a home of its own.
fn world() -> Option<World> {
    let (agent, claude) = (installed()?, real::claude()?);
    let port = model().port;
    Some(World::with(|folder| {
        let home = folder.join("home");
        std::fs::create_dir_all(home.join("tmp")).unwrap();
        let script = format!(
            "#!/bin/sh\n\
             export HOME={home} CLAUDE_CONFIG_DIR={home} TMPDIR={home}/tmp CLAUDE_CODE_EXECUTABLE={claude}\n\
             export ANTHROPIC_BASE_URL=http://127.0.0.1:{port} ANTHROPIC_API_KEY=key IS_SANDBOX=1\n\
             export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1\n\
             export DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=0\n\
             exec node {agent}/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js\n",
            home = home.display(),
            claude = claude.display(),
            agent = agent.display(),
        );
        let program = folder.join("agent");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Flavour::Named {
            name: "claude-agent-acp".to_owned(),
            command: vec![program.to_str().unwrap().to_owned()],
        }
    }))
}

fn real_acp_agent_streams_turns_and_goes_on_with_its_session() {
    let Some(world) = world() else { return };
    run(async {
        let talk = world.session();
        let events = talk.says("{{say hello out there}}").await;
        assert_eq!(said(&events), "hello out there");
        let session = events[0]["session_id"].as_str().unwrap().to_owned();
        let usage = of(&events, "contextUsageUpdated");
        let meta: Value = serde_json::from_str(usage.last().unwrap()["meta"].as_str().unwrap()).unwrap();
        assert_eq!(meta["usedTokens"], 37, "{meta}");
        let events = talk.says("{{say again}}").await;
        assert_eq!((said(&events).as_str(), &events[0]["session_id"]), ("again", &json!(session)));
        talk.session.close().await;

        let later = world.session();
        let (outcome, events) =
            later.turn(SendMessage { resume: Some(session.clone()), ..later.send("{{say back}}") }).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!(said(&events), "back", "no history: {:?}", kinds(&events));
        assert_eq!(events[0]["session_id"], session.as_str());
        later.session.close().await;

        let lost = world.session();
        let gone = "11111111-2222-4333-8444-555555555555".to_owned();
        let (outcome, events) =
            lost.turn(SendMessage { resume: Some(gone), ..lost.send("{{say anew}}") }).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        assert_eq!((&events[0]["type"], said(&events).as_str()), (&json!("contextReset"), "anew"));
        lost.session.close().await;
    });
}

fn real_acp_agent_asks_before_it_runs_a_command() {
    let Some(world) = world() else { return };
    run(async {
        let talk = world.session();
        for (verdict, exists) in
            [(Verdict::Deny { message: None }, false), (Verdict::Allow { updated: vec![] }, true)]
        {
            let prompt = r#"{{use Bash {"command":"touch made-it","description":"x"}}}{{say done}}"#;
            let running = talk.begin(talk.send_in(PermissionMode::Default, prompt));
            let asked = running.desk.of("permissionRequest").await;
            assert_eq!(asked["toolInput"]["command"], "touch made-it", "{asked}");
            running.desk.decide(&asked["permissionId"], verdict);
            let desk = Arc::clone(&running.desk);
            let outcome = running.outcome.await.unwrap();
            assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
            assert_eq!(world.work().join("made-it").exists(), exists);
            let events = desk.all();
            let end = of(&events, "acp/tool_call_end");
            assert_eq!(end[0]["name"], "Bash", "{end:?}");
            assert_eq!(end[0]["status"], if exists { "completed" } else { "failed" });
        }
        talk.session.close().await;
    });
}

fn real_acp_agent_hands_over_its_plan() {
    let Some(world) = world() else { return };
    run(async {
        let talk = world.session();
        let prompt = r#"{{use ExitPlanMode {"plan":"1. think\n2. act"}}}{{say stopped}}"#;
        let (outcome, events) = talk.turn(talk.send_in(PermissionMode::Plan, prompt)).await;
        assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
        let plan = of(&events, "planCaptured");
        assert_eq!(plan.len(), 1, "{:?}", kinds(&events));
        assert_eq!(plan[0]["plan"], "1. think\n2. act");
        assert_eq!(of(&events, "permissionRequest"), Vec::<&Value>::new());
        talk.session.close().await;
    });
}

fn real_acp_agent_stops_in_a_tool_and_nothing_of_it_survives() {
    let Some(world) = world() else { return };
    run(async {
        let talk = world.session();
        let file = world.work().join("survived");
        let mark = file.to_str().unwrap();
        let prompt =
            format!(r#"{{{{use Bash {{"command":"sh -c 'sleep 25; touch {mark}'","description":"x"}}}}}}"#);
        let running = talk.begin(talk.send(&prompt));
        running.desk.of("acp/tool_call_start").await;
        // The agent tells of a tool before it runs it, so that the process itself is waited for.
        until(|| !processes(mark).is_empty()).await;
        assert!(matches!(running.stopped().await, Outcome::Aborted));
        assert_eq!(processes(mark), Vec::<u32>::new());
        assert_eq!(said(&talk.says("{{say still there}}").await), "still there");
        talk.session.close().await;
    });
}

fn real_acp_agent_says_what_can_be_chosen() {
    let Some(world) = world() else { return };
    run(async {
        let models = world.acp.models(None).await.unwrap();
        assert!(models.iter().any(|model| model.id == "default"), "{models:?}");
        let query = SlashQuery { cwd: Some(world.work()), additional_directories: vec![] };
        let commands = world.acp.slash_commands(&query).await.unwrap();
        assert!(commands.iter().any(|command| command.name == "dataviz"), "{commands:?}");
    });
}
