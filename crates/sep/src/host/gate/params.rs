//! Reads params: every member must be known and right, and everything that is wrong is said at once, with its place.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::mesh::{Address, MessageHash};
use crate::protocol::{BadParam, Fault, MAX_BAD_PARAMS};

/// How long a text may be, and whether it may have more than one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    least: usize,
    most: usize,
    unit: Unit,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    CodePoints,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Anything but NUL.
    NoNul,
    /// No control characters, so one line.
    Line,
    /// Anything.
    Free,
    /// Only `A-Z a-z 0-9 . _ -`.
    Key,
}

impl Text {
    /// Bytes of text that may have lines.
    pub(super) const fn bytes(least: usize, most: usize) -> Self {
        Self { least, most, unit: Unit::Bytes, kind: Kind::NoNul }
    }

    /// One line of code points.
    pub(super) const fn line(least: usize, most: usize) -> Self {
        Self { least, most, unit: Unit::CodePoints, kind: Kind::Line }
    }

    /// Code points of any kind.
    pub(super) const fn free(least: usize, most: usize) -> Self {
        Self { least, most, unit: Unit::CodePoints, kind: Kind::Free }
    }

    /// A name that a program made.
    pub(super) const fn key(least: usize, most: usize) -> Self {
        Self { least, most, unit: Unit::Bytes, kind: Kind::Key }
    }

    fn flaw(self, text: &str) -> Option<String> {
        let Self { least, most, unit, kind } = self;
        let (length, unit) = match unit {
            Unit::Bytes => (text.len(), "bytes"),
            Unit::CodePoints => (text.chars().count(), "characters"),
        };
        if !(least..=most).contains(&length) {
            return Some(format!("must have {least} to {most} {unit}"));
        }
        let wrong = |c: char| match kind {
            Kind::NoNul => c == '\0',
            Kind::Line => c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
            Kind::Free => false,
            Kind::Key => !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')),
        };
        text.chars()
            .find(|c| wrong(*c))
            .map(|c| format!("must not have the character U+{:04X}", u32::from(c)))
    }
}

/// The members of params that nobody has asked for yet, and what was wrong so far.
pub(super) struct Params<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
    errors: Vec<BadParam>,
}

impl<'a> Params<'a> {
    /// Takes params apart. None are as good as `{}`.
    pub(super) fn new(params: Option<&'a RawValue>) -> Result<Self, Fault> {
        let Some(params) = params else { return Ok(Self { members: Vec::new(), errors: Vec::new() }) };
        match serde_json::from_str::<Members<'a>>(params.get()) {
            Ok(Members(members)) => Ok(Self { members, errors: Vec::new() }),
            Err(_) => Err(Fault::Params(vec![BadParam {
                path: String::new(),
                reason: "must be an object".to_owned(),
            }])),
        }
    }

    /// The member of this name, if there is one.
    pub(super) fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.members.iter().position(|(known, _)| known == name)?;
        Some(self.members.swap_remove(at).1)
    }

    /// Notes what is wrong at a place.
    pub(super) fn wrong(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        if self.errors.len() < MAX_BAD_PARAMS {
            self.errors.push(BadParam { path: path.into(), reason: reason.into() });
        }
    }

    /// What a member must not be without. The value stands in for it until [`Params::finish`] refuses.
    pub(super) fn required<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        let noted = |error: &BadParam| error.path.strip_prefix('/') == Some(name);
        if value.is_none() && !self.errors.iter().any(noted) {
            self.wrong(format!("/{name}"), "is missing");
        }
        value
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str, rule: Text) -> Option<String> {
        let text = self.string(name)?;
        match rule.flaw(&text) {
            None => Some(text),
            Some(flaw) => {
                self.wrong(format!("/{name}"), flaw);
                None
            }
        }
    }

    /// A whole number.
    pub(super) fn number(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let raw = self.raw(name)?;
        match serde_json::from_str::<u64>(raw.get()) {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            Ok(_) | Err(_) => {
                self.wrong(format!("/{name}"), format!("must be a whole number from {least} to {most}"));
                None
            }
        }
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.string(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(format!("/{name}"), format!("must be one of {}", known.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    /// The address of somebody.
    pub(super) fn address(&mut self, name: &str) -> Option<Address> {
        self.hash(name, Address::parse, 32)
    }

    /// The name of a message.
    pub(super) fn message(&mut self, name: &str) -> Option<MessageHash> {
        self.hash(name, MessageHash::parse, 64)
    }

    /// Up to `most` texts.
    pub(super) fn texts(&mut self, name: &str, most: usize, each: Text) -> Option<Vec<String>> {
        let items = self.items(name, most)?;
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = || format!("/{name}/{index}");
            match serde_json::from_str::<String>(item.get()) {
                Err(_) => self.wrong(path(), "must be a string"),
                Ok(text) => match each.flaw(&text) {
                    Some(flaw) => self.wrong(path(), flaw),
                    None => texts.push(text),
                },
            }
        }
        Some(texts)
    }

    /// Up to `most` things of a kind that serde reads; each is judged by itself, so that its place can be said.
    pub(super) fn things<T: DeserializeOwned>(&mut self, name: &str, most: usize) -> Option<Vec<T>> {
        let items = self.items(name, most)?;
        let mut things = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match serde_json::from_str(item.get()) {
                Ok(thing) => things.push(thing),
                Err(error) => self.wrong(format!("/{name}/{index}"), without_position(&error)),
            }
        }
        Some(things)
    }

    /// Whether nothing was wrong and nothing is left over; then `value`, which everything needed is in.
    pub(super) fn finish<T>(mut self, value: Option<T>) -> Result<T, Fault> {
        for (name, _) in std::mem::take(&mut self.members) {
            let mut name: String = name.chars().take(64).collect();
            if name.contains(['~', '/']) {
                name = name.replace('~', "~0").replace('/', "~1");
            }
            self.wrong(format!("/{name}"), "is not known");
        }
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            Some(_) | None => {
                self.errors.sort_by(|a, b| a.path.cmp(&b.path));
                Err(Fault::Params(self.errors))
            }
        }
    }

    fn string(&mut self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        let text = serde_json::from_str::<String>(raw.get()).ok();
        if text.is_none() {
            self.wrong(format!("/{name}"), "must be a string");
        }
        text
    }

    fn items(&mut self, name: &str, most: usize) -> Option<Vec<&'a RawValue>> {
        let raw = self.raw(name)?;
        let items = serde_json::from_str::<Vec<&'a RawValue>>(raw.get()).ok();
        match items {
            None => self.wrong(format!("/{name}"), "must be an array"),
            Some(items) if items.len() > most => {
                self.wrong(format!("/{name}"), format!("must have no more than {most} elements"));
            }
            Some(items) => return Some(items),
        }
        None
    }

    fn hash<T, E>(&mut self, name: &str, parse: fn(&str) -> Result<T, E>, digits: usize) -> Option<T> {
        let text = self.string(name)?;
        let hash = parse(&text).ok();
        if hash.is_none() {
            self.wrong(format!("/{name}"), format!("must be {digits} lower-case hexadecimal digits"));
        }
        hash
    }
}

/// What serde says, without the line and column, which mean nothing to the author, and not at any length.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// The members of an object, in order, not copied.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(json: &str, read: impl FnOnce(&mut Params<'_>)) -> Vec<String> {
        let raw: Box<RawValue> = serde_json::from_str(json).expect("JSON");
        let outcome = Params::new(Some(&raw)).and_then(|mut params| {
            read(&mut params);
            params.finish(Some(()))
        });
        match outcome {
            Ok(()) => Vec::new(),
            Err(Fault::Params(errors)) => {
                errors.into_iter().map(|bad| format!("{} {}", bad.path, bad.reason)).collect()
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_no_object_is_refused_as_a_whole() {
        for wrong in ["[]", "null", "1", "\"{}\"", "[{}]"] {
            assert_eq!(errors(wrong, |_| ()), [" must be an object"], "{wrong}");
        }
        assert_eq!(errors("{}", |_| ()), Vec::<String>::new());
        assert!(Params::new(None).and_then(|params| params.finish(Some(()))).is_ok());
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        let read = |params: &mut Params<'_>| {
            let text = params.text("text", Text::line(1, 3));
            params.required("text", text);
            params.number("number", 1, 200);
            params.word("word", &[("a", 1), ("b", 2)]);
            params.address("peer");
            params.texts("list", 2, Text::line(1, 3));
        };
        assert_eq!(
            errors(r#"{"text":"abc","number":200,"word":"a","list":["x"]}"#, read),
            Vec::<String>::new()
        );
        let wrong = r#"{"number":201,"word":"c","peer":"AA","list":["x",1],"odd":1,"a/b~":2}"#;
        assert_eq!(
            errors(wrong, read),
            [
                "/a~1b~0 is not known",
                "/list/1 must be a string",
                "/number must be a whole number from 1 to 200",
                "/odd is not known",
                "/peer must be 32 lower-case hexadecimal digits",
                "/text is missing",
                "/word must be one of a, b",
            ]
        );
        assert_eq!(errors(r#"{"text":null}"#, read), ["/text must be a string"]);
        assert_eq!(errors(r#"{"text":"a","number":1.0}"#, read).len(), 1);
        assert_eq!(
            errors(r#"{"text":"a","list":["x","y","z"]}"#, read),
            ["/list must have no more than 2 elements"]
        );
    }

    #[test]
    fn a_text_is_right_at_its_limits_and_wrong_one_past_them() {
        assert_eq!(Text::bytes(1, 3).flaw("abc"), None);
        assert_eq!(Text::bytes(1, 3).flaw("aé"), None);
        assert!(Text::bytes(1, 3).flaw("éé").is_some(), "bytes are counted");
        assert_eq!(Text::line(0, 2).flaw("éé"), None, "code points are counted");
        assert!(Text::line(0, 2).flaw("ééé").is_some());
        assert!(Text::bytes(1, 3).flaw("").is_some());
        assert!(Text::bytes(1, 3).flaw("a\0").is_some());
        assert_eq!(Text::bytes(1, 3).flaw("a\n"), None);
        for control in ["a\n", "\r", "\u{7f}", "\u{85}", "\u{2028}"] {
            assert!(Text::line(0, 9).flaw(control).is_some(), "{control:?}");
        }
        assert_eq!(Text::key(1, 9).flaw("aZ0._-"), None);
        assert!(Text::key(1, 9).flaw("a b").is_some());
    }

    #[test]
    fn no_more_than_sixteen_mistakes_are_listed() {
        let members: Vec<String> = (0..40).map(|i| format!("\"m{i:02}\":0")).collect();
        assert_eq!(errors(&format!("{{{}}}", members.join(",")), |_| ()).len(), MAX_BAD_PARAMS);
    }
}
