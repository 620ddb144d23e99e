//! How an event of ours is spelled.

use serde_json::Value;

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// An event of ours.
pub(super) fn event(line: &mut Vec<u8>, quoted_id: Option<&str>, kind: &str, members: &[(&str, Value)]) {
    line.push(b'{');
    if let Some(id) = quoted_id {
        line.extend_from_slice(b"\"id\":");
        line.extend_from_slice(id.as_bytes());
        line.push(b',');
    }
    line.extend_from_slice(b"\"type\":");
    string(line, kind);
    for (name, value) in members {
        line.push(b',');
        string(line, name);
        line.push(b':');
        // Values are JSON, and memory takes every byte.
        let _ = serde_json::to_writer(&mut *line, value);
    }
    line.push(b'}');
}

fn string(line: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(line, text);
}
