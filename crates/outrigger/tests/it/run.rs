//! `outrigger run`, as a user meets it: work orders to real children, live events, exit codes, receipts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::Model;
use crate::process::{Finished, PATIENCE, Running, Tag, outrigger, wait_until};
use crate::terminal::Terminal;

/// A project, and a home of its own for receipts and copies.
struct Place {
    _folder: tempfile::TempDir,
    project: PathBuf,
    data: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("a.txt"), "before\n").unwrap();
        std::fs::write(project.join("gone.txt"), "soon\n").unwrap();
        let data = folder.path().join("data");
        Self { project: project.canonicalize().unwrap(), data, _folder: folder }
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = outrigger(args.iter().copied());
        command.current_dir(&self.project).env("XDG_DATA_HOME", &self.data).env_remove("OUTRIGGER_RECEIPTS");
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    fn finish(&self, args: &[&str]) -> Finished {
        self.start(args).finish()
    }

    /// A run with the child of the tests.
    fn run(&self, child: &str, extra: &[&str]) -> Finished {
        let sidecar = sidecar(child);
        let mut args = vec!["run", "do it", "--sidecar", &sidecar, "--policy", "open.json"];
        args.extend_from_slice(extra);
        self.write("open.json", "{}");
        self.finish(&args)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.project.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.join(name)).unwrap()
    }
}

fn sidecar(child: &str) -> String {
    format!("python3 {}/tests/it/fixtures/abp_child.py {child}", env!("CARGO_MANIFEST_DIR"))
}

/// The last line of a run with `--json`.
fn ended(finished: &Finished) -> Value {
    let last =
        finished.stdout.lines().last().unwrap_or_else(|| panic!("nothing was said: {}", finished.stderr));
    let value: Value = serde_json::from_str(last).unwrap();
    assert_eq!(value["event"], "ended", "{last}");
    value
}

fn receipt(ended: &Value) -> Value {
    let text = std::fs::read_to_string(ended["receipt"].as_str().unwrap()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn exit_codes_tell_how_a_run_ended() {
    let place = Place::new();
    let cases = [
        ("complete", 0, "final", "complete"),
        ("partial", 3, "final", "partial"),
        ("failed", 1, "final", "failed"),
        ("fatal", 1, "fatal", "failed"),
        ("exit", 1, "exited", "failed"),
        ("garbage", 4, "protocol", "failed"),
        ("foreign", 4, "protocol", "failed"),
        ("banner", 4, "protocol", "failed"),
        ("version", 4, "protocol", "failed"),
    ];
    for (child, code, ending, outcome) in cases {
        let finished = place.run(child, &["--json"]);
        assert_eq!(finished.code(), code, "{child}: {}{}", finished.stdout, finished.stderr);
        let ended = ended(&finished);
        assert_eq!((&ended["ending"], &ended["outcome"]), (&json!(ending), &json!(outcome)), "{child}");
        assert_eq!(receipt(&ended)["outcome"], outcome, "{child}");
    }
}

#[test]
fn a_failure_shows_the_last_words_and_the_exit_code() {
    let place = Place::new();
    let exited = place.run("exit", &[]);
    assert!(exited.stderr.contains("out of cheese"), "{}", exited.stderr);
    assert!(exited.stderr.contains("exit code 3"), "{}", exited.stderr);
    let fatal = place.run("fatal", &[]);
    assert!(fatal.stderr.contains("no key (backend_auth_failed)"), "{}", fatal.stderr);
    assert!(fatal.stderr.contains("the disk is on fire"), "{}", fatal.stderr);
    let garbage = place.run("garbage", &[]);
    assert!(garbage.stderr.contains("Traceback: something"), "{}", garbage.stderr);
}

#[test]
fn what_the_agent_says_is_on_stdout_once_and_the_rest_on_stderr() {
    let place = Place::new();
    let finished = place.run("complete", &[]);
    assert_eq!(finished.stdout, "Hello, world.\n");
    assert!(finished.stderr.contains("complete"), "{}", finished.stderr);
}

#[test]
fn with_json_every_line_is_an_object_and_events_keep_their_bytes() {
    let place = Place::new();
    let finished = place.run("complete", &["--json"]);
    let lines: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["workspace", "started", "agent", "agent", "agent", "agent", "ended"]);
    assert_eq!(lines[3]["data"]["text"], "Hello, ");
    assert_eq!(lines[3]["number"], 2);
}

#[test]
fn the_mock_is_there_without_any_configuration_and_its_receipt_verifies() {
    let place = Place::new();
    let finished = place.finish(&["run", "say hello", "--json"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    let path = ended(&finished)["receipt"].as_str().unwrap().to_owned();
    let verified = place.finish(&["receipts", "verify", &path]);
    assert_eq!(verified.code(), 0, "{}{}", verified.stdout, verified.stderr);
    let text = std::fs::read_to_string(&path).unwrap().replace("complete", "failed");
    std::fs::write(&path, text).unwrap();
    let forged = place.finish(&["receipts", "verify", &path]);
    assert_eq!(forged.code(), 1, "{}{}", forged.stdout, forged.stderr);
}

#[test]
fn a_forged_receipt_is_corrected_and_the_lie_is_written_down() {
    let place = Place::new();
    let finished = place.run("forged", &["--json"]);
    let ended = ended(&finished);
    let receipt = receipt(&ended);
    assert_eq!(receipt["meta"]["run_id"], ended["run"]);
    assert_eq!(receipt["meta"]["contract_version"], "abp/v0.1");
    let claims = receipt["usage_raw"]["outrigger"]["claims"].as_array().unwrap();
    let what: Vec<&str> = claims.iter().map(|claim| claim["what"].as_str().unwrap()).collect();
    for expected in ["run_id", "work_order_id", "contract_version", "started_at"] {
        assert!(what.contains(&expected), "{expected} is not in {what:?}");
    }
}

#[test]
fn staged_work_leaves_the_folder_alone_and_its_patch_can_be_applied() {
    let place = Place::new();
    let finished = place.run("edit", &["--json"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    let ended = ended(&finished);
    assert_eq!(place.read("a.txt"), "before\n");
    let patch = std::fs::read_to_string(ended["patch"].as_str().unwrap()).unwrap();
    for part in ["+changed", "deleted file", "GIT binary patch", "new.bin"] {
        assert!(patch.contains(part), "{part} is not in {patch}");
    }
    assert_eq!(ended["files"].as_array().unwrap().len(), 3);
    assert_eq!(ended["stage"], Value::Null);

    let applied = place.run("edit", &["--json", "--apply"]);
    assert_eq!(applied.code(), 0, "{}", applied.stderr);
    assert_eq!(place.read("a.txt"), "changed\n");
    assert!(!place.project.join("gone.txt").exists());
    assert_eq!(std::fs::read(place.project.join("new.bin")).unwrap().len(), 256);
}

#[test]
fn a_copy_that_was_not_finished_stays_and_is_named() {
    let place = Place::new();
    let finished = place.run("edit failed", &["--json"]);
    assert_eq!(finished.code(), 1, "{}", finished.stderr);
    let stage = ended(&finished)["stage"].as_str().unwrap().to_owned();
    assert!(Path::new(&stage).is_dir());
    let shown = place.run("edit failed", &[]);
    assert!(shown.stderr.contains("copy     "), "{}", shown.stderr);
}

#[test]
fn in_place_works_in_the_folder_itself() {
    let place = Place::new();
    let finished = place.run("edit", &["--in-place"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert_eq!(place.read("a.txt"), "changed\n");
}

#[test]
fn a_budget_ends_a_run_when_it_is_crossed() {
    let place = Place::new();
    for extra in [["--budget-usd", "0.05"], ["--max-tokens", "5000"]] {
        let finished = place.run("spend", &["--json", extra[0], extra[1]]);
        assert_eq!(finished.code(), 3, "{}{}", finished.stdout, finished.stderr);
        let ended = ended(&finished);
        assert_eq!(ended["ending"], "budget");
        let events = ended["events"].as_u64().unwrap();
        assert!(events < 50, "{events} events until it was noticed");
    }
}

#[test]
fn a_backend_that_goes_on_spending_is_stopped() {
    let place = Place::new();
    let finished = place.run("spend-on", &["--json", "--budget-usd", "0.05"]);
    assert_eq!(finished.code(), 3, "{}", finished.stderr);
    let ended = ended(&finished);
    assert_eq!((&ended["ending"], &ended["outcome"]), (&json!("budget"), &json!("partial")));
    assert!(ended["events"].as_u64().unwrap() < 9_000, "it was never stopped");
}

#[test]
fn a_reported_call_that_the_policy_denies_ends_the_run() {
    let place = Place::new();
    place.write("policy.json", r#"{"disallowed_tools":["Bash"],"deny_read":["**/.env"]}"#);
    for call in [r#"call Bash '{"command":"ls"}'"#, r#"call Read '{"file_path":"conf/.env"}'"#] {
        let sidecar = sidecar(call);
        let args = ["run", "x", "--sidecar", &sidecar, "--policy", "policy.json", "--json"];
        let finished = place.finish(&args);
        assert_eq!(finished.code(), 1, "{}{}", finished.stdout, finished.stderr);
        let ended = ended(&finished);
        assert_eq!(ended["ending"], "policy");
        let receipt = receipt(&ended);
        let outrigger = &receipt["usage_raw"]["outrigger"];
        assert_eq!(outrigger["decisions"]["denied"], 1);
        assert_eq!(outrigger["enforcement"]["files"], "observed");
    }
}

#[test]
fn another_terminal_can_approve_or_deny() {
    for (answer, code) in [("allow", 0), ("deny", 1)] {
        let place = Place::new();
        place.write("policy.json", r#"{"require_approval_for":["Bash"]}"#);
        let sidecar = sidecar(r#"call-and-finish Bash '{"command":"ls"}' 2"#);
        let args = ["run", "x", "--sidecar", &sidecar, "--policy", "policy.json", "--json"];
        let running = place.start(&args);
        running.wait_for_output(r#""event":"approval""#);
        let listed = place.finish(&["approvals", "list", "--json"]);
        let waiting: Value = serde_json::from_str(listed.stdout.trim()).unwrap();
        assert_eq!(waiting["request"]["tool_name"], "Bash");
        let id = waiting["request"]["id"].as_str().unwrap();
        let answered = place.finish(&["approvals", answer, id]);
        assert_eq!(answered.code(), 0, "{}", answered.stderr);
        let again = place.finish(&["approvals", "allow", id]);
        assert_ne!(again.code(), 0, "a second answer was taken");
        let finished = running.finish();
        assert_eq!(finished.code(), code, "{}{}", finished.stdout, finished.stderr);
        let receipt = receipt(&ended(&finished));
        let approvals = receipt["usage_raw"]["outrigger"]["approvals"].as_array().unwrap();
        assert_eq!(approvals.len(), 1);
    }
}

#[test]
fn at_a_terminal_the_agent_can_ask_and_what_is_typed_meanwhile_reaches_it() {
    let place = Place::new();
    place.write("policy.json", r#"{"require_approval_for":["Bash"]}"#);
    let question = json!({"source": "Claude", "message": "", "payload": {"kind": "ask-user-question", "questions": [
        {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]}});
    let steps = json!({"steps": [
        {"do": "message", "text": "begun"},
        {"do": "listen"},
        {"do": "ask_person", "question": question},
        {"do": "tool", "tool_name": "Bash", "input": {"command": "ls"}},
    ]});
    place.write("script.json", &steps.to_string());
    let sidecar = format!("{} sidecar abp-mock --script script.json", env!("CARGO_BIN_EXE_outrigger"));
    let args = ["run", "x", "--sidecar", &sidecar, "--policy", "policy.json"];
    let mut terminal = Terminal::start(&mut place.command(&args));
    terminal.wait_for("what you type goes to the agent while it works");
    terminal.wait_for("begun");
    terminal.type_in("a little to the left\r");
    terminal.wait_for("you said: a little to the left");
    terminal.wait_for("1 to 2, or your own words:");
    terminal.type_in("2\r");
    terminal.wait_for(r#""answers":{"Which colour?":"Blue"}"#);
    terminal.wait_for("[y]es, [n]o, [a]lways in this run");
    terminal.type_in("perhaps\r");
    terminal.wait_for("y, n or a:");
    terminal.type_in("y\r");
    terminal.wait_for("complete");
    assert!(terminal.finish().success());
}

#[test]
fn without_anybody_there_a_question_of_the_agent_is_declined() {
    let place = Place::new();
    let steps =
        json!({"steps": [{"do": "ask_person", "question": {"payload": {"kind": "url", "url": "x"}}}]});
    place.write("script.json", &steps.to_string());
    let sidecar = format!("{} sidecar abp-mock --script script.json", env!("CARGO_BIN_EXE_outrigger"));
    let finished = place.finish(&["run", "x", "--sidecar", &sidecar]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("deny: nobody is here to answer questions"), "{}", finished.stdout);
}

#[test]
fn ctrl_c_cancels_and_there_is_a_receipt() {
    let place = Place::new();
    place.write("open.json", "{}");
    let sidecar = sidecar("polite");
    let running = place.start(&["run", "x", "--sidecar", &sidecar, "--policy", "open.json", "--json"]);
    running.wait_for_output("waiting");
    running.signal("INT");
    let finished = running.finish();
    assert_eq!(finished.code(), 130, "{}", finished.stderr);
    let ended = ended(&finished);
    assert_eq!((&ended["ending"], &ended["outcome"]), (&json!("cancelled"), &json!("partial")));
    assert_eq!(receipt(&ended)["trace"].as_array().unwrap().len(), 2);
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_stubborn_child() {
    let place = Place::new();
    place.write("open.json", "{}");
    let tag = Tag::new();
    let sidecar = sidecar("stubborn");
    let args = ["run", "x", "--sidecar", &sidecar, "--policy", "open.json", "--json", "--env", tag.as_arg()];
    let running = place.start(&args);
    running.wait_for_output("never");
    tag.wait_for(2);
    running.signal("INT");
    // Two signals at once may be delivered as one.
    running.wait_for_output("cancelling");
    running.signal("INT");
    let finished = running.finish();
    tag.must_be_gone(Duration::ZERO, "after a second signal");
    assert_eq!(finished.code(), 130, "{}", finished.stderr);
}

#[test]
fn nothing_outlives_a_run_that_is_killed() {
    for signal in ["KILL", "TERM"] {
        for round in 0..20 {
            let place = Place::new();
            place.write("open.json", "{}");
            let tag = Tag::new();
            let sidecar = sidecar("stubborn");
            let args =
                ["run", "x", "--sidecar", &sidecar, "--policy", "open.json", "--json", "--env", tag.as_arg()];
            let running = place.start(&args);
            running.wait_for_output("never");
            tag.wait_for(2);
            running.signal(signal);
            if signal == "TERM" {
                running.wait_for_output("cancelling");
                running.signal(signal);
            }
            tag.must_be_gone(Duration::from_secs(1), &format!("{signal}, round {round}"));
            running.finish();
        }
    }
}

#[test]
fn an_owner_that_leaves_or_interrupts_ends_the_run_with_a_receipt() {
    type End = fn(&mut Running);
    let ends: [(&str, End); 2] =
        [("closed stdin", |run| drop(run.child.stdin.take())), ("SIGINT", |run| run.signal("INT"))];
    for (what, end) in ends {
        for round in 0..20 {
            let place = Place::new();
            place.write("open.json", "{}");
            let tag = Tag::new();
            let sidecar = sidecar("family");
            let args =
                ["run", "x", "--sidecar", &sidecar, "--policy", "open.json", "--json", "--env", tag.as_arg()];
            let mut running = place.start(&args);
            running.wait_for_output("waiting");
            tag.wait_for(2);
            end(&mut running);
            let finished = running.finish();
            tag.must_be_gone(Duration::ZERO, &format!("{what}, round {round}"));
            assert_eq!(finished.code(), 130, "{what}: {}", finished.stderr);
            assert_eq!(ended(&finished)["ending"], "cancelled", "{what}");
        }
    }
}

#[test]
fn times_are_limits_of_their_own() {
    let place = Place::new();
    let cases = [
        ("mute", ["--hello-within", "300ms"], 4, "hello_timeout"),
        ("silent", ["--silence", "300ms"], 1, "silent"),
        ("silent", ["--timeout", "300ms"], 3, "timeout"),
        ("silent", ["--ping", "100ms"], 1, "stalled"),
    ];
    for (child, extra, code, kind) in cases {
        let finished = place.run(child, &["--json", extra[0], extra[1]]);
        assert_eq!(finished.code(), code, "{child} {extra:?}: {}{}", finished.stdout, finished.stderr);
        assert_eq!(ended(&finished)["code"], kind, "{child} {extra:?}");
    }
}

#[test]
fn what_is_wrong_with_the_call_is_said_before_anything_starts() {
    let place = Place::new();
    place.write("bad.json", "{");
    place.write("list.json", r#"{"deny_raed":[]}"#);
    place.write("glob.json", r#"{"deny_read":["["]}"#);
    place.write("slip.toml", "default_backed = 'mock'\n");
    let cases: &[(&[&str], &str)] = &[
        (&["run", "x", "--backend", "mok"], "did you mean `mock`?"),
        (&["run", "--order", "nowhere.json"], "nowhere.json cannot be opened"),
        (&["run", "--order", "bad.json"], "bad.json is not a work order"),
        (&["run", "x", "--policy", "list.json"], "did you mean `deny_read`?"),
        (&["run", "x", "--policy", "glob.json"], "deny_read"),
        (&["run", "x", "--config", "slip.toml"], "did you mean `default_backend`?"),
        (&["run", "x", "--root", "nowhere"], "nowhere"),
        (&["run", "  "], "there is no task"),
        (&["run", "x", "--budget-usd", "nan"], "budget"),
        (&["run", "x", "--require", "tool_bsh"], "did you mean `tool_bash`?"),
        (&["run", "x", "--sidecar", "node 'x"], "never closed"),
        (&["run", "x", "--sidecar", "/no/such/program"], "/no/such/program"),
    ];
    for (args, expected) in cases {
        let finished = place.finish(args);
        assert_ne!(finished.code(), 0, "{args:?}");
        assert!(finished.stderr.contains(expected), "{args:?} said {:?}", finished.stderr);
    }
}

#[test]
fn requirements_are_checked_before_the_run_is_sent() {
    let place = Place::new();
    let args = ["--json", "--require", "tool_bash=native", "--require", "vision"];
    let finished = place.run("complete", &args);
    let ended = ended(&finished);
    assert_eq!(ended["code"], "requirements");
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("tool_bash") && error.contains("vision"), "{error}");
    assert_eq!(ended["events"], 0);
}

#[test]
fn an_order_from_a_file_and_a_configured_backend_go_together() {
    let place = Place::new();
    place.write("order.json", r#"{"task":"from a file","workspace":{"mode":"pass_through"}}"#);
    let fixture = format!("{}/tests/it/fixtures/abp_child.py", env!("CARGO_MANIFEST_DIR"));
    let configuration = format!(
        "default_backend = 'agent'\n[backends.agent]\ntype = 'sidecar'\ncommand = 'python3'\nargs = ['{fixture}', 'environment', 'MARK']\nenv = {{ MARK = 'here' }}\n\
         [backends.lines]\ntype = 'process'\ncommand = 'printf'\nargs = ['one\\ntwo\\n']\n"
    );
    place.write("outrigger.toml", &configuration);
    let finished = place.finish(&["run", "--order", "order.json"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "here\n"), "{}", finished.stderr);
    let lines = place.finish(&["run", "x", "--backend", "lines", "--in-place"]);
    assert_eq!(lines.code(), 0, "{}", lines.stderr);
    assert!(lines.stdout.contains("one") && lines.stdout.contains("two"), "{}", lines.stdout);
}

#[test]
fn receipts_of_a_folder_are_a_chain() {
    let place = Place::new();
    let first = ended(&place.run("complete", &["--json"]));
    let second = ended(&place.run("complete", &["--json"]));
    assert_eq!(receipt(&second)["usage_raw"]["outrigger"]["previous"], first["receipt_sha256"]);
    let folder = Path::new(first["receipt"].as_str().unwrap()).parent().unwrap().to_str().unwrap().to_owned();
    let verified = place.finish(&["receipts", "verify", &folder]);
    assert_eq!(verified.code(), 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_signed_receipt_is_checked_by_a_stranger() {
    let place = Place::new();
    let ended = ended(&place.run("complete", &["--json", "--sign", "key"]));
    let path = ended["receipt"].as_str().unwrap();
    let verified = place.finish(&["receipts", "verify", path, "--json"]);
    assert_eq!(verified.code(), 0, "{}{}", verified.stdout, verified.stderr);
    assert!(receipt(&ended)["signature"]["public_key"].is_string());
    let key = receipt(&ended)["signature"]["public_key"].as_str().unwrap().to_owned();
    let folder = Path::new(path).parent().unwrap().to_str().unwrap();
    assert_eq!(place.finish(&["receipts", "verify", folder, "--key", &key]).code(), 0);
    let unsigned = place.run("complete", &["--json"]);
    assert_eq!(unsigned.code(), 0, "{}", unsigned.stderr);
    assert_eq!(place.finish(&["receipts", "verify", folder]).code(), 0);
    assert_eq!(place.finish(&["receipts", "verify", folder, "--key", &key]).code(), 1, "one is not signed");
    let text = std::fs::read_to_string(path).unwrap();
    let value = receipt(&ended)["signature"]["value"].as_str().unwrap().to_owned();
    let broken = format!("{}{}", if value.starts_with('0') { "1" } else { "0" }, &value[1..]);
    std::fs::write(path, text.replace(&value, &broken)).unwrap();
    assert_eq!(place.finish(&["receipts", "verify", path]).code(), 1);
}

#[test]
fn a_sidecar_is_checked_rule_by_rule() {
    let place = Place::new();
    let mock = format!("{} sidecar abp-mock", env!("CARGO_BIN_EXE_outrigger"));
    let mut args = vec!["check", "abp", "--json", "--"];
    args.extend(mock.split(' '));
    let fine = place.finish(&args);
    assert_eq!(fine.code(), 0, "{}{}", fine.stdout, fine.stderr);
    let last: Value = serde_json::from_str(fine.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["conformant"], &last["failed"]),
        (&json!("summary"), &json!(true), &json!(0))
    );

    let fixture = format!("{}/tests/it/fixtures/abp_child.py", env!("CARGO_MANIFEST_DIR"));
    let broken = place.finish(&["check", "abp", "--run-within", "3s", "--", "python3", &fixture, "banner"]);
    assert_eq!(broken.code(), 1, "{}{}", broken.stdout, broken.stderr);
    assert!(broken.stdout.contains("FAIL") && broken.stdout.contains("starting up..."), "{}", broken.stdout);
}

#[test]
fn a_run_whose_host_was_killed_gets_its_receipt_from_the_next_one() {
    let place = Place::new();
    place.write("open.json", "{}");
    let sidecar = sidecar("polite");
    let running = place.start(&["run", "x", "--sidecar", &sidecar, "--policy", "open.json", "--json"]);
    running.wait_for_output("waiting");
    let recorded = || {
        let files = std::fs::read_dir(place.data.join("outrigger/receipts")).unwrap().flatten();
        let mut parts = files.filter(|file| file.file_name().to_string_lossy().ends_with(".trace.part"));
        parts.any(|part| std::fs::read_to_string(part.path()).is_ok_and(|text| text.contains("waiting")))
    };
    wait_until(PATIENCE, recorded).expect("what was heard is soon on disk");
    running.signal("KILL");
    running.finish();
    let stages = place.finish(&["stages", "list", "--json"]);
    let stage: Value = serde_json::from_str(stages.stdout.trim()).unwrap();
    assert_eq!(stage["stage"]["state"]["state"], "abandoned");

    let next = place.run("complete", &["--json"]);
    let first: Value = serde_json::from_str(next.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["events"]), (&json!("recovered"), &json!(2)), "{}", next.stdout);
    let path = first["receipt"].as_str().unwrap();
    let verified = place.finish(&["receipts", "verify", path]);
    assert_eq!(verified.code(), 0, "{}{}", verified.stdout, verified.stderr);
    let receipt: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&receipt["outcome"], receipt["trace"].as_array().unwrap().len()), (&json!("failed"), 2));

    let removed = place.finish(&["stages", "remove", "--all"]);
    assert_eq!(removed.code(), 0, "{}", removed.stderr);
    assert_eq!(place.finish(&["stages", "list", "--json"]).stdout, "");
}

#[test]
fn a_patch_for_a_folder_that_moved_on_is_refused_and_nothing_is_lost() {
    let place = Place::new();
    let child = format!("meddle {}", place.project.join("a.txt").display());
    let finished = place.run(&child, &["--json", "--apply"]);
    assert_eq!(finished.code(), 1, "{}{}", finished.stdout, finished.stderr);
    let ended = ended(&finished);
    assert_eq!(place.read("a.txt"), "meddled\n");
    assert!(ended["error"].as_str().unwrap().contains("a.txt"), "{ended}");
    assert!(Path::new(ended["stage"].as_str().unwrap()).is_dir());
    assert!(std::fs::read_to_string(ended["patch"].as_str().unwrap()).unwrap().contains("+changed"));
}

#[test]
fn a_strict_box_holds_what_the_child_would_not_tell() {
    let place = Place::new();
    place.write("policy.json", r#"{"deny_network":["*"]}"#);
    let outside = place.data.join("outside");
    std::fs::create_dir_all(&place.data).unwrap();
    let fixture = format!("{}/tests/it/fixtures/abp_child.py", env!("CARGO_MANIFEST_DIR"));
    // The system's own python: one of a version manager lives in the user's home, which the box closes.
    let sidecar = format!("/usr/bin/python3 {fixture} escape {}", outside.display());
    let args = [
        "run",
        "x",
        "--sidecar",
        &sidecar,
        "--policy",
        "policy.json",
        "--sandbox",
        "strict",
        "--read",
        &fixture,
    ];
    let mut args = args.to_vec();
    args.push("--json");
    let finished = place.finish(&args);
    assert_eq!(finished.code(), 0, "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("write: Permission denied"), "{}", finished.stdout);
    assert!(!outside.exists());
    assert!(!finished.stdout.contains("connect: Connection refused"), "{}", finished.stdout);
    let receipt = receipt(&ended(&finished));
    let enforcement = &receipt["usage_raw"]["outrigger"]["enforcement"];
    assert_eq!((&enforcement["files"], &enforcement["network"]), (&json!("enforced"), &json!("enforced")));
}

#[test]
fn the_real_claude_code_takes_work_orders_and_does_not_do_what_the_policy_denies() {
    let modules = std::env::var_os("OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE").expect(
        "OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE must name the folder that holds Claude Code: run the tests with `cargo xtask test`",
    );
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let claude =
        Path::new(&modules).join(format!("node_modules/@anthropic-ai/claude-code-linux-{machine}/claude"));
    let model = Model::start();
    let place = Place::new();
    place.write("policy.json", r#"{"disallowed_tools":["Write"]}"#);
    let sidecar = format!("node {}/../../sdk/node/examples/abp-claude.mjs", env!("CARGO_MANIFEST_DIR"));
    let run = |task: &str| {
        let args = ["run", task, "--sidecar", &sidecar, "--policy", "policy.json", "--json"];
        let mut command = place.command(&args);
        command
            .env("HOME", &place.data)
            .env("CLAUDE_COMMAND", &claude)
            .env("CLAUDE_CONFIG_DIR", place.data.join("claude"))
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("IS_SANDBOX", "1");
        Running::start(&mut command).finish()
    };
    std::fs::create_dir_all(&place.data).unwrap();
    let spoke = run("{{say hello from the model}}");
    assert_eq!(spoke.code(), 0, "{}{}", spoke.stdout, spoke.stderr);
    assert!(spoke.stdout.contains("hello from the model"), "{}", spoke.stdout);
    assert_eq!(ended(&spoke)["usage"]["output_tokens"], 12);

    let denied = run(r#"{{use Write {"file_path":"made.txt","content":"x"}}}"#);
    assert_eq!(denied.code(), 0, "{}{}", denied.stdout, denied.stderr);
    let ended = ended(&denied);
    assert_eq!(ended["files"].as_array().unwrap().len(), 0, "{ended}");
    let receipt = receipt(&ended);
    let outrigger = &receipt["usage_raw"]["outrigger"];
    assert_eq!(outrigger["enforcement"]["tools"], "enforced", "{outrigger}");
    assert_ne!(outrigger["decisions"]["denied"], 0, "{outrigger}");
}
