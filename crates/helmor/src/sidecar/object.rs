//! Objects passed on as text: what an agent says keeps its spelling, and comes under the id of the request.

use std::ops::Range;

/// The words that only the sidecar says of a stream, because they end it.
const TERMINAL: [&str; 3] = ["\"end\"", "\"aborted\"", "\"error\""];

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// An agent, which cannot end a stream: an object that calls itself `end` is called `agent/end` instead, and so on.
    Agent,
    /// The sidecar itself, at another time.
    Sidecar,
}

/// Writes an object with this id as its last member; whatever it had of that name is left out. `false`, and nothing is
/// written, if it is no object.
pub(super) fn write_under(object: &str, speaker: Speaker, quoted_id: &str, into: &mut Vec<u8>) -> bool {
    let object = object.trim();
    let (mut plain, mut count) = (true, 0_usize);
    let end = scan(object, |key, _, value| {
        count += 1;
        plain &= key != "id" && !(key == "type" && speaker.may_not(&object[value]));
    });
    let Some(end) = end else { return false };
    into.reserve(object.len() + quoted_id.len() + 16);
    if plain {
        into.extend_from_slice(&object.as_bytes()[..end]);
    } else {
        count = write_changed(object, speaker, into);
    }
    if count > 0 {
        into.push(b',');
    }
    into.extend_from_slice(b"\"id\":");
    into.extend_from_slice(quoted_id.as_bytes());
    into.push(b'}');
    true
}

impl Speaker {
    fn may_not(self, kind: &str) -> bool {
        self == Self::Agent && TERMINAL.contains(&kind)
    }
}

/// The members that an object may keep, up to its closing brace. Says how many.
fn write_changed(object: &str, speaker: Speaker, into: &mut Vec<u8>) -> usize {
    let mut count = 0;
    into.push(b'{');
    scan(object, |key, member, value| {
        if key == "id" {
            return;
        }
        if count > 0 {
            into.push(b',');
        }
        count += 1;
        let word = &object[value];
        if key == "type" && speaker.may_not(word) {
            into.extend_from_slice(b"\"type\":\"agent/");
            into.extend_from_slice(&word.as_bytes()[1..]);
        } else {
            into.extend_from_slice(&object.as_bytes()[member]);
        }
    });
    count
}

/// Tells the members of an object, each as its name between the quotes, the place of all of it and that of its value. Returns
/// where the closing brace is, or `None` if this is no object. What is inside the values is not judged.
fn scan(object: &str, mut each: impl FnMut(&str, Range<usize>, Range<usize>)) -> Option<usize> {
    let bytes = object.as_bytes();
    let mut at = expect(bytes, 0, b'{')?;
    at = skip_space(bytes, at);
    if *bytes.get(at)? == b'}' {
        return (at + 1 == bytes.len()).then_some(at);
    }
    loop {
        let start = skip_space(bytes, at);
        let name_end = string_end(bytes, expect(bytes, start, b'"')?)?;
        at = skip_space(bytes, name_end);
        at = skip_space(bytes, expect(bytes, at, b':')?);
        let value = at..value_end(bytes, at)?;
        at = value.end;
        each(&object[start + 1..name_end - 1], start..at, value);
        at = skip_space(bytes, at);
        match *bytes.get(at)? {
            b',' => at += 1,
            b'}' => return (at + 1 == bytes.len()).then_some(at),
            _ => return None,
        }
    }
}

fn expect(bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
    (*bytes.get(at)? == byte).then_some(at + 1)
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The place after the closing quote of a string whose content begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' => string_end(bytes, at + 1),
        b'{' | b'[' => nested_end(bytes, at),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let length = bytes[at..].iter().position(ends)?;
            (length > 0).then_some(at + length)
        }
    }
}

fn nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match *bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn under(object: &str) -> Option<String> {
        let mut line = Vec::new();
        write_under(object, Speaker::Agent, "\"r\"", &mut line).then(|| String::from_utf8(line).unwrap())
    }

    #[test]
    fn an_object_is_passed_on_as_it_is_spelled_with_the_id_at_its_end() {
        for (object, expected) in [
            ("{}", r#"{"id":"r"}"#),
            (" { } ", r#"{ "id":"r"}"#),
            (r#"{"a":1.50,"b":"\u00e9"}"#, r#"{"a":1.50,"b":"\u00e9","id":"r"}"#),
            (r#"{"a":{"id":1,"x":[{}]} }"#, r#"{"a":{"id":1,"x":[{}]} ,"id":"r"}"#),
            (r#"{"a":"}\"{\\"}"#, r#"{"a":"}\"{\\","id":"r"}"#),
        ] {
            assert_eq!(under(object).as_deref(), Some(expected), "{object}");
        }
    }

    #[test]
    fn an_agent_can_neither_take_the_id_nor_end_a_stream() {
        for (object, expected) in [
            (r#"{"id":"x"}"#, r#"{"id":"r"}"#),
            (r#"{"id":7,"type":"a", "id":{"b":1},"c":2}"#, r#"{"type":"a","c":2,"id":"r"}"#),
            (r#"{"type":"end"}"#, r#"{"type":"agent/end","id":"r"}"#),
            (r#"{"type" : "error","m":1}"#, r#"{"type":"agent/error","m":1,"id":"r"}"#),
            (r#"{"type":"a","type":"aborted"}"#, r#"{"type":"a","type":"agent/aborted","id":"r"}"#),
        ] {
            assert_eq!(under(object).as_deref(), Some(expected), "{object}");
        }
    }

    #[test]
    fn what_is_no_object_is_not_passed_on() {
        for object in
            ["", "[]", "7", "{", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":\"", "{\"a\":1}}", "{,}"]
        {
            assert_eq!(under(object), None, "{object}");
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "(id|type|end|error|[{}\\[\\]\",\\\\ é]){0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("(id|type|[a-z\"\\\\{}]){0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_an_object_holds_only_the_id_and_terminal_types_change(
            members in prop::collection::hash_map("(id|type|[a-z\"\\\\{}]){0,4}", anything(), 0..6)
        ) {
            let members: Map<String, Value> = members.into_iter().collect();
            let line = under(&Value::Object(members.clone()).to_string()).unwrap();
            let passed: Map<String, Value> = serde_json::from_str(&line).unwrap();
            let mut expected = members;
            let terminal = ["end", "error", "aborted"];
            if let Some(Value::String(kind)) = expected.get_mut("type")
                && terminal.contains(&kind.as_str())
            {
                *kind = format!("agent/{kind}");
            }
            expected.insert("id".to_owned(), Value::from("r"));
            prop_assert_eq!(passed, expected);
        }
    }
}
