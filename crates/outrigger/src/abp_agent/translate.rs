//! From what a coding agent says to the events of a run: one vocabulary for Claude Code, Codex and every agent over ACP.

use std::borrow::Cow;
use std::collections::HashMap;

use outrigger_abp::protocol::{AgentEvent, Counts, ErrorCode, EventKind, Raw, Timestamp, Usage, UsageReport};
use serde_json::{Value, json};

/// How much of what a command said goes along.
const PREVIEW: usize = 2000;

/// The most calls whose names are remembered for their results.
const MAX_CALLS: usize = 4096;

/// Translates one turn.
pub(super) struct Translator {
    /// The folder of the work, to name files as others see them.
    root: String,
    /// The tools that were called, by the ids of the calls.
    calls: HashMap<String, String>,
    /// What an agent over ACP has said since its last whole message.
    said: String,
    /// The provider's name of the session, once it can be gone on with.
    pub(super) session: Option<String>,
    /// What the agent said last that is an error of its own.
    pub(super) error: Option<(String, ErrorCode)>,
}

/// What comes of one line.
#[derive(Debug)]
pub(super) enum Told {
    /// An event.
    Event(AgentEvent<'static>),
    /// What was used.
    Used(UsageReport),
}

impl Translator {
    pub(super) fn new(root: &str) -> Self {
        let root = root.to_owned();
        Self { root, calls: HashMap::new(), said: String::new(), session: None, error: None }
    }

    /// What the agent said, as events.
    pub(super) fn passed(&mut self, kind: &str, line: &Value) -> Vec<Told> {
        match kind {
            "system" => self.system(line),
            "stream_event" => {
                let delta = &line["event"]["delta"];
                match delta["type"] == "text_delta" {
                    true => text(&delta["text"]).map(|text| event(delta_of(text))).into_iter().collect(),
                    false => Vec::new(),
                }
            }
            "assistant" => self.assistant(line),
            "user" => self.user(line),
            "result" => result(line),
            _ => match kind.split_once('/') {
                Some(("cursor" | "acp", what)) => self.acp(what, line),
                Some(("item" | "turn" | "thread", _)) => self.codex(kind, line),
                Some(_) | None => Vec::new(),
            },
        }
    }

    /// The last words of a turn, if any are left.
    pub(super) fn rest(&mut self) -> Option<Told> {
        let said = std::mem::take(&mut self.said);
        (!said.is_empty()).then(|| event(message_of(said)))
    }

    fn system(&mut self, line: &Value) -> Vec<Told> {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match line["subtype"].as_str().unwrap_or_default() {
            "init" => {
                let version = line["claude_code_version"].as_str().unwrap_or_default();
                self.begin("claude", version, &line["model"], &line["session_id"])
            }
            "api_retry" => vec![warning(format!(
                "the model did not answer ({}); attempt {} of {}",
                plain(if line["error"].is_null() { &line["error_status"] } else { &line["error"] }),
                line["attempt"],
                line["max_retries"]
            ))],
            "codex_reconnecting" => vec![warning(plain(&line["error"]))],
            "fast_mode_unavailable" => {
                vec![warning(format!("fast mode is not available: {}", plain(&line["reason"])))]
            }
            _ => Vec::new(),
        }
    }

    /// The session is there. A turn that was steered begins more than once, and is told once.
    fn begin(&mut self, program: &str, version: &str, model: &Value, session: &Value) -> Vec<Told> {
        let Some(session) = text(session) else { return Vec::new() };
        if self.session.replace(session.clone()).is_some() {
            return Vec::new();
        }
        let model = model.as_str().map(|model| format!(" with {model}")).unwrap_or_default();
        let version = if version.is_empty() { String::new() } else { format!(" {version}") };
        let message = format!("{program}{version}{model}, session {session}");
        let mut begun = AgentEvent::now(EventKind::RunStarted { message: Cow::Owned(message) });
        begun.ext = Raw::of(&json!({ "agent_session": session })).ok();
        vec![Told::Event(begun)]
    }

    fn assistant(&mut self, line: &Value) -> Vec<Told> {
        let content = &line["message"]["content"];
        if let Some(error) = line["error"].as_str() {
            let said = content.as_array().into_iter().flatten().find_map(|block| text(&block["text"]));
            let message = said.unwrap_or_else(|| error.to_owned());
            let code = match error {
                "rate_limit" => ErrorCode::BackendRateLimited,
                "authentication_failed" | "billing_error" => ErrorCode::BackendAuthFailed,
                "max_output_tokens" => ErrorCode::BackendContextLength,
                _ => ErrorCode::BackendUnavailable,
            };
            self.error = Some((message.clone(), code.clone()));
            return vec![event(EventKind::Error { message: Cow::Owned(message), error_code: Some(code) })];
        }
        if let Some(text) = content.as_str() {
            return vec![event(message_of(text.to_owned()))];
        }
        let parent = text(&line["parent_tool_use_id"]);
        let blocks = content.as_array().into_iter().flatten();
        blocks
            .filter_map(|block| match block["type"].as_str()? {
                "text" => text(&block["text"]).map(|text| event(message_of(text))),
                "tool_use" => {
                    let name = text(&block["name"])?;
                    Some(self.call(&name, text(&block["id"]), parent.clone(), &block["input"]))
                }
                _ => None,
            })
            .collect()
    }

    fn user(&mut self, line: &Value) -> Vec<Told> {
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .filter_map(|block| {
                let failed = block["is_error"] == true;
                self.result(text(&block["tool_use_id"]), &plain_content(&block["content"]), failed)
            })
            .collect()
    }

    fn codex(&mut self, kind: &str, line: &Value) -> Vec<Told> {
        let mut told = self.begin("codex", "", &Value::Null, &line["session_id"]);
        let item = &line["item"];
        match (kind, item["type"].as_str().unwrap_or_default()) {
            ("item/agentMessage/delta", _) => {
                told.extend(text(&line["delta"]).map(|text| event(delta_of(text))));
            }
            ("item/completed", "agentMessage") => {
                told.extend(text(&item["text"]).map(|text| event(message_of(text))));
            }
            // It is a call once it was allowed and made. Codex tells of it before it asks.
            ("item/started", "commandExecution") => {
                told.extend(other(json!({ "type": "command_started", "command": item["command"] })));
            }
            ("item/completed", "commandExecution") if item["status"] != "declined" => {
                let input = json!({ "command": item["command"], "cwd": item["cwd"] });
                told.push(self.call("Bash", text(&item["id"]), None, &input));
                told.push(event(EventKind::CommandExecuted {
                    command: Cow::Owned(item["command"].as_str().unwrap_or_default().to_owned()),
                    exit_code: item["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
                    output_preview: text(&item["aggregatedOutput"]).map(|said| Cow::Owned(head(&said))),
                }));
            }
            ("item/completed", "fileChange") if item["status"] == "completed" => {
                for change in item["changes"].as_array().into_iter().flatten() {
                    let Some(path) = text(&change["path"]) else { continue };
                    let how =
                        change["kind"]["type"].as_str().or(change["kind"].as_str()).unwrap_or("changed");
                    let (path, summary) = (self.relative(&path), how.to_owned());
                    told.push(event(EventKind::FileChanged {
                        path: Cow::Owned(path),
                        summary: Cow::Owned(summary),
                    }));
                }
            }
            ("item/started", "mcpToolCall") => {
                let part = |name: &str| item[name].as_str().unwrap_or_default();
                let name = format!("mcp__{}__{}", part("server"), part("tool"));
                told.push(self.call(&name, text(&item["id"]), None, &item["arguments"]));
            }
            ("item/completed", "mcpToolCall") => {
                let failed = item["status"] == "failed";
                let output = if failed { &item["error"] } else { &item["result"] };
                told.extend(self.result(text(&item["id"]), output, failed));
            }
            ("thread/tokenUsage/updated", _) => {
                let total = &line["tokenUsage"]["total"];
                let usage = Usage {
                    input_tokens: total["inputTokens"].as_u64(),
                    output_tokens: total["outputTokens"].as_u64(),
                    cache_read_tokens: total["cachedInputTokens"].as_u64(),
                    ..Usage::default()
                };
                told.push(Told::Used(UsageReport { usage, turns: None, counts: Counts::Totals }));
            }
            _ => {}
        }
        told
    }

    fn acp(&mut self, what: &str, line: &Value) -> Vec<Told> {
        match what {
            "agent_init" => {
                let name = line["agent"].as_str().unwrap_or("agent").to_owned();
                self.begin(&name, "", &line["model"], &line["session_id"])
            }
            "assistant" => {
                let blocks = line["message"]["content"].as_array().into_iter().flatten();
                let texts = blocks.filter_map(|block| text(&block["text"]));
                texts
                    .map(|text| {
                        self.said.push_str(&text);
                        event(delta_of(text))
                    })
                    .collect()
            }
            "tool_call_start" => {
                let name = text(&line["name"]).unwrap_or_else(|| "tool".to_owned());
                let call = self.call(&name, text(&line["call_id"]), None, &line["args"]);
                self.rest().into_iter().chain([call]).collect()
            }
            "tool_call_end" => {
                let failed = line["status"] == "failed";
                self.result(text(&line["call_id"]), &line["result"], failed).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, name: &str, id: Option<String>, parent: Option<String>, input: &Value) -> Told {
        if let Some(id) = &id
            && self.calls.len() < MAX_CALLS
        {
            self.calls.insert(id.clone(), name.to_owned());
        }
        event(EventKind::ToolCall {
            tool_name: Cow::Owned(name.to_owned()),
            tool_use_id: id.map(Cow::Owned),
            parent_tool_use_id: parent.map(Cow::Owned),
            input: raw(input),
        })
    }

    /// The result of a call that was told; others are not ours to tell.
    fn result(&mut self, id: Option<String>, output: &Value, is_error: bool) -> Option<Told> {
        let id = id?;
        let tool_name = Cow::Owned(self.calls.remove(&id)?);
        let output = raw(output);
        Some(event(EventKind::ToolResult { tool_name, tool_use_id: Some(Cow::Owned(id)), output, is_error }))
    }

    fn relative(&self, path: &str) -> String {
        let inside = path.strip_prefix(&self.root).and_then(|rest| rest.strip_prefix('/'));
        inside.unwrap_or(path).to_owned()
    }
}

/// The last words of Claude Code: what all of it cost.
fn result(line: &Value) -> Vec<Told> {
    let used = &line["usage"];
    let usage = Usage {
        input_tokens: used["input_tokens"].as_u64(),
        output_tokens: used["output_tokens"].as_u64(),
        cache_read_tokens: used["cache_read_input_tokens"].as_u64(),
        cache_write_tokens: used["cache_creation_input_tokens"].as_u64(),
        request_units: None,
        estimated_cost_usd: line["total_cost_usd"].as_f64(),
    };
    let turns = line["num_turns"].as_u64();
    vec![Told::Used(UsageReport { usage, turns, counts: Counts::Totals })]
}

/// The text of a tool's result: a string, or blocks of which the texts count.
fn plain_content(content: &Value) -> Value {
    match content.as_array() {
        Some(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            Value::String(head(&texts.join("\n")))
        }
        None => content.as_str().map_or_else(|| content.clone(), |text| Value::String(head(text))),
    }
}

fn event(kind: EventKind<'static>) -> Told {
    Told::Event(AgentEvent::now(kind))
}

fn delta_of(text: String) -> EventKind<'static> {
    EventKind::AssistantDelta { text: Cow::Owned(text) }
}

fn message_of(text: String) -> EventKind<'static> {
    EventKind::AssistantMessage { text: Cow::Owned(text) }
}

/// An event of a type that the contract does not have.
pub(super) fn other(mut members: Value) -> Option<Told> {
    members["ts"] = Timestamp::now().to_string().into();
    let kind = members["type"].as_str().unwrap_or_default().to_owned().into();
    let members = Raw::of(&members).ok()?;
    Some(event(EventKind::Other { kind, members }))
}

fn warning(message: String) -> Told {
    event(EventKind::Warning { message: Cow::Owned(message) })
}

fn raw(value: &Value) -> Raw<'static> {
    // A value that was read can be written.
    Raw::of(value).or_else(|_| Raw::of(&Value::Null)).expect("null is JSON")
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn head(text: &str) -> String {
    text.chars().take(PREVIEW).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(translator: &mut Translator, said: &[Value]) -> Vec<Value> {
        let told = said.iter().flat_map(|line| translator.passed(line["type"].as_str().unwrap(), line));
        let mut told: Vec<Told> = told.collect();
        told.extend(translator.rest());
        told.iter()
            .map(|told| match told {
                Told::Event(event) => {
                    let mut text = Vec::new();
                    event.write(&mut text);
                    let mut value: Value = serde_json::from_slice(&text).unwrap();
                    value.as_object_mut().unwrap().remove("ts");
                    value
                }
                Told::Used(report) => {
                    json!({"used": report.usage.input_tokens, "cost": report.usage.estimated_cost_usd})
                }
            })
            .collect()
    }

    #[test]
    fn a_turn_of_claude_becomes_events_and_a_second_beginning_is_not_told() {
        let mut translator = Translator::new("/project");
        let init = json!({"type":"system","subtype":"init","model":"m","session_id":"s-1","claude_code_version":"2.1"});
        let said = [
            init.clone(),
            json!({"type":"stream_event","event":{"delta":{"type":"text_delta","text":"Hi"}}}),
            json!({"type":"stream_event","event":{"delta":{"type":"input_json_delta","partial_json":"{"}}}),
            json!({"type":"assistant","message":{"content":[{"type":"text","text":"Hi"},
                {"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}),
            json!({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1",
                "content":[{"type":"text","text":"a.txt"}]}]}}),
            json!({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"unknown","content":"x"}]}}),
            init,
            json!({"type":"result","num_turns":2,"total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":3}}),
            json!({"type":"rate_limit_event"}),
        ];
        let expected = [
            json!({"type":"run_started","message":"claude 2.1 with m, session s-1","ext":{"agent_session":"s-1"}}),
            json!({"type":"assistant_delta","text":"Hi"}),
            json!({"type":"assistant_message","text":"Hi"}),
            json!({"type":"tool_call","tool_name":"Bash","tool_use_id":"t1","parent_tool_use_id":null,"input":{"command":"ls"}}),
            json!({"type":"tool_result","tool_name":"Bash","tool_use_id":"t1","output":"a.txt","is_error":false}),
            json!({"used":7,"cost":0.5}),
        ];
        assert_eq!(lines(&mut translator, &said), expected);
        assert_eq!(translator.session.as_deref(), Some("s-1"));
    }

    #[test]
    fn a_turn_of_codex_becomes_events_with_files_named_from_the_folder_of_the_work() {
        let mut translator = Translator::new("/project");
        let said = [
            json!({"type":"turn/started","session_id":"th-1"}),
            json!({"type":"item/agentMessage/delta","session_id":"th-1","delta":"Hi"}),
            json!({"type":"item/completed","session_id":"th-1","item":{"type":"agentMessage","text":"Hi"}}),
            json!({"type":"item/started","session_id":"th-1","item":{"type":"commandExecution","id":"i1","command":"ls","cwd":"/project"}}),
            json!({"type":"item/completed","session_id":"th-1","item":{"type":"commandExecution","id":"i1","command":"ls","cwd":"/project","exitCode":2,"aggregatedOutput":"no"}}),
            json!({"type":"item/completed","session_id":"th-1","item":{"type":"fileChange","status":"completed","changes":[{"path":"/project/a/b.txt","kind":{"type":"add"}}]}}),
            json!({"type":"item/completed","session_id":"th-1","item":{"type":"fileChange","status":"declined","changes":[{"path":"/project/c","kind":{"type":"add"}}]}}),
        ];
        let expected = [
            json!({"type":"run_started","message":"codex, session th-1","ext":{"agent_session":"th-1"}}),
            json!({"type":"assistant_delta","text":"Hi"}),
            json!({"type":"assistant_message","text":"Hi"}),
            json!({"type":"command_started","command":"ls"}),
            json!({"type":"tool_call","tool_name":"Bash","tool_use_id":"i1","parent_tool_use_id":null,"input":{"command":"ls","cwd":"/project"}}),
            json!({"type":"command_executed","command":"ls","exit_code":2,"output_preview":"no"}),
            json!({"type":"file_changed","path":"a/b.txt","summary":"add"}),
        ];
        assert_eq!(lines(&mut translator, &said), expected);
    }

    #[test]
    fn what_an_agent_over_acp_says_in_pieces_is_one_message_in_the_end() {
        let mut translator = Translator::new("/project");
        let piece = |text: &str| json!({"type":"acp/assistant","message":{"role":"assistant","content":[{"type":"text","text":text}]}});
        let said = [
            json!({"type":"acp/agent_init","session_id":"a-1","model":"m"}),
            piece("Let "),
            piece("me."),
            json!({"type":"acp/tool_call_start","call_id":"c1","name":"read","args":{"path":"x"}}),
            json!({"type":"acp/tool_call_end","call_id":"c1","name":"read","status":"failed","result":"gone"}),
            piece("Done."),
        ];
        let told = lines(&mut translator, &said);
        let kinds: Vec<&str> = told.iter().map(|one| one["type"].as_str().unwrap()).collect();
        let expected = [
            "run_started",
            "assistant_delta",
            "assistant_delta",
            "assistant_message",
            "tool_call",
            "tool_result",
            "assistant_delta",
            "assistant_message",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            (&told[3]["text"], &told[5]["is_error"], &told[7]["text"]),
            (&json!("Let me."), &json!(true), &json!("Done."))
        );
    }

    #[test]
    fn an_error_of_the_api_has_a_code_that_control_planes_know() {
        let mut translator = Translator::new("/project");
        let line = json!({"type":"assistant","error":"rate_limit","message":{"model":"<synthetic>","content":[{"type":"text","text":"slow down"}]}});
        let told = lines(&mut translator, &[line]);
        assert_eq!(told, [json!({"type":"error","message":"slow down","error_code":"backend_rate_limited"})]);
        assert_eq!(translator.error, Some(("slow down".to_owned(), ErrorCode::BackendRateLimited)));
    }
}
