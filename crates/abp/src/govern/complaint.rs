//! Numbers in a report of usage that are no amounts. They count as nothing or as everything; somebody should know.

use serde_json::{Map, Value};

const AMOUNTS: [&str; 7] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "request_units",
    "estimated_cost_usd",
    "turns",
];

/// The longest report that is looked at for this, in bytes.
const MAX_REPORT_BYTES: usize = 64 * 1024;

/// What is wrong with the numbers in `text`, an object with amounts in it or in its member `usage`.
pub(super) fn complaints(text: &str) -> Vec<String> {
    if text.len() > MAX_REPORT_BYTES {
        return Vec::new();
    }
    let Ok(Value::Object(report)) = serde_json::from_str(text) else { return Vec::new() };
    let inner = report.get("usage").and_then(Value::as_object);
    [Some(&report), inner].into_iter().flatten().flat_map(odd).collect()
}

fn odd(report: &Map<String, Value>) -> Vec<String> {
    let complaint = |name: &&str| {
        let value = report.get(*name)?;
        let counted = match value {
            Value::Null => return None,
            Value::Number(number) => match number.as_f64() {
                Some(amount) if amount < 0.0 => "nothing",
                Some(amount) if amount >= u64::MAX as f64 => "the most there is",
                Some(_) => return None,
                None => "nothing",
            },
            Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => "nothing",
        };
        let shown: String = value.to_string().chars().take(40).collect();
        Some(format!("the reported `{name}` is {shown}, which is no amount; it counts as {counted}"))
    };
    AMOUNTS.iter().filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_amounts_are_named() {
        let table: [(&str, &[&str]); 7] = [
            (r#"{"input_tokens":5,"output_tokens":1.5,"turns":null}"#, &[]),
            (
                r#"{"input_tokens":-5}"#,
                &["the reported `input_tokens` is -5, which is no amount; it counts as nothing"],
            ),
            (
                r#"{"usage":{"estimated_cost_usd":1e300}}"#,
                &[
                    "the reported `estimated_cost_usd` is 1e+300, which is no amount; it counts as the most there is",
                ],
            ),
            (
                r#"{"turns":"7"}"#,
                &[r#"the reported `turns` is "7", which is no amount; it counts as nothing"#],
            ),
            (r#"{"turns":[]}"#, &["the reported `turns` is [], which is no amount; it counts as nothing"]),
            (r#"{"usage":-1,"unknown":-1}"#, &[]),
            ("not json", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(complaints(text), expected, "{text}");
        }
    }
}
