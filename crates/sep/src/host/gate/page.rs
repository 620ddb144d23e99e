//! Pages that fit into a frame: as many entries as there is room for, and always one, cut if it must be.

use std::io;

use serde::Serialize;

use crate::protocol::{ContactJson, MessageJson};

/// What the envelope of an answer has beside its id and its result: `{"jsonrpc":"2.0","id":,"result":}`.
const ENVELOPE: usize = 34;
/// What a page has beside its entries: `{"messages":[],"nextCursor":""}` and a cursor, rounded up.
const PAGE: usize = 32 + 112;

/// The bytes that the entries of a page may have together.
pub(super) fn room(max_frame: usize, id_bytes: usize) -> usize {
    max_frame.saturating_sub(ENVELOPE + PAGE + id_bytes)
}

/// Something that can be on a page.
pub(super) trait Entry: Serialize {
    /// Makes it have no more than `room` bytes, as far as that is possible.
    fn cut(&mut self, room: usize);
}

/// How many of `entries`, from the first, have room together. The first one always does: it is cut.
pub(super) fn fit<T: Entry>(entries: &mut [T], room: usize) -> usize {
    let mut used = 0;
    for (index, entry) in entries.iter_mut().enumerate() {
        let mut length = length_of(entry);
        if index == 0 && length > room {
            entry.cut(room);
            length = length_of(entry);
        }
        used += length + usize::from(index > 0);
        if used > room && index > 0 {
            return index;
        }
    }
    entries.len()
}

impl Entry for MessageJson<'_> {
    fn cut(&mut self, room: usize) {
        let excess = |message: &Self| length_of(message).saturating_sub(room);
        self.content_truncated = true;
        let over = excess(self);
        shorten(&mut self.content, over);
        // Only a frame of little more than a kilobyte comes here.
        let over = excess(self);
        shorten(&mut self.title, over);
        while excess(self) > 0 && self.attachments.pop().is_some() {}
    }
}

impl Entry for ContactJson<'_> {
    fn cut(&mut self, room: usize) {
        let over = length_of(self).saturating_sub(room);
        shorten(&mut self.name, over);
    }
}

/// Takes at least `over` bytes, as they are written in JSON, from the end of `text`, or all there are.
fn shorten(text: &mut std::borrow::Cow<'_, str>, over: usize) {
    let mut saved = 0;
    let mut end = text.len();
    for (at, c) in text.char_indices().rev() {
        if saved >= over {
            break;
        }
        saved += written(c);
        end = at;
    }
    if end < text.len() {
        *text = std::borrow::Cow::Owned(text[..end].to_owned());
    }
}

/// How many bytes a character has inside a JSON string.
fn written(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

fn length_of(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and what is on a page serialises.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{
        Address, Attachment, AttachmentKind, DeliveryState, Direction, Message, MessageHash, Method,
    };

    fn message(content: &str) -> Message {
        Message {
            hash: MessageHash([0xab; 32]),
            source: Address([1; 16]),
            destination: Address([2; 16]),
            direction: Direction::Incoming,
            state: DeliveryState::Delivered,
            method: Method::Opportunistic,
            title: String::new(),
            content: content.into(),
            lossy: false,
            attachments: Vec::new(),
            reply_to: Some(MessageHash([0xcd; 32])),
            timestamp_ms: u64::MAX,
            rssi: Some(-123.456),
            snr: Some(-12.5),
            quality: Some(99.9),
        }
    }

    #[test]
    fn as_many_as_fit_and_not_one_byte_more() {
        let (one, two) = (message("one"), message("two"));
        let entries = || vec![MessageJson::from(&one), MessageJson::from(&two)];
        let both = entries().iter().map(length_of).sum::<usize>() + 1;
        assert_eq!(fit(&mut entries(), both), 2);
        assert_eq!(fit(&mut entries(), both - 1), 1);
        assert_eq!(fit::<MessageJson<'_>>(&mut [], 0), 0);
    }

    #[test]
    fn the_first_message_is_cut_to_fit_whatever_its_characters_cost() {
        for content in ["x".repeat(5000), "\u{1}".repeat(900), "é\"😀\n".repeat(400), "\\".repeat(3000)] {
            let whole = message(&content);
            for room in [900, 901, 902, 903, 1000] {
                let mut entries = [MessageJson::from(&whole)];
                assert_eq!(fit(&mut entries, room), 1);
                let length = length_of(&entries[0]);
                assert!(length <= room && length + 6 > room, "{length} of {room}");
                assert!(entries[0].content_truncated && content.starts_with(&*entries[0].content));
            }
        }
    }

    #[test]
    fn the_smallest_frame_holds_the_largest_message() {
        let mut whole = message(&"x".repeat(16384));
        whole.title = "😀".repeat(256);
        let name = Some("n".repeat(255));
        whole.attachments = vec![Attachment { kind: AttachmentKind::Telemetry, name, size: u64::MAX }; 100];
        let mut entries = [MessageJson::from(&whole)];
        let room = room(1024, 66);
        fit(&mut entries, room);
        assert!(length_of(&entries[0]) <= room, "{} of {room}", length_of(&entries[0]));
    }

    #[test]
    fn characters_are_counted_as_they_are_written() {
        for c in (0..=0x7f_u32).filter_map(char::from_u32).chain(['é', '\u{2028}', '😀', '\u{7f}']) {
            assert_eq!(written(c), length_of(&c.to_string()) - 2, "{c:?}");
        }
    }
}
