//! The panel of the auto-reply.

use super::book::{Book, MAX_TEXT};
use crate::protocol::{Action, ActionStyle, Input, InputKind, Node, PanelDraft, PanelPatch, Row, Slot, Tone};

/// Its name, also in the manifest.
pub(super) const ID: &str = "stats";

/// What people see of it in the manifest and here.
pub(super) const TITLE: &str = "Auto-reply";

/// The panel with its actions.
pub(super) fn draft() -> PanelDraft {
    let action = |id: &str, label: &str| Action {
        id: id.to_owned(),
        label: label.to_owned(),
        style: None,
        confirm: None,
        input: None,
    };
    let text = Input {
        kind: InputKind::Text,
        label: Some("Reply".to_owned()),
        max_length: u32::try_from(MAX_TEXT / 4).ok(),
        options: None,
    };
    PanelDraft {
        id: ID.to_owned(),
        title: TITLE.to_owned(),
        slot: Slot::Primary,
        description: Some("Answers messages while you are away, and counts them.".to_owned()),
        icon: Some("chat".to_owned()),
        order: None,
        actions: Some(vec![
            Action { style: Some(ActionStyle::Primary), ..action("pause", "Pause or go on") },
            Action { input: Some(text), ..action("set-reply", "Set reply text") },
            Action {
                style: Some(ActionStyle::Danger),
                confirm: Some("Set all counters to zero?".to_owned()),
                ..action("reset", "Reset")
            },
        ]),
    }
}

/// What the panel shows now.
pub(super) fn content(book: &Book) -> PanelPatch {
    let counts = book.kept.counts;
    let row = |key: &str, value: u64| Row { key: key.to_owned(), value: value.to_string() };
    let (word, tone) =
        if book.kept.paused { ("paused", Tone::Warning) } else { ("answering", Tone::Success) };
    PanelPatch {
        content: Some(vec![
            Node::Badge { text: word.to_owned(), tone: Some(tone) },
            Node::Kv {
                items: vec![
                    row("Received", counts.received),
                    row("Answered", counts.replied),
                    row("Left alone", counts.skipped),
                    row("Failed", counts.failed),
                    row("Contacts known", book.known() as u64),
                ],
            },
            Node::Separator {},
            Node::Text { text: book.kept.text.chars().take(1024).collect(), tone: None },
        ]),
        ..PanelPatch::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_takes_the_panel_as_it_is() {
        assert_eq!(draft().check(), Ok(()));
    }
}
