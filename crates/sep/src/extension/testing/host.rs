//! A session of the host for tests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answers::{Answers, Reply};
use super::{MockHost, SESSION, TOKEN, pair};
use crate::extension::conduct::{Conductor, Ending};
use crate::extension::{Extension, Link};
use crate::protocol::{ActionResult, HealthAnswer, Initialized, Version};

/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the extension answered, if it was not a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the extension answered with error {code}: {message}")]
pub struct MockError {
    /// The code.
    pub code: i64,
    /// The sentence.
    pub message: String,
    /// The details.
    pub data: Value,
}

/// An extension that runs, and its host.
pub struct MockSession {
    shared: Arc<Shared>,
    ending: Receiver<Ending>,
    initialized: Result<Initialized, MockError>,
}

struct Shared {
    pen: Mutex<Link>,
    state: Mutex<State>,
    changed: Condvar,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct State {
    next: u64,
    seq: u64,
    waiting: HashMap<u64, SyncSender<Value>>,
    /// What the extension asked for, in order.
    asked: Vec<(String, Value)>,
}

impl MockSession {
    pub(super) fn start(host: MockHost, extension: impl Extension) -> Self {
        let hello = host.initialize();
        let (ours, theirs) = pair();
        let conductor = Conductor::new(Arc::new(extension), theirs).expect("a thread");
        let (done, ending) = sync_channel(1);
        thread::spawn(move || {
            let _ = done.send(conductor.conduct(TOKEN, SESSION));
        });
        let shared = Arc::new(Shared {
            pen: Mutex::new(ours.try_clone().expect("a descriptor")),
            state: Mutex::default(),
            changed: Condvar::new(),
            answers: Mutex::new(Answers::new(host)),
        });
        let reader = shared.clone();
        thread::spawn(move || reader.read(ours));
        let mut session = Self {
            shared,
            ending,
            initialized: Err(MockError { code: 0, message: String::new(), data: Value::Null }),
        };
        session.wait_for("host.attach");
        session.initialized = session.ask("sep.initialize", &hello);
        session
    }

    /// What the extension answered to the hello.
    pub fn initialized(&self) -> &Result<Initialized, MockError> {
        &self.initialized
    }

    /// The version that was agreed on.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.initialized.as_ref().ok().map(|initialized| initialized.protocol_version)
    }

    /// Tells the extension that something happened, and waits until it has dealt with it.
    ///
    /// # Errors
    /// What the extension answered.
    pub fn event(&self, topic: &str, data: Value) -> Result<(), MockError> {
        self.begin_event(topic, data).wait().map(|_: Value| ())
    }

    /// Tells the extension that something happened, and does not wait.
    #[must_use = "somebody should wait for the answer"]
    pub fn begin_event(&self, topic: &str, data: Value) -> Asked<'_> {
        let seq = {
            let mut state = self.shared.state();
            state.seq += 1;
            state.seq
        };
        self.begin("sep.event", &json!({"seq": seq, "topic": topic, "timeMs": 0, "data": data}))
    }

    /// Invokes an action.
    ///
    /// # Errors
    /// What the extension answered.
    pub fn action(&self, panel: &str, action: &str, input: Option<&str>) -> Result<ActionResult, MockError> {
        self.begin_action(panel, action, input).wait()
    }

    /// Invokes an action, and does not wait.
    #[must_use = "somebody should wait for the answer"]
    pub fn begin_action(&self, panel: &str, action: &str, input: Option<&str>) -> Asked<'_> {
        let call = json!({"panelId": panel, "actionId": action, "input": input, "invocation": "1"});
        self.begin("sep.action", &call)
    }

    /// Asks how the extension is.
    ///
    /// # Errors
    /// What the extension answered.
    pub fn health(&self) -> Result<HealthAnswer, MockError> {
        self.ask("sep.health", &json!({"seq": 1, "sentMs": 0}))
    }

    /// Asks the extension anything.
    ///
    /// # Errors
    /// What the extension answered.
    pub fn ask<T: DeserializeOwned>(&self, method: &str, params: &Value) -> Result<T, MockError> {
        self.begin(method, params).wait()
    }

    /// Everything that the extension has asked for so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.shared.state().asked.clone()
    }

    /// The params of all calls of one method so far.
    #[must_use]
    pub fn calls_of(&self, method: &str) -> Vec<Value> {
        self.calls().into_iter().filter(|(name, _)| name == method).map(|(_, params)| params).collect()
    }

    /// Waits until the extension has called this method, and gives the params of the first such call.
    ///
    /// # Panics
    /// When it does not within ten seconds.
    pub fn wait_for(&self, method: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        let mut state = self.shared.state();
        loop {
            if let Some((_, params)) = state.asked.iter().find(|(name, _)| name == method) {
                return params.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "`{method}` was not called within {PATIENCE:?}");
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks the extension to leave, and says how its session ended.
    pub fn shutdown(self) -> Ending {
        let _: Result<Value, _> = self.ask("sep.shutdown", &json!({"reason": "stop", "deadlineMs": 3000}));
        self.ended()
    }

    /// Waits for the end of the session.
    ///
    /// # Panics
    /// When it does not end within ten seconds.
    #[must_use]
    pub fn ended(self) -> Ending {
        self.ending.recv_timeout(PATIENCE).expect("the session ends")
    }

    fn begin(&self, method: &str, params: &Value) -> Asked<'_> {
        let (answer, answered) = sync_channel(1);
        let id = {
            let mut state = self.shared.state();
            state.next += 1;
            let id = state.next;
            state.waiting.insert(id, answer);
            id
        };
        self.shared.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        Asked { session: self, id, method: method.to_owned(), answered }
    }
}

/// A request to the extension that has not been answered.
pub struct Asked<'a> {
    session: &'a MockSession,
    id: u64,
    method: String,
    answered: Receiver<Value>,
}

impl Asked<'_> {
    /// Gives the request up.
    pub fn cancel(&self) {
        self.session.shared.say(&json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": self.id}}));
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// What the extension answered, if it was not a result.
    ///
    /// # Panics
    /// When there is no answer within ten seconds, or one of another type.
    pub fn wait<T: DeserializeOwned>(self) -> Result<T, MockError> {
        let Self { method, answered, .. } = self;
        let line = answered.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("`{method}` was not answered"));
        match line.get("error") {
            Some(error) => Err(MockError {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
            None => Ok(serde_json::from_value(line["result"].clone())
                .unwrap_or_else(|why| panic!("the answer to `{method}` is not what it should be: {why}"))),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An extension that has left is noticed by whoever waits for it.
    fn say(&self, line: &Value) {
        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = pen.write_all(format!("{line}\n").as_bytes());
    }

    fn read(&self, link: Link) {
        for line in BufReader::new(link).lines() {
            let Ok(line) = line else { break };
            let line: Value = serde_json::from_str(&line).expect("the kit writes JSON");
            let Some(method) = line["method"].as_str() else {
                // What the extension asks next is asked at the version that it has just agreed to.
                let agreed =
                    line["result"]["protocolVersion"].as_str().and_then(|text| Version::parse(text).ok());
                if let Some(version) = agreed {
                    self.answers().agree(version);
                }
                let waiting = line["id"].as_u64().and_then(|id| self.state().waiting.remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.try_send(line);
                }
                continue;
            };
            self.state().asked.push((method.to_owned(), line["params"].clone()));
            self.changed.notify_all();
            let Some(id) = line.get("id") else { continue };
            let reply = self.answers().answer(method, &line["params"]);
            match reply {
                Reply::Never => {}
                Reply::Now(Ok(result)) => self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
                Reply::Now(Err(error)) => {
                    let data: Option<Value> =
                        error.data.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok());
                    let error = json!({"code": error.code.0, "message": error.message, "data": data});
                    self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                }
            }
        }
    }
}
