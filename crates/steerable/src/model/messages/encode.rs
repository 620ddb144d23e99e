//! A request for Messages.
//!
//! This dialect is strict where others are not: speakers alternate, the system speaks outside of the conversation, empty texts are
//! refused, results of tools come first in the user's turn. So neighbours are joined, and what would be refused is left out.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::chat::{Image, Message, Part, Role, ToolSpec};
use crate::model::body::Body;
use crate::model::details;
use crate::model::failure::Failure;
use crate::model::json::Piece;
use crate::model::request::{CacheMarks, Request};

/// How much the model may say if nobody said. The dialect wants a number.
const MAX_TOKENS: u64 = 16_384;

/// The least that a model may think.
const LEAST_THINKING: u64 = 1_024;

/// Where the request goes.
pub(in crate::model) fn address(request: &Request) -> String {
    let base = request.base();
    if base.ends_with("/v1") { format!("{base}/messages") } else { format!("{base}/v1/messages") }
}

/// What the request says.
pub(in crate::model) fn body(request: &Request) -> Result<Vec<u8>, Failure> {
    let mut body = Body::default();
    body.set("model", &request.model)?;
    let thinking = thinking(request);
    let most = request.max_tokens.unwrap_or(MAX_TOKENS.max(thinking.unwrap_or(0) + MAX_TOKENS / 2));
    body.set("max_tokens", &most)?;
    let mut system = system(request);
    let mut turns = turns(&request.messages);
    let mut tools: Vec<_> = request.tools.iter().map(tool).collect();
    if request.cache == CacheMarks::Send {
        system.last_mut().into_iter().for_each(Block::mark);
        if let Some(WireTool::Made(tool)) = tools.last_mut() {
            tool.cache_control = Some(EPHEMERAL);
        }
        let last_user = turns.iter_mut().rev().find(|turn| turn.role == "user");
        last_user.and_then(|turn| turn.content.last_mut()).into_iter().for_each(Block::mark);
    }
    if !system.is_empty() {
        body.set("system", &system)?;
    }
    body.set("messages", &turns)?;
    body.set("stream", &true)?;
    // A model that thinks chooses its own temperature.
    body.set_some("temperature", request.temperature.as_ref().filter(|_| thinking.is_none()))?;
    if let Some(budget) = thinking {
        body.set("thinking", &json!({"type": "enabled", "budget_tokens": budget}))?;
    }
    if !tools.is_empty() {
        body.set("tools", &tools)?;
    }
    body.finish(request.options.as_ref())
}

/// How much the model may think, if it was asked to and can go on from what it thought before.
fn thinking(request: &Request) -> Option<u64> {
    let wish = match request.reasoning_effort.as_deref()? {
        "none" | "minimal" | "off" => return None,
        "low" => 2_048,
        "high" => 16_384,
        "xhigh" | "max" => 32_768,
        _ => 8_192,
    };
    let budget = request.max_tokens.map_or(wish, |most| wish.min(most.saturating_sub(1)));
    // A turn with calls must begin with the thoughts that led to them; without them the model may not think now.
    let last_calls = request.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let lost = last_calls.is_some_and(|message| {
        !message.tool_calls.is_empty() && details::of(message, details::Owner::Messages).is_empty()
    });
    (budget >= LEAST_THINKING && !lost).then_some(budget)
}

#[derive(Serialize)]
struct Mark {
    r#type: &'static str,
}

const EPHEMERAL: Mark = Mark { r#type: "ephemeral" };

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    AsGiven(&'a RawValue),
    Made(MadeBlock<'a>),
}

#[derive(Serialize)]
struct MadeBlock<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Block<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Url { url: &'a str },
    Base64 { media_type: &'a str, data: &'a str },
}

impl<'a> MadeBlock<'a> {
    fn new(r#type: &'static str) -> Self {
        Self {
            r#type,
            text: None,
            source: None,
            id: None,
            name: None,
            input: None,
            tool_use_id: None,
            content: None,
            cache_control: None,
        }
    }
}

impl<'a> Block<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Made(MadeBlock { text: Some(text.into()), ..MadeBlock::new("text") })
    }

    /// Asks the provider to keep everything up to here.
    fn mark(&mut self) {
        match self {
            Self::Made(block) => block.cache_control = Some(EPHEMERAL),
            // Thoughts cannot be marked.
            Self::AsGiven(_) => {}
        }
    }
}

fn system(request: &Request) -> Vec<Block<'_>> {
    let said = request.messages.iter().filter(|message| message.role == Role::System);
    let mut texts: Vec<String> = said.map(Message::plain_text).filter(|text| !text.is_empty()).collect();
    if let Some(schema) = &request.response_schema {
        texts.push(format!(
            "Your final answer must be only JSON that fits this JSON Schema: {}",
            schema.get()
        ));
    }
    if texts.is_empty() { Vec::new() } else { vec![Block::text(texts.join("\n\n"))] }
}

/// The conversation with neighbours of the same speaker joined.
fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let (role, blocks) = match message.role {
            Role::System => continue,
            Role::User => ("user", parts(message)),
            Role::Tool => ("user", result(message)),
            Role::Assistant => ("assistant", assistant(message)),
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.content.extend(blocks),
            None => turns.push(Turn { role, content: blocks }),
        }
    }
    turns
}

fn assistant(message: &Message) -> Vec<Block<'_>> {
    let thoughts = details::of(message, details::Owner::Messages).into_iter().map(Block::AsGiven);
    let calls = message.tool_calls.iter().map(|call| {
        Block::Made(MadeBlock {
            id: Some(id(&call.id)),
            name: Some(&call.name),
            input: Some(&call.arguments),
            ..MadeBlock::new("tool_use")
        })
    });
    thoughts.chain(parts(message)).chain(calls).collect()
}

fn result(message: &Message) -> Vec<Block<'_>> {
    let Some(call) = &message.tool_call_id else { return parts(message) };
    let content = Some(parts(message)).filter(|parts| !parts.is_empty());
    vec![Block::Made(MadeBlock { tool_use_id: Some(id(call)), content, ..MadeBlock::new("tool_result") })]
}

fn parts(message: &Message) -> Vec<Block<'_>> {
    let blocks = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => (!text.trim().is_empty()).then(|| Block::text(text.as_str())),
        Part::Image(image) => {
            let source = match image {
                Image::Url(url) => Source::Url { url },
                Image::Data { media_type, base64 } => Source::Base64 { media_type, data: base64 },
            };
            Some(Block::Made(MadeBlock { source: Some(source), ..MadeBlock::new("image") }))
        }
    });
    blocks.collect()
}

/// An id of a call in the letters that this provider takes. Other providers have other letters.
fn id(id: &str) -> Cow<'_, str> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if id.chars().all(is_fine) { id.into() } else { id.replace(|letter| !is_fine(letter), "_").into() }
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    AsGiven(&'a RawValue),
    Made(MadeTool<'a>),
}

#[derive(Serialize)]
struct MadeTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

/// A tool. What is no function in OpenAI's form is in this provider's own, and passes as it is.
fn tool(tool: &ToolSpec) -> WireTool<'_> {
    let is_function =
        |given: &&RawValue| Piece::read(given.get()).is_ok_and(|piece| piece.get("function").is_some());
    match tool.as_given.as_deref().filter(|given| !is_function(given)) {
        Some(given) => WireTool::AsGiven(given),
        None => WireTool::Made(MadeTool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: None,
        }),
    }
}
