//! A small MCP server over streamable HTTP: sessions that can expire, answers as JSON and as events, a stream of its own.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::tools_kit::{Reply, Seen, Web, page, status};

pub(crate) struct Remote {
    web: Web,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sessions: Vec<String>,
    begun: usize,
    ended: usize,
    more: Vec<String>,
    listeners: Vec<mpsc::Sender<String>>,
    /// Streams that are kept open for ever.
    hanging: Vec<mpsc::Sender<String>>,
}

impl Remote {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let web = Web::start(move |seen| answer(seen, &mut shared.lock().unwrap())).await;
        Self { web, state }
    }

    pub(crate) fn spec(&self) -> Value {
        let url = format!("http://127.0.0.1:{}/mcp", self.web.port);
        json!({"name": "far", "url": url, "headers": {"authorization": "Bearer key"}})
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.web.seen()
    }

    pub(crate) fn posts(&self) -> Vec<Seen> {
        self.all().into_iter().filter(|seen| seen.method == "POST").collect()
    }

    pub(crate) fn forget_sessions(&self) {
        self.state.lock().unwrap().sessions.clear();
    }

    /// Has another tool, and says so to everybody who listens. Waits for somebody who does.
    pub(crate) async fn say_changed(&self, tool: &str) {
        self.until(|remote| !remote.state.lock().unwrap().listeners.is_empty()).await;
        let listeners = {
            let mut state = self.state.lock().unwrap();
            state.more.push(tool.to_owned());
            state.listeners.clone()
        };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        for listener in listeners {
            let _ = listener.send(event(&note)).await;
        }
    }

    /// Waits until a request with this text came.
    pub(crate) async fn saw(&self, text: &str) {
        self.until(|remote| remote.all().iter().any(|seen| seen.body.contains(text))).await;
    }

    /// Waits until a session was ended.
    pub(crate) async fn ended(&self) {
        self.until(|remote| remote.state.lock().unwrap().ended > 0).await;
    }

    async fn until(&self, came: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !came(self) {
            assert!(Instant::now() < until, "it never came: {:?}", self.all());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn event(message: &Value) -> String {
    format!("event: message\r\ndata: {message}\r\n\r\n")
}

fn answer(seen: &Seen, state: &mut State) -> Reply {
    if seen.header("authorization") != Some("Bearer key") {
        return status("401 Unauthorized", "");
    }
    let session = seen.header("mcp-session-id").map(str::to_owned);
    let begins = seen.body.contains("\"initialize\"");
    if !begins && !session.as_ref().is_some_and(|session| state.sessions.contains(session)) {
        return status("404 Not Found", "");
    }
    match seen.method.as_str() {
        "DELETE" => {
            state.sessions.retain(|known| Some(known) != session.as_ref());
            state.ended += 1;
            status("200 OK", "")
        }
        "GET" => {
            let (sender, pieces) = mpsc::channel(4);
            state.listeners.push(sender);
            Reply::Stream(EVENTS.to_owned(), pieces)
        }
        _ => post(&serde_json::from_str(&seen.body).unwrap(), state),
    }
}

fn post(message: &Value, state: &mut State) -> Reply {
    let id = message["id"].clone();
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    match message["method"].as_str() {
        Some("initialize") => {
            state.begun += 1;
            let session = format!("session-{}", state.begun);
            state.sessions.push(session.clone());
            let body = result(
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}),
            )
            .to_string();
            Reply::Whole(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            ))
        }
        Some("tools/list") => {
            let names = ["json", "events", "hang", "change"].map(str::to_owned);
            let tools: Vec<Value> =
                names.iter().chain(&state.more).map(|name| json!({"name": name})).collect();
            page("application/json", &result(json!({"tools": tools})).to_string())
        }
        Some("tools/call") => {
            let arguments = message["params"]["arguments"].to_string();
            match message["params"]["name"].as_str().unwrap() {
                "json" => page("application/json", &result(text(format!("json {arguments}"))).to_string()),
                "change" => {
                    state.more.push("new_one".to_owned());
                    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                    let answer = result(text("changed".to_owned()));
                    Reply::Whole(format!("{EVENTS}{}{}", event(&note), event(&answer)))
                }
                "hang" => {
                    let (sender, pieces) = mpsc::channel(1);
                    state.hanging.push(sender);
                    Reply::Stream(EVENTS.to_owned(), pieces)
                }
                _ => {
                    let ping = json!({"jsonrpc": "2.0", "id": "ping-1", "method": "ping"});
                    let stray = json!({"jsonrpc": "2.0", "id": 9999, "result": {}});
                    let answer = result(text(format!("events {arguments}")));
                    Reply::Whole(format!(
                        "{EVENTS}: comment\n\n{}{}{}",
                        event(&ping),
                        event(&stray),
                        event(&answer)
                    ))
                }
            }
        }
        Some(_) | None => status("202 Accepted", ""),
    }
}
