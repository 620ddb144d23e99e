//! One message of a conversation, whichever provider it goes to.

use serde_json::value::RawValue;

use super::tool::ToolCall;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The instructions.
    System,
    /// The person, or the program in their place.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

impl Role {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::System, Self::User, Self::Assistant, Self::Tool].into_iter().find(|role| role.word() == word)
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// The speaker's name, where a provider has a place for it.
    pub name: Option<String>,
    /// Which call a tool's message answers.
    pub tool_call_id: Option<String>,
    /// What an assistant's message calls.
    pub tool_calls: Vec<ToolCall>,
    /// What the model thought before it spoke.
    pub reasoning: Option<String>,
    /// The provider's own record of that thinking (signatures, encrypted blocks), which it wants back as it was.
    pub reasoning_details: Option<Box<RawValue>>,
}

impl Message {
    /// A message of nothing but text.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            parts: vec![Part::Text(text.into())],
            name: None,
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning: None,
            reasoning_details: None,
        }
    }

    /// The text of all parts, joined without anything between them.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image(_) => None,
        });
        texts.collect()
    }
}

/// One part of what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Text(String),
    /// A picture.
    Image(Image),
}

/// Where a picture is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// At an address that the provider fetches.
    Url(String),
    /// Here.
    Data {
        /// `image/png` and the like.
        media_type: String,
        /// The picture in base64.
        base64: String,
    },
}
