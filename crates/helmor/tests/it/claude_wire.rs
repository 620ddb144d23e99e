//! The real Claude Code behind the real sidecar, in a process of its own and over its pipes, as a host has it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::claude_kit::{World, ask_model, processes, texts};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        claude_over_the_wire_answers_everything_a_host_asks,
        claude_over_the_wire_leaves_no_tool_behind_however_it_ends
    ]
}

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sidecar in a process, and its host.
struct Sidecar {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Sidecar {
    fn start(world: &World) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test is the host, and starts its sidecar as one does"
        )]
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["__sidecar", "--claude"]).arg(world.folder.path().join("claude"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(100_000);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let sidecar = Self { child, input, lines };
        assert_eq!(sidecar.next(), json!({"type": "ready", "version": 1}));
        sidecar
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("the sidecar says more")
    }

    fn request(&mut self, id: &str, method: &str, params: &Value) {
        let line = json!({"id": id, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn send(&mut self, id: &str, world: &World, mode: &str, prompt: &str) {
        let params = json!({"sessionId": "s", "provider": "claude", "prompt": prompt, "cwd": world.work(), "permissionMode": mode});
        self.request(id, "sendMessage", &params);
    }

    /// All events of this id up to its last one, which is the only one that ends it.
    fn all(&self, id: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            if event["id"] != id {
                continue;
            }
            let kind = event["type"].as_str().unwrap().to_owned();
            events.push(event);
            let ends = ["end", "aborted", "error", "pong", "stopped", "steered"];
            if ends.contains(&&*kind)
                || kind.ends_with("Listed")
                || kind == "titleGenerated"
                || kind == "contextUsageResult"
            {
                return events;
            }
        }
    }

    /// Events of this id until one that is so.
    fn until(&self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next();
            if event["id"] == id && is(&event) {
                return event;
            }
        }
    }

    fn exits(&mut self, within: Duration) -> std::process::ExitStatus {
        let end = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the sidecar still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last(events: &[Value]) -> &str {
    events.last().unwrap()["type"].as_str().unwrap()
}

fn is_delta(event: &Value) -> bool {
    event["event"]["type"] == "content_block_delta"
}

fn claude_over_the_wire_answers_everything_a_host_asks() {
    let Some(world) = World::real("") else { return };
    let mut sidecar = Sidecar::start(&world);
    sidecar.send("r1", &world, "default", "{{say hello over there}}");
    let events = sidecar.all("r1");
    assert_eq!((last(&events), texts(&events)), ("end", vec!["hello over there".to_owned()]));
    assert_eq!(events[events.len() - 2]["type"], "contextUsageUpdated");

    let write = json!({"file_path": world.work().join("made"), "content": "x"});
    sidecar.send("r2", &world, "default", &format!("{{{{use Write {write}}}}} {{{{hold over-the-wire}}}}"));
    let ask = sidecar.until("r2", |event| event["type"] == "permissionRequest");
    assert!(ask["suggestions"].is_array(), "{ask}");
    sidecar.send("r3", &world, "default", "too early");
    assert_eq!(sidecar.all("r3")[0]["code"], "session_busy");
    let allow = json!({"permissionId": ask["permissionId"], "behavior": "allow"});
    sidecar.request("r4", "permissionResponse", &allow);
    sidecar.until("r2", |event| is_delta(event) && event["event"]["delta"]["text"] == "over-the-wire");
    assert!(world.work().join("made").exists());
    let steer = json!({"sessionId": "s", "provider": "claude", "prompt": "{{say steered}}"});
    sidecar.request("r5", "steerSession", &steer);
    sidecar.until("r2", |event| event["type"] == "user_prompt");
    assert_eq!(sidecar.all("r5")[0]["accepted"], true);
    ask_model("/release/over-the-wire");
    let events = sidecar.all("r2");
    assert_eq!((last(&events), texts(&events).last().map(String::as_str)), ("end", Some("steered")));

    sidecar.send("r6", &world, "default", "{{status 529}}");
    let events = sidecar.all("r6");
    assert_eq!((last(&events), &events.last().unwrap()["code"]), ("error", &json!("server")));

    sidecar.send("r7", &world, "default", "{{hold never}}");
    sidecar.until("r7", is_delta);
    sidecar.request("r8", "stopSession", &json!({"sessionId": "s", "provider": "claude"}));
    let mut ends = [sidecar.until("r7", |event| event["type"] == "aborted"), sidecar.all("r8")[0].clone()];
    ends[0]["reason"].take();
    assert_eq!(ends[1]["type"], "stopped");

    sidecar.request("m", "listModels", &json!({"provider": "claude"}));
    assert!(sidecar.all("m")[0]["models"].as_array().unwrap().len() > 1);
    sidecar.request("c", "listSlashCommands", &json!({"provider": "claude", "cwd": world.work()}));
    assert!(!sidecar.all("c")[0]["commands"].as_array().unwrap().is_empty());
    let usage = json!({"sessionId": "s", "model": "default"});
    sidecar.request("u", "getContextUsage", &usage);
    assert!(sidecar.all("u")[0]["meta"].as_str().unwrap().contains("usedTokens"));
    let title = json!({"userMessage": "{{say title: Over There\nbranch: over-there}}"});
    sidecar.request("t", "generateTitle", &title);
    let titled = sidecar.all("t");
    assert_eq!(titled[0]["title"], "Over There", "{titled:?}");
    sidecar.request("q", "shutdown", &json!({}));
    assert_eq!(last(&sidecar.all("q")), "pong");
    assert!(sidecar.exits(Duration::from_secs(2)).success());
}

fn claude_over_the_wire_leaves_no_tool_behind_however_it_ends() {
    let Some(world) = World::real("") else { return };
    let survived = world.work().join("survived");
    let mark = survived.to_str().unwrap();
    let command = json!({"command": format!("(setsid sh -c 'sleep 25; touch {mark}' >/dev/null 2>&1 &); sh -c 'sleep 25; touch {mark}'")});
    let tool = format!("{{{{use Bash {command}}}}}");
    let gone = |within: Duration| {
        let end = Instant::now() + within;
        while !processes(mark).is_empty() {
            assert!(Instant::now() < end, "the tool survived: {:?}", processes(mark));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for end in ["stop", "shutdown", "end of input", "kill"] {
        let mut sidecar = Sidecar::start(&world);
        sidecar.send("r", &world, "bypassPermissions", &tool);
        let began = Instant::now();
        while processes(mark).len() < 3 {
            assert!(began.elapsed() < PATIENCE, "{end}: the tool does not run");
            std::thread::sleep(Duration::from_millis(10));
        }
        match end {
            "stop" => {
                sidecar.request("x", "stopSession", &json!({"sessionId": "s", "provider": "claude"}));
                assert_eq!(last(&sidecar.all("r")), "aborted");
                gone(Duration::from_secs(5));
            }
            "shutdown" => {
                sidecar.request("x", "shutdown", &json!({}));
                assert_eq!(last(&sidecar.all("r")), "aborted");
                assert!(sidecar.exits(Duration::from_secs(5)).success());
                gone(Duration::ZERO);
            }
            "end of input" => {
                sidecar.input = None;
                assert!(sidecar.exits(Duration::from_secs(2)).success());
                gone(Duration::ZERO);
            }
            _ => {
                sidecar.child.kill().unwrap();
                gone(Duration::from_secs(2));
            }
        }
    }
    assert!(!survived.exists());
}
