//! `outrigger up`: the daemon as its users meet it, started, killed and started again.

mod agents;
mod browser;
mod chaos;
mod door;
mod load;
mod up;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use door::Door;

use crate::process::{Finished, PATIENCE, Running, Tag, outrigger, wait_until};

/// A daemon and its folder. Everything it starts carries the tag.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    running: Option<Running>,
    pub(crate) door: Door,
    /// The one-time link that it printed.
    pub(crate) link: String,
}

/// A folder for a daemon, and the environment of a user who has nothing else.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) tag: Tag,
    /// What else is in the environment.
    pub(crate) more: Vec<(&'static str, std::ffi::OsString)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), tag: Tag::new(), more: Vec::new() }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A command of this user, in their folder.
    pub(crate) fn outrigger<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> std::process::Command {
        let mut command = outrigger(args);
        let (name, value) = self.tag.as_arg().split_once('=').unwrap();
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("OUTRIGGER_STATE", self.state())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env(name, value)
            .envs(self.more.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What a command of this user says.
    pub(crate) fn said(&self, args: &[&str]) -> Finished {
        let mut command = self.outrigger(args.iter().copied());
        command.stdin(std::process::Stdio::null());
        crate::process::finish(&mut command)
    }
}

impl Daemon {
    /// A daemon in a new folder, with these lines as its configuration.
    pub(crate) fn start(config: &str) -> Self {
        let home = Home::new();
        if !config.is_empty() {
            std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
        }
        Self::start_in(home, &["--no-example"])
    }

    /// A daemon in this folder, on a port of its own.
    pub(crate) fn start_in(home: Home, more: &[&str]) -> Self {
        let (running, door, link) = launch(&home, more);
        Self { home, running: Some(running), door, link }
    }

    /// Kills it as the kernel would.
    pub(crate) fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal("KILL");
            running.finish();
        }
    }

    /// Tells it to leave, and waits until it has.
    pub(crate) fn stop(&mut self) -> Finished {
        let running = self.running.take().expect("it is up");
        running.signal("TERM");
        running.finish()
    }

    /// Starts it again after it was killed or stopped, on the port that it had.
    pub(crate) fn again(&mut self) {
        assert!(self.running.is_none(), "it is up");
        let port = self.door.port().to_string();
        let (running, door, link) = launch(&self.home, &["--port", &port]);
        self.running = Some(running);
        self.door = door;
        self.link = link;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it is up").child.id()
    }

    /// Asks for a run and gives its id.
    pub(crate) fn submit(&self, request: &Value) -> String {
        let response = self.door.post("/v1/runs", request);
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn show(&self, run: &str) -> Value {
        self.door.get(&format!("/v1/runs/{run}")).expect(200).json()
    }

    /// Waits until a run is in a phase.
    pub(crate) fn until(&self, run: &str, phase: &str) -> Value {
        self.wait_for(run, |state| state["phase"] == phase)
    }

    pub(crate) fn until_over(&self, run: &str) -> Value {
        self.wait_for(run, |state| {
            ["completed", "failed", "cancelled"].contains(&state["phase"].as_str().unwrap())
        })
    }

    pub(crate) fn wait_for(&self, run: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = self.show(run);
            if is(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "it never was as it should be: {state:#}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The whole log of a run.
    pub(crate) fn log(&self, run: &str) -> Vec<Value> {
        let mut records = Vec::new();
        loop {
            let after = records.len();
            let page =
                self.door.get(&format!("/v1/runs/{run}/events?after={after}&limit=1000")).expect(200).json();
            let page = page["events"].as_array().unwrap().clone();
            if page.is_empty() {
                return records;
            }
            records.extend(page);
        }
    }

    pub(crate) fn receipts(&self) -> PathBuf {
        self.home.state().join("receipts")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        self.home.tag.must_be_gone(Duration::from_secs(5), "a daemon that was killed");
    }
}

/// Starts a daemon and waits until it says that it is up.
fn launch(home: &Home, more: &[&str]) -> (Running, Door, String) {
    let mut args = vec!["--json", "up", "--no-open"];
    if !more.contains(&"--port") {
        args.extend(["--port", "0"]);
    }
    args.extend(more);
    let mut command = home.outrigger(args);
    command.stdin(std::process::Stdio::null());
    let running = Running::start(&mut command);
    running.wait_for_output("\"event\":\"up\"");
    let note = home.state().join("up.json");
    wait_until(PATIENCE, || note.exists()).expect("the daemon leaves a note");
    let note: Value = serde_json::from_str(&std::fs::read_to_string(note).unwrap()).unwrap();
    let token = std::fs::read_to_string(home.state().join("token")).unwrap();
    let door = Door::new(note["address"].as_str().unwrap(), token.trim());
    let said = running.output();
    let up = said.lines().find(|line| line.contains("\"event\":\"up\"")).expect("it said so");
    let up: Value = serde_json::from_str(up).unwrap();
    (running, door, up["link"].as_str().unwrap().to_owned())
}

/// A script that calls `ask` and gives what it answers.
pub(crate) fn asking() -> Value {
    json!({"script": "const answer = ask('may I?'); ({ answer });", "tools": {"ask": "person"}})
}

/// Whether a receipt holds, as a stranger would check it.
pub(crate) fn verify(file: &Path) {
    let checked = crate::process::finish(&mut outrigger(["receipts", "verify", file.to_str().unwrap()]));
    assert_eq!(checked.code(), 0, "{}: {}{}", file.display(), checked.stdout, checked.stderr);
}
