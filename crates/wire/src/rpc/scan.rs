//! What is checked over the whole text of a message before anyone takes it apart: nesting, and keys that occur twice.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use memchr::memchr2;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::policy::NestingLimit;

/// Whether `json` nests deeper than `limit`. It neither recurses nor allocates, and stops at the first bracket too many.
///
/// The text need not be valid JSON; brackets inside strings do not count.
pub(super) fn nests_deeper_than(json: &str, limit: NestingLimit) -> bool {
    let bytes = json.as_bytes();
    let limit = u32::from(limit.0);
    if bytes.len() <= limit as usize {
        return false;
    }
    let mut depth = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at = after_string(bytes, at),
            _ => {}
        }
    }
    false
}

/// What can be told of a message that nests too deeply to be read.
#[derive(Default)]
pub(super) struct Shallow<'a> {
    /// Its last member `id`, if that is no array and no object.
    pub(super) id: Option<&'a str>,
    /// It has a result or an error, and no method.
    pub(super) is_reply: bool,
}

/// Looks at the members of the outermost object. It neither recurses nor allocates.
pub(super) fn shallow(json: &str) -> Shallow<'_> {
    let bytes = json.as_bytes();
    let (mut id, mut calls, mut answers) = (None, false, false);
    if !json.trim_ascii_start().starts_with('{') {
        return Shallow::default();
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let key = at - 1;
                at = after_string(bytes, at);
                let after = json.get(at..).unwrap_or_default().trim_ascii_start();
                if depth == 1 && after.starts_with(':') {
                    match &json[key..at] {
                        "\"id\"" => id = scalar(after[1..].trim_ascii_start()).or(id),
                        "\"method\"" => calls = true,
                        "\"result\"" | "\"error\"" => answers = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Shallow { id, is_reply: answers && !calls }
}

/// The number, string or word at the beginning of `json`.
fn scalar(json: &str) -> Option<&str> {
    let length = match json.as_bytes().first()? {
        b'"' => after_string(json.as_bytes(), 1),
        b'[' | b'{' => return None,
        _ => json.find([',', '}', ' ', '\t', '\r'])?,
    };
    let text = json.get(..length)?;
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok().then_some(text)
}

/// The offset after the closing quote of the string whose content begins at `at`.
fn after_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match bytes[at] {
            b'"' => return at + 1,
            // A backslash takes the next byte with it, whatever it is.
            _ => at += 2,
        }
    }
    bytes.len()
}

/// What [`whole_text`] found wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    NotJson,
    DuplicateKey,
}

/// Decodes everything once to see that no object has a key twice and that every string is valid.
///
/// It recurses, so the nesting must have been checked before.
pub(super) fn whole_text(json: &str) -> Result<(), Flaw> {
    let mut duplicate = false;
    let mut deserializer = serde_json::Deserializer::from_str(json);
    // Nesting was limited by the caller, so serde_json's own limit of 128 is not needed; it is kept as a second fence.
    let walked = Walk { duplicate: &mut duplicate }.deserialize(&mut deserializer);
    match walked.and_then(|()| deserializer.end()) {
        Ok(()) => Ok(()),
        Err(_) if duplicate => Err(Flaw::DuplicateKey),
        Err(_) => Err(Flaw::NotJson),
    }
}

struct Walk<'f> {
    duplicate: &'f mut bool,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Walk { duplicate: self.duplicate })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = Keys::default();
        while let Some(key) = map.next_key_seed(Key)? {
            if !seen.insert(key) {
                *self.duplicate = true;
                return Err(serde::de::Error::custom("duplicate key"));
            }
            map.next_value_seed(Walk { duplicate: self.duplicate })?;
        }
        Ok(())
    }
}

/// The keys of one object: a list while it is short, as nearly all are, and a set when a list would be slow.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    const FEW: usize = 16;

    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(key);
        }
        if self.few.contains(&key) {
            return false;
        }
        self.few.push(key);
        if self.few.len() > Self::FEW {
            self.many.extend(self.few.drain(..));
        }
        true
    }
}

/// A key, borrowed when nothing in it is escaped.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
