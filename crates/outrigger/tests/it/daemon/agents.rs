//! Agents as runs of the daemon: the real Claude Code, and the steerable runtime, against models on loopback.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Daemon, Home, verify};
use crate::model::Model;

/// A user with Claude Code, a project, and a model that it talks to; none where it is not installed, which is said.
fn with_claude() -> Option<(Home, PathBuf, Model)> {
    let Some(modules) = std::env::var_os("OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE") else {
        #[expect(clippy::print_stderr, reason = "who runs the tests must know what they did not cover")]
        {
            eprintln!("skipped, because Claude Code is not installed: run the tests with `cargo xtask test`");
        }
        return None;
    };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let program = format!("node_modules/@anthropic-ai/claude-code-linux-{machine}/claude");
    let model = Model::start();
    let mut home = Home::new();
    let project = home.folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a.txt"), "before\n").unwrap();
    let word = |text: &str| OsString::from(text);
    home.more = vec![
        ("CLAUDE_CONFIG_DIR", home.folder.path().join("claude").into_os_string()),
        ("HELMOR_CLAUDE_CODE_BIN_PATH", PathBuf::from(modules).join(program).into_os_string()),
        ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port).into()),
        ("ANTHROPIC_API_KEY", word("none")),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", word("1")),
        ("CLAUDE_CODE_MAX_RETRIES", word("0")),
        ("DISABLE_TELEMETRY", word("1")),
        ("DISABLE_ERROR_REPORTING", word("1")),
        ("DISABLE_AUTOUPDATER", word("1")),
    ];
    let project = project.canonicalize().unwrap();
    Some((home, project, model))
}

#[test]
fn the_real_claude_code_waits_for_approval_writes_on_a_copy_and_leaves_a_patch() {
    let Some((home, project, _model)) = with_claude() else { return };
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
    let Some((home, project, _model)) = with_claude() else { return };
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
