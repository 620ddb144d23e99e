//! The messages that the model is shown, each with its place in the transcript, and how many tokens they are.

use std::ops::Range;

use crate::chat::{Message, Role, ToolCall, ToolSpec, Usage};
use crate::model::estimate_tokens;
use crate::store::{Seq, Stored};

/// What the model is shown beside the system prompt.
#[derive(Debug, Default)]
pub(super) struct History {
    items: Vec<Stored>,
    measured: Option<Measured>,
}

/// What a provider counted: a better ground for an estimate than bytes.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The messages that were counted, the answer included.
    items: usize,
    tokens: u64,
}

/// Some messages that are to be replaced by one.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) replacement: Message,
}

impl History {
    /// What a transcript has; results are put into the order of their calls, whichever finished first.
    pub(super) fn resumed(stored: Vec<Stored>) -> Self {
        let mut history = Self { items: stored, measured: None };
        history.settle();
        history
    }

    pub(super) fn items(&self) -> &[Stored] {
        &self.items
    }

    /// Adds a message that was stored at `seq`.
    pub(super) fn push(&mut self, seq: Seq, message: Message) {
        self.items.push(Stored { seq, message });
    }

    /// Puts the results of the last calls into the order of the calls. Called when all are there, because they are stored
    /// as they finish.
    pub(super) fn settle(&mut self) {
        for block in blocks(&self.items) {
            let Some((asked, results)) = self.items[block].split_first_mut() else { continue };
            let place = |stored: &Stored| {
                let id = stored.message.tool_call_id.as_deref();
                asked.message.tool_calls.iter().position(|call| Some(call.id.as_str()) == id)
            };
            results.sort_by_key(|stored| place(stored).unwrap_or(usize::MAX));
        }
    }

    /// The last calls that have no result.
    pub(super) fn unanswered(&self) -> Vec<ToolCall> {
        let Some(last) = blocks(&self.items).pop() else { return Vec::new() };
        let Some((asked, results)) = self.items[last].split_first() else { return Vec::new() };
        let open = |call: &&ToolCall| {
            !results.iter().any(|stored| stored.message.tool_call_id.as_deref() == Some(call.id.as_str()))
        };
        asked.message.tool_calls.iter().filter(open).cloned().collect()
    }

    /// Whether a model has something to answer to.
    pub(super) fn can_go_on(&self) -> bool {
        self.items.last().is_some_and(|stored| match stored.message.role {
            Role::User | Role::Tool => true,
            Role::System | Role::Assistant => false,
        })
    }

    /// All messages for a prompt.
    pub(super) fn prompt(&self, system: Option<&str>) -> Vec<Message> {
        let system = system.map(|text| Message::text(Role::System, text));
        system.into_iter().chain(self.items.iter().map(|stored| stored.message.clone())).collect()
    }

    /// About how many tokens the prompt has.
    pub(super) fn estimate(&self, system: Option<&str>, tools: &[ToolSpec]) -> u64 {
        let weigh = |items: &[Stored]| items.iter().map(|stored| weight(&stored.message)).sum::<u64>();
        match self.measured {
            Some(Measured { items, tokens }) => tokens.saturating_add(weigh(&self.items[items..])),
            None => {
                let system = system.map_or(0, |text| weight(&Message::text(Role::System, text)));
                weigh(&self.items).saturating_add(system).saturating_add(estimate_tokens(&[], tools))
            }
        }
    }

    /// A provider has counted everything up to the last message, which is its answer.
    pub(super) fn measure(&mut self, usage: Usage) {
        let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        if usage.prompt_tokens > 0 {
            self.measured = Some(Measured { items: self.items.len(), tokens });
        }
    }

    /// Replaces messages; the ranges must not overlap. The replacement has the place of the last one replaced, as in the
    /// store.
    pub(super) fn apply(&mut self, mut edits: Vec<Edit>) {
        edits.sort_by_key(|edit| edit.range.start);
        for Edit { range, replacement } in edits.into_iter().rev() {
            let Some(seq) = self.items[range.clone()].iter().map(|stored| stored.seq).max() else { continue };
            self.items.splice(range, [Stored { seq, message: replacement }]);
        }
        self.measured = None;
    }
}

/// About how many tokens a message has.
pub(super) fn weight(message: &Message) -> u64 {
    estimate_tokens(std::slice::from_ref(message), &[])
}

/// The pieces that must stay together: a message that calls tools and the results behind it, or any other message.
pub(super) fn blocks(items: &[Stored]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (at, stored) in items.iter().enumerate() {
        match blocks.last_mut() {
            Some(block)
                if stored.message.role == Role::Tool && !items[block.start].message.tool_calls.is_empty() =>
            {
                block.end = at + 1;
            }
            Some(_) | None => blocks.push(at..at + 1),
        }
    }
    blocks
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use serde_json::value::RawValue;

    pub(in super::super) fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "work".to_owned(),
            arguments: RawValue::from_string("{}".to_owned()).unwrap(),
        }
    }

    /// `u` a user, `a` an answer, `c` a message with two calls, `1` and `2` their results, `s` a system message; each has as many bytes of text as
    /// the number says.
    pub(in super::super) fn items(script: &str, bytes: usize) -> Vec<Stored> {
        let mut round = 0;
        let message = |(at, letter): (usize, char)| {
            let text = "x".repeat(bytes);
            if letter == 'c' {
                round += 1;
            }
            let message = match letter {
                'u' => Message::text(Role::User, text),
                's' => Message::text(Role::System, text),
                'a' => Message::text(Role::Assistant, text),
                'c' => Message {
                    tool_calls: vec![call(&format!("{round}.1")), call(&format!("{round}.2"))],
                    ..Message::text(Role::Assistant, text)
                },
                digit => Message {
                    tool_call_id: Some(format!("{round}.{digit}")),
                    ..Message::text(Role::Tool, text)
                },
            };
            Stored { seq: Seq(at as u64 + 1), message }
        };
        script.chars().enumerate().map(message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::items;
    use super::*;

    fn ids(history: &History) -> Vec<&str> {
        history.items().iter().filter_map(|stored| stored.message.tool_call_id.as_deref()).collect()
    }

    #[test]
    fn results_are_shown_in_the_order_of_their_calls() {
        let history = History::resumed(items("uc21c12a", 1));
        assert_eq!(ids(&history), ["1.1", "1.2", "2.1", "2.2"]);
    }

    #[test]
    fn a_call_without_a_result_is_found() {
        let open = |script| {
            let history = History::resumed(items(script, 1));
            history.unanswered().into_iter().map(|call| call.id).collect::<Vec<_>>()
        };
        assert_eq!(open("uc"), ["1.1", "1.2"]);
        assert_eq!(open("uc2"), ["1.1"]);
        assert_eq!(open("uc21"), Vec::<String>::new());
        assert_eq!(open("uc2u"), Vec::<String>::new());
        assert_eq!(open(""), Vec::<String>::new());
    }

    #[test]
    fn a_transcript_goes_on_behind_a_person_or_a_result() {
        let goes = |script| History::resumed(items(script, 1)).can_go_on();
        assert_eq!(["u", "uc12", "ua", "us", ""].map(goes), [true, true, false, false, false]);
    }

    #[test]
    fn what_the_provider_counted_is_the_ground_of_the_next_estimate() {
        let mut history = History::resumed(items("ua", 400));
        let usage = Usage {
            prompt_tokens: 1_000,
            completion_tokens: 50,
            total_tokens: 1_050,
            cached_prompt_tokens: 0,
        };
        assert_eq!(history.estimate(None, &[]), 208);
        history.measure(usage);
        assert_eq!(history.estimate(None, &[]), 1_050);
        history.push(Seq(3), Message::text(Role::User, "x".repeat(400)));
        assert_eq!(history.estimate(None, &[]), 1_154);
        history.apply(vec![Edit { range: 0..2, replacement: Message::text(Role::User, "sum") }]);
        assert_eq!(history.estimate(None, &[]), 109);
    }

    #[test]
    fn a_replacement_has_the_place_of_the_last_one_it_replaced() {
        let mut history = History::resumed(items("uaua", 1));
        history.apply(vec![
            Edit { range: 3..4, replacement: Message::text(Role::User, "b") },
            Edit { range: 0..2, replacement: Message::text(Role::User, "a") },
        ]);
        let places: Vec<u64> = history.items().iter().map(|stored| stored.seq.0).collect();
        assert_eq!(places, [2, 3, 4]);
    }
}
