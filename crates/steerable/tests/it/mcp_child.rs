//! A small MCP server that is a child of the tests: it counts, grows, crashes and chatters when it is asked to.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

/// Serves standard input until it ends.
pub(crate) fn child(args: &[String]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words == ["broken"] {
        let _ = writeln!(std::io::stderr(), "cannot find my config");
        return ExitCode::from(4);
    }
    let _held = match words.as_slice() {
        ["lock", path] => {
            let file = std::fs::File::create(path).unwrap();
            file.lock().unwrap();
            Some(file)
        }
        _ => None,
    };
    let mut server = Server { chatty: words == ["chatty"], grown: false, count: 0, waiting: None };
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        if server.chatty {
            say("starting up… this is a log on the wrong stream");
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        match message["method"].as_str() {
            Some(method) if message.get("id").is_some() => server.request(method, &message),
            Some(_) => {}
            None => server.answered(&line),
        }
    }
    ExitCode::SUCCESS
}

struct Server {
    chatty: bool,
    grown: bool,
    count: u64,
    /// The call that waits for our answer to a ping.
    waiting: Option<Value>,
}

impl Server {
    fn request(&mut self, method: &str, message: &Value) {
        let id = &message["id"];
        match method {
            "initialize" => reply(
                id,
                &json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "test", "version": "1"},
                }),
            ),
            "tools/list" => reply(id, &self.page(message["params"]["cursor"].as_str())),
            "tools/call" => self.call(id, &message["params"]),
            _ => fail(id, "no such method"),
        }
    }

    /// Two pages, so that both are asked for.
    fn page(&self, cursor: Option<&str>) -> Value {
        let plain = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        if cursor.is_none() {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let echo = json!({"name": "echo", "description": "says it again", "inputSchema": schema, "annotations": {"readOnlyHint": true}});
            return json!({"tools": [echo, plain("count"), plain("grow")], "nextCursor": "second"});
        }
        assert_eq!(cursor, Some("second"));
        let mut delete = plain("delete_it");
        delete["annotations"] = json!({"destructiveHint": true});
        let mut tools = vec![plain("get_crash"), plain("crash"), delete, plain("ping_us")];
        if self.grown {
            tools.push(plain("grown"));
        }
        json!({"tools": tools})
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        match params["name"].as_str().unwrap() {
            "echo" => {
                let word = std::env::var("MCP_TEST_WORD").unwrap();
                reply(id, &text(&format!("{} {word}", arguments["text"].as_str().unwrap())));
            }
            "count" => {
                self.count += 1;
                reply(id, &json!({"content": [], "structuredContent": {"n": self.count}}));
            }
            "grow" if arguments["refuse"] == true => fail(id, "no such thing"),
            "grow" => {
                self.grown = true;
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string());
                reply(id, &text("grown"));
            }
            "get_crash" if std::path::Path::new(arguments["mark"].as_str().unwrap()).exists() => {
                reply(id, &text("survived"));
            }
            "get_crash" => {
                std::fs::write(arguments["mark"].as_str().unwrap(), "").unwrap();
                std::process::exit(6);
            }
            "crash" => {
                let _ = writeln!(std::io::stderr(), "goodbye");
                std::process::exit(5);
            }
            "delete_it" => reply(
                id,
                &json!({"content": [{"type": "text", "text": "it cannot be deleted"}], "isError": true}),
            ),
            "ping_us" => {
                self.waiting = Some(id.clone());
                say(&json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}).to_string());
            }
            other => fail(id, other),
        }
    }

    fn answered(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = self.waiting.take() {
            reply(&id, &json!({"content": [{"type": "text", "text": message.to_string()}]}));
        }
    }
}

fn reply(id: &Value, result: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

fn fail(id: &Value, message: &str) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": message}}).to_string());
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}
