//! What the last `result` of a turn means: how the turn ended, and how full the window is.

use serde_json::{Value, json};

use crate::provider::{Failure, FailureCode, Outcome};

/// What was seen of a turn beside its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// A model answered, if only with half of a turn.
    pub(super) answer: bool,
    /// Claude Code's word for what went wrong, from a message that it made up itself.
    pub(super) trouble: Option<String>,
}

/// How the turn ended.
pub(super) fn of(result: &Value, seen: &Seen) -> Outcome {
    if result["is_error"] != true {
        return Outcome::Ended;
    }
    let message = message_of(result);
    if seen.answer {
        return Outcome::EndedBadly { message };
    }
    let code = code_of(result["api_error_status"].as_u64(), seen.trouble.as_deref().unwrap_or_default());
    let message = match code {
        FailureCode::Auth => format!("{message} (log in with `claude /login`, or set ANTHROPIC_API_KEY)"),
        _ => message,
    };
    Outcome::Failed(Failure::new(code, message))
}

fn message_of(result: &Value) -> String {
    let errors: Vec<&str> =
        result["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (result["result"].as_str(), errors.is_empty()) {
        (Some(text), _) if !text.is_empty() => text.to_owned(),
        (_, false) => errors.join("\n"),
        (_, true) => format!("Claude Code ended with {}", result["subtype"].as_str().unwrap_or("an error")),
    }
}

fn code_of(status: Option<u64>, trouble: &str) -> FailureCode {
    match (status, trouble) {
        (Some(401 | 403), _) => FailureCode::Auth,
        (Some(429), _) => FailureCode::RateLimit,
        (Some(400..=499), _) => FailureCode::InvalidRequest,
        (Some(500..), _) => FailureCode::Server,
        (_, "authentication_failed" | "oauth_org_not_allowed") => FailureCode::Auth,
        (_, "rate_limit") => FailureCode::RateLimit,
        (_, "invalid_request") => FailureCode::InvalidRequest,
        (_, "server_error" | "overloaded") => FailureCode::Server,
        (_, _) => FailureCode::Provider,
    }
}

/// The meta of `contextUsageUpdated` after a turn with `model`; `None` when the result does not tell.
pub(super) fn usage_of(result: &Value, model: Option<&str>) -> Option<String> {
    let total = &result["usage"];
    let mut messages = total["iterations"].as_array().into_iter().flatten();
    let usage = messages.rfind(|step| step["type"] == "message").unwrap_or(total);
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let used = count("input_tokens")
        + count("cache_creation_input_tokens")
        + count("cache_read_input_tokens")
        + count("output_tokens");
    let models = result["modelUsage"].as_object()?;
    let same_counts = |entry: &Value| {
        entry["inputTokens"] == total["input_tokens"] && entry["outputTokens"] == total["output_tokens"]
    };
    let (name, entry) = model
        .and_then(|model| models.get_key_value(model))
        .or_else(|| models.iter().find(|(_, entry)| same_counts(entry)))
        .or_else(|| models.iter().next().filter(|_| models.len() == 1))?;
    meta(name, used, entry["contextWindow"].as_u64()?).map(|meta| meta.to_string())
}

/// The meta of `contextUsageResult`, from the answer of `get_context_usage`.
pub(super) fn usage_in_full(answer: &Value, model: &str) -> Option<String> {
    let name = answer["model"].as_str().unwrap_or(model);
    let mut meta = meta(name, answer["totalTokens"].as_u64()?, answer["maxTokens"].as_u64()?)?;
    meta["isAutoCompactEnabled"] = json!(answer["isAutoCompactEnabled"].as_bool().unwrap_or(false));
    let categories = answer["categories"].as_array().into_iter().flatten();
    let categories = categories
        .filter(|category| category["name"] != "Free space")
        .map(|category| json!({"name": category["name"], "tokens": category["tokens"]}));
    meta["categories"] = categories.collect();
    Some(meta.to_string())
}

fn meta(model: &str, used: u64, max: u64) -> Option<Value> {
    if used == 0 || max == 0 {
        return None;
    }
    let used = used.min(max);
    #[expect(clippy::cast_precision_loss, reason = "windows have millions of tokens, not quadrillions")]
    let percentage = (used as f64 / max as f64 * 10_000.0).round() / 100.0;
    Some(json!({"modelId": model, "usedTokens": used, "maxTokens": max, "percentage": percentage}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(status: Value, trouble: &str) -> FailureCode {
        let result = json!({"is_error": true, "result": "why", "api_error_status": status});
        let seen = Seen { answer: false, trouble: Some(trouble.to_owned()) };
        match of(&result, &seen) {
            Outcome::Failed(failure) => {
                assert!(failure.message.starts_with("why"), "{failure}");
                failure.code
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_of_the_api_has_a_word_for_programs() {
        assert_eq!(failed(json!(401), ""), FailureCode::Auth);
        assert_eq!(failed(json!(429), ""), FailureCode::RateLimit);
        assert_eq!(failed(json!(400), ""), FailureCode::InvalidRequest);
        assert_eq!(failed(json!(500), ""), FailureCode::Server);
        assert_eq!(failed(json!(529), ""), FailureCode::Server);
        assert_eq!(failed(Value::Null, "authentication_failed"), FailureCode::Auth);
        assert_eq!(failed(Value::Null, "server_error"), FailureCode::Server);
        assert_eq!(failed(Value::Null, "a new word"), FailureCode::Provider);
    }

    #[test]
    fn a_turn_that_failed_after_an_answer_ends_badly_and_does_not_fail() {
        let result = json!({"is_error": true, "subtype": "error_max_turns", "errors": ["one", "two"]});
        let seen = Seen { answer: true, trouble: None };
        assert!(matches!(of(&result, &seen), Outcome::EndedBadly { message } if message == "one\ntwo"));
        let result = json!({"is_error": true, "subtype": "error_max_turns"});
        assert!(
            matches!(of(&result, &seen), Outcome::EndedBadly { message } if message.contains("error_max_turns"))
        );
        assert!(matches!(of(&json!({"is_error": false}), &Seen::default()), Outcome::Ended));
    }

    #[test]
    fn the_window_is_filled_by_the_last_message_and_belongs_to_the_model_of_the_turn() {
        let result = json!({
            "usage": {"input_tokens": 9, "output_tokens": 9, "iterations": [
                {"type": "message", "input_tokens": 1},
                {"type": "message", "input_tokens": 100, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 10},
                {"type": "other", "input_tokens": 7}
            ]},
            "modelUsage": {"m": {"contextWindow": 1000}, "side": {"contextWindow": 5}}
        });
        let meta = r#"{"maxTokens":1000,"modelId":"m","percentage":13.3,"usedTokens":133}"#;
        assert_eq!(usage_of(&result, Some("m")).as_deref(), Some(meta));
        assert_eq!(usage_of(&result, Some("unknown")), None, "two models, and neither is it");
        assert!(
            usage_of(&result, Some("side")).unwrap().contains("\"usedTokens\":5"),
            "never more than full"
        );
    }

    #[test]
    fn a_result_that_does_not_tell_gives_nothing() {
        for result in [
            json!({}),
            json!({"usage": {"input_tokens": 0}, "modelUsage": {"m": {"contextWindow": 10}}}),
            json!({"usage": {"input_tokens": 5}, "modelUsage": {"m": {"contextWindow": 0}}}),
            json!({"usage": {"input_tokens": 5}, "modelUsage": {}}),
        ] {
            assert_eq!(usage_of(&result, None), None, "{result}");
        }
    }

    #[test]
    fn the_full_account_leaves_out_what_is_free() {
        let answer = json!({"totalTokens": 50, "maxTokens": 200, "isAutoCompactEnabled": true, "categories": [
            {"name": "Messages", "tokens": 50, "color": "x"}, {"name": "Free space", "tokens": 150}
        ]});
        let meta: Value = serde_json::from_str(&usage_in_full(&answer, "m").unwrap()).unwrap();
        let categories = json!([{"name": "Messages", "tokens": 50}]);
        assert_eq!(
            meta,
            json!({"modelId": "m", "usedTokens": 50, "maxTokens": 200, "percentage": 25.0,
                   "isAutoCompactEnabled": true, "categories": categories})
        );
    }
}
