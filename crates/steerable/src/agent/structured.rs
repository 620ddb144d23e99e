//! An answer that has to be JSON of a certain shape.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::schema;

/// The most problems that a model is told at once.
const MOST_PROBLEMS: usize = 10;

/// Reads an answer; what is wrong with it is said in words for the model.
pub(super) fn read(schema: &RawValue, text: &str) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(unfenced(text)).map_err(|error| format!("it is not JSON: {error}"))?;
    match schema::check(schema, &value) {
        Ok(()) => Ok(value),
        Err(misfits) => {
            let told: Vec<String> = misfits.iter().take(MOST_PROBLEMS).map(ToString::to_string).collect();
            Err(told.join("; "))
        }
    }
}

/// What the model is told about an answer that does not fit.
pub(super) fn repair(problem: &str) -> String {
    format!(
        "Your answer does not fit the JSON Schema that it has to fit: {problem}. \
         Answer again with nothing but the corrected JSON."
    )
}

/// Models like to put JSON into a code fence, however often they are told not to.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    match inner.split_once('\n') {
        Some((word, body)) if word.trim().chars().all(|c| c.is_ascii_alphanumeric()) => body.trim(),
        Some(_) | None => inner.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Box<RawValue> {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        RawValue::from_string(schema.to_string()).unwrap()
    }

    #[test]
    fn json_is_read_also_out_of_a_fence() {
        for text in [
            r#"{"n":1}"#,
            "  {\"n\":1}\n",
            "```json\n{\"n\":1}\n```",
            "```\n{\"n\":1}\n```",
            "```{\"n\":1}```",
        ] {
            assert_eq!(read(&schema(), text), Ok(json!({"n": 1})), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert!(read(&schema(), "Here it is: 1").unwrap_err().starts_with("it is not JSON"));
        assert!(read(&schema(), "{}").unwrap_err().contains('n'));
        assert!(read(&schema(), r#"{"n":"1"}"#).unwrap_err().contains('n'));
    }
}
