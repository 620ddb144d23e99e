//! What a transcript says: its entries folded to the messages a model is shown, calls that were never answered closed, and
//! the places where it can be forked.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::encode::{decode, encode};
use super::error::{ForkError, StoreError};
use super::id::{RecordId, Seq};
use crate::chat::{Message, Role};

/// The largest message that is stored, in bytes.
pub const MESSAGE_LIMIT: usize = 32 << 20;

/// A message and its place.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its place. A summary has the place of the last message that it replaced; an answer that was made up for a call
    /// which was cut off has the place of what came before it.
    pub seq: Seq,
    /// The message.
    pub message: Message,
}

/// How to fork.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Which transcript.
    pub source: RecordId,
    /// Up to where.
    pub until: ForkPoint,
    /// The name of the copy; a fresh one if there is none.
    pub new_record: Option<RecordId>,
    /// What to call the copy.
    pub label: Option<String>,
}

/// Up to where a transcript is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    End,
    /// Up to this message, which is copied too.
    Until(Seq),
    /// Up to the last message of the user, which is not.
    BeforeLastUser,
    /// Up to the message of the user that has this number, counted from 0, which is not.
    BeforeUser(usize),
}

/// What came of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    /// The copy.
    pub record: RecordId,
    /// What it is a copy of.
    pub source: RecordId,
    /// Up to where; 0 if nothing was copied.
    pub source_until: Seq,
    /// What it is called.
    pub label: Option<String>,
    /// How many messages were copied.
    pub seed_messages: usize,
}

/// One row of a transcript, as both stores keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seq: Seq,
    /// Which messages this one replaces. `None`: it is a message like any other.
    pub(super) replaces: Option<RangeInclusive<Seq>>,
    /// The message, encoded.
    pub(super) text: String,
}

/// What a call is answered with when its tool did not get to answer.
#[must_use]
pub fn interrupted(call_id: &str, tool: &str) -> Message {
    let text = r#"{"success":false,"needsFollowup":true,"error":"interrupted","message":"the runtime ended before the tool did; whether it had an effect is not known"}"#;
    Message {
        name: Some(tool.to_owned()),
        tool_call_id: Some(call_id.to_owned()),
        ..Message::text(Role::Tool, text)
    }
}

/// Messages as they are stored, if each is small enough.
pub(super) fn encoded(messages: &[Message]) -> Result<Vec<String>, StoreError> {
    let texts = messages.iter().map(|message| {
        let text = encode(message);
        if text.len() > MESSAGE_LIMIT {
            return Err(StoreError::TooLarge { what: "message", bytes: text.len(), limit: MESSAGE_LIMIT });
        }
        Ok(text)
    });
    texts.collect()
}

/// The messages that a model is shown: those that no summary replaced, and the summaries in their places.
pub(super) fn fold(entries: &[Entry]) -> Result<Vec<Stored>, String> {
    // Only what is still visible is decoded: a long history costs its texts once.
    let mut view: Vec<(Seq, &Entry)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(replaced) = &entry.replaces else {
            view.push((entry.seq, entry));
            continue;
        };
        let from = view.partition_point(|(seq, _)| seq < replaced.start());
        let to = view.partition_point(|(seq, _)| seq <= replaced.end());
        view.splice(from..to.max(from), [(*replaced.end(), entry)]);
    }
    view.into_iter().map(|(seq, entry)| Ok(Stored { seq, message: decode(&entry.text)? })).collect()
}

/// Whose calls are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// Those of turns that are over: up to this place, and wherever somebody else spoke next.
    Until(Seq),
    /// All of them: no turn is running.
    All,
}

/// Answers calls that were cut off, each after the answers that its message did get.
pub(super) fn close(messages: Vec<Stored>, whose: Close) -> Vec<Stored> {
    let mut closed: Vec<Stored> = Vec::with_capacity(messages.len());
    let mut open = Open::default();
    for stored in messages {
        if stored.message.role == Role::Tool {
            open.answer(stored.message.tool_call_id.as_deref());
        } else {
            open.close_into(&mut closed);
            open = Open::of(&stored);
        }
        closed.push(stored);
    }
    let is_over = match whose {
        Close::Until(seq) => open.asked_at.is_some_and(|asked| asked <= seq),
        Close::All => true,
    };
    if is_over {
        open.close_into(&mut closed);
    }
    closed
}

/// The answers that a transcript lacks at its end, to be written before anything else is.
pub(super) fn missing_answers(messages: &[Stored]) -> Vec<Message> {
    let mut open = Open::default();
    for stored in messages {
        if stored.message.role == Role::Tool {
            open.answer(stored.message.tool_call_id.as_deref());
        } else {
            open = Open::of(stored);
        }
    }
    open.calls.iter().map(|(id, tool)| interrupted(id, tool)).collect()
}

/// Calls of one message that have no answer yet.
#[derive(Default)]
struct Open {
    asked_at: Option<Seq>,
    calls: Vec<(String, String)>,
}

impl Open {
    fn of(stored: &Stored) -> Self {
        // Two calls of one id cannot be told apart; one answer is what a provider expects.
        let mut seen = HashSet::new();
        let calls = stored.message.tool_calls.iter().filter(|call| seen.insert(call.id.as_str()));
        Self {
            asked_at: Some(stored.seq),
            calls: calls.map(|call| (call.id.clone(), call.name.clone())).collect(),
        }
    }

    fn answer(&mut self, id: Option<&str>) {
        self.calls.retain(|(call, _)| Some(call.as_str()) != id);
    }

    fn close_into(&mut self, closed: &mut Vec<Stored>) {
        let at = closed.last().map_or(Seq(0), |stored| stored.seq);
        closed.extend(
            self.calls.drain(..).map(|(id, tool)| Stored { seq: at, message: interrupted(&id, &tool) }),
        );
    }
}

/// The last entry that a fork copies: `None` if it copies nothing.
pub(super) fn fork_end(fork: &Fork, entries: &[Entry]) -> Result<Option<Seq>, ForkError> {
    let last = entries.last().map_or(Seq(0), |entry| entry.seq);
    let until = match fork.until {
        ForkPoint::End => last,
        ForkPoint::Until(seq) if seq <= last => seq,
        ForkPoint::Until(_) => return Err(ForkError::BeyondEnd { record: fork.source.clone(), last }),
        ForkPoint::BeforeLastUser | ForkPoint::BeforeUser(_) => before_user(fork, entries)?,
    };
    Ok(entries.iter().rev().map(|entry| entry.seq).find(|seq| *seq <= until))
}

fn before_user(fork: &Fork, entries: &[Entry]) -> Result<Seq, ForkError> {
    // The user's messages are counted in the whole history, so that a compaction does not renumber them.
    let users: Vec<Seq> = entries
        .iter()
        .filter(|entry| entry.replaces.is_none() && is_user(entry))
        .map(|entry| entry.seq)
        .collect();
    let found = match fork.until {
        ForkPoint::BeforeUser(index) => users.get(index),
        ForkPoint::BeforeLastUser | ForkPoint::End | ForkPoint::Until(_) => users.last(),
    };
    let found =
        found.ok_or_else(|| ForkError::NoUserMessage { record: fork.source.clone(), users: users.len() })?;
    Ok(Seq(found.0.saturating_sub(1)))
}

fn is_user(entry: &Entry) -> bool {
    // What cannot be read is not counted here: reading the transcript says that it is damaged.
    decode(&entry.text).is_ok_and(|message| message.role == Role::User)
}

/// How many messages there are among entries; summaries are none.
pub(super) fn messages_in(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.replaces.is_none()).count()
}
