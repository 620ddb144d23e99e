//! What of an event one extension gets to see, and how that is written: once for all that see the same.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::topic::Topic;
use crate::mesh::{Address, Change, DeliveryState, MeshEvent, Message, MessageHash};
use crate::protocol::MessageJson;

/// The longest text of a message in an event.
pub const MAX_CONTENT_BYTES: usize = 4096;
/// The longest name of a peer in an event, in code points.
const MAX_NAME: usize = 128;
/// What a frame needs around the data of an event, whatever its numbers.
const ENVELOPE_BYTES: usize = 320;

/// What one extension may see, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) names: Names,
    /// The most bytes of data that fit into a frame.
    pub(super) most: usize,
}

/// Whether an extension may know what we call somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    Shown,
    Hidden,
}

impl View {
    pub(super) fn new(names: Names, max_frame_bytes: usize) -> Self {
        Self { names, most: max_frame_bytes.saturating_sub(ENVELOPE_BYTES) }
    }
}

/// An event that is being told to many, with what has been written of it so far.
pub(super) struct Telling<'a> {
    pub(super) topic: Topic,
    pub(super) about: Option<Address>,
    pub(super) time_ms: u64,
    event: &'a MeshEvent,
    /// There are as many as there are different views of it, which is one or two.
    written: Vec<(View, Arc<RawValue>)>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(event: &'a MeshEvent, time_ms: u64) -> Self {
        let about = match event {
            MeshEvent::Online { address, .. } | MeshEvent::Offline { address } => Some(*address),
            MeshEvent::Received(_)
            | MeshEvent::Sent(_)
            | MeshEvent::State { .. }
            | MeshEvent::Contact { .. } => None,
        };
        Self { topic: Topic::of(event), about, time_ms, event, written: Vec::new() }
    }

    /// The data as seen by `view`. `None` if it cannot be written, which no event of ours is.
    pub(super) fn data(&mut self, view: View) -> Option<Arc<RawValue>> {
        let names = match self.event {
            MeshEvent::Online { name: Some(_), .. } => view.names,
            // There is nothing to hide, so all see the same.
            _ => Names::Hidden,
        };
        let whole = self.written_as(View { names, most: usize::MAX })?;
        match whole.get().len() <= view.most {
            true => Some(whole),
            false => self.written_as(View { names, most: view.most }),
        }
    }

    fn written_as(&mut self, view: View) -> Option<Arc<RawValue>> {
        if let Some((_, data)) = self.written.iter().find(|(other, _)| *other == view) {
            return Some(Arc::clone(data));
        }
        let data: Arc<RawValue> = write(self.event, view).ok()?.into();
        self.written.push((view, Arc::clone(&data)));
        Some(data)
    }
}

fn write(event: &MeshEvent, view: View) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Online<'a> {
        destination_hash: Address,
        hops: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        display_name: Option<Cow<'a, str>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Offline {
        destination_hash: Address,
    }
    #[derive(Serialize)]
    struct State {
        hash: MessageHash,
        state: DeliveryState,
        previous: DeliveryState,
    }
    #[derive(Serialize)]
    struct Contact {
        id: u64,
        change: Change,
    }
    match event {
        MeshEvent::Received(message) | MeshEvent::Sent(message) => write_message(message, view.most),
        MeshEvent::State { hash, state, previous } => {
            to_raw_value(&State { hash: *hash, state: *state, previous: *previous })
        }
        MeshEvent::Online { address, hops, name } => {
            let display_name = match view.names {
                Names::Shown => name.as_deref().map(|name| first_chars(name, MAX_NAME)),
                Names::Hidden => None,
            };
            to_raw_value(&Online { destination_hash: *address, hops: *hops, display_name })
        }
        MeshEvent::Offline { address } => to_raw_value(&Offline { destination_hash: *address }),
        MeshEvent::Contact { id, change } => to_raw_value(&Contact { id: *id, change: *change }),
    }
}

/// A message whose text is cut to what an event may have, and then as far as it must be to fit: the text first, then the
/// title, and at last what is attached.
fn write_message(message: &Message, most: usize) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct Data<'a> {
        message: MessageJson<'a>,
    }
    let mut data = Data { message: MessageJson::from(message) };
    let json = &mut data.message;
    let content = &message.content[..message.content.floor_char_boundary(MAX_CONTENT_BYTES)];
    json.content_truncated = content.len() < message.content.len();
    json.content = Cow::Borrowed(content);
    let mut raw = to_raw_value(&data)?;
    for step in [Step::Content, Step::Title, Step::Attachments] {
        let Some(over) = raw.get().len().checked_sub(most).filter(|over| *over > 0) else { break };
        let json = &mut data.message;
        match step {
            Step::Content => {
                let content = &message.content[..json.content.len()];
                json.content = Cow::Borrowed(shorter(content, over));
                json.content_truncated |= json.content.len() < content.len();
            }
            Step::Title => json.title = Cow::Borrowed(shorter(&message.title, over)),
            Step::Attachments => json.attachments.clear(),
        }
        raw = to_raw_value(&data)?;
    }
    Ok(raw)
}

enum Step {
    Content,
    Title,
    Attachments,
}

/// `text` without its end, so that it takes at least `less` bytes less when it is escaped.
fn shorter(text: &str, less: usize) -> &str {
    let mut saved = 0;
    let mut end = text.len();
    for (at, character) in text.char_indices().rev() {
        if saved >= less {
            break;
        }
        saved += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            control if control < ' ' => 6,
            other => other.len_utf8(),
        };
        end = at;
    }
    &text[..end]
}

fn first_chars(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Borrowed(&text[..end]),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
