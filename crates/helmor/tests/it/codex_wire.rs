//! The real Codex behind the real sidecar, in a process of its own and over its pipes, as a host has it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::codex_kit::{Bench, PATIENCE, answer_of};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        codex_over_the_wire_answers_everything_a_host_asks,
        codex_over_the_wire_leaves_no_command_behind_however_it_ends
    ]
}

/// A sidecar in a process, and its host.
struct Sidecar {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Sidecar {
    fn start(bench: &Bench) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test is the host, and starts its sidecar as one does"
        )]
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["__sidecar", "--codex"]).arg(bench.folder.path().join("codex"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let sidecar = Self { child, input, lines };
        assert_eq!(sidecar.next(), json!({ "type": "ready", "version": 1 }));
        sidecar
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("the sidecar says more")
    }

    fn request(&mut self, id: &str, method: &str, params: &Value) {
        let line = json!({ "id": id, "method": method, "params": params });
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn send(&mut self, id: &str, bench: &Bench, mode: &str, prompt: &str) {
        let params = json!({
            "sessionId": "s", "provider": "codex", "prompt": prompt, "cwd": bench.work(), "permissionMode": mode,
            "resume": null, "effortLevel": null, "fastMode": false,
        });
        self.request(id, "sendMessage", &params);
    }

    /// Everything up to an event of this id and type.
    fn until(&self, id: &str, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let found = event["id"] == id && event["type"] == kind;
            events.push(event);
            if found {
                return events;
            }
            let last = events.last().unwrap();
            let ended =
                last["id"] == id && ["end", "error", "aborted"].contains(&last["type"].as_str().unwrap());
            assert!(!ended, "{id} has no {kind}: {last}");
        }
    }

    fn is_over_within(&mut self, limit: Duration) {
        let since = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < limit, "the sidecar does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn codex_over_the_wire_answers_everything_a_host_asks() {
    let Some(bench) = Bench::real() else { return };
    let mut host = Sidecar::start(&bench);
    host.send("1", &bench, "bypassPermissions", "{{say hello}}");
    let events = host.until("1", "end");
    assert_eq!(answer_of(&events), "hello");
    assert!(events.iter().all(|event| event["id"] == "1"), "{events:#?}");
    let thread = events[events.len() - 2]["session_id"].as_str().unwrap().to_owned();

    host.send("2", &bench, "acceptEdits", "{{run touch made}}");
    let asked = host.until("2", "permissionRequest").pop().unwrap();
    let verdict = json!({ "permissionId": asked["permissionId"], "behavior": "allow" });
    host.request("2a", "permissionResponse", &verdict);
    host.until("2", "end");
    assert!(bench.work().join("made").exists());

    host.send("3", &bench, "bypassPermissions", "{{trickle 50}}");
    host.until("3", "item/agentMessage/delta");
    let steer = json!({ "sessionId": "s", "provider": "codex", "prompt": "{{say steered}}" });
    host.request("3a", "steerSession", &steer);
    let events = host.until("3", "end");
    assert_eq!(answer_of(&events), "steered");
    let steered = events.iter().find(|event| event["type"] == "steered").unwrap();
    assert_eq!(*steered, json!({ "id": "3a", "type": "steered", "sessionId": "s", "accepted": true }));

    host.send("4", &bench, "bypassPermissions", "{{trickle 100}}");
    host.until("4", "item/agentMessage/delta");
    host.request("4a", "stopSession", &json!({ "sessionId": "s", "provider": "codex" }));
    host.until("4", "aborted");
    host.until("4a", "stopped");

    host.send("5", &bench, "bypassPermissions", "{{status 401}}");
    let error = host.until("5", "error").pop().unwrap();
    assert_eq!(error["code"], "auth", "{error}");

    let query = json!({
        "sessionId": "s", "model": "gpt-5.5", "providerSessionId": thread, "provider": "codex", "cwd": bench.work(),
    });
    host.request("6", "getContextUsage", &query);
    let usage = host.until("6", "contextUsageResult").pop().unwrap();
    let meta: Value = serde_json::from_str(usage["meta"].as_str().unwrap()).unwrap();
    assert_eq!(meta["modelId"], "gpt-5.5");

    host.request("7", "generateTitle", &json!({ "userMessage": "fix it", "provider": "codex" }));
    let titled = host.until("7", "titleGenerated").pop().unwrap();
    assert!(!titled["title"].as_str().unwrap().is_empty(), "{titled}");

    host.request("8", "shutdown", &json!({}));
    host.until("8", "pong");
    host.is_over_within(Duration::from_secs(5));
    assert_eq!(bench.processes(), []);
}

fn codex_over_the_wire_leaves_no_command_behind_however_it_ends() {
    for end in ["shutdown", "end of input", "kill -9"] {
        let Some(bench) = Bench::real() else { return };
        let started = bench.work().join("started");
        let survived = bench.work().join("survived");
        let command =
            format!("{{{{run touch {}; sleep 25; touch {}}}}}", started.display(), survived.display());
        let mut host = Sidecar::start(&bench);
        host.send("1", &bench, "bypassPermissions", &command);
        while !started.exists() {
            std::thread::yield_now();
        }
        match end {
            "shutdown" => host.request("2", "shutdown", &json!({})),
            "end of input" => drop(host.input.take()),
            _ => host.child.kill().unwrap(),
        }
        host.is_over_within(Duration::from_secs(2));
        // After a kill -9 it is the kernel that ends the rest, a moment later.
        let since = Instant::now();
        while end == "kill -9" && !bench.processes().is_empty() && since.elapsed() < Duration::from_secs(2) {
            std::thread::yield_now();
        }
        // The sidecar itself has the folder in its command line, but it is gone too.
        assert_eq!(bench.processes(), [], "{end}");
        assert!(!survived.exists());
    }
}
