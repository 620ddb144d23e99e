//! The installed `steerable-sidecar` under a host that writes its JSON-RPC by hand: an agent's whole day, offline.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};

use crate::process::{PATIENCE, Tag};

/// How a host answers what the sidecar asks of it.
type Answers = fn(&Value) -> Value;

/// A sidecar and the two pipes to it.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Heard while something else was waited for.
    kept: VecDeque<Value>,
    answers: Answers,
    next_id: u64,
}

impl Talk {
    fn start(args: &[&str], cwd: &Path, tag: &Tag) -> Self {
        let (name, value) = tag.as_arg().split_once('=').unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_steerable-sidecar"))
            .args(args)
            .current_dir(cwd)
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the sidecar starts");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = sync_channel(4096);
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                let value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let denies: Answers = |_| json!({ "kind": "deny_once" });
        let mut talk = Self { child, input, lines, kept: VecDeque::new(), answers: denies, next_id: 0 };
        talk.hear(|line| line["method"] == "lifecycle.ready");
        talk
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.hear(|line| line["id"] == id && line["method"].is_null());
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The next line that is wanted; what the sidecar asks meanwhile is answered.
    fn hear(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(_) => panic!("what was waited for never came; instead: {:#?}", self.kept),
            };
            if line["id"].as_str().is_some_and(|id| id.starts_with("srv_")) && line["method"].is_string() {
                let result = (self.answers)(&line);
                self.write(&json!({ "jsonrpc": "2.0", "id": line["id"], "result": result }));
            }
            if wanted(&line) {
                return line;
            }
            self.kept.push_back(line);
        }
    }

    /// Starts a turn.
    fn turn(&mut self, script: &Path, extra: Value) -> String {
        let mut params = json!({
            "provider": "scripted", "model": "m", "baseUrl": script, "useCoreLoop": true,
            "messages": [{ "role": "user", "content": "go" }],
        });
        for (name, value) in extra.as_object().unwrap() {
            params[name] = value.clone();
        }
        self.call("agent.chat.stream", params)["streamId"].as_str().unwrap().to_owned()
    }

    /// The chunks of a stream and its end.
    fn rest(&mut self, stream: &str) -> (Vec<Value>, Value) {
        let of = |line: &Value| line["params"]["streamId"] == stream;
        let mut chunks = Vec::new();
        loop {
            let line = self.hear(|line| of(line));
            match line["method"].as_str() {
                Some("stream.chunk") => chunks.push(line["params"].clone()),
                _ => return (chunks, line),
            }
        }
    }

    fn chunk(&mut self, stream: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.hear(|line| {
            line["params"]["streamId"] == stream
                && line["method"] == "stream.chunk"
                && wanted(&line["params"])
        })
    }

    fn leave(mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("project")).unwrap();
        std::fs::write(root.join("project/a.txt"), "before\n").unwrap();
        Self { root, _folder: folder }
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn script(&self, name: &str, lines: &[Value]) -> PathBuf {
        let path = self.root.join(name);
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    }
}

fn calls(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "chunks": [{ "toolCall": { "id": id, "name": name, "arguments": arguments } }, { "usage": { "promptTokens": 40, "completionTokens": 10, "totalTokens": 50 } }] })
}

fn says(text: &str) -> Value {
    json!({ "chunks": [{ "delta": text }, { "finishReason": "stop" }] })
}

fn results(chunks: &[Value]) -> Vec<(String, bool)> {
    let results = chunks.iter().map(|chunk| &chunk["toolResult"]).filter(|result| !result.is_null());
    results.map(|result| (result["id"].as_str().unwrap().to_owned(), result["success"] == true)).collect()
}

#[test]
fn an_agents_whole_day() {
    let place = Place::new();
    let project = place.project();
    let store = place.root.join("store.db");
    let tag = Tag::new();
    let modules = std::env::var_os("OUTRIGGER_NPM_MODELCONTEXTPROTOCOL_SERVER_EVERYTHING").expect(
        "OUTRIGGER_NPM_MODELCONTEXTPROTOCOL_SERVER_EVERYTHING must name the folder that holds the server: run the tests with `cargo xtask test`",
    );
    let server =
        Path::new(&modules).join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let args = [
        "--storage-path",
        store.to_str().unwrap(),
        "--write-root",
        project.to_str().unwrap(),
        "--commands",
        "ask",
    ];
    let mut talk = Talk::start(&args, &project, &tag);
    talk.call("agent.session.create", json!({ "chatId": "c", "sessionId": "s" }));

    // A tool of a real MCP server, an edit, a command that is denied and then allowed.
    let command = json!({ "command": "sh", "args": ["-c", "cat a.txt; exit 3"] });
    let script = place.script(
        "day.jsonl",
        &[
            calls("1", "mcp__everything__echo", json!({ "message": "over there" })),
            calls("2", "edit_file", json!({ "path": "a.txt", "old": "before", "new": "after" })),
            calls("3", "run_command", command.clone()),
            calls("4", "run_command", command),
            says("all done"),
        ],
    );
    talk.answers = |asked| {
        static ASKED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        assert_eq!(asked["method"], "approval.request", "{asked}");
        let first_command = asked["params"]["toolName"] == "run_command"
            && ASKED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        json!({ "kind": if first_command { "deny_once" } else { "allow_once" } })
    };
    let mcp = json!([{ "name": "everything", "command": "node", "args": [server, "stdio"] }]);
    let stream = talk.turn(&script, json!({ "recordId": "s", "mcp": mcp, "approval": { "mode": "host" } }));
    let (chunks, end) = talk.rest(&stream);
    let expected = [("1", true), ("2", true), ("3", false), ("4", false)].map(|(id, ok)| (id.to_owned(), ok));
    assert_eq!(results(&chunks), expected, "{chunks:#?}");
    let preview = |id: &str| {
        let result =
            chunks.iter().map(|chunk| &chunk["toolResult"]).find(|result| result["id"] == id).unwrap();
        result.to_string()
    };
    assert!(preview("1").contains("over there"), "{}", preview("1"));
    assert!(preview("3").contains("approval_denied"), "{}", preview("3"));
    assert!(preview("4").contains("after"), "{}", preview("4"));
    assert_eq!(
        (&end["method"], &end["params"]["status"]),
        (&json!("stream.done"), &json!("completed")),
        "{end}"
    );
    assert_eq!(end["params"]["usage"]["totalTokens"], 200);
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "after\n");

    // The trace tells it all.
    let trace = talk.call("trace.fetch", json!({ "traceId": end["params"]["traceId"] }));
    let names: Vec<&str> =
        trace["spans"].as_array().unwrap().iter().map(|span| span["name"].as_str().unwrap()).collect();
    for wanted in [
        "agent.run",
        "llm.request",
        "tool.mcp__everything__echo",
        "tool.edit_file",
        "tool.run_command",
        "approval.wait",
    ] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }

    // A budget is judged before the spend.
    let script =
        place.script("budget.jsonl", &[calls("1", "todo_write", json!({ "items": [] })), says("never said")]);
    let stream = talk.turn(&script, json!({ "budgetTokens": 60, "approval": { "mode": "auto" } }));
    let (chunks, end) = talk.rest(&stream);
    assert_eq!(end["params"]["status"], "budget_exhausted", "{end}");
    assert!(!chunks.iter().any(|chunk| chunk["delta"] == "never said"));

    // Steered as an interrupt while the model talks, and cancelled.
    let script = place.script(
        "steer.jsonl",
        &[
            json!({ "when": "turn left", "chunks": [{ "delta": "left it is" }] }),
            json!({ "chunks": [{ "delta": "thinking" }, { "sleepMs": 600_000 }] }),
        ],
    );
    let stream = talk.turn(&script, json!({}));
    talk.chunk(&stream, |chunk| chunk["delta"] == "thinking");
    let steer = json!({ "streamId": stream, "content": "turn left", "mode": "interrupt" });
    assert_eq!(talk.call("agent.chat.steer", steer), json!({ "ok": true }));
    let (chunks, end) = talk.rest(&stream);
    assert!(chunks.iter().any(|chunk| chunk["delta"] == "left it is"), "{chunks:#?}");
    assert_eq!(end["params"]["status"], "completed");
    let stream = talk.turn(&script, json!({}));
    talk.chunk(&stream, |chunk| chunk["delta"] == "thinking");
    talk.call("agent.chat.cancel", json!({ "streamId": stream }));
    let (_, end) = talk.rest(&stream);
    assert_eq!(
        (&end["params"]["cancelled"], &end["params"]["status"]),
        (&json!(true), &json!("cancelled")),
        "{end}"
    );

    // Killed in the middle of a turn; the next process has everything that was finished.
    let script = place.script(
        "killed.jsonl",
        &[
            calls("1", "edit_file", json!({ "path": "a.txt", "old": "after", "new": "later" })),
            json!({ "chunks": [{ "delta": "thinking" }, { "sleepMs": 600_000 }] }),
        ],
    );
    let stream = talk.turn(&script, json!({ "recordId": "killed", "approval": { "mode": "auto" } }));
    talk.chunk(&stream, |chunk| chunk["delta"] == "thinking");
    talk.child.kill().unwrap();
    talk.child.wait().unwrap();
    drop(talk);
    tag.must_be_gone(PATIENCE, "a killed sidecar");
    let mut talk = Talk::start(&args, &project, &tag);
    let session = talk.call("agent.session.resume", json!({ "sessionId": "s" }));
    assert_eq!(session["chatId"], "c");
    let messages = talk.call("agent.session.messages", json!({ "recordId": "killed" }));
    let roles: Vec<&str> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    let trace = talk.call("trace.fetch", json!({ "streamId": stream }));
    assert_eq!(trace["trace"]["status"], "error");
    let script = place.script("resumed.jsonl", &[says("wrong"), says("taken up again")]);
    let stream = talk.turn(&script, json!({ "recordId": "killed", "resume": true, "messages": [] }));
    let (chunks, end) = talk.rest(&stream);
    assert!(chunks.iter().any(|chunk| chunk["delta"] == "taken up again"), "{chunks:#?}");
    assert_eq!(end["params"]["status"], "completed");
    talk.leave();
    tag.must_be_gone(PATIENCE, "a sidecar whose host has left");
}

#[test]
fn flags_of_the_steerable_sidecar_are_explained_and_judged() {
    let run = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_steerable-sidecar"))
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let help = run(&["--help"]);
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for flag in ["--log-level", "--quiet-ready", "--storage-path", "--read-root", "--commands", "Examples:"] {
        assert!(text.contains(flag), "{flag} in\n{text}");
    }
    let cases: &[(&[&str], &str)] = &[
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--log-level", "LOUD"], "LOUD"),
        (&["--tools", "read_fil"], "read_file"),
        (&["--commands", "maybe"], "maybe"),
    ];
    for (args, wanted) in cases {
        let refused = run(args);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
        assert!(!said.contains("__SIDECAR_READY__"), "{said}");
    }
    // The level in small letters is the same, and logs never reach standard output.
    let quiet = run(&["--log-level", "debug", "--quiet-ready"]);
    assert_eq!(quiet.status.code(), Some(0));
    for line in String::from_utf8(quiet.stdout).unwrap().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}
