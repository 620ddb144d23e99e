//! A sidecar that keeps the contract with as little as possible, and breaks one rule of it for each word it is given.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) fn child(words: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let fake = Arc::new(Fake {
        quirks: words.iter().cloned().collect(),
        streams: Mutex::default(),
        waiters: Mutex::default(),
        config: Mutex::default(),
        number: AtomicU64::new(0),
    });
    let code = runtime.block_on(fake.live());
    // The thread that reads standard input would be waited for otherwise.
    std::process::exit(code)
}

/// Writes a line to standard error, which is where a sidecar logs.
fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a line whole.
fn write(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

struct Fake {
    quirks: HashSet<String>,
    /// The stream of each busy session.
    streams: Mutex<HashMap<String, (String, CancellationToken)>>,
    /// Who waits for which answer.
    waiters: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    config: Mutex<Value>,
    number: AtomicU64,
}

/// How a turn ends.
enum End {
    Event(Value),
    Stopped,
    Nothing,
}

impl Fake {
    fn has(&self, quirk: &str) -> bool {
        self.quirks.contains(quirk)
    }

    /// The value of `NAME=VALUE`.
    fn value(&self, name: &str) -> Option<&str> {
        self.quirks.iter().find_map(|quirk| quirk.strip_prefix(name)?.strip_prefix('='))
    }

    async fn live(self: &Arc<Self>) -> i32 {
        log("booting");
        let mut terminate = signal(SignalKind::terminate()).expect("a signal");
        if let Some(path) = self.value("starts") {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
            file.write_all(b"x").expect("a mark");
        }
        if self.has("dies-before-ready") {
            log("out of cheese");
            return 3;
        }
        if self.has("never-ready") {
            log("thinking about it");
            std::future::pending::<()>().await;
        }
        if self.has("garbage-first") {
            (0..1000).for_each(|number| write(&format!("warning {number}: {{")));
            write(&json!({"type":"error","message":"not yet"}).to_string());
        }
        if self.has("long-garbage-first") {
            write(&"x".repeat(1 << 20));
        }
        let version = if self.has("version-2") { 2 } else { 1 };
        let ready = json!({"type":"ready","version":version});
        if self.has("not-ready-first") {
            write(&json!({"type":"pong","id":"x"}).to_string());
        }
        write(&ready.to_string());
        if self.has("prints") {
            write("hello from a library");
        }
        if self.has("deaf") {
            std::future::pending::<()>().await;
        }
        let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
        loop {
            let line = tokio::select! {
                line = lines.next_segment() => line.ok().flatten(),
                _ = terminate.recv() => {
                    if self.has("ignores-term") { continue }
                    return 143;
                }
            };
            let Some(line) = line else {
                let live: Vec<_> = self.streams.lock().unwrap().values().cloned().collect();
                if self.has("stays") || (self.has("original") && !live.is_empty()) {
                    std::future::pending::<()>().await;
                }
                for (stream, _) in live {
                    write(&json!({"id":stream,"type":"aborted","reason":"stdin_closed"}).to_string());
                }
                return 0;
            };
            if let Some(code) = self.hear(&line).await {
                return code;
            }
        }
    }

    async fn hear(self: &Arc<Self>, line: &[u8]) -> Option<i32> {
        let Ok(line) = std::str::from_utf8(line) else {
            self.invalid(None, "not UTF-8");
            return None;
        };
        if line.trim().is_empty() {
            return None;
        }
        let Ok(request) = serde_json::from_str::<Value>(line) else {
            self.invalid(None, line);
            return self.has("dies-of-garbage").then_some(9);
        };
        if request["type"] == "hostResponse" {
            let callback = request["callbackId"].as_str().unwrap_or_default();
            if let Some(waiter) = self.waiters.lock().unwrap().remove(callback) {
                let _ = waiter.send(request);
            }
            return None;
        }
        let (Some(id), Some(method), Value::Object(_)) =
            (request["id"].as_str(), request["method"].as_str(), &request["params"])
        else {
            self.invalid(request["id"].as_str(), line);
            return None;
        };
        let in_flight = self.streams.lock().unwrap().values().any(|(stream, _)| stream == id);
        if in_flight && !self.has("original") {
            self.invalid(None, line);
            return None;
        }
        self.serve(id, method, &request["params"]).await
    }

    fn invalid(&self, id: Option<&str>, line: &str) {
        let head: String = line.chars().take(100).collect();
        let mut event = json!({"type":"error","message":format!("Invalid request: it is none ({head})")});
        if let (Some(id), false) = (id, self.has("no-id-in-complaints") || self.has("original")) {
            event["id"] = json!(id);
        }
        if !self.has("silent-about-garbage") {
            write(&event.to_string());
        }
    }

    async fn serve(self: &Arc<Self>, id: &str, method: &str, params: &Value) -> Option<i32> {
        let answer = |mut event: Value| {
            event["id"] = json!(id);
            write(&event.to_string());
        };
        let error = |code: &str, message: String| match self.has("original") {
            true => answer(json!({"type":"error","message":message})),
            false => answer(json!({"type":"error","message":message,"code":code})),
        };
        let missing = |names: &[&str]| {
            names
                .iter()
                .find(|name| !params[**name].is_string())
                .map(|name| format!("params.{name} must be a string"))
        };
        let required: &[&str] = match method {
            "sendMessage" => &["sessionId", "prompt", "provider"],
            "stopSession" => &["sessionId", "provider"],
            "listModels" | "listSlashCommands" => &["provider"],
            "generateTitle" => &["userMessage"],
            "getContextUsage" => &["sessionId", "model"],
            "permissionResponse" => &["permissionId", "behavior"],
            "userInputResponse" => &["userInputId", "action"],
            "mutateCodexGoal" => &["sessionId", "action"],
            _ => &[],
        };
        if let Some(message) = missing(required).filter(|_| !self.has("checks-nothing")) {
            error("invalid_params", message);
            return None;
        }
        if let Some(word) = params["provider"].as_str()
            && (!["claude", "codex", "cursor", "scripted", "acp:fake"].contains(&word)
                || (self.has("original") && word == "scripted"))
            && method != "steerSession"
            && !self.has("checks-nothing")
        {
            error("invalid_params", format!("unknown provider: {word}"));
            return None;
        }
        if self.has(&format!("silent:{method}")) {
            return None;
        }
        match method {
            "ping" => answer(json!({"type":"pong"})),
            "sendMessage" => self.begin(id, params),
            "stopSession" => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                let stream = self.streams.lock().unwrap().get(session).cloned();
                if let Some((_, stop)) = stream {
                    stop.cancel();
                    // The stream's end comes first.
                    while self.streams.lock().unwrap().contains_key(session) {
                        tokio::task::yield_now().await;
                    }
                }
                answer(json!({"type":"stopped","sessionId":session}));
            }
            "steerSession" => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                let stream = self.streams.lock().unwrap().get(session).cloned();
                match stream {
                    Some((stream, _)) => {
                        write(
                            &json!({"id":stream,"type":"user_prompt","text":params["prompt"],"steer":true})
                                .to_string(),
                        );
                        answer(json!({"type":"steered","sessionId":session,"accepted":true}));
                    }
                    None => answer(
                        json!({"type":"steered","sessionId":session,"accepted":false,"reason":"no_active_turn"}),
                    ),
                }
            }
            "updateConfig" => {
                *self.config.lock().unwrap() = params.clone();
                answer(json!({"type":"pong"}));
            }
            "mutateCodexGoal" => answer(json!({"type":"pong"})),
            "permissionResponse" | "userInputResponse" => {
                let name = if method == "permissionResponse" { "permissionId" } else { "userInputId" };
                let waiter = self.waiters.lock().unwrap().remove(params[name].as_str().unwrap_or_default());
                match waiter {
                    Some(waiter) => drop(waiter.send(params.clone())),
                    None if self.has("silent-about-waiters") => {}
                    None if self.has("original") && method == "permissionResponse" => {}
                    None => error("unknown_waiter", format!("No active waiter for {name}={}", params[name])),
                }
            }
            "listModels" => answer(json!({"type":"modelsListed","provider":params["provider"],"models":[
                {"id":"m","label":"Model","cliModel":"model","effortLevels":["low"]}]})),
            "listSlashCommands" => answer(json!({"type":"slashCommandsListed","commands":[
                {"name":"compact","description":"d","source":"builtin"}]})),
            "generateTitle" => {
                answer(json!({"type":"titleGenerated","title":"A title","branchName":"a-title"}))
            }
            "getContextUsage" => {
                let meta = json!({"usedTokens":1,"of":params["providerSessionId"]}).to_string();
                answer(json!({"type":"contextUsageResult","meta":meta}));
            }
            "shutdown" => {
                if self.has("ignores-shutdown") {
                    return None;
                }
                let streams: Vec<_> = self.streams.lock().unwrap().values().cloned().collect();
                for (stream, _) in streams {
                    let kind = if self.has("original") { "end" } else { "aborted" };
                    write(&json!({"id":stream,"type":kind,"reason":"shutdown"}).to_string());
                }
                if !self.has("no-pong") {
                    answer(json!({"type":"pong"}));
                }
                return Some(if self.has("leaves-with-1") { 1 } else { 0 });
            }
            other if self.has("silent-about-methods") => log(other),
            other => error("unknown_method", format!("Unknown method: {other}")),
        }
        None
    }

    fn begin(self: &Arc<Self>, id: &str, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let stop = CancellationToken::new();
        {
            let mut streams = self.streams.lock().unwrap();
            if streams.contains_key(&session) && !self.has("never-busy") && !self.has("original") {
                let event = json!({"id":id,"type":"error","message":"session_busy: one at a time","code":"session_busy"});
                return write(&event.to_string());
            }
            streams.insert(session.clone(), (id.to_owned(), stop.clone()));
        }
        let (fake, id, params) = (Arc::clone(self), id.to_owned(), params.clone());
        tokio::spawn(async move {
            let beating = async {
                let every = fake.value("beat").and_then(|millis| millis.parse().ok()).unwrap_or(15_000);
                loop {
                    tokio::time::sleep(Duration::from_millis(every)).await;
                    write(&json!({"id":id,"type":"heartbeat"}).to_string());
                }
            };
            let end = tokio::select! {
                biased;
                () = stop.cancelled() => End::Stopped,
                end = fake.play(&id, &params) => end,
                () = beating => End::Nothing,
            };
            let event = match end {
                End::Event(event) => Some(event),
                End::Stopped => Some(json!({"type":"aborted","reason":"user_requested"})),
                End::Nothing => None,
            };
            if let Some(mut event) = event {
                event["id"] = json!(id);
                write(&event.to_string());
                if fake.has("two-ends") {
                    write(&json!({"id":id,"type":"end"}).to_string());
                }
            }
            fake.streams.lock().unwrap().remove(&session);
        });
    }

    /// Plays a prompt that is a list of steps.
    async fn play(&self, id: &str, params: &Value) -> End {
        let pass = |mut object: Value| {
            object["id"] = json!(id);
            write(&object.to_string());
        };
        let prompt = params["prompt"].as_str().unwrap_or_default();
        let Ok(Value::Array(steps)) = serde_json::from_str(prompt) else {
            pass(json!({"type":"assistant","text":prompt}));
            if prompt.contains("check-long") {
                std::future::pending::<()>().await;
            }
            return End::Event(json!({"type":"end"}));
        };
        for step in steps {
            if let Some(text) = step.as_str() {
                pass(json!({"type":"assistant","text":text}));
            } else if !step["pass"].is_null() {
                pass(step["pass"].clone());
            } else if let Some(line) = step["raw"].as_str() {
                write(line);
            } else if let Some(count) = step["flood"].as_u64() {
                let pad = "x".repeat(usize::try_from(step["bytes"].as_u64().unwrap_or(0)).unwrap_or(0));
                for number in 0..count {
                    pass(json!({"type":"chunk","n":number,"pad":pad}));
                    if number % 64 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            } else if let Some(text) = step["log"].as_str() {
                log(text);
            } else if let Some(code) = step["die"].as_i64() {
                std::process::exit(i32::try_from(code).unwrap_or(1));
            } else if step["hang"] == true {
                std::future::pending::<()>().await;
            } else if step["echo"] == true {
                let config = self.config.lock().unwrap().clone();
                pass(json!({"type":"echo","params":params,"config":config}));
            } else if let Some(name) = step["permission"].as_str() {
                let answer = self.wait_for(name);
                pass(
                    json!({"type":"permissionRequest","permissionId":name,"toolName":"Bash","toolInput":{"command":"ls"}}),
                );
                pass(json!({"type":"verdict","answer":answer.await.unwrap_or_default()}));
            } else if let Some(name) = step["ask"].as_str() {
                let answer = self.wait_for(name);
                pass(
                    json!({"type":"userInputRequest","userInputId":name,"source":"Claude","message":"?","payload":{"kind":"url","url":"x"}}),
                );
                pass(json!({"type":"answer","answer":answer.await.unwrap_or_default()}));
            } else if let Some(method) = step["host"].as_str() {
                let callback = format!("cb-{}", self.number.fetch_add(1, Ordering::Relaxed));
                let answer = self.wait_for(&callback);
                write(&json!({"type":"hostRequest","callbackId":callback,"method":method,"params":step["params"]}).to_string());
                pass(json!({"type":"answered","answer":answer.await.unwrap_or_default()}));
            } else if !step["end"].is_null() {
                return End::Event(step["end"].clone());
            } else {
                panic!("not a step: {step}");
            }
        }
        End::Event(json!({"type":"end"}))
    }

    fn wait_for(&self, name: &str) -> oneshot::Receiver<Value> {
        let (sender, receiver) = oneshot::channel();
        self.waiters.lock().unwrap().insert(name.to_owned(), sender);
        receiver
    }
}
