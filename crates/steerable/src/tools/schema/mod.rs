//! Judges a value by a JSON Schema: arguments of tools, structured answers. A subset, bounded, and its complaints are
//! written for whoever has to mend the value.
//!
//! Known: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`,
//! the minima and maxima of lengths, counts and numbers, `multipleOf`, `uniqueItems`, `anyOf`, `oneOf`, `allOf`, `not`, `if`/`then`/`else`,
//! and `$ref` within the schema. Everything else is taken for fulfilled; `pattern` is, because a pattern of a stranger can be
//! made slow.

mod keywords;

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

/// The most that one judgement may look at: what is beyond is a misfit, so that no schema can be made slow.
const MAX_STEPS: usize = 200_000;

/// The most complaints about one value.
const MAX_MISFITS: usize = 8;

/// How deep schemas and values may nest.
const MAX_DEPTH: usize = 64;

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Where: `/items/0/name`, or nothing for the whole value.
    pub path: String,
    /// What: `must be a string`.
    pub problem: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "it {}", self.problem),
            path => write!(f, "`{path}` {}", self.problem),
        }
    }
}

/// Judges `value` by `schema`.
///
/// # Errors
/// What is wrong with the value, or with the schema; at most eight things.
pub fn check(schema: &RawValue, value: &Value) -> Result<(), Vec<Misfit>> {
    match serde_json::from_str::<Value>(schema.get()) {
        Ok(schema) => check_value(&schema, value),
        Err(error) => Err(vec![Misfit {
            path: String::new(),
            problem: format!("cannot be judged, because its schema is no JSON: {error}"),
        }]),
    }
}

/// The same for a schema that was read already.
///
/// # Errors
/// As those of [`check`].
pub fn check_value(schema: &Value, value: &Value) -> Result<(), Vec<Misfit>> {
    let mut judge = Judge { root: schema, steps: 0, depth: 0, path: String::new(), misfits: Vec::new() };
    judge.judge(schema, value);
    if judge.misfits.is_empty() { Ok(()) } else { Err(judge.misfits) }
}

/// Whether a text can be the schema of a tool's arguments: an object that describes an object, or says nothing about that.
#[must_use]
pub fn describes_object(schema: &Value) -> bool {
    match schema.as_object().map(|members| members.get("type")) {
        Some(None) => true,
        Some(Some(Value::String(kind))) => kind == "object",
        Some(Some(Value::Array(kinds))) => kinds.iter().any(|kind| kind == "object"),
        Some(Some(_)) | None => false,
    }
}

struct Judge<'a> {
    /// What `$ref` starts from.
    root: &'a Value,
    steps: usize,
    depth: usize,
    path: String,
    misfits: Vec<Misfit>,
}

impl<'a> Judge<'a> {
    fn judge(&mut self, schema: &'a Value, value: &Value) {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.depth > MAX_DEPTH {
            self.complain("is too large or too deep to be judged by its schema");
            return;
        }
        self.depth += 1;
        match schema {
            Value::Object(members) => self.keywords(members, value),
            Value::Bool(false) => self.complain("is not allowed"),
            // `true` and whatever is no schema say nothing.
            Value::Bool(true) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
        }
        self.depth -= 1;
    }

    fn complain(&mut self, problem: impl Into<String>) {
        if self.misfits.len() < MAX_MISFITS {
            self.misfits.push(Misfit { path: self.path.clone(), problem: problem.into() });
        }
    }

    /// Judges a part of the value, whose name is added to the path meanwhile.
    fn judge_at(&mut self, name: &str, schema: &'a Value, value: &Value) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        self.judge(schema, value);
        self.path.truncate(length);
    }

    /// What is wrong with the value by another schema, without complaining yet.
    fn trial(&mut self, schema: &'a Value, value: &Value) -> Vec<Misfit> {
        let kept = std::mem::take(&mut self.misfits);
        self.judge(schema, value);
        std::mem::replace(&mut self.misfits, kept)
    }
}

#[cfg(test)]
mod tests;
