//! The arguments of a call: judged by the tool's own schema, then read member by member.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::schema;
use crate::chat::{ToolResult, ToolSpec};

/// Arguments that fit their schema.
#[derive(Debug)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads the arguments of a call. A misfit is a result that tells the model what to mend.
    pub(super) fn read(spec: &ToolSpec, arguments: &RawValue) -> Result<Self, ToolResult> {
        let name = &spec.name;
        let value: Value = serde_json::from_str(arguments.get())
            .map_err(|error| ToolResult::failure(format!("the arguments of {name} are no JSON: {error}")))?;
        match schema::check(&spec.parameters, &value) {
            Ok(()) => {}
            Err(misfits) => {
                let told: Vec<String> = misfits.iter().map(ToString::to_string).collect();
                return Err(ToolResult::failure(format!(
                    "the arguments of {name} do not fit: {}",
                    told.join("; ")
                )));
            }
        }
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ToolResult::failure(format!("the arguments of {name} must be an object"))),
        }
    }

    /// A string that the schema requires; empty if it does not.
    pub(super) fn string(&self, name: &str) -> &str {
        self.optional_string(name).unwrap_or_default()
    }

    pub(super) fn optional_string(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A whole number, or `otherwise` where none is given.
    pub(super) fn number(&self, name: &str, otherwise: u64) -> u64 {
        match self.0.get(name) {
            // A model may write 3.0, which the schema takes for an integer; bounds were judged there too.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the schema has bounds, and a cast from a float saturates"
            )]
            Some(number) => {
                number.as_u64().or_else(|| number.as_f64().map(|n| n as u64)).unwrap_or(otherwise)
            }
            None => otherwise,
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn array(&self, name: &str) -> Vec<Value> {
        self.0.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    pub(super) fn strings(&self, name: &str) -> Vec<String> {
        self.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(super) fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.get(name).and_then(Value::as_object)
    }
}
