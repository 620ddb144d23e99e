//! A request for Responses. Nothing is kept at the provider: the whole conversation goes with every call.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::chat::{Image, Message, Part, Role, ToolSpec};
use crate::model::body::Body;
use crate::model::details;
use crate::model::failure::Failure;
use crate::model::json::Piece;
use crate::model::request::Request;

/// Models that think, and whose thoughts can be had in a form that can be sent back. Others refuse to be asked for it.
const THINKERS: [&str; 6] = ["o1", "o3", "o4", "gpt-5", "codex", "grok-4"];

/// Where the request goes.
pub(in crate::model) fn address(request: &Request) -> String {
    format!("{}/responses", request.base())
}

/// What the request says.
pub(in crate::model) fn body(request: &Request) -> Result<Vec<u8>, Failure> {
    let mut body = Body::default();
    body.set("model", &request.model)?;
    let mut input = Vec::new();
    for message in request.messages.iter() {
        encode(message, &mut input);
    }
    body.set("input", &input)?;
    body.set("stream", &true)?;
    body.set("store", &false)?;
    body.set_some("temperature", request.temperature.as_ref())?;
    body.set_some("max_output_tokens", request.max_tokens.as_ref())?;
    if let Some(effort) = &request.reasoning_effort {
        body.set("reasoning", &json!({"effort": effort, "summary": "auto"}))?;
    }
    let thinks = THINKERS.iter().any(|prefix| request.model.starts_with(prefix));
    if thinks || request.reasoning_effort.is_some() {
        body.set("include", &["reasoning.encrypted_content"])?;
    }
    if !request.tools.is_empty() {
        body.set("tools", &request.tools.iter().map(tool).collect::<Vec<_>>())?;
    }
    if let Some(schema) = &request.response_schema {
        let format = Format { r#type: "json_schema", name: "answer", schema, strict: false };
        body.set("text", &Text { format })?;
    }
    body.finish(request.options.as_ref())
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    AsGiven(&'a RawValue),
    Message { r#type: &'static str, role: &'static str, content: Vec<Content<'a>> },
    Call { r#type: &'static str, call_id: &'a str, name: &'a str, arguments: &'a str },
    Output { r#type: &'static str, call_id: &'a str, output: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    InputImage { image_url: Cow<'a, str> },
}

fn encode<'a>(message: &'a Message, input: &mut Vec<Item<'a>>) {
    if let (Role::Tool, Some(call_id)) = (message.role, &message.tool_call_id) {
        let output = Cow::Owned(message.plain_text());
        input.push(Item::Output { r#type: "function_call_output", call_id, output });
        return;
    }
    // Thoughts that were not given to us encrypted live at the provider only, which does not know us any more.
    let thoughts = details::of(message, details::Owner::Responses).into_iter();
    let is_encrypted = |item: &&RawValue| {
        Piece::read(item.get()).is_ok_and(|piece| piece.get("encrypted_content").is_some())
    };
    input.extend(thoughts.filter(is_encrypted).map(Item::AsGiven));
    let content: Vec<_> = message.parts.iter().filter_map(|part| content(message.role, part)).collect();
    if !content.is_empty() {
        let role = match message.role {
            Role::Tool => Role::User.word(),
            Role::System | Role::User | Role::Assistant => message.role.word(),
        };
        input.push(Item::Message { r#type: "message", role, content });
    }
    input.extend(message.tool_calls.iter().map(|call| Item::Call {
        r#type: "function_call",
        call_id: &call.id,
        name: &call.name,
        arguments: call.arguments.get(),
    }));
}

fn content(role: Role, part: &Part) -> Option<Content<'_>> {
    match (role, part) {
        (_, Part::Text(text)) if text.is_empty() => None,
        (Role::Assistant, Part::Text(text)) => Some(Content::OutputText { text }),
        // Pictures of an assistant have no form here.
        (Role::Assistant, Part::Image(_)) => None,
        (_, Part::Text(text)) => Some(Content::InputText { text }),
        (_, Part::Image(Image::Url(url))) => Some(Content::InputImage { image_url: Cow::Borrowed(url) }),
        (_, Part::Image(Image::Data { media_type, base64 })) => {
            Some(Content::InputImage { image_url: Cow::Owned(format!("data:{media_type};base64,{base64}")) })
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    AsGiven(&'a RawValue),
    Made { r#type: &'static str, name: &'a str, description: &'a str, parameters: &'a RawValue, strict: bool },
}

/// A tool. Those that are not functions in OpenAI's older form are the provider's own, and pass as they are.
fn tool(tool: &ToolSpec) -> WireTool<'_> {
    let given = tool.as_given.as_deref();
    let piece = given.and_then(|given| Piece::read(given.get()).ok());
    let function = piece.and_then(|piece| piece.get("function"));
    match (given, function) {
        (Some(given), None) => WireTool::AsGiven(given),
        (_, function) => WireTool::Made {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            // Without a word this dialect is strict, and refuses most schemas of other people.
            strict: function
                .and_then(|function| function.get("strict"))
                .is_some_and(|strict| strict.raw() == "true"),
        },
    }
}
