//! How many tokens a conversation may be, without the model's own dictionary.

use crate::chat::{Image, Message, Part, ToolSpec};

/// What every message costs beside its text.
const PER_MESSAGE: u64 = 4;
/// What a picture costs. Providers charge between some hundred and some thousand.
const PER_IMAGE: u64 = 1_000;
/// How many bytes of text are a token, about.
const BYTES_PER_TOKEN: u64 = 4;

/// An estimate of the tokens that go in: four bytes a token, which is near the truth for prose and code.
#[must_use]
pub fn estimate_tokens(messages: &[Message], tools: &[ToolSpec]) -> u64 {
    let said: u64 = messages.iter().map(message_tokens).sum();
    let offered: u64 = tools.iter().map(tool_tokens).sum();
    said.saturating_add(offered)
}

fn message_tokens(message: &Message) -> u64 {
    let mut bytes = message.name.as_ref().map_or(0, String::len);
    let mut pictures = 0;
    for part in &message.parts {
        match part {
            Part::Text(text) => bytes += text.len(),
            Part::Image(Image::Url(_) | Image::Data { .. }) => pictures += 1,
        }
    }
    for call in &message.tool_calls {
        bytes += call.id.len() + call.name.len() + call.arguments.get().len();
    }
    bytes += message.tool_call_id.as_ref().map_or(0, String::len);
    bytes += message
        .reasoning_details
        .as_ref()
        .map_or_else(|| message.reasoning.as_ref().map_or(0, String::len), |details| details.get().len());
    PER_MESSAGE + (bytes as u64).div_ceil(BYTES_PER_TOKEN) + pictures * PER_IMAGE
}

fn tool_tokens(tool: &ToolSpec) -> u64 {
    let bytes = match &tool.as_given {
        Some(given) => given.get().len(),
        None => tool.name.len() + tool.description.len() + tool.parameters.get().len(),
    };
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Role;

    #[test]
    fn four_bytes_are_a_token_and_every_message_costs_four_more() {
        assert_eq!(estimate_tokens(&[], &[]), 0);
        assert_eq!(estimate_tokens(&[Message::text(Role::User, "eight by")], &[]), 6);
        assert_eq!(estimate_tokens(&[Message::text(Role::User, "nine byte")], &[]), 7);
    }

    #[test]
    fn pictures_count_the_same_however_they_are_sent() {
        let mut message = Message::text(Role::User, "");
        message
            .parts
            .push(Part::Image(Image::Data { media_type: "image/png".into(), base64: "A".repeat(100_000) }));
        assert_eq!(estimate_tokens(&[message], &[]), 1_004);
    }
}
