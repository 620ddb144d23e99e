//! Puts a signature into the text of a manifest and leaves everything else as its author wrote it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

type Members<'t> = BTreeMap<String, &'t RawValue>;

/// `text` with this key and this signature in its `signing` member, which is made if it is not there.
pub(super) fn signing(text: &str, key_id: &str, signature: &str) -> String {
    let (key_id, signature) = (spelled(key_id), spelled(signature));
    let top: Members<'_> = serde_json::from_str(text).unwrap_or_default();
    let Some(block) = top.get("signing") else {
        let block = format!("{{\"required\": true, \"keyId\": {key_id}, \"signature\": {signature}}}");
        return appended(text, &format!("\"signing\": {block}"));
    };
    let inner: Members<'_> = serde_json::from_str(block.get()).unwrap_or_default();
    let mut places: Vec<(usize, usize, &str)> = [("keyId", &key_id), ("signature", &signature)]
        .into_iter()
        .filter_map(|(key, value)| {
            let old = inner.get(key)?.get();
            let at = offset(text, old)?;
            Some((at, at + old.len(), value.as_str()))
        })
        .collect();
    // From the end, so that the places before stay where they are.
    places.sort_by(|one, other| other.cmp(one));
    let mut text = text.to_owned();
    for (from, to, value) in places {
        text.replace_range(from..to, value);
    }
    text
}

/// With one more member before the last brace.
fn appended(text: &str, member: &str) -> String {
    let end = text.rfind('}').unwrap_or(text.len());
    let (before, after) = text.split_at(end);
    let before = before.trim_end();
    let comma = match before.ends_with('{') {
        true => "",
        false => ",",
    };
    format!("{before}{comma}\n  {member}\n{after}")
}

/// Where `part`, a piece of `text`, begins.
fn offset(text: &str, part: &str) -> Option<usize> {
    part.as_ptr().addr().checked_sub(text.as_ptr().addr()).filter(|at| at + part.len() <= text.len())
}

fn spelled(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_values_change() {
        let text = "{ \"b\": 1,\n \"signing\": { \"signature\" : \"old\", \"required\":false,\"keyId\":\"\"}, \"a\":2 }\n";
        let signed = signing(text, "k", "s+/=");
        let expected = "{ \"b\": 1,\n \"signing\": { \"signature\" : \"s+/=\", \"required\":false,\"keyId\":\"k\"}, \"a\":2 }\n";
        assert_eq!(signed, expected);
    }

    #[test]
    fn a_manifest_without_the_member_gets_one() {
        let signed = signing("{\n  \"a\": 1\n}\n", "k", "s");
        let expected = "{\n  \"a\": 1,\n  \"signing\": {\"required\": true, \"keyId\": \"k\", \"signature\": \"s\"}\n}\n";
        assert_eq!(signed, expected);
    }
}
