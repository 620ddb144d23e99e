//! JSON that has only one reading: UTF-8 without a mark, one value, no key twice, not nested without end.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::finding::{Finding, code, quoted};

/// The longest manifest.
pub const MAX_MANIFEST_BYTES: usize = 256 * 1024;
/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 32;
/// How many double keys are named.
const MAX_NAMED: usize = 32;

/// Reads `bytes`. Double keys are findings, but the value is there, so that everything else can be found as well.
pub(super) fn read(bytes: &[u8]) -> (Option<Value>, Vec<Finding>) {
    match text_of(bytes).and_then(parse) {
        Ok((value, findings)) => (Some(value), findings),
        Err(finding) => (None, vec![finding]),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, Finding> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        let message = format!("the manifest has {} bytes; {MAX_MANIFEST_BYTES} are the most", bytes.len());
        return Err(Finding::error(code::SIZE, "", message));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        let finding = Finding::error(code::UTF8, "", "the manifest begins with a byte order mark");
        return Err(finding.suggest("save it as UTF-8 without a byte order mark"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the manifest is not UTF-8: byte {} is wrong", error.valid_up_to());
        Finding::error(code::UTF8, "", message).suggest("save it as UTF-8")
    })?;
    match too_deep(text) {
        None => Ok(text),
        Some(line) => {
            let message = format!("line {line} is nested deeper than {MAX_DEPTH}");
            Err(Finding::error(code::DEPTH, "", message))
        }
    }
}

/// The line on which brackets nest too deep. Looked for before anything recurses.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut line, mut in_string, mut escaped) = (0_usize, 1, false, false);
    for byte in text.bytes() {
        line += usize::from(byte == b'\n');
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(line);
        }
    }
    None
}

fn parse(text: &str) -> Result<(Value, Vec<Finding>), Finding> {
    let mut keys = Keys { path: String::new(), doubles: Vec::new(), unnamed: 0 };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Reading(&mut keys).deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
        let finding = Finding::error(code::JSON, "", format!("the manifest is not one JSON value: {error}"));
        match text.trim().is_empty() {
            true => finding.suggest("the file is empty"),
            false => finding,
        }
    })?;
    Ok((value, keys.findings()))
}

/// Where the reader is, and which keys it has seen twice.
struct Keys {
    path: String,
    doubles: Vec<(String, String)>,
    unnamed: usize,
}

impl Keys {
    /// Goes to a member. In place, because keys can be long and many.
    fn enter(&mut self, key: &str) {
        self.path.push('/');
        for c in key.chars() {
            match c {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                c => self.path.push(c),
            }
        }
    }

    fn double(&mut self, key: &str) {
        match self.doubles.len() < MAX_NAMED {
            true => self.doubles.push((self.path.clone(), quoted(key))),
            false => self.unnamed += 1,
        }
    }

    fn findings(self) -> Vec<Finding> {
        let finding = |(path, key): (String, String)| {
            Finding::error(code::DUP_KEY, path, format!("{key} is there more than once"))
        };
        let mut findings: Vec<Finding> = self.doubles.into_iter().map(finding).collect();
        if self.unnamed > 0 {
            let message = format!("{} more keys are there more than once", self.unnamed);
            findings.push(Finding::error(code::DUP_KEY, "", message));
        }
        findings
    }
}

/// `path` and then `key`, as a JSON pointer.
pub(super) fn pointer(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

struct Reading<'k>(&'k mut Keys);

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        let length = self.0.path.len();
        loop {
            self.0.path.push_str(&format!("/{}", read.len()));
            let item = items.next_element_seed(Reading(self.0))?;
            self.0.path.truncate(length);
            match item {
                Some(item) => read.push(item),
                None => return Ok(Value::Array(read)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        let length = self.0.path.len();
        while let Some(key) = members.next_key::<String>()? {
            self.0.enter(&key);
            let value = members.next_value_seed(Reading(self.0))?;
            if read.contains_key(&key) {
                self.0.double(&key);
            }
            self.0.path.truncate(length);
            read.insert(key, value);
        }
        Ok(Value::Object(read))
    }
}
