//! Message ids, kept as they were written so that the echo is exact, and compared by what they mean.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The id of a request. A number, a string and null are different even if they look alike: `1` is not `"1"`.
///
/// It is written back byte for byte. Two strings are equal when they decode to the same text; two numbers are equal
/// when they are spelled the same, because a peer that re-spells a number has lost the id.
#[derive(Clone)]
pub struct Id(Repr);

/// What sort of JSON value an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// A number.
    Number,
    /// A string.
    Text,
    /// The value `null`, which is not the same as no id.
    Null,
    /// A boolean, an array or an object, which only lenient dialects allow.
    Other,
}

/// Nearly all ids are small counters, and those cost no allocation.
#[derive(Clone)]
enum Repr {
    Counter(u64),
    Spelled(Box<str>),
}

impl Id {
    /// The id `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Repr::Spelled("null".into()))
    }

    /// A string id with this text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        // A string always serialises; `Display` of a JSON string value is its JSON spelling.
        Self(Repr::Spelled(serde_json::Value::from(text).to_string().into()))
    }

    /// Takes an id as it is spelled in JSON. The caller has checked that it is one JSON value.
    pub(super) fn from_json(json: &str) -> Self {
        let counter = json.bytes().all(|byte| byte.is_ascii_digit()).then(|| json.parse().ok()).flatten();
        Self(counter.map_or_else(|| Repr::Spelled(json.into()), Repr::Counter))
    }

    /// What sort of value it is.
    #[must_use]
    pub fn kind(&self) -> IdKind {
        match &self.0 {
            Repr::Counter(_) => IdKind::Number,
            Repr::Spelled(json) => match json.as_bytes().first() {
                Some(b'"') => IdKind::Text,
                Some(b'n') => IdKind::Null,
                Some(b'-' | b'0'..=b'9') => IdKind::Number,
                Some(_) | None => IdKind::Other,
            },
        }
    }

    /// The id as a counter, if it is a whole number that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Counter(counter) => Some(counter),
            Repr::Spelled(_) => None,
        }
    }

    /// The text of a string id.
    #[must_use]
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match &self.0 {
            Repr::Spelled(json) => unquote(json),
            Repr::Counter(_) => None,
        }
    }

    /// The id as JSON, exactly as it was spelled.
    #[must_use]
    pub fn as_json(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Counter(counter) => Cow::Owned(counter.to_string()),
            Repr::Spelled(json) => Cow::Borrowed(json),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Counter(counter) => {
                use std::io::Write as _;
                // Writing to a vector cannot fail.
                let _ = write!(out, "{counter}");
            }
            Repr::Spelled(json) => out.extend_from_slice(json.as_bytes()),
        }
    }

    /// Whether it is a string of 1 to 64 bytes or an integer that a double holds exactly.
    pub(super) fn is_portable(&self) -> bool {
        const EXACT: u64 = (1 << 53) - 1;
        match (&self.0, self.kind()) {
            (Repr::Counter(counter), _) => *counter <= EXACT,
            (Repr::Spelled(json), IdKind::Number) => {
                json.parse::<i64>().is_ok_and(|number| number.unsigned_abs() <= EXACT)
            }
            (Repr::Spelled(json), IdKind::Text) => {
                unquote(json).is_some_and(|text| (1..=64).contains(&text.len()))
            }
            (Repr::Spelled(_), IdKind::Null | IdKind::Other) => false,
        }
    }

    /// What equality looks at: decoded text for strings, the spelling for everything else.
    fn meaning(&self) -> Meaning<'_> {
        match &self.0 {
            Repr::Counter(counter) => Meaning::Counter(*counter),
            Repr::Spelled(json) => match unquote(json) {
                Some(text) => Meaning::Text(text),
                None => Meaning::Spelled(json),
            },
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Meaning<'a> {
    Counter(u64),
    Text(Cow<'a, str>),
    Spelled(&'a str),
}

impl From<u64> for Id {
    fn from(counter: u64) -> Self {
        Self(Repr::Counter(counter))
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_json())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_json())
    }
}

/// The text of a JSON string, borrowed when nothing in it is escaped; `None` for other values and for bad escapes.
pub(super) fn unquote(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}
