//! How a transcript becomes smaller: which part of it is told in a summary, and what is thrown away if that fails.
//!
//! Nothing here calls a model. [`summarise`] says which messages go into a summary and [`request_text`] what the model reads to
//! write it; [`shrink`] is the way without a model. Neither ever takes a call apart from its results.

use std::fmt::Write as _;
use std::ops::Range;

use super::history::{Edit, blocks, weight};
use crate::chat::{Message, Part, Role};
use crate::store::Stored;

/// A part with less than this is not worth a call.
const WORTH_TOKENS: u64 = 200;
/// What is left of a tool's output that is thrown away.
const STUB_BYTES: usize = 240;
/// How much of one message the writer of the summary reads.
const MESSAGE_BYTES: usize = 8 * 1024;

/// What the model is told that writes the summary.
pub(super) const PROMPT: &str = "You write the memory of an agent whose conversation has become too long. \
You are given the older part of it. Write a summary from which the agent can go on without that part: \
what the person asked for, in their own words where they matter; what was decided and why; \
what was done, with the names of files, commands, identifiers and figures exactly as they were; \
what was found out; what failed; what is still to be done. \
Leave out greetings and repetitions. Write plain text, no preamble, and call no tools.";

/// Put before a summary, so that the model does not take it for words of the person.
const HEADING: &str = "[Summary of the earlier part of this conversation]";

/// The parts of a history that are to be summarised, so that about `keep` tokens of its end stay as they are. The leading
/// system messages and the last message of the person always stay.
pub(super) fn summarise(items: &[Stored], keep: u64) -> Vec<Range<usize>> {
    let blocks = blocks(items);
    let is = |block: &Range<usize>, role: Role| items[block.start].message.role == role;
    let start = blocks.iter().take_while(|block| is(block, Role::System)).count();
    let last_user = blocks.iter().rposition(|block| is(block, Role::User));

    // The end that stays: at least the last block, whatever it weighs.
    let mut tail = blocks.len().saturating_sub(1).max(start);
    let mut kept: u64 = blocks.get(tail).map_or(0, |block| weigh(items, block));
    while tail > start {
        kept = kept.saturating_add(weigh(items, &blocks[tail - 1]));
        if kept > keep {
            break;
        }
        tail -= 1;
    }
    let parts = match last_user {
        Some(user) if user >= start && user < tail => [start..user, user + 1..tail],
        Some(_) | None => [start..tail, tail..tail],
    };
    let in_items = |part: Range<usize>| {
        let (first, last) = (blocks.get(part.start)?, blocks[..part.end].last()?);
        (part.start < part.end).then_some(first.start..last.end)
    };
    parts.into_iter().filter_map(in_items).filter(|range| weigh(items, range) >= WORTH_TOKENS).collect()
}

/// The older part as the writer of the summary reads it, at most `most` bytes.
pub(super) fn request_text(items: &[Stored], most: usize) -> String {
    let mut text = String::new();
    for Stored { message, .. } in items {
        let speaker = message.name.as_deref().filter(|_| message.role == Role::Tool);
        let _ = write!(text, "<{}", message.role.word());
        if let Some(tool) = speaker {
            let _ = write!(text, " name={tool}");
        }
        text.push_str(">\n");
        text.push_str(&cut(&message.plain_text(), MESSAGE_BYTES));
        for part in &message.parts {
            if let Part::Image(_) = part {
                text.push_str("\n[a picture]");
            }
        }
        for call in &message.tool_calls {
            let _ = write!(text, "\n[calls {} {}]", call.name, cut(call.arguments.get(), MESSAGE_BYTES));
        }
        text.push_str("\n\n");
    }
    cut(&text, most)
}

/// The message that a summary becomes.
pub(super) fn summary_message(summary: &str) -> Message {
    Message::text(Role::User, format!("{HEADING}\n{}", summary.trim()))
}

/// Throws the oldest and, if it must be, all large outputs of tools away until the history weighs `target`.
pub(super) fn shrink(items: &[Stored], target: u64) -> Vec<Edit> {
    let mut total = weigh(items, &(0..items.len()));
    let mut edits = Vec::new();
    for (at, Stored { message, .. }) in items.iter().enumerate() {
        if total <= target {
            break;
        }
        let text = message.plain_text();
        if message.role != Role::Tool || text.len() <= 2 * STUB_BYTES {
            continue;
        }
        let stub = format!(
            "{}\n[the rest of this output, {} bytes in all, was removed to make room; call the tool again if it is needed]",
            cut_head(&text, STUB_BYTES),
            text.len()
        );
        let replacement = Message { parts: vec![Part::Text(stub)], ..message.clone() };
        total = total.saturating_sub(weight(message)).saturating_add(weight(&replacement));
        edits.push(Edit { range: at..at + 1, replacement });
    }
    edits
}

/// The text if it is short enough, else its beginning and its end with a word about what is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = cut_head(text, most / 3 * 2);
    let mut from = text.len() - most / 3;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let missing = text.len() - head.len() - (text.len() - from);
    format!("{head}\n[… {missing} bytes left out …]\n{}", &text[from..])
}

fn cut_head(text: &str, most: usize) -> &str {
    let mut to = most.min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    &text[..to]
}

fn weigh(items: &[Stored], range: &Range<usize>) -> u64 {
    items[range.clone()].iter().map(|stored| weight(&stored.message)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::history::samples::items;
    use super::super::history::{History, blocks};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_person_s_last_words_the_instructions_and_the_end_stay() {
        // Each message weighs 1,004 tokens.
        let table: [(&str, u64, &str); 9] = [
            ("uauau", 0, "0..4"),
            ("suauau", 0, "1..5"),
            ("uauau", 2_100, "0..3"),
            ("uc12c12c12", 0, "1..7"),
            ("uac12uc12c12", 0, "0..5 6..9"),
            ("uac12uc12c12", 7_100, "0..5"),
            ("u", 0, ""),
            ("uc12", 0, ""),
            ("", 0, ""),
        ];
        for (script, keep, expected) in table {
            let parts = summarise(&items(script, 4_000), keep);
            let shown: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
            assert_eq!(shown.join(" "), expected, "{script} {keep}");
        }
    }

    #[test]
    fn a_part_that_weighs_nothing_is_not_worth_a_call() {
        assert_eq!(summarise(&items("uauau", 10), 0), Vec::<Range<usize>>::new());
    }

    #[test]
    fn without_a_model_the_oldest_outputs_go_first_and_keep_their_calls() {
        let items = items("uc12c12", 4_000);
        let edits = shrink(&items, 6_000);
        assert_eq!(edits.iter().map(|edit| edit.range.clone()).collect::<Vec<_>>(), [2..3, 3..4]);
        assert_eq!(edits[0].replacement.tool_call_id.as_deref(), Some("1.1"));
        assert!(edits[0].replacement.plain_text().contains("4000 bytes in all"));
        assert_eq!(shrink(&items, 0).len(), 4);
        assert_eq!(shrink(&items, 100_000).len(), 0);
    }

    #[test]
    fn a_text_is_cut_in_its_middle_and_never_inside_a_letter() {
        let text = "ä".repeat(1_000);
        for most in 0..200 {
            let shown = cut(&text, most);
            assert!(shown.contains("bytes left out"), "{most}");
            assert!(shown.len() <= most + 60);
        }
        assert_eq!(cut("short", 5), "short");
    }

    proptest! {
        #[test]
        fn calls_and_results_are_never_taken_apart(script in "s?(u|a|c12|c21|c1)*", keep in 0u64..20_000) {
            let items = items(&script, 4_000);
            let blocks = blocks(&items);
            let ranges = summarise(&items, keep);
            for range in &ranges {
                prop_assert!(blocks.iter().any(|block| block.start == range.start));
                prop_assert!(blocks.iter().any(|block| block.end == range.end));
            }
            let last_user = items.iter().rposition(|stored| stored.message.role == Role::User);
            let mut history = History::resumed(items.clone());
            let edits = ranges.iter().map(|range| Edit { range: range.clone(), replacement: summary_message("s") });
            history.apply(edits.collect());
            if let Some(last_user) = last_user {
                let words = items[last_user].message.plain_text();
                prop_assert!(history.items().iter().any(|stored| stored.message.plain_text() == words));
            }
        }
    }
}
