//! The one spelling of JSON that is hashed: keys in the order of their bytes, numbers re-spelled, no white space.
//!
//! It is written straight from the text, in one pass; nothing is built but the places of an object's members.

use std::borrow::Cow;

use crate::protocol::json::{Cursor, JsonError, Kind, Piece};
use crate::protocol::text::write_string;
use crate::protocol::{AgentEvent, EventKind, Raw, Timestamp};

/// The most members that an object may have to be recorded.
pub const MAX_MEMBERS: usize = 262_144;

/// Why a text has no canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// An object is too large.
    #[error("an object has more than {MAX_MEMBERS} members")]
    TooManyMembers,
}

/// What becomes of the vendor's own message in `ext.raw_message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    /// It keeps its bytes: in the file.
    Verbatim,
    /// It is re-spelled like everything else: in the hash.
    Canonical,
}

/// Appends the canonical spelling of a JSON text.
pub(super) fn write(out: &mut Vec<u8>, text: &str) -> Result<(), CanonicalError> {
    let mut cursor = Cursor::new(text);
    value(&mut cursor, out)?;
    Ok(cursor.end()?)
}

/// The canonical spelling of a JSON text: what is hashed.
///
/// # Errors
/// When it is not JSON, or an object has too many members.
pub fn canonical(text: &str) -> Result<String, CanonicalError> {
    let mut out = Vec::with_capacity(text.len());
    write(&mut out, text)?;
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Appends the canonical spelling of an event: of a type that the contract has, exactly its members; of any other, all of
/// them. Says whether a vendor's message was kept in a spelling that may be another one.
pub(super) fn write_event(
    out: &mut Vec<u8>,
    event: &AgentEvent<'_>,
    vendor: Vendor,
) -> Result<Spelled, CanonicalError> {
    let mut spelled = Spelled::Canonical;
    let start = out.len();
    let mut line = Line { out, start, ext: event.ext.as_ref(), vendor, spelled: &mut spelled };
    match &event.kind {
        EventKind::AssistantDelta { text } | EventKind::AssistantMessage { text } => {
            line.ext()?;
            line.text("text", text);
        }
        EventKind::RunStarted { message }
        | EventKind::RunCompleted { message }
        | EventKind::Warning { message } => {
            line.ext()?;
            line.text("message", message);
        }
        EventKind::Error { message, error_code } => {
            if let Some(code) = error_code {
                line.text("error_code", code.as_str());
            }
            line.ext()?;
            line.text("message", message);
        }
        EventKind::ToolCall { tool_name, tool_use_id, parent_tool_use_id, input } => {
            line.ext()?;
            line.any("input", input)?;
            line.optional("parent_tool_use_id", parent_tool_use_id.as_deref());
            line.text("tool_name", tool_name);
            line.optional("tool_use_id", tool_use_id.as_deref());
        }
        EventKind::ToolResult { tool_name, tool_use_id, output, is_error } => {
            line.ext()?;
            line.verbatim("is_error", if *is_error { "true" } else { "false" });
            line.any("output", output)?;
            line.text("tool_name", tool_name);
            line.optional("tool_use_id", tool_use_id.as_deref());
        }
        EventKind::FileChanged { path, summary } => {
            line.ext()?;
            line.text("path", path);
            line.text("summary", summary);
        }
        EventKind::CommandExecuted { command, exit_code, output_preview } => {
            line.text("command", command);
            line.verbatim("exit_code", &exit_code.map_or_else(|| "null".to_owned(), |code| code.to_string()));
            line.ext()?;
            line.optional("output_preview", output_preview.as_deref());
        }
        EventKind::Usage(_) | EventKind::Other { .. } => {
            let text = match &event.raw {
                Some(raw) => Cow::Borrowed(&**raw),
                None => {
                    let mut text = Vec::new();
                    event.write(&mut text);
                    Cow::Owned(String::from_utf8(text).unwrap_or_default())
                }
            };
            let mut cursor = Cursor::new(&text);
            object(&mut cursor, out, &mut Rule::Event(vendor, &mut spelled))?;
            return Ok(spelled);
        }
    }
    line.name("ts");
    out.push(b'"');
    event.ts.write(out);
    out.extend_from_slice(b"\",\"type\":");
    write_string(out, event.kind.name());
    out.push(b'}');
    Ok(spelled)
}

/// Whether what was written is canonical from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelled {
    Canonical,
    /// A vendor's message in it kept its bytes.
    WithVendor,
}

/// The members of an event, one after another.
struct Line<'o> {
    out: &'o mut Vec<u8>,
    /// Where it begins.
    start: usize,
    ext: Option<&'o Raw<'o>>,
    vendor: Vendor,
    spelled: &'o mut Spelled,
}

impl Line<'_> {
    fn name(&mut self, name: &str) {
        let opening = if self.out.len() == self.start { b"{\"" } else { b",\"" };
        self.out.extend_from_slice(opening);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_string(self.out, text);
    }

    fn optional(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => self.verbatim(name, "null"),
        }
    }

    fn verbatim(&mut self, name: &str, text: &str) {
        self.name(name);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn any(&mut self, name: &str, raw: &Raw<'_>) -> Result<(), CanonicalError> {
        self.name(name);
        write(self.out, raw.as_str())
    }

    fn ext(&mut self) -> Result<(), CanonicalError> {
        let Some(ext) = self.ext else { return Ok(()) };
        self.name("ext");
        object(&mut Cursor::new(ext.as_str()), self.out, &mut Rule::Ext(self.vendor, self.spelled))
    }
}

/// What is special about the members of an object.
enum Rule<'r> {
    Plain,
    /// `raw_message` may keep its bytes.
    Ext(Vendor, &'r mut Spelled),
    /// `ts` is re-spelled, `ext` is left out when it is null.
    Event(Vendor, &'r mut Spelled),
}

fn value(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match cursor.peek()? {
        b'{' => object(cursor, out, &mut Rule::Plain),
        b'[' => {
            cursor.enter(b'[')?;
            out.push(b'[');
            let mut first = true;
            let mut comma = false;
            while cursor.element(&mut first)? {
                if std::mem::replace(&mut comma, true) {
                    out.push(b',');
                }
                value(cursor, out)?;
            }
            out.push(b']');
            Ok(())
        }
        _ => {
            leaf(out, &cursor.value()?);
            Ok(())
        }
    }
}

fn leaf(out: &mut Vec<u8>, piece: &Piece<'_>) {
    match piece.kind {
        Kind::String => match piece.string() {
            Some(Cow::Owned(text)) => write_string(out, &text),
            // What has no escapes needs none.
            Some(Cow::Borrowed(_)) | None => out.extend_from_slice(piece.text.as_bytes()),
        },
        Kind::Number => number(out, piece.text),
        Kind::Null | Kind::Bool | Kind::Absent | Kind::Array | Kind::Object => {
            out.extend_from_slice(piece.text.as_bytes());
        }
    }
}

/// Integers of 64 bits stay as they are, everything else is the shortest spelling of a double.
fn number(out: &mut Vec<u8>, text: &str) {
    let is_integer = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
    let fits = match text.strip_prefix('-') {
        Some("0") => false,
        Some(_) => text.parse::<i64>().is_ok(),
        None => text.len() < 20 || text.parse::<u64>().is_ok(),
    };
    if is_integer && fits {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    // A number that was read is finite, so it has a spelling.
    let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
    let spelled = number.map_or_else(|| text.to_owned(), |number| number.to_string());
    out.extend_from_slice(spelled.as_bytes());
}

/// A member and where it was written.
struct Member<'a> {
    key: Cow<'a, str>,
    start: usize,
    end: usize,
}

fn object(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, rule: &mut Rule<'_>) -> Result<(), CanonicalError> {
    cursor.enter(b'{')?;
    out.push(b'{');
    let base = out.len();
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut in_order = true;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        if members.len() == MAX_MEMBERS {
            return Err(CanonicalError::TooManyMembers);
        }
        if !members.is_empty() {
            out.push(b',');
        }
        let start = out.len();
        write_string(out, &key);
        out.push(b':');
        match member(cursor, out, rule, &key)? {
            Keep::Yes => {}
            Keep::No => {
                // Null is the same as absent, also when it comes after a value.
                members.retain(|known| known.key != key);
                in_order = false;
                out.truncate(start);
                continue;
            }
        }
        in_order &= members.last().is_none_or(|last| last.key < key);
        members.push(Member { key, start, end: out.len() });
    }
    if !in_order {
        reorder(out, base, members);
    }
    out.push(b'}');
    Ok(())
}

enum Keep {
    Yes,
    No,
}

fn member(
    cursor: &mut Cursor<'_>,
    out: &mut Vec<u8>,
    rule: &mut Rule<'_>,
    key: &str,
) -> Result<Keep, CanonicalError> {
    match rule {
        // A line of the spool is an event, so a message with line breaks cannot keep them; none that came as a line has any.
        Rule::Ext(Vendor::Verbatim, spelled) if key == "raw_message" => {
            let piece = cursor.value()?;
            if piece.text.contains('\n') {
                write(out, piece.text)?;
            } else {
                out.extend_from_slice(piece.text.as_bytes());
                **spelled = Spelled::WithVendor;
            }
        }
        Rule::Event(..) if key == "ts" => {
            let piece = cursor.value()?;
            match piece.string().and_then(|text| Timestamp::parse(&text).ok()) {
                Some(time) => {
                    out.push(b'"');
                    time.write(out);
                    out.push(b'"');
                }
                None => leaf(out, &piece),
            }
        }
        Rule::Event(vendor, spelled) if key == "ext" => {
            if cursor.peek()? != b'{' {
                _ = cursor.value()?;
                return Ok(Keep::No);
            }
            object(cursor, out, &mut Rule::Ext(*vendor, spelled))?;
        }
        Rule::Plain | Rule::Ext(..) | Rule::Event(..) => value(cursor, out)?,
    }
    Ok(Keep::Yes)
}

/// Puts the members after `base` in the order of their keys; of those with the same key the last one stays.
fn reorder(out: &mut Vec<u8>, base: usize, mut members: Vec<Member<'_>>) {
    members.sort_by(|one, other| one.key.cmp(&other.key));
    let written = out.split_off(base);
    let mut comma = false;
    for (at, member) in members.iter().enumerate() {
        if members.get(at + 1).is_some_and(|next| next.key == member.key) {
            continue;
        }
        if std::mem::replace(&mut comma, true) {
            out.push(b',');
        }
        out.extend_from_slice(&written[member.start - base..member.end - base]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_policy::canonical::Spelling;

    fn same_as_values(text: &str) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let expected = outrigger_policy::canonical::canonical(&value, Spelling::ByteOrder).unwrap();
        assert_eq!(canonical(text).as_deref(), Ok(expected.as_str()), "{text}");
    }

    #[test]
    fn a_text_has_the_spelling_that_its_value_has() {
        for text in [
            "null",
            " true ",
            "[ ]",
            "{ }",
            "0",
            "-0",
            "-0.0",
            "1",
            "1.0",
            "1e3",
            "1e22",
            "1E22",
            "12345678901234567890123",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "1.10",
            "123e-2",
            "5e-324",
            "1e-400",
            "0.1",
            "100000000000000000000",
            "9999999999999999999",
            r#""a\/\u0041\u00e9\ud83d\ude00\u0001\u007f\u2028\n""#,
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":1,"b":{"q":[]}}"#,
            r#"{"é":1,"z":2,"\u0022":3,"#,
        ] {
            if serde_json::from_str::<serde_json::Value>(text).is_ok() {
                same_as_values(text);
            } else {
                assert!(canonical(text).is_err());
            }
        }
        same_as_values("{\"\u{e000}\":1,\"\u{10000}\":2,\"\\u0022\":3,\"#\":4,\"!\":5}");
        let deep = format!("{}1{}", "{\"b\":0,\"a\":[".repeat(63), "]}".repeat(63));
        same_as_values(&deep);
        assert_eq!(canonical("1e22").unwrap(), "1e+22");
    }

    #[test]
    fn an_object_may_have_so_many_members_and_not_one_more() {
        let text = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("\"{at}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(canonical(&text(MAX_MEMBERS)).is_ok());
        assert_eq!(canonical(&text(MAX_MEMBERS + 1)), Err(CanonicalError::TooManyMembers));
    }

    fn event(text: &str, vendor: Vendor) -> (String, Spelled) {
        let mut out = Vec::new();
        let spelled = write_event(&mut out, &AgentEvent::read(text).unwrap(), vendor).unwrap();
        (String::from_utf8(out).unwrap(), spelled)
    }

    #[test]
    fn an_event_is_spelled_with_the_members_of_its_type_and_no_others() {
        for (text, expected) in [
            (
                r#"{"x":1,"type":"tool_call","tool_name":"t","input":{"b":1e3,"a":1},"ts":"2026-01-01T02:00:00.10+02:00","ext":null}"#,
                r#"{"input":{"a":1,"b":1000.0},"parent_tool_use_id":null,"tool_name":"t","tool_use_id":null,"ts":"2026-01-01T00:00:00.100Z","type":"tool_call"}"#,
            ),
            (
                r#"{"ts":"2026-01-01T00:00:00Z","type":"command_executed","command":"c","ext":{"b":1,"a":2},"exit_code":-1}"#,
                r#"{"command":"c","exit_code":-1,"ext":{"a":2,"b":1},"output_preview":null,"ts":"2026-01-01T00:00:00Z","type":"command_executed"}"#,
            ),
            (
                r#"{"ts":"2026-01-01T00:00:00Z","type":"error","message":"m","error_code":"new_code","ext":{}}"#,
                r#"{"error_code":"new_code","ext":{},"message":"m","ts":"2026-01-01T00:00:00Z","type":"error"}"#,
            ),
            (
                r#"{"type":"thinking","ext":null,"b":2.0,"ts":"2026-01-01T00:00:00.000Z","a":{"d":1,"c":2}}"#,
                r#"{"a":{"c":2,"d":1},"b":2.0,"ts":"2026-01-01T00:00:00Z","type":"thinking"}"#,
            ),
        ] {
            assert_eq!(event(text, Vendor::Canonical), (expected.to_owned(), Spelled::Canonical));
            assert_eq!(event(expected, Vendor::Canonical).0, expected, "it is its own spelling");
        }
    }

    #[test]
    fn the_vendors_message_keeps_its_bytes_in_the_file_and_not_in_the_hash() {
        let text = r#"{"ts":"2026-01-01T00:00:00Z","type":"assistant_delta","text":"x","ext":{"z":1.50,"raw_message":{"b": 1e3, "a":"\u00e9"},"a":1}}"#;
        assert_eq!(
            event(text, Vendor::Verbatim),
            (
                r#"{"ext":{"a":1,"raw_message":{"b": 1e3, "a":"\u00e9"},"z":1.5},"text":"x","ts":"2026-01-01T00:00:00Z","type":"assistant_delta"}"#.to_owned(),
                Spelled::WithVendor
            )
        );
        assert_eq!(
            event(text, Vendor::Canonical),
            (
                r#"{"ext":{"a":1,"raw_message":{"a":"é","b":1000.0},"z":1.5},"text":"x","ts":"2026-01-01T00:00:00Z","type":"assistant_delta"}"#.to_owned(),
                Spelled::Canonical
            )
        );
    }
}
