//! Takes secrets out of what is recorded. Texts without any, which are nearly all, are looked at once and not copied.

mod name;
mod pattern;

use std::borrow::Cow;

use serde_json::{Map, Value};

/// What stands where a secret was.
pub const MASK: &str = "***";

/// A text without the secrets in it: bearer tokens, keys of model providers, GitHub, GitLab, Slack, AWS and Google, PEM blocks.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    let Some(first) = pattern::find(text, 0) else { return Cow::Borrowed(text) };
    let mut safe = String::with_capacity(text.len());
    let mut next = Some(first);
    let mut copied = 0;
    while let Some(secret) = next {
        safe.push_str(&text[copied..secret.start]);
        safe.push_str(MASK);
        copied = secret.end;
        next = pattern::find(text, copied);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

/// The same for every text in a value; and a member whose name says that it is a secret is one as a whole.
pub fn value(value: &mut Value) {
    walk(value, &mut |content: &mut String| {
        if let Cow::Owned(safe) = text(content) {
            *content = safe;
        }
    });
}

/// Replaces members by their names, and has every other text looked at by `each`.
pub(super) fn members(members: &mut Map<String, Value>, each: &mut impl FnMut(&mut String)) {
    for (name, value) in members {
        match name::judge(name) {
            name::Verdict::Plain => walk(value, each),
            name::Verdict::Secret if matches!(value, Value::Null | Value::Bool(_)) => {}
            // How many tokens there are is no secret; what the token is, is.
            name::Verdict::Token if matches!(value, Value::Null | Value::Bool(_) | Value::Number(_)) => {}
            name::Verdict::Secret | name::Verdict::Token => *value = Value::String(MASK.to_owned()),
        }
    }
}

fn walk(value: &mut Value, each: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, each)),
        Value::Object(object) => members(object, each),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_named_like_secrets_are_masked_at_any_depth() {
        let mut found = json!({
            "headers": [{"Authorization": "Basic abc", "Set-Cookie": ["a=b"], "x-api-key": "k", "accept": "*/*"}],
            "env": {"DB_PASSWORD": "hunter2", "GITHUB_TOKEN": "t", "clientSecret": "s", "PATH": "/bin"},
            "accessToken": {"value": "x"}, "apikey": 12345, "pin": 12345,
        });
        value(&mut found);
        assert_eq!(
            found,
            json!({
                "headers": [{"Authorization": "***", "Set-Cookie": "***", "x-api-key": "***", "accept": "*/*"}],
                "env": {"DB_PASSWORD": "***", "GITHUB_TOKEN": "***", "clientSecret": "***", "PATH": "/bin"},
                "accessToken": "***", "apikey": "***", "pin": 12345,
            })
        );
    }

    #[test]
    fn members_that_only_look_like_secrets_stay() {
        let kept = json!({
            "promptTokens": 12, "total_tokens": 3, "token": 5, "maxTokens": null, "hasPassword": true,
            "tokenizer": "bpe", "author": "ada", "authority": "x", "secretary": "y", "passwordless": "z",
            "cookiecutter": "template", "key": "value", "keyboard": "qwerty", "monkey": "m", "passenger": "p",
            "pwd": "/home", "compass": "north", "authorName": "n",
        });
        let mut found = kept.clone();
        value(&mut found);
        assert_eq!(found, kept);
    }

    #[test]
    fn a_text_without_secrets_is_not_copied() {
        assert!(matches!(text("the quick brown fox, sk-, Bearer, AKIA and ghp_ at rest"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_secret_of_a_text_is_masked_and_nothing_else() {
        let seen = text(
            "a sk-proj-abcdefgh12345678 b AKIAIOSFODNN7EXAMPLE, \u{e9} ghp_0123456789abcdefghijABCDEFGHIJ456789.",
        );
        assert_eq!(seen, "a *** b ***, \u{e9} ***.");
    }
}
