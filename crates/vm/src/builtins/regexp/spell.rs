//! `source`, which must read back as the same pattern between slashes, and `RegExp.escape`.

use super::{regexp, slow};
use crate::builtins::Args;
use crate::exec::state::{Res, State};
use crate::exec::{Proto, Window};
use crate::heap::Str;
use crate::text::{Text, linear_cost, unicode};
use crate::value::Value;

/// `get RegExp.prototype.source`.
pub(super) fn source(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let Some(regexp) = regexp(st, a.this) else {
        let itself = a.this.as_object() == Some(st.realm.proto(Proto::RegExp));
        return if itself { Ok(Value::string(st.heap.intern_str("(?:)")?)) } else { slow() };
    };
    let fields = st.heap.slots_of(regexp).map(|id| st.heap.slots(id)).unwrap_or_default();
    let Some(source) = fields.first().and_then(|v| v.as_string()) else { return slow() };
    st.burn(linear_cost(st.heap.string_length(source) as usize))?;
    match spelled(st.heap.text(source)?) {
        Some(text) => Ok(Value::string(st.heap.new_str(text.as_str())?)),
        None => Ok(Value::string(source)),
    }
}

/// EscapeRegExpPattern; nothing if the pattern stays as it is.
fn spelled(pattern: Str<'_>) -> Option<Text> {
    if pattern.is_empty() {
        return Some(Text::of("(?:)"));
    }
    let special = |unit: u16| unit == u16::from(b'/') || unicode::is_line_terminator(unit);
    if !pattern.units().any(special) {
        return None;
    }
    let mut out = Text::with_capacity(pattern.len() + 8);
    let (mut escaped, mut in_class) = (false, false);
    for unit in pattern.units() {
        let line_end = match unit {
            0x0A => Some("n"),
            0x0D => Some("r"),
            0x2028 => Some("u2028"),
            0x2029 => Some("u2029"),
            _ => None,
        };
        if let Some(name) = line_end {
            // A backslash before it is there already, and means nothing else.
            if !escaped {
                out.push_str("\\");
            }
            out.push_str(name);
        } else {
            if unit == u16::from(b'/') && !escaped && !in_class {
                out.push_str("\\");
            }
            out.push(unit);
        }
        if !escaped {
            in_class = (in_class || unit == u16::from(b'[')) && unit != u16::from(b']');
        }
        escaped = !escaped && unit == u16::from(b'\\');
    }
    Some(out)
}

/// `RegExp.escape`: a pattern that matches the string, wherever it is put in another one.
pub(super) fn escape(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(s) = a.get(w, 0).as_string() else { return slow() };
    let len = st.heap.string_length(s) as usize;
    st.burn(1 + len as u64)?;
    crate::builtins::string::room(st, 6 * len)?;
    let text = escaped(st.heap.text(s)?);
    Ok(Value::string(st.heap.new_str(text.as_str())?))
}

fn escaped(text: Str<'_>) -> Text {
    let mut out = Text::with_capacity(text.len());
    for (n, point) in text.code_points().enumerate() {
        let char = char::from_u32(point);
        match char {
            Some(c) if n == 0 && c.is_ascii_alphanumeric() => hex(point, &mut out),
            Some(c) if "^$\\.*+?()[]{}|/".contains(c) => {
                out.push_str("\\");
                out.push_code_point(point);
            }
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{B}') => out.push_str("\\v"),
            Some('\u{C}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(c) if ",-=<>#&!%:;@~'`\"".contains(c) => hex(point, &mut out),
            None => hex(point, &mut out),
            Some(_) => {
                let unit = u16::try_from(point).unwrap_or(0);
                if unicode::is_white_space(unit) || unicode::is_line_terminator(unit) {
                    hex(point, &mut out);
                } else {
                    out.push_code_point(point);
                }
            }
        }
    }
    out
}

/// `\x41` or `\u2028`.
fn hex(point: u32, out: &mut Text) {
    out.push_str(&if point < 256 { format!("\\x{point:02x}") } else { format!("\\u{point:04x}") });
}
