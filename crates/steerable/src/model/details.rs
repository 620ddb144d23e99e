//! A provider's own record of its thinking, which goes back to it as it was — and to nobody else.

use serde_json::value::RawValue;

use super::json::Piece;
use crate::chat::Message;

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// `reasoning.…` items, or anything else that no other provider claims.
    Completions,
    /// `reasoning` items.
    Responses,
    /// `thinking` and `redacted_thinking` blocks.
    Messages,
    /// `gemini.signature` items, which are our own: Gemini hangs its signatures on the parts themselves.
    Gemini,
}

/// The items of a message's record that are this owner's. A session may have changed providers in between.
pub(super) fn of(message: &Message, owner: Owner) -> Vec<&RawValue> {
    let Some(details) = &message.reasoning_details else { return Vec::new() };
    let items: Vec<&RawValue> = serde_json::from_str(details.get()).unwrap_or_default();
    items.into_iter().filter(|item| owner_of(item.get()) == owner).collect()
}

fn owner_of(item: &str) -> Owner {
    let kind = Piece::read(item).ok().and_then(|piece| piece.get("type")).and_then(Piece::string);
    match kind.as_deref() {
        Some("reasoning") => Owner::Responses,
        Some("thinking" | "redacted_thinking") => Owner::Messages,
        Some("gemini.signature") => Owner::Gemini,
        Some(_) | None => Owner::Completions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Role;

    #[test]
    fn every_provider_gets_its_own_items_back_as_they_were() {
        let mut message = Message::text(Role::Assistant, "hi");
        let items = r#"[{"type":"thinking","signature":"a"}, {"type":"reasoning","n":1.0},{"type":"reasoning.text"},{"type":"gemini.signature"},7]"#;
        message.reasoning_details = Some(RawValue::from_string(items.to_owned()).unwrap());
        let of = |owner| of(&message, owner).into_iter().map(RawValue::get).collect::<Vec<_>>();
        assert_eq!(of(Owner::Messages), [r#"{"type":"thinking","signature":"a"}"#]);
        assert_eq!(of(Owner::Responses), [r#"{"type":"reasoning","n":1.0}"#]);
        assert_eq!(of(Owner::Completions), [r#"{"type":"reasoning.text"}"#, "7"]);
        assert_eq!(of(Owner::Gemini), [r#"{"type":"gemini.signature"}"#]);
    }
}
