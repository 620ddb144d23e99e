//! What a call reaches for: the paths and addresses in the input of a tool, found by the names of its members.
//!
//! The input is read once, without building it up in memory, and within bounds. What is beyond a bound was not looked at,
//! and the answer says so.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::names::{Meaning, meaning};

/// The longest input that is looked into, in bytes of its JSON text. Of a longer one only the tool's name is judged.
pub const MAX_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// How deep objects and arrays are looked into.
pub const MAX_INPUT_DEPTH: usize = 32;

/// The most paths and addresses that are taken from one input.
pub const MAX_REACHED: usize = 1024;

/// The paths and addresses in one input.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reach {
    /// Files and folders, as written.
    pub paths: Vec<String>,
    /// Addresses, as written: a URL, or a host with or without a port.
    pub addresses: Vec<String>,
    /// What was not looked at; none when everything was.
    pub unread: Option<Unread>,
}

/// Why a part of an input was not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// Longer than [`MAX_INPUT_BYTES`].
    #[error("the input has {bytes} bytes; only the first {MAX_INPUT_BYTES} would be looked into")]
    TooLong {
        /// The length of its JSON text.
        bytes: usize,
    },
    /// Nested deeper than [`MAX_INPUT_DEPTH`].
    #[error("the input is nested deeper than {MAX_INPUT_DEPTH}")]
    TooDeep,
    /// More than [`MAX_REACHED`] paths and addresses.
    #[error("the input names more than {MAX_REACHED} files and addresses")]
    TooMany,
    /// It is not JSON.
    #[error("the input is not JSON")]
    NotJson,
}

/// What the JSON text `input` reaches for.
#[must_use]
pub fn reach(input: &str) -> Reach {
    let mut found = Reach::default();
    if input.len() > MAX_INPUT_BYTES {
        found.unread = Some(Unread::TooLong { bytes: input.len() });
        return found;
    }
    read(input, &mut found, Packed::MayBe);
    found
}

/// Whether a text may hold another JSON text: some models give arguments as a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packed {
    MayBe,
    No,
}

fn read(input: &str, found: &mut Reach, packed: Packed) {
    let mut json = serde_json::Deserializer::from_str(input);
    let walk = Walk { found, meaning: Meaning::Other, depth: 0 };
    let text = match walk.deserialize(&mut json) {
        Ok(text) => text.map(Cow::into_owned),
        Err(_) => {
            found.unread.get_or_insert(Unread::NotJson);
            None
        }
    };
    if packed == Packed::MayBe
        && let Some(text) = text
        && text.trim_start().starts_with(['{', '['])
    {
        read(&text, found, Packed::No);
    }
}

/// One value, whose member's name said what it means. Gives back a text that stands alone.
struct Walk<'f> {
    found: &'f mut Reach,
    meaning: Meaning,
    depth: usize,
}

impl Walk<'_> {
    fn note(&mut self, text: &str) {
        let list = match self.meaning {
            Meaning::Other => return,
            Meaning::Path | Meaning::Address if self.found.is_full() => {
                self.found.unread.get_or_insert(Unread::TooMany);
                return;
            }
            // The value knows better than the name: a path may be written as a URL, and a URL may name a file.
            Meaning::Path if is_remote(text) => &mut self.found.addresses,
            Meaning::Path => &mut self.found.paths,
            Meaning::Address if is_file(text) => &mut self.found.paths,
            Meaning::Address => &mut self.found.addresses,
        };
        list.push(text.to_owned());
    }
}

impl Reach {
    fn is_full(&self) -> bool {
        self.paths.len() + self.addresses.len() >= MAX_REACHED
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(mut self, text: &'de str) -> Result<Self::Value, E> {
        self.note(text);
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(mut self, text: &str) -> Result<Self::Value, E> {
        self.note(text);
        // Only a text that is the whole input is of use to whoever called.
        Ok((self.depth == 0).then(|| Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        if self.depth == MAX_INPUT_DEPTH {
            self.found.unread.get_or_insert(Unread::TooDeep);
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        // An item means what its array means: `"files": ["a", "b"]`.
        let (meaning, depth) = (self.meaning, self.depth + 1);
        while items.next_element_seed(Walk { found: self.found, meaning, depth })?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        if self.depth == MAX_INPUT_DEPTH {
            self.found.unread.get_or_insert(Unread::TooDeep);
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        let depth = self.depth + 1;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            let meaning = meaning(&name);
            members.next_value_seed(Walk { found: self.found, meaning, depth })?;
        }
        Ok(None)
    }
}

fn is_file(text: &str) -> bool {
    text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Whether a path is really a URL: letters, `://`, and not a file.
fn is_remote(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.len() > 1 && scheme.chars().all(letters) && !scheme.eq_ignore_ascii_case("file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(input: &str) -> (Vec<String>, Vec<String>, Option<Unread>) {
        let Reach { paths, addresses, unread } = reach(input);
        (paths, addresses, unread)
    }

    #[test]
    fn inputs_of_every_shape_give_up_their_paths_and_addresses() {
        let table: [(&str, &[&str], &[&str]); 17] = [
            (r#"{"file_path":"a.rs"}"#, &["a.rs"], &[]),
            (r#"{"paths":["a","b"],"limit":3}"#, &["a", "b"], &[]),
            (r#"{"edits":[{"path":"a","new_text":"x"},{"path":"b"}]}"#, &["a", "b"], &[]),
            (r#"{"files":[{"path":"a","content":"/etc/x"}]}"#, &["a"], &[]),
            (r#"{"files":{"a.rs":"content"}}"#, &[], &[]),
            (r#"{"path":null,"file":7,"files":[true]}"#, &[], &[]),
            (r#"{"path":"a\u002frs"}"#, &["a/rs"], &[]),
            (r#"{"p\u0061th":"a"}"#, &["a"], &[]),
            (r#"{"path":"a","path":"b"}"#, &["a", "b"], &[]),
            (r#"{"url":"https://example.org/x"}"#, &[], &["https://example.org/x"]),
            (r#"{"url":"file:///etc/passwd"}"#, &["file:///etc/passwd"], &[]),
            (r#"{"path":"https://example.org/x"}"#, &[], &["https://example.org/x"]),
            (r#"{"path":"file:///etc/passwd"}"#, &["file:///etc/passwd"], &[]),
            (r#"{"path":"C://x"}"#, &["C://x"], &[]),
            (r#"[{"host":"a"},{"hosts":["b:1"]}]"#, &[], &["a", "b:1"]),
            (r#""{\"path\":\"a\"}""#, &["a"], &[]),
            (r#""path""#, &[], &[]),
        ];
        for (input, paths, addresses) in table {
            let expected = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            assert_eq!(found(input), (expected(paths), expected(addresses), None), "{input}");
        }
    }

    #[test]
    fn a_text_in_a_text_in_a_text_is_not_unpacked_for_ever() {
        let inner = r#"{"path":"a"}"#;
        let packed = serde_json::to_string(&serde_json::to_string(inner).unwrap()).unwrap();
        assert_eq!(found(&packed), (vec![], vec![], None));
    }

    #[test]
    fn an_input_of_four_mebibytes_is_looked_into_and_one_more_byte_is_not() {
        let of = |bytes: usize| {
            let frame = r#"{"path":"a","content":""}"#.len();
            format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(bytes - frame))
        };
        assert_eq!(found(&of(MAX_INPUT_BYTES)), (vec!["a".to_owned()], vec![], None));
        let bytes = MAX_INPUT_BYTES + 1;
        assert_eq!(found(&of(bytes)), (vec![], vec![], Some(Unread::TooLong { bytes })));
    }

    #[test]
    fn an_input_is_looked_into_to_a_depth_and_the_rest_is_said_to_be_unread() {
        let nested = |depth: usize| {
            format!("{}{}{}", r#"{"x":"#.repeat(depth - 1), r#"{"path":"a"}"#, "}".repeat(depth - 1))
        };
        assert_eq!(found(&nested(MAX_INPUT_DEPTH)), (vec!["a".to_owned()], vec![], None));
        assert_eq!(found(&nested(MAX_INPUT_DEPTH + 1)), (vec![], vec![], Some(Unread::TooDeep)));
        let arrays =
            |depth: usize| format!(r#"{{"path":{}"a"{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(found(&arrays(MAX_INPUT_DEPTH)), (vec!["a".to_owned()], vec![], None));
        assert_eq!(found(&arrays(MAX_INPUT_DEPTH + 1)), (vec![], vec![], Some(Unread::TooDeep)));
        // Far beyond what the parser itself takes.
        assert!(found(&nested(100_000)).2.is_some());
    }

    #[test]
    fn an_input_names_so_many_files_and_no_more() {
        let of = |count: usize| format!(r#"{{"paths":[{}]}}"#, vec![r#""a""#; count].join(","));
        assert_eq!((found(&of(MAX_REACHED)).0.len(), found(&of(MAX_REACHED)).2), (MAX_REACHED, None));
        let past = found(&of(MAX_REACHED + 1));
        assert_eq!((past.0.len(), past.2), (MAX_REACHED, Some(Unread::TooMany)));
    }

    #[test]
    fn what_is_not_json_is_said_to_be_unread() {
        for input in ["", "{", r#"{"path":"a""#, "nonsense", r#"{"path":"\ud800"}"#] {
            assert_eq!(reach(input).unread, Some(Unread::NotJson), "{input}");
        }
    }
}
