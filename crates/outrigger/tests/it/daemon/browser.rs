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

#[test]
fn a_person_uses_the_dashboard() {
    let _quiet = quiet();
    let tools = "[tools.six]\nvalue = 6\napproval = \"always\"\n\n[runs]\napprove_within = \"1h\"\n";
    let agent = "[backends.slow]\ntype = \"mock\"\nscript = \"slow.json\"\n";
    let home = super::Home::new();
    std::fs::write(
        home.folder.path().join("outrigger.toml"),
        format!("{tools}\n{agent}\n[extensions]\nenabled = true\n"),
    )
    .unwrap();
    std::fs::write(home.folder.path().join("slow.json"), SLOW).unwrap();
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
