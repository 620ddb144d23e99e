//! The real coding agents behind `outrigger run`, and what `outrigger agents` says of them.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::coding::{self, Environment};
use crate::model::Model;
use crate::process::{Finished, PATIENCE, Running, Tag, outrigger, wait_until};
use crate::terminal::Terminal;

/// A project, a home of its own for everything, and a model server that the agents talk to.
struct Place {
    folder: tempfile::TempDir,
    project: PathBuf,
    claude: Environment,
    _model: Model,
}

impl Place {
    /// None where Claude Code is not installed, which is said.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start();
        let claude = coding::claude(folder.path(), &model)?;
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("a.txt"), "before\n").unwrap();
        let project = project.canonicalize().unwrap();
        Some(Self { folder, project, claude, _model: model })
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let home = self.folder.path();
        let mut command = outrigger(args.iter().copied());
        command
            .current_dir(&self.project)
            .env("HOME", home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_STATE_HOME", home.join("state"))
            .envs(self.claude.iter().cloned())
            .env_remove("OUTRIGGER_RECEIPTS");
        command
    }

    fn finish(&self, args: &[&str]) -> Finished {
        Running::start(&mut self.command(args)).finish()
    }
}

/// The last line of a run with `--json`.
fn ended(finished: &Finished) -> Value {
    let last = finished.stdout.lines().last().unwrap_or_else(|| panic!("nothing: {}", finished.stderr));
    serde_json::from_str(last).unwrap()
}

#[test]
fn claude_works_on_a_copy_and_its_conversation_goes_on_in_the_next_run() {
    let Some(place) = Place::new() else { return };
    let task = r#"{{use Write {"file_path":"new.txt","content":"made\n"}}}"#;
    let first = place.finish(&["run", task, "--backend", "claude", "--approve", "all", "--json"]);
    assert_eq!(first.code(), 0, "{}{}", first.stdout, first.stderr);
    let first = ended(&first);
    let files: Vec<&str> =
        first["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!((files, first["usage"]["output_tokens"].as_u64().is_some()), (vec!["new.txt"], true));
    assert!(!place.project.join("new.txt").exists(), "the copy was changed, not the folder");
    let session = first["agent_session"].as_str().unwrap();
    let second = place.finish(&["run", "{{say here}}", "--backend", "claude", "--resume", session, "--json"]);
    assert_eq!(second.code(), 0, "{}{}", second.stdout, second.stderr);
    assert!(!second.stdout.contains("is lost"), "{}", second.stdout);
    assert_eq!(ended(&second)["agent_session"], session, "it is the same conversation");
}

#[test]
fn what_the_policy_denies_claude_does_not_happen_and_the_receipt_says_enforced() {
    let Some(place) = Place::new() else { return };
    std::fs::write(place.project.join("policy.json"), r#"{"disallowed_tools":["Read"]}"#).unwrap();
    let task = r#"{{use Read {"file_path":"a.txt"}}}"#;
    let args = ["run", task, "--backend", "claude", "--policy", "policy.json", "--json"];
    let finished = place.finish(&args);
    assert_eq!(finished.code(), 0, "{}{}", finished.stdout, finished.stderr);
    let said = finished.stdout.lines().find(|line| line.contains("the tool said:"));
    assert!(said.is_some_and(|line| !line.contains("before")), "{}", finished.stdout);
    let text = std::fs::read_to_string(ended(&finished)["receipt"].as_str().unwrap()).unwrap();
    let receipt: Value = serde_json::from_str(&text).unwrap();
    let account = &receipt["usage_raw"]["outrigger"];
    assert_eq!(account["enforcement"]["tools"], "enforced", "{account}");
}

#[test]
fn a_conversation_that_is_lost_is_begun_anew_and_that_is_said() {
    let Some(place) = Place::new() else { return };
    let nobody = "11111111-2222-4333-8444-555555555555";
    let finished = place.finish(&["run", "{{say here}}", "--backend", "claude", "--resume", nobody]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("here"), "{}", finished.stdout);
    assert!(finished.stderr.contains(&format!("the conversation {nobody} is lost")), "{}", finished.stderr);
}

#[test]
fn what_claude_wants_to_do_is_asked_for_at_the_terminal_and_typed_words_steer_it() {
    let Some(place) = Place::new() else { return };
    let task = r#"{{use Bash {"command":"touch one"}}}"#;
    let mut terminal = Terminal::start(&mut place.command(&["run", task, "--backend", "claude"]));
    terminal.wait_for("what you type goes to the agent while it works");
    terminal.wait_for("[y]es, [n]o, [a]lways in this run");
    terminal.type_in("n\r");
    terminal.wait_for("the tool said:");
    terminal.wait_for("go on    outrigger run … --backend claude --resume");
    assert!(terminal.finish().success());

    let mut terminal = Terminal::start(&mut place.command(&["run", "{{trickle 40}}", "--backend", "claude"]));
    terminal.wait_for("word3");
    terminal.type_in("{{say to the left}}\r");
    terminal.wait_for("»");
    terminal.wait_for("word39");
    terminal.wait_for("to the left");
    terminal.wait_for("complete");
    assert!(terminal.finish().success());
}

#[test]
fn what_codex_wants_to_run_is_asked_for_once_and_the_answer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (home, project) = (folder.path(), folder.path().join("project"));
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a.txt"), "before\n").unwrap();
    let model = Model::speaking("responses");
    let Some(codex) = coding::codex(home, &model) else { return };
    for (key, decision) in [("y\r", "allow"), ("n\r", "deny")] {
        let receipt = home.join(format!("{decision}.json"));
        let out = receipt.to_str().unwrap();
        let task = "{{run touch made.txt}}";
        let mut command = outrigger(["run", task, "--backend", "codex", "--out", out]);
        command
            .current_dir(&project)
            .env("HOME", home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_STATE_HOME", home.join("state"))
            .envs(codex.iter().cloned());
        let mut terminal = Terminal::start(&mut command);
        terminal.wait_for("[y]es, [n]o, [a]lways in this run");
        terminal.type_in(key);
        terminal.wait_for("the tool said:");
        terminal.wait_for("complete");
        assert!(terminal.finish().success());
        let receipt: Value = serde_json::from_str(&std::fs::read_to_string(&receipt).unwrap()).unwrap();
        let approvals = receipt["usage_raw"]["outrigger"]["approvals"].as_array().unwrap();
        assert_eq!(approvals.len(), 1, "{approvals:?}");
        assert_eq!(approvals[0]["decision"], decision);
        let diff = receipt["verification"]["git_diff"].as_str().unwrap_or_default();
        assert_eq!(diff.contains("made.txt"), decision == "allow", "{diff}");
    }
}

#[test]
fn nothing_of_an_agent_or_its_tools_survives_ctrl_c_or_kill() {
    let Some(place) = Place::new() else { return };
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let (began, survived) =
            (place.project.join(format!("began-{signal}")), place.project.join("survived"));
        // Claude Code refuses a command that begins with a long sleep.
        let command = format!(
            "touch {}; for i in $(seq 250); do sleep 0.1; done; touch {}",
            began.display(),
            survived.display()
        );
        let task = format!("{{{{use Bash {}}}}}", json!({ "command": command }));
        let args = ["run", &task, "--backend", "claude", "--approve", "all", "--in-place"];
        let tag = Tag::new();
        let (name, value) = tag.as_arg().split_once('=').unwrap();
        let running = Running::start(place.command(&args).env(name, value));
        wait_until(PATIENCE, || began.exists()).expect("the tool runs");
        running.signal(signal);
        let finished = running.finish();
        if let Some(code) = code {
            assert_eq!(finished.code(), code, "{}", finished.stderr);
        }
        tag.must_be_gone(PATIENCE, "the agent and its tools");
        assert!(!survived.exists());
    }
}

#[test]
fn an_error_of_the_models_server_is_the_error_of_the_run() {
    let Some(place) = Place::new() else { return };
    let finished = place.finish(&["run", "{{status 401}}", "--backend", "claude", "--json"]);
    assert_eq!(finished.code(), 1, "{}{}", finished.stdout, finished.stderr);
    let ended = ended(&finished);
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("401"), "{error}");
}

#[test]
fn an_agent_that_is_not_installed_is_said_with_the_way_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = outrigger(["run", "x", "--backend", "claude", "--in-place"]);
    command
        .current_dir(folder.path())
        .env("PATH", "/nowhere")
        .env("XDG_DATA_HOME", folder.path().join("data"));
    command.env_remove("HELMOR_CLAUDE_CODE_BIN_PATH");
    let finished = Running::start(&mut command).finish();
    assert_eq!(finished.code(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("npm install -g @anthropic-ai/claude-code"), "{}", finished.stderr);
    let mut command = outrigger(["agents", "--json"]);
    command.current_dir(folder.path()).env("PATH", "/nowhere").env_remove("HELMOR_CLAUDE_CODE_BIN_PATH");
    command.env_remove("HELMOR_CODEX_BIN_PATH").env("HOME", folder.path());
    let finished = Running::start(&mut command).finish();
    assert_eq!(finished.code(), 1);
    assert!(finished.events().iter().all(|agent| agent["installed"] == false), "{}", finished.stdout);
}

#[test]
fn the_agents_that_are_here_are_listed_with_version_login_and_models() {
    let Some(place) = Place::new() else { return };
    let finished = place.finish(&["agents", "--json"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    let agents = finished.events();
    let claude = agents.iter().find(|agent| agent["provider"] == "claude").unwrap();
    assert_eq!((&claude["installed"], &claude["login"]), (&json!(true), &json!("ANTHROPIC_API_KEY")));
    assert!(claude["version"].as_str().unwrap().starts_with("2."), "{claude}");
    assert!(!claude["models"].as_array().unwrap().is_empty(), "{claude}");
    let text = place.finish(&["agents", "--offline"]).stdout;
    assert!(text.contains("✔ Claude Code"), "{text}");
}
