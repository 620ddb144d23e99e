//! The tools that a configuration gives to scripts.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::keys::Wrong;
use super::sections::positive;
use crate::backends::tools::{ApprovalRule, Repeat, ToolKind, ToolSpec, USUAL_WITHIN};

/// A tool as it is written.
#[derive(Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct Written {
    command: Option<String>,
    mcp: Option<String>,
    tool: Option<String>,
    value: Option<toml::Value>,
    cwd: Option<PathBuf>,
    approval: Option<String>,
    repeat: Option<String>,
    within: Option<String>,
    about: Option<String>,
}

pub(super) fn parse(name: &str, written: Written, folder: &Path) -> Result<ToolSpec, Wrong> {
    let whole = || Wrong::at(&["tools", name]);
    let at = |key: &str| Wrong::at(&["tools", name, key]);
    let Written { command, mcp, tool, value, cwd, approval, repeat, within, about } = written;
    if tool.is_some() && mcp.is_none() {
        return Err(at("tool").why("it names a tool of an MCP server, and there is no `mcp`".to_owned()));
    }
    if cwd.is_some() && value.is_some() {
        return Err(at("cwd").why("a value runs nowhere".to_owned()));
    }
    let filled = |key: &str, command: String| match command.trim().is_empty() {
        true => Err(at(key).why("it is empty".to_owned())),
        false => Ok(command),
    };
    let cwd = cwd.map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
    let kind = match (command, mcp, value) {
        (Some(command), None, None) => ToolKind::Command { command: filled("command", command)?, cwd },
        (None, Some(mcp), None) => {
            ToolKind::Mcp { command: filled("mcp", mcp)?, cwd, tool: tool.unwrap_or_else(|| name.to_owned()) }
        }
        (None, None, Some(value)) => ToolKind::Value(json(value).map_err(|why| at("value").why(why))?),
        (None, None, None) => {
            return Err(whole().why("what is it? `command`, `mcp` or `value` is missing".to_owned()));
        }
        _ => return Err(whole().why("it has more than one of `command`, `mcp` and `value`".to_owned())),
    };
    let approval = match approval.as_deref().unwrap_or("never") {
        "never" => ApprovalRule::Never,
        "always" => ApprovalRule::Always,
        other => {
            return Err(at("approval").why(format!("\"{other}\" is neither \"never\" nor \"always\"")));
        }
    };
    // Whoever did not say that a call may happen twice is asked.
    let repeat = match repeat.as_deref() {
        Some("safe") => Repeat::Safe,
        Some("ask") => Repeat::Ask,
        None if matches!(kind, ToolKind::Value(_)) => Repeat::Safe,
        None => Repeat::Ask,
        Some(other) => {
            return Err(at("repeat").why(format!("\"{other}\" is neither \"safe\" nor \"ask\"")));
        }
    };
    let within = within.as_deref().map_or(Ok(USUAL_WITHIN), positive).map_err(|why| at("within").why(why))?;
    let (name, about) = (name.to_owned(), about.unwrap_or_default());
    Ok(ToolSpec { name, about, kind, approval, repeat, within })
}

/// What a script gets. JSON has no moments and no infinity.
fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("{number} cannot be given to a script"))?,
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(moment) => return Err(format!("write the moment {moment} in quotes")),
        toml::Value::Array(items) => items.into_iter().map(json).collect::<Result<_, _>>()?,
        toml::Value::Table(members) => {
            let member = |(key, value)| json(value).map(|value| (key, value));
            Value::Object(members.into_iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}
