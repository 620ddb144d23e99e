//! A sidecar that keeps the contract with as little as possible, and breaks one rule of it for each word it is given.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::host_fake_stream::run_stream;

/// The longest line that it takes.
const LINE: usize = 16 << 20;

pub(crate) fn child(words: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let fake = Arc::new(Fake {
        quirks: words.iter().cloned().collect(),
        streams: Mutex::new(HashMap::new()),
        ended: Notify::new(),
        sessions: Mutex::new(BTreeMap::new()),
        level: Mutex::new("INFO".to_owned()),
        reverse: Mutex::new(HashMap::new()),
        next_reverse: AtomicU64::new(1),
        clock: AtomicU64::new(0),
        started: Instant::now(),
    });
    let code = runtime.block_on(fake.live());
    // The thread that reads standard input would be waited for otherwise.
    std::process::exit(code)
}

/// Writes a line to standard error, which is where a sidecar logs.
pub(crate) fn log(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub(crate) struct Fake {
    quirks: HashSet<String>,
    pub(crate) streams: Mutex<HashMap<String, CancellationToken>>,
    pub(crate) ended: Notify,
    sessions: Mutex<BTreeMap<String, Value>>,
    level: Mutex<String>,
    reverse: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    next_reverse: AtomicU64,
    clock: AtomicU64,
    started: Instant,
}

/// The error of a call: code, kind, message, data.
type Failure = (i64, &'static str, String, Option<Value>);

impl Fake {
    pub(crate) fn has(&self, quirk: &str) -> bool {
        self.quirks.contains(quirk)
    }

    async fn live(self: &Arc<Self>) -> i32 {
        let known = ["--quiet-ready", "--log-level", "--storage-path"];
        let strange = |word: &&String| word.starts_with("--") && !known.contains(&word.as_str());
        if let Some(flag) = self.quirks.iter().find(strange)
            && !self.has("any-flag")
        {
            log(format_args!("unknown flag {flag}"));
            return 2;
        }
        log(format_args!("booting"));
        if self.has("dies-before-ready") {
            log(format_args!("out of cheese"));
            return 3;
        }
        if self.has("never-ready") {
            std::future::pending::<()>().await;
        }
        if !self.has("--quiet-ready") && !self.has("no-marker") {
            let marker = if self.has("bad-marker") { "soon".to_owned() } else { self.health().to_string() };
            log(format_args!("__SIDECAR_READY__:{marker}"));
        }
        if self.has("banner") {
            self.line("Welcome!");
        }
        if !self.has("no-ready") {
            let version = if self.has("version-9") { "9.0.0" } else { "0.1.0" };
            self.notify("lifecycle.ready", &json!({"version":"1.2.3","protocolVersion":version,"pid":std::process::id(),"listenInfo":{"transport":"stdio"}}));
        }
        let mut term = signal(SignalKind::terminate()).expect("a signal");
        let reason = tokio::select! {
            reason = self.read() => reason,
            reason = async {
                loop {
                    term.recv().await;
                    if !self.has("ignores-term") {
                        break Leave::Now;
                    }
                }
            } => reason,
        };
        match reason {
            Leave::Eof if self.has("stays") => std::future::pending().await,
            Leave::Eof if self.has("eof-1") => return 1,
            Leave::Eof if !self.has("eof-silent") => self.drain().await,
            Leave::Now if !self.has("now-loses") => self.drain().await,
            Leave::Eof | Leave::Now | Leave::Drained => {}
        }
        if !self.has("no-farewell") {
            let reason = if matches!(reason, Leave::Eof) { "eof" } else { "normal" };
            self.notify("lifecycle.shutdown", &json!({"reason": reason}));
        }
        if self.has("exits-1") { 1 } else { 0 }
    }

    async fn read(self: &Arc<Self>) -> Leave {
        let mut input = tokio::io::BufReader::with_capacity(1 << 16, tokio::io::stdin());
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LINE as u64 + 2).read_until(b'\n', &mut line).await.unwrap_or(0);
            if read == 0 {
                return Leave::Eof;
            }
            let ended = line.last() == Some(&b'\n');
            if ended {
                line.pop();
            }
            if line.len() > LINE {
                if self.has("dies-of-long-lines") {
                    std::process::exit(1);
                }
                if !ended {
                    let mut rest = Vec::new();
                    // What is too long is read and forgotten, bounded by what a test sends.
                    let _ = input.read_until(b'\n', &mut rest).await;
                }
                self.refuse(-32600, "invalid_request", "the line is too long");
                continue;
            }
            if let Some(leave) = self.take(&line).await {
                return leave;
            }
        }
    }

    /// Takes a line; says whether it was the last.
    async fn take(self: &Arc<Self>, line: &[u8]) -> Option<Leave> {
        let Ok(text) = std::str::from_utf8(line) else {
            if self.has("dies-of-bytes") {
                std::process::exit(1);
            }
            self.refuse(-32700, "parse", "not UTF-8");
            return None;
        };
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let message: Value = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) if error.to_string().contains("recursion") => {
                if self.has("dies-of-depth") {
                    std::process::exit(134);
                }
                self.refuse(-32600, "invalid_request", "nested too deep");
                return None;
            }
            Err(_) => {
                if !self.has("ignores-bad-json") {
                    self.refuse(-32700, "parse", "not JSON");
                }
                return None;
            }
        };
        match message {
            Value::Array(batch) if !batch.is_empty() => {
                let mut answers = Vec::new();
                for message in batch {
                    if let Some((answer, _)) = self.serve(message).await {
                        answers.push(answer);
                    }
                }
                if !answers.is_empty() && !self.has("no-batches") {
                    self.line(&format!("[{}]", answers.join(",")));
                }
                None
            }
            Value::Object(members) if is_answer(&members) => {
                let id = members["id"].as_str().unwrap_or_default();
                if let Some(waiting) = self.reverse.lock().unwrap().remove(id) {
                    let _ = waiting
                        .send(members.get("result").or(members.get("error")).cloned().unwrap_or_default());
                }
                None
            }
            Value::Object(_) => {
                let (answer, leave) = self.serve(message).await?;
                let starts = answer.contains("\"streamId\"");
                if !answer.is_empty() {
                    self.line(&answer);
                }
                if starts {
                    // Notifications begin after the answer.
                    self.start_streams();
                }
                leave
            }
            _ => {
                if !self.has("ignores-strange") {
                    self.refuse(-32600, "invalid_request", "not a request");
                }
                None
            }
        }
    }

    /// Serves one request: the answer as a line, and whether it was the last.
    async fn serve(self: &Arc<Self>, message: Value) -> Option<(String, Option<Leave>)> {
        let Value::Object(mut message) = message else {
            return Some((
                self.error(&Value::Null, &(-32600, "invalid_request", "not a request".into(), None)),
                None,
            ));
        };
        let version = message.get("jsonrpc").is_none_or(|version| version == "2.0");
        let id = message.remove("id");
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(id) = id else {
            return match self.has("serves-notifications") && method == "system.shutdown" {
                true => Some((String::new(), Some(Leave::Drained))),
                false => None,
            };
        };
        let id = if self.has("ids-as-text") { Value::from(id.to_string()) } else { id };
        if method.is_empty() || !version && !self.has("any-version") {
            return Some((
                self.error(&id, &(-32600, "invalid_request", "missing method".into(), None)),
                None,
            ));
        }
        if self.has("ignores-ping") && method == "system.ping" {
            return None;
        }
        let leave = match method.as_str() {
            "system.shutdown" if self.has("ignores-shutdown") => return None,
            "system.shutdown" => {
                if !self.has("no-drain") {
                    self.drain().await;
                }
                Some(Leave::Drained)
            }
            "system.shutdown_now" => Some(Leave::Now),
            _ => None,
        };
        let answer = match self.method(&method, message.get("params").unwrap_or(&Value::Null)).await {
            Ok(Value::Null) if self.has("null-dropping") => format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#),
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Err(failure) => self.error(&id, &failure),
        };
        Some((answer, leave))
    }

    async fn method(self: &Arc<Self>, method: &str, params: &Value) -> Result<Value, Failure> {
        let wrong = |what: &str| (-32602, "invalid_params", what.to_owned(), None);
        let text = |name: &str| params[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        match method {
            "system.ping" => Ok(self.health()),
            "system.shutdown" | "system.shutdown_now" => Ok(Value::Null),
            "agent.session.create" => {
                let chat = text("chatId").ok_or_else(|| match self.has("careless-params") {
                    true => (-32603, "internal", "'chatId'".to_owned(), None),
                    false => wrong("chatId must be a non-empty string"),
                })?;
                let id = text("sessionId").unwrap_or_else(|| format!("sess_{:032x}", self.tick()));
                let now = format!("2026-01-01T00:00:00.{:06}+00:00", self.tick());
                let session = json!({"sessionId":id,"chatId":chat,"userId":text("userId").unwrap_or("local".into()),
                    "currentStage":"plan","scenario":"agent-entry","isActive":true,"createdAt":now,"updatedAt":now});
                self.sessions.lock().unwrap().insert(id, session.clone());
                Ok(session)
            }
            "agent.session.resume" => {
                let id = text("sessionId").ok_or_else(|| wrong("sessionId must be a non-empty string"))?;
                let found = self.sessions.lock().unwrap().get(&id).cloned();
                found.ok_or_else(|| (-32004, "invalid_request", format!("session not found: {id}"), None))
            }
            "agent.session.list" => {
                let all = self.sessions.lock().unwrap();
                let mut all: Vec<Value> = all.values().cloned().collect();
                let is_asked_for =
                    |session: &Value, name: &str| params[name].is_null() || session[name] == params[name];
                all.retain(|session| is_asked_for(session, "chatId") && is_asked_for(session, "userId"));
                all.sort_by_key(|session| std::cmp::Reverse(session["updatedAt"].to_string()));
                if self.has("list-oldest-first") {
                    all.reverse();
                }
                Ok(Value::from(all))
            }
            "tool.list" if self.has("flat-tools") => {
                Ok(json!([{"name":"get_time","description":"","parameters":{}}]))
            }
            "tool.list" => {
                Ok(json!([{"type":"function","function":{"name":"get_time","description":"The time.",
                "parameters":{"type":"object","properties":{}}}}]))
            }
            "tool.invoke" => {
                let name = text("name").ok_or_else(|| wrong("name must be a non-empty string"))?;
                match name.as_str() {
                    "get_time" => Ok(json!({"success":true,"data":{"value":"noon","durationMs":0}})),
                    "drop_all" if params["consentGranted"] != true => {
                        let data = json!({"tool":name,"mode":"destructive","reason":"no consent"});
                        Err((-32002, "policy_denied", "consent is missing".into(), Some(data)))
                    }
                    _ if self.has("unknown-tool-is-error") => {
                        Err((-32003, "tool_failed", "no such tool".into(), None))
                    }
                    _ => Ok(
                        json!({"success":false,"error":format!("Unknown tool: {name}"),"terminal":false,"needsFollowup":false}),
                    ),
                }
            }
            "config.get" => Ok(
                json!({"logLevel":*self.level.lock().unwrap(),"gracePeriodSeconds":5.0,"version":"1.2.3","protocolVersion":"0.1.0"}),
            ),
            "config.set" => {
                let levels = ["DEBUG", "INFO", "WARNING", "ERROR"];
                for (key, value) in params.as_object().into_iter().flatten() {
                    let fits = match key.as_str() {
                        "logLevel" => value.as_str().is_some_and(|level| levels.contains(&level)),
                        "gracePeriodSeconds" => value.as_f64().is_some_and(|seconds| seconds >= 0.0),
                        _ => false,
                    };
                    if !fits && !self.has("any-config") {
                        return Err(wrong(&format!("{key} is wrong")));
                    }
                }
                if let Some(level) = params["logLevel"].as_str() {
                    *self.level.lock().unwrap() = level.to_owned();
                }
                Ok(Value::Null)
            }
            "agent.chat.cancel" => {
                let id = text("streamId").ok_or_else(|| wrong("streamId must be a non-empty string"))?;
                if let Some(cancel) = self.streams.lock().unwrap().get(&id)
                    && !self.has("ignores-cancel")
                {
                    cancel.cancel();
                }
                Ok(Value::Null)
            }
            "agent.chat.steer" => match self
                .streams
                .lock()
                .unwrap()
                .contains_key(params["streamId"].as_str().unwrap_or_default())
            {
                true => Ok(json!({"ok":true})),
                false => Ok(json!({"ok":false,"reason":"stream_not_active"})),
            },
            "agent.chat.stream" => self.accept_stream(params),
            "trace.fetch" if params["traceId"].is_null() => Err(wrong("traceId must be a string")),
            "trace.fetch" => Err((-32004, "invalid_request", "trace not found".into(), None)),
            "fake.echo" => Ok(params.clone()),
            _ => {
                let data = (!self.has("no-method-data")).then(|| json!({"method":method}));
                Err((-32601, "method_not_found", format!("unknown method '{method}'"), data))
            }
        }
    }

    fn accept_stream(self: &Arc<Self>, params: &Value) -> Result<Value, Failure> {
        let wrong = |what: &str| (-32602, "invalid_params", what.to_owned(), None);
        let known = ["openai", "script"];
        let fits = [
            (
                params["provider"].as_str().is_some_and(|provider| known.contains(&provider)),
                "unknown provider",
            ),
            (params["model"].as_str().is_some_and(|model| !model.is_empty()), "model is required"),
            (
                params["messages"].as_array().is_none_or(|all| all.iter().all(|one| one["role"] == "user")),
                "bad messages",
            ),
            (params["messages"].is_array(), "messages must be an array"),
        ];
        if let Some((_, what)) = fits.into_iter().find(|(fits, _)| !fits)
            && !self.has("careless-streams")
        {
            return Err(wrong(what));
        }
        let id =
            params["streamId"].as_str().map_or_else(|| format!("str_{:032x}", self.tick()), str::to_owned);
        let mut streams = self.streams.lock().unwrap();
        if streams.contains_key(&id) && !self.has("shares-streams") {
            return Err(wrong("streamId is taken"));
        }
        let cancel = CancellationToken::new();
        streams.insert(id.clone(), cancel.clone());
        drop(streams);
        let (fake, params, stream) = (Arc::clone(self), params.clone(), id.clone());
        let task = async move {
            run_stream(&fake, &stream, &params, &cancel).await;
            fake.streams.lock().unwrap().remove(&stream);
            fake.ended.notify_waiters();
        };
        WAITING.lock().unwrap().push(Box::pin(task));
        if self.has("eager") {
            // Before the answer, which is wrong.
            self.notify("stream.chunk", &json!({"streamId":id,"delta":"early"}));
        }
        Ok(json!({"streamId":id}))
    }

    fn start_streams(&self) {
        for task in WAITING.lock().unwrap().drain(..) {
            tokio::spawn(task);
        }
    }

    /// Ends all streams as cancelled.
    async fn drain(&self) {
        loop {
            let ended = self.ended.notified();
            let cancels: Vec<CancellationToken> = self.streams.lock().unwrap().values().cloned().collect();
            if cancels.is_empty() {
                return;
            }
            cancels.iter().for_each(CancellationToken::cancel);
            let _ = tokio::time::timeout(Duration::from_millis(200), ended).await;
        }
    }

    /// Asks the host and waits for its answer.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> Value {
        let id = format!("srv_{}", self.next_reverse.fetch_add(1, Ordering::Relaxed));
        let (answer, waiting) = oneshot::channel();
        self.reverse.lock().unwrap().insert(id.clone(), answer);
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#));
        waiting.await.unwrap_or_default()
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn line(&self, line: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    }

    fn refuse(&self, code: i64, kind: &'static str, message: &str) {
        self.line(&self.error(&Value::Null, &(code, kind, message.to_owned(), None)));
    }

    fn error(&self, id: &Value, (code, kind, message, data): &Failure) -> String {
        let mut error = json!({"code":code,"message":message});
        if let Some(data) = data {
            error["data"] = data.clone();
        }
        if !self.has("no-kinds") {
            error["kind"] = (*kind).into();
        }
        match id {
            Value::Null if self.has("null-dropping") => format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#),
            id => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
        }
    }

    fn health(&self) -> Value {
        let uptime = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        let version = if self.has("version-9") { "9.0.0" } else { "0.1.0" };
        let mut health = json!({"status":"ok","version":"1.2.3","protocolVersion":version,"uptimeMs":uptime,"pid":std::process::id(),
            "platform":"linux-x86_64","loadedProviders":["openai"],"loadedTools":1,"activeTraces":0,"checks":{}});
        if self.has("thin-health") {
            health = json!({"status":"fine"});
        }
        health
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

#[derive(Clone, Copy)]
enum Leave {
    Drained,
    Now,
    Eof,
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Streams that were accepted and whose answer is not yet written.
static WAITING: Mutex<Vec<Task>> = Mutex::new(Vec::new());

fn is_answer(members: &Map<String, Value>) -> bool {
    !members.contains_key("method")
        && members.get("id").is_some_and(Value::is_string)
        && (members.contains_key("result") || members.contains_key("error"))
}
