//! One run of a script: compile, start, and answer its calls until it is done.

use std::collections::BTreeMap;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::process::{Process, Refusal};
use super::value::{from_tagged, to_tagged};
use crate::chat::{ToolCall, ToolResult};
use crate::tools::Dispatch;

/// How many calls of tools a script may make.
const MAX_CALLS: u64 = 1000;

/// How many of them may run at the same time.
const AT_ONCE: u64 = 64;

/// How long a script may compute between two calls, in milliseconds.
const STEP_MS: u64 = 30_000;

/// Bytes of the log that are kept.
const MAX_LOG: usize = 64 << 10;

/// Bytes of the value, as JSON, that are answered.
const MAX_VALUE: usize = 256 << 10;

/// The tool that a script cannot call: itself.
const OURSELVES: &str = "run_script";

const CONSOLE: [&str; 3] = ["console.log", "console.warn", "console.error"];

/// How a run ended: with a value, or with what the script did wrong.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) value: Result<Value, String>,
    pub(super) log: String,
}

/// Runs `code`. An error means that the process is of no more use.
pub(super) async fn run(
    process: &mut Process,
    code: &str,
    inputs: &Map<String, Value>,
    dispatch: &dyn Dispatch,
) -> Result<Ended, String> {
    let mut run = Run { process, dispatch, tools: tool_names(dispatch), calls: 0, log: String::new() };
    let value = match run.steps(code, inputs).await? {
        Ok(value) if value.to_string().len() > MAX_VALUE => {
            Err(format!("the script's value has more than {MAX_VALUE} bytes; return less"))
        }
        Ok(value) => Ok(value),
        Err(Refusal { message }) => Err(message),
    };
    Ok(Ended { value, log: run.log })
}

/// The tools by the names that a script calls them by: what is no part of a name in JavaScript becomes `_`.
fn tool_names(dispatch: &dyn Dispatch) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for tool in dispatch.names().into_iter().filter(|name| name != OURSELVES) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let name: String = tool.chars().map(|c| if legal(c) { c } else { '_' }).collect();
        let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name };
        names.entry(name).or_insert(tool);
    }
    names
}

struct Run<'a> {
    process: &'a mut Process,
    dispatch: &'a dyn Dispatch,
    tools: BTreeMap<String, String>,
    calls: u64,
    log: String,
}

/// A call that a script waits for.
struct Waiting {
    id: Value,
    capability: String,
    args: Vec<Value>,
}

impl Run<'_> {
    async fn steps(
        &mut self,
        code: &str,
        inputs: &Map<String, Value>,
    ) -> Result<Result<Value, Refusal>, String> {
        let compiled = self.process.ask("compile", json!({"source": code, "lenient_return": true})).await?;
        let program = match compiled {
            Ok(mut program) => program.get_mut("program_id").map(Value::take).unwrap_or_default(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut capabilities: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        capabilities.extend(CONSOLE);
        let inputs: Map<String, Value> =
            inputs.iter().map(|(name, value)| (name.clone(), to_tagged(value))).collect();
        let options = json!({"inputs": inputs, "capabilities": capabilities, "limits": limits()});
        let start = json!({"program_id": program, "options": options, "deadline_ms": STEP_MS});
        let mut answer = self.process.ask("start", start).await?;
        loop {
            let mut result = match answer {
                Ok(result) => result,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let step = result.get_mut("step").map(Value::take).unwrap_or_default();
            match step.get("type").and_then(Value::as_str) {
                Some("completed") => return Ok(Ok(from_tagged(step.get("value").unwrap_or(&Value::Null)))),
                Some("suspended") => {}
                _ => return Err("it answered with no step".to_owned()),
            }
            let (Some(snapshot), Some(policy)) = (text(&result, "snapshot_id"), text(&result, "policy_id"))
            else {
                return Err("it suspended without a snapshot".to_owned());
            };
            let answers = self.answer(waiting(&step)).await;
            let resume = json!({
                "snapshot_id": snapshot,
                "policy_id": policy,
                "auth": self.process.vouch(snapshot),
                "payload": {"type": "answers", "answers": answers},
                "deadline_ms": STEP_MS,
            });
            answer = self.process.ask("resume", resume).await?;
        }
    }

    /// Makes all calls that the script waits for, side by side, and gives their answers.
    async fn answer(&mut self, waiting: Vec<Waiting>) -> Vec<Value> {
        let mut answers = Vec::new();
        let mut running = Vec::new();
        for Waiting { id, capability, args } in waiting {
            if CONSOLE.contains(&capability.as_str()) {
                self.print(&args);
                answers.push(json!({"call_id": id, "payload": {"type": "value", "value": "Undefined"}}));
                continue;
            }
            let payload = match self.call_of(&capability, &args) {
                Ok(call) => {
                    running.push((id, self.dispatch.call(call)));
                    continue;
                }
                Err(problem) => error_payload("TypeError", &problem),
            };
            answers.push(json!({"call_id": id, "payload": payload}));
        }
        let (ids, futures): (Vec<_>, Vec<_>) = running.into_iter().unzip();
        for (id, result) in ids.into_iter().zip(all(futures).await) {
            answers.push(json!({"call_id": id, "payload": payload_of(result)}));
        }
        answers
    }

    fn call_of(&mut self, capability: &str, args: &[Value]) -> Result<ToolCall, String> {
        let Some(tool) = self.tools.get(capability) else {
            return Err(format!("there is no tool `{capability}`"));
        };
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(format!("a script may call tools {MAX_CALLS} times"));
        }
        let arguments = match args {
            [] => Value::Object(Map::new()),
            [one] => match from_tagged(one) {
                Value::Null => Value::Object(Map::new()),
                object @ Value::Object(_) => object,
                _ => return Err(format!("`{capability}` takes one object with its arguments")),
            },
            _ => return Err(format!("`{capability}` takes one object with its arguments")),
        };
        let arguments = to_raw_value(&arguments).map_err(|error| error.to_string())?;
        Ok(ToolCall { id: format!("script_{}", self.calls), name: tool.clone(), arguments })
    }

    fn print(&mut self, args: &[Value]) {
        let words: Vec<String> = args
            .iter()
            .map(|arg| match from_tagged(arg) {
                Value::String(text) => text,
                other => other.to_string(),
            })
            .collect();
        let line = words.join(" ");
        if self.log.len() + line.len() < MAX_LOG {
            self.log.push_str(&line);
            self.log.push('\n');
        } else if !self.log.ends_with("…\n") {
            self.log.push_str("…\n");
        }
    }
}

/// Runs futures side by side in this task, so that dropping it drops all of them.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut pending = false;
        for (future, slot) in futures.iter_mut().zip(&mut done) {
            if slot.is_none() {
                match std::pin::Pin::new(future).poll(context) {
                    std::task::Poll::Ready(output) => *slot = Some(output),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn waiting(step: &Value) -> Vec<Waiting> {
    let calls = step.get("calls").and_then(Value::as_array);
    let read = |call: &Value| Waiting {
        id: call.get("call_id").cloned().unwrap_or_default(),
        capability: text(call, "capability").unwrap_or_default().to_owned(),
        args: call.get("args").and_then(Value::as_array).cloned().unwrap_or_default(),
    };
    calls.into_iter().flatten().map(read).collect()
}

/// What the script sees of a result: its data, or an error that it can catch.
fn payload_of(result: ToolResult) -> Value {
    if result.success {
        let data = match (result.data, result.message) {
            (Some(data), _) => Value::Object(data),
            (None, Some(message)) => Value::String(message),
            (None, None) => Value::Null,
        };
        return json!({"type": "value", "value": to_tagged(&data)});
    }
    let message = result.error.or(result.message).unwrap_or_else(|| "the tool failed".to_owned());
    let mut payload = error_payload("ToolError", &message);
    if let (Some(data), Some(Value::Object(error))) = (result.data, payload.get_mut("error")) {
        error.insert("details".into(), to_tagged(&Value::Object(data)));
    }
    payload
}

fn error_payload(name: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"name": name, "message": message}})
}

fn limits() -> Value {
    json!({
        "instruction_budget": 1_000_000_000_u64,
        "heap_limit_bytes": 64 << 20,
        "allocation_budget": 20_000_000,
        "call_depth_limit": 512,
        "max_outstanding_host_calls": AT_ONCE,
    })
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
