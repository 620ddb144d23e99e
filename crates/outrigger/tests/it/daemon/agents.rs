//! Agents as runs of the daemon: the real Claude Code and Codex, an agent that speaks ACP, any program, and the steerable runtime,
//! against models on loopback.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Daemon, Home, verify};
use crate::coding::{self, Environment};
use crate::model::Model;

/// A user with a project, and an agent in their environment; none where it is not installed.
fn with(agent: impl FnOnce(&Path) -> Option<Environment>) -> Option<(Home, PathBuf)> {
    let mut home = Home::new();
    home.more = agent(home.folder.path())?;
    let project = home.folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a.txt"), "before\n").unwrap();
    let project = project.canonicalize().unwrap();
    Some((home, project))
}

#[test]
fn the_real_claude_code_waits_for_approval_writes_on_a_copy_and_leaves_a_patch() {
    let model = Model::start();
    let Some((home, project)) = with(|home| coding::claude(home, &model)) else { return };
    let daemon = Daemon::start_in(home, &["--no-example"]);
    let backends = daemon.door.get("/v1/backends").expect(200).json();
    let claude = backends["backends"].as_array().unwrap().iter().find(|one| one["name"] == "claude").unwrap();
    assert_eq!(claude["health"]["state"], "ready", "{claude:#}");
    let run = daemon.submit(&json!({
        "task": r#"{{use Bash {"command":"echo made > new.txt"}}}"#,
        "backend": "claude",
        "workspace": {"root": project},
        "thread": "work",
    }));
    let asked = daemon.until(&run, "waiting");
    assert_eq!(asked["approvals"][0]["tool"], "Bash", "{asked:#}");
    daemon.door.post(&format!("/v1/runs/{run}/approve"), &json!({})).expect(200);
    let state = daemon.until_over(&run);
    assert_eq!(state["phase"], "completed", "{state:#}");
    assert!(!project.join("new.txt").exists(), "the copy was changed, not the folder");
    let patch = daemon.door.get(&format!("/v1/runs/{run}/patch")).expect(200).text();
    assert!(patch.contains("+++ b/new.txt") && patch.contains("+made"), "{patch}");
    assert!(state["spent"]["output_tokens"].as_u64().unwrap() > 0, "{state:#}");
    verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));

    // The same thread is the same conversation.
    let next = daemon.submit(&json!({"task": "{{say here}}", "backend": "claude", "thread": "work"}));
    let state = daemon.until_over(&next);
    assert_eq!(state["phase"], "completed", "{state:#}");
    let notes: Vec<Value> = daemon.log(&next).into_iter().filter(|record| record["kind"] == "note").collect();
    assert!(!notes.iter().any(|note| note.to_string().contains("is lost")), "{notes:#?}");
}

#[test]
fn the_real_claude_code_is_steered_and_cancelled_and_nothing_of_it_is_left() {
    let model = Model::start();
    let Some((home, project)) = with(|home| coding::claude(home, &model)) else { return };
    let daemon = Daemon::start_in(home, &["--no-example"]);
    let trickle = json!({"task": "{{trickle 400}}", "backend": "claude", "workspace": {"root": project}});
    let run = daemon.submit(&trickle);
    let said = |state: &Value| state["attempt_events"].as_u64().unwrap() > 5;
    daemon.wait_for(&run, said);
    daemon.door.post(&format!("/v1/runs/{run}/steer"), &json!({"text": "{{say to the left}}"})).expect(200);
    daemon.door.post(&format!("/v1/runs/{run}/cancel"), &json!({"why": "enough"})).expect(200);
    let state = daemon.until_over(&run);
    assert_eq!(state["phase"], "cancelled", "{state:#}");
    verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));
    let sidecars = daemon.door.get("/v1/sidecars").expect(200).json();
    let left: Vec<&Value> = sidecars["sidecars"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["name"].as_str().unwrap().contains("claude"))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn a_conversation_of_the_steerable_runtime_is_a_run_and_goes_on_in_its_thread() {
    let model = Model::start();
    let home = Home::new();
    let config = format!(
        "[chat]\nprovider = \"anthropic\"\nmodel = \"fake\"\nbase_url = \"http://127.0.0.1:{}\"\napi_key_env = \"FAKE_KEY\"\n",
        model.port
    );
    std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
    let home = Home { more: vec![("FAKE_KEY", OsString::from("none"))], ..home };
    let daemon = Daemon::start_in(home, &["--no-example"]);
    for words in ["good morning", "and again"] {
        let task = format!("{{{{say {words}}}}}");
        let run = daemon.submit(&json!({"task": task, "backend": "steerable", "thread": "talk"}));
        let state = daemon.until_over(&run);
        assert_eq!(state["phase"], "completed", "{state:#}\n{:#?}", daemon.log(&run));
        assert!(state["result"].as_str().unwrap().contains(words), "{state:#}");
        verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));
    }
}

#[test]
fn the_real_codex_runs_what_is_approved_and_nothing_else() {
    let model = Model::speaking("responses");
    let Some((home, project)) = with(|home| coding::codex(home, &model)) else { return };
    let daemon = Daemon::start_in(home, &["--no-example"]);
    for (answer, made) in [("approve", true), ("deny", false)] {
        let run = daemon.submit(&json!({
            "task": "{{run touch made.txt}}",
            "backend": "codex",
            "workspace": {"root": project},
        }));
        let asked = daemon.until(&run, "waiting");
        assert_eq!(asked["approvals"].as_array().unwrap().len(), 1, "{asked:#}");
        assert!(asked["approvals"][0]["input"].as_str().unwrap().contains("touch made.txt"), "{asked:#}");
        daemon.door.post(&format!("/v1/runs/{run}/{answer}"), &json!({})).expect(200);
        let state = daemon.until_over(&run);
        assert_eq!(state["phase"], "completed", "{state:#}");
        assert_eq!(state["approvals"].as_array().unwrap().len(), 1, "it asks once: {state:#}");
        verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));
        let patch = daemon.door.get(&format!("/v1/runs/{run}/patch"));
        assert_eq!(patch.status == 200 && patch.text().contains("made.txt"), made, "{}", patch.text());
    }
    assert!(!project.join("made.txt").exists(), "the copy was changed, not the folder");
}

#[test]
fn an_agent_that_speaks_acp_is_asked_about_goes_on_in_its_thread_and_is_cancelled_in_a_tool() {
    let home = Home::new();
    let config = format!(
        "[backends.odd]\ntype = \"agent\"\nprovider = \"acp\"\ncommand = \"python3\"\nargs = [\"{}/../../fakes/acp.py\", \"--sessions\", \"{}\"]\n",
        env!("CARGO_MANIFEST_DIR"),
        home.folder.path().display()
    );
    std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
    let daemon = Daemon::start_in(home, &["--no-example"]);
    for (answer, said) in [("approve", "allow-once"), ("deny", "reject-once")] {
        let task = r#"{{permit {"title":"x"}}}"#;
        let run = daemon.submit(&json!({"task": task, "backend": "odd", "thread": "talk"}));
        daemon.until(&run, "waiting");
        daemon.door.post(&format!("/v1/runs/{run}/{answer}"), &json!({})).expect(200);
        let state = daemon.until_over(&run);
        assert_eq!(state["phase"], "completed", "{state:#}");
        assert!(state["result"].as_str().unwrap().contains(said), "{state:#}");
        verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));
    }
    let run = daemon.submit(&json!({"task": "{{history}}", "backend": "odd", "thread": "talk"}));
    let state = daemon.until_over(&run);
    assert!(state["result"].as_str().unwrap().contains("permit"), "it knows what was said: {state:#}");
    let run = daemon.submit(&json!({"task": "{{run sleep 1000}}", "backend": "odd"}));
    daemon.wait_for(&run, |state| state["spent"]["tool_calls"].as_u64().unwrap() > 0);
    daemon.door.post(&format!("/v1/runs/{run}/cancel"), &json!({})).expect(200);
    assert_eq!(daemon.until_over(&run)["phase"], "cancelled");
    let run = daemon.submit(&json!({"task": "{{die out of luck}}", "backend": "odd"}));
    let state = daemon.until_over(&run);
    assert_eq!(state["phase"], "failed", "{state:#}");
    assert!(state["error"].to_string().contains("out of luck"), "its last words are kept: {state:#}");
}

#[test]
fn any_program_works_on_a_copy_and_its_lines_are_events() {
    let home = Home::new();
    let project = home.folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a.txt"), "before\n").unwrap();
    let program = "echo seen; echo after > a.txt; echo trouble >&2; test \"$1\" != fail || exit 3";
    let config = |name: &str, word: &str| {
        format!(
            "[backends.{name}]\ntype = \"process\"\ncommand = \"sh\"\nargs = [\"-c\", '{program}', \"sh\", \"{word}\"]\n"
        )
    };
    let both = config("works", "") + &config("breaks", "fail");
    std::fs::write(home.folder.path().join("outrigger.toml"), both).unwrap();
    let daemon = Daemon::start_in(home, &["--no-example"]);
    let run = daemon.submit(&json!({"task": "x", "backend": "works", "workspace": {"root": project}}));
    let state = daemon.until_over(&run);
    assert_eq!(state["phase"], "completed", "{state:#}");
    assert!(daemon.log(&run).iter().any(|record| record.to_string().contains("seen")));
    let patch = daemon.door.get(&format!("/v1/runs/{run}/patch")).expect(200).text();
    assert!(patch.contains("-before") && patch.contains("+after"), "{patch}");
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "before\n");
    verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));

    let run = daemon.submit(&json!({"task": "x", "backend": "breaks", "fallback": ["works"]}));
    let state = daemon.until_over(&run);
    assert_eq!((&state["phase"], &state["backend"]), (&json!("completed"), &json!("works")), "{state:#}");
    let log = daemon.log(&run);
    let failed = log.iter().find(|record| record["kind"] == "attempted").unwrap();
    assert_eq!(failed["data"]["error"], "`sh` ended with exit code 3: trouble");
    assert!(state["approvals"].as_array().unwrap().is_empty(), "nobody is asked about what was configured");
}
