//! What an agent says during a turn, as events of ours. Pure.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::options::Options;
use crate::provider::SlashCommand;

/// How many tools may be open at once before the oldest words about one are forgotten.
const OPEN_TOOLS: usize = 1024;

/// What an update means.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Objects to pass on.
    Pass(Vec<String>),
    /// What a prompt may begin with.
    Commands(Vec<SlashCommand>),
    /// The agent is in this mode now.
    Mode(String),
    /// This can be chosen now.
    Options(Box<Options>),
    /// So many tokens of so many are used.
    Usage { used: u64, size: u64 },
    /// Nothing for the host.
    Nothing,
}

/// The tools that are being used: what an update of one leaves out was said before.
#[derive(Default)]
pub(super) struct Tools {
    open: HashMap<String, Tool>,
}

#[derive(Clone, Default)]
struct Tool {
    name: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    args: Option<Box<RawValue>>,
}

/// A `session/update`, as far as we look at it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    entries: Option<&'a RawValue>,
    #[serde(borrow, default)]
    available_commands: Option<&'a RawValue>,
    #[serde(borrow, default)]
    current_mode_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    config_options: Option<&'a RawValue>,
    #[serde(default)]
    used: Option<Value>,
    #[serde(default)]
    size: Option<Value>,
}

/// A tool call, new or changed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolWords<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(borrow, default)]
    raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    locations: Option<&'a RawValue>,
    #[serde(rename = "_meta", default)]
    meta: Option<Value>,
}

/// Understands an update. `family` is `cursor` or `acp`. What cannot be understood is not passed on.
pub(super) fn hear(family: &str, update: &RawValue, tools: &mut Tools) -> Heard {
    let Ok(read) = serde_json::from_str::<Update<'_>>(update.get()) else { return Heard::Nothing };
    match &*read.session_update {
        "agent_message_chunk" => {
            let Some(content) = read.content else { return Heard::Nothing };
            let content = one_line(content);
            pass(format!(
                r#"{{"type":"{family}/assistant","message":{{"role":"assistant","content":[{content}]}}}}"#
            ))
        }
        "agent_thought_chunk" => match read.content.and_then(text_of) {
            Some(text) => pass(format!(r#"{{"type":"{family}/thinking","text":{}}}"#, Value::from(text))),
            None => Heard::Nothing,
        },
        "tool_call" | "tool_call_update" => tools.hear(family, update),
        "plan" => {
            let entries = read.entries.map_or(Cow::Borrowed("[]"), one_line);
            pass(format!(r#"{{"type":"{family}/plan","entries":{entries}}}"#))
        }
        "available_commands_update" => {
            Heard::Commands(read.available_commands.map(commands).unwrap_or_default())
        }
        "current_mode_update" => match read.current_mode_id {
            Some(mode) => Heard::Mode(mode.into_owned()),
            None => Heard::Nothing,
        },
        "config_option_update" => {
            let config = read.config_options.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
            Heard::Options(Box::new(Options::from_config(config.as_ref())))
        }
        "usage_update" => match (read.used.as_ref().and_then(whole), read.size.as_ref().and_then(whole)) {
            (Some(used), Some(size)) if size > 0 => Heard::Usage { used, size },
            _ => Heard::Nothing,
        },
        // What we said ourselves, and what is of no use to a host.
        "user_message_chunk" | "session_info_update" => Heard::Nothing,
        other => pass(renamed(family, other, update)),
    }
}

impl Tools {
    fn hear(&mut self, family: &str, update: &RawValue) -> Heard {
        let Ok(words) = serde_json::from_str::<ToolWords<'_>>(update.get()) else { return Heard::Nothing };
        let mut tool = self.open.remove(&*words.tool_call_id).unwrap_or_default();
        let own_name =
            words.meta.as_ref().and_then(|meta| meta.pointer("/claudeCode/toolName")).and_then(Value::as_str);
        tool.name = words.name.or_else(|| own_name.map(ToOwned::to_owned)).or(tool.name);
        tool.title = words.title.or(tool.title);
        tool.kind = words.kind.or(tool.kind);
        tool.args = words.raw_input.map(ToOwned::to_owned).or(tool.args);
        let status = words.status.unwrap_or_else(|| "in_progress".to_owned());
        let over = matches!(status.as_str(), "completed" | "failed");
        let mut event = format!(r#"{{"type":"{family}/tool_call_{}""#, if over { "end" } else { "start" });
        member(&mut event, "call_id", &Value::from(&*words.tool_call_id).to_string());
        member(&mut event, "name", &Value::from(tool.called()).to_string());
        member(&mut event, "status", &Value::from(status).to_string());
        member(&mut event, "args", &tool.args.as_deref().map_or(Cow::Borrowed("{}"), one_line));
        if let Some(title) = &tool.title {
            member(&mut event, "title", &Value::from(title.as_str()).to_string());
        }
        if let Some(locations) = words.locations {
            member(&mut event, "locations", &one_line(locations));
        }
        // What a tool shows while it runs is as much of a result as there is.
        if let Some(result) = words.raw_output.or(words.content) {
            member(&mut event, "result", &one_line(result));
        }
        event.push('}');
        if !over {
            if self.open.len() >= OPEN_TOOLS {
                self.open.clear();
            }
            self.open.insert(words.tool_call_id.into_owned(), tool);
        }
        pass(event)
    }
}

impl Tools {
    /// Fills in what a question about a tool leaves out and what was said about that tool before.
    pub(super) fn complete(&self, tool_call: &mut Value) {
        let Some(members) = tool_call.as_object_mut() else { return };
        let Some(tool) = members.get("toolCallId").and_then(Value::as_str).and_then(|id| self.open.get(id))
        else {
            return;
        };
        let known = [("name", &tool.name), ("title", &tool.title), ("kind", &tool.kind)];
        for (name, value) in known {
            if let Some(value) = value
                && members.get(name).is_none_or(Value::is_null)
            {
                members.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
        let empty =
            |input: &Value| input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty);
        if members.get("rawInput").is_none_or(empty)
            && let Some(args) = tool.args.as_ref().and_then(|args| serde_json::from_str(args.get()).ok())
        {
            members.insert("rawInput".to_owned(), args);
        }
    }
}

impl Tool {
    fn called(&self) -> String {
        let kind = self.kind.as_ref().filter(|kind| *kind != "other");
        self.name.as_ref().or(kind).or(self.title.as_ref()).cloned().unwrap_or_else(|| "tool".to_owned())
    }
}

fn pass(object: String) -> Heard {
    Heard::Pass(vec![object])
}

fn member(object: &mut String, name: &str, json: &str) {
    object.push_str(",\"");
    object.push_str(name);
    object.push_str("\":");
    object.push_str(json);
}

/// JSON has no line breaks inside its tokens, so that they can all go.
fn one_line(raw: &RawValue) -> Cow<'_, str> {
    if raw.get().contains(['\n', '\r']) {
        Cow::Owned(raw.get().replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(raw.get())
    }
}

/// An object under another type, with everything else it has.
pub(super) fn renamed(family: &str, kind: &str, object: &RawValue) -> String {
    let mut members = match serde_json::from_str(object.get()) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    members.remove("sessionUpdate");
    members.insert("type".to_owned(), Value::from(format!("{family}/{kind}")));
    Value::Object(members).to_string()
}

fn text_of(content: &RawValue) -> Option<String> {
    let content: Value = serde_json::from_str(content.get()).ok()?;
    Some(content.get("text")?.as_str()?.to_owned())
}

fn whole(number: &Value) -> Option<u64> {
    let float = || {
        let number = number.as_f64().filter(|number| (0.0..1e15).contains(number))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and 10^15"
        )]
        Some(number as u64)
    };
    number.as_u64().or_else(float)
}

fn commands(raw: &RawValue) -> Vec<SlashCommand> {
    let list: Vec<Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut commands: Vec<SlashCommand> = Vec::new();
    for command in list {
        let Some(name) = command.get("name").and_then(Value::as_str) else { continue };
        let name = name.trim_start_matches('/');
        if commands.iter().any(|known| known.name == name) {
            continue;
        }
        let text = |pointer: &str| command.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        commands.push(SlashCommand {
            name: name.to_owned(),
            description: text("/description").unwrap_or_default(),
            argument_hint: text("/input/hint").filter(|hint| !hint.is_empty()),
            source: "builtin",
        });
    }
    commands
}

/// How full a window is, in the words of the host.
pub(super) fn usage_meta(model: Option<&str>, used: u64, size: u64) -> String {
    let used = used.min(size);
    #[expect(clippy::cast_precision_loss, reason = "a percentage with two decimals needs no more")]
    let percentage = (used as f64 / size as f64 * 10_000.0).round() / 100.0;
    json!({ "modelId": model.unwrap_or_default(), "usedTokens": used, "maxTokens": size, "percentage": percentage })
        .to_string()
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
