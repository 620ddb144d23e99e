//! The schema of manifests, and a validator for exactly the words that it uses. Every violation is reported.

use std::collections::HashSet;
use std::sync::LazyLock;

use outrigger_policy::canonical::{Spelling, canonical};
use serde_json::{Map, Value};

use super::finding::{Finding, code, quoted};
use super::nearest::nearest;
use super::pattern;
use super::strict::pointer;

/// The schema, as a file that other tools can use.
pub const SCHEMA: &str = include_str!("sep_manifest.schema.json");

/// So many violations are told one by one. A file of garbage has as many as it has bytes.
pub const MAX_VIOLATIONS: usize = 500;

static PARSED: LazyLock<Value> = LazyLock::new(|| {
    // It is part of this program, and a test reads it.
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
});

/// All violations of the schema, in the order of the schema.
pub(super) fn validate(value: &Value) -> Vec<Finding> {
    let mut check = Check { findings: Vec::new(), untold: 0 };
    check.value(value, &PARSED, "");
    if check.untold > 0 {
        let message = format!("{} more violations are not told", check.untold);
        check.findings.push(Finding::error(code::SCHEMA, "", message));
    }
    check.findings
}

struct Check {
    findings: Vec<Finding>,
    untold: usize,
}

impl Check {
    fn tell(&mut self, finding: impl FnOnce() -> Finding) {
        match self.findings.len() < MAX_VIOLATIONS {
            true => self.findings.push(finding()),
            false => self.untold += 1,
        }
    }

    fn value(&mut self, value: &Value, schema: &Value, path: &str) {
        if let Some(wanted) = schema["type"].as_str()
            && !has_type(value, wanted)
        {
            // What else the schema says is about values of the right type.
            return self.tell(|| wrong_type(value, wanted, path));
        }
        self.listed(value, schema, path);
        match value {
            Value::String(text) => self.text(text, schema, path),
            Value::Number(_) => self.number(value, schema, path),
            Value::Array(items) => self.array(items, schema, path),
            Value::Object(members) => self.object(members, schema, path),
            Value::Null | Value::Bool(_) => {}
        }
        for part in list(&schema["allOf"]) {
            self.value(value, part, path);
        }
        if schema.get("if").is_some_and(|condition| holds(value, condition))
            && let Some(then) = schema.get("then")
        {
            self.value(value, then, path);
        }
    }

    fn listed(&mut self, value: &Value, schema: &Value, path: &str) {
        let allowed: Vec<&str> = list(&schema["enum"]).iter().filter_map(Value::as_str).collect();
        if schema.get("enum").is_some() && !list(&schema["enum"]).contains(value) {
            self.tell(|| {
                let finding = violation("enum", path, format!("{} is not allowed here", shown(value)));
                let near = value.as_str().and_then(|word| nearest(word, allowed.iter().copied()));
                finding.suggest(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", allowed.join(", ")),
                })
            });
        }
        if let Some(only) = schema.get("const")
            && only != value
        {
            self.tell(|| {
                violation("const", path, format!("must be {}, and is {}", shown(only), shown(value)))
            });
        }
    }

    fn text(&mut self, text: &str, schema: &Value, path: &str) {
        // Lengths are in code points.
        let length = text.chars().count() as u64;
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            let message = format!("has {length} characters; {least} are the least");
            self.tell(|| violation("minLength", path, message));
        }
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            let message = format!("has {length} characters; {most} are the most");
            self.tell(|| violation("maxLength", path, message));
        }
        if let Some(pattern) = schema["pattern"].as_str().and_then(pattern::find)
            && !(pattern.matches)(text)
        {
            let message = format!("{} is not of the right form", quoted(text));
            self.tell(|| {
                violation("pattern", path, message).suggest(format!("it must be {}", pattern.meaning))
            });
        }
    }

    fn number(&mut self, value: &Value, schema: &Value, path: &str) {
        let number = value.as_f64().unwrap_or(f64::NAN);
        if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
            self.tell(|| violation("minimum", path, format!("is {value}; {least} is the least")));
        }
        if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
            self.tell(|| violation("maximum", path, format!("is {value}; {most} is the most")));
        }
    }

    fn array(&mut self, items: &[Value], schema: &Value, path: &str) {
        let length = items.len() as u64;
        if let Some(least) = schema["minItems"].as_u64().filter(|least| length < *least) {
            self.tell(|| violation("minItems", path, format!("has {length} items; {least} are the least")));
        }
        if let Some(most) = schema["maxItems"].as_u64().filter(|most| length > *most) {
            self.tell(|| violation("maxItems", path, format!("has {length} items; {most} are the most")));
        }
        if schema["uniqueItems"] == Value::Bool(true) {
            let mut seen = HashSet::new();
            for item in items.iter().filter(|item| !seen.insert(spelled(item))) {
                let message = format!("{} is there more than once", shown(item));
                self.tell(|| violation("uniqueItems", path, message).suggest("leave the second one out"));
            }
        }
        if let Some(schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.value(item, schema, &format!("{path}/{index}"));
            }
        }
    }

    fn object(&mut self, members: &Map<String, Value>, schema: &Value, path: &str) {
        let length = members.len() as u64;
        if let Some(most) = schema["maxProperties"].as_u64().filter(|most| length > *most) {
            self.tell(|| {
                violation("maxProperties", path, format!("has {length} members; {most} are the most"))
            });
        }
        let known = schema["properties"].as_object();
        for needed in list(&schema["required"]).iter().filter_map(Value::as_str) {
            if !members.contains_key(needed) {
                self.tell(|| missing(needed, members, known, path));
            }
        }
        for (key, value) in members {
            let member = pointer(path, key);
            if let Some(schema) = schema.get("propertyNames") {
                self.name(key, schema, &member);
            }
            match (known.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
                (Some(schema), _) => self.value(value, schema, &member),
                (None, Some(Value::Bool(false))) => self.tell(|| stranger(key, known, &member)),
                (None, Some(schema @ Value::Object(_))) => self.value(value, schema, &member),
                (None, _) => {}
            }
        }
    }

    fn name(&mut self, key: &str, schema: &Value, path: &str) {
        let known = schema["pattern"].as_str().and_then(pattern::find);
        if let Some(pattern) = known.filter(|pattern| !(pattern.matches)(key)) {
            let message = format!("{} is not of the right form for a name", quoted(key));
            self.tell(|| {
                violation("propertyNames", path, message).suggest(format!("it must be {}", pattern.meaning))
            });
        }
    }
}

/// Whether a schema holds, without a word about why not.
fn holds(value: &Value, schema: &Value) -> bool {
    let mut check = Check { findings: Vec::new(), untold: 0 };
    check.value(value, schema, "");
    check.findings.is_empty()
}

fn violation(keyword: &'static str, path: &str, message: String) -> Finding {
    Finding::error(code::SCHEMA, path, message).keyword(keyword)
}

fn wrong_type(value: &Value, wanted: &str, path: &str) -> Finding {
    let article = match wanted.starts_with(['a', 'i', 'o']) {
        true => "an",
        false => "a",
    };
    let message = format!("must be {article} {wanted}, and is {}", shown(value));
    let finding = violation("type", path, message);
    match (wanted, value) {
        ("integer", Value::String(text)) if text.parse::<u64>().is_ok() => {
            finding.suggest(format!("write {text} without quotes"))
        }
        ("boolean", Value::String(text)) if text == "true" || text == "false" => {
            finding.suggest(format!("write {text} without quotes"))
        }
        ("array", Value::String(_)) => finding.suggest("put it into brackets: [\"…\"]"),
        _ => finding,
    }
}

fn missing(
    needed: &str,
    members: &Map<String, Value>,
    known: Option<&Map<String, Value>>,
    path: &str,
) -> Finding {
    let finding = violation("required", path, format!("`{needed}` is missing"));
    let strangers = members.keys().filter(|key| known.is_some_and(|known| !known.contains_key(*key)));
    match nearest(needed, strangers.take(64).map(String::as_str)) {
        Some(near) => finding.suggest(format!("{} may be meant to be it", quoted(near))),
        None => finding.suggest(format!("add `{needed}`")),
    }
}

fn stranger(key: &str, known: Option<&Map<String, Value>>, path: &str) -> Finding {
    let finding = violation("additionalProperties", path, format!("{} is not known here", quoted(key)));
    let known: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    finding.suggest(match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    })
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // 1000.0 and 1e4 are integers.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as it is compared: `1` and `1.0` are the same.
fn spelled(value: &Value) -> String {
    canonical(value, Spelling::Rfc8785).unwrap_or_else(|_| value.to_string())
}

/// A value for a message. Only its beginning is ever spelled.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object with {} members", members.len()),
    }
}
