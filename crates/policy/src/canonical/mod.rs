//! JSON with exactly one spelling, so that two programs that mean the same hash the same bytes.

mod number;

use crate::digest::Digest;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

pub use number::ecmascript;

/// How deep arrays and objects may nest. It is what `serde_json` reads by default.
pub const MAX_DEPTH: usize = 128;

/// Which spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// RFC 8785: keys in the order of their UTF-16 code units, numbers as ECMAScript prints them.
    Rfc8785,
    /// Keys in the order of their bytes, numbers as `serde_json` prints them (`1` and `1.0` differ). This is
    /// what hosts of the abp dialect hash.
    ByteOrder,
}

/// Why a value has no canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("the value is nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// RFC 8785 knows doubles only. Two integers that round to the same one would hash alike.
    #[error("a double does not carry the integer {number} unchanged; write it as a string")]
    InexactInteger {
        /// The number as it was.
        number: String,
    },
}

/// The canonical spelling of `value`, without any white space.
pub fn canonical(value: &Value, spelling: Spelling) -> Result<String, CanonicalError> {
    let mut out = String::new();
    write_value(&mut out, value, spelling, 0)?;
    Ok(out)
}

/// The SHA-256 of the canonical spelling of `value`.
pub fn hash(value: &Value, spelling: Spelling) -> Result<Digest, CanonicalError> {
    canonical(value, spelling).map(|text| Digest::of(text.as_bytes()))
}

fn write_value(
    out: &mut String,
    value: &Value,
    spelling: Spelling,
    depth: usize,
) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&spell_number(number, spelling)?),
        Value::String(text) => write_string(out, text),
        Value::Array(_) | Value::Object(_) if depth == MAX_DEPTH => return Err(CanonicalError::TooDeep),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item, spelling, depth + 1)?;
            }
            out.push(']');
        }
        Value::Object(members) => write_object(out, members, spelling, depth)?,
    }
    Ok(())
}

fn write_object(
    out: &mut String,
    members: &Map<String, Value>,
    spelling: Spelling,
    depth: usize,
) -> Result<(), CanonicalError> {
    // Sorted here and not trusted to the map: a feature of another crate can change its order.
    let mut members: Vec<(&String, &Value)> = members.iter().collect();
    members.sort_by(|(one, _), (other, _)| match spelling {
        Spelling::Rfc8785 => utf16_order(one, other),
        Spelling::ByteOrder => one.cmp(other),
    });
    out.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, value, spelling, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

/// Differs from the order of code points where a character beyond U+FFFF meets one from U+E000 to U+FFFF.
fn utf16_order(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // Nearly all text needs no escape and is copied in whole runs. What does is ASCII, so a run ends between characters.
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        let (run, special) = rest.split_at(at);
        out.push_str(run);
        match special.as_bytes()[0] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x8 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0xC => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            control => out.push_str(&format!("\\u{control:04x}")),
        }
        rest = &special[1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn spell_number(number: &Number, spelling: Spelling) -> Result<String, CanonicalError> {
    if spelling == Spelling::ByteOrder {
        return Ok(number.to_string());
    }
    // Small integers are spelled the same way by everybody, and are nearly all the numbers there are.
    if let Some(integer) = number.as_i64().filter(|integer| integer.unsigned_abs() <= 1 << 53) {
        return Ok(integer.to_string());
    }
    let inexact = || CanonicalError::InexactInteger { number: number.to_string() };
    // Only a finite number can be in a `Value`, so the second step cannot fail.
    let spelled = number.as_f64().and_then(ecmascript).ok_or_else(inexact)?;
    // An integer must come out digit for digit. So no two integers share a spelling, and what was spelled once is
    // accepted when it is read back (9223372036854776000 is, the 2⁶³ next to it is not).
    if !number.is_f64() && spelled != number.to_string() {
        return Err(inexact());
    }
    Ok(spelled)
}
