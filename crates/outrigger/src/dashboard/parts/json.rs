//! JSON for people: indented, cut where it becomes long, and never trusted to be JSON.

use maud::{Markup, html};
use serde_json::Value;

use super::say::{beginning, bytes};

/// The most of a value that is shown.
pub(in super::super) const SHOWN: usize = 16 * 1024;

/// A value, or a text that was meant to be one.
pub(in super::super) fn viewer(text: &str) -> Markup {
    let pretty = pretty(text);
    let (shown, cut) = beginning(&pretty, SHOWN);
    html! {
        pre.code tabindex="0" { code { (shown) @if cut { "…" } } }
        @if cut { p.hint { "The first " (bytes(SHOWN as u64)) " of " (bytes(pretty.len() as u64)) "." } }
    }
}

/// Indented, if it is JSON; a JSON string with several lines as those lines; else as it is.
pub(in super::super) fn pretty(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::String(inner)) if inner.contains('\n') => inner,
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()),
        Err(_) => text.to_owned(),
    }
}

/// What stands between the parentheses of a call.
pub(in super::super) fn arguments(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_what_is_not_json_stays_and_is_escaped() {
        assert_eq!(pretty(r#"{"a":[1]}"#), "{\n  \"a\": [\n    1\n  ]\n}");
        assert_eq!(pretty(r#""a\nb""#), "a\nb");
        assert_eq!(pretty("{<b>"), "{<b>");
        let shown = viewer("\"<script>alert(1)</script>\"").into_string();
        assert!(!shown.contains("<script>"), "{shown}");
        assert_eq!(arguments(&serde_json::json!(["a", {"b": 1}])), r#""a", {"b":1}"#);
    }

    #[test]
    fn a_value_is_shown_whole_at_the_limit_and_cut_one_past_it() {
        assert!(!viewer(&"x".repeat(SHOWN)).into_string().contains("The first"));
        assert!(viewer(&"x".repeat(SHOWN + 1)).into_string().contains("The first"));
    }
}
