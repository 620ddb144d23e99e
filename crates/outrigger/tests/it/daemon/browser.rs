//! The dashboard in a real browser, driven by a person made of playwright.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{Daemon, asking};
use crate::process::quiet;

/// A browser with a person before it.
struct Person {
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Person {
    /// None where there is no browser, which is said.
    fn new(link: &str) -> Option<Self> {
        let playwright = std::env::var_os("OUTRIGGER_NPM_PLAYWRIGHT_CORE");
        if playwright.is_none() || !std::path::Path::new("/usr/bin/chromium").exists() {
            #[expect(clippy::print_stderr, reason = "who runs the tests must know what they did not cover")]
            {
                eprintln!("skipped, because there is no browser: run the tests with `cargo xtask test`");
            }
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/daemon/browser.mjs");
        let mut child = Command::new("node")
            .args([script, link])
            .arg(shots())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let tell = child.stdin.take().unwrap();
        let hear = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, tell, hear })
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.tell, "{word}").expect("the browser listens");
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.hear.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the browser said {line:?}"));
        assert_ne!(said["step"], "failed", "{}", said["why"].as_str().unwrap_or_default());
        said
    }

    /// Has one thing done.
    fn does(&mut self, step: &str) {
        self.tell(step);
        assert_eq!(self.next()["step"], "done", "{step}");
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // It may have left by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where pictures are kept.
fn shots() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots")
}

/// An extension with a panel.
const EXTENSION: &str = "org.example.hello";

/// An agent that listens twice, and so is at work until somebody has spoken twice.
const SLOW: &str = r#"{"steps":[{"do":"started","message":"begun"},{"do":"listen"},{"do":"listen"}]}"#;

/// Tools that need a person, agents that wait, talk and change files, and an extension.
fn config() -> String {
    let tools = "[tools.six]\nvalue = 6\napproval = \"always\"\n[tools.echo]\ncommand = \"cat\"\napproval = \"always\"\n";
    let slow = "[backends.slow]\ntype = \"mock\"\nscript = \"slow.json\"\n";
    let writer =
        "[backends.writer]\ntype = \"process\"\ncommand = \"sh\"\nargs = [\"-c\", \"echo after > a.txt\"]\n";
    let program = env!("CARGO_BIN_EXE_outrigger");
    let talker = format!("echo it has begun >&2; exec {program} sidecar abp-mock --script slow.json");
    let talker = format!(
        "[backends.talker]\ntype = \"sidecar\"\ncommand = \"sh\"\nargs = [\"-c\", \"{talker}\"]\ncwd = \".\"\n"
    );
    let rest = "[runs]\napprove_within = \"1h\"\n[extensions]\nenabled = true\n";
    format!("{tools}{slow}{writer}{talker}{rest}")
}

#[test]
fn a_person_uses_the_dashboard() {
    let _quiet = quiet();
    let home = super::Home::new();
    std::fs::write(home.folder.path().join("outrigger.toml"), config()).unwrap();
    std::fs::write(home.folder.path().join("slow.json"), SLOW).unwrap();
    let project = home.folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a.txt"), "before\n").unwrap();
    for args in
        [&["ext", "new", EXTENSION] as &[&str], &["ext", "trust", EXTENSION], &["ext", "grant", EXTENSION]]
    {
        let done = home.said(args);
        assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr);
    }
    let mut daemon = Daemon::start_in(home, &["--no-example"]);
    let Some(mut person) = Person::new(&daemon.link) else { return };
    person.does("link_lets_one_browser_in");
    person.does("script_runs_and_a_call_is_answered");

    let approved = json!({"script": "`answer ${six() * 7}`", "tools": {"six": {"tool": "six"}}});
    let run = daemon.submit(&approved);
    daemon.until(&run, "waiting");
    person.does(&format!("tool_is_approved {run}"));
    let edited = json!({"script": "`got ${echo(6)}`", "tools": {"echo": {"tool": "echo"}}});
    let run = daemon.submit(&edited);
    daemon.until(&run, "waiting");
    person.does(&format!("call_is_approved_with_other_arguments {run}"));
    for step in ["keyboard_is_enough", "without_scripts_forms_do_the_same"] {
        let run = daemon.submit(&approved);
        daemon.until(&run, "waiting");
        person.does(&format!("{step} {run}"));
        assert_eq!(daemon.until_over(&run)["phase"], "completed");
    }
    let run = daemon.submit(&json!({"task": "write", "backend": "writer", "workspace": {"root": project}}));
    daemon.until_over(&run);
    person.does(&format!("changes_of_a_run_are_shown {run}"));
    person.does("agent_is_talked_to");
    let run = daemon.submit(&json!({"task": "take your time", "backend": "talker"}));
    daemon.wait_for(&run, |state| state["attempt_events"].as_u64().unwrap() > 0);
    person.does("process_is_looked_at_and_stopped talker");
    assert_eq!(daemon.until_over(&run)["phase"], "failed");
    let denied = daemon.submit(&approved);
    daemon.until(&denied, "waiting");
    person.does("tool_is_denied_from_the_list");
    assert_eq!(daemon.until_over(&denied)["phase"], "failed");

    let slow = daemon.submit(&json!({"task": "take your time", "backend": "slow"}));
    daemon.until(&slow, "running");
    person.does(&format!("agent_is_steered_and_cancelled {slow}"));

    let waits = daemon.submit(&asking());
    daemon.until(&waits, "waiting");
    person.tell(&format!("page_reconnects_after_a_restart {waits}"));
    assert_eq!(person.next()["step"], "restart");
    daemon.kill();
    daemon.again();
    person.tell("restarted");
    assert_eq!(person.next()["step"], "answer");
    let answer = json!({"choice": "answer", "value": "yes"});
    daemon.door.post(&format!("/v1/runs/{waits}/approvals/a1"), &answer).expect(200);
    person.tell("answered");
    assert_eq!(person.next()["step"], "done");

    person.does(&format!("panel_action_of_an_extension {EXTENSION}"));
    person.does("pages_fit_a_phone_and_the_dark");
}
