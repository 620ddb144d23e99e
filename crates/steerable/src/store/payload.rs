//! What is attached to spans and events, made fit to be stored: without secrets, and not too large.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::redact;

/// How many bytes a text in a trace has at most.
pub const TEXT_LIMIT: usize = 8 << 10;

/// How many bytes everything that is attached to one span or event has at most, roughly.
pub const PAYLOAD_LIMIT: usize = 64 << 10;

/// How many bytes the name of a span or event has at most.
const NAME_LIMIT: usize = 256;

/// What a row costs besides what is attached to it, roughly.
pub(super) const ROW_BYTES: usize = 256;

/// More of a text is looked at than is kept, so that a secret at the edge is seen as one.
const MARGIN: usize = 1 << 10;

/// Takes secrets out and cuts texts; returns what the row costs in bytes, roughly.
pub(super) fn fit(mut details: Map<String, Value>) -> (Map<String, Value>, usize) {
    if details.is_empty() {
        return (details, ROW_BYTES);
    }
    redact::members(&mut details, &mut shorten);
    let bytes = weigh_members(&details);
    if bytes <= PAYLOAD_LIMIT {
        return (details, ROW_BYTES + bytes);
    }
    // Which member is the important one is not known here; the small ones are kept, the first that fit.
    let mut kept = Map::new();
    let mut left = PAYLOAD_LIMIT;
    let mut cut = 0_u64;
    for (name, value) in details {
        let bytes = weigh(&value) + name.len();
        if bytes <= left {
            left -= bytes;
            kept.insert(name, value);
        } else {
            cut += 1;
        }
    }
    kept.insert("cutMembers".to_owned(), cut.into());
    (kept, ROW_BYTES + PAYLOAD_LIMIT - left)
}

/// A name, cut.
pub(super) fn name(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_LIMIT)].to_owned()
}

/// A text without secrets, cut.
fn shorten(text: &mut String) {
    let whole = text.len();
    if whole > TEXT_LIMIT {
        text.truncate(text.floor_char_boundary(TEXT_LIMIT + MARGIN));
    }
    if let Cow::Owned(safe) = redact::text(text) {
        *text = safe;
    }
    if whole > TEXT_LIMIT {
        text.truncate(text.floor_char_boundary(TEXT_LIMIT));
        text.push_str(&format!("… ({whole} bytes)"));
    }
}

fn weigh(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(weigh).sum::<usize>() + 2,
        Value::Object(members) => weigh_members(members),
    }
}

fn weigh_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + 4 + weigh(value)).sum::<usize>() + 2
}
