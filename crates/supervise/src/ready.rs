//! How a child says that it can be used: the five ready gates, and the recognition of the line that opens one.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// When a spawned child counts as ready.
#[derive(Clone, Debug, PartialEq)]
pub enum Ready {
    /// As soon as it runs.
    OnSpawn,
    /// When the gate opens; a child that takes longer is killed.
    When {
        /// What opens it.
        gate: Gate,
        /// From spawn.
        within: Duration,
    },
}

/// What opens a ready gate.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// A line on standard output. The session gets the pipe afterwards, with every later byte still in it.
    Stdout(StdoutGate),
    /// A line on standard error, which is a log and therefore may say other things before.
    Stderr(LineMatch),
    /// The session says so ([`SessionHandle::attached`](crate::driver::SessionHandle::attached)), typically when the child
    /// has connected to a socket and introduced itself.
    Attach,
}

/// A gate on standard output.
#[derive(Clone, Debug, PartialEq)]
pub struct StdoutGate {
    /// The line that opens it.
    pub line: LineMatch,
    /// What to think of other lines before it.
    pub before: Before,
    /// The longest line; a longer one is a protocol violation.
    pub max_line_bytes: usize,
}

/// What to think of lines that come before the one that opens the gate. Blank lines are never minded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The first line must open the gate; anything else is a protocol violation.
    Refuse,
    /// They are kept in the log and otherwise ignored.
    Skip,
}

/// Which line it is.
#[derive(Clone, Debug, PartialEq)]
pub enum LineMatch {
    /// Exactly this, line ending aside.
    Exact(String),
    /// A line that begins like this.
    Prefix(String),
    /// A line with this in it.
    Contains(String),
    /// A JSON object in which every one of these fields has its value.
    Json(Vec<Field>),
}

/// One field of a JSON message and the value it must have.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// A JSON pointer, such as `/type`.
    pub pointer: String,
    /// The value.
    pub equals: Value,
}

/// What a line means to a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It opens the gate.
    Opens,
    /// It does not, and that is fine.
    NotYet,
    /// It does not, and it should have.
    Refused,
}

impl LineMatch {
    /// A JSON message with one telling field: `json("/type", "ready")`.
    pub fn json(pointer: &str, equals: &str) -> Self {
        Self::Json(vec![Field { pointer: pointer.to_owned(), equals: Value::String(equals.to_owned()) }])
    }

    /// Whether `line`, without its line ending, is the one.
    pub fn matches(&self, line: &[u8]) -> bool {
        match self {
            Self::Exact(text) => line == text.as_bytes(),
            Self::Prefix(text) => line.starts_with(text.as_bytes()),
            Self::Contains(text) => contains(line, text.as_bytes()),
            Self::Json(fields) => match serde_json::from_slice::<Value>(line) {
                Ok(message @ Value::Object(_)) => {
                    fields.iter().all(|field| message.pointer(&field.pointer) == Some(&field.equals))
                }
                Ok(_) | Err(_) => false,
            },
        }
    }
}

impl StdoutGate {
    /// What `line`, without its line ending, means.
    pub fn judge(&self, line: &[u8]) -> Verdict {
        match (self.line.matches(line), self.before) {
            (true, _) => Verdict::Opens,
            (false, Before::Skip) => Verdict::NotYet,
            (false, Before::Refuse) => Verdict::Refused,
        }
    }
}

/// A fragment that fits after "it waits for".
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout(gate) => write!(f, "{} on stdout", gate.line),
            Self::Stderr(line) => write!(f, "{line} on stderr"),
            Self::Attach => f.write_str("its channel to be attached"),
        }
    }
}

/// A noun phrase.
impl fmt::Display for LineMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "the line {text:?}"),
            Self::Prefix(text) => write!(f, "a line that begins with {text:?}"),
            Self::Contains(text) => write!(f, "a line that contains {text:?}"),
            Self::Json(fields) => {
                f.write_str("a JSON message with")?;
                for (index, Field { pointer, equals }) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {pointer} = {equals}")?;
                }
                Ok(())
            }
        }
    }
}

fn contains(line: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || line.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_can_say_how_its_child_becomes_ready() {
        let helmor = LineMatch::json("/type", "ready");
        assert!(helmor.matches(br#"{"type":"ready","version":1}"#));
        assert!(!helmor.matches(br#"{"type":"error"}"#));
        assert!(!helmor.matches(br#"["type","ready"]"#));
        assert!(!helmor.matches(b"ready"));

        let abp = LineMatch::json("/t", "hello");
        assert!(abp.matches(br#"{"t":"hello","contract_version":"abp/v0.1"}"#));

        let steerable = LineMatch::Prefix("__SIDECAR_READY__:".into());
        assert!(steerable.matches(br#"__SIDECAR_READY__:{"status":"ok"}"#));
        assert!(!steerable.matches(b" __SIDECAR_READY__:{}"));

        assert!(LineMatch::Contains("listening".into()).matches(b"now listening on 80"));
        assert!(!LineMatch::Contains("listening".into()).matches(b"listenin"));
        assert!(LineMatch::Exact("up".into()).matches(b"up"));
        assert!(!LineMatch::Exact("up".into()).matches(b"up "));
    }

    #[test]
    fn several_json_fields_must_all_agree() {
        let both = LineMatch::Json(vec![
            Field { pointer: "/method".into(), equals: "lifecycle.ready".into() },
            Field { pointer: "/params/version".into(), equals: 2.into() },
        ]);
        assert!(both.matches(br#"{"method":"lifecycle.ready","params":{"version":2}}"#));
        assert!(!both.matches(br#"{"method":"lifecycle.ready","params":{"version":3}}"#));
        assert_eq!(
            both.to_string(),
            r#"a JSON message with /method = "lifecycle.ready", /params/version = 2"#
        );
    }

    #[test]
    fn a_line_before_the_ready_line_is_refused_or_skipped_as_the_gate_says() {
        let gate = |before| StdoutGate { line: LineMatch::Exact("up".into()), before, max_line_bytes: 100 };
        assert_eq!(gate(Before::Refuse).judge(b"hello"), Verdict::Refused);
        assert_eq!(gate(Before::Skip).judge(b"hello"), Verdict::NotYet);
        assert_eq!(gate(Before::Refuse).judge(b"up"), Verdict::Opens);
    }
}
