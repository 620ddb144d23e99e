//! `outrigger chat` and `outrigger trace`, as a user meets them: a scripted model, real tools, a real terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::model::Model;
use crate::process::{Finished, PATIENCE, Running, Tag, outrigger, wait_until};
use crate::terminal::Terminal;

/// A project, a home for conversations, and a script for the model.
struct Place {
    _folder: tempfile::TempDir,
    project: PathBuf,
    data: PathBuf,
}

impl Place {
    fn new(script: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        let data = project.with_file_name("data");
        let place = Self { project, data, _folder: folder };
        place.write("a.txt", "before\n");
        place.script(script);
        place
    }

    fn script(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.data.with_file_name("script.jsonl"), text).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.project.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.join(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = outrigger(args.iter().copied());
        command.current_dir(&self.project).env("XDG_DATA_HOME", &self.data);
        for name in
            ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "OUTRIGGER_MODEL"]
        {
            command.env_remove(name);
        }
        command
    }

    fn finish(&self, args: &[&str]) -> Finished {
        Running::start(&mut self.command(args)).finish()
    }

    /// `outrigger chat` with the scripted model.
    fn chatting(&self, args: &[&str]) -> Command {
        let mut all = vec!["chat", "--script", "../script.jsonl"];
        all.extend_from_slice(args);
        self.command(&all)
    }

    fn chat(&self, args: &[&str]) -> Finished {
        Running::start(&mut self.chatting(args)).finish()
    }
}

fn says(text: &str) -> Value {
    json!({ "chunks": [{ "delta": text }, { "finishReason": "stop" }, { "usage": { "promptTokens": 7, "completionTokens": 3, "totalTokens": 10 } }] })
}

fn calls(name: &str, arguments: Value) -> Value {
    json!({ "chunks": [{ "toolCall": { "id": format!("call_{name}"), "name": name, "arguments": arguments } }, { "finishReason": "tool_calls" }] })
}

fn sleeps(text: &str) -> Value {
    json!({ "chunks": [{ "delta": text }, { "sleepMs": 600_000 }] })
}

#[test]
fn an_answer_is_on_standard_output_and_everything_else_is_not() {
    let place = Place::new(&[says("Hello there.")]);
    let finished = place.chat(&["hi"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "Hello there.\n"), "{}", finished.stderr);
    assert!(finished.stderr.contains("7 tokens in, 3 out"), "{}", finished.stderr);
    assert!(finished.stderr.contains("trace_"), "{}", finished.stderr);
}

#[test]
fn programs_get_one_object_a_line() {
    let place = Place::new(&[calls("todo_write", json!({ "items": [] })), says("done")]);
    let finished = place.chat(&["--json", "hi"]);
    let events = finished.events();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(events[0]["provider"], "scripted");
    let ended = finished.event("ended");
    assert_eq!(
        (&ended["status"], &ended["text"], &ended["exit_code"]),
        (&json!("completed"), &json!("done"), &json!(0))
    );
    assert!(events.iter().any(|event| event["tool_call"]["name"] == "todo_write"), "{}", finished.stdout);
    assert!(ended["trace"].as_str().unwrap().starts_with("trace_"));
}

#[test]
fn a_conversation_goes_on_where_it_ended() {
    let place = Place::new(&[says("first"), says("second")]);
    assert_eq!(place.chat(&["one"]).stdout, "first\n");
    // The script plays the line that has the number of the answers so far.
    assert_eq!(place.chat(&["--continue", "two"]).stdout, "second\n");
    let listed = place.finish(&["chat", "--sessions", "--json"]).events();
    assert_eq!(listed.len(), 1);
    let id = listed[0]["session"].as_str().unwrap().to_owned();
    assert_eq!(listed[0]["title"], "one");
    assert_eq!(place.chat(&["--session", &id, "three"]).stdout, "second\n");
    assert!(place.finish(&["chat", "--sessions"]).stdout.contains(&id));
    let unknown = place.chat(&["--session", "nobody", "x"]);
    assert_eq!(unknown.code(), 125);
    assert!(unknown.stderr.contains("there is no conversation `nobody`"), "{}", unknown.stderr);
}

#[test]
fn what_is_wrong_is_said_before_anything_happens() {
    let place = Place::new(&[]);
    let cases: &[(&[&str], &str)] = &[
        (&["chat", "hi"], "who runs the model?"),
        (&["chat", "--provider", "antropic", "hi"], "did you mean `anthropic`?"),
        (&["chat", "--provider", "openai", "hi"], "which model?"),
        (&["chat", "--provider", "scripted", "hi"], "needs --script FILE"),
        (&["chat", "--script", "missing.jsonl", "hi"], "missing.jsonl"),
        (&["chat", "--script", "../script.jsonl", "--read", "nowhere", "hi"], "nowhere"),
        (&["chat", "--script", "../script.jsonl", "--schema", "a.txt", "hi"], "a.txt is not JSON"),
        (&["chat", "--script", "../script.jsonl", "--continue", "hi"], "there is no conversation yet"),
        (
            &["chat", "--provider", "openai", "--model", "x", "--api-key-env", "NO_SUCH_KEY", "hi"],
            "NO_SUCH_KEY",
        ),
        (&["chat", "--script", "../script.jsonl", "--mcp", "'x", "hi"], "never closed"),
        (&["trace", "trace_nobody"], "there is no trace"),
        (&["trace", "--store", "missing.db"], "missing.db"),
    ];
    for (args, wanted) in cases {
        let finished = place.finish(args);
        assert_ne!(finished.code(), 0, "{args:?}");
        assert!(finished.stderr.contains(wanted), "{args:?}: {}", finished.stderr);
    }
    place.write("outrigger.toml", "[chat]\nprovder = \"x\"\n");
    let finished = place.finish(&["chat", "hi"]);
    assert!(finished.stderr.contains("did you mean `provider`?"), "{}", finished.stderr);
}

#[test]
fn a_script_that_is_wrong_names_its_line() {
    let place = Place::new(&[says("fine")]);
    std::fs::write(place.data.with_file_name("script.jsonl"), "{\"chunks\":[]}\n{\"chunk\":1}\n").unwrap();
    let finished = place.chat(&["hi"]);
    assert_eq!(finished.code(), 125);
    assert!(finished.stderr.contains("line 2"), "{}", finished.stderr);
}

#[test]
fn files_are_read_edited_and_searched_within_what_was_granted_and_nowhere_else() {
    let place = Place::new(&[
        calls("edit_file", json!({ "path": "a.txt", "old": "before", "new": "after" })),
        calls("read_file", json!({ "path": "../script.jsonl" })),
        says("done"),
    ]);
    let finished = place.chat(&["--write", ".", "--approve", "all", "--json", "go"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert_eq!(place.read("a.txt"), "after\n");
    let results: Vec<Value> = finished
        .events()
        .into_iter()
        .map(|event| event["tool_result"].clone())
        .filter(|result| !result.is_null())
        .collect();
    assert_eq!(results[0]["success"], true, "{results:?}");
    assert_eq!(results[1]["success"], false, "{results:?}");
}

#[test]
fn without_a_terminal_nothing_is_approved_unless_it_was_said_before() {
    let write = calls("write_file", json!({ "path": "new.txt", "content": "x" }));
    let command = calls("run_command", json!({ "command": "touch", "args": ["made"] }));
    let place = Place::new(&[write, command, says("done")]);
    let finished = place.chat(&["--write", ".", "--commands", "ask", "--json", "go"]);
    assert_eq!(finished.code(), 0);
    assert!(!place.project.join("made").exists());
    let finished = place.chat(&["--write", ".", "--commands", "allow", "--approve", "all", "go"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert!(place.project.join("made").exists(), "{}", finished.stderr);
    assert_eq!(place.read("new.txt"), "x");
}

#[test]
fn a_script_in_the_sandbox_calls_the_other_tools() {
    let code = "const file = read_file({ path: 'a.txt' }); ({ length: file.text.length, text: file.text });";
    let place = Place::new(&[calls("run_script", json!({ "code": code })), says("done")]);
    let finished = place.chat(&["--read", ".", "--approve", "all", "--json", "go"]);
    let results: Vec<Value> =
        finished.events().into_iter().filter(|event| !event["tool_result"].is_null()).collect();
    assert_eq!(results[0]["tool_result"]["success"], true, "{}", finished.stdout);
    assert!(results[0]["tool_result"]["preview"].as_str().unwrap().contains("before"), "{}", finished.stdout);
}

#[test]
fn the_tools_of_a_real_mcp_server_are_called() {
    let index = mcp_server();
    let place = Place::new(&[
        calls("mcp__everything__echo", json!({ "message": "over there" })),
        calls("mcp__everything__get-sum", json!({ "a": 19, "b": 23 })),
        says("done"),
    ]);
    let server = format!("everything=node '{}' stdio", index.display());
    let finished = place.chat(&["--mcp", &server, "--approve", "all", "--json", "go"]);
    let previews: Vec<String> = finished
        .events()
        .iter()
        .filter_map(|event| event["tool_result"]["preview"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(finished.code(), 0, "{}\n{}", finished.stdout, finished.stderr);
    assert!(previews[0].contains("over there") && previews[1].contains("42"), "{}", finished.stdout);
}

#[test]
fn a_real_mcp_server_is_reached_over_http_too_and_one_that_is_not_there_is_told() {
    let index = mcp_server();
    // Somebody else may take the port in between; then the server says so and the test fails.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("node")
        .arg(index)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap();
    let place = Place::new(&[calls("mcp__far__echo", json!({ "message": "over there" })), says("done")]);
    let far = format!("far=http://127.0.0.1:{port}/mcp");
    let finished = place.chat(&["--mcp", &far, "--mcp", "gone=no-such-program", "--approve", "all", "go"]);
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "done\n"), "{}", finished.stderr);
    assert!(!finished.stderr.contains('✗'), "{}", finished.stderr);
    assert!(finished.stderr.contains("the MCP server gone cannot be reached"), "{}", finished.stderr);
}

/// The program of the server.
fn mcp_server() -> PathBuf {
    let modules = std::env::var_os("OUTRIGGER_NPM_MODELCONTEXTPROTOCOL_SERVER_EVERYTHING").expect(
        "OUTRIGGER_NPM_MODELCONTEXTPROTOCOL_SERVER_EVERYTHING must name the folder that holds the server: run the tests with `cargo xtask test`",
    );
    Path::new(&modules).join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

#[test]
fn a_budget_ends_a_turn_with_a_code_of_its_own() {
    let place = Place::new(&[says("never")]);
    let finished = place.chat(&["--budget-tokens", "1", "hi"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (3, ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("budget"), "{}", finished.stderr);
}

#[test]
fn a_structured_answer_fits_its_schema() {
    let place = Place::new(&[says("{\"n\":\"one\"}"), says("{\"n\":1}")]);
    place.write("schema.json", r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
    let finished = place.chat(&["--schema", "schema.json", "--json", "count"]);
    assert_eq!(finished.event("ended")["output"], json!({ "n": 1 }), "{}", finished.stdout);
}

#[test]
fn an_interrupt_cancels_the_turn_and_leaves_nothing_running() {
    let place = Place::new(&[sleeps("thinking")]);
    let tag = Tag::new();
    let (name, value) = tag.as_arg().split_once('=').unwrap();
    let running = Running::start(place.chatting(&["--json", "hi"]).env(name, value));
    running.wait_for_output("thinking");
    running.signal("INT");
    let finished = running.finish();
    assert_eq!(finished.code(), 130);
    assert_eq!(finished.event("ended")["status"], "cancelled");
    tag.must_be_gone(PATIENCE, "a cancelled chat");
}

#[test]
fn nothing_outlives_a_chat_that_is_killed_and_its_transcript_is_there() {
    let place = Place::new(&[
        calls("edit_file", json!({ "path": "a.txt", "old": "before", "new": "after" })),
        sleeps("thinking"),
    ]);
    let tag = Tag::new();
    let (name, value) = tag.as_arg().split_once('=').unwrap();
    let running = Running::start(
        place.chatting(&["--write", ".", "--approve", "all", "--json", "hi"]).env(name, value),
    );
    running.wait_for_output("thinking");
    running.signal("KILL");
    let _ = running.child.wait_with_output();
    tag.must_be_gone(PATIENCE, "a killed chat");
    place.script(&[says("never"), says("taken up again")]);
    assert_eq!(place.chat(&["--continue", "go on"]).stdout, "taken up again\n");
    let traces = place.finish(&["trace", "--json"]).events();
    let statuses: Vec<&str> = traces.iter().map(|trace| trace["status"].as_str().unwrap()).collect();
    // The sidecar may have seen that its host is gone before it was killed too.
    assert_eq!(statuses[0], "completed");
    assert!(matches!(statuses[1..], ["error" | "cancelled"]), "{statuses:?}");
}

#[test]
fn a_second_chat_in_the_same_conversation_is_told_who_has_it() {
    let place = Place::new(&[sleeps("thinking")]);
    let first = Running::start(&mut place.chatting(&["--json", "hi"]));
    first.wait_for_output("thinking");
    let second = place.chat(&["--continue", "me too"]);
    assert_eq!(second.code(), 125);
    assert!(second.stderr.contains("process"), "{}", second.stderr);
    first.signal("TERM");
    assert_eq!(first.finish().code(), 130);
}

#[test]
fn a_turn_is_drawn_as_a_waterfall() {
    let place = Place::new(&[calls("todo_write", json!({ "items": [] })), says("done")]);
    let ended = place.chat(&["--json", "--approve", "all", "hi"]).event("ended");
    let id = ended["trace"].as_str().unwrap();
    let drawn = place.finish(&["trace", &id[..14]]);
    assert_eq!(drawn.code(), 0, "{}", drawn.stderr);
    for wanted in [id, "completed", "agent.run", "  llm.request", "  tool.todo_write", "▏", "█"] {
        assert!(drawn.stdout.contains(wanted), "{wanted} in\n{}", drawn.stdout);
    }
    let events = place.finish(&["trace", id, "--events"]);
    assert!(events.stdout.contains("tool_call"), "{}", events.stdout);
    let whole = &place.finish(&["trace", id, "--json"]).events()[0];
    assert_eq!(whole["trace"]["traceId"], id);
    let listed = place.finish(&["trace"]);
    assert!(listed.stdout.contains(id), "{}", listed.stdout);
}

#[test]
fn a_trace_is_sent_to_a_collector_and_a_collector_that_refuses_is_an_error() {
    let place = Place::new(&[says("done")]);
    let ended = place.chat(&["--json", "hi"]).event("ended");
    let id = ended["trace"].as_str().unwrap();
    for (status, code) in [("200 OK", 0), ("503 Busy", 125)] {
        let (port, collected) = collector(status);
        let finished = place.finish(&["trace", id, "--export", &format!("http://127.0.0.1:{port}")]);
        assert_eq!(finished.code(), code, "{}", finished.stderr);
        let (path, body) = collected.join().unwrap();
        assert_eq!(path, "/v1/traces");
        let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert!(spans.as_array().is_some_and(|spans| spans.len() >= 2), "{body}");
        assert!(body.to_string().contains("gen_ai.request.model"), "{body}");
    }
}

/// A collector that takes one request.
fn collector(status: &'static str) -> (u16, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length:"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
        let path = lines[0].split(' ').nth(1).unwrap().to_owned();
        (path, serde_json::from_slice(&body).unwrap())
    });
    (port, thread)
}

#[test]
fn somebody_at_a_terminal_talks_steers_decides_and_leaves() {
    let slow = json!({ "chunks": [{ "delta": "let me see" }, { "sleepMs": 1500 }, { "toolCall": { "id": "c1", "name": "todo_write", "arguments": { "items": [] } } }] });
    let place = Place::new(&[
        says("Hello, person."),
        json!({ "when": "write it", "chunks": [{ "toolCall": { "id": "c2", "name": "write_file", "arguments": { "path": "out.txt", "content": "x" } } }] }),
        json!({ "when": "turn left", "chunks": [{ "delta": "left it is" }] }),
        json!({ "when": "look around", "chunks": slow["chunks"] }),
        json!({ "when": "wait for me", "chunks": [{ "delta": "waiting" }, { "sleepMs": 600_000 }] }),
        says("that is done"),
    ]);
    let mut terminal = Terminal::start(&mut place.chatting(&["--write", "."]));
    terminal.wait_for("/help");
    terminal.type_in("hi\r");
    terminal.wait_for("Hello, person.");
    terminal.wait_for("trace_");
    terminal.type_in("write it\r");
    terminal.wait_for("[y]es");
    terminal.type_in("n");
    terminal.wait_for("that is done");
    terminal.wait_for("trace_");
    assert!(!place.project.join("out.txt").exists(), "it was denied");
    terminal.type_in("write it again\r");
    terminal.wait_for("[y]es");
    terminal.type_in("y");
    terminal.wait_for("that is done");
    terminal.wait_for("trace_");
    assert_eq!(place.read("out.txt"), "x");
    terminal.type_in("look around\r");
    terminal.wait_for("let me see");
    terminal.type_in("turn left\r");
    terminal.wait_for("left it is");
    terminal.wait_for("trace_");
    terminal.type_in("wait for me\r");
    terminal.wait_for("waiting");
    terminal.type_in("\x1b");
    terminal.wait_for("cancelled");
    terminal.type_in("/trace\r");
    terminal.wait_for("agent.run");
    terminal.type_in("\x04");
    assert_eq!(terminal.finish().code(), Some(0));
}

#[test]
fn the_messages_api_is_spoken_to_with_a_key_that_is_never_shown() {
    let model = Model::start();
    let url = format!("http://127.0.0.1:{}", model.port);
    let place = Place::new(&[]);
    let ask = |prompt: &str| {
        let args = ["chat", "--provider", "anthropic", "--model", "m", "--base-url", &url, "--json", prompt];
        let mut command = place.command(&args);
        Running::start(command.env("ANTHROPIC_API_KEY", "sk-ant-very-secret")).finish()
    };
    let said = ask("{{say over the wire}}");
    assert_eq!(said.event("ended")["text"], "over the wire", "{}", said.stdout);
    let refused = ask("{{status 401}}");
    assert_eq!(refused.code(), 1);
    for finished in [said, refused] {
        assert!(!finished.stdout.contains("very-secret") && !finished.stderr.contains("very-secret"));
    }
}

#[test]
fn our_own_sidecar_keeps_every_rule() {
    let place = Place::new(&[]);
    let program = env!("CARGO_BIN_EXE_steerable-sidecar");
    let finished = place.finish(&["check", "steerable", "--json", "--", program]);
    assert_eq!(finished.code(), 0, "{}", finished.stdout);
    let summary = finished.event("summary");
    assert_eq!(
        (&summary["conformant"], &summary["failed"]),
        (&json!(true), &json!(0)),
        "{}",
        finished.stdout
    );
    assert!(summary["passed"].as_u64().unwrap() >= 20, "{summary}");
}

#[test]
fn a_prompt_at_a_terminal_is_one_turn_in_which_somebody_decides() {
    let place = Place::new(&[
        calls("write_file", json!({ "path": "out.txt", "content": "x" })),
        says("that is done"),
    ]);
    let mut terminal = Terminal::start(&mut place.chatting(&["--write", ".", "write it"]));
    terminal.wait_for("[y]es");
    terminal.type_in("y");
    terminal.wait_for("that is done");
    assert_eq!(terminal.finish().code(), Some(0));
    assert_eq!(place.read("out.txt"), "x");
}
