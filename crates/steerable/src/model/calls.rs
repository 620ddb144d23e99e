//! Tool calls put together from their fragments.
//!
//! Providers send a call in pieces, several calls interleaved, and differ in what they repeat: some send the id with every piece,
//! some only with the first, some leave out the index, some send the arguments as an object instead of text. What comes out is
//! each call once, complete, in the model's order.

use serde_json::value::RawValue;

use super::event::Event;
use super::failure::{Failure, FailureKind};
use super::json::{Piece, depth};
use crate::chat::ToolCall;

/// How many bytes the calls of one answer may have together.
pub(super) const LIMIT: usize = 16 << 20;

/// How deep arguments may nest. Whoever reads them afterwards stops at 128, and they lie some levels deep in our own lines.
const MAX_DEPTH: usize = 100;

/// What a call is charged beside its texts, so that empty ones are not free.
const PER_CALL: usize = 64;

/// A piece of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fragment<'a> {
    /// Which of the answer's calls it belongs to, where the provider says so.
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) arguments: Arguments<'a>,
}

/// What a piece says about the arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Arguments<'a> {
    #[default]
    Nothing,
    /// More of the text.
    More(&'a str),
    /// All of them, instead of what came before.
    Whole(&'a str),
}

/// The calls of one answer, so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    entries: Vec<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Adds a piece.
    pub(super) fn add(&mut self, fragment: Fragment<'_>) -> Result<(), Failure> {
        let at = match self.find(&fragment) {
            Some(at) => at,
            None => {
                self.charge(PER_CALL)?;
                let index = fragment.index.unwrap_or_else(|| self.next_index());
                let (id, name, arguments) = (String::new(), String::new(), String::new());
                self.entries.push(Entry { index, id, name, arguments });
                self.entries.len() - 1
            }
        };
        let text = match fragment.arguments {
            Arguments::Nothing => "",
            Arguments::More(text) | Arguments::Whole(text) => text,
        };
        let (id, name) = (fragment.id.unwrap_or_default(), fragment.name.unwrap_or_default());
        self.charge(id.len() + name.len() + text.len())?;
        let entry = &mut self.entries[at];
        if !id.is_empty() {
            id.clone_into(&mut entry.id);
        }
        if entry.name != name {
            entry.name.push_str(name);
        }
        if let Arguments::Whole(_) = fragment.arguments {
            entry.arguments.clear();
        }
        entry.arguments.push_str(text);
        Ok(())
    }

    /// An index that no call has, after all others.
    pub(super) fn next_index(&self) -> u64 {
        self.entries.iter().map(|entry| entry.index.saturating_add(1)).max().unwrap_or(0)
    }

    /// The calls as events, in the model's order.
    pub(super) fn finish(mut self) -> impl Iterator<Item = Event<'static>> {
        self.entries.sort_by_key(|entry| entry.index);
        self.entries.into_iter().filter_map(Entry::finish)
    }

    /// The call that a piece goes on with.
    fn find(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let id = fragment.id.unwrap_or_default();
        let at = match fragment.index {
            Some(index) => self.entries.iter().rposition(|entry| entry.index == index)?,
            None => self.entries.len().checked_sub(1)?,
        };
        let entry = &self.entries[at];
        // Another id with a name is another call, also when a server gives all of its calls the same index or none.
        let has_name = fragment.name.is_some_and(|name| !name.is_empty());
        let is_other = has_name && !id.is_empty() && !entry.id.is_empty() && entry.id != id;
        (!is_other).then_some(at)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes += bytes;
        if self.bytes > LIMIT {
            let message = format!("the tool calls of one answer are larger than {LIMIT} bytes");
            return Err(Failure::new(FailureKind::Server, message));
        }
        Ok(())
    }
}

impl Entry {
    /// The call, unless it has no name: nobody could make it.
    fn finish(self) -> Option<Event<'static>> {
        // Some models leak the marks of their own template into the name.
        let name = self.name.split("<|").next().unwrap_or_default().trim().to_owned();
        if name.is_empty() {
            return None;
        }
        let id = if self.id.is_empty() { fresh_id() } else { self.id };
        let (arguments, unread) = match object(&self.arguments) {
            Some(arguments) => (arguments, None),
            None => (empty(), (!self.arguments.trim().is_empty()).then_some(self.arguments)),
        };
        Some(Event::ToolCall { call: ToolCall { id, name, arguments }, unread })
    }
}

/// A text as the JSON object that it is, on one line.
pub(super) fn object(text: &str) -> Option<Box<RawValue>> {
    let piece = Piece::read(text).ok().filter(|piece| piece.is_object())?;
    if depth(piece.raw()) > MAX_DEPTH {
        return None;
    }
    RawValue::from_string(one_line(piece.raw())).ok()
}

/// JSON without line breaks. A string cannot have one in it, so they are all between values.
pub(super) fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An id for a call whose provider gave it none.
fn fresh_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness ids are only as different as the clock; a run without it has larger troubles.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_le_bytes();
    }
    bytes.iter().fold("call_".to_owned(), |mut id, byte| {
        id.push_str(&format!("{byte:02x}"));
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(fragments: &[Fragment<'_>]) -> Vec<(String, String, String, Option<String>)> {
        let mut calls = Calls::default();
        for fragment in fragments {
            calls.add(*fragment).unwrap();
        }
        let seen = calls.finish().map(|event| match event {
            Event::ToolCall { call, unread } => (call.id, call.name, call.arguments.get().to_owned(), unread),
            other => panic!("{other:?}"),
        });
        seen.collect()
    }

    fn piece<'a>(index: u64, id: &'a str, name: &'a str, arguments: &'a str) -> Fragment<'a> {
        let some = |text: &'a str| (!text.is_empty()).then_some(text);
        Fragment { index: Some(index), id: some(id), name: some(name), arguments: Arguments::More(arguments) }
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String, Option<String>) {
        (id.to_owned(), name.to_owned(), arguments.to_owned(), None)
    }

    #[test]
    fn two_calls_interleaved_come_out_in_the_order_of_their_index() {
        let seen = calls(&[
            piece(1, "b", "second", "{\"n\""),
            piece(0, "a", "first", ""),
            piece(1, "", "", ":1}"),
            piece(0, "", "", "{}"),
        ]);
        assert_eq!(seen, [call("a", "first", "{}"), call("b", "second", "{\"n\":1}")]);
    }

    #[test]
    fn an_id_and_a_name_that_are_repeated_with_every_piece_change_nothing() {
        let seen = calls(&[piece(0, "a", "f", "{\"x\":"), piece(0, "a", "f", "1}")]);
        assert_eq!(seen, [call("a", "f", "{\"x\":1}")]);
    }

    #[test]
    fn calls_that_all_have_the_same_index_are_told_apart_by_their_ids() {
        let seen = calls(&[piece(0, "a", "f", "{}"), piece(0, "b", "g", "{"), piece(0, "", "", "}")]);
        assert_eq!(seen, [call("a", "f", "{}"), call("b", "g", "{}")]);
    }

    #[test]
    fn pieces_without_an_index_go_on_with_the_last_call() {
        let without = |mut fragment: Fragment<'static>| {
            fragment.index = None;
            fragment
        };
        let seen = calls(&[
            without(piece(0, "a", "f", "{")),
            without(piece(0, "", "", "}")),
            without(piece(0, "b", "g", "{}")),
        ]);
        assert_eq!(seen, [call("a", "f", "{}"), call("b", "g", "{}")]);
    }

    #[test]
    fn a_name_in_pieces_is_joined_and_a_leaked_mark_is_cut() {
        assert_eq!(
            calls(&[piece(0, "a", "get_", ""), piece(0, "", "time<|end|>", "")]),
            [call("a", "get_time", "{}")]
        );
        assert_eq!(calls(&[piece(0, "a", "", "{}")]), []);
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_beside_an_empty_one() {
        let unread =
            |text: &str| vec![("a".to_owned(), "f".to_owned(), "{}".to_owned(), Some(text.to_owned()))];
        for text in ["{\"x\":", "[1]", "\"x\"", "null"] {
            assert_eq!(calls(&[piece(0, "a", "f", text)]), unread(text));
        }
        assert_eq!(calls(&[piece(0, "a", "f", " ")]), [call("a", "f", "{}")]);
    }

    #[test]
    fn arguments_come_on_one_line_and_otherwise_as_they_were_written() {
        let seen = calls(&[piece(0, "a", "f", "{\n \"x\": 1.50,\r\n \"y\":\"\\n\" }\n")]);
        assert_eq!(seen, [call("a", "f", "{  \"x\": 1.50,   \"y\":\"\\n\" }")]);
    }

    #[test]
    fn arguments_may_nest_a_hundred_deep_and_not_deeper() {
        let nested =
            |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(object(&nested(MAX_DEPTH)).is_some());
        assert!(object(&nested(MAX_DEPTH + 1)).is_none());
    }

    #[test]
    fn calls_without_an_id_get_one_each() {
        let seen = calls(&[piece(0, "", "f", "{}"), piece(1, "", "f", "{}")]);
        assert!(seen[0].0.starts_with("call_") && seen[0].0.len() == 37);
        assert_ne!(seen[0].0, seen[1].0);
    }

    #[test]
    fn the_calls_of_an_answer_may_have_as_much_as_the_limit_and_not_a_byte_more() {
        let filled = |bytes: usize| {
            let mut calls = Calls::default();
            calls.add(piece(0, "a", "f", &"x".repeat(bytes - PER_CALL - 2))).map(|()| calls)
        };
        let mut full = filled(LIMIT).unwrap();
        assert_eq!(full.add(piece(0, "", "", "y")).unwrap_err().kind, FailureKind::Server);
        assert!(filled(LIMIT + 1).is_err());
    }
}
