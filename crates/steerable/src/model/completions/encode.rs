//! A request for chat completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::chat::{Image, Message, Part, Role, ToolSpec};
use crate::model::body::Body;
use crate::model::details;
use crate::model::failure::Failure;
use crate::model::provider::Provider;
use crate::model::request::Request;

/// Where the request goes.
pub(in crate::model) fn address(request: &Request) -> String {
    let base = request.base();
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    match request.provider {
        Provider::Ollama if !has_path => format!("{base}/v1/chat/completions"),
        _ => format!("{base}/chat/completions"),
    }
}

/// What the request says.
pub(in crate::model) fn body(request: &Request) -> Result<Vec<u8>, Failure> {
    let at_openai = is_openai(request);
    let mut body = Body::default();
    body.set("model", &request.model)?;
    let messages: Vec<_> = request.messages.iter().map(|message| encode(message, at_openai)).collect();
    body.set("messages", &messages)?;
    body.set("stream", &true)?;
    body.set("stream_options", &json!({"include_usage": true}))?;
    body.set_some("temperature", request.temperature.as_ref())?;
    // OpenAI's newer models refuse the old name; everybody else knows only that.
    let most = if at_openai { "max_completion_tokens" } else { "max_tokens" };
    body.set_some(most, request.max_tokens.as_ref())?;
    body.set_some("reasoning_effort", request.reasoning_effort.as_ref())?;
    if !request.tools.is_empty() {
        body.set("tools", &request.tools.iter().map(tool).collect::<Vec<_>>())?;
    }
    if let Some(schema) = &request.response_schema {
        body.set(
            "response_format",
            &Format { r#type: "json_schema", json_schema: Named { name: "answer", schema } },
        )?;
    }
    body.finish(request.options.as_ref())
}

fn is_openai(request: &Request) -> bool {
    request.provider == Provider::ChatCompletions && request.base().contains("://api.openai.com")
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    json_schema: Named<'a>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url<'a> },
}

#[derive(Serialize)]
struct Url<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn encode(message: &Message, at_openai: bool) -> WireMessage<'_> {
    let calls = message.tool_calls.iter().map(|call| WireCall {
        id: &call.id,
        r#type: "function",
        function: Function { name: &call.name, arguments: call.arguments.get() },
    });
    // Models that think between calls want their thoughts back, under the name they gave them; OpenAI does not know it.
    let thinks_on = !message.tool_calls.is_empty() && !at_openai;
    WireMessage {
        role: message.role.word(),
        content: content(message),
        name: message.name.as_deref(),
        tool_call_id: message.tool_call_id.as_deref(),
        tool_calls: calls.collect(),
        reasoning_content: message.reasoning.as_deref().filter(|_| thinks_on),
        reasoning_details: details::of(message, details::Owner::Completions),
    }
}

fn content(message: &Message) -> Content<'_> {
    let is_image = |part: &Part| matches!(part, Part::Image(_));
    if message.parts.iter().any(is_image) {
        return Content::Parts(message.parts.iter().map(part).collect());
    }
    match message.parts.as_slice() {
        [Part::Text(text)] if text.is_empty() && !message.tool_calls.is_empty() => Content::Nothing,
        [] if message.role == Role::Assistant && !message.tool_calls.is_empty() => Content::Nothing,
        [Part::Text(text)] => Content::Text(Cow::Borrowed(text)),
        _ => Content::Text(Cow::Owned(message.plain_text())),
    }
}

fn part(part: &Part) -> WirePart<'_> {
    match part {
        Part::Text(text) => WirePart::Text { text },
        Part::Image(Image::Url(url)) => WirePart::ImageUrl { image_url: Url { url: Cow::Borrowed(url) } },
        Part::Image(Image::Data { media_type, base64 }) => WirePart::ImageUrl {
            image_url: Url { url: Cow::Owned(format!("data:{media_type};base64,{base64}")) },
        },
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    AsGiven(&'a RawValue),
    Made { r#type: &'static str, function: Made<'a> },
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

fn tool(tool: &ToolSpec) -> WireTool<'_> {
    match &tool.as_given {
        Some(given) => WireTool::AsGiven(given),
        None => WireTool::Made {
            r#type: "function",
            function: Made { name: &tool.name, description: &tool.description, parameters: &tool.parameters },
        },
    }
}
