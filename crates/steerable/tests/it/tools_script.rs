//! `run_script` against a child that speaks mustard's protocol and does what the script's text says.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use outrigger_steerable::chat::{BoxFuture, ToolCall, ToolResult};
use outrigger_steerable::tools::{Dispatch, Grants, Programs, Tool, Toolbox};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::sync::Barrier;

use crate::tools_kit::{data, error, place, runtime, supervisor};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_script_calls_tools_and_returns_a_value,
        calls_of_one_step_run_side_by_side,
        a_tool_that_fails_is_an_error_in_the_script,
        a_script_that_is_wrong_says_so_and_the_process_stays,
        a_process_is_kept_for_the_next_script_and_replaced_when_it_died,
        a_script_whose_call_is_dropped_loses_its_process,
        a_program_that_speaks_something_else_is_told_with_its_last_words,
    ]
}

/// The child: `call A {…}` lines are made at once, then everything that came back is the value.
pub(crate) fn child(args: &[String]) -> ExitCode {
    if args.first().is_some_and(|word| word == "broken") {
        let _ = writeln!(std::io::stderr(), "no engine today");
        return ExitCode::from(3);
    }
    let mut outstanding: Vec<u64> = Vec::new();
    let mut source = String::new();
    // Tells one process from another: in a pid namespace of its own each has the same number.
    let mut started = 0;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(request["protocol_version"], 2);
        let result = match request["method"].as_str().unwrap() {
            "hello" => json!({"kind": "hello", "enabled": request["features"]}),
            "compile" => {
                source = request["source"].as_str().unwrap().to_owned();
                started += 1;
                json!({"kind": "program", "program_id": "p1"})
            }
            "start" => match start(&source, started, &request["options"]) {
                Ok(step) => {
                    let calls = step["calls"].as_array().cloned().unwrap_or_default();
                    outstanding = calls.iter().map(|call| call["call_id"].as_u64().unwrap()).collect();
                    json!({"kind": "step", "step": step, "snapshot_id": "s1", "policy_id": "q1"})
                }
                Err(problem) => {
                    answer(
                        &json!({"protocol_version": 2, "id": request["id"], "ok": false, "error": problem}),
                    );
                    continue;
                }
            },
            "resume" => {
                assert_eq!((&request["snapshot_id"], &request["policy_id"]), (&json!("s1"), &json!("q1")));
                assert_eq!(request["auth"]["snapshot_token"].as_str().unwrap().len(), 64);
                let answers = request["payload"]["answers"].as_array().unwrap();
                let answered: Vec<u64> = answers.iter().map(|one| one["call_id"].as_u64().unwrap()).collect();
                let mut expected = outstanding.clone();
                let mut sorted = answered.clone();
                expected.sort_unstable();
                sorted.sort_unstable();
                assert_eq!(sorted, expected);
                let value_of = |id: &u64| {
                    let one = answers.iter().find(|one| one["call_id"] == *id).unwrap();
                    match one["payload"]["type"].as_str().unwrap() {
                        "value" => one["payload"]["value"].clone(),
                        _ => {
                            json!({"String": format!("threw {}", one["payload"]["error"]["message"].as_str().unwrap())})
                        }
                    }
                };
                let values: Vec<Value> = outstanding.iter().map(value_of).collect();
                json!({"kind": "step", "step": {"type": "completed", "value": {"Array": values}}})
            }
            other => panic!("{other}"),
        };
        answer(&json!({"protocol_version": 2, "id": request["id"], "ok": true, "result": result}));
    }
    ExitCode::SUCCESS
}

fn answer(line: &Value) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

fn start(source: &str, started: u32, options: &Value) -> Result<Value, String> {
    let done = |value: Value| Ok(json!({"type": "completed", "value": value}));
    match source {
        "count" => return done(json!({"Number": {"Finite": started}})),
        "names" => {
            return done(
                json!({"Array": options["capabilities"].as_array().unwrap().iter().map(|name| json!({"String": name})).collect::<Vec<_>>()}),
            );
        }
        "input" => return done(options["inputs"]["given"].clone()),
        "huge" => return done(json!({"String": "x".repeat(300 << 10)})),
        "syntax" => return Err("Parse: unexpected end [0..1]".to_owned()),
        "crash" => {
            let _ = writeln!(std::io::stderr(), "out of cheese");
            std::process::exit(3);
        }
        _ => {}
    }
    let calls: Vec<Value> = source
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let (name, arguments) = line.strip_prefix("call ").unwrap().split_once(' ').unwrap();
            json!({"call_id": index + 1, "capability": name, "args": serde_json::from_str::<Value>(arguments).unwrap()})
        })
        .collect();
    Ok(
        json!({"type": "suspended", "capability": calls[0]["capability"], "args": calls[0]["args"], "calls": calls}),
    )
}

/// Other tools: `double` doubles, `fail` fails, `meet` waits for another one to be called, `hang` never ends.
struct Others {
    meeting: Barrier,
    seen: Mutex<Vec<String>>,
    hanging: tokio::sync::Notify,
}

impl Others {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            meeting: Barrier::new(2),
            seen: Mutex::new(Vec::new()),
            hanging: tokio::sync::Notify::new(),
        })
    }
}

impl Dispatch for Others {
    fn names(&self) -> Vec<String> {
        ["double", "fail", "meet", "hang", "my-tool", "run_script"].map(str::to_owned).to_vec()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move {
            self.seen.lock().unwrap().push(format!("{} {}", call.name, call.arguments.get()));
            let arguments: Value = serde_json::from_str(call.arguments.get()).unwrap();
            match call.name.as_str() {
                "double" => {
                    let n = arguments["n"].as_i64().unwrap_or_default();
                    ToolResult::success(Map::new()).with("n", n * 2)
                }
                "meet" => {
                    self.meeting.wait().await;
                    ToolResult::success(Map::new())
                }
                "hang" => {
                    self.hanging.notify_one();
                    std::future::pending().await
                }
                _ => ToolResult::failure("it does not want to"),
            }
        })
    }
}

fn tool(args: &[&str]) -> Arc<dyn Tool> {
    let exe = std::env::current_exe().unwrap();
    let command =
        std::iter::once(exe.into_os_string()).chain(["__mustard"].iter().chain(args).map(Into::into));
    let programs = Programs::new(supervisor(), Some(command.collect()));
    Toolbox::builtin(&programs, &Grants::none(), None).get("run_script").unwrap()
}

async fn run(tool: &Arc<dyn Tool>, code: &str, others: &Arc<Others>) -> ToolResult {
    run_with(tool, json!({"code": code}), others).await
}

async fn run_with(tool: &Arc<dyn Tool>, arguments: Value, others: &Arc<Others>) -> ToolResult {
    let at = place(&Grants::none(), Arc::<Others>::clone(others));
    tool.invoke(&to_raw_value(&arguments).unwrap(), &at).await
}

/// How many scripts the process has run that runs this one.
async fn count(tool: &Arc<dyn Tool>, others: &Arc<Others>) -> Value {
    data(&run(tool, "count", others).await, "value").clone()
}

fn a_script_calls_tools_and_returns_a_value() {
    runtime().block_on(async {
        let (tool, others) = (tool(&[]), Others::new());
        let code = "call double [{\"Object\":{\"n\":{\"Number\":{\"Finite\":21}}}}]\ncall console.log [{\"String\":\"hi\"},{\"Bool\":true}]";
        let result = run(&tool, code, &others).await;
        assert_eq!(data(&result, "value"), &json!([{"n": 42}, null]), "{result:?}");
        assert_eq!(data(&result, "log"), &json!("hi true\n"));
        assert_eq!(*others.seen.lock().unwrap(), ["double {\"n\":21}"]);
        let names = run(&tool, "names", &others).await;
        let expected = ["double", "fail", "hang", "meet", "my_tool", "console.log", "console.warn", "console.error"];
        assert_eq!(data(&names, "value"), &json!(expected), "a script cannot call itself");
        let given = json!({"code": "input", "inputs": {"given": {"a": [1, null]}}});
        assert_eq!(data(&run_with(&tool, given, &others).await, "value"), &json!({"a": [1, null]}));
    });
}

fn calls_of_one_step_run_side_by_side() {
    runtime().block_on(async {
        let result = run(&tool(&[]), "call meet []\ncall meet []", &Others::new()).await;
        assert_eq!(data(&result, "value"), &json!([{}, {}]), "{result:?}");
    });
}

fn a_tool_that_fails_is_an_error_in_the_script() {
    runtime().block_on(async {
        let others = Others::new();
        let code = "call fail []\ncall nothing []\ncall double [{\"String\":\"x\"}]\ncall my_tool []";
        let result = run(&tool(&[]), code, &others).await;
        let expected = json!([
            "threw it does not want to",
            "threw there is no tool `nothing`",
            "threw `double` takes one object with its arguments",
            "threw it does not want to",
        ]);
        assert_eq!(data(&result, "value"), &expected);
        assert_eq!(*others.seen.lock().unwrap(), ["fail {}", "my-tool {}"]);
    });
}

fn a_script_that_is_wrong_says_so_and_the_process_stays() {
    runtime().block_on(async {
        let (tool, others) = (tool(&[]), Others::new());
        assert_eq!(count(&tool, &others).await, json!(1));
        assert_eq!(error(&run(&tool, "syntax", &others).await), "Parse: unexpected end [0..1]");
        assert!(error(&run(&tool, "huge", &others).await).contains("return less"));
        assert_eq!(count(&tool, &others).await, json!(4));
    });
}

fn a_process_is_kept_for_the_next_script_and_replaced_when_it_died() {
    runtime().block_on(async {
        let (tool, others) = (tool(&[]), Others::new());
        assert_eq!(count(&tool, &others).await, json!(1));
        assert_eq!(count(&tool, &others).await, json!(2));
        let crashed = run(&tool, "crash", &others).await;
        assert!(error(&crashed).contains("out of cheese"), "{crashed:?}");
        assert_eq!(count(&tool, &others).await, json!(1), "it is another process");
    });
}

fn a_script_whose_call_is_dropped_loses_its_process() {
    runtime().block_on(async {
        let (tool, others) = (tool(&[]), Others::new());
        assert_eq!(count(&tool, &others).await, json!(1));
        tokio::select! {
            result = run(&tool, "call hang []", &others) => panic!("{result:?}"),
            () = others.hanging.notified() => {}
        }
        // A process in the middle of a script is of no use to the next one.
        assert_eq!(count(&tool, &others).await, json!(1), "it is another process");
    });
}

fn a_program_that_speaks_something_else_is_told_with_its_last_words() {
    runtime().block_on(async {
        let result = run(&tool(&["broken"]), "count", &Others::new()).await;
        assert!(error(&result).contains("no engine today"), "{result:?}");
        assert!(error(&result).contains("exit code 3"), "{result:?}");
    });
}
