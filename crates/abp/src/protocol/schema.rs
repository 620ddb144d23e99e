//! The contract as JSON Schemas, for those who check with other tools.
//!
//! The schemas say what we read: what may be missing is not required, what may be unknown is not listed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::ask::{Answer, Ask, Offer};
use super::capability::Manifest;
use super::code::ErrorCode;
use super::hello::{BackendIdentity, Hello, Mode};
use super::order::WorkOrder;
use super::received::{Artifact, Outcome, Verification};
use super::time::Timestamp;
use super::usage::Usage;
use crate::receipt::{Meta, Signature};

/// Every schema, by the name of its file, as text that ends with a newline.
#[must_use]
pub fn all() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("work_order.schema.json", of::<WorkOrder>(Partial::Yes)),
        ("receipt.schema.json", of::<Receipt>(Partial::No)),
        ("event.schema.json", of::<Event>(Partial::No)),
        ("envelope.schema.json", of::<Message>(Partial::No)),
    ])
}

/// Whether everything may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Partial {
    Yes,
    No,
}

fn of<T: JsonSchema>(partial: Partial) -> String {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    loosen(&mut value, partial);
    // Another crate of the same build may have maps that keep another order.
    value.sort_all_objects();
    // A value of our own making can always be printed.
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    format!("{text}\n")
}

/// Takes back what the derived schemas say too strictly: numbers have no format of ours, and in a work order, wherever it
/// is, nothing is required and everything may be null.
fn loosen(value: &mut Value, partial: Partial) {
    match value {
        Value::Object(members) => {
            if partial == Partial::Yes {
                members.remove("required");
                if let Some(Value::Object(properties)) = members.get_mut("properties") {
                    properties.values_mut().for_each(or_null);
                }
            }
            if members.get("format").and_then(Value::as_str).is_some_and(|format| format != "date-time") {
                members.remove("format");
            }
            for (name, member) in members {
                match name.as_str() {
                    // Who needs something must say what.
                    "Requirement" => member["required"] = json!(["capability"]),
                    name if ORDER.contains(&name) => loosen(member, Partial::Yes),
                    _ => loosen(member, partial),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| loosen(item, partial)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The definitions that a work order consists of.
const ORDER: [&str; 7] =
    ["WorkOrder", "Workspace", "Context", "Snippet", "PolicyProfile", "Requirements", "RuntimeConfig"];

fn or_null(schema: &mut Value) {
    if let Some(Value::String(one)) = schema.get("type") {
        schema["type"] = json!([one, "null"]);
    } else if schema.get("$ref").is_some() {
        let inner = schema.take();
        *schema = json!({ "anyOf": [inner, { "type": "null" }] });
    }
}

/// The policy profile, as its schema is written; the profile itself lives in the policy crate.
#[derive(JsonSchema)]
#[schemars(rename = "PolicyProfile")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct Profile {
    /// Only these tools may be called; empty restricts nothing.
    allowed_tools: Vec<String>,
    /// These tools may not be called.
    disallowed_tools: Vec<String>,
    /// These files may not be read.
    deny_read: Vec<String>,
    /// These files may not be written.
    deny_write: Vec<String>,
    /// Only these hosts may be reached; empty restricts nothing.
    allow_network: Vec<String>,
    /// These hosts may not be reached.
    deny_network: Vec<String>,
    /// These tools may be called once a person agrees.
    require_approval_for: Vec<String>,
}

/// A receipt as it is in its file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Receipt {
    /// Which run, when, by which contract.
    meta: Meta,
    /// By whom.
    backend: BackendIdentity,
    /// Who can do what.
    capabilities: Manifest,
    /// How the vendor's messages were treated; `mapped` if it is missing.
    mode: Option<Mode>,
    /// What the vendor counted, and what the control plane added.
    usage_raw: Value,
    /// What was counted.
    usage: Usage,
    /// What happened.
    trace: Vec<Event>,
    /// What was left behind.
    artifacts: Vec<Artifact>,
    /// What was checked.
    verification: Verification,
    /// How it ended.
    outcome: Outcome,
    /// The SHA-256 of the canonical spelling.
    receipt_sha256: Option<String>,
    /// Who signed it.
    signature: Option<Signature>,
}

/// An event: a type that the contract has needs its members, any other only a time and a type.
struct Event;

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "AgentEvent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = json!({ "type": "string" });
        let optional = json!({ "type": ["string", "null"] });
        let code = generator.subschema_for::<Option<ErrorCode>>().to_value();
        let kinds = [
            ("run_started", json!({ "message": text }), vec!["message"]),
            ("run_completed", json!({ "message": text }), vec!["message"]),
            ("warning", json!({ "message": text }), vec!["message"]),
            ("error", json!({ "message": text, "error_code": code }), vec!["message"]),
            ("assistant_delta", json!({ "text": text }), vec!["text"]),
            ("assistant_message", json!({ "text": text }), vec!["text"]),
            (
                "tool_call",
                json!({ "tool_name": text, "tool_use_id": optional, "parent_tool_use_id": optional, "input": true }),
                vec!["tool_name", "input"],
            ),
            (
                "tool_result",
                json!({ "tool_name": text, "tool_use_id": optional, "output": true, "is_error": { "type": "boolean" } }),
                vec!["tool_name", "output", "is_error"],
            ),
            ("file_changed", json!({ "path": text, "summary": text }), vec!["path", "summary"]),
            (
                "command_executed",
                json!({
                    "command": text,
                    "exit_code": { "type": ["integer", "null"], "minimum": i32::MIN, "maximum": i32::MAX },
                    "output_preview": optional,
                }),
                vec!["command"],
            ),
        ];
        let rules: Vec<Value> = kinds
            .into_iter()
            .map(|(kind, properties, required)| {
                json!({
                    "if": { "properties": { "type": { "const": kind } } },
                    "then": { "properties": properties, "required": required },
                })
            })
            .collect();
        let ts = generator.subschema_for::<Timestamp>().to_value();
        json_schema!({
            "description": "What a backend reports while it works; a type that is unknown is kept as it is.",
            "type": "object",
            "properties": {
                "ts": ts,
                "type": { "type": "string" },
                "ext": {
                    "description": "`raw_message` in it is the vendor's own message.",
                    "type": ["object", "null"],
                },
            },
            "required": ["ts", "type"],
            "allOf": rules,
        })
    }
}

/// One line of the conversation.
struct Message;

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Envelope".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = json!({ "type": "string" });
        let optional = json!({ "type": ["string", "null"] });
        let seq = json!({ "type": "integer", "minimum": 0 });
        let order = generator.subschema_for::<WorkOrder>().to_value();
        let offer = generator.subschema_for::<Option<Offer>>().to_value();
        let event = generator.subschema_for::<Event>().to_value();
        let code = generator.subschema_for::<Option<ErrorCode>>().to_value();
        let whole = |t: &str, schema: Schema| json!({ "properties": { "t": { "const": t } }, "required": ["t"], "allOf": [schema.to_value()] });
        let hello = whole("hello", generator.subschema_for::<Hello>());
        let ask = whole("ask", generator.subschema_for::<Ask<'static>>());
        let answer = whole("answer", generator.subschema_for::<Answer>());
        let message = |t: &str, members: Value, required: &[&str]| {
            let mut properties = members;
            properties["t"] = json!({ "const": t });
            let required: Vec<&str> = std::iter::once("t").chain(required.iter().copied()).collect();
            json!({ "properties": properties, "required": required })
        };
        json_schema!({
            "description": "One line of the conversation between a control plane and a backend.",
            "type": "object",
            "anyOf": [
                hello,
                message("run", json!({ "id": text, "work_order": order, "outrigger": offer }), &["id", "work_order"]),
                message("event", json!({ "ref_id": text, "event": event }), &["ref_id", "event"]),
                // A control plane takes a receipt with gaps: what it saw itself counts.
                message("final", json!({ "ref_id": text, "receipt": { "type": "object" } }), &["ref_id", "receipt"]),
                message("fatal", json!({ "ref_id": optional, "error": text, "error_code": code }), &["error"]),
                message("cancel", json!({ "ref_id": text, "reason": optional }), &["ref_id"]),
                message("steer", json!({ "ref_id": text, "text": text }), &["ref_id", "text"]),
                message("ping", json!({ "seq": seq }), &["seq"]),
                message("pong", json!({ "seq": seq }), &["seq"]),
                ask,
                answer,
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, text) in all() {
            let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(committed == text, "schemas/{name} differs from the types; run `cargo xtask schema`");
        }
    }
}
