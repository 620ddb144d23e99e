//! A request for Gemini.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::chat::{Image, Message, Part, Role, ToolSpec};
use crate::model::body::Body;
use crate::model::calls::object;
use crate::model::details;
use crate::model::failure::Failure;
use crate::model::json::Piece;
use crate::model::request::Request;

/// Where the request goes: the model is part of the address.
pub(in crate::model) fn address(request: &Request) -> String {
    let base = request.base();
    let has_version = ["/v1", "/v1beta", "/v1alpha"].iter().any(|version| base.ends_with(version));
    let version = if has_version { "" } else { "/v1beta" };
    let model = request.model.strip_prefix("models/").unwrap_or(&request.model);
    let mut name = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                name.push(char::from(byte))
            }
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{base}{version}/models/{name}:streamGenerateContent?alt=sse")
}

/// What the request says.
pub(in crate::model) fn body(request: &Request) -> Result<Vec<u8>, Failure> {
    let mut body = Body::default();
    let system = system(request);
    if !system.is_empty() {
        body.set("systemInstruction", &json!({"parts": [{"text": system}]}))?;
    }
    body.set("contents", &contents(&request.messages))?;
    if !request.tools.is_empty() {
        let (own, functions): (Vec<_>, Vec<_>) = request.tools.iter().partition(|tool| is_own(tool));
        let mut tools: Vec<WireTool<'_>> =
            own.iter().filter_map(|tool| tool.as_given.as_deref()).map(WireTool::AsGiven).collect();
        if !functions.is_empty() {
            let functions = functions.into_iter().map(declaration).collect();
            tools.push(WireTool::Functions(Functions { function_declarations: functions }));
        }
        body.set("tools", &tools)?;
    }
    let config = Config::new(request);
    if !config.is_empty() {
        body.set("generationConfig", &config)?;
    }
    body.finish(request.options.as_ref())
}

/// A schema and tools together are refused by most models; then the schema is only asked for.
fn asks_in_words(request: &Request) -> Option<&RawValue> {
    request.response_schema.as_deref().filter(|_| !request.tools.is_empty())
}

fn system(request: &Request) -> String {
    let said = request.messages.iter().filter(|message| message.role == Role::System);
    let mut texts: Vec<String> = said.map(Message::plain_text).filter(|text| !text.is_empty()).collect();
    if let Some(schema) = asks_in_words(request) {
        texts.push(format!(
            "Your final answer must be only JSON that fits this JSON Schema: {}",
            schema.get()
        ));
    }
    texts.join("\n\n")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a RawValue>,
}

impl<'a> Config<'a> {
    fn new(request: &'a Request) -> Self {
        let schema = match asks_in_words(request) {
            Some(_) => None,
            None => request.response_schema.as_deref(),
        };
        let budget = request.reasoning_effort.as_deref().map(|effort| match effort {
            "none" | "minimal" | "off" => 0,
            "low" => 2_048,
            "high" => 16_384,
            "xhigh" | "max" => 24_576,
            _ => 8_192,
        });
        Self {
            temperature: request.temperature,
            max_output_tokens: request.max_tokens,
            thinking_config: budget
                .map(|budget| json!({"thinkingBudget": budget, "includeThoughts": budget > 0})),
            response_mime_type: schema.map(|_| "application/json"),
            response_json_schema: schema,
        }
    }

    fn is_empty(&self) -> bool {
        self.temperature.is_none()
            && self.max_output_tokens.is_none()
            && self.thinking_config.is_none()
            && self.response_json_schema.is_none()
    }
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct Response<'a> {
    name: &'a str,
    response: Box<RawValue>,
}

/// The conversation with neighbours of the same speaker joined.
fn contents(messages: &[Message]) -> Vec<Content<'_>> {
    let mut contents: Vec<Content<'_>> = Vec::new();
    for message in messages {
        let (role, parts) = match message.role {
            Role::System => continue,
            Role::User => ("user", said(message).collect()),
            Role::Tool => ("user", result(message, messages)),
            Role::Assistant => ("model", assistant(message)),
        };
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut().filter(|content| content.role == role) {
            Some(content) => content.parts.extend(parts),
            None => contents.push(Content { role, parts }),
        }
    }
    contents
}

fn said(message: &Message) -> impl Iterator<Item = WirePart<'_>> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(WirePart { text: Some(text), ..WirePart::default() }),
        Part::Image(Image::Url(url)) => {
            Some(WirePart { file_data: Some(json!({"fileUri": url})), ..WirePart::default() })
        }
        Part::Image(Image::Data { media_type, base64 }) => {
            let data = json!({"mimeType": media_type, "data": base64});
            Some(WirePart { inline_data: Some(data), ..WirePart::default() })
        }
    })
}

/// What the model said and called, each call with the signature that it came with.
fn assistant(message: &Message) -> Vec<WirePart<'_>> {
    let signatures: Map<String, Value> = details::of(message, details::Owner::Gemini)
        .into_iter()
        .filter_map(|item| {
            let piece = Piece::read(item.get()).ok()?;
            let signature = piece.get("signature")?.string()?.into_owned();
            Some((piece.get("call")?.raw().to_owned(), Value::from(signature)))
        })
        .collect();
    let calls = message.tool_calls.iter().enumerate().map(|(at, call)| WirePart {
        function_call: Some(Call { name: &call.name, args: &call.arguments }),
        thought_signature: signatures.get(&at.to_string()).and_then(Value::as_str).map(str::to_owned),
        ..WirePart::default()
    });
    said(message).chain(calls).collect()
}

/// The result of a call. This dialect knows calls by their tool's name only, so the name is looked up.
fn result<'a>(message: &'a Message, messages: &'a [Message]) -> Vec<WirePart<'a>> {
    let calls = messages.iter().rev().flat_map(|message| &message.tool_calls);
    let call = calls.into_iter().find(|call| Some(&call.id) == message.tool_call_id.as_ref());
    let Some(name) = call.map(|call| call.name.as_str()).or(message.name.as_deref()) else {
        return said(message).collect();
    };
    let text = message.plain_text();
    let wrapped = || RawValue::from_string(json!({"output": text}).to_string()).ok();
    let Some(response) = object(&text).or_else(wrapped) else { return said(message).collect() };
    vec![WirePart { function_response: Some(Response { name, response }), ..WirePart::default() }]
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    AsGiven(&'a RawValue),
    Functions(Functions<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Functions<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a RawValue,
}

fn declaration(tool: &ToolSpec) -> Declaration<'_> {
    Declaration { name: &tool.name, description: &tool.description, parameters_json_schema: &tool.parameters }
}

/// Whether a tool is one of the provider's own (a search, a sandbox) and passes as it is.
fn is_own(tool: &ToolSpec) -> bool {
    let piece = tool.as_given.as_deref().and_then(|given| Piece::read(given.get()).ok());
    piece.is_some_and(|piece| piece.get("function").is_none() && piece.get("type").is_none())
}
